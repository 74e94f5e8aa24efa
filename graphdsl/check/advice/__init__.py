"""What a careful reader would say of a right program: the warnings that only `graphdsl check` and `warnings()` give.

Their codes begin with W02. Those that begin with W01 are found on the way to the core, and told by every command. A
warning that may be wrong is worse than none: each kind here says nothing where it is not sure.
"""

from __future__ import annotations

from graphdsl.check.advice.division import cut_quotients
from graphdsl.check.advice.endless import endless_loops
from graphdsl.check.advice.pairs import accidental_pairs
from graphdsl.check.advice.stable import unstable_formulas
from graphdsl.check.advice.subject import Subject
from graphdsl.check.advice.untrained import untrained_params
from graphdsl.check.advice.unused import unused_values
from graphdsl.check.modules import is_standard
from graphdsl.core.ir import Program
from graphdsl.source.diagnostic import Diagnostic
from graphdsl.syntax import ast

KINDS = (unused_values, endless_loops, untrained_params, cut_quotients, unstable_formulas, accidental_pairs)


def advice(module: ast.Module, program: Program) -> list[Diagnostic]:
    """All that is to be said of a checked program; nothing of the modules that come with the language."""
    subject = Subject(module, program)
    found = [warning for kind in KINDS for warning in kind(subject)]
    return [warning for warning in found if not is_standard(warning.span.source)]
