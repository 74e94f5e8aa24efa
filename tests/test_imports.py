"""Imports run one way: along the arrow of a program, with `ops` and `source` under everything."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "graphdsl"

# What each package may import besides itself. Of `native`, what both modes need stands below `runtime`: the kernel
# library, and `support` on top of it; the compiler of graphs, `native.program`, stands above `graph`.
ALLOWED = {
    "source": set(),
    "ops": {"source"},
    "core": {"source", "ops"},
    "syntax": {"source"},
    "native": {"source", "ops"},
    "native.support": {"source", "ops", "native"},
    "runtime": {"source", "ops", "core", "native", "native.support"},
    "check": {"source", "ops", "core", "syntax", "runtime"},
    "eager": {"source", "ops", "core", "runtime"},
    "graph": {"source", "ops", "core", "runtime"},
    "graph.passes": {"source", "ops", "core", "runtime", "graph"},
    "native.program": {"source", "ops", "core", "native", "native.support", "runtime", "graph"},
    "render": {"source", "ops", "core", "syntax", "runtime"},
    "api": {"source", "ops", "core", "syntax", "check", "runtime", "eager", "graph", "graph.passes", "native.program"},
    "cli": set("source ops core syntax check runtime graph graph.passes native native.program render api".split()),
}


def package(module: str) -> str | None:
    """The package of the table that a module of graphdsl is in: the innermost one."""
    parts = module.split(".")[1:]
    names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((name for name in names if name in ALLOWED), None)


def imports(path: Path) -> set[str]:
    """The packages of graphdsl that a module imports as it runs (annotations' imports are not counted)."""
    found: set[str] = set()
    tree = ast.parse(path.read_text("utf-8"))
    typing_only = {
        node
        for guard in ast.walk(tree)
        if isinstance(guard, ast.If) and ast.unparse(guard.test) == "TYPE_CHECKING"
        for node in ast.walk(guard)
    }
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        found.update(
            name for module in names if module.startswith("graphdsl.") and (name := package(module)) is not None
        )
    return found


def modules(name: str) -> list[Path]:
    """The modules of a package, without those of packages within it that have a line of their own."""
    every = sorted((ROOT / name.replace(".", "/")).rglob("*.py"))
    return [p for p in every if package(".".join(["graphdsl", *p.relative_to(ROOT).with_suffix("").parts])) == name]


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_a_package_imports_only_what_stands_before_it(name: str) -> None:
    found = modules(name)
    assert found
    for path in found:
        extra = imports(path) - ALLOWED[name] - {name}
        assert not extra, f"{path.relative_to(ROOT)} imports {sorted(extra)}"


def test_the_packages_have_an_order() -> None:
    seen: set[str] = set()
    for name, below in ALLOWED.items():
        assert below <= seen, f"{name} imports what stands after it: {sorted(below - seen)}"
        seen.add(name)


def test_every_package_is_in_the_list() -> None:
    tops = {p.name for p in ROOT.iterdir() if (p / "__init__.py").exists()}
    assert tops == {name.partition(".")[0] for name in ALLOWED}


@pytest.mark.parametrize("module", ["llvmlite", "rich", "click"])
def test_running_a_small_program_eagerly_loads_no_compiler_and_no_terminal(module: str) -> None:
    code = (
        "import sys, graphdsl; graphdsl.loads('param w = 2.0; y = w * (w + 1); g = grad(y, w)').run(); "
        f"sys.exit({module!r} in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


THREADED = """
import os, sys
os.environ["GRAPHDSL_THREADS"] = "2"
import numpy as np
import graphdsl
from graphdsl.native.support import helpers, library
result = graphdsl.loads("input x: f32[300, 300]; y = x @ x").run(feeds={"x": np.ones((300, 300), np.float32)})
assert result["y"][0, 0] == 300
assert helpers.context.cache_info().currsize, "no threads were asked for"
assert library.support_object()  # what a cache that has nothing of it makes it do
print([m for m in sys.modules if m.startswith(("graphdsl.graph", "graphdsl.native.program"))])
"""


def test_eager_mode_never_loads_the_graph_side() -> None:
    """Not even for a product that is shared among threads."""
    ran = subprocess.run([sys.executable, "-c", THREADED], capture_output=True, text=True, check=False)
    assert (ran.stderr, ran.stdout) == ("", "[]\n")
