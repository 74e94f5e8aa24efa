"""Where the values of a program come from and what they flow into, as derivatives see it.

Built once for a program, asked by every derivative. An edge *passes* where the same value goes on under another name
(joins), and is an *op* where a new value is made from it. There are no edges without derivative (ints, `round`, `:=`).
Nodes are values, or what stands for memory (`graphdsl.graph.links` adds those).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Any

from graphdsl.core.call_graph import functions
from graphdsl.core.ir import Apply, Block, Call, Checkpoint, Convert, Custom, Derive, For, Func, If, Value, While
from graphdsl.core.structure import passed, regions, results
from graphdsl.ops.op import Op
from graphdsl.source.record import dataclass

Node = Hashable
Exit = tuple[Func, Value]  # a function, and a value that comes out of it


def receives(op: Op, i: int, operand: Value, out: Value) -> bool:
    """Whether an op has a derivative from `out` to its operand `i`."""
    if op.vjp is None or not operand.type.dtype.is_float or not out.type.dtype.is_float:
        return False
    return i not in op.shape_only and (callable(op.vjp) or op.vjp[i] is not None)


@dataclass(frozen=True, slots=True)
class Def:
    """Where a value is made: out `index` of `instr`, or (`instr` None) param `index` of `block`."""

    block: Block
    instr: Any
    index: int
    number: int  # in program order


@dataclass(frozen=True, slots=True)
class Owner:
    """What a block belongs to: a region of `instr`, which stands in `parent`; or the body of `func` (both None)."""

    func: Func
    instr: Any
    parent: Block | None


class Links:
    """Of `main` and all functions it calls."""

    def __init__(self, main: Func) -> None:
        self.funcs = [*functions(main), main]
        self.defs: dict[Value, Def] = {}
        self.owner: dict[Block, Owner] = {}
        self.last: dict[Any, int] = {}  # of a region instruction: the number of the last value inside
        self.first: dict[Any, int] = {}
        self.into: dict[Node, list[tuple[Node, bool]]] = defaultdict(list)  # (to, whether it passes)
        self.origins: dict[Node, list[Node]] = defaultdict(list)  # from where a join got its value
        self.sources: dict[Node, list[Node]] = defaultdict(list)  # both kinds, backwards, but not into calls
        self.enters: dict[Node, list[tuple[Call, int]]] = defaultdict(list)  # as argument `i` of a call
        self.leaves: dict[Node, list[Value]] = defaultdict(list)  # as what a function gives: the results of its calls
        self.effects: dict[Node, list[Value]] = defaultdict(list)  # from a param of a function to memory it was given
        self.derives: list[Derive] = []
        self.customs: list[Custom] = []
        self.calls: dict[Call, Block] = {}  # with the block in which they stand
        self._params: dict[Exit, frozenset[int]] = {}
        self._numbers = {func: {p: i for i, p in enumerate(func.body.params)} for func in self.funcs}
        self._count = 0
        for func in self.funcs:
            self._scan(func)

    def inside(self, node: Node, instr: Any) -> bool:
        """Whether a value is made within a region instruction."""
        if not isinstance(node, Value):
            return False
        return self.first[instr] <= self.defs[node].number <= self.last[instr]

    def path(self, derive: Derive) -> list[tuple[Block, int]]:
        """The blocks around a derivative with the position in each, from the innermost outwards."""
        block, instr = self.defs[derive.outs[0]].block, derive
        found = []
        while True:
            found.append((block, _position(block, instr)))
            owner = self.owner[block]
            if owner.parent is None:
                return found
            block, instr = owner.parent, owner.instr

    def func_of(self, derive: Derive) -> Func:
        """The function in which a derivative stands."""
        return self.owner[self.defs[derive.outs[0]].block].func

    def onward(self, node: Node, made: bool, entered: bool) -> Iterator[tuple[Node, bool, bool]]:
        """Where a value goes next: the node, whether through an op so far, and whether in a function that it came into.

        What came into a function as an argument goes out at that call only, not at others.
        """
        for other, passes in self.into.get(node, ()):
            yield other, made or not passes, entered
        for call, i in self.enters.get(node, ()):
            yield call.func.body.params[i], True, True
            for end, out in zip(call.func.body.yields, call.outs, strict=True):
                if i in self.params_of(call.func, end):
                    yield out, True, entered
        if not entered:
            for out in self.leaves.get(node, ()):
                yield out, made, False
        for arg in self.effects.get(node, ()):
            yield arg, True, False

    def ends(self, call: Call) -> Iterator[tuple[Value, Value]]:
        """What comes out of a call: as it is called here, and in the function."""
        yield from zip(call.outs, call.func.body.yields, strict=True)

    def calls_behind(self, node: Node) -> Iterator[tuple[Call, Value]]:
        """The calls of which `node` is an end, with what it is in the function."""
        made = self.defs.get(node) if isinstance(node, Value) else None
        if made is not None and isinstance(made.instr, Call):
            yield made.instr, made.instr.func.body.yields[made.index]

    def params_of(self, func: Func, end: Value) -> frozenset[int]:
        """The params on which an end of a function depends."""
        if (func, end) not in self._params:
            self._solve((func, end))
        return self._params[func, end]

    def _solve(self, start: Exit) -> None:
        """Back from an end to params, through calls, also recursive ones: where more becomes known of a call's end, that
        goes on in those that look through it. So each value of a function is looked at once for each of its ends.
        """
        reached: dict[Exit, set[Node]] = {}
        users: dict[Exit, list[tuple[Exit, Call]]] = defaultdict(list)
        todo: list[tuple[Exit, Node]] = []

        def reach(exit: Exit, node: Node) -> None:
            if node not in reached[exit]:
                reached[exit].add(node)
                todo.append((exit, node))

        def begin(exit: Exit) -> None:
            if exit not in reached:
                reached[exit] = set()
                reach(exit, exit[1])

        begin(start)
        while todo:
            exit, node = todo.pop()
            i = self._numbers[exit[0]].get(node) if isinstance(node, Value) else None
            if i is not None:
                for user, call in users[exit]:
                    reach(user, call.args[i])
            for source in self.sources.get(node, ()):
                reach(exit, source)
            for call, inner in self.calls_behind(node):
                behind = call.func, inner
                if behind not in self._params:
                    begin(behind)
                    users[behind].append((exit, call))
                for k in self._params.get(behind) or self._among(behind, reached.get(behind, ())):
                    reach(exit, call.args[k])
        self._params.update((exit, self._among(exit, nodes)) for exit, nodes in reached.items())

    @staticmethod
    def _among(exit: Exit, nodes: Collection[Node]) -> frozenset[int]:
        """The params of an end's function that are among these."""
        return frozenset(i for i, p in enumerate(exit[0].body.params) if p in nodes)

    # ---- building ----

    def _scan(self, func: Func) -> None:
        self._block(func.body, Owner(func, None, None))
        todo: list[Any] = [iter(func.body.body)]
        place = [func.body]
        open_regions: list[Any] = [None]
        while todo:
            instr = next(todo[-1], None)
            if instr is None:
                todo.pop()
                place.pop()
                done = open_regions.pop()
                if done is not None:
                    self.last[done] = self._count
                    self._outs(done, place[-1])
                continue
            inner = regions(instr)
            if inner:
                self.first[instr] = self._count + 1
                for i, region in enumerate(reversed(inner)):
                    todo.append(iter(region.body))
                    place.append(region)
                    open_regions.append(instr if i == 0 else None)
            self._enter(instr, place, inner, func)

    def _enter(self, instr: Any, place: list[Block], inner: tuple[Block, ...], func: Func) -> None:
        parent = place[-1 - len(inner)]
        for region in inner:
            self._block(region, Owner(func, instr, parent))
        if not inner:
            self._outs(instr, parent)
        match instr:
            case Derive():
                self.derives.append(instr)
            case Custom():
                self.customs.append(instr)
            case Call():
                self.calls[instr] = parent
        self.link(instr)

    def _block(self, block: Block, owner: Owner) -> None:
        self.owner[block] = owner
        for i, p in enumerate(block.params):
            self._count += 1
            self.defs[p] = Def(block, None, i, self._count)

    def _outs(self, instr: Any, block: Block) -> None:
        for i, v in enumerate(results(instr)):
            self._count += 1
            self.defs[v] = Def(block, instr, i, self._count)

    def passes(self, source: Node, target: Node) -> None:
        """The value `source` goes on as `target`."""
        self.into[source].append((target, True))
        self.origins[target].append(source)
        self.sources[target].append(source)

    def makes(self, source: Node, target: Node) -> None:
        """`target` is computed from `source`."""
        self.into[source].append((target, False))
        self.sources[target].append(source)

    def carries(self, value: Value) -> bool:
        """Whether a walk may come to a value of this type."""
        return value.type.dtype.is_float

    def join(self, sources: Iterable[Value], targets: Iterable[Value]) -> None:
        for s, t in zip(sources, targets, strict=True):
            if self.carries(t):
                self.passes(s, t)

    def link(self, instr: Any) -> None:
        """The edges of one instruction."""
        match instr:
            case Apply(op=op, args=args, outs=outs):
                for out in outs:
                    for i, arg in enumerate(args):
                        if receives(op, i, arg, out):
                            self.makes(arg, out)
            case Convert() | If() | Checkpoint() | While() | For():
                for sources, targets in passed(instr):
                    self.join(sources, targets)
            case Call(func=func, args=args, outs=outs):
                for i, (arg, param) in enumerate(zip(args, func.body.params, strict=True)):
                    if self.carries(param):
                        self.enters[arg].append((instr, i))
                for result, out in zip(func.body.yields, outs, strict=True):
                    if self.carries(out):
                        self.leaves[result].append(out)
                        self.origins[out].append(result)
            case Custom(args=args, given=given, outs=outs):
                for out in outs:
                    for source in dict.fromkeys((*args, *given)):  # the derivative may depend on all that is given
                        if source.type.dtype.is_float:
                            self.makes(source, out)
            case Derive(y=y, seed=seed, outs=outs):
                for out in outs:
                    self.makes(y, out)
                    if seed is not None:
                        self.makes(seed, out)


def _position(block: Block, instr: Any) -> int:
    for i, other in enumerate(block.body):
        if other is instr:
            return i
    raise AssertionError("an instruction is not in its block")
