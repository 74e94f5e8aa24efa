"""Formulas that lose digits or overflow, where a function computes the same and does not.

They are found by what is computed, also through names and calls, and not inside other built-ins: what an op is written
in has the place of its call.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphdsl.check.advice.subject import Subject, brief, warning
from graphdsl.core.dependence import backwards
from graphdsl.core.ir import Apply, Value
from graphdsl.source.diagnostic import Diagnostic, Label
from graphdsl.source.span import Span
from graphdsl.syntax import ast

_CODE = "W0205"
_LARGEST = frozenset(["max", "maximum", "min", "minimum", "argmax", "argmin", "argsort", "sort"])


def unstable_formulas(s: Subject) -> Iterator[Diagnostic]:
    """A warning for each."""
    shifted = _shifted(s)
    for log in s.applied("log"):
        yield from _log_softmax(s, log)
        yield from _log1p(s, log)
        yield from _logsumexp(s, log, shifted)
    for difference in s.applied("sub"):
        yield from _expm1(s, difference)


def _inner(s: Subject, outer: Apply, value: Value, name: str) -> Apply | None:
    """The op of this name that made a value, if the program wrote both."""
    made = s.applier(value, name)
    return made if made is not None and made.span != outer.span else None


def _log_softmax(s: Subject, log: Apply) -> Iterator[Diagnostic]:
    share = _inner(s, log, log.args[0], "div")
    power, total = (None, None) if share is None else (s.applier(share.args[0], "exp"), s.applier(share.args[1], "sum"))
    whole = None if total is None else s.applier(total.args[0], "exp")
    if power is None or whole is None or power.args[0] is not whole.args[0]:
        return
    place = s.place(log.args[0])
    message = "the logarithm of a softmax is -inf where a probability is too small to be told from 0"
    better = f"`{_log_of(s, place)}` computes it without loss"
    yield warning(_CODE, message, log.span, better, *_elsewhere(log, place, "the softmax"))


def _log_of(s: Subject, softmax: Span) -> str:
    head, bracket, rest = (brief(softmax) or "").partition("softmax(")
    known = head == "nn." or (head == "" and "softmax" not in s.outline.functions)
    return f"{head}log_softmax({rest}" if bracket and known else "log_softmax(…)"


def _log1p(s: Subject, log: Apply) -> Iterator[Diagnostic]:
    for name, what, sign in (("add", "the sum", ""), ("sub", "the difference", "-")):
        total = _inner(s, log, log.args[0], name)
        part = None if total is None else _beside_one(s, total)
        if total is None or part is None or (name == "sub" and part is total.args[0]):
            continue
        labels = _elsewhere(log, s.place(log.args[0]), what)
        power = _inner(s, total, part, "exp") if name == "add" else None
        if power is not None:
            message = "`exp` overflows for large numbers, and the digits of small results are lost beside 1"
            better = f"`softplus({_argument(s, power)})` computes this without loss"
        else:
            message = "the digits of a number near 0 are lost beside 1, before `log` sees them"
            better = f"`log1p({sign}{_operand(s, total, part, sign)})` keeps them"
        yield warning(_CODE, message, log.span, better, *labels)


def _expm1(s: Subject, difference: Apply) -> Iterator[Diagnostic]:
    part = _beside_one(s, difference)
    power = None if part is None else _inner(s, difference, part, "exp")
    if part is None or power is None or s.literal(power.args[0]) is not None:
        return
    sign = "" if part is difference.args[0] else "-"
    message = "`exp` of a number near 0 is near 1, and the difference from 1 loses its digits"
    better = f"`{sign}expm1({_argument(s, power)})` keeps them"
    yield warning(_CODE, message, difference.span, better, *_elsewhere(difference, s.place(part), "`exp`"))


def _logsumexp(s: Subject, log: Apply, shifted: set[Value]) -> Iterator[Diagnostic]:
    total = _inner(s, log, log.args[0], "sum")
    power = None if total is None else _inner(s, total, total.args[0], "exp")
    if total is None or power is None or power.args[0] in shifted:
        return
    node = s.nodes.get(total.span)
    options = node.args[1:] if isinstance(node, ast.CallExpr) and isinstance(node.func, ast.Name) else ()
    args = ", ".join([_argument(s, power), *(brief(a.span) or "…" for a in options)])
    message = "`exp` overflows for large numbers, and where all are far below 0 the sum is 0"
    better = f"`logsumexp({args})` computes this without loss"
    yield warning(_CODE, message, log.span, better, *_elsewhere(log, s.place(log.args[0]), "the sum"))


def _shifted(s: Subject) -> set[Value]:
    """What is computed from something that tells how large elements are: so one makes an `exp` safe by hand."""
    return backwards(s.onwards, [out for instr in s.applied(*_LARGEST) for out in instr.outs])


def _beside_one(s: Subject, total: Apply) -> Value | None:
    """What 1 is added to, or what stands beside 1 in a difference: a float that is no literal, and not a converted int."""
    for one, other in (total.args, total.args[::-1]):
        if s.literal(one) == 1 and s.literal(other) is None and other.type.dtype.is_float:
            made = s.applier(other, "cast")
            return other if made is None or made.args[0].type.dtype.is_float else None
    return None


# ---- words ---------------------------------------------------------------------------------------------


def _elsewhere(outer: Apply, place: Span, what: str) -> list[Label]:
    """A label for what went into an op, where it stands apart."""
    span = outer.span
    inside = place.source is span.source and span.start <= place.start and place.end <= span.end
    return [] if inside else [Label(place, f"{what} is computed here")]


def _argument(s: Subject, call: Apply) -> str:
    """The text of a call's argument."""
    match s.nodes.get(call.span):
        case ast.CallExpr(func=ast.Name(), args=(ast.Arg(value=node), *_)):
            return brief(node.span) or "…"
    return "…"


def _operand(s: Subject, total: Apply, part: Value, sign: str) -> str:
    """The text of an operand, to stand behind a sign."""
    match s.nodes.get(total.span):
        case ast.Binary(left=left, right=right):
            node = left if part is total.args[0] else right
            text = brief(node.span) or "…"
            alone = not sign or text[0] in "(…" or isinstance(node, ast.Name | ast.CallExpr | ast.Index)
            return text if alone else f"({text})"
    return "…"
