"""Walking back over the instructions of a block, and writing what that comes to: the rules of its ops.

Running sums are kept for each value. What a walk needs of completed blocks is saved there (`graphdsl.graph.saving`);
where it comes to a value that may be a target, that is found. Regions are in `.regions`, calls in `.calls`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from graphdsl.core.emit import Emit
from graphdsl.core.ir import Apply, Block, Call, Convert, Custom, Derive, For, Func, If, Leaf, ParamTarget, Value, While
from graphdsl.core.links import Node
from graphdsl.core.nan_checks import looked_at
from graphdsl.core.rules import Template, Use, in_order, inline, vjp_template
from graphdsl.core.steps import Steps
from graphdsl.core.structure import results
from graphdsl.graph import custom, regions
from graphdsl.graph.between import GraphBetween
from graphdsl.graph.frames import Frames
from graphdsl.graph.ir import NewShadow, Push, Put, Read, Record, Result, Take
from graphdsl.graph.links import Field, GraphLinks, saved, summed
from graphdsl.graph.rename import graph_body
from graphdsl.graph.rule_checks import RuleCheck
from graphdsl.graph.saving import PLACE, Saving, Tape
from graphdsl.graph.walking import Flag, State, as_value, either, negated
from graphdsl.ops.op import Setting
from graphdsl.ops.table import OPS
from graphdsl.ops.types import Type
from graphdsl.source.span import Span

T = TypeVar("T")


class Walk(ABC):
    """The walk of `derive`: in its own function, or in one that was called before it. `tape` is the one it reads."""

    # whether all that is live is known here, and what is found is handed on: so that the walk may end where it is settled
    settles = True

    def __init__(self, derive: Derive, between: GraphBetween, saving: Saving, tape: Tape) -> None:
        self.derive = derive
        self.found_types = [Type(out.type.dtype, out.type.shape) for out in derive.outs]
        self.links: GraphLinks = saving.links
        self.between = between
        self.saving = saving
        self.setting: Setting = saving.setting
        self.tape = tape
        self.frames = Frames(saving, tape)
        self.watchful = bool(saving.links.shadows) or any(isinstance(t, ParamTarget) for t in derive.targets)
        self.code = Block()
        self.start_code: list[Any] = []  # what stands before all
        self.emit = Emit(self.code, self.setting, derive.span)

    @abstractmethod
    def shadow(self) -> Value:
        """The sums for saved values, of this derivative."""

    @abstractmethod
    def call(self, call: Call, state: State) -> None:
        """A completed call."""

    # ---- writing ----

    @contextmanager
    def into(self, block: Block) -> Iterator[None]:
        """Write into another block."""
        outer, self.emit.block = self.emit.block, block
        yield
        self.emit.block = outer

    def at(self, span: Span) -> None:
        """The code that follows belongs to this place of the source."""
        self.emit.span = span

    def write(self, instr: Any) -> None:
        self.emit.block.body.append(instr)

    def as_type(self, value: Value, type: Type) -> Value:
        """The same value, whose sizes are known otherwise."""
        if value.type == type:
            return value
        assert value.type.dtype is type.dtype
        out = Value(type)
        self.write(Convert(self.emit.span, value, out))
        return out

    def shaped(self, value: Value) -> Value:
        """Something of the shape and dtype of a value of the forward code."""
        if self.frames.visible(value) or not all(isinstance(d, int) for d in value.type.shape):
            return self.frames.value(value)
        return self.zeros(value)

    def zeros(self, value: Value) -> Value:
        """A cotangent of zeros for a value."""
        return self.zeros_of(Type(value.type.dtype, value.type.shape), lambda: self.frames.value(value))

    def zeros_of(self, t: Type, like: Callable[[], Value]) -> Value:
        """Zeros of a type. `like` gives something of its shape, asked for where sizes are not known."""
        if not t.shape:
            return self.emit.const(0.0, t.dtype)
        if all(isinstance(d, int) for d in t.shape):
            made: Value = self.emit.apply(OPS["zeros"], sizes=t.shape, dtype=t.dtype)
            return made
        return self.as_type(self.emit.nothing_like(like(), t.dtype), t)

    # ---- sums ----

    def wants(self, node: Node, state: State) -> bool:
        """Whether a cotangent for `node` serves some target; always where it may be one itself."""
        if node in self.between.values and self.between.wanted(node, state.held):
            return True
        return isinstance(node, Value) and state.holds(node)

    def pass_on(self, value: Value, total: Value | None, state: State) -> None:
        """A join hands its whole sum on to what it got `value` from."""
        if not self.wants(value, state):
            return
        if total is None:
            state.sums[value] = None
        elif state.sums.get(value) is None:
            state.sums[value] = self.as_type(total, Type(value.type.dtype, value.type.shape))
        else:
            state.sums[value] = self.emit.add(state.sums[value], total)

    def total(self, value: Value, state: State) -> Value:
        """The sum for a value so far, zeros if there is none."""
        found = state.sums.get(value)
        return self.zeros(value) if found is None else found

    # ---- the walk ----

    def settle(self, state: State) -> bool:
        """Whether the walk ends here, as each live value is itself a target. They are found then."""
        if not self.settles or not self.between.settled(state.abstract()):
            return state.finished
        held = state.abstract().held
        for v, total in state.sums.items():
            for i, holders in enumerate(held):
                if holders is not None and self.between.is_target(v, i, holders):
                    flag = (state.held[i] or {}).get(v)
                    self.set_found(i, self.unfound(i, state) if flag is None else flag, total, state)
        state.sums.clear()
        state.held = [None] * len(state.held)
        state.done = [True] * len(state.done)
        return True

    def block(self, block: Block, position: int, state: State) -> Steps[None]:
        """Back over the instructions before `position`."""
        if state.finished:
            return
        for instr in reversed(block.body[:position]):
            if not self._concerned(instr, state):
                continue
            if isinstance(instr, If | While | For | Call):
                self.at(instr.span)
                yield self.region(instr, state)
            else:
                self.plain(instr, state)
            if len(state.sums) <= len(state.held) and self.settle(state):
                return

    def _concerned(self, instr: Any, state: State) -> bool:
        if any(v in state.sums or state.holds(v) for v in results(instr)):
            return True
        return self.watchful and self.between.concerns_inside(instr, state.abstract())

    def region(self, instr: Any, state: State) -> Steps[None]:
        if state.held and self._held_there(instr, state) and self.settle(state):
            return
        match instr:
            case If():
                yield regions.branches(self, instr, state)
            case While() | For():
                yield regions.completed(self, instr, state)
            case Call() if instr in self.between.calls:
                self.call(instr, state)
            case Call():  # nothing is walked for beyond: what is live is a target
                for v in instr.outs:
                    self.capture(v, state.sums.pop(v, None), state)

    def _held_there(self, instr: Any, state: State) -> bool:
        return any(state.holds(v) for v in instr.outs) or self.between.touches(instr, state.abstract())

    def at_entry(self, func: Func, state: State) -> None:
        """At the entry of a function: its params are new values."""
        for p in func.body.params:
            if state.holds(p):
                self.capture(p, state.sums.get(p), state)

    # ---- instructions ----

    def plain(self, instr: Any, state: State) -> None:
        """An instruction without regions."""
        if isinstance(instr, Put):
            self.put(instr, state)
            return
        outs = results(instr)
        self.at(instr.span)
        if isinstance(instr, Convert):
            self.convert(instr, state)
            return
        totals = [state.sums.pop(v, None) for v in outs]
        if any(state.holds(v) for v in outs) and self._all_found(outs, state):
            pass  # no rule of this instruction serves anything
        else:
            self.rules(instr, outs, totals, state)
        for v, total in zip(outs, totals, strict=True):
            self.made(instr, v, total, state)

    def _all_found(self, outs: tuple[Value, ...], state: State) -> bool:
        return all(h is None or (h and all(v in outs for v in h)) for h in state.held)

    def made(self, instr: Any, value: Value, total: Value | None, state: State) -> None:
        """`value` is made here: if it is a target, that is found."""
        if isinstance(instr, Leaf) and total is not None:
            for i, target in enumerate(self.derive.targets):
                if isinstance(target, ParamTarget) and target.name == instr.param and state.held[i] is not None:
                    self.set_found(i, self.unfound(i, state), total, state)
                    state.held[i], state.done[i] = None, True
        self.capture(value, total, state)

    def capture(self, value: Value, total: Value | None, state: State) -> None:
        """The targets that `value` may be are found, where it is them."""
        for i, held in enumerate(state.held):
            if held is None or value not in held:
                continue
            flag = held.pop(value)
            self.set_found(i, flag, total, state)
            state.done[i] = either(self.emit, state.done[i], flag)
            if not held:
                state.held[i] = None
                state.done[i] = True

    def unfound(self, i: int, state: State) -> Flag:
        """Whether target `i` is still looked for."""
        return negated(self.emit, state.done[i])

    def set_found(self, i: int, flag: Flag, total: Value | None, state: State) -> None:
        """Where `flag` holds, `total` is the derivative with respect to target `i`."""
        if total is None or flag is False:
            return
        type = self.found_types[i]
        if total.type.dtype is not type.dtype:
            total = self.emit.convert(total, type.dtype)
        total = self.as_type(total, type)
        if flag is True:
            state.found[i] = total
            return
        chosen = Value(total.type)
        branches = Block(yields=[total]), Block(yields=[state.found[i]])
        self.write(If(self.emit.span, as_value(self.emit, flag), *branches, (chosen,)))
        state.found[i] = chosen

    def rules(self, instr: Any, outs: tuple[Value, ...], totals: list[Value | None], state: State) -> None:
        """Hand the sums of an instruction's results on to what it read."""
        match instr:
            case Apply():
                if any(t is not None for t in totals):
                    self.apply(instr, totals, state)
            case Custom():
                if any(t is not None for t in totals):
                    custom.contribute(self, instr, totals, state)
            case Result(arg=arg):
                self.pass_on(arg, totals[0], state)
            case Read():
                self.read(instr, totals, state)
            case Push(record=record, values=values):
                for i, v in enumerate(values):  # the sums of floats were taken at the end of the block
                    if not v.type.dtype.is_float and saved(record, i) in self.between.values:
                        self.pass_on(v, None, state)
            case Take():
                self.take(instr, totals, state)

    def convert(self, instr: Convert, state: State) -> None:
        """The same value in another dtype: its cotangent is converted back."""
        for h in state.held:
            if h is not None and instr.out in h:
                h[instr.arg] = either(self.emit, h.pop(instr.out), h.get(instr.arg, False))
        total = state.sums.pop(instr.out, None)
        if total is not None and self.wants(instr.arg, state):
            self.contribute(instr.arg, self.emit.convert(total, instr.arg.type.dtype), total, state)

    def contribute(self, value: Value, part: Value, total: Value | None, state: State) -> None:
        """Add a converted cotangent, which may be -0.0, to a sum."""
        before = state.sums.get(value)
        if before is None and part is not total:
            before = self.emit.like(0.0, part)
        if before is None:
            self.pass_on(value, part, state)
        else:
            summed = self.emit.add(part, before) if value not in state.sums else self.emit.add(before, part)
            state.sums[value] = self.as_type(summed, Type(value.type.dtype, value.type.shape))

    def apply(self, instr: Apply, totals: list[Value | None], state: State) -> None:
        """The rules of an op, for its operands in order."""
        types = [a.type for a in instr.args]
        out_types = [o.type for o in instr.outs]
        gs: list[Value] | None = None
        for i in in_order(instr.op, len(instr.args)):
            arg = instr.args[i]
            if not arg.type.dtype.is_float or not self.wants(arg, state):
                continue
            before = state.sums.get(arg)
            template = vjp_template(instr.op, instr.attrs, types, out_types, i, before is None, self.setting)
            if template is None:
                continue
            if gs is None:
                gs = [self.zeros(o) if t is None else t for o, t in zip(instr.outs, totals, strict=True)]
            given = self.given(template, instr, gs)
            check = RuleCheck(self.emit, instr, i, before) if self.saving.looks and looked_at(instr) else None
            made = inline(template, self.emit, *([] if before is None else [before]), *given)
            if made in gs:
                made = self._renewed(made)
            if check is not None:
                check.write(template, given, made)
            state.sums[arg] = self.as_type(made, Type(arg.type.dtype, arg.type.shape))

    def given(self, template: Template, instr: Apply, gs: list[Value]) -> list[Value]:
        """What a rule reads after the running sum: cotangents, operands, results (of what it does not read: anything)."""
        given = list(gs)
        operands = (*instr.args, *instr.outs)
        for value, use in zip(operands, template.uses[-len(operands) :], strict=True):
            match use:
                case Use.NONE:
                    given.append(gs[0])
                case Use.SHAPE:
                    given.append(self.shaped(value))
                case Use.VALUE:
                    given.append(self.frames.value(value))
        return given

    def _renewed(self, value: Value) -> Value:
        """A running sum is a value of its own, also where it begins with a whole cotangent: its uses sum apart."""
        out = Value(value.type)
        self.write(Result(self.emit.span, value, out))
        return out

    # ---- saved values in the code of other derivatives ----

    def begin(self, block: Block, position: int, state: State) -> None:
        """At the end of what is walked of `block`: sums that saved values already got elsewhere."""
        body = graph_body(block)[:position]
        overwritten = {(i.shadow, i.at, i.record) for i in body if isinstance(i, Put)}
        for instr in body:
            match instr:
                case Push(record=record, values=values, out=out):
                    fields = [(i, v) for i, v in enumerate(values) if saved(record, i) in self.between.values]
                    self._begin(self.shadow, record, out, fields, state)
                case Read(record=record, at=at, fields=indices, outs=outs):
                    self._begin(self.shadow, record, at, self._kept(saved, record, indices, outs), state)
                case Take(shadow=shadow, record=record, at=at, fields=indices, outs=outs):
                    if (shadow, at, record) not in overwritten:
                        given = self._kept(summed, record, indices, outs)
                        self._begin(partial(self.shadow_of, shadow), record, at, given, state)
                case Put(shadow=shadow, record=record, at=at):
                    given = self._put_fields(instr, state)
                    self._begin(partial(self.shadow_of, shadow), record, at, given, state)

    def _begin(
        self,
        shadow: Callable[[], Value],
        record: Record,
        at: Value,
        fields: list[tuple[int, Value]],
        state: State,
    ) -> None:
        wanted = [(i, v) for i, v in fields if v.type.dtype.is_float and self.wants(v, state)]
        if not wanted:
            return
        outs = tuple(Value(Type(v.type.dtype, v.type.shape)) for _, v in wanted)
        place = self.frames.value(at)
        self.frames.reach()
        self.write(Take(self.emit.span, shadow(), record, place, tuple(i for i, _ in wanted), outs))
        state.sums.update((v, out) for (_, v), out in zip(wanted, outs, strict=True))

    def read(self, instr: Read, totals: list[Value | None], state: State) -> None:
        """Sums for saved values go back to where those are kept."""
        given = [(i, t) for i, t in self._kept(saved, instr.record, instr.fields, totals) if t is not None]
        if given:
            self._put(self.shadow(), instr, given)
        self.pass_on(instr.at, None, state)

    def take(self, instr: Take, totals: list[Value | None], state: State) -> None:
        """Sums for what was taken from a shadow are kept in a shadow of that one."""
        given = [(i, t) for i, t in self._kept(summed, instr.record, instr.fields, totals) if t is not None]
        self._put(self.shadow_of(instr.shadow), instr, given)
        self.pass_on(instr.shadow, None, state)

    def put(self, instr: Put, state: State) -> None:
        """What was put somewhere has its sum from there; what was there before has none yet."""
        if instr.shadow in state.sums:
            given = [(i, self.zeros(v)) for i, v in self._put_fields(instr, state)]
            self._put(self.shadow_of(instr.shadow), instr, given)

    def _kept(
        self, field: Callable[[Record, int], Field], record: Record, indices: Iterable[int], given: Iterable[T]
    ) -> list[tuple[int, T]]:
        """What is given for the fields to which a target leads: a value may be live for its place alone."""
        return [(i, v) for i, v in zip(indices, given, strict=True) if field(record, i) in self.between.values]

    def _put(self, shadow: Value, instr: Any, given: list[tuple[int, Value]]) -> None:
        if given:
            place = self.frames.value(instr.at)
            fields, values = tuple(i for i, _ in given), tuple(t for _, t in given)
            self.write(Put(self.emit.span, shadow, instr.record, place, fields, values))

    def _put_fields(self, instr: Put, state: State) -> list[tuple[int, Value]]:
        pairs = zip(instr.fields, instr.values, strict=True)
        return [(i, v) for i, v in pairs if summed(instr.record, i) in self.between.values and self.wants(v, state)]

    def shadow_of(self, shadow: Value) -> Value:
        """The shadow for the sums in a shadow of another derivative's walk."""
        made = self.links.defs[shadow]
        frame = self.frames.around[made.block]
        if shadow not in frame.known:
            frame.known[shadow] = Value(PLACE, "shadow")
            instr = NewShadow(self.derive.span, self.tape.value, frame.known[shadow])
            self.frames.reach()
            (self.start_code if frame.visible else frame.head).append(instr)
        return frame.known[shadow]
