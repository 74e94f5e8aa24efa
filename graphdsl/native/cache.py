"""Compiled objects on disk, by content.

A folder that only its owner can use; an entry is a checksum and the object, written aside and renamed, so that any
number of processes may read and write at once. What is damaged, or not ours, counts as absent. A cache that cannot be
written is no error.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_MAGIC = b"graphdsl object 1\n"
_MOST_ENTRIES = 1000  # a program's object has some 10 to 100 kB
_DIGEST = hashlib.sha256().digest_size


def folder() -> Path:
    """`GRAPHDSL_CACHE_DIR`, or the place for caches on this platform."""
    if chosen := os.environ.get("GRAPHDSL_CACHE_DIR"):
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
        return Path(base) / "graphdsl" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "graphdsl"
    base = os.environ.get("XDG_CACHE_HOME") or ""
    # the standard says that relative paths are to be ignored
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "graphdsl"


def key(*parts: str) -> str:
    """The name of what is made from these texts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def obtain(name: str, make: Callable[[], bytes]) -> bytes:
    """The entry called `name`, made and stored if there is none that is sound."""
    found = read(name)
    if found is None:
        found = make()
        write(name, found)
    return found


def read(name: str) -> bytes | None:
    """The entry's object, or None."""
    try:
        place = folder()
        if not _private(place):
            return None
        data = _read_own(place / f"{name}.o")
    except (OSError, RuntimeError):  # RuntimeError: there is no home folder
        return None
    head = len(_MAGIC) + _DIGEST
    if data is None or not data.startswith(_MAGIC):
        return None
    content = data[head:]
    if _digest(name, content) != data[len(_MAGIC) : head]:
        return None
    with suppress(OSError):
        os.utime(place / f"{name}.o")  # what is used is kept longest
    return content


def write(name: str, content: bytes) -> bool:
    """Stores an entry, whole or not at all; False where that is not possible."""
    try:
        place = folder()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _private(place):
            return False
        handle, aside = tempfile.mkstemp(prefix=f"{name[:16]}.", suffix=".tmp", dir=place)
    except (OSError, RuntimeError):
        return False
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + _digest(name, content) + content)
        os.replace(aside, place / f"{name}.o")
    except OSError:
        with suppress(OSError):
            os.unlink(aside)
        return False
    _forget_oldest(place)
    return True


def _forget_oldest(place: Path) -> None:
    """Removes a quarter of the entries, those not used for longest, when there are too many."""
    with suppress(OSError):
        entries = [entry for entry in os.scandir(place) if entry.name.endswith((".o", ".tmp"))]
        if len(entries) > _MOST_ENTRIES:
            entries.sort(key=_last_use)
            for entry in entries[: _MOST_ENTRIES // 4]:
                with suppress(OSError):  # another process may have been quicker
                    os.unlink(entry.path)


def _last_use(entry: os.DirEntry[str]) -> float:
    try:
        return entry.stat(follow_symlinks=False).st_mtime
    except OSError:
        return 0.0


def _digest(name: str, content: bytes) -> bytes:
    # over the name too: an entry that was renamed is not taken for another
    return hashlib.sha256(name.encode() + b"\n" + content).digest()


def _private(place: Path) -> bool:
    """Whether the folder is ours alone to write in. (Windows: user folders are, by their access lists.)"""
    if sys.platform == "win32":
        return place.is_dir()
    status = os.lstat(place)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _read_own(path: Path) -> bytes | None:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    handle = os.open(path, flags)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        owned = sys.platform == "win32" or status.st_uid == os.geteuid()
        return file.read() if owned and stat.S_ISREG(status.st_mode) else None
