"""From the core to Python: one function for each function of the program.

A value is the local `v7` (or a literal), its node the local `n7`. Regions become Python's own `if`, `while` and `for`;
regions nested deeper than Python allows become functions of their own. The text is written once and says everything:
nothing is looked up as it runs but kernels, by global name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphdsl.core import ir
from graphdsl.core.ir import Block, Instr, Value
from graphdsl.core.steps import Steps
from graphdsl.core.structure import results
from graphdsl.eager import instructions
from graphdsl.eager.liveness import Plan, may_fail
from graphdsl.eager.module import TRIPS, Around, Lines, Module
from graphdsl.eager.records import Recorder
from graphdsl.source.record import dataclass, field

DEEPEST = 12  # regions in one Python function; CPython refuses 20 nested loops and 100 levels of indentation


@dataclass
class Scope:
    """One Python function: its lines, and what it needs from outside."""

    lines: Lines = field(default_factory=Lines)
    level: int = 0
    free: dict[Value, None] = field(default_factory=dict)


class FunctionWriter:
    """Writes one function of the program, or one derivative rule, under `name`."""

    def __init__(self, module: Module, plan: Plan, recorder: Recorder, name: str) -> None:
        self.module = module
        self.plan = plan
        self.recorder = recorder
        self.name = name
        self.scope = Scope()
        self.home: dict[Value, Scope] = {}
        self.literals: dict[Value, str] = {}  # expressions that stand for a value wherever it is read
        self.numbers: dict[Value, Any] = {}  # what literals of the program are
        self.unrecorded: set[Value] = set()  # tracked, but certainly without a node
        self.moved: set[Value] = set()  # handed over to what overwrites them

    # ---- names ----

    def value(self, value: Value) -> str:
        """The expression that reads a value."""
        literal = self.literals.get(value)
        return literal if literal is not None else f"v{self._local(value)}"

    def node(self, value: Value) -> str:
        """The expression that reads a value's node."""
        if not self.recorder.tracks(value) or value in self.unrecorded:
            return "None"
        return f"n{self._local(value)}"

    def _local(self, value: Value) -> int:
        if self.home.get(value) is not self.scope:
            self.scope.free[value] = None
        return self.plan.names[value]

    def target(self, value: Value) -> str:
        """The local to which a new value is assigned."""
        self.home[value] = self.scope
        return f"v{self.plan.names[value]}"

    def node_target(self, value: Value) -> str:
        """The local to which its node is assigned."""
        self.home[value] = self.scope
        return f"n{self.plan.names[value]}"

    # ---- lines ----

    def add(self, line: str, instr: Instr | None = None) -> None:
        """Write a line, which belongs to `instr`."""
        self.scope.lines.add(line, instr)

    def assign(self, out: Value, expression: str, node: str, instr: Instr) -> None:
        """Write a value and, where it is tracked, its node."""
        self.add(f"{self.target(out)} = {expression}", instr)
        self.record(out, node, instr)

    def record(self, out: Value, node: str, instr: Instr) -> None:
        """Write the node of a tracked value."""
        if not self.recorder.tracks(out):
            return
        if node == "None":
            self.unrecorded.add(out)
        else:
            self.add(f"{self.node_target(out)} = {node}", instr)

    def drop(self, values: Sequence[Value] | set[Value], kept: Sequence[Value]) -> None:
        """Forget values that end here, where that frees something; `kept` may have taken over their names."""
        names = self.plan.names
        taken = {names.get(v) for v in kept}
        gone: dict[str, None] = {}
        for v in values:
            if self.home.get(v) is not self.scope or names[v] in taken:
                continue
            if v.type.rank > 0 and v not in self.moved and v not in self.literals:
                gone[f"v{names[v]}"] = None
            if self.recorder.tracks(v) and v not in self.unrecorded:
                gone[f"n{names[v]}"] = None
        if gone:
            self.add(f"del {', '.join(gone)}")

    # ---- functions ----

    def write(self, func: ir.Func, keep: Sequence[Value] = ()) -> Steps[None]:
        """The function's text, added to the module; it returns what it yields and the values to keep."""
        params = []
        for p in func.body.params:
            params.append(self.target(p))
            if self.recorder.tracks(p):
                params.append(self.node_target(p))
        for p in func.body.params:  # in order: the last one gives back what it got first
            if self.recorder.tracks(p):
                self.add(f"{self.node(p)} = {self.recorder.enter(self.node(p), p)}")
        yield self.block(func.body)
        kept = [self.value(v) for v in keep]
        self.add(f"return {self.tuple(self.returned(func.body) + kept)}")
        self.module.function(self.name, params, self.scope.lines)

    def returned(self, block: Block) -> list[str]:
        """What a block yields, with the nodes."""
        parts = []
        for i, value in enumerate(block.yields):
            parts.append(self.value(value))
            if self.recorder.tracks(value):
                parts.append(self.passed(value, i in self.plan.shared[block]))
        return parts

    def passed(self, value: Value, shared: bool) -> str:
        """The node under which a join passes a value on: its own where this is the value's last use."""
        node = self.node(value)
        return self.recorder.passing(node, value.type) if node != "None" and self.recorder.splits(shared) else node

    @staticmethod
    def tuple(parts: Sequence[str]) -> str:
        """The display of a tuple, also of one item or none."""
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    # ---- blocks ----

    def block(self, block: Block, owner: Instr | None = None) -> Steps[None]:
        """The instructions of a block that are needed; `owner` is the region whose block it is."""
        self.drop(self.plan.dies_on_entry.get(block, ()), ())
        if self.module.counts_ops:
            ops = sum(isinstance(instr, ir.Apply) and instr not in self.plan.unused for instr in block.body)
            self.add(f"rt.ops += {ops}")
        if self.module.limited and (first := owner or next(iter(block.body), None)) is not None:
            self.add("within(rt)", first)
        for instr in block.body:
            if instr in self.plan.unused:
                continue
            match instr:
                case ir.If():
                    yield self.region(instr, self.branch(instr))
                case ir.While() | ir.For():
                    yield self.region(instr, self.loop(instr))
                case _:
                    instructions.write(self, instr)
            self.drop(self.plan.dies_after.get(instr, ()), results(instr))

    def region(self, instr: ir.If | ir.While | ir.For, steps: Steps[None]) -> Steps[None]:
        """A region, in a function of its own where Python could not nest it."""
        if self.scope.level < DEEPEST:
            yield steps
            return
        outer, self.scope = self.scope, Scope()
        yield steps
        inner = self.scope
        made = self.locals(instr.outs)
        self.add(f"return {self.tuple(made)}")
        self.scope = outer
        name = self.module.name(f"{self.name}_")
        params = self.locals(list(inner.free))
        self.module.function(name, params, inner.lines)
        for v in instr.outs:
            self.home[v] = self.scope
        self.add(f"{self.tuple(made) if made else '_'} = {name}({', '.join(params)})", instr)
        self.drop(self.plan.dies_within.get(instr, ()), instr.outs)

    def locals(self, values: Sequence[Value]) -> list[str]:
        """The locals of these values and of their nodes."""
        names = []
        for v in values:
            if v not in self.literals:
                names.append(self.value(v))
            if self.node(v) != "None":
                names.append(self.node(v))
        return list(dict.fromkeys(names))

    def branch(self, instr: ir.If) -> Steps[None]:
        """`if` and `else`."""
        self.add(f"if {self.value(instr.cond)}:", instr)
        yield self.indented(instr.then, instr.outs, instr)
        self.add("else:")
        yield self.indented(instr.orelse, instr.outs, instr)

    def indented(self, block: Block, outs: Sequence[Value], instr: Instr) -> Steps[None]:
        """A block whose yields go to `outs`."""
        lines = self.scope.lines
        lines.depth += 1
        self.scope.level += 1
        before = len(lines.text)
        yield self.block(block, instr)
        self.move(outs, block.yields, self.plan.shared[block], instr)
        if len(lines.text) == before:
            self.add("pass")
        lines.depth -= 1
        self.scope.level -= 1

    def loop(self, instr: ir.While | ir.For) -> Steps[None]:
        """`while` or `for`: carried values are locals that the body assigns anew."""
        self.recorder.carry(instr)
        if instr.before is not None:  # kept for a fault, however long it is read
            self.add(f"b{self.plan.names[instr.before]} = {self.value(instr.before)}")
        self.move(instr.outs, instr.inits, self.plan.shared[instr], instr)
        params, lines = instr.body.params, self.scope.lines
        around = lines.around
        if isinstance(instr, ir.For):
            index = self.target(params[0])
            self.add(f"for {index} in range({self.value(instr.count)}):", instr)
            self.enter(instr, index)
        else:
            self.home.update(dict.fromkeys(instr.cond.params, self.scope))
            yield self.condition(instr)
        self.home.update(dict.fromkeys(params, self.scope))
        yield self.indented(instr.body, instr.outs, instr)
        lines.around = around

    def enter(self, loop: ir.While | ir.For, counter: str) -> None:
        """What follows is inside `loop`, whose trips this local counts."""
        if loop.called is not None:
            before = None if loop.before is None else f"b{self.plan.names[loop.before]}"
            self.scope.lines.around += (Around(loop, counter, before),)

    def condition(self, instr: ir.While) -> Steps[None]:
        """`while` with its condition, which is one expression where it can be. Where a trip may fail, they are counted."""
        lines = self.scope.lines
        counted = self.module.limited or may_fail(instr)
        if counted:
            counter = f"t{self.plan.fresh()}"
            self.add(f"{counter} = {TRIPS}")
            self.add(f"for _ in {counter}:", instr)
            self.enter(instr, counter)
        else:
            self.add("while True:", instr)
        lines.depth += 1
        start = len(lines.text)
        yield self.block(instr.cond, instr)
        condition = self.value(instr.cond.yields[0])
        assigned = "\t" * lines.depth + f"{condition} = "
        origin: Instr | None = instr
        if len(lines.text) > start and lines.text[-1].startswith(assigned):
            line, origin = lines.take_back()
            condition = line.removeprefix(assigned)
        if len(lines.text) == start and not counted:
            lines.take_back()
            lines.depth -= 1
            self.add(f"while {condition}:", origin)
        else:
            self.add(f"if not ({condition}): break", origin)
            lines.depth -= 1

    def move(self, outs: Sequence[Value], values: Sequence[Value], shared: set[int], instr: Instr) -> None:
        """Assign values to what takes them, all at once; drop the locals they came from where they end here."""
        to: list[str] = []
        source: list[str] = []
        ended: list[Value] = []
        for i, (out, value) in enumerate(zip(outs, values, strict=True)):
            if out in self.plan.idle:
                continue
            pairs = [(self.target(out), self.value(value))]
            if self.recorder.tracks(out):
                pairs.append((self.node_target(out), self.passed(value, i in shared)))
            to.extend(name for name, expression in pairs if name != expression)
            source.extend(expression for name, expression in pairs if name != expression)
            if i not in shared:
                ended.append(value)
        if to:
            self.add(f"{', '.join(to)} = {', '.join(source)}", instr)
        self.drop(ended, outs)
