"""`--probe`: every value that a name takes, in both modes, and nothing else of the run changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graphdsl import api
from graphdsl.api.probes import NoProbe
from graphdsl.cli import status
from graphdsl.runtime.events import Recorded, Summary
from graphdsl.runtime.modes import MODES

LOOP = """
fn half(x) {
  h = x / 2.0
  return h
}
param w = 8.0
h = w
for i in 0..4 {
  if i % 2 == 0 { print "trip {i}" }
  h = half(h)
}
w := h * 2.0
print grad(h, w)
""".lstrip()
PROGRAMS = [p for p in sorted((Path(__file__).parent / "programs").glob("c*.gdl")) if "--feed" not in p.read_text()]


def probed(code: str, mode: str, *probes: str) -> list[tuple[int, Any]]:
    """The line and the value of each event of a probe; of statistics all."""
    sink = Recorded()
    api.loads(code).run(mode=mode, probes=probes, sink=sink)
    found = [(line, item) for line, items in sink.probes for item in items]
    return [(line, item if isinstance(item, Summary) else item.value) for line, item in found]


@pytest.mark.parametrize("mode", MODES)
def test_every_value_in_order_with_the_prints(graphdsl: Any, mode: str) -> None:
    said = graphdsl("run", "-e", LOOP, "--mode", mode, "--probe", "h", "--probe", "w")
    assert said.out.splitlines() == [
        "line 5: w = 8.0",
        "line 6: h = 8.0",
        "trip 0",
        "line 2: h = 4.0",
        "line 9: h = 4.0",
        "line 2: h = 2.0",
        "line 9: h = 2.0",
        "trip 2",
        "line 2: h = 1.0",
        "line 9: h = 1.0",
        "line 2: h = 0.5",
        "line 9: h = 0.5",
        "line 11: w = 1.0",
        "grad(h, w) = 0.0",
    ]


@pytest.mark.parametrize("mode", MODES)
def test_conditions(graphdsl: Any, mode: str) -> None:
    assert probed(LOOP, mode, "h if h < 2.0 and i > 2") == [(9, 0.5)]
    assert probed(LOOP, mode, "i if i % 2 == 1") == [(7, 1), (7, 3)]
    assert probed(LOOP, mode, "x if x > 3.0") == [(1, 8.0), (1, 4.0)]
    said = graphdsl("run", "-e", LOOP, "--mode", mode, "--probe", "h if i == 0", "--json")
    assert [e["line"] for e in said.events() if e["event"] == "probe"] == [9]
    warnings = [(e["code"], e["line"]) for e in said.events() if e["event"] == "warning"]
    assert [w for w in warnings if w[0] == "W0103"] == [("W0103", 2), ("W0103", 6)]


@pytest.mark.parametrize("mode", MODES)
def test_derivative_rules_show_nothing_and_say_so(graphdsl: Any, mode: str) -> None:
    code = "fn f(x) = x * 2.0\nvjp f(x; y, g) { z = g; return z * y }\nparam w = 3.0\ny = f(w)\nprint grad(y, w)"
    said = graphdsl("run", "-e", code, "--mode", mode, "--probe", "y")
    assert said.out == "line 4: y = 6.0\ngrad(y, w) = 6.0\n"
    assert "the probe of `y` shows nothing here: a derivative rule sets it, and may have no effect" in said.err
    for name in "zg":
        said = graphdsl("run", "-e", code, "--mode", mode, "--probe", name)
        assert f"this probe shows nothing of `{name}`" in said.err
        assert said.code == status.WRONG_USAGE


@pytest.mark.parametrize("mode", MODES)
def test_a_condition_on_what_is_perhaps_not_set(mode: str) -> None:
    code = "for i in 0..3 {\n  if i == 1 { k = i }\n  h = i\n  if i > 5 { print k }\n}"
    assert probed(code, mode, "h if k == 1") == [(3, 1), (3, 2)]


@pytest.mark.parametrize("mode", MODES)
def test_statistics(graphdsl: Any, mode: str) -> None:
    code = "default f32\nh = [1.0, 4.0, nan]\nh = zeros(0)\nh = 3\nh = [true, false]"
    said = graphdsl("run", "-e", code, "--mode", mode, "--probe", "h:stats", "--json")
    items = [e["items"][0] for e in said.events()]
    assert items == [
        {"name": "h", "dtype": "f32", "shape": [3], "min": 1.0, "max": 4.0, "mean": 2.5, "nans": 1},
        {"name": "h", "dtype": "f32", "shape": [0], "min": None, "max": None, "mean": None, "nans": 0},
        {"name": "h", "dtype": "i64", "shape": [], "min": 3, "max": 3, "mean": 3.0, "nans": 0},
        {"name": "h", "dtype": "bool", "shape": [2], "min": False, "max": True, "mean": 0.5, "nans": 0},
    ]
    said = graphdsl("run", "-e", code, "--mode", mode, "--probe", "h:stats if sum(h) > 3.5")
    assert said.out == ""
    said = graphdsl("run", "-e", "h = [1.0, 2.0]", "--mode", mode, "--probe", "h:stats if sum(h) == 3")
    assert said.out == "line 1: h: f64[2], min 1.0, max 2.0, mean 1.5, nans 0\n"


@pytest.mark.parametrize("mode", MODES)
def test_tuples_lambdas_and_places(mode: str) -> None:
    assert probed("t = (1, (2.0, 3))", mode, "t") == [(1, 1), (1, 2.0), (1, 3)]
    assert probed("y = map(q -> q * 2, 0..3)", mode, "q") == [(1, 0), (1, 1), (1, 2)]
    assert [line for line, _ in probed("x = zeros(2)\nx[0] = 1.0\nx[1] += 2.0", mode, "x")] == [1, 2, 3]
    assert probed("a = 1\nb = 2\na, b = b, a", mode, "a if b == 1") == [(3, 2)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_watching_changes_nothing(mode: str, path: Path) -> None:
    loaded = api.load(str(path))
    plain, watched = Recorded(), Recorded()
    before = loaded.run(mode=mode, sink=plain)
    wanted = [name for name in before.values if name in loaded.program.bound]
    after = loaded.run(mode=mode, sink=watched, probes=wanted)
    assert repr(plain.events) == repr(watched.events)
    assert repr(before.values) == repr(after.values)
    assert bool(watched.probes) == bool(wanted)


@pytest.mark.parametrize("mode", MODES)
def test_random_numbers_and_gradients_stay(mode: str) -> None:
    code = (
        "param w = 0.5\nx = normal(8)\nh = zeros(8)\nfor i in 0..5 { h = tanh(h * w + x); x = x + uniform(8) }\n"
        "g = grad(sum(h), w)\nd = normal()"
    )
    plain = api.loads(code).run(mode=mode)
    watched = api.loads(code).run(mode=mode, probes=["h", "x:stats", "g", "i", "h if i % 2 == 0"])
    assert repr(plain.values) == repr(watched.values)


@pytest.mark.parametrize("mode", MODES)
def test_with_fetch_only_what_is_watched_is_shown(graphdsl: Any, mode: str) -> None:
    said = graphdsl("run", "-e", LOOP, "--mode", mode, "--fetch", "h", "--probe", "i if i > 2")
    assert said.out == "line 7: i = 3\nh = 0.5\n"


@pytest.mark.parametrize(
    ("probe", "words"),
    [
        ("hh", "the program sets no `hh`; did you mean `h`?"),
        ("h if j > 1", "the program sets no `j`"),
        ("h:sats", "is no probe: NAME, NAME:stats, or NAME if CONDITION"),
        ("h if (", "this bracket `(` is never closed"),
        ("h if h", "must be a scalar bool, and is f64"),
        ("h if uniform() > h", "may not print, save, load or draw"),
        ("h if i // i == 1", "may not fail, as `floordiv` may"),
        ("h if grad(h, w) > 1.0", "may not take a derivative"),
        ("x if i > 1", "this probe shows nothing of `x`"),
        ("half", "the program sets no `half`"),
    ],
)
def test_what_is_no_probe(graphdsl: Any, probe: str, words: str) -> None:
    said = graphdsl("run", "-e", LOOP, "--probe", probe, "--json")
    assert said.code == status.WRONG_USAGE
    assert words in said.err
    assert said.out == ""


def test_what_a_condition_may_not_do_by_a_function(graphdsl: Any) -> None:
    functions = "fn says(x) { print x; return x > 0 }\nfn again(n: i64) -> bool = false if n < 1 else again(n - 1)\n"
    for call, words in (("says(h)", "may not print"), ("again(h)", "may not call a function that calls itself")):
        said = graphdsl("run", "-e", f"{functions}h = 1", "--probe", f"h if {call}", "--json")
        assert (said.code, words in said.err) == (status.WRONG_USAGE, True)


def test_an_error_of_the_program_comes_first(graphdsl: Any) -> None:
    said = graphdsl("run", "-e", "h = 1\nprint hx", "--probe", "h if h", "--json")
    assert (said.code, [e["code"] for e in said.events()]) == (status.WRONG_PROGRAM, ["E0201"])


def test_from_python() -> None:
    with pytest.raises(NoProbe):
        api.loads("h = 1").run(probes=["h x"])
    with pytest.raises(api.UnknownName, match="the program sets no `g`"):
        api.loads("h = 1").run(probes=["g"])
