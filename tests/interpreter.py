"""A slow and simple interpreter of graphs: what a graph means, for tests to hold compiled code and eager mode against.

Values are as in eager mode; a tape is a list of entries, a place their index from 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphdsl.core import ir
from graphdsl.core.ir import Block, Value
from graphdsl.core.steps import Steps, run
from graphdsl.graph.ir import Fused, NewShadow, NewTape, Push, Put, Read, Take
from graphdsl.ops.op import Draw, Host
from graphdsl.ops.types import DType, Type
from graphdsl.runtime.kernels import kernel
from graphdsl.runtime.state import Runtime
from graphdsl.source.diagnostic import Fault

_SCALARS: dict[DType, Any] = {
    DType.BOOL: bool,
    DType.I32: int,
    DType.I64: int,
    DType.F32: np.float32,
    DType.F64: float,
}


class Failed(Exception):
    """A program failed as it ran."""

    def __init__(self, instr: Any, what: str) -> None:
        super().__init__(what)
        self.instr = instr


class Shadow:
    """The sums beside a tape."""

    def __init__(self, tape: Any) -> None:
        self.tape = tape
        self.sums: dict[tuple[int, int], Any] = {}


class Interpreter:
    """Runs one graph. `printed` collects what it prints: (line, name, value) or (line, text)."""

    def __init__(self, runtime: Runtime | None = None) -> None:
        self.runtime = runtime or Runtime()
        self.printed: list[Any] = []
        self.steps = 0

    def run(self, func: ir.Func, args: Sequence[Any] = ()) -> list[Any]:
        """The results of a function."""
        with np.errstate(all="ignore"):
            results: list[Any] = run(self.call(func, args))
        return results

    def call(self, func: ir.Func, args: Sequence[Any]) -> Steps[list[Any]]:
        env: dict[Value, Any] = {}
        results = yield self.block(func.body, env, args)
        return results

    def block(self, block: Block, env: dict[Value, Any], args: Sequence[Any]) -> Steps[list[Any]]:
        env.update(zip(block.params, args, strict=True))
        for instr in block.body:
            self.steps += 1
            match instr:
                case ir.If(cond=cond, then=then, orelse=orelse, outs=outs):
                    results = yield self.block(then if env[cond] else orelse, env, ())
                case ir.While(inits=inits, cond=test, body=body, outs=outs):
                    results = [env[v] for v in inits]
                    while (yield self.block(test, env, results))[0]:
                        results = yield self.block(body, env, results)
                case ir.For(count=count, inits=inits, body=body, outs=outs):
                    results = [env[v] for v in inits]
                    for i in range(env[count]):
                        results = yield self.block(body, env, [i, *results])
                case ir.Call(func=func, args=given, outs=outs):
                    results = yield self.call(func, [env[v] for v in given])
                case Fused(args=given, body=body, outs=outs):
                    results = yield self.block(body, {}, [env[v] for v in given])
                case _:
                    self.plain(instr, env)
                    continue
            env.update(zip(outs, results, strict=True))
        return [env[v] for v in block.yields]

    def plain(self, instr: Any, env: dict[Value, Any]) -> None:
        match instr:
            case ir.Const(value=value, out=out):
                env[out] = constant(value, out.type)
            case ir.Apply():
                self.apply(instr, env)
            case ir.Convert(arg=arg, out=out):
                env[out] = converted(env[arg], arg.type, out.type)
            case ir.Leaf(arg=arg, out=out):
                env[out] = env[arg]
            case ir.Feed(name=name, out=out):
                env[out] = self.runtime.fed[name]
            case ir.Undef(out=out):
                env[out] = constant(0, Type(out.type.dtype)) if not out.type.rank else np.zeros((0,) * out.type.rank)
            case ir.Print(items=items, span=span):
                for item in items:
                    if isinstance(item, ir.Item):
                        self.printed.append((span.line, item.name, env[item.value]))
                    else:
                        self.printed.append((span.line, "".join(_text(p, env) for p in item)))
            case ir.Fail(kind=kind):
                raise Failed(instr, kind.message)
            case ir.Seed(arg=arg):
                self.runtime.random.seed(env[arg])
            case _:
                self.tape(instr, env)

    def apply(self, instr: ir.Apply, env: dict[Value, Any]) -> None:
        args = [env[a] for a in instr.args]
        match instr.op.compute:
            case Draw():
                args.insert(0, self.runtime.random)
            case Host():
                args.insert(0, self.runtime)
        try:
            result = kernel(instr.op, tuple(a.type for a in instr.args), instr.attrs)(*args)
        except Fault as fault:
            raise Failed(instr, fault.kind.message) from None
        if len(instr.outs) == 1:
            env[instr.outs[0]] = result
        else:
            env.update(zip(instr.outs, result, strict=True))

    def tape(self, instr: Any, env: dict[Value, Any]) -> None:
        match instr:
            case NewTape(out=out):
                env[out] = []
            case Push(tape=tape, values=values, out=out, record=record):
                assert len(values) == len(record.types)
                env[tape].append(([env[v] for v in values], record))
                env[out] = len(env[tape])
            case Read(tape=tape, at=at, fields=fields, outs=outs, record=record):
                assert env[at] > 0, "a place of nothing"
                entry, form = env[tape][env[at] - 1]
                assert form is record, "an entry of another form"
                env.update((o, entry[i]) for i, o in zip(fields, outs, strict=True))
            case NewShadow(tape=tape, out=out):
                env[out] = Shadow(env[tape])
            case Take(shadow=shadow, at=at, fields=fields, outs=outs):
                for i, o in zip(fields, outs, strict=True):
                    found = env[shadow].sums.get((env[at], i))
                    env[o] = self.nothing(env[shadow], env[at], i, o.type) if found is None else found
            case Put(shadow=shadow, at=at, fields=fields, values=values):
                env[shadow].sums.update(((env[at], i), env[v]) for i, v in zip(fields, values, strict=True))
            case _:
                raise TypeError(f"no meaning for {instr}")

    def nothing(self, shadow: Any, at: int, i: int, type: Type) -> Any:
        while isinstance(shadow, Shadow):
            shadow = shadow.tape
        value = shadow[at - 1][0][i]
        return np.zeros(np.shape(value), type.dtype.numpy) if type.rank else _SCALARS[type.dtype](0)


def constant(value: Any, type: Type) -> Any:
    """A literal as a run-time value."""
    if type.rank:
        return np.array(value, type.dtype.numpy).reshape(type.shape)
    return _SCALARS[type.dtype](value)


def converted(value: Any, source: Type, target: Type) -> Any:
    """A value in another dtype."""
    if source.dtype is target.dtype:
        return value
    return value.astype(target.dtype.numpy) if target.rank else _SCALARS[target.dtype](value)


def _text(part: Any, env: dict[Value, Any]) -> str:
    if isinstance(part, str):
        return part
    value = env[part.value]
    return format(value, part.spec) if part.spec else str(value)
