"""Limits on memory and time, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Limits:
    """`memory` in bytes and `time` in seconds; None: no limit."""

    memory: int | None = None
    time: float | None = None
