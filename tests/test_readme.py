"""Every command and output shown in the README is true."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text("utf-8")


def sessions() -> list[tuple[str, str]]:
    """Each `$ command` of the console blocks and what stands under it."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.S):
        for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
            found.append((command, output))
    return found


def run(command: str) -> str:
    words = shlex.split(command)
    assert words[0] == "graphdsl"
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-m", *words], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(("command", "output"), sessions(), ids=[c[:50] for c, _ in sessions()])
def test_a_command_prints_what_is_shown(command: str, output: str) -> None:
    assert output.rstrip("\n") == run(command).rstrip("\n")


def test_the_python_example_prints_what_is_shown() -> None:
    (code, output) = re.findall(r"```python\n(.*?)```\n\nprints\n\n```\n(.*?)```", TEXT, re.S)[0]
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == output, done.stderr


def test_the_sample_shown_is_the_sample() -> None:
    (shown,) = re.findall(r"```\n# samples/article.gdl\n(.*?)```", TEXT, re.S)
    sample = (ROOT / "samples" / "article.gdl").read_text("utf-8")
    assert [re.sub(r"\s*#.*", "", line) for line in sample.splitlines() if line[0] != "#"] == shown.splitlines()


def test_continuous_integration_calls_the_command_shown() -> None:
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    (command,) = re.findall(r"^    python -m pip install '\.\[dev\]' && (.*)$", TEXT, re.M)
    assert command in script
