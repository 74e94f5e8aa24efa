"""Calls with a derivative rule of their own, on the tape.

Each result has a node, whose cotangents come together in one node for the call, so that the rule is called once. The cotangent
of that is a list with an item for each result (None: none arrived).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np

from graphdsl.core.ir import Call, Custom, Value
from graphdsl.eager.derive import zeros
from graphdsl.eager.rules import leaf_rule, pass_rule, recorded_step
from graphdsl.eager.tape import Node, Rule, tick
from graphdsl.ops.types import Type

Tracks = Callable[[Value], bool]
Pair = tuple[Any, Any]  # a value and its node


class ResultRule(Rule):
    """One result: its cotangent goes into the call's list."""

    def __init__(self, index: int, count: int) -> None:
        super().__init__(1)
        self.index = index
        self.count = count
        self.first = [self._first]
        self.more = [self._more]

    def _first(self, total: Any, node: Node) -> list[Any]:
        return self._more([None] * self.count, total, node)

    def _more(self, held: list[Any], total: Any, node: Node) -> list[Any]:
        held[self.index] = total
        return held


class CustomRule(Rule):
    """The call. A node holds the nodes of the arguments; the function that the rule is, all it is given but cotangents,
    and the nodes of that; and the numbers of the results' nodes.
    """

    def __init__(self, instr: Custom, tracks: Tracks) -> None:
        super().__init__(len(instr.args))
        self.instr = instr
        self.outs = [Type(out.type.dtype, out.type.shape) for out in instr.outs]
        self.args = [Type(a.type.dtype, a.type.shape) for a in instr.args]
        self.places = [instr.given.index(a) for a in instr.args]
        self.takes_node = [tracks(p) for p in instr.rule.body.params]
        self.gives_node = [tracks(v) for v in instr.rule.body.yields]
        self.leaves = [out.leaf for out in instr.outs]
        self.results = [ResultRule(k, len(instr.outs)) for k in range(len(instr.outs))]
        self.recorded = Rule(len(instr.args))
        self.joint = _Plain(self)
        self.recorded.joint = _Recorded(self)

    def made(
        self,
        args: tuple[Any, ...],
        function: Any,
        values: tuple[Any, ...],
        made: tuple[Any, ...],
        nodes: tuple[Any, ...],
    ) -> list[Any]:
        """The nodes of the results `made`, None where nothing is to be recorded."""
        if all(node is None for node in (*args, *nodes)):
            return [(tick(), leaf_rule()) if leaf else None for leaf in self.leaves]
        shapes = made if not self.instr.through else tuple(map(_shape, made))
        call = (tick(), self, *args, function, values, shapes, nodes, [tick() for _ in self.outs])
        return self.nodes(call)

    def nodes(self, call: Node) -> list[Any]:
        """Those of the results."""
        return [(number, rule, call) for number, rule in zip(call[-1], self.results, strict=True)]

    def call(self, function: Any, pairs: Sequence[Pair]) -> list[Pair]:
        """What the rule gives, with a node each, for values with nodes."""
        taken: list[Any] = []
        for (value, node), takes in zip(pairs, self.takes_node, strict=True):
            taken += [value, node] if takes else [value]
        found = iter(function(*taken))
        return [(next(found), next(found) if gives else None) for gives in self.gives_node]


class _Walked:
    """How a walk goes over such a call. Whether values have nodes with them is for those below to say."""

    def __init__(self, rule: CustomRule) -> None:
        self.rule = rule
        record = isinstance(self, _Recorded)
        self.add = [(pass_rule(t).recorded if record else pass_rule(t)).more[0] for t in rule.args]

    def __call__(self, total: list[Any], node: Node, sums: dict[int, Any], useful: dict[int, Node]) -> None:
        function, values, made, nodes, _ = node[self.rule.end :]
        cotangents = [self.pair(g, y, t) for g, y, t in zip(total, made, self.rule.outs, strict=True)]
        keys = [None if p is None or p[0] not in useful else p[0] for p in node[2 : self.rule.end]]
        if self.rule.instr.through:
            before = [self.pair(sums.pop(k, None), values[at], t) for k, at, t in self._arguments(keys)]
            given = [*zip(values, nodes, strict=True), *cotangents, *before]
        else:
            given = [*zip(values, nodes, strict=True), *zip(made, self.rule.nodes(node), strict=True)]
        found = self.found(function, given, cotangents)
        for i, (key, pair) in enumerate(zip(keys, found, strict=True)):
            if key is None:
                continue
            if key in sums:
                sums[key] = self.add[i](sums.pop(key), self.one(pair), node)
            else:
                sums[key] = self.one(pair) if self.rule.instr.through else self.begun(pair, self.rule.args[i])

    def _arguments(self, keys: list[Any]) -> zip[tuple[Any, int, Type]]:
        return zip(keys, self.rule.places, self.rule.args, strict=True)

    def found(self, function: Any, given: list[Pair], cotangents: list[Pair]) -> list[Pair]:
        """What the rule gives. Where all cotangents are 0, a rule that a program states gives nothing."""
        if self.rule.instr.through:
            return self.rule.call(function, given)
        if any(np.any(g) for g, _ in cotangents):
            return self.rule.call(function, [*given, *cotangents])
        nothing = [zeros(given[k][0], type) for k, type in zip(self.rule.places, self.rule.args, strict=True)]
        return self.of_zeros(function, nothing, given, cotangents)

    def pair(self, held: Any, like: Any, type: Type) -> Pair:
        """A cotangent, or zeros where there is none."""
        raise NotImplementedError

    def one(self, pair: Pair) -> Any:
        """As it is kept among the sums."""
        raise NotImplementedError

    def begun(self, pair: Pair, type: Type) -> Any:
        """A sum that begins with a contribution."""
        raise NotImplementedError

    def of_zeros(self, function: Any, nothing: list[Any], given: list[Pair], cotangents: list[Pair]) -> list[Pair]:
        """What the arguments get where all cotangents are 0: `nothing`."""
        raise NotImplementedError


class _Plain(_Walked):
    """Sums are values."""

    def pair(self, held: Any, like: Any, type: Type) -> Pair:
        return zeros(like, type) if held is None else held, None

    def one(self, pair: Pair) -> Any:
        return pair[0]

    def begun(self, pair: Pair, type: Type) -> Any:
        return pair[0] + 0.0

    def of_zeros(self, function: Any, nothing: list[Any], given: list[Pair], cotangents: list[Pair]) -> list[Pair]:
        return [(value, None) for value in nothing]

    def found(self, function: Any, given: list[Pair], cotangents: list[Pair]) -> list[Pair]:
        return super().found(function, [(value, None) for value, _ in given], cotangents)


class _Recorded(_Walked):
    """Sums are pairs of a value and its node."""

    def pair(self, held: Any, like: Any, type: Type) -> Pair:
        return (zeros(like, type), None) if held is None else held

    def one(self, pair: Pair) -> Any:
        return pair

    def begun(self, pair: Pair, type: Type) -> Any:
        return recorded_step("from_zero", type)(pair)

    def of_zeros(self, function: Any, nothing: list[Any], given: list[Pair], cotangents: list[Pair]) -> list[Pair]:
        """It depends on the cotangents as what the rule gives does, but on nothing else."""
        found = self.rule.call(function, [*((v, None) for v, _ in given), *cotangents])
        return [(value, n) for value, (_, n) in zip(nothing, found, strict=True)]


def _shape(value: Any) -> Any:
    """What is kept of a result of which only the shape is asked."""
    return np.broadcast_to(np.zeros((), value.dtype), value.shape) if np.ndim(value) else value


def called(frame: FrameType) -> Call | None:
    """The call of a rule that a Python frame is, as one of the program."""
    if frame.f_code is not CustomRule.call.__code__:
        return None
    custom: Custom = frame.f_locals["self"].instr
    return None if custom.through else Call(custom.span, custom.rule, (), ())
