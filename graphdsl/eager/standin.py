"""Kernels by NumPy, until graphdsl.runtime.kernels is there. To be deleted."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from graphdsl.ops import faults
from graphdsl.ops.indexing import write
from graphdsl.ops.op import Contract, Draw, Elementwise, Host, Pointwise, Reduce, Scatter, Setting
from graphdsl.ops.types import BOOL, F32, F64, I32, I64
from graphdsl.source.diagnostic import Fault

PY = {BOOL: bool, I32: int, I64: int, F64: float, F32: np.float32}


def count(box):
    return sys.getrefcount(box[0])


ALONE = count([np.zeros(1)])


def kernel(op, types, attrs, own=False):
    typing = op.typing(Setting(F64), types, attrs)
    out = typing.outs[0]
    f = raw(op, types, attrs, out)
    if own:
        add = op.compute.add

        def owned(box, v, *rest):
            if count(box) <= ALONE and box[0].flags.owndata:
                x = box.pop()
            else:
                x = box.pop().copy()
            write(x, v, rest, attrs["spec"], add)
            return x

        return owned
    if out.rank == 0 and len(typing.outs) == 1:
        py = PY[out.dtype]
        return lambda *a: py(f(*a))
    return f


def bcast(f):
    def g(*a):
        try:
            return f(*a)
        except ValueError:
            shapes = [np.shape(x) for x in a]
            n = max(map(len, shapes))
            p = [(1,) * (n - len(s)) + s for s in shapes]
            for axis in range(n):
                sizes = [s[axis] for s in p if s[axis] != 1]
                if len(set(sizes)) > 1:
                    raise Fault(faults.BROADCAST, sizes[0], next(z for z in sizes if z != sizes[0]), axis) from None
            raise
    return g


def raw(op, types, attrs, out):
    c = op.compute
    dt = out.dtype.numpy
    match c:
        case Elementwise():
            if c.numpy:
                f = getattr(np, c.numpy)
                return bcast(f)
            n = op.name
            if n == "cast":
                def cast(x):
                    s = types[0].dtype
                    if s.is_float and out.dtype.is_int:
                        info = np.iinfo(dt)
                        y = np.clip(np.nan_to_num(np.asarray(x, "f8"), nan=0.0, posinf=2.0**62, neginf=-2.0**62), info.min, info.max)
                        return y.astype(dt)
                    y = np.asarray(x).astype(dt)
                    if attrs.get("checked") and (y != x).any():
                        raise Fault(faults.WEAK_I32, int(np.asarray(x)[y != x].flat[0]))
                    return y
                return cast
            if n == "in_range":
                def chk(i, size):
                    b = (np.asarray(i) < -size) | (np.asarray(i) >= size)
                    if b.any():
                        raise Fault(faults.INDEX, int(np.asarray(i)[b].flat[0]), size, attrs["axis"])
                    return np.where(np.asarray(i) < 0, i + size, i)
                return chk
            if n in ("floordiv", "mod"):
                f = {"floordiv": np.floor_divide, "mod": np.remainder}[n]
                def fd(x, y):
                    if out.dtype.is_int and (np.asarray(y) == 0).any():
                        raise Fault(faults.DIVISION)
                    return f(x, y)
                return bcast(fd)
            if n == "nonzero_step":
                def nz(s):
                    if s == 0:
                        raise Fault(faults.STEP)
                    return s
                return nz
            if n == "powi":
                def powi(x):
                    k = attrs["k"]
                    if k == 0:
                        return np.ones_like(x)
                    r = x
                    for b in bin(abs(k))[3:]:
                        r = r * r
                        if b == "1":
                            r = r * x
                    return np.divide(1.0, r) if k < 0 else r
                return powi
            table = {
                "scale": lambda g, d: np.where(np.equal(g, 0), 0.0, np.multiply(g, d)).astype(dt),
                "relu": lambda x: np.where(np.less_equal(x, 0), 0, x).astype(dt),
                "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
                "sigmoid_slope": lambda x: (1 / (1 + np.exp(-x))) * (1 / (1 + np.exp(x))),
                "pow": np.power, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
                "at_least": np.maximum, "at_most": np.minimum,
            }
            return bcast(table.get(n) or getattr(np, n))
        case Pointwise():
            return lambda *a: c.numpy(*a, **attrs)
        case Reduce(kind="sum_to"):
            def sum_to(g, like):
                s = np.shape(like)
                lead = np.ndim(g) - len(s)
                ax = tuple(range(lead)) + tuple(lead + i for i, d in enumerate(s) if d == 1 and np.shape(g)[lead + i] != 1)
                return np.sum(g, axis=ax).reshape(s) if ax or lead else g
            return sum_to
        case Reduce():
            def red(x):
                if c.kind in ("max", "min", "argmax", "argmin"):
                    for a in attrs["axes"]:
                        if np.shape(x)[a] == 0:
                            raise Fault(faults.EMPTY, a)
                if c.kind.startswith("arg"):
                    return getattr(np, c.kind)(x, axis=attrs["axes"][0] if len(attrs["axes"]) == 1 else None)
                return getattr(np, c.kind)(x, axis=attrs["axes"], keepdims=attrs["keepdims"])
            return red
        case Contract():
            return lambda a, b: np.matmul(a, b)
        case Scatter():
            def sc(x, v, *rest):
                x = np.array(x)
                write(x, v, rest, attrs["spec"], c.add)
                return x
            return sc
        case Draw():
            def draw(stream, *sizes):
                from graphdsl.ops.creation import run_sizes
                n = run_sizes(attrs["sizes"], sizes)
                start = stream.take(int(np.prod(n)))
                r = np.random.Generator(np.random.Philox(key=stream.key, counter=start))
                return (r.random(n) if op.name == "uniform" else r.standard_normal(n)) * np.ones(1, dt)[0]
            return draw
        case Host():
            return lambda rt, *a: c.run(rt, *a, **attrs)
    raise AssertionError(op.name)
