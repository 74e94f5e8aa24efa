"""What there is to say of a built-in, an operator or an op, read from the tables that the checker and both modes use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import graphdsl.check  # noqa: F401  (fills the table of forms)
from graphdsl.check.context import DTYPES
from graphdsl.check.names import FORMS, PLANNED
from graphdsl.check.operators import EARLY
from graphdsl.core.emit import Emit
from graphdsl.core.formula import operand_names, rule_formula
from graphdsl.core.ir import Apply, Block, Value
from graphdsl.core.rules import NOWHERE
from graphdsl.ops.op import REQUIRED, Composite, Effect, Elementwise, Kind, Op, Param, Setting, TypeProblem
from graphdsl.ops.signs import OPERATORS, UNARY
from graphdsl.ops.table import OPS
from graphdsl.ops.types import BOOL, F64, I64, Size, Type
from graphdsl.source.record import dataclass
from graphdsl.syntax.lalr import tables

LANGUAGE = "language"  # the heading of what the checker writes out
INNER = "used by the others; no program names them"
_SETTING = Setting(F64)


@dataclass(frozen=True)
class Form:
    """A built-in that the checker writes out (its function says what it does), or an operator that stops early."""

    name: str
    signature: str
    doc: str


def found(name: str) -> list[Op | Form]:
    """What a program may mean by a name or an operator."""
    signs = [OPS[table[name]] for table in (OPERATORS, UNARY) if name in table]
    if name in OPS or signs:
        return [OPS[name]] if name in OPS else list(signs)
    if name in DTYPES:
        return [OPS["cast"]]
    return [form for form in forms() if form.name == name]


def names() -> list[str]:
    """All that `found` knows."""
    return [*OPS, *OPERATORS, *UNARY, *DTYPES, *(form.name for form in forms())]


def elsewhere(name: str) -> str | None:
    """Why there is nothing to say of a name that a program may hold."""
    if name in PLANNED:
        return f"`{name}` is not here yet."
    if name in tables().vocabulary.words:
        return f"`{name}` is a word of the language, which is no built-in."
    if name in ("zip", "enumerate"):
        return f"`{name}` stands only in a `for`: `for … in {name}(…)`."
    return None


def forms() -> list[Form]:
    """What is no op."""
    written = {**EARLY, **{name: form.__doc__ or "" for name, form in FORMS.items() if name not in OPS}}
    made = []
    for name, text in written.items():
        sentence = " ".join(text.partition("\n\n")[0].split())
        call, _, doc = sentence.partition("`: ")
        made.append(Form(name, call.strip("`") or name, doc))
    return made


def heading(op: Op) -> str:
    """The group that an op stands in."""
    return op.group if op.params is not None or _signs(op) else INNER


# ---- how it is written --------------------------------------------------------------------------------


def signature(op: Op) -> str:
    """How it is written in a program."""
    if op.params is not None:
        takes_rest = bool(op.params) and op.params[-1].kind in (Kind.SIZES, Kind.OPERANDS)
        star = len(op.params) - 1 if takes_rest else None
        return f"{op.name}({', '.join('*' * (i == star) + _param(p) for i, p in enumerate(op.params))})"
    return ", ".join(_signs(op)) or op.name


def _signs(op: Op) -> list[str]:
    two = [f"a {sign} b" for sign, name in OPERATORS.items() if name == op.name]
    one = [f"{sign}{' ' * sign.isalpha()}x" for sign, name in UNARY.items() if name == op.name]
    conversions = [f"{dtype}(x)" for dtype in DTYPES] if op.name == "cast" else []
    return two + one + conversions


def _param(param: Param) -> str:
    if param.default is REQUIRED:
        return param.name
    return f"{param.name}={str(param.default).lower() if param.default in (None, True, False) else param.default}"


# ---- what it does -------------------------------------------------------------------------------------


def details(op: Op) -> Iterator[tuple[str, str]]:
    """Labels and texts; a label that is empty goes on with the one before."""
    kind = type(op.compute).__name__.lower()
    yield "computed", "from other ops, where the call is checked" if isinstance(op.compute, Composite) else kind
    if isinstance(op.compute, Elementwise):
        yield "error", "none" if op.bound == 0 else f"at most {op.bound} ulp"
    for number, fault in enumerate(op.faults):
        yield "" if number else "can fail", f"{fault.code} {fault.text(*'………………')}"
    if op.effect is not Effect.NONE:
        yield "effect", {Effect.RANDOM: "draws from the random stream", Effect.READ: "reads a file"}[op.effect]
    rules = list(derivatives(op))
    for operand, text in rules:
        yield f"to {operand}", text
    if not rules:
        yield "derivative", _whole_derivative(op)


def _whole_derivative(op: Op) -> str:
    """What is said where there is no formula for each operand."""
    if op.vjp is not None:
        return "each operand gets its part of `g`"
    return "that of the ops that it is made of" if differentiable(op) else "none"


def differentiable(op: Op) -> bool:
    """Whether a gradient may go through."""
    if not isinstance(op.compute, Composite):
        return op.vjp is not None
    sample = _sample(op, operand_names(op))
    if sample is None:
        return True
    block, made = sample
    floats = any(value.type.dtype.is_float for value in (made if isinstance(made, tuple) else (made,)))
    return floats and any(instr.op.vjp is not None for instr in block.body if isinstance(instr, Apply))


def derivatives(op: Op) -> Iterator[tuple[str, str]]:
    """For each operand, its contribution from the cotangent `g` of the result `y`, as a formula."""
    if not isinstance(op.vjp, tuple):
        return
    operands = operand_names(op)
    for i, rule in enumerate(op.vjp):
        if rule is not None:
            yield operands[i], _formula(op, i, operands) or "its rule depends on how it is called"


def _formula(op: Op, i: int, operands: Sequence[str]) -> str | None:
    """The rule for operand `i`, traced on a sample (None: it needs to know more than that)."""
    sample = _sample(op, operands)
    if sample is None:
        return None
    made = sample[0].body[-1]
    if not isinstance(made, Apply) or made.op is not op or not made.outs[0].type.dtype.is_float:
        return None
    return rule_formula(op, i, [a.type for a in made.args], made.outs[0].type, made.attrs)


def _sample(op: Op, operands: Sequence[str]) -> tuple[Block, Any] | None:
    """A call of the op with plain operands: the instructions, and what it gives (None: there is no simple call)."""
    attrs = {p.name: p.default for p in op.params or () if p.kind in (Kind.AXES, Kind.STATIC, Kind.TEXT)}
    if REQUIRED in attrs.values() or any(p.kind in (Kind.SIZES, Kind.TENSORS) for p in op.params or ()):
        return None
    n, m, k = Size("n"), Size("m"), Size("k")
    shapes = [[(n, m)] * len(operands), [(n, m), (m, k), (n, k)][: len(operands)]]
    for sizes, dtypes in product(shapes, product((F64, BOOL, I64), repeat=len(operands))):
        block = Block([Value(Type(d, s), name) for d, s, name in zip(dtypes, sizes, operands, strict=False)])
        try:
            return block, Emit(block, _SETTING, NOWHERE).apply(op, *block.params, **attrs)
        except TypeProblem:
            continue
        except Exception:  # it asks for more than an operand; this is only for show
            return None
    return None
