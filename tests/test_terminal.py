"""The command line on a terminal: everything fits its width, whichever of the two streams it is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from graphdsl.cli.main import run
from graphdsl.native.building import on_build

ROOT = Path(__file__).parents[1]
ARTICLE = str(ROOT / "samples" / "article.gdl")
WIDE = """
param a_rather_long_name_of_a_matrix = zeros(3, 4)
other_long_name = ones(5, 7)
print a_rather_long_name_of_a_matrix @ other_long_name @ other_long_name, a_rather_long_name_of_a_matrix + 1.0
v = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0] + zeros(2)
"""

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a pseudo-terminal")


def on_a_terminal(columns: int, *args: str, streams: str = "out err") -> tuple[int, list[str]]:
    """The exit status, and the lines that a terminal of this width shows of the streams that are one; without colours."""
    import fcntl
    import pty
    import struct
    import termios

    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")} | {"TERM": "xterm"}
    out, err = (theirs if name in streams else subprocess.DEVNULL for name in ("out", "err"))
    command = [sys.executable, "-m", "graphdsl", *args]
    with subprocess.Popen(command, stdin=theirs, stdout=out, stderr=err, env=environment, cwd=ROOT) as running:
        os.close(theirs)
        said = b""
        while True:
            try:
                more = os.read(mine, 65536)
            except OSError:  # how Linux says that the other end has gone
                break
            if not more:
                break
            said += more
    os.close(mine)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode("utf-8"))
    return running.returncode, [line.rpartition("\r")[2] for line in text.replace("\r\n", "\n").split("\n")]


@pytest.mark.parametrize("columns", [80, 60])
@pytest.mark.parametrize(
    "args",
    [
        ["check", "-e", WIDE],
        ["compare", ARTICLE, "--repeat", "2"],
        ["ops"],
        ["ops", "matmul"],
        ["ops", "concat"],
        ["ir", ARTICLE, "--pass", "nothing"],
    ],
    ids=lambda args: " ".join(args[:2]),
)
def test_everything_fits(columns: int, args: list[str]) -> None:
    _, lines = on_a_terminal(columns, *args)
    assert [line for line in lines if len(line) > columns] == []


@pytest.mark.parametrize("command", ["run", "grad", "compare", "check", "ir", "ops"])
def test_help_fits(command: str) -> None:
    _, lines = on_a_terminal(80, command, "--help")
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize("columns", [60, 110])
def test_diagnostics_have_the_width_of_their_own_stream(columns: int) -> None:
    _, lines = on_a_terminal(columns, "check", "-e", WIDE, streams="err")
    assert columns - 10 < max(map(len, lines)) <= columns


def test_a_pipe_gets_its_lines_whole() -> None:
    command = [sys.executable, "-m", "graphdsl", "ops"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=ROOT, check=True)
    assert max(map(len, done.stdout.split("\n"))) > 100


@pytest.mark.parametrize("looks_on", [True, False])
def test_who_looks_on_is_told_what_takes_so_long(
    looks_on: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["ops", "sqrt"])
    capsys.readouterr()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: looks_on)
    for tell in on_build:
        tell()
    assert ("building the kernel library" in capsys.readouterr().err.replace("\n", " ")) == looks_on
