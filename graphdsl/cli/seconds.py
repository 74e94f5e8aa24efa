"""Times as people read them."""

from __future__ import annotations


def seconds(time: float) -> str:
    """`1.23 ms`."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if time >= factor:
            return f"{time / factor:.3g} {unit}" if time < 1000 * factor else f"{time / factor:.0f} {unit}"
    return f"{time * 1e9:.0f} ns"
