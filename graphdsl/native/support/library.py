"""The functions of `functions` in memory: from the cache where it has them, and then without LLVM."""

from __future__ import annotations

from functools import cache as once
from typing import Any

from graphdsl.native import cache
from graphdsl.native.identity import machine
from graphdsl.native.loading import load
from graphdsl.native.sources import support_made_by
from graphdsl.native.support.words import SUPPORT


@once
def support_library() -> dict[str, int]:
    """Their addresses; linked once."""
    name = cache.key("support", support_made_by(), machine())
    _kept.append(load(cache.obtain(name, support_object), SUPPORT, {}))
    addresses: dict[str, int] = _kept[-1].addresses
    return addresses


def support_object() -> bytes:
    """Their object, from the compiler."""
    from graphdsl.native.support.functions import module
    from graphdsl.native.target import host

    return host().object_code(str(module(host())))


_kept: list[Any] = []
