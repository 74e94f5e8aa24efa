"""What is written to record a value: the expressions that make its node."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphdsl.core import ir
from graphdsl.core.ir import Value
from graphdsl.core.rules import Use
from graphdsl.eager.module import Module
from graphdsl.eager.rules import OpRule, leaf_rule, op_rule, pass_rule
from graphdsl.eager.tape import Rule
from graphdsl.ops.choosing import cast_attrs
from graphdsl.ops.op import Setting
from graphdsl.ops.table import OPS
from graphdsl.ops.types import Type
from graphdsl.source.record import dataclass

if TYPE_CHECKING:
    from graphdsl.eager.function import FunctionWriter


Place = Callable[[ir.Apply], str]
RESULT = "<result>"  # stands in a node's text for what the op makes


@dataclass(frozen=True)
class Record:
    """The text that makes a node."""

    rule: OpRule | None
    template: str

    def saves(self, k: int) -> bool:
        """Whether the node holds the value of operand `k` (or of the result, counted after them)."""
        return self.rule is not None and self.rule.saved.get(k) is not None

    def text(self, result: str) -> str:
        """The text, where the op's result is the local `result`."""
        return self.template.replace(RESULT, result)


NOTHING = Record(None, "None")


class Recorder:
    """Decides what is recorded. `everything`: all floats are (inside a rule that is recorded). `higher`: derivatives
    are differentiated somewhere, so that every join keeps a sum of its own. `place`: what says, with the op of a node, where
    it stands in the source, given that this is to be told."""

    def __init__(
        self,
        module: Module,
        setting: Setting,
        higher: bool,
        everything: bool = False,
        place: Place | None = None,
    ) -> None:
        self.module = module
        self.setting = setting
        self.higher = higher
        self.everything = everything
        self.place = place
        self._carried: set[Value] = set()
        self._rules: dict[Any, OpRule | None] = {}

    def tracks(self, value: Value) -> bool:
        """Whether a value has a node (or None) beside it."""
        return value.tracked or value.leaf or value in self._carried or (self.everything and value.type.dtype.is_float)

    def carry(self, loop: ir.While | ir.For) -> None:
        """Values that take turns in one local of a loop: if one has a node, all have.

        To be known of all functions before one is written: what a function gives may be such a value."""
        conditions = loop.cond.params if isinstance(loop, ir.While) else loop.outs
        carried = loop.body.params if isinstance(loop, ir.While) else loop.body.params[1:]
        for group in zip(loop.outs, conditions, carried, strict=True):
            if any(map(self.tracks, group)):
                self._carried.update(group)

    def splits(self, shared: bool) -> bool:
        """Whether a join needs a node of its own.

        Not where it is the last use of what it passes on: in the walk back its sum comes first, so that the sums run on
        into each other anyway. But what a derivative computes later may use that value again.
        """
        return shared or self.higher

    # ---- nodes ----

    def bare_leaf(self) -> str:
        return self._node(leaf_rule(), [])

    def leaf(self, param: str) -> str:
        return self._node(leaf_rule(param), [])

    def enter(self, node: str, param: Value) -> str:
        """A function's param: a new value of the call."""
        made = self._node(pass_rule(param.type, passes=False), [node])
        return made if param.leaf else f"{node} and {made}"

    def passing(self, node: str, type: Type) -> str:
        """What a join passes on."""
        return f"{node} and {self._node(pass_rule(type), [node])}"

    def converting(self, node: str, source: Type, target: Type, shared: bool) -> str:
        """The same value in another type; `shared`: the value itself is used later too."""
        if node == "None":
            return node
        if source.dtype is target.dtype:
            return self.passing(node, target) if self.splits(shared) else node
        attrs = cast_attrs(target.dtype, checked=False, weak=False)
        rule = op_rule(OPS["cast"], attrs, [source], [target], [0], self.higher, self.setting)
        assert rule is not None
        return f"{node} and {self._node(_looked_through(rule), [node])}"

    def applied(self, w: FunctionWriter, instr: ir.Apply, out: Value) -> Record:
        """What an op made."""
        if not self.tracks(out):
            return NOTHING
        if not (out.tracked or self.everything):  # an end: what led to it is of no use, and is not to be kept
            return Record(None, self.bare_leaf() if out.leaf else "None")
        tracked = [i for i, a in enumerate(instr.args) if w.node(a) != "None"]
        rule = self._rule(instr, tracked)
        if rule is None:
            return Record(None, self.bare_leaf()) if out.leaf else NOTHING
        nodes = [w.node(instr.args[i]) for i in rule.nodes]
        saved = []
        for k, use in rule.saved.items():
            value = w.value(instr.args[k]) if k < len(instr.args) else RESULT
            saved.append(value + (".shape" if use is Use.SHAPE else ""))
        made = self._node(rule, nodes + saved + self._told(instr))
        if out.leaf:
            return Record(rule, made)
        distinct = list(dict.fromkeys(nodes[: len(rule.pairs)]))
        either = f"{distinct[0]} and {made}" if len(distinct) == 1 else f"{made} if {' or '.join(distinct)} else None"
        return Record(rule, either)

    def _rule(self, instr: ir.Apply, tracked: list[int]) -> OpRule | None:
        types = [a.type for a in instr.args]
        key = (instr.op, *instr.attrs.items(), *tracked, *((id(t.dtype), t.shape) for t in types))
        if key not in self._rules:
            outs = [o.type for o in instr.outs]
            self._rules[key] = op_rule(
                instr.op, instr.attrs, types, outs, tracked, self.higher, self.setting, self.place is not None
            )
        return self._rules[key]

    def _told(self, instr: ir.Apply) -> list[str]:
        """What a node says of its op."""
        return [] if self.place is None else [f"({self.module.constant(instr)}, {self.place(instr)})"]

    def _node(self, rule: Rule, rest: list[str]) -> str:
        return f"({', '.join(['tick()', self.module.constant(rule, 'r'), *rest])})"


def _looked_through(rule: OpRule) -> Rule:
    """The rule of a conversion at a join: `origin` looks through it."""
    made = OpRule(rule.operands, rule.nodes, rule.pairs, rule.saved)
    made.passes = True
    return made
