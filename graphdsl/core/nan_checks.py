"""`--check-nan`: a program is made to look at what it computes, before either mode has it.

After each op with a float result stands a test, and where that is not finite a `NanCheck`; around each derivative stand
`NanWalk`s. The rules of derivatives are not here yet: each mode adds their checks (`rule_check`) where it carries a rule out.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphdsl.core.call_graph import functions
from graphdsl.core.emit import Emit
from graphdsl.core.formula import operand_names
from graphdsl.core.ir import Apply, Block, Derive, If, Instr, Made, NanCheck, NanWalk, Program, Value
from graphdsl.core.rules import Template, Use
from graphdsl.core.structure import regions
from graphdsl.ops.op import Draw, Effect, Op, Pointwise, Scatter, Setting
from graphdsl.ops.signs import OPERATORS


def watch_nans(program: Program) -> None:
    """Let a checked program stop at the op that first makes a NaN or inf."""
    setting = Setting(program.default_float)
    for func in (program.main, *functions(program.main)):
        todo = [func.body]
        while todo:
            block = todo.pop()
            todo += [inner for instr in block.body for inner in regions(instr)]
            watched = Block()
            for instr in block.body:
                _watch(instr, Emit(watched, setting, instr.span), func.derived)
            block.body = watched.body


def looked_at(instr: Apply) -> bool:
    """Whether the results of an op, and of its derivative rules, are looked at: all where they are followed by number."""
    return computes(instr.op) or instr.outs[0].number > 0


def computes(op: Op) -> bool:
    """Whether an op may make a NaN or inf: what only moves elements, draws or reads a file does not."""
    moves = isinstance(op.compute, Pointwise) or (isinstance(op.compute, Scatter) and not op.compute.add)
    return not moves and not isinstance(op.compute, Draw) and op.effect is not Effect.READ


def _watch(instr: Instr, emit: Emit, derived: bool) -> None:
    """Write an instruction with what looks at it. In a function that is part of a derivative, another one is no end."""
    body = emit.block.body
    match instr:
        case Derive(span=span, outs=outs):
            instr.fails = True
            body += [instr] if derived else [NanWalk(span), instr, NanWalk(span, True, outs)]
        case Apply(op=op, args=args, outs=outs, attrs=attrs) if looked_at(instr):
            body.append(instr)
            for out in outs:
                if out.type.dtype.is_float:
                    types, numbers = tuple(a.type for a in args), tuple(a.number for a in args)
                    made = Made(op, attrs, types, out.type, _roles(op, args), numbers, out.number)
                    write_check(emit, NanCheck(instr.span, made, args, out))
        case _:
            body.append(instr)


def _roles(op: Op, args: Sequence[Value]) -> tuple[str, ...]:
    """What an op's operands are called: by their names in the program, else by their places."""
    if len(args) == 1:
        places = ["operand"]
    elif op.name in OPERATORS.values():
        places = ["left", "right"]
    else:
        places = [f"operand {i + 1}" for i in range(len(args))]
    return tuple(arg.name or place for arg, place in zip(args, places, strict=True))


# ---- derivative rules ---------------------------------------------------------------------------------


def rule_check(instr: Apply, operand: int, template: Template) -> Made:
    """What a rule of an op makes, from `g` and those of the operands and the result that it reads."""
    types = tuple(a.type for a in instr.args)
    (out,) = instr.outs
    names = ["cotangent g", *(f"operand {name}" for name in operand_names(instr.op, len(types))), "result y"]
    numbers = [-out.number, *(a.number for a in instr.args), out.number]
    reads = rule_reads(template, len(types))
    roles = tuple(name for name, read in zip(names, reads, strict=True) if read)
    sources = tuple(number for number, read in zip(numbers, reads, strict=True) if read)
    number = -instr.args[operand].number if out.number else 0
    return Made(instr.op, instr.attrs, types, out.type, roles, sources, number, operand)


def rule_reads(template: Template, operands: int) -> list[bool]:
    """Of the cotangent, each operand and the result: whether a rule reads the value."""
    return [True, *(use is Use.VALUE for use in template.uses[-operands - 1 :])]


# ---- tests --------------------------------------------------------------------------------------------


def holds(emit: Emit, value: Value) -> tuple[Value, Value]:
    """Whether there is a NaN in a value, and whether there is an inf."""
    return _any(emit, emit.isnan(value)), _any(emit, emit.isinf(value))


def write_check(emit: Emit, check: NanCheck) -> None:
    """The check where its result is not finite; not of a sum that had a NaN before."""
    wrong = _any(emit, emit.not_(emit.isfinite(check.result)))
    if check.before:
        wrong = emit.and_(wrong, emit.not_(check.before[0]))
    emit.block.body.append(If(check.span, wrong, Block([], [check]), Block(), ()))


def _any(emit: Emit, which: Value) -> Value:
    if which.type.rank:
        which = emit.any(which, axis=None, keepdims=False)
    return which
