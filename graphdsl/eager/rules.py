"""Derivative rules as Python functions, compiled from their templates when they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphdsl.core.emit import Emit
from graphdsl.core.ir import Apply, Block, Value
from graphdsl.core.rules import NOWHERE, Template, Use, in_order, vjp_template
from graphdsl.eager.tape import Contribution, Rule
from graphdsl.ops.op import Attrs, Op, Setting
from graphdsl.ops.types import F32, F64, Type

Saved = dict[int, Use]  # by number among operands, then results: what a node keeps of it
Pair = tuple[Template, Template]  # the first contribution to a sum, and one more


class OpRule(Rule):
    """The rule of nodes of one op, which has `operands` operands.

    `pairs` are the templates (first, more) of the operands that get contributions; their params are
    `[sum?], g, operands…, result`. A node holds the nodes of the operands numbered in `nodes` (those with templates first;
    what follows is only read when recording), then what `saved` names of operands and result, in order. Where it is `told`,
    last comes a pair of the op's `Apply` and of its place in the source.
    """

    def __init__(
        self, operands: int, nodes: Sequence[int], pairs: Sequence[Pair], saved: Saved, told: bool = False
    ) -> None:
        super().__init__(len(pairs))
        self.told = told
        self.operands = operands
        self.nodes = tuple(nodes)
        self.pairs = pairs
        self.saved = saved
        self.recorded = Rule(len(pairs))
        for rule, record in ((self, False), (self.recorded, True)):
            rule.first = self._compiled_later(0, record)
            rule.more = self._compiled_later(1, record)

    def ops(self, i: int, more: bool) -> int:
        return sum(isinstance(instr, Apply) for instr in self.pairs[i][more].block.body)

    def place(self, k: int) -> int:
        """Where in a node what is saved of operand `k` stands."""
        return 2 + len(self.nodes) + list(self.saved).index(k)

    def _compiled_later(self, which: int, record: bool) -> list[Contribution]:
        functions: list[Contribution] = []
        for i, pair in enumerate(self.pairs):
            functions.append(self._stub(functions, i, pair[which], record))
        return functions

    def _stub(self, functions: list[Contribution], i: int, template: Template, record: bool) -> Contribution:
        """What compiles the function when it is first called, and leaves it in its place."""

        def compile_first(*args: Any) -> Any:
            from graphdsl.eager.templates import compile_template

            made = functions[i] = compile_template(template, self, record)
            return made(*args)

        return compile_first


class PassRule(OpRule):
    """Joins: the parent gets the whole sum, once."""

    def __init__(self, type: Type, passes: bool) -> None:
        super().__init__(1, (0,), [(_passing(type, False), _passing(type, True))], {})
        self.passes = passes


class LeafRule(Rule):
    """Values that come from nowhere."""

    def __init__(self, param: str | None = None) -> None:
        super().__init__()
        self.param = param


def _passing(type: Type, more: bool) -> Template:
    """`g`, or the sum with `g` added."""
    g, x, y = Value(type), Value(type), Value(type)
    block = Block([g, x, y], [], [g])
    if more:
        held = Value(type)
        block.params.insert(0, held)
        block.yields = [Emit(block, Setting(type.dtype), NOWHERE).add(held, g)]
    return Template(block, (Use.VALUE,) * len(block.params), more)


def recorded_step(name: str, type: Type) -> Contribution:
    """One step on a pair of value and node, recorded: "from_zero" adds +0.0, "cast" makes the other float `type`."""
    key = (name, type.dtype, type.rank)
    if key not in _steps:
        source = Type(type.dtype, (0,) * type.rank)
        other = F64 if name == "cast" and type.dtype is F32 else F32 if name == "cast" else type.dtype
        g, x, y = (Value(source.with_dtype(other)) for _ in range(3))
        block = Block([g, x, y])
        emit = Emit(block, Setting(type.dtype), NOWHERE)
        block.yields = [emit.add(g, emit.like(0.0, g)) if name == "from_zero" else emit.convert(g, type.dtype)]
        template = Template(block, (Use.VALUE, Use.NONE, Use.NONE), owned=True)
        rule = OpRule(1, (0,), [(template, template)], {})
        nothing = (0, rule, None)  # contributions take a node to read from
        _steps[key] = lambda pair: rule.recorded.first[0](pair, nothing)
    return _steps[key]


_steps: dict[Any, Contribution] = {}
_rules: dict[Any, Rule] = {}
_MOST = 4096  # rules kept


def _kept(key: Any, make: Callable[[], Rule]) -> Rule:
    rule = _rules.get(key)
    if rule is None:
        if len(_rules) >= _MOST:
            _rules.clear()
        rule = _rules[key] = make()
    return rule


def pass_rule(type: Type, passes: bool = True) -> Rule:
    """The rule of joins, or (without `passes`) of a function's params."""
    strong = Type(type.dtype, (0,) * type.rank)  # only the rank matters
    return _kept((strong, passes), lambda: PassRule(strong, passes))


def leaf_rule(param: str | None = None) -> Rule:
    """The rule of leaves."""
    return _kept(param, lambda: LeafRule(param))


def op_rule(
    op: Op,
    attrs: Attrs,
    args: Sequence[Type],
    outs: Sequence[Type],
    tracked: Sequence[int],
    higher: bool,
    setting: Setting,
    told: bool = False,
) -> OpRule | None:
    """The rule of one use of an op, of whose operands those numbered in `tracked` have nodes; None: nothing to record.

    `higher`: derivatives of derivatives may be taken, which need the nodes of operands that rules read. `told`: nodes say
    which op it was.
    """
    ordered = [i for i in in_order(op, len(args)) if i in tracked]
    pairs = {i: pair for i in ordered if (pair := _pair(op, attrs, args, outs, i, setting)) is not None}
    if not pairs:
        return None
    used: Saved = {}
    for template in (t for pair in pairs.values() for t in pair):
        for k, use in enumerate(template.uses[-len(args) - len(outs) :]):
            if use is Use.VALUE or (use is Use.SHAPE and k not in used):
                used[k] = use
    types = (*args, *outs)
    saved = {k: used[k] for k in sorted(used) if used[k] is Use.VALUE or types[k].rank}
    nodes = [*pairs, *(i for i in tracked if higher and i not in pairs and saved.get(i) is Use.VALUE)]
    key = (tuple(nodes), tuple(pairs.values()), tuple(saved.items()), told)
    rule = _kept(key, lambda: OpRule(len(args), nodes, list(pairs.values()), saved, told))
    assert isinstance(rule, OpRule)
    return rule


def _pair(op: Op, attrs: Attrs, args: Sequence[Type], outs: Sequence[Type], i: int, setting: Setting) -> Pair | None:
    first = vjp_template(op, attrs, args, outs, i, True, setting)
    more = vjp_template(op, attrs, args, outs, i, False, setting)
    return None if first is None or more is None else (first, more)
