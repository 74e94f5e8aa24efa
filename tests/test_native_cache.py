"""The object cache: what is not sound, or not ours, counts as absent, and nothing it does can fail a run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from graphdsl.native import cache, sources

posix = pytest.mark.skipif(sys.platform == "win32", reason="owners and modes as POSIX has them")
NAME = cache.key("some program", "x86")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "cache"
    monkeypatch.setenv("GRAPHDSL_CACHE_DIR", str(place))
    return place


def test_made_once() -> None:
    made: list[int] = []

    def make() -> bytes:
        made.append(1)
        return b"code"

    assert cache.obtain(NAME, make) == cache.obtain(NAME, make) == b"code"
    assert made == [1]


def test_key_keeps_parts_apart() -> None:
    assert cache.key("ab", "c") != cache.key("a", "bc")


@pytest.mark.parametrize("damage", [b"", b"graphdsl object 1\n", b"x" * 100])
def test_damaged_entry_is_absent(place: Path, damage: bytes) -> None:
    cache.write(NAME, b"code")
    (place / f"{NAME}.o").write_bytes(damage)
    assert cache.read(NAME) is None
    assert cache.obtain(NAME, lambda: b"again") == b"again"
    assert cache.read(NAME) == b"again"


def test_any_changed_byte_is_noticed(place: Path) -> None:
    cache.write(NAME, b"code")
    entry = place / f"{NAME}.o"
    sound = entry.read_bytes()
    for i in range(len(sound)):
        entry.write_bytes(sound[:i] + bytes([sound[i] ^ 1]) + sound[i + 1 :])
        assert cache.read(NAME) is None


def test_entry_under_another_name_is_absent(place: Path) -> None:
    cache.write(NAME, b"code")
    other = cache.key("another")
    (place / f"{NAME}.o").rename(place / f"{other}.o")
    assert cache.read(other) is None


@posix
def test_folder_is_private(place: Path) -> None:
    cache.write(NAME, b"code")
    assert place.stat().st_mode & 0o777 == 0o700
    place.chmod(0o777)
    assert cache.read(NAME) is None
    assert not cache.write(NAME, b"code")


@posix
def test_links_are_not_followed(place: Path, tmp_path: Path) -> None:
    cache.write(NAME, b"code")
    entry = place / f"{NAME}.o"
    entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(tmp_path / "elsewhere")
    assert cache.read(NAME) is None
    place.rename(tmp_path / "moved")
    place.symlink_to(tmp_path / "moved")
    assert not cache.write(NAME, b"code")


def test_a_folder_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRAPHDSL_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert cache.obtain(NAME, lambda: b"code") == b"code"
    assert cache.read(NAME) is None


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_read_only_folder(place: Path) -> None:
    cache.write(NAME, b"code")
    place.chmod(0o500)
    assert cache.read(NAME) == b"code"
    assert not cache.write(cache.key("new"), b"code")


def test_nothing_is_left_aside(place: Path) -> None:
    cache.write(NAME, b"code")
    assert [p.name for p in place.iterdir()] == [f"{NAME}.o"]


def test_several_processes_at_once() -> None:
    code = (
        "from graphdsl.native import cache\n"
        f"for i in range(200):\n    assert cache.obtain({NAME!r}, lambda: b'code' * 9999) == b'code' * 9999\n"
        f"    cache.write({NAME!r}, b'code' * 9999)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    assert [p.wait(timeout=60) for p in running] == [0, 0, 0]


def test_what_is_not_used_is_forgotten(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MOST_ENTRIES", 8)
    names = [cache.key(str(i)) for i in range(9)]
    for age, name in enumerate(names[:8]):
        cache.write(name, b"code")
        os.utime(place / f"{name}.o", (age, age))
    assert cache.read(names[0]) == b"code"  # used again
    cache.write(names[8], b"code")
    assert [cache.read(name) is not None for name in names] == [True, False, False, *[True] * 6]


@pytest.mark.parametrize(
    "file",
    ["runtime/faults.py", "native/scalar.py", "native/support/rows.py", "graph/passes/fuse.py", "ops/math/arcs.py"],
)
def test_no_code_of_another_version_is_found(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "graphdsl"
    shutil.copytree(Path(sources.__file__).parents[1], package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(sources, "_ROOT", package)

    def made_by() -> tuple[str, str, str]:
        asked = (sources.kernels_made_by, sources.programs_made_by, sources.support_made_by)
        kernels, programs, support = (ask.__wrapped__() for ask in asked)
        return kernels, programs, support

    kernels, programs, support = made_by()
    assert (kernels, programs, support) == made_by()
    with (package / file).open("a") as text:
        text.write("\n# another\n")
    assert made_by()[1] != programs
    assert (made_by()[0] != kernels) == file.startswith(("native/scalar", "ops"))
    assert (made_by()[2] != support) == file.startswith(("native", "ops"))
