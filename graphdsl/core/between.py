"""What lies between a derivative's targets and what is differentiated: the reverse walk, without computing anything.

The walk goes from the derivative backwards: the part of its trip before it, earlier trips, what stands before the
loop, up to the entry of its function; through completed loops, branches and calls. A value is *live* where a cotangent
may have arrived and some target may lead to it. Each target is *held* by the values that may be it, until the walk
comes to where one of them was made. The walk ends when every target is found, or nothing live is left.

The checker decides by it what is an error, eager mode what to record, graph mode what to build.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from graphdsl.core.instances import Instances
from graphdsl.core.ir import (
    Apply,
    Block,
    Call,
    Convert,
    Custom,
    Derive,
    For,
    Func,
    If,
    Leaf,
    ParamTarget,
    Value,
    While,
)
from graphdsl.core.links import Links, Node, receives
from graphdsl.core.steps import Steps, run
from graphdsl.core.structure import results
from graphdsl.source.record import dataclass

_PATIENCE = 4  # trips of a loop walked one by one before their states are merged
_EFFORT = 20_000  # blocks walked one by one before loops are taken as a whole


@dataclass(slots=True)
class State:
    """At one place of the walk: what is live, and what may hold each target (None: it is found)."""

    live: set[Node]
    held: list[frozenset[Node] | None]

    def copy(self) -> State:
        return State(set(self.live), list(self.held))

    def within(self, other: State) -> bool:
        """Whether walking from `other` also did all that walking from here would do."""
        return self.live <= other.live and self.held == other.held


class Between:
    """The walk of one derivative.

    Afterwards `values` are all values that were live, and `walked` those of them from which the walk went on; `through`
    are the derivatives among what it walked through (maybe this one: its result from an earlier trip), `calls` the
    calls. `holders` are, for each target, the values that may be it.
    """

    def __init__(self, links: Links, derive: Derive, instances: Instances) -> None:
        self.links = links
        self.derive = derive
        self.func = links.func_of(derive)
        self.values: set[Node] = set()
        self.walked: set[Node] = set()
        self.through: dict[Derive, None] = {}
        self.calls: dict[Call, None] = {}
        self.effort = 0
        self.instances = instances
        self.holders = [self._holders(t) for t in derive.targets]
        self.reach = [instances.reach(frozenset(h)) for h in self.holders]
        self._converted = {v for holders in self.holders if _mixed(holders) for v in holders if self._is_converted(v)}
        self._needs: dict[tuple[Func, Value], frozenset[int]] = {}
        self._walk()

    # ---- before the walk: where targets may be, and what they may reach ----

    def _holders(self, target: Value | ParamTarget) -> set[Node]:
        if isinstance(target, ParamTarget):
            return {v for v, d in self.links.defs.items() if isinstance(d.instr, Leaf) and d.instr.param == target.name}
        return _closure([target], lambda v: self.links.origins.get(v, ()))

    def _is_converted(self, node: Node) -> bool:
        """Whether a value may have had another dtype where it was made."""
        if not isinstance(node, Value):
            return False
        found = _closure([node], lambda v: self.links.origins.get(v, ()))
        return any(isinstance(v, Value) and v.type.dtype is not node.type.dtype for v in found)

    def first_held(self) -> list[frozenset[Node] | None]:
        """What holds the targets where the walk begins."""
        return [frozenset([t]) if isinstance(t, Value) else frozenset() for t in self.derive.targets]

    # ---- one place ----

    def wanted(self, node: Node, held: Sequence[Collection[Node] | None]) -> bool:
        """Whether a target that is still looked for may lead to `node`."""
        return any(h is not None and self._leads_to(i, node, h) for i, h in enumerate(held))

    def _leads_to(self, i: int, node: Node, holders: Collection[Node]) -> bool:
        """Whether target `i`, which is one of `holders`, may be `node` or lead to it."""
        if node not in self.reach[i]:
            return False
        if isinstance(self.derive.targets[i], ParamTarget) or not holders:
            return True  # it is held somewhere else
        return any(self.instances.depends(node, h) for h in holders)

    def add(self, node: Node, state: State) -> None:
        """A cotangent arrives at `node`."""
        if self.wanted(node, state.held):
            state.live.add(node)
            self.values.add(node)

    def finished(self, state: State) -> bool:
        """Whether nothing is left to walk for."""
        return not state.live or all(h is None for h in state.held)

    def settled(self, state: State) -> bool:
        """Whether each live value is itself a target, to which nothing earlier can add."""
        return self.finished(state) or all(self.certain(v, state.held) for v in state.live)

    def certain(self, node: Node, held: Sequence[frozenset[Node] | None]) -> bool:
        """Whether `node` is a target, and no other target can lead to it, or turn out to be it.

        Not where it may be a value of another dtype that was converted: its derivative is that of this value.
        """
        if node in self._converted:
            return False
        found = False
        for i, holders in enumerate(held):
            if holders is None:
                continue
            if self.is_target(node, i, holders):
                found = True
            elif self._leads_to(i, node, holders):
                return False
        return found

    def is_target(self, node: Node, i: int, holders: frozenset[Node]) -> bool:
        """Whether nothing but `node` can be target `i` here."""
        target = self.derive.targets[i]
        if isinstance(target, ParamTarget):
            return all(v in self.holders[i] for v in self._roots(node))
        return holders == {node}

    def _roots(self, node: Node) -> list[Node]:
        found = _closure([node], lambda v: self.links.origins.get(v, ()))
        return [v for v in found if not self.links.origins.get(v)]

    def found(self, node: Node, instr: Any, state: State) -> None:
        """`node` is made here: a target that it holds has been found."""
        for i, holders in enumerate(state.held):
            if holders is not None and node in holders:
                rest = holders - {node}
                state.held[i] = rest or None
            elif isinstance(instr, Leaf) and holders is not None and node in state.live:
                target = self.derive.targets[i]
                if isinstance(target, ParamTarget) and target.name == instr.param:
                    state.held[i] = None

    def move(self, state: State, sources: Iterable[Value], targets: Sequence[Value]) -> State:
        """The state across a join: what was at `sources` is now at `targets`."""
        pairs = [(s, t) for s, t in zip(sources, targets, strict=True) if self._concerns(s, state)]
        moved = state.copy()
        gone = {s for s, _ in pairs}
        moved.live -= gone
        for i, h in enumerate(state.held):
            if h is not None:
                moved.held[i] = (h - gone).union(t for s, t in pairs if s in h)
        for s, t in pairs:
            if s in state.live:
                self.walked.add(s)
                self.add(t, moved)
        return moved

    def _concerns(self, node: Node, state: State) -> bool:
        return node in state.live or any(h is not None and node in h for h in state.held)

    def merged(self, one: State, other: State) -> State:
        """Either of two."""
        held = [
            None if a is None and b is None else (a or frozenset()) | (b or frozenset())
            for a, b in zip(one.held, other.held, strict=True)
        ]
        return State(one.live | other.live, held)

    # ---- the walk ----

    def _walk(self) -> None:
        state = State(set(), self.first_held())
        self.add(self.derive.y, state)
        path = self.links.path(self.derive)
        for k, (block, position) in enumerate(path):
            run(self.block(block, position, state))
            if self.settled(state) or k + 1 == len(path):
                return
            owner = self.links.owner[block].instr
            state = run(self._leave(owner, block, state))
            if self.finished(state):
                return

    def block(self, block: Block, position: int, state: State) -> Steps[None]:
        """Back over the instructions before `position`."""
        self.effort += 1
        if self.finished(state):
            return
        for instr in reversed(block.body[:position]):
            outs = results(instr)
            if not any(self._concerns(v, state) for v in outs) and not self.concerns_inside(instr, state):
                continue
            if isinstance(instr, If | While | For | Call):
                yield self._region(instr, state)
            else:
                self.plain(instr, state)
            if len(state.live) <= len(state.held) and self.settled(state):
                state.live.clear()
                return

    def concerns_inside(self, instr: Any, state: State) -> bool:
        """Whether an instruction concerns the walk otherwise than by its results."""
        return self.touches(instr, state)

    def enter(self, call: Call, state: State, inner: State) -> None:
        """What else is live in a function that is walked because a target may be there."""

    def touches(self, instr: Any, state: State) -> bool:
        """Whether a target may be found in a region that is not among its results."""
        return any(h is not None and self._leaf_inside(instr, i) for i, h in enumerate(state.held))

    def _leaf_inside(self, instr: Any, i: int) -> bool:
        if not isinstance(self.derive.targets[i], ParamTarget) or instr not in self.links.first:
            return False
        return any(self.links.inside(v, instr) for v in self.holders[i])

    def plain(self, instr: Any, state: State) -> None:
        """An instruction without regions."""
        concerned = [v for v in results(instr) if self._concerns(v, state)]
        if not concerned:
            return
        if isinstance(instr, Convert):
            moved = self.move(state, (instr.out,), (instr.arg,))
            state.live, state.held = moved.live, moved.held
            return
        live = [v for v in concerned if v in state.live]
        for v in concerned:
            self.found(v, instr, state)
            state.live.discard(v)
        if live:
            self.follow(instr, live, state)

    def follow(self, instr: Any, live: list[Value], state: State) -> None:
        """What an instruction hands on of its results' cotangents."""
        self.walked.update(live)
        match instr:
            case Apply(op=op, args=args):
                for i, arg in enumerate(args):
                    if any(receives(op, i, arg, out) for out in live):
                        self.add(arg, state)
            case Custom(args=args, given=given):
                for source in (*args, *given):
                    if source.type.dtype.is_float:
                        self.add(source, state)
            case Derive(y=y, seed=seed):
                self.through[instr] = None
                self.add(y, state)
                if seed is not None:
                    self.add(seed, state)

    def _region(self, instr: If | While | For | Call, state: State) -> Steps[None]:
        held_inside = any(h is not None and any(v in h for v in instr.outs) for h in state.held)
        if not held_inside and not self.touches(instr, state):
            self.whole(instr, state)
            return
        if self.settled(state):
            state.live.clear()
            return
        match instr:
            case If(then=then, orelse=orelse, outs=outs):
                ends = []
                for branch in (then, orelse):
                    inner = self.move(state, outs, branch.yields)
                    yield self.block(branch, len(branch.body), inner)
                    ends.append(inner)
                after = self.merged(*ends)
            case While(outs=outs, body=body):
                after = yield self._trips(instr, self.move(state, outs, body.yields), outs, state)
            case For(outs=outs, body=body):
                after = yield self._trips(instr, self.move(state, outs, body.yields), outs, state)
            case Call(func=func, args=args, outs=outs):
                self.calls[instr] = None
                inner = self.move(state, outs, func.body.yields)
                self.enter(instr, state, inner)
                yield self.block(func.body, len(func.body.body), inner)
                for p in func.body.params:
                    self.found(p, None, inner)
                after = self.move(inner, func.body.params, args)
        state.live, state.held = after.live, after.held

    def _trips(self, loop: While | For, at_end: State, outs: Sequence[Value], before: State) -> Steps[State]:
        """A completed loop, from its last trip; or without any trip."""
        none = self.move(before, outs, loop.inits)
        first = yield self._earlier(loop, at_end)
        return self.merged(none, self.move(first, _carried(loop), loop.inits))

    def _leave(self, owner: Any, block: Block, state: State) -> Steps[State]:
        """From the start of the block that holds the derivative to where its owner stands."""
        if isinstance(owner, If):
            return state
        params = block.params if isinstance(owner, While) else block.params[1:]
        merged = yield self._earlier(owner, self.move(state, params, owner.body.yields))
        return self.merged(self.move(state, params, owner.inits), self.move(merged, _carried(owner), owner.inits))

    def _earlier(self, loop: While | For, state: State) -> Steps[State]:
        """All earlier trips, from the end of the last: every state there may be at the start of one."""
        params, body = _carried(loop), loop.body
        seen: list[State] = []
        starts = State(set(), [None] * len(state.held))
        while not self.finished(state) and not any(state.within(s) for s in seen):
            if len(seen) >= _PATIENCE or self.effort > _EFFORT:
                for s in seen:
                    state = self.merged(state, s)
                seen = [s for s in seen if s.within(state)] if len(seen) >= 4 * _PATIENCE else seen
            seen.append(state.copy())
            if len(seen) > 8 * _PATIENCE:
                break
            inner = state.copy()
            yield self.block(body, len(body.body), inner)
            if self.settled(inner):
                break
            starts = self.merged(starts, inner)
            state = self.move(inner, params, body.yields)
        return starts

    # ---- regions as a whole, where no target was made ----

    def whole(self, instr: If | While | For | Call, state: State) -> None:
        """A completed region: everything live is followed back to values from outside."""
        live = [v for v in instr.outs if v in state.live]
        state.live.difference_update(live)
        ends = {*live, *self.changed(instr, state)}
        if isinstance(instr, Call):
            self.walked.update(live)
            outer: set[Node] = run(self._through_call(instr, ends))
        else:
            outer = run(self._back(ends, instr, state, set()))
        for v in outer:
            self.add(v, state)

    def changed(self, instr: Any, state: State) -> Iterable[Node]:
        """The live memory that a region or call may have changed."""
        return ()

    def _back(self, start: Collection[Node], region: Any, state: State | None, seen: set[Node]) -> Steps[set[Node]]:
        """Follow values back while they are made in `region` (an instruction, or a function: then its params are outside)
        and are not `seen`, where they are noted; where that led out (a record by itself leads nowhere out)."""
        outer: set[Node] = set()
        todo = [node for node in start if node not in seen]
        seen.update(todo)
        while todo:
            node = todo.pop()
            made = self.links.defs.get(node) if isinstance(node, Value) else None
            if made is not None and isinstance(made.instr, Call):
                sources: Iterable[Node] = yield self._through_call(made.instr, [node])
            else:
                sources = self._sources(node)
            for source in sources:
                if source in seen or not self._leads(source, state):
                    continue
                if isinstance(source, Value) and not self.inside(source, region):
                    if isinstance(node, Value):
                        outer.add(source)
                    continue
                seen.add(source)
                todo.append(source)
        self.values |= seen
        self.walked |= seen
        return outer

    def inside(self, value: Value, region: Any) -> bool:
        """Whether a value that leads to a result of `region` is made there."""
        if isinstance(region, Func):
            return value not in region.body.params
        return self.links.inside(value, region)

    def _leads(self, node: Node, state: State | None) -> bool:
        return self.wanted(node, state.held) if state is not None else any(node in r for r in self.reach)

    def _sources(self, node: Node) -> Iterable[Node]:
        made = self.links.defs.get(node) if isinstance(node, Value) else None
        if made is not None and isinstance(made.instr, Derive):
            self.through[made.instr] = None
        return self.links.sources.get(node, ())

    def _through_call(self, call: Call, live: Iterable[Node]) -> Steps[set[Node]]:
        """The arguments that the live ends of a call depend on."""
        found: set[Node] = set()
        self.calls[call] = None
        for here, end in self.links.ends(call):
            if here in live:
                needed: frozenset[int] = yield self._params_of(call.func, end)
                found.update(call.args[i] for i in needed)
        return found

    def _params_of(self, func: Func, end: Value) -> Steps[frozenset[int]]:
        """The params on which an end of a function depends, where a target may lead to them."""
        key = (func, end)
        if key not in self._needs:
            self._needs[key] = needs = self.links.params_of(func, end)
            outer: set[Node] = yield self._back([end], func, None, set())
            if end in func.body.params:
                outer.add(end)
            self.values.update(outer)
            self.walked.update(outer)
            self._needs[key] = frozenset(i for i in needs if func.body.params[i] in outer)
        return self._needs[key]


def _carried(loop: While | For) -> list[Value]:
    return loop.body.params if isinstance(loop, While) else loop.body.params[1:]


def _mixed(nodes: Iterable[Node]) -> bool:
    """Whether there are values of several dtypes among these."""
    return len({v.type.dtype for v in nodes if isinstance(v, Value)}) > 1


def _closure(start: Iterable[Node], more: Any) -> set[Node]:
    found = set(start)
    todo = list(found)
    while todo:
        for node in more(todo.pop()):
            if node not in found:
                found.add(node)
                todo.append(node)
    return found
