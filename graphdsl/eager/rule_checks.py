"""`--check-nan` on the tape: looks at what each derivative rule of an op gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphdsl.core.ir import Apply, NanCheck
from graphdsl.core.nan_checks import looked_at, rule_check, rule_reads
from graphdsl.eager.rules import OpRule
from graphdsl.eager.tape import Node
from graphdsl.runtime.state import Runtime
from graphdsl.source.span import Span


class RuleChecks:
    """For one run."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._before: tuple[bool, ...] = ()  # whether the sum had a NaN, an inf; empty: it begins with the contribution

    def before(self, total: Any, node: Node) -> None:
        """The running sum."""
        if _looked_at(node):
            self._before = () if total is None else _holds(_value(total))

    def after(self, total: Any, i: int, cotangent: Any, node: Node) -> None:
        """The running sum with the contribution; of values with their nodes, the values."""
        if _looked_at(node) and not any(self._before[:1]) and any(_holds(_value(total))):
            instr, span = node[-1]
            self._note(node[1], instr, span, i, _value(cotangent), node, _value(total))

    def _note(self, rule: OpRule, instr: Apply, span: Span, i: int, g: Any, node: Node, total: Any) -> None:
        template = rule.pairs[i][bool(self._before)]
        operand = rule.nodes[i]
        made = rule_check(instr, operand, template)
        values = (*instr.outs, *instr.args, *instr.outs)  # as those that the rule may read: g, operands, result
        read = [k for k, reads in enumerate(rule_reads(template, len(instr.args))) if reads]
        args = [g, *(node[rule.place(k - 1)] for k in read[1:])]
        check = NanCheck(span, made, tuple(values[k] for k in read), instr.args[operand])
        self.runtime.nans.check(check, args, total, self._before)


def _looked_at(node: Node) -> bool:
    """Whether it is of an op that may make a NaN or inf."""
    rule = node[1]
    return isinstance(rule, OpRule) and rule.told and looked_at(node[-1][0])


def _value(given: Any) -> Any:
    """A value, or that of a pair of it and its node."""
    return given[0] if isinstance(given, tuple) else given


def _holds(value: Any) -> tuple[bool, bool]:
    """Whether there is a NaN, and whether there is an inf."""
    return bool(np.isnan(value).any()), bool(np.isinf(value).any())
