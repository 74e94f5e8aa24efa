"""Compiling a template of a derivative rule into the function that a walk over the tape calls."""

from __future__ import annotations

from typing import Any

from graphdsl.core import ir
from graphdsl.core.ir import Value
from graphdsl.core.rules import NOWHERE, Template, Use
from graphdsl.core.steps import run
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
    recorder = Recorder(module, setting, higher=True, everything=record)
    writer = FunctionWriter(module, analyse(func), recorder, "rule")
    params = template.block.params
    lead = params[: -rule.operands - 1]
    names = [_given(writer, p, record) for p in lead]
    for k, p in enumerate(params[len(lead) :]):
        _from_node(writer, p, k, rule)
    run(writer.block(template.block))
    result = template.out
    if record:
        node = writer.node(result)
        if result in lead and not isinstance(rule, PassRule):
            # a running sum is a value of its own, also where it begins with a whole cotangent
            node = recorder.enter(node, result)
        writer.add(f"return {writer.value(result)}, {node}")
    else:
        writer.add(f"return {writer.value(result)}")
    module.function("rule", [*names, "node"], writer.scope.lines)
    space: dict[str, Any] = {**SUPPORT, **module.globals}
    exec(module.compile(), space)
    made: Contribution = space["rule"]
    return made


def _given(w: FunctionWriter, param: Value, record: bool) -> str:
    if not record:
        return w.target(param)
    name = f"given{w.plan.names[param]}"
    w.add(f"{w.target(param)}, {w.node_target(param)} = {name}")
    return name


def _from_node(w: FunctionWriter, param: Value, k: int, rule: OpRule) -> None:
    """What a template reads of an operand (by number; then the results) stands in the node."""
    parents = len(rule.parents)
    use = rule.saved.get(k)
    if use is None:
        w.literals[param] = scalar(w.module, 0, param.type.dtype) if not param.type.rank else "None"
    else:
        place = f"node[{2 + parents + list(rule.saved).index(k)}]"
        w.add(f"{w.target(param)} = {f'Shape({place})' if use is Use.SHAPE else place}")
    if not w.recorder.tracks(param):
        return
    if k in rule.parents:
        w.add(f"{w.node_target(param)} = node[{2 + rule.parents.index(k)}]")
    elif k >= rule.operands:
        w.add(f"{w.node_target(param)} = node")
    else:
        w.unrecorded.add(param)
