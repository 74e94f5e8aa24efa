"""A graph as text that tells it from every other: what the cache knows it by.

Everything that the code depends on is in it, and nothing else: no names, no places in the source.
"""

from __future__ import annotations

from typing import Any

from graphdsl.core.ir import Apply, Block, Call, Const, Func, Item, Value
from graphdsl.core.steps import Steps, run
from graphdsl.core.structure import form, regions, results
from graphdsl.native.program.sites import Sites
from graphdsl.native.sources import programs_made_by
from graphdsl.ops.types import DType, Size, Type


def fingerprint(main: Func, places: Sites) -> str:
    """The text of a graph and of the functions it calls, and the version of what compiles it."""
    writer = _Writer(places)
    for func in places.funcs:
        run(writer.block(func.body))
    assert places.funcs[0] is main
    return "\n".join([programs_made_by(), *writer.lines])


class _Writer:
    def __init__(self, places: Sites) -> None:
        self.lines: list[str] = []
        self.numbers: dict[Any, int] = {}
        self.places = places
        self.funcs = {f: i for i, f in enumerate(places.funcs)}

    def number(self, thing: Any) -> int:
        return self.numbers.setdefault(thing, len(self.numbers))

    def typed(self, value: Value) -> str:
        return f"{self.number(value)}:{self.type(value.type)}"

    def type(self, type: Type) -> str:
        return type.dtype.value + ",".join(str(d) if isinstance(d, int) else f"s{self.number(d)}" for d in type.shape)

    def block(self, block: Block) -> Steps[None]:
        self.lines.append("(" + " ".join(map(self.typed, block.params)))
        for instr in block.body:
            made = " ".join(map(self.typed, results(instr)))
            self.lines.append(f"{made}={self.instr(instr)}")
            for region in regions(instr):
                yield self.block(region)
        self.lines.append(")" + " ".join(str(self.number(v)) for v in block.yields))

    def instr(self, instr: Any) -> str:
        match instr:
            case Apply(op=op, args=args, attrs=attrs, fails=fails):
                known = ";".join(f"{k}={self.attr(v)}" for k, v in sorted(attrs.items()))
                return f"{op.name} {self.part(args)} {known} {fails:d}"
            case Const(value=value):
                return repr(value)
            case Call(func=func, args=args):
                return f"call {self.funcs[func]} {self.part(args)}"
            case _:
                shape = form(type(instr))
                hidden = {"span", *shape.made, *shape.regions}
                shown = [self.part(getattr(instr, name)) for name in shape.all if name not in hidden]
                return f"{type(instr).__name__} {' '.join(shown)}"

    def attr(self, part: Any) -> str:
        """An attr, whose words matter (those of an index), while those of texts are Python's."""
        match part:
            case str():
                return repr(part)
            case tuple() | list():
                return "[" + " ".join(map(self.attr, part)) + "]"
            case Type():
                return self.type(part)
            case _:
                return self.part(part)

    def part(self, part: Any) -> str:
        match part:
            case Value():
                return str(self.number(part))
            case Item(value=value):
                return f"i{self.number(value)}"
            case tuple() | list():
                return "[" + " ".join(map(self.part, part)) + "]"
            case Size():
                return f"s{self.number(part)}"
            case DType():
                return part.value
            case bool() | int() | float() | None:
                return repr(part)
            case str():
                return "t"  # texts are Python's: code hands over values by place
            case _ if hasattr(part, "types"):  # a record of saved values
                return f"r{self.number(part)}[{' '.join(map(self.type, part.types))}]"
            case _:
                return type(part).__name__
