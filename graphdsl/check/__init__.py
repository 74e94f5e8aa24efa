"""From a tree to the typed core: names, types, joins, calls. `check` is the way in."""

from __future__ import annotations

from graphdsl.check import (  # registers what checks each kind of node
    assignment,
    attributes,
    calls,
    declarations,
    derivatives,
    expressions,
    files,
    forms,
    indexing,
    jacobians,
    lists,
    loops,
    operators,
    printing,
    ranges,
    results,
    statements,
)
from graphdsl.check.context import Probe, Request
from graphdsl.check.program import Checked, check, recomputing

__all__ = ["Checked", "Probe", "Request", "check", "recomputing"]
