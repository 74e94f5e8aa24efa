"""`checkpoint { … }`: its block becomes a function with a derivative rule, which computes the block's values again.

So what a walk back needs of the block lives as long as the rule runs. The running sums pass through the rule as they pass
through any statements, so that no bit changes. Effects are not repeated: the rule's copy of the block has none, but that it
draws the same random numbers again.

A block stays where it is if that could be told from outside: where a derivative inside reaches out of it, where a value that it
gives may be a derivative's target, where it loads; and where nothing is differentiated. Derivatives of derivatives would round
otherwise: where `Lowered.derived_twice` finds some, the program is lowered once more, with these blocks in their places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any

from graphdsl.core.call_graph import functions
from graphdsl.core.clone import clone_block, clone_value, free_values
from graphdsl.core.effects import outward
from graphdsl.core.emit import Emit
from graphdsl.core.ir import (
    Apply,
    Block,
    Call,
    Checkpoint,
    Convert,
    Custom,
    Derive,
    Fail,
    For,
    Func,
    Leaf,
    Print,
    Program,
    Save,
    Seed,
    Stream,
    Value,
    While,
)
from graphdsl.core.links import Links, Node
from graphdsl.core.segments import segmented
from graphdsl.core.structure import regions, walk
from graphdsl.ops.op import Effect, Setting
from graphdsl.ops.types import I64, Type
from graphdsl.source.record import dataclass, field
from graphdsl.source.span import Span


@dataclass
class Lowered:
    """What a program's checkpoints became: rules, with the places of the blocks; `segmented`: there are loops in segments."""

    rules: dict[Func, Span] = field(default_factory=dict)
    segmented: bool = False

    def derived_twice(self) -> set[Span]:
        """The blocks, by their places, through which a derivative of a derivative walks, once it is known which do."""
        return {
            span
            for rule, span in self.rules.items()
            if any(isinstance(instr, Derive) and instr.higher for instr in rule.body.body)
        }


def lower(program: Program, loops: bool = False, in_place: Set[Span] = frozenset()) -> Lowered:
    """Write every checkpoint of a program in other instructions; `loops`: also every loop, in segments. Those `in_place` stay
    where they are."""
    funcs = [*functions(program.main), program.main]
    kinds = (Checkpoint, While, For) if loops else Checkpoint
    found = Lowered()
    if any(isinstance(instr, kinds) for func in funcs for instr in walk(func.body)):
        lowering = _Lowering(program, loops, in_place, found)
        for func in funcs:
            lowering.blocks(func.body)
    return found


class _Lowering:
    def __init__(self, program: Program, loops: bool, in_place: Set[Span], found: Lowered) -> None:
        self.in_place = in_place
        self.loops = loops
        self.found = found
        self.setting = Setting(program.default_float)
        links = Links(program.main)
        self.derives = bool(links.derives)
        self.held = _may_be(links, (t for d in links.derives for t in d.targets if isinstance(t, Value)))
        self.silent: dict[Func, Func] = {}

    def blocks(self, block: Block) -> None:
        """The checkpoints in a block, the innermost first."""
        todo = [(block, False)]
        while todo:
            block, ready = todo.pop()
            if ready:
                block.body = [new for instr in block.body for new in self._instructions(instr)]
            else:
                todo.append((block, True))
                todo += [(inner, False) for instr in block.body for inner in regions(instr)]

    def _instructions(self, instr: Any) -> Iterable[Any]:
        match instr:
            case Checkpoint():
                given = free_values(instr.body)
                return _in_place(instr) if self._stays(instr, given, instr.outs) else self._apart(instr, given)
            case While() | For() if self.loops:
                return self._segmented(instr)
        return (instr,)

    def _segmented(self, loop: While | For) -> Iterable[Any]:
        """A loop over checkpoints, if they need not stay in their places."""
        found = segmented(loop, self.setting)
        checkpoint = found.checkpoint
        given = free_values(checkpoint.body)
        if self._stays(checkpoint, given, loop.outs):
            return (loop,)
        self.found.segmented = True
        body = found.loop.body
        at = body.body.index(checkpoint)
        body.body[at : at + 1] = self._apart(checkpoint, given)
        return (*found.before, found.loop)

    def _stays(self, instr: Checkpoint, given: list[Value], outs: Iterable[Value]) -> bool:
        """Whether it would be told that the block moved; `outs` are what it gives, as derivatives know it."""
        return (
            not self.derives
            or instr.span in self.in_place
            or not any(v.type.dtype.is_float for v in given)
            or not any(v.type.dtype.is_float for v in instr.outs)
            or not self.held.isdisjoint(outs)
            or any(isinstance(inner, Derive | Leaf) for inner in walk(instr.body))
            or any(_loads(inner) for inner in _effects(instr))
        )

    def _apart(self, instr: Checkpoint, given: list[Value]) -> Iterable[Any]:
        """A call of what the block is, cut off from derivatives, with the rule."""
        func = Func("checkpoint", _with_params(instr.body, given), instr.span, derived=True)
        emit = Emit(Block(), self.setting, instr.span)
        place = self._place(instr)
        if place:
            emit.block.body.append(Stream(instr.span, place))
        args = tuple(emit.stop_gradient(v) if v.type.dtype.is_float else v for v in given)
        floats = tuple(v for v in instr.outs if v.type.dtype.is_float)
        made = {v: clone_value(v) for v in floats}
        sources = tuple(v for v in given if v.type.dtype.is_float)
        rule = self._rule(instr, given, bool(place))
        return (
            *emit.block.body,
            Call(instr.span, func, args, tuple(made.get(v, v) for v in instr.outs)),
            Custom(instr.span, rule, sources, (*given, *place), tuple(made.values()), floats, through=True),
        )

    def _place(self, instr: Checkpoint) -> tuple[Value, Value] | tuple[()]:
        """Values for where the random stream is, if the block draws."""
        return _stream() if any(_draws(inner) for inner in _effects(instr)) else ()

    def _rule(self, instr: Checkpoint, given: list[Value], draws: bool) -> Func:
        """What computes the block again, and walks back over it."""
        block = _with_params(instr.body, given)
        self._silence(block)
        sources = [p for p in block.params if p.type.dtype.is_float]
        if draws:
            _replay(block, instr.span)
        made = [v for v in block.yields if v.type.dtype.is_float]
        emit = Emit(block, self.setting, instr.span)
        seeds = []
        for value in (*made, *sources):  # backwards: the sums so far, then the last result first
            cotangent = Value(Type(value.type.dtype, value.type.shape))
            block.params.append(cotangent)
            seeds.append(emit.seeded(value, cotangent))
        total: Value = seeds[0]
        for seed in seeds[1:]:
            total = emit.add(total, seed)
        block.yields = [Value(Type(v.type.dtype, v.type.shape)) for v in sources]
        block.body.append(Derive(instr.span, "grad", total, tuple(sources), None, tuple(block.yields)))
        rule = Func("checkpoint", block, instr.span, derived=True)
        self.found.rules[rule] = instr.span
        return rule

    def _silence(self, block: Block) -> None:
        """Take all effects away. What did not fail the first time does not fail now."""
        todo = [block]
        while todo:
            here = todo.pop()
            here.body = [instr for instr in here.body if not isinstance(instr, Print | Save | Fail)]
            for instr in here.body:
                match instr:
                    case Apply():
                        instr.fails = False
                    case Call(func=func):
                        instr.func = self._silent(func)
                todo.extend(regions(instr))

    def _silent(self, func: Func) -> Func:
        """A function without its effects."""
        if func not in self.silent:
            copy = self.silent[func] = Func(func.name, Block(), func.span, func.derived)
            copy.body = clone_block(func.body, {})
            self._silence(copy.body)
        return self.silent[func]


def _with_params(block: Block, given: list[Value]) -> Block:
    """A copy of a block whose params are the values from outside."""
    inner = {v: clone_value(v) for v in given}
    copy = clone_block(block, dict(inner))
    copy.params = list(inner.values())
    return copy


def _effects(instr: Checkpoint) -> Iterator[Any]:
    return outward(Func("", instr.body, instr.span))


def _loads(instr: Any) -> bool:
    return isinstance(instr, Apply) and instr.op.effect is Effect.READ


def _draws(instr: Any) -> bool:
    return isinstance(instr, Seed) or (isinstance(instr, Apply) and instr.op.effect is Effect.RANDOM)


def _stream() -> tuple[Value, Value]:
    return Value(Type(I64), "key"), Value(Type(I64), "counter")


def _replay(block: Block, span: Span) -> None:
    """The block draws what it drew when the stream was where two more params say, and leaves the stream where it is."""
    then, now = _stream(), _stream()
    block.params += then
    block.body = [Stream(span, now), Seed(span, *then), *block.body, Seed(span, *now)]


def _in_place(instr: Checkpoint) -> Iterable[Any]:
    pairs = zip(instr.body.yields, instr.outs, strict=True)
    return (*instr.body.body, *(Convert(instr.span, value, out) for value, out in pairs))


def _may_be(links: Links, values: Iterable[Value]) -> set[Node]:
    """The values, and all that they may be under other names."""
    found: set[Node] = set(values)
    todo = list(found)
    while todo:
        for node in links.origins.get(todo.pop(), ()):
            if node not in found:
                found.add(node)
                todo.append(node)
    return found
