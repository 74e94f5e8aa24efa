"""Tensors of more elements than a vector, a block of a sum, or a block of a product holds, and of sizes in between."""

from __future__ import annotations

from tests.fuzz.writer import Writer

LINES = (31, 33, 64, 100, 257, 1000, 4097, 9000)
MATRICES = ((33, 5), (7, 40), (40, 33), (70, 65), (3, 300))
SQUARE = 24


def choose(w: Writer) -> None:
    """A few large shapes for the names of this program, and ways to compute with them."""
    n = w.pick(LINES)
    m, k = w.pick(MATRICES)
    w.shapes = (*w.shapes, *((n,), (n,), (n,), (m, k), (m, k), (k, m), (k,), (m,)))
    line, whole, turned, row, column = f"{{{n}}}", f"{{{m},{k}}}", f"{{{k},{m}}}", f"{{{k}}}", f"{{{m}}}"
    add(
        w,
        (),
        *(f"{of}({x})" for of in ("sum", "mean", "max", "norm", "logsumexp", "var", "prod") for x in (line, whole)),
        *(f"dot({line}, {line})", f"({line})[{{i.}} % {n}]", f"sum({line}[{line} > {{.}}])", f"({whole} @ {row})[1]"),
        *(f"sum({whole} @ {turned})", f"trace({whole} @ {turned})", f'einsum("ij,ij", {whole}, {whole})'),
        *(f"sum({line}[3:] * {line}[:-3])", f"sum({line}[::-1][::3])", f"count_nonzero({line} > {{.}}) * {{.}}"),
        f"fold((c, e) -> c * 0.5 + sum(e), {{.}}, {whole})",
    )
    add(
        w,
        (n,),
        *(
            f"cumsum({line})",
            f"sort({line})",
            f"softmax({line})",
            f"({line})[::-1]",
            f"roll({line}, 5)",
            f"cumprod({line})",
        ),
        *(f"({line})[argsort({line})]", f"concat([{line}[5:], {line}[:5]])", f"scatter_add({line}, [0, 30, 0], {{3}})"),
        *(f"map(e -> e * {{.}} + {{.}}, {line})", f"scan((c, e) -> (c * 0.5 + e, c), {{.}}, {line})[1]"),
    )
    add(w, (m,), f"({whole} @ {row})", f"sum({whole}, axis=1)", f"max({whole}, axis=1)", f"({whole})[:, 3]")
    add(w, (k,), f"({column} @ {whole})", f"mean({whole}, axis=0)", f"logsumexp({whole}, axis=0)", f"({whole})[2]")
    add(
        w,
        (m, k),
        *(
            f"({whole} @ ({turned} @ {whole}))",
            f"outer({column}, {row})",
            f"({whole} + {row})",
            f"cumsum({whole}, axis=0)",
        ),
        *(f"softmax({whole})", f"(expand_dims({column}, 1) * {whole})", f"layer_norm({whole})", f"({turned}).T"),
    )
    add(w, (3,), f"({line})[[{n - 1}, 0, 30]]", f"({whole})[[1, 0, 2], 2]")
    w.arguments.append(f"--threads {w.pick((2, 2, 3))}")


def add(w: Writer, shape: tuple[int, ...], *ways: str) -> None:
    w.also[shape] = w.also.get(shape, ()) + ways
