"""What tells one machine's code from another's, as text: part of every key of the cache.

On Linux it is what the kernel says of the CPU, so that finding code in the cache needs no LLVM.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_TELLING = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "CPU implementer", "Features")


@cache
def machine() -> str:
    """The machine, what `GRAPHDSL_CPU` narrows it to, and the version of the compiler."""
    narrowed = os.environ.get("GRAPHDSL_CPU", "native")
    cpu = _linux_cpu() if sys.platform == "linux" else ""
    if not cpu:
        from graphdsl.native.target import host

        return host().key
    return "\n".join([narrowed, _compiler(), cpu])


def _compiler() -> str:
    """The version of llvmlite, which carries its LLVM: read and not imported."""
    spec = find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return "none"
    return (Path(spec.origin).parent / "_version.py").read_text("utf-8")


def _linux_cpu() -> str:
    """What is said of the first processor that decides what code it runs."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace").split("\n\n")[0]
    except OSError:
        return ""
    lines = (line.partition(":") for line in text.splitlines())
    found = [f"{name.strip()}:{value.strip()}" for name, _, value in lines if name.strip() in _TELLING]
    return "\n".join([os.uname().machine, *found]) if any(f.startswith(("flags", "Features")) for f in found) else ""
