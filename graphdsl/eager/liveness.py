"""Where each value of a function is last used, and which Python name it gets.

One walk backwards over the core. From it follow: where a local can be dropped (so that history and arrays are freed
as soon as nothing can need them, and `x[i] = v` finds its array unshared), which instructions compute nothing that is
needed, which joins need no node of their own, and which values can share a name so that a loop moves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphdsl.core import ir
from graphdsl.core.ir import Block, Instr, Value
from graphdsl.core.outliving import outliving
from graphdsl.core.steps import Steps, run
from graphdsl.core.structure import counts, operands, regions, results, walk
from graphdsl.ops.op import Effect, Pointwise, Scatter
from graphdsl.source.record import dataclass, field


@dataclass
class Plan:
    """What the walk found. Names are numbers: `v7` holds the value, `n7` its node."""

    names: dict[Value, int] = field(default_factory=dict)
    dies_after: dict[Instr, list[Value]] = field(default_factory=dict)
    dies_on_entry: dict[Block, list[Value]] = field(default_factory=dict)
    dies_within: dict[Instr, set[Value]] = field(default_factory=dict)  # outer values whose last use is inside
    unused: set[Instr] = field(default_factory=set)
    idle: set[Value] = field(default_factory=set)  # outs of branches that nobody reads
    # positions of yields (of a block) and inits (of an instruction) that are not the last use of what they pass on
    shared: dict[Block | Instr, set[int]] = field(default_factory=dict)
    apart: set[ir.Apply] = field(default_factory=set)  # indices that give copies
    count: int = 0

    def fresh(self) -> int:
        self.count += 1
        return self.count


def analyse(func: ir.Func, keep: Iterable[Value] = ()) -> Plan:
    """The plan for one function; `keep` are values read after its end."""
    state = _Walk()
    state.live_at_end(keep)
    run(state.function(func.body))
    state.plan.apart = outliving(func.body, _saves)
    return state.plan


def _saves(instr: Instr) -> bool:
    """Whether history may keep what an op reads."""
    return (
        isinstance(instr, ir.Apply) and instr.outs[0].tracked and not isinstance(instr.op.compute, Pointwise | Scatter)
    )


class _Walk:
    """The state of the walk: what is live at the place reached, and who holds each shared name there."""

    def __init__(self) -> None:
        self.plan = Plan()
        self.live: set[Value] = set()
        self.holder: dict[int, Value] = {}
        self.came_alive: list[Value] = []  # a log, so that a branch can be undone without copying `live`

    def live_at_end(self, keep: Iterable[Value]) -> None:
        for value in keep:
            self.use(value)

    def function(self, block: Block) -> Steps[None]:
        self._yields(block, wanted=None, inner=set())
        yield self.body(block)
        dead = []
        for p in block.params:
            if p not in self.plan.names:
                self.plan.names[p] = self.plan.fresh()
            if p not in self.live:
                dead.append(p)
        self.plan.dies_on_entry.setdefault(block, []).extend(dead)

    # ---- one value ----

    def use(self, value: Value) -> bool:
        """Mark `value` as needed here; whether this is its last use."""
        if value in self.live:
            return False
        self.live.add(value)
        self.came_alive.append(value)
        names = self.plan.names
        if value not in names:
            names[value] = self.plan.fresh()
        holder = self.holder.get(names[value])
        if holder is not None and holder is not value and holder in self.live:
            names[holder] = self.plan.fresh()  # it had only hoped to share the name
            self.holder[names[holder]] = holder
        self.holder[names[value]] = value
        return True

    def define(self, values: Iterable[Value]) -> list[Value]:
        """Go back over the making of `values`; those that nobody uses."""
        idle = []
        for value in values:
            if value in self.live:
                self.live.remove(value)
                self._release(value)
            else:
                idle.append(value)
                self.plan.names.setdefault(value, self.plan.fresh())
        return idle

    def _release(self, value: Value) -> None:
        name = self.plan.names[value]
        if self.holder.get(name) is value:
            del self.holder[name]

    def _hope(self, value: Value, name: int) -> None:
        """`value` would like `name`: given if it has none yet and nothing live here has it."""
        if value not in self.plan.names and self.holder.get(name) is None:
            self.plan.names[value] = name

    def _yields(
        self, block: Block, wanted: list[int] | None, inner: set[Value], needed: set[int] | None = None
    ) -> None:
        """Use what a block hands on (only `needed` positions), the last first; `inner` may take the `wanted` names."""
        shared = set()
        for i in range(len(block.yields) - 1, -1, -1):
            if needed is not None and i not in needed:
                continue
            value = block.yields[i]
            if wanted is not None and value in inner:
                self._hope(value, wanted[i])
            if not self.use(value):
                shared.add(i)
        self.plan.shared[block] = shared

    def _sorted(self, values: set[Value]) -> list[Value]:
        return sorted(values, key=self.plan.names.__getitem__)

    # ---- blocks and instructions ----

    def body(self, block: Block) -> Steps[None]:
        for instr in reversed(block.body):
            match instr:
                case ir.If():
                    yield self.branch(instr)
                case ir.While() | ir.For():
                    yield self.loop(instr)
                case _:
                    self.plain(instr)

    def plain(self, instr: Instr) -> None:
        outs = results(instr)
        if not self._has_effect(instr) and not any(v in self.live for v in outs):
            self.plan.unused.add(instr)
            self.define(outs)
            return
        dead = self.define(outs)
        before = operands(instr)
        dead.extend(v for v in reversed(before) if self.use(v))
        if dead:
            self.plan.dies_after[instr] = dead

    def _has_effect(self, instr: Instr) -> bool:
        match instr:
            case ir.Apply(op=op, fails=fails):
                return fails or op.effect is not Effect.NONE
            case ir.Derive(fails=fails):
                return fails
            case ir.Const() | ir.Convert() | ir.Leaf() | ir.Undef() | ir.Feed() | ir.Custom():
                return False
            case _:
                return True

    def branch(self, instr: ir.If) -> Steps[None]:
        needed = {i for i, v in enumerate(instr.outs) if v in self.live}
        if not needed and not instr.then.body and not instr.orelse.body:
            self.plan.unused.add(instr)
        self.plan.idle.update(self.define(instr.outs))
        wanted = [self.plan.names[v] for v in instr.outs]
        mark = len(self.came_alive)
        grown: list[set[Value]] = []
        for block in (instr.then, instr.orelse):
            self._yields(block, wanted, _made_in(block), needed)
            yield self.body(block)
            grown.append({v for v in self.came_alive[mark:] if v in self.live})
            for v in grown[-1]:
                self.live.remove(v)
                self._release(v)
            del self.came_alive[mark:]
        then, orelse = grown
        for v in self._sorted(then | orelse):
            self.use(v)
        self.plan.dies_on_entry[instr.then] = self._sorted(orelse - then)
        self.plan.dies_on_entry[instr.orelse] = self._sorted(then - orelse)
        self.plan.dies_within[instr] = then | orelse
        if self.use(instr.cond):
            self.plan.dies_after[instr] = [instr.cond]

    def loop(self, instr: ir.While | ir.For) -> Steps[None]:
        inner = regions(instr)
        around = [v for v in (*_free(inner), *counts(instr)) if self.use(v)]
        names = self.plan.names
        idle = self.define(instr.outs)
        slots = [names[v] for v in instr.outs]
        carried = instr.body.params
        if isinstance(instr, ir.For):
            names[carried[0]] = self.plan.fresh()  # shared with nothing: a fault reads it
            carried = carried[1:]
        for p, slot in zip(carried, slots, strict=True):
            names[p] = slot
        self._yields(instr.body, slots, _made_in(instr.body))
        yield self.body(instr.body)
        self._enter(instr.body)
        if isinstance(instr, ir.While):
            yield self.condition(instr, slots)
        dead = [*around, *idle]
        shared = set()
        for i in range(len(instr.inits) - 1, -1, -1):
            self._hope(instr.inits[i], slots[i])
            if not self.use(instr.inits[i]):
                shared.add(i)
        self.plan.shared[instr] = shared
        if dead:
            self.plan.dies_after[instr] = dead

    def condition(self, instr: ir.While, slots: list[int]) -> Steps[None]:
        """The condition's params have the body's names and die in the body or as outs, never here."""
        block = instr.cond
        for p, slot in zip(block.params, slots, strict=True):
            self.plan.names[p] = slot
            self.use(p)
        self._yields(block, None, set())
        yield self.body(block)
        self._enter(block)
        self.plan.dies_on_entry[block] = []

    def _enter(self, block: Block) -> None:
        self.plan.dies_on_entry[block] = self.define(block.params)


def may_fail(loop: ir.While | ir.For) -> bool:
    """Whether anything inside can fail: what only reckons with scalars, and has no effect, cannot."""
    return any(_may_fail(instr) for region in regions(loop) for instr in walk(region))


def _may_fail(instr: Instr) -> bool:
    match instr:
        case ir.Apply(op=op, outs=outs, fails=fails):
            return fails or op.effect is not Effect.NONE or any(out.type.rank for out in outs)
        case _:
            return isinstance(instr, ir.Call | ir.Derive | ir.Print | ir.Fail | ir.Save | ir.NanCheck)


def _made_in(block: Block) -> set[Value]:
    return {v for instr in block.body for v in results(instr)}


def _free(inside: tuple[Block, ...]) -> list[Value]:
    """Values from outside that are read somewhere in the regions, each once."""
    bound: set[Value] = set()
    read: dict[Value, None] = {}
    stack = list(inside)
    while stack:
        block = stack.pop()
        bound.update(block.params)
        read.update(dict.fromkeys(block.yields))
        for instr in block.body:
            bound.update(results(instr))
            read.update(dict.fromkeys(operands(instr)))
            stack.extend(regions(instr))
    return [v for v in read if v not in bound]
