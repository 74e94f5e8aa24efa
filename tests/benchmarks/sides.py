"""What is timed, one process each: `python -m tests.benchmarks.sides NAME ARGUMENTS` prints seconds."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
THREADS = int(os.environ.get("GRAPHDSL_BENCHMARK_THREADS", "1"))

COUNTER = "a = 0.0\nb = 1e6\nwhile a < b { a += 2; b += 1 }\nprint a"
SCALARS = """param w = 0.5
s = w
for i in 0..2000 { s = s * 0.999 + w * 0.5 - s * w * 0.001 }
print grad(s, w)"""
VECTORS = """param w = ones(16) * 0.5
s = w
for i in 0..2000 { s = s * 0.999 + w * 0.5 - s * w * 0.001 }
print sum(grad(sum(s), w))"""
ASSIGNMENTS = """x = zeros({size})
for i in 0..20000 {{ x[i % 50] = 1.0 }}
print sum(x[:50])"""
PROGRAMS = {
    "counter": COUNTER,
    "scalars": SCALARS,
    "vectors": VECTORS,
    "assignments-few": ASSIGNMENTS.format(size=100),
    "assignments-many": ASSIGNMENTS.format(size=1_000_000),
}


def quickest(f: Callable[[], object], seconds: float = 1.0) -> float:
    """The least time of a call, after one to warm up."""
    f()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - begin)
    return best


def program(name: str, mode: str) -> float:
    """A run of a program of ours that is prepared."""
    from graphdsl.api.program import Given, Program
    from graphdsl.runtime.events import Recorded
    from graphdsl.source.span import Source

    made = Program(Source(name, PROGRAMS[name]))
    prepared = made.prepare(mode, Given(), made.check({}))
    return quickest(lambda: prepared.run(Recorded()))


def _matrices(m: str, k: str, n: str) -> Any:
    import numpy as np

    draw = np.random.default_rng(0).standard_normal
    return draw((int(m), int(k))).astype("f4"), draw((int(k), int(n))).astype("f4")


def product(m: str, k: str, n: str) -> float:
    """Our product of f32 matrices, as eager mode calls it."""
    from graphdsl.ops.table import OPS
    from graphdsl.ops.types import F32, Type
    from graphdsl.runtime import contraction, threads

    threads.choose(THREADS)
    a, b = _matrices(m, k, n)
    matmul = contraction.kernel(OPS["matmul"], (Type(F32, a.shape), Type(F32, b.shape)), {})
    return quickest(lambda: matmul(a, b))


def numpy_product(m: str, k: str, n: str) -> float:
    """NumPy's."""
    a, b = _matrices(m, k, n)
    return quickest(lambda: a @ b)


def numba_counter() -> float:
    """The counting loop in Numba."""
    import numba  # type: ignore[import-untyped, import-not-found, unused-ignore]

    @numba.njit  # type: ignore[untyped-decorator, unused-ignore]
    def count(a: float, b: float) -> float:
        while a < b:
            a = a + 2.0
            b = b + 1.0
        return a

    return quickest(lambda: count(0.0, 1e6))


def torch_loop(name: str) -> float:
    """The loop over scalars, or vectors of 16, in PyTorch, with its gradient."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    w = torch.full((16,) if name == "vectors" else (), 0.5, dtype=torch.float64, requires_grad=True)

    def run() -> None:
        s = w
        for _ in range(2000):
            s = s * 0.999 + w * 0.5 - s * w * 0.001
        torch.autograd.grad(s.sum(), w)

    torch.set_num_threads(THREADS)
    return quickest(run)


def process(*command: str) -> float:
    """A process of this interpreter from start to end; the files that it reads are warm."""
    whole = [sys.executable, *command]
    return quickest(lambda: subprocess.run(whole, cwd=ROOT, check=True, stdout=subprocess.DEVNULL), 2.0)


SIDES: dict[str, Callable[..., float]] = {
    f.__name__: f for f in (program, product, numpy_product, numba_counter, torch_loop, process)
}

if __name__ == "__main__":
    print(SIDES[sys.argv[1]](*sys.argv[2:]))
