"""Numbers for the places of a graph that native code speaks of: what can fail, what calls back, what is fed.

They follow from the graph alone, so code from the cache finds its places again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from graphdsl.core import ir
from graphdsl.core.ir import Func
from graphdsl.core.structure import walk
from graphdsl.native.program.usage import Instr
from graphdsl.ops import faults
from graphdsl.source.diagnostic import FaultKind

_WIDTH = 64  # faults of one instruction
_COMMON = tuple(kind for kind in vars(faults).values() if isinstance(kind, FaultKind))  # that ops do not list as theirs
_OWN = _WIDTH - 1  # no fault of an op: memory, depth, a callback


@dataclass
class Sites:
    """Every instruction of a graph, numbered; `feeds` are the values that come from outside, each name once."""

    instrs: list[Instr] = field(default_factory=list)
    numbers: dict[Instr, int] = field(default_factory=dict)
    funcs: list[Func] = field(default_factory=list)
    feeds: list[ir.Feed] = field(default_factory=list)

    def site(self, instr: Instr, kind: FaultKind | None = None) -> int:
        """The number of a place, and of a way to fail there."""
        which = _OWN
        if kind is not None:
            which = _kinds(instr).index(kind)
        return self.numbers[instr] * _WIDTH + which

    def place(self, site: int) -> tuple[Instr, FaultKind | None]:
        """What `site` numbered."""
        number, which = divmod(site, _WIDTH)
        instr = self.instrs[number]
        return instr, None if which == _OWN else _kinds(instr)[which]


def _kinds(instr: Instr) -> tuple[FaultKind, ...]:
    own = instr.op.faults if isinstance(instr, ir.Apply) else ()
    assert len(own) + len(_COMMON) < _OWN
    return (*own, *_COMMON)


def sites(main: Func) -> Sites:
    """Numbers the instructions of `main` and of all that it calls."""
    found = Sites(funcs=[main])
    known = {main}
    for func in found.funcs:  # grows as it runs
        for instr in walk(func.body):
            found.numbers[instr] = len(found.instrs)
            found.instrs.append(instr)
            if isinstance(instr, ir.Call) and instr.func not in known:
                known.add(instr.func)
                found.funcs.append(instr.func)
            elif isinstance(instr, ir.Feed):
                found.feeds.append(instr)
    return found
