"""Functions with a derivative rule of their own, on the tape.

Three kinds of nodes stand for one call, so that its rule is called once: one for each result, whose cotangents come
together in one for the call; that calls the rule, and hands what it gives to one for the arguments, which shares it out.
The cotangent of the latter two is a list: an item for each result (None: none arrived), or for each argument.
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


class ArgsRule(Rule):
    """The arguments: each gets the cotangent that the rule gave for it."""

    def __init__(self, types: Sequence[Type]) -> None:
        super().__init__(len(types))
        self.first = [lambda given, node, i=i: given[i] + 0.0 for i, _ in enumerate(types)]
        self.more = [_more(type, i, False) for i, type in enumerate(types)]
        self.recorded = Rule(len(types))
        self.recorded.first = [_recorded_first(type, i) for i, type in enumerate(types)]
        self.recorded.more = [_more(type, i, True) for i, type in enumerate(types)]


def _recorded_first(type: Type, i: int) -> Callable[..., Any]:
    return lambda given, node: recorded_step("from_zero", type)(given[i])


def _more(type: Type, i: int, record: bool) -> Callable[..., Any]:
    joined = pass_rule(type)
    add = (joined.recorded if record else joined).more
    return lambda held, given, node: add[0](held, given[i], node)


class CustomRule(Rule):
    """The call. A node holds the node for the arguments; the function that the rule is, all it is given but cotangents,
    and the nodes of that; and the nodes' numbers of the results.
    """

    def __init__(self, instr: Custom, tracks: Tracks) -> None:
        super().__init__(1)
        self.instr = instr
        params = instr.rule.body.params
        self.outs = [Type(out.type.dtype, out.type.shape) for out in instr.outs]
        self.args = [Type(a.type.dtype, a.type.shape) for a in instr.args]
        self.places = [instr.given.index(a) for a in instr.args]
        self.takes_node = [tracks(p) for p in params]
        self.gives_node = [tracks(v) for v in instr.rule.body.yields]
        self.leaves = [out.leaf for out in instr.outs]
        self.results = [ResultRule(k, len(instr.outs)) for k in range(len(instr.outs))]
        self.arguments = ArgsRule(self.args)
        self.first = [self._first]
        self.recorded = Rule(1)
        self.recorded.first = [self._recorded_first]

    def made(self, args: tuple[Any, ...], function: Any, values: tuple[Any, ...], nodes: tuple[Any, ...]) -> list[Any]:
        """The nodes of the results, None where nothing is to be recorded."""
        if all(node is None for node in (*args, *nodes)):
            return [(tick(), leaf_rule()) if leaf else None for leaf in self.leaves]
        joined = (tick(), self.arguments, *args)
        call = (tick(), self, joined, function, values, nodes, [tick() for _ in self.outs])
        return self._results(call)

    def _results(self, call: Node) -> list[Any]:
        return [(number, rule, call) for number, rule in zip(call[6], self.results, strict=True)]

    def _first(self, total: list[Any], node: Node) -> list[Any]:
        values = node[4]
        cotangents = [self._zeros(k, values) if g is None else g for k, g in enumerate(total)]
        if not any(map(np.any, cotangents)):
            return self._nothing(values)
        found = self.call(node[3], [(v, None) for v in (*values, *cotangents)])
        return [value for value, _ in found]

    def _recorded_first(self, total: list[Any], node: Node) -> list[Any]:
        """Where all cotangents are 0, so is what the rule gives; and it depends on them as it does, but on nothing else."""
        values = node[4]
        cotangents = [(self._zeros(k, values), None) if g is None else g for k, g in enumerate(total)]
        if any(np.any(value) for value, _ in cotangents):
            nodes = (*node[5], *self._results(node))
            return self.call(node[3], [*zip(values, nodes, strict=True), *cotangents])
        found = self.call(node[3], [*((v, None) for v in values), *cotangents])
        return [(value, n) for value, (_, n) in zip(self._nothing(values), found, strict=True)]

    def _zeros(self, k: int, values: tuple[Any, ...]) -> Any:
        """The cotangent of a result where none arrived."""
        return zeros(values[len(values) - len(self.outs) + k], self.outs[k])

    def _nothing(self, values: tuple[Any, ...]) -> list[Any]:
        """What the arguments get where all cotangents are 0."""
        return [zeros(values[k], type) for k, type in zip(self.places, self.args, strict=True)]

    def call(self, function: Any, pairs: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """What the rule gives, with a node each, for values with nodes."""
        taken: list[Any] = []
        for (value, node), takes in zip(pairs, self.takes_node, strict=True):
            taken += [value, node] if takes else [value]
        found = iter(function(*taken))
        return [(next(found), next(found) if gives else None) for gives in self.gives_node]


def called(frame: FrameType) -> Call | None:
    """The call of a rule that a Python frame is, as one of the program."""
    if frame.f_code is not CustomRule.call.__code__:
        return None
    custom: Custom = frame.f_locals["self"].instr
    return Call(custom.span, custom.rule, (), ())
