"""The ways to write an expression of a kind, as tables of templates (`Writer.fill` says what stands in their gaps).

A table holds groups, each of which is as likely as another, and in a group each template is.
"""

from __future__ import annotations

from tests.fuzz.writer import ANY, HIGHEST, Function, Kind, Writer

Groups = tuple[tuple[str, ...], ...]

ELEMENTWISE: Groups = (
    tuple(f"({{=}} {sign} {{=}})" for sign in ("+", "+", "-", "*", "*", "/", "%", "//")),
    tuple(f"({{=}} {sign} {{=}})" for sign in ("+", "-", "*", "*")),
    tuple(f"({{.}} {sign} {{=}})" for sign in ("+", "-", "*", "/", "**")),
    tuple(f"({{=}} {sign} {{.}})" for sign in ("+", "-", "*", "/")),
    tuple(
        f"{name}({{=}})"
        for name in ("sin", "cos", "tanh", "exp", "abs", "sqrt", "log", "sigmoid", "relu", "square", "floor", "-")
    ),
    tuple(
        f"{name}({{=}})"
        for name in (
            *(
                "tan",
                "asin",
                "acos",
                "atan",
                "sinh",
                "cosh",
                "asinh",
                "acosh",
                "atanh",
                "exp2",
                "expm1",
                "log1p",
                "log2",
            ),
            *("log10", "cbrt", "rsqrt", "erf", "erfc", "lgamma", "digamma", "gelu", "silu", "elu", "leaky_relu"),
            *("sign", "round", "ceil", "trunc"),
        )
    ),
    ("where(isnan({=}), {=}, {=})", "where(isfinite({=}), {=}, {=})", "zeros_like({=})", "ones_like({=})"),
    ("full_like({=}, {.})", "({=}).clamp({.}, {.})", "(-{=})", "({=}).abs()", "where(~({b=}), {.}, {=})"),
    tuple(f"{name}({{=}}, {{=}})" for name in ("maximum", "minimum", "hypot", "atan2", "logaddexp")),
    tuple(f"({{=}}) ** {power}" for power in (2, 3, -1, 0, 1, 0.5, -2)),
    ("where({b=}, {=}, {=})",),
    ("({=} if {b.} else {=})",),
    ("stop_gradient({=})", "clamp({=}, -1.0, 1.5)", "clamp({=}, {.}, {.})", "softplus({=})", "lerp({=}, {=}, {.})"),
)
"""For floats of any shape, also of one that is not known."""

FORMS: Groups = (
    ("cond({b.}, {fn}, {fn}, {=})",),
    ("while_loop((i, c) -> i < 3, (i, c) -> (i + 1, c * {.} + {=}), 0, {=})[1]",),
    ("fold((c, e) -> c * e + {=}, {=}, {3})", "fold((c, e) -> c + e * {=}, {=}, {0})"),
    ("(({=}, {=})[0])", "(({.}, {=})[1])"),
)
"""The functional forms, and tuples."""

BY_SHAPE: dict[tuple[int, ...], Groups] = {
    (): (
        ("sum({3})", "sum({2,3})", "sum({4})", "sum({0})", "mean({3})", "mean({2,3})"),
        ("max({3})", "min({2,3})", "prod({3})", "norm({3})", "var({4})", "std({3})", "logsumexp({4})"),
        ("({3})[{i.} % 3]", "({4})[-1]", "({2,3})[1, -1]", "({3})[0]", "({1})[{i.}]"),
        ("dot({3}, {3})", "({3} @ {3})", 'einsum("i,i", {4}, {4})', 'einsum("ij,j,i", {2,3}, {3}, {2})'),
        ("sum(({3})[{b3}])", "sum(({2,3})[{b2}])", "sum(({4})[::-2])"),
        ("binary_cross_entropy(sigmoid({3}), sigmoid({3}))", "(argmax({2,3}, axis=1)[{i.} % 2] + {.})", "({3}).mean()"),
        ("trace({2,2})", "mse_loss({3}, {3})", "huber_loss({4}, {4})", "cross_entropy({2,3}, [0, 2])"),
        ("sum(max_pool2d(reshape({4,4}, 1, 1, 4, 4), 2))", "mean(avg_pool2d(reshape({4,4}, 1, 1, 4, 4), 3, stride=1))"),
        ("sum(conv2d(reshape({4,4}, 1, 1, 4, 4), reshape({2,2}, 1, 1, 2, 2), stride=2))",),
        ("sum(map(e -> e * {.} + {.}, {3}))", "scan((c, e) -> (c * {.} + e, c), {.}, {3})[0]"),
    ),
    (1,): (
        ("({3})[:1]", "({4})[-1:]", "[{.}]", "reshape({.}, 1)"),
        ("sum({2,3})[none]", "sum({3}, keepdims=true)"),
    ),
    (2,): (
        ("({2,3} @ {3})", "({3} @ {3,2})", 'einsum("ij,j->i", {2,3}, {3})', "({2,2} @ {2})"),
        ("sum({2,3}, axis=1)", "max({3,2}, axis=0)", "mean({2,3}, axis=-1)", "prod({2,3}, axis=1)"),
        ("({2,3})[:, {i.} % 3]", "({3})[1:]", "({4})[::2]", "({3})[[2, 0]]", "[{.}, {.}]"),
        ("reshape(conv1d(reshape({3}, 1, 1, 3), reshape({2}, 1, 1, 2)), 2)",),
    ),
    (3,): (
        ("({3,2} @ {2})", "({2} @ {2,3})", 'einsum("ij,j->i", {3,2}, {2})', 'einsum("ij,i->j", {2,3}, {2})'),
        ("({2,3})[-1]", "({4})[1:]", "({4})[:3]", "({4})[[3, 0, 3]]", "({2,3})[{i.} % 2]", "({3,2})[:, 1]"),
        ("cumsum({=})", "cumprod({=})", "softmax({=})", "log_softmax({=})", "sort({=})", "layer_norm({=})"),
        ("flip({=})", "roll({=}, 1)", "({=})[::-1]", "take({4}, [0, 1, 1])", "({=})[argsort({=})]"),
        ("concat([{1}, {2}])", "stack([{.}, {.}, {.}])", "scatter_add({=}, [0, 2, 0], {=})", "[{.}, {.}, {.}]"),
        ("sum({2,3}, axis=0)", "min({2,3}, axis=0)", "logsumexp({3,2}, axis=1)", "diag({3,3})"),
        ("conv1d(reshape({4}, 1, 1, 4), reshape({2}, 1, 1, 2))[0, 0]",),
        ("conv1d(reshape({=}, 1, 1, 3), reshape({3}, 1, 1, 3), padding=1)[0, 0]",),
        ("scan((c, e) -> (c * {.} + e, c * {.}), {.}, {=})[1]", "map(e -> e * {.} + {.}, {=})"),
    ),
    (4,): (
        ("concat([{1}, {3}])", "flatten({2,2})", "concat([{2}, {2}])", "concat([{4}, {0}])"),
        ("({4,4} @ {=})", "({4,4})[{i.} % 4]", "flatten(max_pool2d(reshape({4,4}, 1, 1, 4, 4), 2))"),
        ("flatten(conv2d(reshape({3,3}, 1, 1, 3, 3), reshape({2,2}, 1, 1, 2, 2)))",),
    ),
    (2, 2): (
        ("({2,3} @ {3,2})", 'einsum("ij,kj->ik", {2,3}, {2,3})', "outer({2}, {2})", "diag({2})"),
        ("({2,3})[:, 1:]", "({3,2})[[0, 2]]", "[{2}, {2}]", "tril({=})", "triu({=}, 1)"),
    ),
    (2, 3): (
        (
            "swapaxes({3,2}, 0, 1)",
            "transpose({3,2})",
            "squeeze(expand_dims({=}, 1), 1)",
            "stack(split({=}, 2)).reshape(2, 3)",
        ),
        ("({=} * {3}[none])", "embedding([1, 3], {4,4})[:, 1:]", "(eye(2) @ {=})", "roll({=}, 1, axis=1)"),
        ("({2,2} @ {=})", 'einsum("ij,jk->ik", {2,2}, {=})', "outer({2}, {3})", 'einsum("i,j->ij", {2}, {3})'),
        ("stack([{3}, {3}])", "concat([{2,2}, expand_dims({2}, 1)], axis=1)", "broadcast_to({3}, 2, 3)"),
        ("({=} * {3})", "(expand_dims({2}, 1) + {=})", "({2})[:, none] * ({3})[none]", "({=} - {1})"),
        (
            "softmax({=})",
            "cumsum({=}, axis=0)",
            "flip({=}, axis=1)",
            "reshape({3,2}, 2, 3)",
            "one_hot([0, 2], 3) * {=}",
        ),
        ("map(r -> r * {3}, {=})", "scan((c, r) -> (c + r * {.}, c * r), {3}, {=})[1]"),
    ),
}
"""For floats of one shape."""

MIXED: dict[str, Groups] = {
    "f64": (
        ("({i=} * {=})", "({=} + {b=})", "({h=} - {=})", "({=} / {i=})", "f64({i=})", "f64({b=})"),
        ("({g=} * {=})", "f64({g=})", "({=} - {g=})", "where({b=}, {g=}, {=})", "({i=} / {i=})", "f64(f32({=}))"),
    ),
    "f32": (
        ("({i=} * {=})", "({=} + {b=})", "({h=} - {=})", "({=} / {i=})", "f32({i=})", "f32({b=})", "(0.5 * {=} + 1)"),
        ("f32({f=})", "f32({f=})", "where({b=}, {i=}, {=})", "f32({f=} * {=})", "(2 - {=})"),
    ),
}
"""Of several dtypes, by that of the result."""

COMPARED: Groups = tuple(
    tuple(f"({{{dtype}=}} {sign} {{{dtype}=}})" for sign in ("<", "<=", ">", ">=", "==", "!=")) for dtype in "ffi"
)
BOOL_SCALARS: Groups = (
    *COMPARED,
    tuple(f"({{=}} {sign} {{=}})" for sign in ("and", "or", "&", "|")),
    ("any({f3} > {f.})", "all({f3} < {f3})", "(not {=})"),
)
INTS: Groups = (
    tuple(f"({{=}} {sign} {{=}})" for sign in ("+", "-", "*", "&", "|")),
    tuple(f"({{=}} {sign} {number})" for sign in ("//", "%") for number in (2, 3, -2)),
    tuple(f"({{=}} {sign} {{=}})" for sign in ("//", "%", "-", "+", "+", "*")),
)
WIDTHS: dict[str, Groups] = {
    "i64": (("i64({f=})", "({b=} + {b=})", "({h=} * {=})", "({=} + {b=})", "i64({h=})", "where({b=}, {h=}, {=})"),),
    "i32": (("i32({i=})", "i32({f=})", "i32({b=})", "({=} * 2)", "({=} + {b=})", "abs({=})", "maximum({=}, {=})"),),
}
INT_SCALARS: Groups = (
    *INTS,
    ("argmax({f3})", "i64({f.})", "sum({f3} > {f.})", "count_nonzero({f4})"),
    ("argmin({f4})", "sum({i3})", "({i3})[1]"),
)
INT_ROWS: Groups = (
    *INTS,
    ("cumsum({=})", "argsort({f3})", "sort({=})", "({=})[::-1]", "(0..3)", "concat([{=}[1:], {=}[:1]])"),
)


def templates(writer: Writer, kind: Kind) -> Groups:
    """The ways to compute a value of a kind in this program."""
    match kind:
        case Kind("bool", ()):
            return BOOL_SCALARS
        case Kind("bool", shape):
            return COMPARED[:1] if shape == ANY else COMPARED[:2]
        case Kind("i64", shape):
            return {(): INT_SCALARS, (3,): INT_ROWS}.get(shape, INTS) + WIDTHS["i64"]
        case Kind("i32"):
            return INTS + WIDTHS["i32"]
        case Kind(_, shape) if shape == ANY:
            return ELEMENTWISE
    found = ELEMENTWISE + FORMS + MIXED[kind.dtype] + BY_SHAPE.get(kind.shape, ()) * 2
    if len(kind.shape) == 2:
        found += (("({T}).T",),)
    if kind.shape in writer.also:
        found += (writer.also[kind.shape],) * 6
    return found + calls(writer, kind)


def calls(writer: Writer, kind: Kind) -> Groups:
    """Calls of the program's own functions."""
    found = [text for function in writer.functions if function.result == kind for text in ways(function)]
    operators = [
        f"{name}({{fn}}, {{=}})" for name, order in writer.operators.items() if writer.order + order <= HIGHEST
    ]
    maps = [f"{name}({{=}})" for name, order in writer.maps.items() if writer.order + order <= HIGHEST]
    return tuple(tuple(group) for group in (found, found, maps, operators, operators, operators, operators) if group)


def ways(function: Function) -> list[str]:
    """The ways to call a function: with all its arguments, without those that have defaults, and by their names."""
    gaps = ["{f" + (",".join(map(str, p.shape)) or ".") + "}" for p in function.params]
    given = [gaps, gaps[: len(gaps) - function.defaults]]
    if function.named:
        named = [f"{name}={gap}" for name, gap in zip(function.named, gaps, strict=True)]
        given += [named[::-1], gaps[:1] + named[1:][::-1]]
    return [f"{function.name}({', '.join(args)}){function.part}" for args in given]
