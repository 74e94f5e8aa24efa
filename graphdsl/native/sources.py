"""What compiled code was made by: a digest of this package's own text, so that no cache gives the code of another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_KERNELS = ("native", "ops", "ops/math", "source")  # all that kernels are made by
_SUPPORT = (*_KERNELS, "native/support")


@cache
def kernels_made_by() -> str:
    """The digest of what decides the code of kernels."""
    return _of_folders(_KERNELS)


@cache
def support_made_by() -> str:
    """The digest of what decides the code of `native.support`."""
    return _of_folders(_SUPPORT)


@cache
def programs_made_by() -> str:
    """The digest of everything: there is little that has no say in the code of a program."""
    return _digest(_ROOT.rglob("*.py"))


def _of_folders(folders: Iterable[str]) -> str:
    return _digest(path for folder in folders for path in (_ROOT / folder).glob("*.py"))


def _digest(paths: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for name, path in sorted((path.relative_to(_ROOT).as_posix(), path) for path in paths):
        data = path.read_bytes()
        found.update(f"{name} {len(data)} ".encode() + data)
    return found.hexdigest()
