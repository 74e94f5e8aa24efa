"""`--check-nan` in a graph: looks at what a derivative rule of an op gives."""

from __future__ import annotations

from collections.abc import Sequence

from graphdsl.core.emit import Emit
from graphdsl.core.ir import Apply, NanCheck, Value
from graphdsl.core.nan_checks import holds, rule_check, rule_reads, write_check
from graphdsl.core.rules import Template


class RuleCheck:
    """For operand `i` of an op, whose running sum is `before` (None: none yet). To be made before the rule is written, which
    may change that sum in place."""

    def __init__(self, emit: Emit, instr: Apply, i: int, before: Value | None) -> None:
        self.emit = emit
        self.instr = instr
        self.operand = i
        self.before = () if before is None else holds(emit, before)

    def write(self, template: Template, given: Sequence[Value], total: Value) -> None:
        """The check of the sum with the contribution; `given` are the cotangent, the operands and the result."""
        reads = rule_reads(template, len(self.instr.args))
        args = tuple(value for value, read in zip(given, reads, strict=True) if read)
        made = rule_check(self.instr, self.operand, template)
        write_check(self.emit, NanCheck(self.emit.span, made, args, total, self.before))
