"""Whatever comes in and wherever it goes: bad bytes, closed pipes, full disks, Ctrl-C. No traceback; the status tells."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from graphdsl.cli import status
from graphdsl.runtime.modes import MODES
from tests.command_line import ARTICLE, ROOT


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff\xfe\x00", bytes(range(256)) * 100, b"x = " + b"(" * 10_000, b"\x00", b"print 1 +", b'print "',
        b"x = " + b"-" * 10_000 + b"1\n", b"if true { " * 300,
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", MODES)
def test_bad_bytes(tmp_path: Path, graphdsl: Any, data: bytes, mode: str) -> None:
    file = tmp_path / "bad.gdl"
    file.write_bytes(data)
    said = graphdsl("run", str(file), "--mode", mode, "--json")
    assert said.code in (status.DONE, status.WRONG_PROGRAM)
    assert all("line" in event for event in said.events())


MANY = "run -e 'for i in 0..100000 { print i }'"
COMMANDS = [
    MANY, f"{MANY} --mode graph", f"grad {ARTICLE}", f"compare {ARTICLE} --repeat 1", f"ir {ARTICLE}", "ops",
    f"check {ARTICLE} --json", "--help", "grad --help", "--version",
]  # fmt: skip


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """Run by bash with the status of the first command of a pipe; `graphdsl` is this one."""
    line = f'graphdsl() {{ "{sys.executable}" -m graphdsl "$@"; }}; {command}; exit ${{PIPESTATUS[0]}}'
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)


@pytest.mark.skipif(os.name == "nt", reason="a shell")
def test_a_closed_pipe_ends_quietly() -> None:
    done = shell(f"graphdsl {MANY} | head -1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "i = 0\n", "")


@pytest.mark.skipif(os.name == "nt", reason="a shell")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_that_nobody_reads(command: str) -> None:
    done = shell(f"graphdsl {command} | true")
    assert (done.returncode, "Traceback" in done.stderr, "E0" in done.stderr) == (0, False, False)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_cannot_be_written(command: str) -> None:
    done = shell(f"graphdsl {command} > /dev/full")
    assert done.returncode == status.WRONG_PROGRAM
    said = [line for line in done.stderr.splitlines() if "E0614" in line]
    assert len(said) == 1
    assert "cannot write the output: No space left on device" in said[0]
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="a shell")
@pytest.mark.parametrize("command", COMMANDS)
def test_streams_that_are_closed(command: str) -> None:
    done = shell(f"graphdsl {command} >&-")
    assert (done.returncode, "Traceback" in done.stderr, "itself" in done.stderr) == (0, False, False)
    assert shell(f"graphdsl {command} >&- 2>&- <&-").returncode == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("where", ["2>/dev/full", "2>&-"])
def test_the_status_tells_what_messages_cannot(where: str) -> None:
    assert shell(f"graphdsl run -e 'print a' {where}").returncode == status.WRONG_PROGRAM
    assert shell(f"graphdsl run --unknown {where}").returncode == status.WRONG_USAGE


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "endless",
    [
        "a = 0\nwhile true { a += 1 }",
        "fn f(n: i64) -> i64 { if n == 0 { return 0 }; return f(n - 1) + f(n - 1) }\nprint f(60)",
    ],
    ids=["loop", "calls"],
)
def test_interruption(mode: str, endless: str) -> None:
    command = [sys.executable, "-m", "graphdsl", "run", "--mode", mode, "-e", f"print 1\n{endless}"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=ROOT, env=environment) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "1 = 1\n"
        time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=30)
    assert (running.returncode, err.strip()) == (status.INTERRUPTED, "interrupted")


def test_an_interruption_before_the_command_line_is_there() -> None:
    code = (
        "import sys, graphdsl.__main__ as entry\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'graphdsl.cli.main': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "entry.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (status.INTERRUPTED, "interrupted\n")


def test_a_fault_of_graphdsl_says_so(graphdsl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("something\nbroke")

    monkeypatch.setattr("graphdsl.api.program.Program.prepare", broken)
    said = graphdsl("run", "-e", "print 1")
    assert said.code == status.FAULT
    assert "graphdsl itself failed" in said.err
    assert "RuntimeError: something broke" in said.err
    assert "report" in said.err
    (event,) = graphdsl("run", "-e", "print 1", "--json").events()
    assert event["code"] == "internal"


def test_wrong_command_lines(graphdsl: Any) -> None:
    for args in (
        ["unknown"],
        ["run", "--unknown"],
        ["run", "--mode", "fast", "-e", "print 1"],
        ["check", ARTICLE, "-e", "x"],
    ):
        said = graphdsl(*args)
        assert said.code == status.WRONG_USAGE
    assert "Did you mean `compare`?" in graphdsl("compar").err
    assert f"graphdsl run {ARTICLE}" in graphdsl(ARTICLE).err
    (event,) = graphdsl("run", "--unknown", "--json").events()
    assert event["event"] == "error"


def test_every_command_shows_an_example(graphdsl: Any) -> None:
    for name in ("run", "grad", "compare", "check", "ir", "ops"):
        said = graphdsl(name, "--help")
        assert said.code == 0
        assert f"Example:  graphdsl {name}" in said.out
        assert name in graphdsl("--help").out
