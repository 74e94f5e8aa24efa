"""The passes over a graph, in order, each by name, so that each can be left out.

A pass changes a graph in place. It changes no bit of what the program computes, and no effect: what can fail fails as
before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from graphdsl.core.ir import Func
from graphdsl.graph.build import Graph
from graphdsl.graph.passes.common import merge_common
from graphdsl.graph.passes.dead import drop_dead
from graphdsl.graph.passes.fold import fold_constants
from graphdsl.graph.passes.fuse import fuse
from graphdsl.graph.passes.saved import save_less
from graphdsl.graph.passes.simplify import simplify

Pass = Callable[[Func], None]

PASSES: dict[str, Pass] = {
    "fold": fold_constants,
    "simplify": simplify,
    "common": merge_common,
    "saved": save_less,
    "dead": drop_dead,
    "fuse": fuse,
}


def optimise(graph: Graph, without: Collection[str] = (), after: Callable[[str, Graph], None] | None = None) -> Graph:
    """Run the passes, but for those named in `without`. `after` is told when each is done."""
    for name, run in PASSES.items():
        if name not in without:
            run(graph.main)
            if after is not None:
                after(name, graph)
    return graph
