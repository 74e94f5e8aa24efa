"""Reversing calls: a function becomes one that goes back over its body.

It is made for one derivative, and for what is live at the call. It gets the tape, the place of what the call saved, the
derivative's shadow, the cotangents of the live results, and for each target what is known of it; it gives the sums of
the params, and what was found. Both are known before its body is, so it may call itself.
"""

from __future__ import annotations

from graphdsl.core.ir import Block, Call, Func, Value
from graphdsl.core.steps import run
from graphdsl.graph.frames import Frame
from graphdsl.graph.saving import PLACE, Tape
from graphdsl.graph.walk import Walk
from graphdsl.graph.walking import Flag, State, as_value, either
from graphdsl.ops.types import BOOL, Size, Type
from graphdsl.source.record import dataclass


@dataclass(frozen=True)
class Key:
    """What is live at a call: the results that have a cotangent, and the shadows among the arguments that something was
    taken from; and for each target, the results that may be it (none: it is looked for elsewhere; None: it is found)."""

    live: tuple[int, ...]
    shadows: tuple[int, ...]
    held: tuple[tuple[int, ...] | None, ...]

    @property
    def targets(self) -> list[int]:
        """The targets that may be found in the call."""
        return [i for i, h in enumerate(self.held) if h]


class Functions:
    """The reversing functions of one derivative. They are written one after the other, when the walk itself is done."""

    def __init__(self, top: Walk) -> None:
        self.top = top
        self.made: dict[tuple[Func, Key], Func] = {}
        self.waiting: list[Reversing] = []
        self.shadowed = any(isinstance(n, tuple) for n in top.between.values)

    def reversed(self, func: Func, key: Key) -> Func:
        """The function that reverses `func`."""
        if (func, key) not in self.made:
            name = func.name.rstrip("'")
            made = self.made[func, key] = Func(f"{name}~", Block(), func.span, derived=True)
            self.waiting.append(Reversing(self, func, key, made))
        return self.made[func, key]

    def write(self) -> None:
        """Write the bodies of all that are called."""
        while self.waiting:
            self.waiting.pop().build()

    def summed(self, func: Func) -> list[int]:
        """The params whose sums a reversing function gives."""
        values = self.top.between.values
        return [i for i, p in enumerate(func.body.params) if p.type.dtype.is_float and p in values]


def here(inside: Type, outside: Type) -> Type:
    """A type of a function where that is called: its sizes are those of one call, and stand for others in the next."""
    dims = zip(inside.shape, outside.shape, strict=True)
    return Type(inside.dtype, tuple(a if isinstance(a, int) else b for a, b in dims))


class Calling(Walk):
    """A walk that comes through calls."""

    functions: Functions

    def call(self, call: Call, state: State) -> None:
        results = call.outs[:-1]
        self._same_tapes(call)
        live = tuple(i for i, v in enumerate(results) if v in state.sums and v.type.dtype.is_float)
        shadows = [i for i, p in enumerate(call.func.body.params) if p in self.links.shadows]
        taken = tuple(i for i in shadows if call.args[i] in state.sums)
        key = Key(live, taken, tuple(_held(results, h) for h in state.held))
        made = self.functions.reversed(call.func, key)
        given = [self.tape.value, self.frames.value(call.outs[-1])]
        self.frames.reach()
        if self.functions.shadowed:
            given.append(self.shadow())
        given += [self.shadow_of(call.args[i]) for i in shadows]
        for k in live:
            type = here(call.func.body.yields[k].type, results[k].type)
            given.append(self.as_type(self.total(results[k], state), type))
        for i in key.targets:
            flags = state.held[i] or {}
            given += [as_value(self.emit, flags[results[k]]) for k in key.held[i] or ()]
            given += [state.found[i], as_value(self.emit, state.done[i])]
        params = call.func.body.params
        outs = [Value(here(params[i].type, call.args[i].type)) for i in self.functions.summed(call.func)]
        outs += [Value(t) for i in key.targets for t in (self.found_types[i], Type(BOOL))]
        self.write(Call(call.span, made, tuple(given), tuple(outs)))
        self._after(call, key, outs, state)

    def _after(self, call: Call, key: Key, outs: list[Value], state: State) -> None:
        """What a call gives goes to its arguments: from each param once, the last first."""
        for v in call.outs:
            state.sums.pop(v, None)
        params, args = call.func.body.params, call.args
        totals: dict[int, Value | None] = {i: None for i, p in enumerate(params) if p in self.between.values}
        totals.update((i, outs.pop(0)) for i in self.functions.summed(call.func))
        for i in key.targets:
            state.found[i], state.done[i] = outs.pop(0), outs.pop(0)
            held = {v: f for v, f in (state.held[i] or {}).items() if v not in call.outs}
            state.held[i] = held or None
            if not held:
                state.done[i] = True
        for i in sorted(totals, reverse=True):
            self.pass_on(args[i], totals[i], state)

    def _same_tapes(self, call: Call) -> None:
        """Tapes that the call is given are the one of this walk."""
        if not self.tape.param:
            for tape in self.saving.tapes:
                if tape.value in call.args:
                    self.saving.unite(self.tape, tape)


def _held(results: tuple[Value, ...], held: dict[Value, Flag] | None) -> tuple[int, ...] | None:
    return None if held is None else tuple(i for i, v in enumerate(results) if v in held)


class Reversing(Calling):
    """The walk in a function that was called."""

    settles = False

    def __init__(self, functions: Functions, func: Func, key: Key, made: Func) -> None:
        top = functions.top
        super().__init__(top.derive, top.between, top.saving, Tape(func.span, param=True))
        self.functions = functions
        self.func = func
        self.key = key
        # the derivative may stand in another call of this same function, whose sizes are others
        self.found_types = [t.with_sizes(Size.apart) for t in top.found_types]
        self.code = self.emit.block = made.body
        self._shadow = Value(PLACE, "shadow")

    def shadow(self) -> Value:
        return self._shadow

    def build(self) -> None:
        """Write the function."""
        body = self.func.body
        place = Value(PLACE, "at")
        self.code.params = [self.tape.value, place]
        if self.functions.shadowed:
            self.code.params.append(self._shadow)
        frame = Frame(body, at=place)
        for shadow in self.func.body.params:
            if shadow in self.links.shadows:
                frame.known[shadow] = self._param(PLACE)
        self.frames.enter(frame)
        self.at(self.func.span)
        state = self._start()
        run(self.block(body, len(body.body), state))
        self._finish(state)
        self.code.body[:0] = frame.head

    def _param(self, type: Type) -> Value:
        self.code.params.append(Value(type))
        return self.code.params[-1]

    def _start(self) -> State:
        """What is live and known at the end of the body, from the params."""
        yields, n = self.func.body.yields, len(self.key.held)
        totals = [(k, self._param(Type(yields[k].type.dtype, yields[k].type.shape))) for k in self.key.live]
        state = State({}, [None if h is None else {} for h in self.key.held], [PLACELESS] * n, [False] * n)
        state.sums.update((self.func.body.params[i], None) for i in self.key.shadows)
        for i in self.key.targets:
            held = state.held[i] = {}
            for k in self.key.held[i] or ():
                held[yields[k]] = either(self.emit, held.get(yields[k], False), self._param(Type(BOOL)))
            state.found[i], state.done[i] = self._param(self.found_types[i]), self._param(Type(BOOL))
        self.begin(self.func.body, len(self.func.body.body), state)
        for k, total in reversed(totals):
            self.pass_on(yields[k], total, state)
        self.pass_on(yields[-1], None, state)
        return state

    def _finish(self, state: State) -> None:
        """The results: sums of the params, and what was found."""
        self.at(self.func.span)
        params = self.func.body.params
        self.at_entry(self.func, state)
        self.code.yields = [
            self.as_type(self.total(params[i], state), Type(params[i].type.dtype, params[i].type.shape))
            for i in self.functions.summed(self.func)
        ]
        for i in self.key.targets:
            self.code.yields += [state.found[i], as_value(self.emit, state.done[i])]


PLACELESS = Value(PLACE)  # stands for what is not asked for
