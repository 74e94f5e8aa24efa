"""Imports run one way: along the arrow of a program, with `ops` and `source` under everything."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
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


def module_name(path: Path) -> str:
    return ".".join(["graphdsl", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


@cache
def imports(module: str) -> set[str]:
    """The modules of graphdsl that one imports as it runs, or later on (annotations' imports are not counted)."""
    found: set[str] = set()
    tree = ast.parse(MODULES[module].read_text("utf-8"))
    typing_only = {
        node
        for guard in ast.walk(tree)
        if isinstance(guard, ast.If) and ast.unparse(guard.test) == "TYPE_CHECKING"
        for node in ast.walk(guard)
    }
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [f"{node.module}.{a.name}" for a in node.names]
            found.update(name if name in MODULES else node.module for name in names)
        elif isinstance(node, ast.Import):
            found.update(a.name for a in node.names)
    return found & MODULES.keys()


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_a_package_imports_only_what_stands_before_it(name: str) -> None:
    own = [module for module in MODULES if package(module) == name]
    assert own
    for module in own:
        found = {package(other) for other in imports(module) if other != "graphdsl"}  # which has the version
        extra = found - ALLOWED[name] - {name}
        assert not extra, f"{module} imports {sorted(extra)}"


# The matter itself goes round here: a string holds expressions, and the code of a rule records by further rules.
ROUND = {
    ("graphdsl.syntax.strings", "graphdsl.syntax.parser"),
    ("graphdsl.eager.rules", "graphdsl.eager.templates"),
}


def test_no_modules_import_each_other() -> None:
    assert all(other in imports(module) for module, other in ROUND)
    graph = {m: {other for other in imports(m) if (m, other) not in ROUND} for m in MODULES}
    TopologicalSorter(graph).prepare()  # raises where there is a circle, and tells it


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
