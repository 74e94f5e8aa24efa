"""Where values are saved: at most one `Push` at the end of a block, for all derivatives that come back to it.

The place of the entry is handed on: out of a branch as one more result, from trip to trip as one more carried value,
which the next entry holds in its field 0. A tape stands at the start of the outermost block from which somebody reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphdsl.core.call_graph import instructions
from graphdsl.core.emit import Emit
from graphdsl.core.instances import Instances
from graphdsl.core.ir import Apply, Block, Const, Derive, For, Func, If, NanWalk, Value, While
from graphdsl.core.links import Def
from graphdsl.graph.ir import NewTape, Push, Record
from graphdsl.graph.links import GraphLinks
from graphdsl.ops.op import Setting
from graphdsl.ops.types import I64, Type
from graphdsl.source.span import Span

PLACE = Type(I64)


class Tape:
    """A tape that may yet move outwards, or turn out to be the same as another. Not so a param of a function."""

    def __init__(self, span: Span, param: bool = False) -> None:
        self.param = param
        self.value = Value(PLACE, "tape")
        self.span = span
        self.block: Block | None = None  # where it is made; None: a param, or not known yet
        self.same: Tape | None = None

    def root(self) -> Tape:
        """The tape that it has become."""
        tape = self
        while tape.same is not None:
            tape = tape.same
        return tape


class Entry:
    """What a block saves at its end."""

    def __init__(self, tape: Tape, push: Push) -> None:
        self.tape = tape
        self.push = push
        self.fields: dict[Value, int] = {v: i for i, v in enumerate(push.values)}

    def field(self, value: Value) -> int:
        """The field in which `value` is saved."""
        if value not in self.fields:
            self.fields[value] = len(self.push.values)
            self.push.record.types.append(value.type)
            self.push.values = (*self.push.values, value)
        return self.fields[value]


class Saving:
    """The entries of one graph, with its tapes. `looks`: what derivative rules give is to be looked at."""

    def __init__(self, main: Func, setting: Setting) -> None:
        self.main = main
        self.setting = setting
        self.looks = any(isinstance(i, NanWalk) for i in instructions(main))
        self.unlinked: set[Derive] = set()  # built since `links` were made: nobody walks through them
        self.link()
        self.entries: dict[Block, Entry] = {}
        self.places: dict[Any, Value] = {}  # of a branch, a loop: its result that is the place of the last entry
        self.counts: dict[While, tuple[Value, ...]] = {}
        self.tapes: list[Tape] = []
        self.forms: dict[Func, Func] = {}  # functions that save, for those that do not
        self.copies: dict[Func, dict[Any, Any]] = {}  # what of a function became what in its form
        self.params: dict[Block, Tape] = {}  # the tapes that those are given, by their bodies

    def link(self) -> None:
        """Find out anew how values flow."""
        self.links = GraphLinks(self.main)
        self.instances = Instances(self.links)
        self.unlinked.clear()

    def copies_of(self, derive: Derive) -> list[Derive]:
        """What a derivative became in functions that save and were made before it was built: those of a recursive
        function, which it walks through itself."""
        return [copies[derive] for copies in self.copies.values() if derive in copies]

    # ---- tapes ----

    def new_tape(self, span: Span) -> Tape:
        tape = Tape(span)
        self.tapes.append(tape)
        return tape

    def unite(self, one: Tape, other: Tape) -> None:
        """Both are one tape from now on."""
        one, other = one.root(), other.root()
        if one is not other and not one.param and not other.param:
            other.same = one
            if other.block is not None:
                self.reach(one, other.block)

    def unite_record(self, tape: Tape, record: Record) -> None:
        """`tape` becomes the same as the one on which entries of this form are."""
        for entry in self.entries.values():
            if entry.push.record is record:
                self.unite(tape, entry.tape)

    def reach(self, tape: Tape, block: Block) -> None:
        """The tape has to be there in `block`, too: it moves to the innermost block that encloses all its uses."""
        tape = tape.root()
        if tape.param:
            return
        if tape.block is None:
            tape.block = block
        elif tape.block is not block:
            around = set(self.around(block))
            tape.block = next(b for b in self.around(tape.block) if b in around)

    def around(self, block: Block | None) -> Iterator[Block]:
        """A block and those around it, outwards."""
        while block is not None:
            yield block
            block = self.links.owner[block].parent

    def place_tapes(self) -> dict[Value, Value]:
        """Make the tapes, when all derivatives are built; what the others' values have become."""
        for tape in self.tapes:
            if tape.same is None and tape.block is not None:
                _graph(tape.block).insert(0, NewTape(tape.span, tape.value))
        return {t.value: t.root().value for t in self.tapes if t.same is not None}

    # ---- entries ----

    def entry(self, block: Block, tape: Tape) -> Entry:
        """The entry of a block, made if there is none; it is on `tape` then, or `tape` becomes the same as its own."""
        if block in self.entries:
            self.unite(tape, self.entries[block].tape)
            return self.entries[block]
        tape = self.params.get(self.links.owner[block].func.body, tape)
        owner = self.links.owner[block].instr
        push = Push(owner.span, tape.value, Record(), (), Value(PLACE))
        _graph(block).append(push)
        self._define(push.out, block, push)
        entry = self.entries[block] = Entry(tape, push)
        match owner:
            case If():
                self._branch(owner, block, push.out)
            case While() | For():
                entry.field(self._loop(owner, push.out))
        return entry

    def place_param(self, loop: While | For, block: Block) -> Value:
        """In a region of a loop: the place of the entry of the trip before."""
        out = self.places[loop]
        index = loop.outs.index(out)
        return block.params[index + (1 if isinstance(loop, For) else 0)]

    def _branch(self, owner: If, block: Block, place: Value) -> None:
        if owner in self.places:
            block.yields[owner.outs.index(self.places[owner])] = place
            return
        other = owner.orelse if block is owner.then else owner.then
        none = self._number(other, 0, owner.span)
        block.yields.append(place)
        other.yields.append(none)
        out = Value(PLACE)
        owner.outs = (*owner.outs, out)
        self.places[owner] = out
        self._define(out, self._parent(block), owner)

    def _loop(self, loop: While | For, place: Value) -> Value:
        """Carry the place; the param that holds the last one."""
        param, out = self._carry(loop, 0, place)
        self.places[loop] = out
        return param

    def count(self, loop: While, block: Block | None) -> Value:
        """How many trips were made: after the loop, or in a region of it up to here."""
        if loop not in self.counts:
            n = Value(PLACE)
            param, out = self._carry(loop, 0, n)
            emit = Emit(loop.body, self.setting, loop.span)
            one = emit.const(1, I64)
            summed = emit.add(param, one)
            loop.body.yields[-1] = summed
            for instr in loop.body.body[-2:]:
                made = instr.out if isinstance(instr, Const) else instr.outs[0] if isinstance(instr, Apply) else None
                assert made is not None
                self._define(made, loop.body, instr)
            self.counts[loop] = (out, loop.cond.params[-1], param)
        out, in_cond, in_body = self.counts[loop]
        return out if block is None else in_cond if block is loop.cond else in_body

    def _carry(self, loop: While | For, first: int, following: Value) -> tuple[Value, Value]:
        """One more carried value; its param in the body, and its result."""
        parent = self._parent(loop.body)
        init = self._number(parent, first, loop.span, before=loop)
        param, out = Value(PLACE), Value(PLACE)
        loop.inits = (*loop.inits, init)
        loop.outs = (*loop.outs, out)
        loop.body.params.append(param)
        loop.body.yields.append(following)
        self._define(param, loop.body, None)
        self._define(out, parent, loop)
        if isinstance(loop, While):
            again = Value(PLACE)
            loop.cond.params.append(again)
            self._define(again, loop.cond, None)
        return param, out

    # ---- small things ----

    def _parent(self, block: Block) -> Block:
        parent = self.links.owner[block].parent
        assert parent is not None
        return parent

    def _number(self, block: Block, number: int, span: Span, before: Any = None) -> Value:
        value = Value(PLACE)
        const = Const(span, number, value)
        if before is None:
            block.body.append(const)
        else:
            position = next(i for i, instr in enumerate(block.body) if instr is before)
            block.body.insert(position, const)
        self._define(value, block, const)
        return value

    def _define(self, value: Value, block: Block, instr: Any) -> None:
        self.links.defs[value] = Def(block, instr, 0, -1)


def _graph(block: Block) -> list[Any]:
    """A block's instructions, to which graph mode adds some of its own."""
    return block.body
