"""The kernel library as a whole: the same bits from every kernel on every target and thread count, and its place in
the cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from graphdsl.native import library
from graphdsl.native.inventory import elementwise_entries
from graphdsl.native.target import narrowed, native

HERE = Path(__file__).parent


@cache
def bits(**settings: str) -> dict[str, str]:
    """The digests of all kernels' results in a process of their own."""
    done = subprocess.run(
        [sys.executable, str(HERE / "bits.py")],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


def differing(a: dict[str, str], b: dict[str, str]) -> list[str]:
    assert a.keys() == b.keys()
    return [name for name in a if a[name] != b[name]]


@pytest.mark.parametrize("cpu", ["sse2", "avx", "avx2"])
def test_same_bits_on_a_lesser_machine(cpu: str) -> None:
    assert differing(bits(GRAPHDSL_CPU="native"), bits(GRAPHDSL_CPU=cpu)) == []


def test_same_bits_at_any_thread_count() -> None:
    assert differing(bits(GRAPHDSL_THREADS="1"), bits(GRAPHDSL_THREADS="3")) == []


def test_every_kernel_is_exported() -> None:
    linked = library.library()
    entries = list(elementwise_entries())
    assert all(linked[f"gdl.kernel.{entry.name}.info"] for entry in entries)
    assert len(entries) > 20


def test_built_once(tmp_path: Path) -> None:
    code = (
        "from graphdsl.native import building, library\n"
        "building.on_build.append(lambda: print('built'))\n"
        "library.library()\n"
    )
    env = {**os.environ, "GRAPHDSL_CACHE_DIR": str(tmp_path / "cache")}
    runs = [
        subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [r.stdout.split() for r in runs] == [["built"], []]


def test_targets_have_keys_of_their_own() -> None:
    targets = [native(), *(narrowed(name) for name in ("sse2", "sse4", "avx", "avx2", "avx512"))]
    if native() != narrowed("sse2"):  # else there is one target only
        assert len({t.key for t in targets}) == len(targets)


def test_an_unknown_cpu_is_an_error() -> None:
    with pytest.raises(ValueError, match="sse2"):
        narrowed("z80")


@pytest.mark.skipif(native() == narrowed("sse2"), reason="not x86")
def test_wide_vectors_are_used_where_there_are_any() -> None:
    from graphdsl.native.elementwise import define_kernel
    from graphdsl.ops.types import F32

    target = narrowed("avx512")
    module = target.module("wide")
    define_kernel(module, target, "k", lambda code, x, y: x * y + x, [F32, F32])
    assert "zmm" in target.assembly(str(module))
