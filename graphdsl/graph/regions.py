"""Reversing regions: a branch becomes a branch, a loop a loop that goes from its last trip to its first.

Running sums of outer values pass through: a branch gives them back, a loop carries them. So do flags for targets that
may be found inside, and what was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from graphdsl.core.clone import free_values
from graphdsl.core.ir import Block, For, If, ParamTarget, Value, While
from graphdsl.core.steps import Steps
from graphdsl.core.structure import regions, results
from graphdsl.graph.frames import Frame
from graphdsl.graph.saving import PLACE
from graphdsl.graph.walking import Flag, State, as_value, both, either, negated
from graphdsl.ops.types import BOOL, I64, Dim, Size, Type
from graphdsl.source.record import dataclass, field

if TYPE_CHECKING:
    from graphdsl.graph.walk import Walk


def _float(value: Value) -> bool:
    return value.type.dtype.is_float


def move_back(walk: Walk, sources: Sequence[Value], targets: Sequence[Value], state: State) -> None:
    """Across a join: sums and flags of `sources` go to `targets`, the last first."""
    pairs = list(zip(sources, targets, strict=True))
    sums = {s: state.sums.pop(s) for s, _ in pairs if s in state.sums}
    flags = [(h, {s: h.pop(s) for s, _ in pairs if h is not None and s in h}) for h in state.held]
    for source, target in pairs:
        for h, gone in flags:
            if h is not None and source in gone:
                h[target] = either(walk.emit, gone[source], h.get(target, False))
    for source, target in reversed(pairs):
        if source in sums:
            walk.pass_on(target, sums[source], state)


# ---- branches -------------------------------------------------------------------------------


def branches(walk: Walk, instr: If, state: State) -> Steps[None]:
    """A completed `if`."""
    cond = walk.frames.value(instr.cond)
    outs = instr.outs
    ends: list[tuple[Block, State]] = []
    for branch in (instr.then, instr.orelse):
        code, inner = Block(), state.copy()
        frame = Frame(branch, at=lambda: _place_of(walk, instr))
        hidden = walk.frames.enter(frame)
        with walk.into(code):
            walk.begin(branch, len(branch.body), inner)
            move_back(walk, outs, branch.yields[: len(outs)], inner)
            yield walk.block(branch, len(branch.body), inner)
        walk.frames.leave(frame, hidden)
        code.body[:0] = frame.head
        ends.append((code, inner))
    _merge(walk, instr, cond, ends, state)


def _place_of(walk: Walk, instr: If) -> Value:
    """The place of the entry of the branch that was taken."""
    return walk.frames.value(walk.saving.places[instr])


@dataclass
class _Joined:
    """Values that two branches give back, and who takes them."""

    then: list[Value] = field(default_factory=list)
    orelse: list[Value] = field(default_factory=list)
    outs: list[Value] = field(default_factory=list)

    def add(self, then: Value, orelse: Value, type: Type) -> Value:
        self.then.append(then)
        self.orelse.append(orelse)
        self.outs.append(Value(type))
        return self.outs[-1]


def _merge(walk: Walk, instr: If, cond: Value, ends: list[tuple[Block, State]], state: State) -> None:
    (then_code, then), (else_code, orelse) = ends
    joined = _Joined()
    sums: dict[Value, Value | None] = {}
    for v in dict.fromkeys((*then.sums, *orelse.sums)):
        if walk.links.inside(v, instr):
            continue  # the walk of the branch ended before it came to where that is made
        a, b = then.sums.get(v), orelse.sums.get(v)
        if not _float(v) or a is b:
            sums[v] = a
            continue
        given = []
        for code, total in ((then_code, a), (else_code, b)):
            with walk.into(code):
                given.append(walk.zeros(v) if total is None else total)
        sums[v] = joined.add(given[0], given[1], Type(v.type.dtype, v.type.shape))
    _merge_targets(walk, ends, joined, state)
    state.sums = sums
    if then_code.body or else_code.body or joined.outs:
        then_code.yields, else_code.yields = joined.then, joined.orelse
        walk.write(If(instr.span, cond, then_code, else_code, tuple(joined.outs)))


def _merge_targets(walk: Walk, ends: list[tuple[Block, State]], joined: _Joined, state: State) -> None:
    (then_code, then), (else_code, orelse) = ends

    def flag(a: Flag, b: Flag) -> Flag:
        if a is b:
            return a
        with walk.into(then_code):
            x = as_value(walk.emit, a)
        with walk.into(else_code):
            y = as_value(walk.emit, b)
        return joined.add(x, y, Type(BOOL))

    for i in range(len(state.held)):
        a, b = then.held[i], orelse.held[i]
        same = then.found[i] is orelse.found[i]
        state.found[i] = then.found[i] if same else joined.add(then.found[i], orelse.found[i], then.found[i].type)
        state.done[i] = flag(then.done[i], orelse.done[i])
        if a is None and b is None:
            state.held[i] = None
        else:
            keys = dict.fromkeys((*(a or ()), *(b or ())))
            state.held[i] = {v: flag((a or {}).get(v, False), (b or {}).get(v, False)) for v in keys}


# ---- loops ----------------------------------------------------------------------------------


def completed(walk: Walk, loop: While | For, state: State) -> Steps[None]:
    """A loop before the derivative: all its trips."""
    count = walk.frames.value(loop.count if isinstance(loop, For) else walk.saving.count(loop, None))

    def place() -> Value:
        return walk.frames.value(walk.saving.places[loop])

    yield _Trips(walk, loop, loop.outs, count, place, state).run()


def unfinished(walk: Walk, loop: While | For, block: Block, state: State) -> Steps[None]:
    """A loop around the derivative: the trips before this one. `block` is its region that holds the derivative."""
    params = block.params if isinstance(loop, While) else block.params[1:]
    count = block.params[0] if isinstance(loop, For) else walk.saving.count(loop, block)

    def place() -> Value:
        return walk.saving.place_param(loop, block)

    yield _Trips(walk, loop, params, count, place, state).run()


def own_sizes(loop: While | For, code: Block) -> None:
    """Sizes that a trip makes are others in each trip, and where its reversing code stands, those of another trip (or
    the last one's) may be known under the same name: this code gets sizes of its own.
    """
    given = {d for v in (*loop.inits, *free_values(loop.body)) for d in v.type.shape}
    mine: dict[Dim, Size] = {}
    for value in _values(loop.body):
        for d in value.type.shape:
            if isinstance(d, Size) and d not in given and d not in mine:
                mine[d] = d.apart()
    if mine:
        for value in _values(code):
            value.type = value.type.with_sizes(lambda d: mine.get(d, d))


def _values(block: Block) -> Iterator[Value]:
    """What a block and those inside it make."""
    todo = [block]
    while todo:
        inner = todo.pop()
        yield from inner.params
        for instr in inner.body:
            yield from results(instr)
            todo.extend(regions(instr))


@dataclass
class _Carried:
    """What the reverse loop carries: where it comes from, and its param, what it becomes, its result."""

    init: Value
    param: Value
    result: Value
    following: Value | None = None


class _Trips:
    """One reverse loop. `bound` are the values at the end of the last trip to be reversed."""

    def __init__(self, walk: Walk, loop: While | For, bound: Sequence[Value], count: Value, place: Any, state: State):
        self.walk = walk
        self.loop = loop
        self.params = tuple(loop.body.params if isinstance(loop, While) else loop.body.params[1:])
        self.bound = tuple(bound[: len(self.params)])
        self.count = count
        self.place = place
        self.state = state
        self.code = Block()
        self.carried: list[_Carried] = []
        self.early = False  # whether the loop may end before it comes to the first trip

    def run(self) -> Steps[None]:
        walk, state, loop = self.walk, self.state, self.loop
        n = len(self.bound)
        inits, yields = loop.inits[:n], loop.body.yields[:n]
        wanted = walk.between.values
        live = [j for j in range(n) if self.bound[j] in state.sums or self.params[j] in wanted]
        sums = {j: self.carry_sum(self.bound[j], self.at_end(j), self.at_end(j)) for j in live if _float(self.bound[j])}
        marks = [j for j in live if not _float(self.bound[j])]
        unfound = [i for i, h in enumerate(state.held) if h is not None]
        concerned = [i for i in unfound if self.concerns_target(i)]
        self.targets = unfound if concerned and walk.settles else concerned
        holders = {v for i in self.targets for v in walk.between.holders[i]}
        summed = [v for v in self.outer_values() if _float(v) and (v in wanted or v in holders)]
        outer = {v: self.carry_sum(v, v.type, v.type) for v in summed}
        flags = {i: self.carry_flags(i) for i in self.targets}
        found = {i: self.carry(state.found[i]) for i in self.targets}
        done = {i: self.carry(as_value(walk.emit, state.done[i])) for i in self.targets}

        inner = self.at_trip_end(outer, flags, found, done)
        at_end = {j: (sums[j].param if j in sums else None) for j in (*sums, *marks)}
        current = Value(PLACE, "at")
        frame = Frame(loop.body, at=current)
        hidden = walk.frames.enter(frame)
        settles, walk.settles = walk.settles, walk.settles and bool(self.targets)
        with walk.into(self.code):
            walk.begin(loop.body, len(loop.body.body), inner)
            self.to_yields(inner, flags, yields)
            for j in reversed(range(n)):
                if j in at_end:
                    walk.pass_on(yields[j], at_end[j], inner)
            yield walk.block(loop.body, len(loop.body.body), inner)
            once = bool(self.targets) and walk.settle(inner)
            for j, c in sums.items():
                c.following = walk.total(self.params[j], inner)
            for v, c in outer.items():
                c.following = walk.total(v, inner)
            self.end_targets(inner, flags, found, done)
            self.end_place(frame, current)
        walk.settles = settles
        walk.frames.leave(frame, hidden)
        self.code.body[:0] = frame.head
        self.write(once, done)

        for v in self.bound:
            state.sums.pop(v, None)
        state.sums.update((v, c.result) for v, c in outer.items())
        state.sums.update((v, None) for v in self.marked(inner) if v not in state.sums)
        self.after_targets(state, flags, found, done, inits)
        for j in reversed(range(n)):
            if j in sums:
                walk.pass_on(inits[j], self.at_start(sums[j], inits[j], state), state)
            elif j in marks:
                walk.pass_on(inits[j], None, state)

    # ---- what is carried ----

    def carry(self, init: Value) -> _Carried:
        return self.carry_as(init, init.type, init.type)

    def carry_as(self, init: Value, within: Type, after: Type) -> _Carried:
        made = _Carried(init, Value(within), Value(after))
        self.carried.append(made)
        return made

    def at_end(self, j: int) -> Type:
        """What a carried value is when a trip ends, or the loop. A size that a trip changes is another each time that
        this is asked: were it shared, a kernel would take a sum of the one size for one of the other.
        """
        param, following = self.params[j].type, self.loop.body.yields[j].type
        dims = zip(param.shape, following.shape, strict=True)
        return Type(
            param.dtype, tuple(a if a == b else Size(None, a.why) if isinstance(a, Size) else a for a, b in dims)
        )

    def carry_sum(self, value: Value, within: Type, after: Type) -> _Carried:
        """The running sum for a value at the end of a trip, or from outside: what it is in each trip, and at last."""
        types = (Type(t.dtype, t.shape) for t in (within, after))
        return self.carry_as(self.walk.total(value, self.state), *types)

    def outer_values(self) -> list[Value]:
        return free_values(self.loop.body)

    def concerns_target(self, i: int) -> bool:
        held, target = self.state.held[i] or {}, self.walk.derive.targets[i]
        if isinstance(target, ParamTarget):
            return any(self.walk.links.inside(v, self.loop) for v in self.walk.between.holders[i])
        return any(v in held for v in self.bound)

    def at_trip_end(self, outer: dict[Value, _Carried], flags: Any, found: Any, done: Any) -> State:
        """The state at the end of a trip, but for what the trip yields."""
        inner = self.state.copy()
        inner.sums = {v: total for v, total in self.state.sums.items() if v not in self.bound}
        inner.sums.update((v, c.param) for v, c in outer.items())
        # a later trip may have taken from a shadow what this one put there
        wanted, shadows = self.walk.between.values, self.walk.links.shadows
        inner.sums.update((v, None) for v in self.outer_values() if v in shadows and v in wanted)
        for i in self.targets:
            held = {v: f for v, f in (self.state.held[i] or {}).items() if v not in self.bound}
            inner.held[i] = held | {v: c.param for v, c in flags[i].items() if v not in self.bound}
            inner.found[i], inner.done[i] = found[i].param, done[i].param
        return inner

    def carry_flags(self, i: int) -> dict[Value, _Carried]:
        """For each value at a trip's end, and from outside, that may be target `i`: whether it is."""
        if isinstance(self.walk.derive.targets[i], ParamTarget):
            return {}
        held = self.state.held[i] or {}
        holders = self.walk.between.holders[i]
        there = [b for b, p in zip(self.bound, self.params, strict=True) if b in held or p in holders]
        around = [v for v in self.outer_values() if v in holders or v in held]
        return {v: self.carry(as_value(self.walk.emit, held.get(v, False))) for v in dict.fromkeys((*there, *around))}

    def to_yields(self, inner: State, flags: dict[int, dict[Value, _Carried]], yields: Sequence[Value]) -> None:
        """What may be a target at the end of a trip is what the trip yields."""
        for i in self.targets:
            held = inner.held[i]
            for bound, following in zip(self.bound, yields, strict=True):
                if bound in flags[i] and held is not None:
                    held[following] = either(self.walk.emit, held.get(following, False), flags[i][bound].param)

    def marked(self, inner: State) -> list[Value]:
        """Places and shadows from outside that the trips lead on to."""
        return [v for v, total in inner.sums.items() if total is None and not self.walk.links.inside(v, self.loop)]

    # ---- the ends ----

    def end_targets(self, inner: State, flags: Any, found: Any, done: Any) -> None:
        emit = self.walk.emit
        for i in self.targets:
            held = inner.held[i] or {}
            at_start = dict(zip(self.bound, self.params, strict=True))
            for v, c in flags[i].items():
                c.following = as_value(emit, held.get(at_start.get(v, v), False))
            found[i].following = inner.found[i]
            done[i].following = as_value(emit, inner.done[i])

    def end_place(self, frame: Frame, current: Value) -> None:
        """Carry the place of the entry, if anything was read from it."""
        entry = self.walk.saving.entries.get(self.loop.body)
        used = set(free_values(self.code, Block(body=frame.head)))
        if entry is None or current not in used:
            return
        last = self.params_of_place()
        before = self.walk.frames.value(last)
        self.carried.append(_Carried(self.place(), current, Value(PLACE), before))

    def params_of_place(self) -> Value:
        """The param of the loop that is the place of the entry of the trip before."""
        return self.walk.saving.place_param(self.loop, self.loop.body)

    def after_targets(self, state: State, flags: Any, found: Any, done: Any, inits: Sequence[Value]) -> None:
        emit = self.walk.emit
        at_start = dict(zip(self.bound, inits, strict=True))
        for i in self.targets:
            held: dict[Value, Flag] = {v: f for v, f in (state.held[i] or {}).items() if v not in flags[i]}
            for v, c in flags[i].items():
                to = at_start.get(v, v)
                held[to] = either(emit, c.result, held.get(to, False))
            state.held[i] = held
            state.found[i], state.done[i] = found[i].result, done[i].result

    def at_start(self, carried: _Carried, init: Value, state: State) -> Value:
        """The sum for a carried value where the loop begins. If the loop ended before its first trip, nothing from here
        on is wanted; but what follows is computed all the same, and needs the size that it is written for.
        """
        walk = self.walk
        if not self.early or carried.result.type.shape == init.type.shape:
            return carried.result
        every: Flag = True
        for i in self.targets:
            every = both(walk.emit, every, state.done[i])
        out = Value(Type(init.type.dtype, init.type.shape))
        ended, whole = Block(), Block()
        with walk.into(ended):
            ended.yields = [walk.zeros(init)]
        with walk.into(whole):
            whole.yields = [walk.as_type(carried.result, out.type)]
        walk.write(If(self.loop.span, as_value(walk.emit, every), ended, whole, (out,)))
        return out

    def write(self, once: bool, done: dict[int, _Carried]) -> None:
        """The loop itself: counted, or until every target is found."""
        walk, emit = self.walk, self.walk.emit
        inits = tuple(c.init for c in self.carried)
        results = tuple(c.result for c in self.carried)
        self.code.params = [c.param for c in self.carried]
        self.code.yields = [c.following for c in self.carried if c.following is not None]
        assert len(self.code.yields) == len(self.carried)
        if not self.code.body and all(c.following is c.param for c in self.carried):
            for c in self.carried:
                c.result = c.init
            return
        own_sizes(self.loop, self.code)
        self.early = once or self.stops()
        if once or not self.stops():
            count = self.count
            if once:
                count = emit.minimum(self.count, emit.const(1, I64))
            self.code.params.insert(0, Value(PLACE))
            walk.write(For(self.loop.span, count, inits, self.code, results, called=None))
        else:
            self.until_found(inits, results, done)

    def stops(self) -> bool:
        """Whether the loop may end before its first trip is reached."""
        return bool(self.targets) and all(h is None or i in self.targets for i, h in enumerate(self.state.held))

    def until_found(self, inits: tuple[Value, ...], results: tuple[Value, ...], done: dict[int, _Carried]) -> None:
        walk, emit = self.walk, self.walk.emit
        left = Value(PLACE, "left")
        cond = Block([Value(PLACE), *(Value(c.param.type) for c in self.carried)])
        position = {c.param: k for k, c in enumerate(self.carried)}
        with walk.into(cond):
            more: Flag = emit.gt(cond.params[0], emit.const(0, I64))
            every: Flag = True
            for c in done.values():
                every = both(emit, every, cond.params[1 + position[c.param]])
            cond.yields = [as_value(emit, both(emit, more, negated(emit, every)))]
        with walk.into(self.code):
            following = emit.sub(left, emit.const(1, I64))
        self.code.params.insert(0, left)
        self.code.yields.insert(0, following)
        outs = (Value(PLACE), *results)
        walk.write(While(self.loop.span, (self.count, *inits), cond, self.code, outs, called=None))
