"""What each plain instruction of the core is in Python; regions are in `function`, ops in `applied`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphdsl.core import ir
from graphdsl.core.ir import Instr, Value
from graphdsl.eager import applied
from graphdsl.eager.custom import CustomRule

if TYPE_CHECKING:
    from graphdsl.eager.function import FunctionWriter


def write(w: FunctionWriter, instr: Instr) -> None:
    """Add the lines of one instruction."""
    recorder = w.recorder
    match instr:
        case ir.Const(value=number, out=out):
            w.literals[out] = applied.literal(w.module, number, out.type)
            w.numbers[out] = number
            w.record(out, recorder.bare_leaf() if out.leaf else "None", instr)
        case ir.Undef(out=out):
            w.assign(out, applied.placeholder(w.module, out.type), "None", instr)
        case ir.Feed(name=name, out=out):
            w.assign(out, f"rt.fed[{name!r}]", recorder.bare_leaf() if out.leaf else "None", instr)
        case ir.Leaf(param=param, arg=arg, out=out):
            w.assign(out, w.value(arg), recorder.leaf(param), instr)
        case ir.Convert(arg=arg, out=out):
            shared = arg not in w.plan.dies_after.get(instr, ())
            node = recorder.converting(w.node(arg), arg.type, out.type, shared)
            w.assign(out, applied.converted(w, arg, out), node, instr)
        case ir.Apply():
            applied.write(w, instr)
            if w.module.limited and instr.outs[0].type.rank:
                w.add("within(rt)", instr)
        case ir.Call():
            _call(w, instr)
        case ir.Custom():
            _custom(w, instr)
        case ir.Derive():
            _derive(w, instr)
        case ir.Seed(arg=arg, counter=counter):
            given = w.value(arg) if counter is None else f"{w.value(arg)}, {w.value(counter)}"
            w.add(f"rt.random.seed({given})", instr)
        case ir.Stream(outs=outs):
            w.add(f"{', '.join(w.target(out) for out in outs)} = rt.random.place", instr)
        case ir.Print(items=items):
            values = [w.value(part.value) for part in ir_items(items)]
            w.add(f"say(rt, {w.module.constant(instr)}, {w.tuple(values)})", instr)
        case ir.Save(path=path, items=items):
            words = w.tuple([w.value(part.value) for part in ir_items((path,))])
            saved = w.tuple([w.value(item.value) for item in items])
            w.add(f"save(rt, {w.module.constant(instr)}, {words}, {saved})", instr)
        case ir.NanCheck(args=args, result=result):
            given = w.tuple([w.value(v) for v in args])
            w.add(f"look(rt, {w.module.constant(instr)}, {given}, {w.value(result)})", instr)
        case ir.NanWalk(results=results):
            w.add(f"walks(rt, {w.module.constant(instr)}, {w.tuple([w.value(v) for v in results])})", instr)
        case ir.Fail(numbers=numbers, text=text):
            words = w.tuple([w.value(part.value) for part in ir_items(() if text is None else (text,))])
            given = w.tuple([w.value(n) for n in numbers])
            w.add(f"raise failure({w.module.constant(instr)}, {given}, {words})", instr)
        case _:
            raise AssertionError(f"{type(instr).__name__} is not an instruction of eager mode")


def ir_items(items: tuple[ir.Item | ir.Text, ...]) -> list[ir.Item]:
    """The values in a print or text, in order."""
    found = []
    for item in items:
        if isinstance(item, ir.Item):
            found.append(item)
        else:
            found.extend(part for part in item if isinstance(part, ir.Item))
    return found


def _call(w: FunctionWriter, instr: ir.Call) -> None:
    recorder = w.recorder
    handed = _handed_over(w, instr)
    args = []
    for arg, param in zip(instr.args, instr.func.body.params, strict=True):
        args.append("box.pop()" if arg in handed else w.value(arg))
        if recorder.tracks(param):
            args.append(w.node(arg))
    outs = []
    for out, result in zip(instr.outs, instr.func.body.yields, strict=True):
        outs.append(w.target(out))
        if recorder.tracks(result):
            outs.append(w.node_target(out) if recorder.tracks(out) else "_")
        elif recorder.tracks(out):
            w.unrecorded.add(out)
    if w.module.counts_calls:
        w.add("deeper(rt)", instr)
    if handed:
        given = [w.value(arg) for arg in handed]
        w.add(f"box = [{', '.join(reversed(given))}]; del {', '.join(given)}", instr)
        w.moved.update(handed)
    w.add(f"{w.tuple(outs) if outs else '_'} = {w.module.callee(instr.func)}({', '.join(args)})", instr)
    if w.module.counts_calls:  # where the call fails, the run ends
        w.add("rt.active_calls -= 1", instr)


def _handed_over(w: FunctionWriter, instr: ir.Call) -> list[Value]:
    """The tensors that nobody here needs after the call, in order: what is called may write into them."""
    return [a for a in dict.fromkeys(instr.args) if instr.args.count(a) == 1 and applied.ends(w, a, instr)]


def _custom(w: FunctionWriter, instr: ir.Custom) -> None:
    """What the call gave, with nodes whose rule calls the function that `rule` is; these first, as an out may take the place
    of what it was computed from."""
    recorder = w.recorder
    results = [w.value(result) for result in instr.results]
    if any(map(recorder.tracks, instr.outs)):
        rule = w.module.constant(CustomRule(instr, recorder.tracks), "r")
        function = w.module.callee(instr.rule)
        parts = [
            w.tuple([w.node(a) for a in instr.args]),
            f"counted(rt, {function})" if w.module.counts_calls else function,
            w.tuple([w.value(v) for v in instr.given]),
            w.tuple(results),
            w.tuple([w.node(v) for v in instr.given]),
        ]
        nodes = [w.node_target(out) if recorder.tracks(out) else "_" for out in instr.outs]
        w.add(f"{w.tuple(nodes)} = {rule}.made({', '.join(parts)})", instr)
    w.add(f"{w.tuple([w.target(out) for out in instr.outs])} = {w.tuple(results)}", instr)


def _derive(w: FunctionWriter, instr: ir.Derive) -> None:
    recorder = w.recorder
    nodes, values = [], []
    for t in instr.targets:
        if isinstance(t, ir.ParamTarget):
            nodes.append(repr(t.name))
            values.append("None")
        else:
            nodes.append(w.node(t))
            values.append(w.value(t))
    record = any(recorder.tracks(out) for out in instr.outs)
    seed = applied.scalar(w.module, 1.0, instr.y.type.dtype) if instr.seed is None else w.value(instr.seed)
    seed_node = "None" if instr.seed is None else w.node(instr.seed)
    types = w.module.constant(tuple(out.type for out in instr.outs))
    args = [w.node(instr.y), seed, w.tuple(nodes), w.tuple(values), types]
    if record:
        args += [seed_node, w.module.constant(instr.y.type)]
    outs = []
    for out in instr.outs:
        outs.append(w.target(out))
        if record:
            outs.append(w.node_target(out) if recorder.tracks(out) else "_")
    w.add(f"{w.tuple(outs)} = {'derive_recorded' if record else 'derive'}({', '.join(args)})", instr)
    for out in instr.outs:  # each is a value of its own
        if recorder.tracks(out):
            w.add(f"{w.node(out)} = {recorder.enter(w.node(out), out)}")
