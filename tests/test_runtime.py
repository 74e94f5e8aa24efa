"""What both modes share as they run: numbers as text, files, feeds, limits."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphdsl.core.ir import Feed, Value
from graphdsl.ops.types import BOOL, F32, F64, I32, I64, DType, Size, Type
from graphdsl.runtime import feeds, files
from graphdsl.runtime.format import formatted, json_value, number, spec_problem, text
from graphdsl.runtime.limits import Limits, size_text
from graphdsl.runtime.state import Stream
from graphdsl.source.diagnostic import Fault, ProgramError
from graphdsl.source.span import Source, Span
from graphdsl.source.words import filled

LIMITS = Limits(memory=2**24)


def message(call: Any, *args: Any) -> str:
    """What a fault says."""
    with pytest.raises(Fault) as caught:
        call(*args)
    kind, numbers = caught.value.kind, caught.value.numbers
    return f"{kind.code} {kind.text(*numbers)} / {kind.hint and filled(kind.hint, numbers)}"


# ---- text -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "dtype", "shown"),
    [
        (0.1, F64, "0.1"),
        (20, I64, "20"),
        (20.0, F64, "20.0"),
        (1e-07, F64, "1e-07"),
        (1e22, F64, "1e+22"),
        (float("-inf"), F64, "-inf"),
        (-float("nan"), F64, "nan"),
        (-0.0, F64, "-0.0"),
        (np.float32(0.1), F32, "0.1"),
        (np.float32(1e-45), F32, "1e-45"),
        (np.float32(16777216), F32, "16777216.0"),
        (True, BOOL, "true"),
    ],
)
def test_a_number_is_the_shortest_text_that_reads_back(value: Any, dtype: DType, shown: str) -> None:
    assert number(value, dtype) == text(value, dtype) == shown


def test_f32_arrays_have_the_text_of_their_numbers() -> None:
    array = np.random.default_rng(1).standard_normal(500).astype("f4") * np.float32(10.0) ** np.arange(
        -30, 20, 0.1, "f4"
    )
    shown = text(array, F32).removeprefix("f32[500] [").removesuffix("]").split(", ")
    assert shown == [number(x, F32) for x in array]
    assert (np.array(shown, "f4") == array).all()


def test_tensors_are_shown_with_their_type() -> None:
    assert text(np.array([[1, 2], [3, 4]]), I64) == "i64[2, 2] [[1, 2], [3, 4]]"
    assert text(np.array([True, False]), BOOL) == "bool[2] [true, false]"
    assert text(np.zeros((0, 3)), F64) == "f64[0, 3] []"
    assert text(np.zeros((2, 0)), F64) == "f64[2, 0] [[], []]"


def test_long_tensors_are_shown_by_their_ends() -> None:
    assert text(np.arange(1000), I64).endswith("998, 999]")
    assert text(np.arange(1001), I64) == "i64[1001] [0, 1, 2, ..., 998, 999, 1000]"
    shown = text(np.arange(2000).reshape(500, 4), I64)
    assert shown.startswith("i64[500, 4] [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], ..., [1988")
    assert text(np.zeros((2, 0, 4000)), F64) == "f64[2, 0, 4000] [[], []]"


def test_json_has_strings_for_what_is_not_finite() -> None:
    array = np.array([[1.0, np.nan], [-np.inf, np.inf]])
    assert json_value(array, F64) == '[[1.0, "NaN"], ["-Infinity", "Infinity"]]'
    assert json_value(-np.inf, F64) == '"-Infinity"'
    assert json_value(np.float32(0.1), F32) == "0.1"
    assert json_value(np.array([True]), BOOL) == "[true]"


@pytest.mark.parametrize(
    ("value", "dtype", "spec", "shown"),
    [
        (3.14159, F64, ".2f", "3.14"),
        (np.float32(0.1), F32, ">6", "   0.1"),
        (np.float32(0.1), F32, ".10f", "0.1000000015"),
        (255, I64, "#x", "0xff"),
        (True, BOOL, ">6", "  true"),
        (True, BOOL, "d", "1"),
        (1234567, I64, ",", "1,234,567"),
    ],
)
def test_format_specs_are_pythons(value: Any, dtype: DType, spec: str, shown: str) -> None:
    assert spec_problem(spec, dtype) is None
    assert formatted(value, dtype, spec) == shown


@pytest.mark.parametrize(
    ("spec", "dtype"),
    [("q", F64), (".2f.", F64), ("d", F64), ("s", I64), (">1001", F64), (".99999999999f", F64), ("c", I64)],
)
def test_wrong_format_specs_are_found_beforehand(spec: str, dtype: DType) -> None:
    assert spec_problem(spec, dtype)


# ---- files ------------------------------------------------------------------------------------


def test_what_is_saved_loads_again(tmp_path: Path) -> None:
    w, k = np.array([[1.0, -0.0], [np.nan, 2.5]]), 7
    files.save(str(tmp_path), "a.npz", [("w", F64, w), ("k", I64, k), ("f", F32, np.float32(0.1))])
    assert files.type_of(str(tmp_path), "a.npz", "w") == (F64, (2, 2))
    loaded = files.load(str(tmp_path), "a.npz", "w", Type(F64, (2, Size("n"))), LIMITS)
    assert loaded.tobytes() == w.tobytes()
    assert files.load(str(tmp_path), "a.npz", "k", Type(F64), LIMITS) == 7.0
    assert files.load(str(tmp_path), "a.npz", "f", Type(F32), LIMITS) == np.float32(0.1)
    assert sorted(np.load(tmp_path / "a.npz")) == ["f", "k", "w"]


def test_a_failed_save_changes_nothing(tmp_path: Path) -> None:
    files.save(str(tmp_path), "a.npy", [("x", I64, np.arange(3))])
    before = (tmp_path / "a.npy").read_bytes()
    with pytest.raises(TypeError):
        files.save(str(tmp_path), "a.npy", [("x", F64, object())])
    assert (tmp_path / "a.npy").read_bytes() == before
    assert os.listdir(tmp_path) == ["a.npy"]
    assert "E0612" in message(files.save, str(tmp_path), "a.npy", [("x", I64, 1), ("y", I64, 2)])
    assert "E0611" in message(files.save, str(tmp_path), "no/a.npy", [("x", I64, 1)])
    assert "E0610" in message(files.save, str(tmp_path), "a.txt", [("x", I64, 1)])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.npy", "a.npz"):
        files.save(str(tmp_path), name, [("x", I64, np.arange(3))])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    plain = open
    monkeypatch.setattr("builtins.open", lambda _, mode: plain("/dev/full", mode.replace("x", "w")))
    for name in before:
        found = message(files.save, str(tmp_path), name, [("x", I64, np.arange(3))])
        assert "No space left on device" in found
        assert "nothing was changed" in found
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.skipif(os.name == "nt", reason="modes and pipes")
def test_only_plain_files_are_replaced_and_keep_their_mode(tmp_path: Path) -> None:
    files.save(str(tmp_path), "a.npy", [("x", I64, 1)])
    (tmp_path / "a.npy").chmod(0o640)
    files.save(str(tmp_path), "a.npy", [("x", I64, 2)])
    assert (tmp_path / "a.npy").stat().st_mode & 0o777 == 0o640
    os.mkfifo(tmp_path / "b.npy")
    os.symlink("c.npy", tmp_path / "c.npy")
    os.symlink("a.npy", tmp_path / "d.npy")
    (tmp_path / "e.npy").mkdir()
    for name, words in {"b": "not a plain file", "c": "symbolic links", "e": "a folder"}.items():
        assert words in message(files.save, str(tmp_path), f"{name}.npy", [("x", I64, 3)])
    files.save(str(tmp_path), "d.npy", [("x", I64, 4)])
    assert (tmp_path / "d.npy").is_symlink()
    assert files.read(str(tmp_path), "a.npy", None, LIMITS) == 4


@pytest.mark.parametrize(
    ("stored", "dtype"), [("i1", I32), ("u2", I32), ("u4", I64), ("f2", F32), (">f8", F64), ("?", BOOL), (">i4", I32)]
)
def test_other_dtypes_are_widened(tmp_path: Path, stored: str, dtype: DType) -> None:
    np.save(tmp_path / "a.npy", np.array([[0, 1, 1]], stored))
    array = files.read(str(tmp_path), "a.npy", None, LIMITS)
    assert (array.dtype.name, array.tolist()) == (dtype.numpy, [[0, 1, 1]])


def test_arrays_in_fortran_order_are_turned(tmp_path: Path) -> None:
    array = np.arange(6).reshape(2, 3)
    np.save(tmp_path / "a.npy", np.asfortranarray(array))
    loaded = files.read(str(tmp_path), "a.npy", None, LIMITS)
    assert loaded.flags.c_contiguous
    assert (loaded == array).all()


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    text = header.encode("latin-1")
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 if version == 1 else 4, "little") + text + data


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "does not begin"),
        (b"\x93NUMPY\x01\x00\xff", "header"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (8796093022208,)}"), "ends too early"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,)}", b"\0" * 8), "ends too early"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4611686018427387903, 9)}"), "9223372 TB"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-3,)}"), "header"),
        (npy("{'descr': '<f8', 'fortran_order': 0, 'shape': (3,)}"), "header"),
        (npy("(" * 5000), "header"),
        (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"), "refused"),
        (npy("{'descr': '<c16', 'fortran_order': False, 'shape': (1,)}"), "complex128"),
        (npy("{'descr': '<U3', 'fortran_order': False, 'shape': (1,)}"), "str"),
    ],
)
def test_damaged_and_hostile_npy_files(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "a.npy").write_bytes(data)
    assert words in message(files.read, str(tmp_path), "a.npy", None, LIMITS)


def test_an_npz_that_unfolds_to_more_than_the_limit(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", w=np.zeros(2**24))
    assert "limit" in message(files.read, str(tmp_path), "a.npz", "w", LIMITS)


def test_an_npz_that_says_more_than_it_holds(tmp_path: Path) -> None:
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000,)}"
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("w.npy", npy(header, bytes(7_999_000)))
        archive.writestr("n" * 60_000 + ".npy", b"")
    assert "ends too early" in message(files.read, str(tmp_path), "a.npz", "w", LIMITS)
    assert len(message(files.read, str(tmp_path), "a.npz", "v", LIMITS)) < 200


def test_hostile_npz_files(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    buffer = io.BytesIO()
    np.savez(buffer, w=np.arange(1000.0))
    whole = buffer.getvalue()
    rng = np.random.default_rng(0)
    codes: set[str] = set()
    for _ in range(200):
        broken = bytearray(whole)
        for place in rng.integers(0, len(whole), 4):
            broken[place] = rng.integers(256)
        path.write_bytes(bytes(broken[: rng.integers(1, len(whole) + 1)]) if rng.integers(2) else bytes(broken))
        try:
            files.read(str(tmp_path), "a.npz", "w", LIMITS)
        except Fault as fault:
            codes.add(fault.kind.code)
    assert codes <= {"E0601", "E0602", "E0603", "E0604", "E0605", "E0730"}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("w.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", b"\0" * 8))
    assert "compression" in message(files.read, str(tmp_path), "a.npz", "w", LIMITS)


def test_csv_columns(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text('\ufeffn,price, "when, exactly"\n1,2.5,2020-01-01\n\n3,,x\n', "utf-8")
    assert files.read(str(tmp_path), "d.csv", "n", LIMITS).tolist() == [1, 3]
    prices = files.read(str(tmp_path), "d.csv", "price", LIMITS)
    assert str(prices.tolist()) == "[2.5, nan]"
    assert files.type_of(str(tmp_path), "d.csv", ("n", "price")) == (F64, (2, 2))
    assert "line 2 of `d.csv`: `2020-01-01`" in message(files.read, str(tmp_path), "d.csv", "when, exactly", LIMITS)
    assert "it has `n`, `price`" in message(files.read, str(tmp_path), "d.csv", None, LIMITS)
    assert "no column `m`" in message(files.read, str(tmp_path), "d.csv", "m", LIMITS)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n1\n", "line 2"),
        ("a,b\n1,2\n1,2,3\n", "line 3"),
        ("a\n1_000\n", "`1_000`"),
        ("a\n0x10\n", "`0x10`"),
        ('a\n"1\n', "csv"),
        ("a,a\n1,2\n", "single column"),
        ("", "no column"),
        ("b\n" + "9" * 200_000, "csv"),
    ],
)
def test_wrong_csv_files(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "d.csv").write_text(content)
    assert words in message(files.read, str(tmp_path), "d.csv", "a", LIMITS)


def test_a_csv_of_more_than_the_limit(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a\n" + "1\n" * 100_000)
    assert files.read(str(tmp_path), "d.csv", "a", LIMITS).tolist() == [1] * 100_000
    assert "limit" in message(files.read, str(tmp_path), "d.csv", "a", Limits(memory=10**6))
    (tmp_path / "d.csv").write_text("a" + ",a" * 2**23 + "\n")
    assert "characters" in message(files.read, str(tmp_path), "d.csv", "a", LIMITS)


def test_csv_numbers_that_no_i64_holds_are_floats(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a\n9223372036854775808\n-1e3\n")
    assert files.read(str(tmp_path), "d.csv", "a", LIMITS).tolist() == [2.0**63, -1000.0]
    (tmp_path / "d.csv").write_text("a\n-0\n7\n1.5\n")
    assert str(files.read(str(tmp_path), "d.csv", "a", LIMITS).tolist()) == "[-0.0, 7.0, 1.5]"


def test_only_plain_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "d.npy").mkdir()
    assert "plain" in message(files.read, str(tmp_path), "d.npy", None, LIMITS)
    assert "E0601" in message(files.read, str(tmp_path), "no.npy", None, LIMITS)
    assert "E0601" in message(files.read, str(tmp_path), "a\0.npy", None, LIMITS)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "f.npy")
        assert "plain" in message(files.read, str(tmp_path), "f.npy", None, LIMITS)


def test_a_file_that_turned_out_otherwise(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    n = Size("n")
    for type in (Type(F32, (2, 3)), Type(F64, (3, 3)), Type(F64, (6,)), Type(F64, (n, n))):
        assert "E0609" in message(files.load, str(tmp_path), "a.npy", None, type, LIMITS)


# ---- feeds ------------------------------------------------------------------------------------


def fed(type: Type, given: Any) -> Any:
    return feeds.fit("x", type, feeds.read("x", given, LIMITS, "."), {})


@pytest.mark.parametrize(
    ("type", "given", "value"),
    [
        (Type(F64), "3", 3.0),
        (Type(F32), "0.1", np.float32(0.1)),
        (Type(I32), "-5", -5),
        (Type(BOOL), "true", True),
        (Type(F64), "-inf", -np.inf),
        (Type(F64, (2,)), "[1, 2.5]", [1.0, 2.5]),
        (Type(I64, (2, 1)), "[[1],[2_000]]", [[1], [2000]]),
        (Type(I32, (0,)), "[]", []),
        (Type(BOOL, (Size(),)), [], []),
        (Type(F64, (Size(),)), [1, 2], [1.0, 2.0]),
        (Type(F64), np.float32(0.5), 0.5),
        (Type(F64, (1,)), np.array([3], "i2"), [3.0]),
    ],
)
def test_feeds_are_converted_without_loss(type: Type, given: Any, value: Any) -> None:
    made = fed(type, given)
    assert np.array_equal(made, value)
    assert (made.dtype.name == type.dtype.numpy) if type.rank else not isinstance(made, np.ndarray)


@pytest.mark.parametrize(
    ("type", "given", "code"),
    [
        (Type(I64), "2.5", "E0622"),
        (Type(F32), np.float64(0.5), "E0622"),
        (Type(F32), np.array([1]), "E0622"),
        (Type(I32), "2147483648", "E0626"),
        (Type(F64, (3,)), "[1, 2]", "E0624"),
        (Type(F64), "[1]", "E0623"),
        (Type(F64), "[1", "E0621"),
        (Type(F64), "1]", "E0621"),
        (Type(F64), "1,2", "E0621"),
        (Type(F64), "[1,,2]", "E0621"),
        (Type(F64), "[1,[2]]", "E0621"),
        (Type(F64), "[true,1]", "E0621"),
        (Type(F64), "", "E0621"),
        (Type(F64), "1e", "E0621"),
        (Type(F64), "[" * 5000 + "]" * 5000, "E0621"),
        (Type(I64), "9" * 5000, "E0621"),
        (Type(F64), "abc", "E0621"),
        (Type(F64), {"a": 1}, "E0621"),
        (Type(F64), np.array(["a"]), "E0621"),
        (Type(F64), "@no.npy", "E0601"),
    ],
)
def test_feeds_that_do_not_fit(type: Type, given: Any, code: str) -> None:
    assert message(fed, type, given).startswith(code)


def test_feeds_from_files(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("price,n\n1.5,2\n")
    np.savez(tmp_path / "m.npz", w=np.ones(2))
    assert fed(Type(F64, (1,)), f"@{tmp_path / 'd.csv'}:price").tolist() == [1.5]
    assert fed(Type(F64, (2,)), f"@{tmp_path / 'm.npz'}:w").tolist() == [1.0, 1.0]


def test_named_dims_agree_between_feeds() -> None:
    span = Span(Source("a.gdl", "input x: f64[n]"), 0, 5)
    n = Size("n")
    wanted = [Feed(span, name, Value(Type(F64, (n,)))) for name in ("x", "t")]
    assert feeds.fit_all(wanted, {"x": [1, 2], "t": [3, 4]}, LIMITS)["t"].tolist() == [3.0, 4.0]
    with pytest.raises(ProgramError) as caught:
        feeds.fit_all(wanted, {"x": [1, 2], "t": [3]}, LIMITS)
    assert "`n` is 2, from `x`" in caught.value.diagnostics[0].message
    with pytest.raises(ProgramError) as caught:
        feeds.fit_all(wanted, {}, LIMITS)
    assert [d.code for d in caught.value.diagnostics] == ["E0620", "E0620"]


# ---- the rest ---------------------------------------------------------------------------------


def test_a_draw_moves_the_stream_by_its_size() -> None:
    stream = Stream(key=1)
    assert [stream.take(3), stream.take(0), stream.take(5)] == [0, 3, 3]
    stream.seed(-1)
    assert (stream.key, stream.counter) == (2**64 - 1, 0)


def test_sizes_as_text() -> None:
    assert [size_text(n) for n in (12, 1500, 8 * 2**40)] == ["12 bytes", "1.5 kB", "8.8 TB"]
    assert I32.bytes == 4
