"""Functions that all compiled programs share: buffers, stacks, threads.

They are an object of their own, built once for a CPU and cached, so that no program compiles them again.
"""

from __future__ import annotations

from llvmlite import ir

from graphdsl.native.support import buffers, parts, rows, stacks, station, team, trail
from graphdsl.native.support.words import SUPPORT
from graphdsl.native.target import Target, function

SIGNATURES: dict[str, ir.FunctionType] = {
    **buffers.SIGNATURES,
    **stacks.SIGNATURES,
    **team.SIGNATURES,
    **rows.SIGNATURES,
    **parts.SIGNATURES,
    **station.SIGNATURES,
    **trail.SIGNATURES,
}


def module(target: Target) -> ir.Module:
    """The module that defines them."""
    made = target.module("support")
    functions = {name: function(made, target, name, type) for name, type in SIGNATURES.items()}
    buffers.define(made, target, functions)
    stacks.define(functions)
    team.define(made, target, functions)
    rows.define(made, target, functions)
    parts.define(made, target, functions)
    station.define(target, functions)
    trail.define(functions)
    return made


assert set(SIGNATURES) == set(SUPPORT)
