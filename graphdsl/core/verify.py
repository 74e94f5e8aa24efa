"""Is this a legal program? Scoping, types at joins, numbers of params and yields, use of tapes.

Asked by tests after checking and after every pass; a fault found here is ours, never the user's.
"""

from __future__ import annotations

from typing import Any

from graphdsl.core.call_graph import functions
from graphdsl.core.ir import Apply, Block, Call, Convert, Custom, Derive, For, Func, If, Leaf, Program, Value, While
from graphdsl.core.printer import show_func
from graphdsl.core.steps import Steps, run
from graphdsl.core.structure import form, operands, regions, results
from graphdsl.ops.types import BOOL, I64, Size, Type


class Illegal(AssertionError):
    """The program is not one; says where."""


def verify_program(program: Program) -> None:
    """All functions of a checked program, and what it exports."""
    seen = verify_funcs(program.main)
    for name, (value, flag) in program.exports.items():
        if value not in seen or (flag is not None and flag not in seen):
            raise Illegal(f"export `{name}` is not a value of main")


def verify_funcs(main: Func) -> set[Value]:
    """`main` and all it calls; the values that are visible at the end of `main`."""
    for func in functions(main):
        verify_func(func)
    return verify_func(main)


def verify_func(func: Func) -> set[Value]:
    """One function; the values visible at its end."""
    check = _Check(func)
    run(check.block(func.body, set()))
    return check.visible


class _Check:
    def __init__(self, func: Func) -> None:
        self.func = func
        self.defined: set[Value] = set()  # ever
        self.visible: set[Value] = set()  # here
        self.tapes: set[Value] = set()

    def fail(self, what: str, instr: Any = None) -> None:
        where = f" at {type(instr).__name__} of line {instr.span.line}" if instr is not None else ""
        raise Illegal(f"{self.func.name}: {what}{where}\n{show_func(self.func)}")

    def define(self, values: Any, instr: Any = None) -> None:
        for v in values:
            if v in self.defined:
                self.fail(f"{v} is made twice", instr)
            self.defined.add(v)
            self.visible.add(v)

    def block(self, block: Block, outer: set[Value]) -> Steps[None]:
        self.define(block.params)
        here = list(block.params)
        for instr in block.body:
            for v in operands(instr):
                if v not in self.visible:
                    self.fail(f"{v} is not visible", instr)
            self.types(instr)
            self.tape_use(instr)
            for region in regions(instr):
                yield self.block(region, self.visible)
            made = results(instr)
            self.define(made, instr)
            here.extend(made)
        for v in block.yields:
            if v not in self.visible:
                self.fail(f"yielded {v} is not visible", block.body[-1] if block.body else None)
        if block is not self.func.body:
            self.visible.difference_update(here)

    # ---- forms ----

    def types(self, instr: Any) -> None:
        match instr:
            case If(cond=cond, then=then, orelse=orelse, outs=outs):
                self.scalar(cond, BOOL, instr)
                self.join(then.yields, outs, instr)
                self.join(orelse.yields, outs, instr)
                self.require(not then.params and not orelse.params, "a branch has params", instr)
            case While(inits=inits, cond=cond, body=body, outs=outs):
                for values in (cond.params, body.params, body.yields, outs):
                    self.join(inits, values, instr)
                self.require(len(cond.yields) == 1, "a condition yields one value", instr)
                self.scalar(cond.yields[0], BOOL, instr)
            case For(count=count, inits=inits, body=body, outs=outs):
                self.scalar(count, I64, instr)
                self.require(bool(body.params), "a `for` has no trip number", instr)
                self.scalar(body.params[0], I64, instr)
                for values in (body.params[1:], body.yields, outs):
                    self.join(inits, values, instr)
            case Call(func=func, args=args, outs=outs):
                self.join(args, func.body.params, instr)
                self.join(func.body.yields, outs, instr)
            case Custom(rule=rule, args=args, given=given, results=made, outs=outs, through=through):
                self.join(made, outs, instr)
                self.join((*given, *outs, *(args if through else outs)), rule.body.params, instr)
                self.join(rule.body.yields, args, instr)
            case Leaf(arg=arg, out=out):
                self.join((arg,), (out,), instr)
            case Convert(arg=arg, out=out):
                self.require(arg.type.rank == out.type.rank, "a conversion changes the rank", instr)
            case Derive(targets=targets, outs=outs):
                self.require(len(targets) == len(outs), "as many results as targets", instr)
            case Apply(outs=outs):
                self.require(bool(outs), "an op has a result", instr)

    def require(self, holds: bool, what: str, instr: Any) -> None:
        if not holds:
            self.fail(what, instr)

    def scalar(self, value: Value, dtype: Any, instr: Any) -> None:
        self.require(
            value.type.dtype is dtype and not value.type.shape, f"{value} must be a scalar {dtype.value}", instr
        )

    def join(self, sources: Any, targets: Any, instr: Any) -> None:
        self.require(len(sources) == len(targets), f"{len(sources)} values meet {len(targets)}", instr)
        for source, target in zip(sources, targets, strict=True):
            self.require(_fits(source.type, target.type), f"{source} does not fit {target}", instr)

    # ---- tapes ----

    def tape_use(self, instr: Any) -> None:
        """A tape is used where one belongs, and as an argument of a call."""
        here = [getattr(instr, name) for name in form(type(instr)).tapes]
        made, values = results(instr), operands(instr)
        self.tapes.update(v for v in here if v in made)
        for v in here:
            if v not in made:
                values.remove(v)
        for v in () if isinstance(instr, Call) else values:
            self.require(v not in self.tapes, f"the tape {v} is used as a value", instr)


def _fits(source: Type, target: Type) -> bool:
    """Dtypes and ranks are equal; a known dim may meet one that is only known as the program runs."""
    if source.dtype is not target.dtype or source.rank != target.rank:
        return False
    return all(
        s == t or isinstance(s, Size) or isinstance(t, Size) for s, t in zip(source.shape, target.shape, strict=True)
    )
