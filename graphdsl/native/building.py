"""Who is told before the kernel library is built, which takes seconds. Nothing is imported here: whoever asks may never
need the library.
"""

from __future__ import annotations

from collections.abc import Callable

on_build: list[Callable[[], None]] = []
