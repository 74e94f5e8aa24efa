"""`python -m tests.benchmarks [NAME…] [--rounds N] [--peers PYTHON]`: how fast we are beside others, as ratios.

Each side is a process of its own: a library's waiting threads would slow the other. What NAME is part of runs.
"""

from __future__ import annotations

import argparse
import sys

from graphdsl.render.table import table
from tests.benchmarks.contest import Contest, Side

ARTICLE = "samples/article.gdl"
RUN = ("-m", "graphdsl", "run", ARTICLE)
IMPORT = Side("process", ("-c", "import numpy"))

CONTESTS = [
    Contest("counter against Numba", Side("program", ("counter", "graph")), Side("numba_counter", peer=True), 1.2),
    Contest(
        "scalars against PyTorch",
        Side("program", ("scalars", "eager")),
        Side("torch_loop", ("scalars",), peer=True),
        0.5,
    ),
    Contest(
        "vectors of 16 against PyTorch",
        Side("program", ("vectors", "eager")),
        Side("torch_loop", ("vectors",), peer=True),
        0.5,
    ),
    *(
        Contest(
            f"assignment to a million elements against a hundred, {mode}",
            Side("program", ("assignments-many", mode)),
            Side("program", ("assignments-few", mode)),
            20.0,
        )
        for mode in ("eager", "graph")
    ),
    *(
        Contest(
            f"{'×'.join(sizes)} f32 against NumPy, {threads} thread{'s'[: threads - 1]}",
            Side("product", sizes, threads),
            Side("numpy_product", sizes, threads),
            1.0,
        )
        for sizes in (("128", "64", "128"), ("512", "512", "512"))
        for threads in (1, 2)
    ),
    Contest("start over `import numpy`", Side("process", RUN), IMPORT, most_seconds=0.1),
    Contest(
        "start of graph mode over eager", Side("process", (*RUN, "--mode", "graph")), Side("process", RUN), None, 0.08
    ),
]


def main() -> None:
    """Play the contests, and print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", metavar="NAME")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--peers", default=sys.executable, help="an interpreter that has numba and torch")
    chosen = options.parse_args()
    rows = [["", "ours", "theirs", "ratio", "difference", "at most"]]
    for contest in CONTESTS:
        if chosen.names and not any(name in contest.name for name in chosen.names):
            continue
        try:
            rows.append(contest.play(chosen.rounds, chosen.peers).row())
        except RuntimeError as error:
            rows.append([contest.name, str(error), "", "", "", ""])
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
