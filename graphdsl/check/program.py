"""Checking a whole file: the top level, what is asked for beside it, and the verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from graphdsl.check.activity import analyse
from graphdsl.check.branches import DEAD, LOST
from graphdsl.check.context import DTYPES, Frame, Request, Shared
from graphdsl.check.custom import effects_in_rules
from graphdsl.check.displaced import displaced
from graphdsl.check.leaving import leaving
from graphdsl.check.lint import lint
from graphdsl.check.liveness import liveness
from graphdsl.check.nodes import Node
from graphdsl.check.outline import outline
from graphdsl.check.printed import named_print
from graphdsl.check.probes import leave_rules, report
from graphdsl.check.problems import in_order, nearest
from graphdsl.check.reads import names_set
from graphdsl.check.requested import add_derivatives, params
from graphdsl.check.statements import body
from graphdsl.check.uncalled import check_uncalled
from graphdsl.check.values import Slot, Tensor, Tuple
from graphdsl.core.checkpoints import Lowered, lower
from graphdsl.core.ir import Func, Program, Value
from graphdsl.core.steps import run
from graphdsl.ops.op import Setting
from graphdsl.ops.types import F64
from graphdsl.runtime.garbage import fewer_collections
from graphdsl.source.diagnostic import Diagnostic, Label, ProgramError, WrongRequest
from graphdsl.source.record import dataclass
from graphdsl.source.span import Source, Span
from graphdsl.source.words import counted
from graphdsl.syntax import ast

if TYPE_CHECKING:
    from graphdsl.core.nan_paths import Paths


@dataclass(frozen=True)
class Checked:
    """A program, and what was found that is no error. `of` is the name or text of what `graphdsl grad` differentiates,
    `nodes` by what, where that is every named value. `module` and `request` are what was checked; `segmented`: it has
    loops in segments; `paths`: by which NaNs are followed, where they are."""

    program: Program
    warnings: tuple[Diagnostic, ...]
    module: ast.Module
    request: Request
    nodes: tuple[Node, ...] = ()
    segmented: bool = False
    paths: Paths | None = None

    @property
    def of(self) -> str | None:
        return self.request.of


def check(module: ast.Module, request: Request | None = None) -> Checked:
    """Check a file. Raises `ProgramError` with all independent problems, in source order."""
    request = request or Request()
    with fewer_collections(), displaced(module, dict(request.displaced)):
        if request.wrt is not None:
            request = _with_derivative(module, request)
        with named_print(module, request.of):
            return _watched(_with_all_kept(module, request) if request.every else _check(module, request)[0])


def _watched(checked: Checked) -> Checked:
    """A program that looks for NaNs, if that is asked for."""
    nans = checked.request.nans
    if nans is None:
        return checked
    from graphdsl.core.nan_checks import watch_nans
    from graphdsl.core.nan_paths import Paths

    paths = Paths(checked.program) if nans == "follow" else None  # before it is watched: what watches has no numbers
    watch_nans(checked.program)
    return replace(checked, paths=paths)


def _with_all_kept(module: ast.Module, request: Request) -> Checked:
    """Also what only loops and branches set is kept to the end, unless it could not be (joined, it would have no one type)."""
    names = {name for name in names_set(module.body) if "." not in name}
    try:
        return _check(module, replace(request, wanted=request.wanted | names))[0]
    except ProgramError:
        return _check(module, request)[0]


def recomputing(checked: Checked) -> Checked | None:
    """The same program with its loops in segments, so that derivatives of them need little memory; None where that is no
    help."""
    if checked.segmented:
        return None
    made = check(checked.module, replace(checked.request, recompute=True))
    return made if made.segmented else None


def _with_derivative(module: ast.Module, request: Request) -> Request:
    """A first check finds what is differentiated by default; its name is then kept to the end."""
    of = request.of
    if of is None:
        _, shared = _check(module, replace(request, wrt=None))
        if not shared.scalars:
            end = module.body[-1].span if module.body else Span(module.source, 0, 0)
            message = "there is nothing to differentiate: the program binds and prints no float scalar"
            raise ProgramError(Diagnostic("E0407", message, end, "compute one, as in `loss = sum(y * y)`"))
        of = shared.scalars[-1]
    return replace(request, of=of, wanted=request.wanted | {of, *(request.wrt or params(module))})


def _check(module: ast.Module, request: Request) -> tuple[Checked, Shared]:
    outlined = outline(module)
    shared = Shared(module.source, outlined, request, _settings(module, request), leaving(module.body))
    f = Frame(shared, liveness(module.body, outlined, request.wanted))
    _first_looks(f, module)
    shared.warnings += lint(module, outlined)
    run(body(f, module.body, frozenset(request.wanted)))
    program = Program(
        Func("main", f.block, Span(module.source, 0, len(module.source.text))), _exports(f), f.setting.default_float
    )
    run(check_uncalled(f))
    leave_rules(shared)
    shared.problems.found += effects_in_rules(shared)
    report(shared)
    nodes: tuple[Node, ...] = ()
    if request.wrt is not None and not shared.problems.found:
        nodes = add_derivatives(f, program, request, module)
        if shared.problems.found:
            raise WrongRequest(*shared.problems.found)
    lowered = lower(program, request.recompute, request.in_place) if not shared.problems.found else Lowered()
    if not shared.problems.found and (shared.derives or program.derivatives):
        shared.problems.found += analyse(program, shared.asked, shared.forwards)
    problems = in_order(shared.problems.found)
    errors = [p for p in problems if p.severity == "error"]
    if errors:
        asked = {probe.span.source for probe in request.probes}
        own = [p for p in errors if p.span.source not in asked]
        raise ProgramError(*own) if own else WrongRequest(*errors)
    if twice := lowered.derived_twice():
        return _check(module, replace(request, in_place=request.in_place | twice))
    found = in_order([*problems, *shared.warnings])
    return Checked(program, found, module, request, nodes, lowered.segmented), shared


def _settings(module: ast.Module, request: Request) -> dict[Source, Setting]:
    """What holds in each file; in a condition of a probe, what holds in the program's own."""
    own = next((s.dtype for s in module.body if isinstance(s, ast.Default)), F64.value)
    files = {stmt.span.source: F64.value for stmt in module.body} | {module.source: own} | module.defaults
    files |= {probe.span.source: own for probe in request.probes}
    return {source: Setting(DTYPES[dtype]) for source, dtype in files.items()}


def _first_looks(f: Frame, module: ast.Module) -> None:
    """What is told from the text alone."""
    seen: dict[str, ast.FnDef] = {}
    for stmt in module.body:
        if isinstance(stmt, ast.Default):
            if module.body[0] is not stmt:
                f.error("E0109", "`default` is the first statement of a file", stmt.span)
            if stmt.dtype not in ("f32", "f64"):
                f.error("E0109", "the default float is f32 or f64", stmt.span)
        if isinstance(stmt, ast.FnDef):
            if stmt.name.id in seen:
                f.error("E0203", f"there is a function `{stmt.name.id}` already", stmt.name.span)
            seen[stmt.name.id] = stmt
    _rules(f, module)


def _rules(f: Frame, module: ast.Module) -> None:
    """Each derivative rule belongs to a function, has its arguments, and is the only one."""
    functions = f.shared.outline.functions
    seen: set[str] = set()
    for stmt in module.body:
        if not isinstance(stmt, ast.VjpDef):
            continue
        name = stmt.name.id
        if name not in functions:
            close = nearest(name, list(functions))
            hint = f"did you mean `{close}`?" if close else "a `vjp` is the derivative rule of a `fn` of this file"
            f.error("E0226", f"there is no function `{name}`", stmt.name.span, hint)
            continue
        if name in seen:
            f.error("E0226", f"`{name}` has a derivative rule already", stmt.name.span)
            f.shared.outline.rules.pop(functions[name], None)
        elif len(stmt.params) != len(functions[name].params):
            wanted = counted(len(functions[name].params), "argument")
            message = f"`{name}` has {wanted}, and its `vjp` names {len(stmt.params)}"
            labels = (Label(functions[name].name.span, "the function"),)
            f.error("E0226", message, stmt.name.span, "before `;` come all arguments of the function", labels)
            f.shared.outline.rules.pop(functions[name], None)
        seen.add(name)


def _exports(f: Frame) -> dict[str, tuple[Value, Value | None]]:
    """The tensors that top-level names hold at the end; the parts of a tuple as `t[0]`."""
    exports: dict[str, tuple[Value, Value | None]] = {}
    for name in f.names.names():
        slot = f.names.get(name)
        kept = (name[0] not in "%$" and "." not in name) or name in f.shared.request.wanted
        if slot is not None and slot is not LOST and slot is not DEAD and kept:
            _export(exports, name, slot)
    return exports


def _export(exports: dict[str, tuple[Value, Value | None]], name: str, slot: Slot) -> None:
    match slot.binding:
        case Tensor(value=value):
            exports[name] = value, slot.is_set
        case Tuple(items=items):
            for i, item in enumerate(items):
                _export(exports, f"{name}[{i}]", Slot(item, slot.span, slot.is_set))
