"""Probes: what shows each value that a name is given, as `graphdsl run --probe` asks for.

They are written into the core where the name is set, as a `print` is, so that both modes have them. A probe changes nothing
of what the program computes: its condition makes no name live longer than the program does, and may have no effect and no
way to fail. Where something in the condition has no value, the probe shows nothing, and a warning says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from graphdsl.check import names
from graphdsl.check.branches import DEAD, LOST
from graphdsl.check.context import Frame, Probe, Shared
from graphdsl.check.expect import condition
from graphdsl.check.printing import default_typed, parts_of
from graphdsl.check.reads import reads
from graphdsl.check.values import Binding, Slot, Tensor, has_poison, kind_name
from graphdsl.core.call_graph import functions, has_recursion
from graphdsl.core.effects import outward, silence
from graphdsl.core.ir import Apply, Block, Const, Custom, Derive, Fail, Func, If, Item, Print, Value, While
from graphdsl.core.steps import Steps
from graphdsl.core.structure import walk
from graphdsl.ops import faults
from graphdsl.source.diagnostic import Diagnostic, Label
from graphdsl.source.span import Span
from graphdsl.syntax import ast


def watch(f: Frame, targets: Iterable[ast.Name]) -> Steps[None]:
    """Write the probes of names that were set just now."""
    if not f.shared.request.probes or f.unreached:
        return
    for node in {target.id: target for target in targets}.values():
        slot = f.names.get(node.id)
        if slot is None or has_poison(slot.binding) or node.span.source is not f.shared.source:
            continue
        for probe in f.shared.request.probes:
            if probe.name != node.id:
                continue
            if f.shared.in_rule:
                f.shared.probed.hide(probe, node.span, "a derivative rule sets it there, and may have no effect")
            else:
                yield _show(f, probe, node, slot.binding)


def _show(f: Frame, probe: Probe, node: ast.Name, binding: Binding) -> Steps[None]:
    """The probe of one value, under its condition."""
    parts = [(part, name) for part, name in parts_of(binding, node.id, "{}[{}]")]
    if not all(isinstance(part, Tensor) for part, _ in parts):
        f.shared.probed.hide(probe, node.span, f"`{node.id}` is {kind_name(binding)} there")
        return
    event: Literal["stats", "probe"] = "stats" if probe.stats else "probe"
    shown = Block()
    outside = f.open(shown)
    items = [Item(default_typed(f, p.value, node.span), name) for p, name in parts if isinstance(p, Tensor)]
    shown.body.append(Print(node.span, tuple(items), event))
    f.open(outside)
    if probe.condition is None:
        f.block.body += shown.body
    elif (reason := _lacking(f, probe.condition)) is not None:
        f.shared.probed.hide(probe, node.span, reason)
        return
    else:
        yield _if(f, probe.condition, node, shown)
    f.shared.probed.show(probe, node.span)


# ---- conditions ---------------------------------------------------------------------------------------


def _variables(f: Frame, cond: ast.Expr) -> list[str]:
    """The names of variables that a condition reads, itself or by the functions that it calls."""
    known = (name for name in sorted(f.shared.outline.names_read(reads(cond))))
    return [n for n in known if names.variable(f, n) is not None or names.function(f, n) is None]


def _lacking(f: Frame, cond: ast.Expr) -> str | None:
    """Why a condition cannot be tested here; None: it can."""
    for name in _variables(f, cond):
        slot = names.variable(f, name)
        if slot is None:
            return f"`{name}` has no value there"
        if slot is LOST or slot is DEAD:
            return f"the value of `{name}` is not kept up to there, as nothing in the program reads it any more"
    return None


def _if(f: Frame, cond: ast.Expr, node: ast.Name, shown: Block) -> Steps[None]:
    """`shown`, where the condition holds; it does not where something in it is not set."""
    slots = {name: slot for name in _variables(f, cond) if (slot := names.variable(f, name)) is not None}
    flags = [slot.is_set for slot in slots.values() if slot.is_set is not None]
    mark, outer, problems = f.names.mark(), f.outer, f.shared.problems.mark()
    settled = {name: Slot(slot.binding, slot.span) for name, slot in slots.items()}
    for name in settled.keys() & set(f.names.names()):
        f.names.set(name, settled[name])
    if outer is not None:
        f.outer = {**outer, **{name: settled[name] for name in settled.keys() & outer.keys()}}
    test = Block()
    outside = f.open(test)
    with f.inside(cond.span.source):
        value: Value | None = yield condition(f, cond, "the condition of a probe")
    f.open(outside)
    f.names.rollback(mark)
    f.outer = outer
    if value is not None:
        problem = _effect(test, node.span)
        if problem is not None:
            f.error("E0231", f"the condition of a probe {problem}", cond.span, "it may change nothing of the run")
        test.body.append(If(cond.span, value, shown, Block(), ()))
        _nested(f, flags, test, node.span)
    label = Label(node.span, f"`{node.id}` is set here")
    f.shared.problems.found += [_with_label(p, label) for p in f.shared.problems.take(problems)]


def _nested(f: Frame, flags: list[Value], test: Block, span: Span) -> None:
    """The instructions of `test` where all flags are true."""
    for flag in reversed(flags):
        test = Block([], [If(span, flag, test, Block(), ())])
    f.block.body += test.body


def _with_label(problem: Diagnostic, label: Label) -> Diagnostic:
    return Diagnostic(problem.code, problem.message, problem.span, problem.hint, (*problem.labels, label))


def _effect(test: Block, span: Span) -> str | None:
    """What a condition does beside being true or false; None: nothing."""
    func = Func("", test, span)
    if next(outward(func), None) is not None:
        return "may not print, save, load or draw"
    if has_recursion(func):
        return "may not call a function that calls itself"
    for inner in (func, *functions(func)):
        literals = {i.out: i.value for i in walk(inner.body) if isinstance(i, Const)}
        for instr in walk(inner.body):
            match instr:
                case While():
                    return "may not run a loop that may not end"
                case Derive() | Custom():
                    return "may not take a derivative"
                case Fail():
                    return "may not fail"
                case Apply(fails=True) if not _divides(instr, literals):
                    return f"may not fail, as `{instr.op.name}` may"
    return None


def _divides(instr: Apply, literals: Mapping[Value, object]) -> bool:
    """Whether it only fails where a divisor is 0, and is divided by another literal."""
    return instr.op.faults == (faults.DIVISION,) and bool(literals.get(instr.args[1], 0))


# ---- what came of it ----------------------------------------------------------------------------------


def leave_rules(shared: Shared) -> None:
    """A derivative rule that calls its own function calls one that is watched: it may have no effect, not even these."""
    for instance in shared.rules if shared.request.probes else ():
        for gone in silence(instance.func, lambda instr: instr.event != "print"):
            shared.probed.drop(gone.span, "a derivative rule runs this too there")


def report(shared: Shared) -> None:
    """A warning for each place where a probe shows nothing; an error where it shows nothing anywhere."""
    for probe in shared.request.probes:
        hidden = shared.probed.hidden(probe)
        if not hidden:
            continue
        if not shared.probed.shown(probe):
            labels = tuple(Label(span, reason) for span, reason in hidden.items())
            message = f"this probe shows nothing of `{probe.name}`"
            shared.problems.error("E0230", message, probe.span, labels=labels)
            continue
        for span, reason in hidden.items():
            message = f"the probe of `{probe.name}` shows nothing here: {reason.replace(' there', '')}"
            shared.warnings.append(Diagnostic("W0103", message, span, severity="warning"))
