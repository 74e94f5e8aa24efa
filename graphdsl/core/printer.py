"""A program or a graph as text: one line an instruction, with the names of the source and the lines it came from.

    %3.y: f64 = mul(%0.w, %2)                     # 4
    %9.h: f64, %10.n: i64 = for %8 (%5, %6) {     # 7
      |%11.i: i64, %12.h: f64, %13.n: i64|

Values are numbered in order, and show the name that they have in the source. `*` marks what is recorded for derivatives,
`!` what may be a derivative's target or can fail.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from graphdsl.core.call_graph import functions
from graphdsl.core.ir import Apply, Block, Call, Const, Func, If, Item, Program, Value
from graphdsl.core.steps import Steps, run
from graphdsl.core.structure import form, regions, results

_COLUMN = 72  # where the line numbers stand


def show_program(program: Program) -> str:
    """The functions a program uses, then its main."""
    return "\n\n".join(show_func(f) for f in [*functions(program.main), program.main])


def show_func(func: Func) -> str:
    """One function."""
    printer = _Printer()
    lines = [f"fn {func.name}({', '.join(printer.typed(p) for p in func.body.params)}) {{"]
    run(printer.block(func.body, lines, 1))
    lines.append("}")
    return "\n".join(lines)


class _Printer:
    """The numbers given so far."""

    def __init__(self) -> None:
        self.numbers: dict[Value, int] = {}
        self.objects: dict[Any, int] = {}

    def name(self, value: Value) -> str:
        number = self.numbers.setdefault(value, len(self.numbers))
        return f"%{number}.{value.name}" if value.name else f"%{number}"

    def typed(self, value: Value) -> str:
        weak = "weak " if value.type.weak else ""
        marks = ("*" if value.tracked else "") + ("!" if value.leaf else "")
        return f"{self.name(value)}{marks}: {weak}{value.type}"

    def names(self, values: Any) -> str:
        return ", ".join(self.name(v) for v in values)

    def block(self, block: Block, lines: list[str], depth: int) -> Steps[None]:
        for instr in block.body:
            inner = regions(instr)
            made = ", ".join(self.typed(v) for v in results(instr))
            text = "  " * depth + (f"{made} = " if made else "") + self.instr(instr) + (" {" if inner else "")
            lines.append(f"{text:<{_COLUMN}}  # {instr.span.line}")
            for i, region in enumerate(inner):
                if i:
                    lines.append("  " * depth + ("} else {" if isinstance(instr, If) else "} do {"))
                if region.params:
                    lines.append("  " * depth + f"  |{', '.join(map(self.typed, region.params))}|")
                yield self.block(region, lines, depth + 1)
            if inner:
                lines.append("  " * depth + "}")
        if block.yields:
            lines.append("  " * depth + f"yield {self.names(block.yields)}")

    def instr(self, instr: Any) -> str:
        match instr:
            case Apply(op=op, args=args, attrs=attrs, fails=fails):
                known = "".join(f"; {k}={self.part(v)}" for k, v in attrs.items())
                return f"{op.name}({self.names(args)}{known}){' !' if fails else ''}"
            case Const(value=value):
                return f"{value!r}"
            case Call(func=func, args=args):
                return f"call {func.name}({self.names(args)})"
            case _:
                return self.any(instr)

    def any(self, instr: Any) -> str:
        """An instruction without a form of its own: its class and fields."""
        shape = form(type(instr))
        hidden = {"span", "labels", "called", "event", *shape.made, *shape.regions}
        shown = [self.part(getattr(instr, f.name)) for f in fields(instr) if f.name not in hidden]
        return f"{type(instr).__name__.lower()} {' '.join(s for s in shown if s)}".rstrip()

    def part(self, part: Any) -> str:
        match part:
            case Value():
                return self.name(part)
            case Item(value=value, name=name):
                return f"{name}={self.name(value)}"
            case tuple():
                return f"({', '.join(self.part(p) for p in part)})"
            case None:
                return ""
            case str() | int() | float():
                return repr(part)
            case _ if hasattr(part, "message"):  # the kind of a fault
                return str(part.code)
            case _ if type(part).__name__ == "Record":
                return f"record{self.objects.setdefault(part, len(self.objects))}"
            case _:
                return str(getattr(part, "name", part))
