"""Files for a program that runs several times over and shall leave what one run leaves.

The first run saves as every run does. The later ones save aside, in a folder that goes away with the `Rehearsal`, and
load what the first one found: each run sees the files as they were before all of them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from graphdsl.ops.types import DType, Type
from graphdsl.runtime import files
from graphdsl.runtime.limits import Limits


class Rehearsal:
    """Loads and saves for runs of one program, in the place of `runtime.files`."""

    def __init__(self) -> None:
        self._aside = tempfile.TemporaryDirectory(prefix="graphdsl-")
        self._runs = 0
        self._found: dict[str, str | None] = {}  # by full path, what the first run replaced (None: there was no file)
        self._saved: dict[str, str] = {}  # by full path, what this run has saved

    def begin(self) -> None:
        """A run is about to begin."""
        self._runs += 1
        self._saved = {}

    @property
    def _first(self) -> bool:
        return self._runs <= 1

    def load(self, folder: str, path: str, entry: Any, type: Type, limits: Limits) -> Any:
        """As `files.load`."""
        full = os.path.abspath(os.path.join(folder, path))
        before = None if self._first else self._saved.get(full, self._found.get(full))
        return files.load(folder, path if before is None else before, entry, type, limits)

    def save(self, folder: str, path: str, items: Sequence[tuple[str, DType, Any]]) -> None:
        """As `files.save`. What the first run could not save fails later too."""
        full = os.path.abspath(os.path.join(folder, path))
        if self._first:
            before = self._kept(full)
            files.save(folder, path, items)
            self._found.setdefault(full, before)
        elif full in self._found:
            self._saved[full] = self._place(full, "saved")
            files.save(folder, self._saved[full], items)
        else:
            files.save(folder, path, items)

    def _kept(self, full: str) -> str | None:
        """A copy of what stands at a path before the first run replaces it."""
        if full in self._found or not os.path.isfile(full):
            return None
        place = self._place(full, "found")
        with suppress(OSError):
            shutil.copyfile(full, place)
            return place
        return None

    def _place(self, full: str, kind: str) -> str:
        known = [*self._found, full]
        return os.path.join(self._aside.name, f"{kind}{known.index(full)}{os.path.splitext(full)[1]}")
