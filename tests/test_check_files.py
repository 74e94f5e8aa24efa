"""`save`: what is written, whole or not at all, in both modes; what is wrong with it, found when the program is checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphdsl.api import ProgramError, load
from graphdsl.runtime.modes import MODES
from graphdsl.source.span import Source
from tests.running import said

SAVING = """\
param w = [1.0, 2.0]
t = (3, (w * 2.0, true))
n = 0
for i in 0..2 {
    save "ck_{i}.npz", w, t, n
    n += i + 1
    w := w + 1.0
}
save "one.npy", f32(w) * 0.5
w_again: f64[2] = load("ck_1.npz", "w")
print w_again
"""


@pytest.mark.parametrize("mode", MODES)
def test_entries_are_names_and_parts_of_tuples(mode: str, tmp_path: Path) -> None:
    file = tmp_path / "saving.gdl"
    file.write_text(SAVING)
    load(str(file)).run(mode=mode)
    with np.load(tmp_path / "ck_1.npz", allow_pickle=False) as found:
        assert {n: (found[n].dtype.name, found[n].tolist()) for n in found.files} == {
            "w": ("float64", [2.0, 3.0]),
            "t_0": ("int64", 3),
            "t_1_0": ("float64", [2.0, 4.0]),
            "t_1_1": ("bool", True),
            "n": ("int64", 1),
        }
    one = np.load(tmp_path / "one.npy", allow_pickle=False)
    assert (one.dtype.name, one.tolist()) == ("float32", [1.5, 2.0])


@pytest.mark.parametrize("mode", MODES)
def test_a_save_that_fails_leaves_what_was_there(mode: str, tmp_path: Path) -> None:
    old = tmp_path / "old.npz"
    old.write_bytes(b"as it was")
    file = tmp_path / "failing.gdl"
    file.write_text('x = 1.0\nprint x\nsave "gone/x.npz", x\nsave "old.npz", x\n')
    with pytest.raises(ProgramError) as caught:
        load(str(file)).run(mode=mode)
    assert caught.value.diagnostics[0].code == "E0611"
    assert caught.value.diagnostics[0].span.line == 3
    assert old.read_bytes() == b"as it was"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["failing.gdl", "old.npz"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("save 3, 4", "E0219"),
        ('x = 1; save "a.npz", x, x', "E0222"),
        ('save "a.npz", 3 + 4', "E0222"),
        ('save "a.npz", sin', "E0218"),
        ('save "a.npz", q', "E0201"),
        ('x = 1; t = (2, 3); t_0 = x; save "a.npz", t, t_0', "E0222"),
    ],
)
def test_what_cannot_be_saved(text: str, code: str) -> None:
    for mode in MODES:
        assert code in said(Source("a.gdl", text), mode)[-1]


@pytest.mark.parametrize("mode", MODES)
def test_columns_of_a_csv_are_a_matrix(tmp_path: Path, mode: str) -> None:
    (tmp_path / "d.csv").write_text("price,e\n1,2.5\n3,4.5\n", "utf-8")
    file = tmp_path / "a.gdl"
    file.write_text('x = load("d.csv", ["e", "price"])\ny: f64[n, 1] = load("d.csv", entry=["price"])\n', "utf-8")
    found = load(str(file)).run(mode=mode)
    assert found["x"].tolist() == [[2.5, 1.0], [4.5, 3.0]]
    assert found["y"].tolist() == [[1.0], [3.0]]


COMPUTED = """
n = 2
for i in 0..n { x = [1.0, 2.0, 3.0] * i; save "t{i:02d}.npy", x }
p = "t{n - 1:02d}.npy"
a: f64[m] = load(p)
s = 0.0
for i in 0..n { y: f64[3] = load("t{i:02d}.npy"); s += sum(y) }
fn f(q) { r: f64[3] = load(q); return r }
b = f("t{n - 1:02d}.npy")
"""


@pytest.mark.parametrize("mode", MODES)
def test_the_path_of_an_annotated_load_is_computed(tmp_path: Path, mode: str) -> None:
    file = tmp_path / "a.gdl"
    file.write_text(COMPUTED, "utf-8")
    found = load(str(file)).run(mode=mode)
    assert (found["a"].tolist(), found["m"], found["s"], found["b"].tolist()) == (
        [1.0, 2.0, 3.0],
        3,
        6.0,
        [1.0, 2.0, 3.0],
    )
    file.write_text("n = 7\nx: f64[3] = load('t{n}.npy')".replace("'", '"'), "utf-8")
    with pytest.raises(ProgramError) as caught:
        load(str(file)).run(mode=mode)
    assert (caught.value.diagnostics[0].code, caught.value.diagnostics[0].span.line) == ("E0601", 2)
    assert "t7.npy" in caught.value.diagnostics[0].message


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('n = 2; x = load("t{n}.npy")', "E0320"),
        ("x: f64[3] = load(3)", "E0320"),
        ('n = 2; x: f64[3] = load("a.npz", "e{n}")', "E0320"),
        ('x: f64[3] = load(entry="a")', "E0"),
        ("x: f64[3] = load(nope)", "E0201"),
    ],
)
def test_what_cannot_be_loaded(text: str, code: str) -> None:
    for mode in MODES:
        assert code in said(Source("a.gdl", text), mode)[-1]
