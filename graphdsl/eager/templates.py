"""Compiling a template of a derivative rule into the function that a walk over the tape calls."""

from __future__ import annotations

from typing import Any

from graphdsl.core import ir
from graphdsl.core.ir import Block, Value
from graphdsl.core.rules import NOWHERE, Template, Use
from graphdsl.core.steps import run
from graphdsl.core.structure import operands
from graphdsl.eager.applied import scalar
from graphdsl.eager.function import FunctionWriter
from graphdsl.eager.liveness import analyse
from graphdsl.eager.module import Module
from graphdsl.eager.records import Recorder
from graphdsl.eager.rules import OpRule, PassRule
from graphdsl.eager.support import SUPPORT
from graphdsl.eager.tape import Contribution
from graphdsl.ops.op import Setting


def compile_template(template: Template, rule: OpRule, record: bool) -> Contribution:
    """`([sum], cotangent, node) -> sum`; in the recording variant sums and cotangents are pairs."""
    func = ir.Func("rule", template.block, NOWHERE)
    module = Module()
    setting = Setting(template.out.type.dtype)
    place = (lambda instr: "node[-1][1]") if rule.told else None
    recorder = Recorder(module, setting, higher=True, everything=record, place=place)
    plan = analyse(func)
    if not isinstance(rule, PassRule):  # a part of a cotangent is needed beside it, and that may be written into
        parts = (i for i in template.block.body if isinstance(i, ir.Apply) and i.op.name == "index")
        plan.apart |= {i for i in parts if i.outs[0].type.rank}
    writer = FunctionWriter(module, plan, recorder, "rule")
    params = template.block.params
    lead = params[: -rule.operands - 1]
    names = [_given(writer, p, record) for p in lead]
    for k, p in enumerate(params[len(lead) :]):
        _from_node(writer, p, k, rule, _readers(template.block, p) == 1)
    run(writer.block(template.block))
    _return(writer, template.out, template.out in lead and not isinstance(rule, PassRule), record)
    module.function("rule", [*names, "node"], writer.scope.lines)
    space: dict[str, Any] = {**SUPPORT, **module.globals, "rt": None}  # no rule asks for anything of a run
    exec(module.compile(), space)
    made: Contribution = space["rule"]
    return made


def _return(w: FunctionWriter, result: Value, whole: bool, record: bool) -> None:
    lines = w.scope.lines
    if record:
        # a running sum is a value of its own, also where it begins with a whole cotangent
        node = w.recorder.enter(w.node(result), result) if whole else w.node(result)
        w.add(f"return {w.value(result)}, {node}")
    elif lines.text and lines.text[-1].startswith(f"\t{w.value(result)} = "):
        line, instr = lines.take_back()
        w.add(f"return {line.partition(' = ')[2]}", instr)
    else:
        w.add(f"return {w.value(result)}")


def _given(w: FunctionWriter, param: Value, record: bool) -> str:
    if not record:
        return w.target(param)
    name = f"given{w.plan.names[param]}"
    w.add(f"{w.target(param)}, {w.node_target(param)} = {name}; del {name}")
    return name


def _readers(block: Block, value: Value) -> int:
    return sum(operands(instr).count(value) for instr in block.body)


def _from_node(w: FunctionWriter, param: Value, k: int, rule: OpRule, once: bool) -> None:
    """What a template reads of an operand (by number; then the results) stands in the node."""
    use = rule.saved.get(k)
    if use is None:
        w.literals[param] = scalar(w.module, 0, param.type.dtype) if not param.type.rank else "None"
    else:
        place = f"node[{rule.place(k)}]"
        expression = f"Shape({place})" if use is Use.SHAPE else place
        if once and not w.recorder.everything:
            w.literals[param] = expression
        else:
            w.add(f"{w.target(param)} = {expression}")
    if not w.recorder.tracks(param):
        return
    if k in rule.nodes:
        w.add(f"{w.node_target(param)} = node[{2 + rule.nodes.index(k)}]")
    elif k >= rule.operands:
        w.add(f"{w.node_target(param)} = node")
    else:
        w.unrecorded.add(param)
