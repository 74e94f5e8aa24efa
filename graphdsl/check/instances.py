"""Functions checked for one kind of call: what tells kinds apart, and how values get in and out.

Inside, every value is new; sizes that the caller does not know are new too, the same where the caller's are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

from graphdsl.check.context import Frame, Shared
from graphdsl.check.liveness import Liveness, liveness
from graphdsl.check.values import (
    NOTHING,
    POISON,
    Binding,
    Builtin,
    Closure,
    Named,
    Slot,
    Special,
    Str,
    Tensor,
    Tuple,
    leaves,
    rebuild,
    rebuild_slot,
    slot_leaves,
    without_static,
)
from graphdsl.core.ir import NAMELESS, Block, Call, Const, Func, Value
from graphdsl.ops.types import Dim, Size
from graphdsl.source.diagnostic import Diagnostic
from graphdsl.source.record import dataclass, field
from graphdsl.source.span import Span

Callee = Named | Closure


@dataclass(eq=False, slots=True)
class Passed:
    """All that a call hands over: arguments, outer names, and what a lambda captured."""

    callee: Callee
    args: list[Binding]
    outer: list[tuple[str, Slot | None]]

    def slots(self) -> Iterator[Slot]:
        """Outer names and captured ones that hold something."""
        captured = self.callee.captured if isinstance(self.callee, Closure) else ()
        yield from (s for _, s in (*self.outer, *captured) if s is not None and not is_known(s))

    def values(self) -> Iterator[Value]:
        """The values handed over, in the order of the function's params."""
        for arg in self.args:
            yield from leaves(arg)
        for slot in self.slots():
            yield from slot_leaves(slot)


def is_known(slot: Slot) -> bool:
    """A const whose value is known is written out where it is read, and not handed over."""
    binding = slot.binding
    return isinstance(binding, Tensor) and binding.static is not None and isinstance(binding.static, int | float)


@dataclass(eq=False, slots=True)
class Instance:
    """A function checked for one kind of call. `sizes`: the sizes inside that stand for the caller's, in order."""

    func: Func
    done: bool = False
    result: Binding = POISON
    problems: list[Diagnostic] = field(default_factory=list)
    sizes: dict[Size, int] = field(default_factory=dict)
    params: list[Value] = field(default_factory=list)

    @classmethod
    def begin(cls, callee: Callee) -> Instance:
        """One whose body is still to be checked."""
        name = callee.node.name.id if isinstance(callee, Named) else NAMELESS
        return cls(Func(name, Block(), callee.node.span))

    def finish(self, g: Frame, result: Binding) -> None:
        """The body has been checked."""
        self.done = True
        self.result = without_static(result)
        g.block.params = self.params
        g.block.yields = list(leaves(self.result))
        self.func.body = g.block


# ---- kinds of calls -----------------------------------------------------------------------------------


def instance_key(shared: Shared, passed: Passed) -> Hashable:
    """What is the same for calls that share an instance."""
    sizes: dict[Size, int] = {}
    args = tuple(_key(shared, a, sizes) for a in passed.args)
    callee = _key(shared, passed.callee, sizes)
    outer = tuple((name, _slot_key(shared, slot, sizes)) for name, slot in passed.outer)
    return callee, args, outer, shared.watched


def _slot_key(shared: Shared, slot: Slot | None, sizes: dict[Size, int]) -> Hashable:
    if slot is None:
        return None
    static = None
    if is_known(slot) and isinstance(slot.binding, Tensor):
        static = repr(slot.binding.static)
    return _key(shared, slot.binding, sizes), static, slot.is_set is not None, slot.why


def _key(shared: Shared, binding: Binding, sizes: dict[Size, int]) -> Hashable:
    match binding:
        case Tensor(value=value):
            dims = tuple(
                d if isinstance(d, int) else ("size", sizes.setdefault(d, len(sizes))) for d in value.type.shape
            )
            size = shared.sizes.get(value)
            return value.type.dtype, value.type.weak, dims, None if size is None else sizes.setdefault(size, len(sizes))
        case Tuple(items=items):
            return "tuple", tuple(_key(shared, i, sizes) for i in items)
        case Str(parts=parts):
            shown = tuple(p if isinstance(p, str) else (p.name, p.spec) for p in parts)
            types = tuple(_key(shared, Tensor(v), sizes) for v in leaves(binding))
            return "text", shown, types
        case Named(node=node):
            return node
        case Closure(node=node, captured=captured):
            return node, tuple((n, _slot_key(shared, s, sizes)) for n, s in captured)
        case Builtin(name=name):
            return "builtin", name
        case Special(kind=kind):
            return "special", kind


# ---- the way in ---------------------------------------------------------------------------------------


def new_frame(f: Frame, instance: Instance, passed: Passed) -> Frame:
    """The scope inside, in which the params hold new values."""
    shared, callee = f.shared, passed.callee
    g = Frame(shared, _live(shared, callee), callee.node, f.depth + 1)
    renamed: dict[Size, Size] = {}

    def renamed_size(size: Size) -> Size:
        return renamed.setdefault(size, size.apart())

    def inside(value: Value) -> Value:
        new = Value(value.type.with_sizes(renamed_size), value.name)
        if (size := shared.sizes.get(value)) is not None:
            shared.sizes[new] = renamed_size(size)
        if (where := shared.made.get(value)) is not None:
            shared.made[new] = where
        instance.params.append(new)
        return new

    params = [p.name for p in callee.node.params] if isinstance(callee, Named) else list(callee.node.params)
    for param, arg in zip(params, passed.args, strict=True):
        binding = rebuild(arg, inside)
        for value in leaves(binding):
            value.name = param.id
            shared.made[value] = param.span
        g.names.set(param.id, Slot(binding, param.span))
    g.outer = {name: _slot_inside(g, slot, inside) for name, slot in passed.outer}
    g.own = frozenset(p.id for p in params)
    if isinstance(callee, Closure):
        for name, slot in callee.captured:
            inner = _slot_inside(g, slot, inside)
            if name not in g.own:
                g.names.set(name, inner)
        g.own |= {name for name, _ in callee.captured}
    else:
        g.own = shared.outline.own[callee.node]
    instance.sizes = {new: i for i, new in enumerate(renamed.values())}
    g.params = set(instance.params)
    return g


def _slot_inside(g: Frame, slot: Slot | None, inside: Callable[[Value], Value]) -> Slot | None:
    if slot is None or not is_known(slot):
        return None if slot is None else rebuild_slot(slot, inside)
    binding = slot.binding
    assert isinstance(binding, Tensor)
    assert isinstance(binding.static, int | float)
    out = Value(binding.type, binding.value.name)
    g.block.body.append(Const(slot.span, binding.static, out))
    return Slot(Tensor(out, binding.static), slot.span, None, "")


def _live(shared: Shared, callee: Callee) -> Liveness:
    if isinstance(callee, Closure):
        return Liveness()
    node = callee.node
    if node not in shared.scopes:
        shared.scopes[node] = liveness(node.body.body, shared.outline, frozenset())
    return shared.scopes[node]


# ---- the way out --------------------------------------------------------------------------------------


def emit_call(f: Frame, span: Span, instance: Instance, passed: Passed) -> Binding:
    """Write the `Call`; its results have the caller's sizes where the function's come from its arguments."""
    args = tuple(passed.values())
    known = _caller_sizes(f.shared, args, instance)
    outs: list[Value] = []

    def theirs(size: Size) -> Dim:
        return known.setdefault(size, Size(None, size.why))

    def outside(value: Value) -> Value:
        out = Value(value.type.with_sizes(theirs))
        if (size := f.shared.sizes.get(value)) is not None and isinstance(given := theirs(size), Size):
            f.shared.sizes[out] = given
        outs.append(out)
        return out

    result = rebuild(instance.result, outside)
    f.block.body.append(Call(span, instance.func, args, tuple(outs)))
    return result if result is not NOTHING else NOTHING


def _caller_sizes(shared: Shared, args: tuple[Value, ...], instance: Instance) -> dict[Size, Dim]:
    """The caller's size for each of the sizes that came in."""
    known: dict[Size, Dim] = {}
    for inner, arg in zip(instance.params, args, strict=True):
        for mine, theirs in zip(inner.type.shape, arg.type.shape, strict=True):
            if isinstance(mine, Size):
                known[mine] = theirs
        if (size := shared.sizes.get(inner)) is not None:
            known[size] = shared.sizes[arg]
    return known
