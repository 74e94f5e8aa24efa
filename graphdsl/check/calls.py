"""Calls: who is called, and calls of ops, whose arguments are bound by the kinds of their parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphdsl.check import names
from graphdsl.check.arguments import match_arguments
from graphdsl.check.context import DTYPES, Frame
from graphdsl.check.dispatch import expression, handles
from graphdsl.check.expect import as_tensor, known
from graphdsl.check.expressions import literal
from graphdsl.check.functions import call_function
from graphdsl.check.sizes import SizeArgs, claim_sizes, remembered, size_argument
from graphdsl.check.values import (
    NONE,
    NOTHING,
    POISON,
    Binding,
    Builtin,
    Closure,
    Named,
    Static,
    Tensor,
    Tuple,
    has_poison,
    kind_name,
)
from graphdsl.core.ir import Value
from graphdsl.core.steps import Steps
from graphdsl.ops.op import REQUIRED, Kind, Op, Param
from graphdsl.source.span import Span
from graphdsl.source.words import counted
from graphdsl.syntax import ast

Args = tuple[ast.Arg, ...]
Form = Callable[[Frame, ast.CallExpr, Args], Any]


@handles(ast.CallExpr)
def call(f: Frame, node: ast.CallExpr) -> Steps[Binding]:
    """A call that is an expression, and so must give something."""
    result: Binding = yield call_any(f, node)
    if result is NOTHING:
        return f.error("E0211", "this function returns nothing, and stands where a value is needed", node.span)
    return result


@handles(ast.ExprStmt)
def expression_statement(f: Frame, stmt: ast.ExprStmt) -> Steps[None]:
    if not isinstance(stmt.value, ast.CallExpr):
        hint = "give it a name, or print it"
        f.error("E0107", "a statement that is an expression must be a call", stmt.span, hint)
        yield expression(f, stmt.value)
        return
    yield call_any(f, stmt.value)


def call_any(f: Frame, node: ast.CallExpr) -> Steps[Binding]:
    """A call, which may give nothing."""
    args = node.args
    match node.func:
        case ast.Name():
            callee = named_callee(f, node.func)
        case ast.Attribute(value=ast.Name() as value) if not names.known(f, value):
            names.unknown(f, value)  # a module, maybe: then the name after it is none of this program's
            yield evaluate_all(f, args)
            return POISON
        case ast.Attribute(value=value, name=name):
            callee = named_callee(f, name)
            args = (ast.Arg(value.span, None, value), *args)
        case _:
            callee = yield expression(f, node.func)
    match callee:
        case Builtin(op=None, name=known_name) if known_name in DTYPES:
            result: Binding = yield cast(f, node, args, known_name)
        case Builtin(op=None, name=known_name):
            form: Any = names.FORMS[known_name]
            result = yield form(f, node, args)
        case Builtin(op=op) if op is not None:
            result = yield call_op(f, node, args, op)
        case Named() | Closure():
            result = yield call_function(f, node, args, callee)
        case _:
            if not has_poison(callee):
                f.error("E0212", f"{kind_name(callee)} cannot be called", node.func.span)
            yield evaluate_all(f, args)
            return POISON
    return result


def named_callee(f: Frame, node: ast.Name) -> Binding:
    """The function that a name before `(` is: a variable that holds one, else a `fn`, else a built-in."""
    slot = names.variable(f, node.id)
    if slot is not None and isinstance(slot.binding, Named | Closure | Builtin):
        return names.use(f, slot, node)
    if (found := names.function(f, node.id)) is not None:
        return found
    if slot is None:
        return names.unknown(f, node)
    if has_poison(slot.binding):
        return POISON
    return f.error("E0212", f"`{node.id}` is {kind_name(slot.binding)}, which cannot be called", node.span)


def evaluate_all(f: Frame, args: Args) -> Steps[None]:
    """Look for problems in the arguments of a call that is wrong already."""
    for arg in args:
        yield expression(f, arg.value)


def cast(f: Frame, node: ast.CallExpr, args: Args, dtype: str) -> Steps[Binding]:
    """`f32(x)`"""
    found = match_arguments(f, f"`{dtype}`", node.span, args, ("x",))
    if found is None:
        yield evaluate_all(f, args)
        return POISON
    x = found["x"][0].value
    binding: Binding = yield expression(f, x)
    value = as_tensor(f, binding, x.span, "what is cast")
    return POISON if value is None else f.apply("cast", node.span, (value,), (x.span,), dtype=DTYPES[dtype])


# ---- ops ----------------------------------------------------------------------------------------------


class OpArgs:
    """The arguments of a call of an op, as they become operands and attrs."""

    def __init__(self) -> None:
        self.values: dict[str, list[Value | None]] = {}
        self.spans: dict[str, list[Span]] = {}
        self.attrs: dict[str, Any] = {}
        self.sizes: SizeArgs | None = None
        self.good = True


def call_op(f: Frame, node: ast.CallExpr, args: Args, op: Op) -> Steps[Binding]:
    params = op.params or ()
    last = params[-1].name if params and params[-1].kind in (Kind.SIZES, Kind.OPERANDS) else None
    optional = frozenset(p.name for p in params if p.default is not REQUIRED or p.kind is Kind.SIZES)
    found = match_arguments(f, f"`{op.name}`", node.span, args, [p.name for p in params], optional, last)
    if found is None:
        yield evaluate_all(f, args)
        return POISON
    given = OpArgs()
    by_arg = {id(a): p for p in params for a in found.get(p.name, [])}
    done: set[str] = set()
    for arg in args:
        param = by_arg[id(arg)]
        if param.name not in done:
            done.add(param.name)
            yield argument(f, op, param, found[param.name], given)
    if not given.good:
        return POISON
    return apply_op(f, node.span, op, given)


def argument(f: Frame, op: Op, param: Param, args: list[ast.Arg], given: OpArgs) -> Steps[None]:
    """Evaluate the argument (for sizes: the arguments) for one parameter."""
    node = args[0].value
    match param.kind:
        case Kind.TENSOR:
            binding: Binding = yield expression(f, node)
            value = None
            if binding is not NONE or param.default is not None:
                value = as_tensor(f, binding, node.span, f"`{param.name}` of `{op.name}`")
                given.good &= value is not None
            given.values[param.name], given.spans[param.name] = [value], [node.span]
        case Kind.TENSORS:
            yield _sequence(f, op, param, node, given)
        case Kind.OPERANDS:
            yield _operands(f, param, [a.value for a in args], f"an operand of `{op.name}`", given)
        case Kind.SIZES:
            sizes = given.sizes = SizeArgs(param.name)
            yield size_argument(f, [a.value for a in args], sizes)
            given.good &= sizes.good
        case _:
            given.good &= bool((yield _static(f, op, param, node, given)))


def _sequence(f: Frame, op: Op, param: Param, node: ast.Expr, given: OpArgs) -> Steps[None]:
    """A list or a tuple whose items are operands."""
    what = f"an item of `{param.name}`"
    if isinstance(node, ast.ListLit | ast.TupleLit):
        yield _operands(f, param, node.items, what, given)
        return
    binding: Binding = yield expression(f, node)
    values: list[Value | None] = [None]
    if isinstance(binding, Tuple):
        values = [as_tensor(f, item, node.span, what) for item in binding.items]
    elif not has_poison(binding):
        hint = "write the tensors as a list: `[a, b]`"
        f.error("E0213", f"`{op.name}` takes a list of tensors, not {kind_name(binding)}", node.span, hint)
    given.good &= None not in values
    given.values[param.name], given.spans[param.name] = values, [node.span] * len(values)


def _operands(f: Frame, param: Param, nodes: Sequence[ast.Expr], what: str, given: OpArgs) -> Steps[None]:
    """Expressions each of which is an operand."""
    values: list[Value | None] = []
    for node in nodes:
        binding: Binding = yield expression(f, node)
        values.append(as_tensor(f, binding, node.span, what))
    given.good &= None not in values
    given.values[param.name], given.spans[param.name] = values, [node.span for node in nodes]


def _static(f: Frame, op: Op, param: Param, node: ast.Expr, given: OpArgs) -> Steps[bool]:
    """An argument that must be known when the program is checked."""
    binding, value = yield known(f, node)
    if binding is NONE and (param.default is None or param.kind is Kind.AXES):
        given.attrs[param.name] = None
        return True
    if has_poison(binding):
        return False
    if value is None:
        message = f"`{param.name}` of `{op.name}` must be known when the program is checked"
        f.error("E0320", message, node.span, "a literal, a const, or arithmetic on these")
        return False
    if not _fits(param, value):
        wanted = "a bool" if isinstance(param.default, bool) else "an int"
        if param.kind is Kind.AXES:
            wanted = "an int or a list of ints"
        if param.kind is Kind.TEXT:
            wanted = "a plain string"
        f.error("E0315", f"`{param.name}` of `{op.name}` must be {wanted}", node.span)
        return False
    given.attrs[param.name] = value
    return True


def _fits(param: Param, value: Static) -> bool:
    if param.kind is Kind.AXES and isinstance(value, tuple):
        return all(type(v) is int for v in value)
    if param.kind is Kind.TEXT:
        return isinstance(value, str)
    match param.default:
        case bool():
            return isinstance(value, bool)
        case float():
            return type(value) in (int, float)
        case str():
            return isinstance(value, str)
    return type(value) is int


def apply_op(f: Frame, span: Span, op: Op, given: OpArgs) -> Binding:
    """Put operands and attrs together in the order of the parameters."""
    values: list[Value | None] = []
    spans: list[Span] = []
    for param in op.params or ():
        if param.kind in (Kind.TENSOR, Kind.TENSORS, Kind.OPERANDS):
            if param.name in given.values:
                values += given.values[param.name]
                spans += given.spans[param.name]
            else:
                values.append(_default(f, span, param))
                spans.append(span)
        elif param.kind is Kind.SIZES:
            sizes = given.sizes or SizeArgs(param.name)
            given.attrs[param.name] = tuple(sizes.entries)
        else:
            given.attrs.setdefault(param.name, param.default)
    if given.sizes is not None:
        values += given.sizes.operands
        spans += given.sizes.spans
    result = f.apply(op, span, values, spans, **given.attrs)
    if op.name in ("shape", "size") and isinstance(values[0], Value):
        remembered(f, op.name, values[0], result, given.attrs.get("axis"))
    if given.sizes is not None and isinstance(result, Tensor) and op.name != "reshape":
        claim_sizes(f, result.value, given.sizes)
    return result


def _default(f: Frame, span: Span, param: Param) -> Value | None:
    if param.default is None:
        return None
    return literal(f, param.default, span).value


def invoke_op(f: Frame, span: Span, op: Op, bindings: list[Binding]) -> Binding:
    """Call an op that was passed as a function: all its arguments are tensors."""
    params = op.params or ()
    given = OpArgs()
    if len(bindings) > len(params):
        return f.error("E0209", f"`{op.name}` takes at most {counted(len(params), 'argument')}", span)
    for param, binding in zip(params, bindings, strict=False):
        value = as_tensor(f, binding, span, f"`{param.name}` of `{op.name}`") if param.kind is Kind.TENSOR else None
        if value is None:
            if param.kind is not Kind.TENSOR:
                f.error("E0213", f"`{op.name}` cannot be passed as a function here", span)
            return POISON
        given.values[param.name], given.spans[param.name] = [value], [span]
    missing = [p.name for p in params[len(bindings) :] if p.default is REQUIRED and p.kind is not Kind.SIZES]
    if missing:
        return f.error("E0209", f"`{op.name}` needs an argument `{missing[0]}`", span)
    return apply_op(f, span, op, given)
