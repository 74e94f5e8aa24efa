"""`python -m tests.accuracy [NAME…] [--points N] [--every K] [--derivatives]`: errors of functions in ulps, as a table.

`--points` are drawn from each of the ranges of `cases`, and compared with mpmath. Of f32 functions of one argument each K-th
of all values is compared with the f64 function, too (`--every 1` takes an hour or two, 0 leaves it out).
"""

from __future__ import annotations

import argparse
import sys

from graphdsl.ops.table import OPS
from graphdsl.ops.types import F32, F64, DType
from graphdsl.render.table import table
from tests.accuracy import derivatives
from tests.accuracy.cases import CASES
from tests.accuracy.measure import compiled, errors, errors_everywhere, nanoseconds


def row(name: str, dtype: DType, points: int, every: int) -> list[str]:
    """The cells for one function: the arguments' span, how many, the greatest error, where, the bound, time."""
    found = list(errors(name, dtype, points))
    worst, place = max(found, key=lambda e: e[0])
    count = len(found)
    if every and dtype is F32 and compiled(name, dtype).nin == 1:
        everywhere, x = errors_everywhere(name, every)
        worst, place = max((worst, place), (everywhere, (x,)))
        count += (1 << 32) // every
    low, high = (f(abs(x) for _, place in found for x in place) for f in (min, max))
    bound = OPS[name].bound
    return [
        name,
        dtype.value,
        f"{low:.3g} to {high:.3g}",
        f"{count:,}",
        f"{worst:.3f}",
        ", ".join(x.hex() for x in place),
        f"{bound:g}" + (" exceeded" if worst > bound else ""),
        f"{nanoseconds(name, dtype):.2f}",
    ]


def slopes(name: str, points: int) -> list[str]:
    """The cells for the derivatives of one function."""
    found = list(derivatives.errors(name, points))
    cells = [name, f"{len(found) // 2:,}"]
    for order in (1, 2):
        worst, place = max((error, place) for k, error, place in found if k == order)
        cells += [f"{worst:.2f}", place.hex()]
    return cells


def main() -> None:
    """Print a table, a row as it is measured where somebody watches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--every", type=int, default=4099)
    parser.add_argument("--derivatives", action="store_true")
    options = parser.parse_args()
    rows = []
    for name in options.names or (derivatives.FORMULAS if options.derivatives else CASES):
        if options.derivatives:
            rows.append(slopes(name, options.points))
        else:
            rows += [row(name, dtype, options.points, options.every) for dtype in (F32, F64)]
        if sys.stderr.isatty():
            print(" ".join(rows[-1]), file=sys.stderr)
    slope_head = ["function", "arguments", "first: ulps", "at", "second: ulps", "at"]
    head = ["function", "dtype", "sizes of arguments", "how many", "ulps", "at", "bound", "ns/element"]
    print("\n".join(table([slope_head if options.derivatives else head, *rows])))


if __name__ == "__main__":
    main()
