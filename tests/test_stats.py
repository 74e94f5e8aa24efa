"""`--stats`: what a run took, on stderr, in both modes; and nothing else of the run changes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphdsl.cli import status
from graphdsl.cli.main import run
from graphdsl.runtime import files
from graphdsl.runtime.modes import MODES

CODE = "param w = 2.0\nx = ones(1000)\nfor i in 0..10 { x = x * w + exp(x) / 1e9; print i }\nprint sum(x)"


def stats_of(text: str) -> dict[str, Any]:
    """The one event on stderr."""
    (event,) = [json.loads(line) for line in text.splitlines()]
    found: dict[str, Any] = event
    return found


@pytest.mark.parametrize("mode", MODES)
def test_the_event(capsys: pytest.CaptureFixture[str], mode: str) -> None:
    assert run(["run", "-e", CODE, "--mode", mode, "--json"]) == status.DONE
    plain = capsys.readouterr()
    assert run(["run", "-e", CODE, "--mode", mode, "--json", "--stats"]) == status.DONE
    out, err = capsys.readouterr()
    assert (out, plain.err) == (plain.out, "")
    stats = stats_of(err)
    keys = ["event", "mode", "build_s", "compile_s", "cached", "run_s", "ops", "peak_bytes"]
    assert (list(stats), stats["event"], stats["mode"]) == (keys, "stats", mode)
    assert stats["run_s"] > 0
    assert stats["ops"] >= 10
    assert 8_000 < stats["peak_bytes"] < 200_000
    assert (stats["compile_s"] > 0) == (mode == "graph")


@pytest.mark.parametrize("mode", MODES)
def test_the_ops_are_those_that_compare_counts(capsys: pytest.CaptureFixture[str], mode: str) -> None:
    run(["compare", "-e", CODE, "--json", "--repeat", "1"])
    timings = [e for line in capsys.readouterr().out.splitlines() if (e := json.loads(line))["event"] == "timing"]
    run(["run", "-e", CODE, "--mode", mode, "--json", "--stats"])
    stats = stats_of(capsys.readouterr().err)
    assert [stats["ops"]] == [t["ops"] for t in timings if t["mode"] == mode]


@pytest.mark.parametrize("mode", MODES)
def test_the_text(graphdsl: Any, mode: str) -> None:
    said = graphdsl("run", "-e", CODE, "--mode", mode, "--stats")
    (line,) = said.err.splitlines()
    assert line.startswith(f"stats: {mode} mode, build ")
    assert "ops, at most" in line
    assert said.out.endswith("i = 9\nsum(x) = " + said.out.rpartition(" = ")[2])


def test_scalars_take_no_buffers(graphdsl: Any) -> None:
    said = graphdsl("run", "-e", "a = 0\nwhile a < 9 { a += 2 }\nprint a", "--mode", "graph", "--stats")
    assert said.err.rstrip().endswith("ops, no buffers")


@pytest.mark.parametrize("mode", MODES)
def test_no_effect_happens_twice(graphdsl: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    file = tmp_path / "p.gdl"
    file.write_text('x = load("n.npy") + 1\nprint x\nsave "out.npz", x\n')
    np.save(tmp_path / "n.npy", np.int64(1))
    written: list[str] = []
    save = files.save

    def saved(folder: str, path: str, items: Any) -> None:
        written.append(os.path.join(folder, path))
        save(folder, path, items)

    monkeypatch.setattr(files, "save", saved)
    said = graphdsl("run", str(file), "--mode", mode, "--stats")
    assert (said.code, said.out, written[0]) == (status.DONE, "x = 2\n", str(tmp_path / "out.npz"))
    assert str(tmp_path / "out.npz") not in written[1:]


@pytest.mark.parametrize("mode", MODES)
def test_a_run_that_fails_says_its_error_alone(graphdsl: Any, mode: str) -> None:
    said = graphdsl("run", "-e", "x = 0\nprint 1 // x", "--mode", mode, "--stats", "--json")
    assert (said.code, [e["event"] for e in said.events()]) == (status.WRONG_PROGRAM, ["error"])
