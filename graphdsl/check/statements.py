"""Statements in order, and what follows one that may have left the block."""

from __future__ import annotations

from collections.abc import Iterator

from graphdsl.check.branches import DEAD, EXIT, FALLS, LOST, RESULT, Flow, Path, merge, trial
from graphdsl.check.context import Frame
from graphdsl.check.dispatch import handles, statement
from graphdsl.check.expect import condition, int_scalar
from graphdsl.check.probes import watch
from graphdsl.check.reads import inner_blocks, names_set, own_targets
from graphdsl.check.values import NOTHING, POISON, Slot, rebuild_slot
from graphdsl.core.ir import Block, Checkpoint, Seed, Value
from graphdsl.core.steps import Steps
from graphdsl.core.structure import results
from graphdsl.source.record import dataclass
from graphdsl.syntax import ast

NO_NAMES: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Rest:
    """Statements still to come: those of `stmts` from `at` on, then `more`."""

    stmts: list[ast.Stmt]
    at: int = 0
    more: Rest | None = None

    def skip_empty(self) -> Rest | None:
        """None where nothing is left."""
        rest: Rest | None = self
        while rest is not None and rest.at == len(rest.stmts):
            rest = rest.more
        return rest

    def then(self, more: Rest | None) -> Rest:
        return Rest(self.stmts, self.at, more)


def body(f: Frame, stmts: list[ast.Stmt], at_end: frozenset[str] = NO_NAMES) -> Steps[Flow]:
    """The statements of a block that is left by nobody but `return`, `break` and `continue` in it."""
    needed, f.exit_needed = f.exit_needed, False
    before = f.names.get(EXIT)
    f.names.set(EXIT, None)
    flow: Flow = yield sequence(f, Rest(stmts), at_end)
    f.names.set(EXIT, before)
    f.exit_needed = needed
    return flow


def sequence(f: Frame, rest: Rest, at_end: frozenset[str]) -> Steps[Flow]:
    """Statements up to the end of their block, where the names `at_end` are live."""
    left: Rest | None = rest.skip_empty()
    while left is not None:
        stmt = left.stmts[left.at]
        left = Rest(left.stmts, left.at + 1, left.more).skip_empty()
        if isinstance(stmt, ast.IfStmt) and f.shared.leaving[stmt].may:
            flow: Flow = yield leaving_if(f, stmt, left, at_end)
            if flow.exits is None or left is None or _takes_rest(f, stmt):
                return flow
            guarded: Flow = yield _guarded(f, stmt, flow, left, at_end)
            return guarded
        flow = (yield statement(f, stmt)) or FALLS
        if isinstance(stmt, ast.Assign | ast.Update | ast.Declare):
            yield watch(f, own_targets(stmt))
        if flow.exits is not None:
            if left is None:
                return flow
            if not flow.falls:
                yield _unreached(f, left, at_end)
                return flow
            guarded = yield _guarded(f, stmt, flow, left, at_end)
            return guarded
    return FALLS


def _takes_rest(f: Frame, stmt: ast.IfStmt) -> bool:
    """Whether what follows the `if` goes into the side that does not leave."""
    return f.shared.leaving[stmt.then].always or (stmt.orelse is not None and f.shared.leaving[stmt.orelse].always)


def _unreached(f: Frame, rest: Rest, at_end: frozenset[str]) -> Steps[None]:
    """Statements behind a `return`: checked, and thrown away."""
    before, f.unreached = f.unreached, True
    yield trial(f, sequence(f, rest, at_end))
    f.unreached = before


def leaving_if(f: Frame, stmt: ast.IfStmt, rest: Rest | None, at_end: frozenset[str]) -> Steps[Flow]:
    """An `if` of which some side leaves the block. Where one always does, the other takes `rest`."""
    cond: Value | None = yield condition(f, stmt.cond)
    then, orelse = Rest(stmt.then.body), Rest([] if stmt.orelse is None else stmt.orelse.body)
    after = f.live.after[stmt]
    needed = f.exit_needed
    if _takes_rest(f, stmt):
        after = at_end
        if f.shared.leaving[stmt.then].always:
            orelse = orelse.then(rest)
        else:
            then = then.then(rest)
    else:
        f.exit_needed = needed or rest is not None
    first: Path = yield trial(f, sequence(f, then, after), _why(stmt, True))
    second: Path = yield trial(f, sequence(f, orelse, after), _why(stmt, False))
    flow = merge(f, stmt.cond.span, cond or _placeholder(f, stmt), first, second, after)
    f.exit_needed = needed
    return flow


def _guarded(f: Frame, stmt: ast.Stmt, flow: Flow, rest: Rest, at_end: frozenset[str]) -> Steps[Flow]:
    """What follows a statement that may have left the block: it runs where that was not so."""
    left = f.names.get(EXIT)
    if left is None:
        result: Flow = yield sequence(f, rest, at_end)
        return result
    if left.is_set is None:
        yield _unreached(f, rest, at_end)
        return Flow(False, flow.exits)
    gone = Path(Block(), {EXIT: Slot(NOTHING, stmt.span)}, Flow(False, flow.exits))
    given = f.names.get(RESULT)
    if not f.loops and given is not None and given is not LOST and given is not DEAD:
        gone.changes[RESULT] = Slot(given.binding, given.span)  # what was left, was left by a `return`
    f.names.set(EXIT, None)
    here: Path = yield trial(f, sequence(f, rest, at_end))
    return merge(f, stmt.span, left.is_set, gone, here, at_end)


# ---- if, and what leaves ------------------------------------------------------------------------------


@handles(ast.IfStmt)
def if_(f: Frame, stmt: ast.IfStmt) -> Steps[Flow]:
    """An `if` that leaves nothing."""
    flow: Flow = yield leaving_if(f, stmt, None, NO_NAMES)
    return flow


def _why(stmt: ast.IfStmt, taken: bool) -> str:
    """How a name is not set that only the other side sets."""
    return f"the condition at line {stmt.cond.span.line} was {'true' if taken else 'false'}"


def _placeholder(f: Frame, stmt: ast.IfStmt) -> Value:
    """Stands for a condition that is wrong, which has been reported."""
    return f.truth(True, stmt.cond.span)


@handles(ast.Break, ast.Continue)
def leave_trip(f: Frame, stmt: ast.Break | ast.Continue) -> Flow:
    word = "break" if isinstance(stmt, ast.Break) else "continue"
    if not f.loops:
        f.error("E0106", f"`{word}` stands outside a loop", stmt.span)
        return FALLS
    loop = f.loops[-1]
    f.names.set(EXIT, Slot(NOTHING, stmt.span))
    if word == "break":
        f.names.set(loop.stop, Slot(NOTHING, stmt.span))
        return Flow(False, loop.after)
    return Flow(False, loop.head)


# ---- simple statements --------------------------------------------------------------------------------


@handles(ast.SeedStmt)
def seed(f: Frame, stmt: ast.SeedStmt) -> Steps[None]:
    value: Value | None = yield int_scalar(f, stmt.value, "a seed")
    if value is not None:
        f.block.body.append(Seed(stmt.span, value))


@handles(ast.Checkpoint)
def checkpoint(f: Frame, stmt: ast.Checkpoint) -> Steps[None]:
    """Statements like those around, whose values are not kept for derivatives."""
    leaving = list(_leaving(stmt.body))
    for inner in leaving:
        f.error("E0106", "no `break`, `continue`, `return` or `:=` leads out of a `checkpoint`", inner.span)
    if leaving:
        for name in names_set(stmt.body.body):
            f.names.set(name, Slot(POISON, stmt.span))
        return
    path: Path = yield trial(f, body(f, stmt.body.body))
    made = {v for instr in path.block.body for v in results(instr)}
    outs: dict[Value, Value] = {}

    def out(value: Value) -> Value:
        if value in made and value not in outs:
            outs[value] = f.same(value)
        return outs.get(value, value)

    for name, slot in path.changes.items():
        kept = slot is None or slot is DEAD or slot is LOST
        f.names.set(name, slot if slot is None or kept else rebuild_slot(slot, out))
    path.block.yields = list(outs)
    f.block.body.append(Checkpoint(stmt.span, path.block, tuple(outs.values())))


def _leaving(block: ast.BlockNode) -> Iterator[ast.Stmt]:
    """The statements in a block that have an effect on what comes after it, other than by names."""
    todo: list[tuple[ast.Stmt, bool]] = [(stmt, False) for stmt in reversed(block.body)]
    while todo:
        stmt, in_loop = todo.pop()
        if isinstance(stmt, ast.Return | ast.Update) or (isinstance(stmt, ast.Break | ast.Continue) and not in_loop):
            yield stmt
        loop = in_loop or isinstance(stmt, ast.WhileStmt | ast.ForStmt)
        todo += [(s, loop) for inner in reversed(inner_blocks(stmt)) for s in reversed(inner.body)]


@handles(ast.FnDef, ast.VjpDef)
def function(f: Frame, stmt: ast.FnDef | ast.VjpDef) -> None:
    """Functions are checked where they are called, and their derivative rules with them."""
    if f.blocks_deep or f.outer is not None:
        word = "fn" if isinstance(stmt, ast.FnDef) else "vjp"
        f.error("E0108", f"`{word}` stands at top level only, outside loops, branches and functions", stmt.name.span)


@handles(ast.Use)
def use(f: Frame, stmt: ast.Use) -> None:
    """Modules are here already."""
    if f.blocks_deep or f.outer is not None:
        f.error("E0228", "`use` stands at top level only, before all other statements", stmt.span)


@handles(ast.Default)
def done_before(f: Frame, stmt: ast.Default) -> None:
    """`default` was read before all."""
