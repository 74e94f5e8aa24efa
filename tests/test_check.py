"""The checker: types, joins, names on some paths, instances of functions, what is asked for, and how long it takes.

What each diagnostic says is in `tests/diagnostics`; what programs print, in `tests/programs`.
"""

from __future__ import annotations

import random
import re
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType

import pytest

from graphdsl.check import Checked, Request, check
from graphdsl.check.context import Frame
from graphdsl.check.names import PLANNED, builtin
from graphdsl.check.uncalled import check_uncalled
from graphdsl.core.call_graph import functions
from graphdsl.core.ir import Apply, Call, Feed, For, If, Leaf, Program, While
from graphdsl.core.steps import Steps
from graphdsl.core.structure import walk
from graphdsl.core.verify import verify_program
from graphdsl.eager.program import Compiled
from graphdsl.ops.types import Size
from graphdsl.runtime.events import Recorded
from graphdsl.runtime.state import Runtime
from graphdsl.source.diagnostic import Diagnostic, ProgramError
from graphdsl.source.span import Source
from graphdsl.syntax.parser import parse
from tests.fuzz.flow import Flow
from tests.reference import Reference

PROGRAMS = [*(Path(__file__).parent / "programs").glob("*.gdl"), *(Path(__file__).parents[1] / "samples").glob("*.gdl")]


def checked(text: str, **request: object) -> Checked:
    result = check(parse(Source("test", text)), Request(**request))  # type: ignore[arg-type]
    verify_program(result.program)
    return result


def core(text: str, **request: object) -> Program:
    return checked(text, **request).program


def types(text: str) -> dict[str, str]:
    """The types that top-level names have at the end."""
    return {name: ("weak " if v.type.weak else "") + str(v.type) for name, (v, _) in core(text).exports.items()}


def problems(text: str) -> list[tuple[str, int]]:
    with pytest.raises(ProgramError) as raised:
        checked(text)
    return [(d.code, d.span.line) for d in raised.value.diagnostics]


def instructions(program: Program, kind: type) -> list[object]:
    return [i for func in (program.main, *functions(program.main)) for i in walk(func.body) if isinstance(i, kind)]


# ---- types --------------------------------------------------------------------------------------------


def test_names_keep_weakness() -> None:
    found = types("a = 1; b = a / 2; c = [1, 2.5]; d = true; e = true + 1; f = a == 1; g = sum([1, 2])")
    assert found == {
        "a": "weak i64",
        "b": "weak f64",
        "c": "weak f64[2]",
        "d": "bool",
        "e": "weak i64",
        "f": "bool",
        "g": "weak i64",
    } | {"e": found["e"]}


def test_declared_and_made_values_are_strong() -> None:
    found = types("param w = 1.5; input n = 2; const c = 3; x: f32 = 1; y = zeros(2); z = 0..3; i = i32(7)")
    assert found == {
        "w": "f64",
        "n": "i64",
        "c": "weak i64",
        "x": "f32",
        "y": "f64[2]",
        "z": "i64[3]",
        "i": "i32",
    }


def test_default_f32() -> None:
    assert types("default f32; param w = 0.1; y = w * 3; z = zeros(2); v = 0.1; n = 3") == {
        "w": "f32",
        "y": "f32",
        "z": "f32[2]",
        "v": "weak f64",
        "n": "weak i64",
    }


def test_branches_join_to_the_promoted_type() -> None:
    found = types("c = zeros(1)[0] > 1\na = 1\nif c { a = 2.5 }\nb = f32(1.0)\nif c { b = 2 }\nprint a, b")
    assert (found["a"], found["b"]) == ("weak f64", "f32")


def test_loops_join_from_the_first_trip_on() -> None:
    found = types("a = 1\nx = f32([1.0])\nfor v in x { a = a + v }\nprint a")
    assert found["a"] == "f32"


def test_chains_of_joins_settle() -> None:
    chain = "".join(f"a{i} = 1\n" for i in range(20)) + "for k in 0..30 {\n"
    chain += "".join(f"a{i} = a{i + 1}\n" for i in range(19)) + "a19 = 2.5\n}\nprint a0"
    assert types(chain)["a0"] == "weak f64"


def test_a_dim_that_grows_is_known_only_at_run_time() -> None:
    program = core("xs = [1.0]\nfor i in 0..3 { xs = concat([xs, [2.0]]) }\nprint xs")
    (dim,) = program.exports["xs"][0].type.shape
    assert isinstance(dim, Size)


def test_a_size_is_one_size_wherever_its_value_is_used() -> None:
    program = core("input n = 3\na = zeros(n)\nb = ones(n) + a\nc = b * 2 + a")
    adds = [i for i in instructions(program, Apply) if i.op.name == "add"]  # type: ignore[attr-defined]
    assert adds
    assert not any(i.fails for i in adds)  # type: ignore[attr-defined]


def test_sizes_of_different_trips_are_not_taken_for_equal() -> None:
    text = "k = 0\nfor i in 1..4 { z = zeros(i)\n if i > 1 { print size(y + z) }\n y = z }"
    program = core(text)
    add = next(i for i in instructions(program, Apply) if i.op.name == "add" and i.outs[0].type.rank)  # type: ignore[attr-defined]
    assert add.fails  # type: ignore[attr-defined]


def test_lists_of_literals_are_one_constant() -> None:
    program = core("x = [" + ", ".join(f"[{i}, -{i}.5]" for i in range(1000)) + "]")
    assert len(program.main.body.body) == 1


# ---- names on some paths ------------------------------------------------------------------------------


def test_only_names_that_are_read_are_carried() -> None:
    (loop,) = instructions(core("h = 1.0\nfor i in 0..3 { t = h * 2; h = t + 1 }\nprint h"), For)
    assert len(loop.inits) == 1  # type: ignore[attr-defined]


def test_a_name_that_is_set_again_does_not_join() -> None:
    assert core("c = zeros(1)[0] > 1\nif c { a = 1 } else { a = [1] }\na = 2\nprint a")


def test_ranks_that_differ_matter_only_where_they_are_read() -> None:
    assert problems("c = zeros(1)[0] > 1\nif c { a = 1 } else { a = [1] }\nprint a") == [("E0311", 2)]


def test_a_test_is_made_once() -> None:
    text = "n = 1\nwhile n > 0 { y = n; n -= 1 }\nprint y + y * y\nprint y"
    tests = [i for i in instructions(core(text), If) if not i.outs]  # type: ignore[attr-defined]
    assert len(tests) == 1


def test_strings_and_functions_may_not_differ_between_paths() -> None:
    assert problems('s = "a"\nif 1 > 0 { s = "b" }\nprint s') == [("E0311", 2)]
    assert problems("f = sin\nif 1 > 0 { f = cos }\nprint f(1.0)") == [("E0311", 2)]


def test_wanted_names_live_to_the_end() -> None:
    text = "for i in 0..3 { loss = i * 2.0 }"
    assert "loss" not in core(text).exports
    value, flag = core(text, wanted=frozenset({"loss"})).exports["loss"]
    assert str(value.type) == "f64"
    assert flag is not None


# ---- loops --------------------------------------------------------------------------------------------


def test_a_for_with_an_exit_counts_by_itself() -> None:
    assert instructions(core("for i in 0..9 { if i > 3 { continue }\n print i }"), For)
    assert instructions(core("for i in 0..9 { if i > 3 { break }\n print i }"), While)


@pytest.mark.parametrize(
    "range_text", ["-3..5", "5..-3 step -2", "0..0", "3..1", "a..b", "a..b step c", "b..a step -c"]
)
def test_ranges_have_pythons_steps(range_text: str) -> None:
    env = {"a": -4, "b": 7, "c": 3}
    start, stop, step = re.fullmatch(r"(.+?)\.\.(\S+)(?: step (.+))?", range_text).groups()  # type: ignore[union-attr]
    wanted = list(range(eval(start, env), eval(stop, env), eval(step or "1", env)))
    text = f"a = -4; b = 7; c = 3\nfor i in {range_text} {{ print i }}\nprint {range_text}"
    *trips, whole = printed(text)
    assert trips == wanted
    assert list(whole) == wanted  # type: ignore[call-overload]


def test_ranges_up_to_the_ends_of_i64() -> None:
    text = "m = 9223372036854775807\nn = -m\nfor i in n..m step 9000000000000000000 { print i }\n"
    text += "for i in m - 2..m { print i }\nfor i in n..m { print i; break }"
    top = 2**63 - 1
    assert printed(text) == [*range(-top, top, 9 * 10**18), top - 2, top - 1, -top]


# ---- functions ----------------------------------------------------------------------------------------


def test_calls_of_one_kind_share_a_function() -> None:
    text = "fn f(x) = x * 2\n" + "print f(1.0), f(2.0), f(1), f([1.0]), f([2.0]), f(f(3.0))\n"
    assert len(functions(core(text).main)) == 3


def test_sizes_that_are_not_known_share_a_function() -> None:
    text = "fn f(x, y) = sum(x) + sum(y)\nn = 2\nm = 3\n"
    text += "print f(zeros(n), zeros(n)), f(zeros(m), zeros(m)), f(zeros(n), zeros(m))"
    assert len(functions(core(text).main)) == 2


def test_outer_names_are_handed_down() -> None:
    program = core("param w = 2.0\nfn loss(x) = w * x\nfn step(x) = grad(loss(x), w)\nprint step(3.0)")
    step, loss = (next(f for f in functions(program.main) if f.name == n) for n in ("step", "loss"))
    assert [len(f.body.params) for f in (step, loss)] == [2, 2]
    (call,) = [i for i in walk(step.body) if isinstance(i, Call)]
    assert call.args[1] is step.body.params[1]


def test_known_consts_are_not_handed_down() -> None:
    program = core("const k = 3\nfn f(x) = sum(x, axis=k - 2)\nprint f(ones(2, 2))")
    (func,) = [f for f in functions(program.main) if f.name == "f"]
    assert len(func.body.params) == 1


def test_what_a_lambda_captured_is_passed_with_it() -> None:
    assert printed("fn apply(f, x) = f(x)\nk = 10\ng = x -> x + k\nk = 20\nprint apply(g, 5), g(1)") == [15, 11]


def test_declared_results_convert() -> None:
    program = core("fn f(n: i64) -> f64 { if n > 1 { return n }\n return 0 }\nprint f(3)")
    assert str(program.main.body.body[-1].items[0].value.type) == "f64"  # type: ignore[union-attr]


RECURSIVE = "fn f(x, n: i64) -> f64 {\n if n == 0 { return 0.0 }\n return f(%s, n - 1)\n}\n"


def test_recursion_declares_its_result() -> None:
    assert problems("fn f(n) = g(n)\nfn g(n) = f(n)\nprint f(1)") == [("E0223", 2)]
    core("fn f(n) { if n > 0 { f(n - 1) } }\nf(1)")  # where there is none, none is declared


def test_recursion_without_a_name() -> None:
    assert problems("fn f(g) = g(g)\nprint f(x -> x(x))")[0][0] == "E0225"


@pytest.mark.parametrize("other", ["[x]", "i64(x)", "f32(x)", "y -> y", "(x, x)"])
def test_recursion_keeps_types(other: str) -> None:
    assert problems(RECURSIVE % other + "param w = 1.0\nprint f(w, 2)") == [("E0224", 3)]


def test_recursion_keeps_functions() -> None:
    core(RECURSIVE % "x" + "print f(y -> y, 2), f(sin, 2)")
    assert problems(RECURSIVE % "y -> x(y)" + "print f(y -> y, 2)") == [("E0224", 3)]


def test_sizes_in_recursion_are_joined() -> None:
    shapes = {}
    for given in ("x", "x[1:]", "concat([x, x])"):
        program = core(RECURSIVE % given + "print f([1.0, 2.0], 2)")
        (func,) = functions(program.main)
        shapes[given] = func.body.params[0].type.shape
    assert shapes.pop("x") == (2,)
    assert all(not isinstance(dim, int) for (dim,) in shapes.values())


def test_sizes_in_recursion_come_apart() -> None:
    text = "fn f(a, b, n: i64) -> f64 {\n if n == 0 { return sum(a) + sum(b) }\n return f(a[1:], b, n - 1)\n}\n"
    program = core(text + "input x: f64[k]\nprint f(x, x, 1)")
    (func,) = functions(program.main)
    a, b, _ = func.body.params
    assert a.type.shape != b.type.shape


# ---- errors -------------------------------------------------------------------------------------------


def test_all_independent_problems_are_found() -> None:
    text = "a = b + 1\nc = a * 2\nd = [1, 2] + [1, 2, 3]\nprint c, d, e\nif 3 { f = sin(1, 2) }"
    assert problems(text) == [("E0201", 1), ("E0302", 3), ("E0201", 4), ("E0314", 5), ("E0209", 5)]


def test_a_problem_in_a_function_tells_the_way_there() -> None:
    with pytest.raises(ProgramError) as raised:
        checked("fn f(x) = x + [1, 2]\nfn g(x) = f(x)\nprint g([1, 2, 3])")
    (problem,) = raised.value.diagnostics
    assert [(label.span.line, label.text) for label in problem.trail] == [
        (3, "in this call of `g`"),
        (2, "in this call of `f`"),
    ]


def test_errors_are_those_of_the_final_types() -> None:
    assert problems("x = 1\nfor i in 0..3 { x = x + 0.5\n y = [1, 2][x] }") == [("E0315", 3)]
    assert core("y = 0\nfor i in 0..3 { if i > 0 { y = z.ndim }\n z = [1.5] }")


# ---- what is asked for --------------------------------------------------------------------------------


def test_what_is_fed_is_not_evaluated() -> None:
    text = "input x: f64[n] = normal(3)\nparam w = 2.0 * x[0]\nprint x, w"
    assert not instructions(core(text), Feed)
    program = core(text, fed=frozenset({"x"}))
    assert len(instructions(program, Feed)) == 1
    assert not [i for i in instructions(program, Apply) if i.op.name == "normal"]  # type: ignore[attr-defined]
    (leaf,) = instructions(program, Leaf)
    assert leaf.param == "w"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "of"),
    [
        ("param w = 1.0\ny = w * 2\nn = 3", "y"),
        ("param w = 1.0\nfor i in 0..2 { loss = w * i\n w := w - grad(loss, w) }", "loss"),
    ],
)
def test_the_last_float_scalar_is_differentiated(text: str, of: str) -> None:
    result = checked(text, wrt=())
    assert result.of == of
    assert list(result.program.derivatives) == ["w"]


def test_what_a_loop_prints_is_differentiated() -> None:
    result = checked('param w = 2.0\nfor i in 0..3 { print "at {i}", w * i, i }', wrt=())
    assert Compiled(result.program).run(Runtime()).derivatives["w"] == 2.0


# ---- what the core means ------------------------------------------------------------------------------


def run(program: Program) -> tuple[list[tuple[int, tuple[object, ...]]], int | None]:
    """What it prints, and the line where it fails."""
    sink = Recorded()
    line = None
    try:
        Compiled(program, ()).run(Runtime(sink))
    except ProgramError as error:
        line = error.diagnostics[0].span.line
    return [(at, tuple(s.value for s in items)) for at, items in sink.events if not isinstance(items, str)], line


def printed(text: str) -> list[object]:
    events, line = run(core(text))
    assert line is None
    return [value for _, values in events for value in values]


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_control_flow_means_what_the_tree_says(first: int) -> None:
    ran = 0
    for seed in range(first, first + 25):
        text = Flow(seed).program()
        tree = parse(Source("test", text))
        try:
            result = check(tree)
        except ProgramError:
            continue
        verify_program(result.program)
        reference = Reference(tree)
        try:
            line = reference.run()
        except TimeoutError:
            continue
        assert run(result.program) == (reference.printed, line), text
        ran += 1
    assert ran > 5


# ---- any input ----------------------------------------------------------------------------------------

_TOKENS = re.compile(r'"(?:\\.|[^"\\\n])*"|#[^\n]*|\w+|:=|->|\*\*|//|\.\.\.?|\s+|.')


@pytest.mark.parametrize("seed", range(6))
def test_programs_with_words_exchanged_are_checked_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    texts = [path.read_text("utf-8") for path in PROGRAMS] + [Flow(s).program() for s in range(20)]
    for _ in range(60):
        tokens = [t for t in _TOKENS.findall(rng.choice(texts)) if t[0] != "#"]
        names = [i for i, t in enumerate(tokens) if re.match(r"[^\W\d]", t)]
        for _ in range(rng.randint(1, 3)):
            tokens[rng.choice(names)] = tokens[rng.choice(names)]
        try:
            result = check(parse(Source("test", "".join(tokens))))
        except ProgramError:
            continue
        verify_program(result.program)


DEEP = {
    "brackets": ("x = " + "(" * 10_000 + "1" + ")" * 10_000),
    "minus": "x = " + "-" * 10_000 + "1",
    "sum": "x = 1\ny = " + " + ".join(["x"] * 10_000),
    "calls": "x = 1.0\ny = " + "sin(" * 10_000 + "x" + ")" * 10_000,
    "choices": "c = true\ny = " + "1 if c else " * 10_000 + "2",
    "lambdas": "y = " + "x -> " * 10_000 + "1",
    "else if": "k = 5\nif k == 0 { y = 0 }" + "".join(f" else if k == {i} {{ y = {i} }}" for i in range(3_000)),
}


@pytest.mark.parametrize("kind", DEEP)
def test_depth_costs_no_stack(kind: str) -> None:
    check(parse(Source("test", DEEP[kind])))


TOO_MUCH = {
    "dims": ("y = " + "[" * 10_000 + "1" + "]" * 10_000, "E0324"),
    "tuples": ("t = (1, 2)\n" + "t = (t, t)\n" * 40, "E0312"),
    "calls": (
        "fn f0(x) = x\n" + "".join(f"fn f{i + 1}(x) = f{i}(x)\n" for i in range(1100)) + "print f1100(1.0)",
        "E0214",
    ),
}


@pytest.mark.parametrize("kind", TOO_MUCH)
def test_limits_are_errors(kind: str) -> None:
    text, code = TOO_MUCH[kind]
    assert {c for c, _ in problems(text)} == {code}


def test_what_is_planned_is_not_here() -> None:
    assert [n for n in sorted(PLANNED) if builtin(n) is not None] == []


def nested_loops(depth: int) -> str:
    inner = "" if depth == 0 else nested_loops(depth - 1)
    return f"while x{depth} < 3 {{ x{depth} = x{depth} + y; y = y * 1.5; if y > 2 {{ break }}\n{inner}\n}}"


@pytest.mark.parametrize(
    ("make", "count", "factor"),
    [
        (lambda n: "x = 1.0\n" + "x = x * 2 + 1\n" * n, 1000, 2.5),
        (lambda n: "x = 1.0\n" + "if x > 0 { x = x * 2 } else { x = x + 1 }\n" * n, 400, 2.5),
        (lambda n: "fn f(x) {\n" + "if x == 3 { return x }\n" * n + "return 1 }\nprint f(2)", 600, 2.5),
        (
            lambda n: "".join(f"x{i} = 1\n" for i in range(n + 1)) + "y = 1\n" + nested_loops(n),
            14,
            5.5,
        ),  # each carries all that those inside change
    ],
    ids=["statements", "branches", "returns", "nested loops"],
)
def test_work_grows_as_the_text(make, count, factor) -> None:  # type: ignore[no-untyped-def]
    def calls(n: int) -> int:
        tree = parse(Source("test", make(n)))
        made = 0

        def note(_frame: FrameType, event: str, _arg: object) -> None:
            nonlocal made
            made += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(note)
        try:
            check(tree)
        finally:
            sys.setprofile(before)
        return made

    assert calls(2 * count) < factor * calls(count)


@pytest.mark.parametrize(
    "text", [*(p.read_text("utf-8") for p in PROGRAMS), *(Flow(seed).program() for seed in range(30))]
)
def test_what_is_right_as_called_is_right_uncalled(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checked without its arguments' types, a function that some call is right for gives no error."""
    found: list[tuple[int, list[Diagnostic]]] = []

    def once_more(f: Frame) -> Steps[None]:
        yield check_uncalled(f)
        before = f.shared.problems.mark()
        f.shared.called.clear()
        yield check_uncalled(f)
        found.append((before, f.shared.problems.found[before:]))

    monkeypatch.setattr("graphdsl.check.program.check_uncalled", once_more)
    with suppress(ProgramError):
        check(parse(Source("test", text)), Request())
    assert all(before or not problems for before, problems in found)
