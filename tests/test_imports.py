"""Imports run one way: along the arrow of a program, with `ops` and `source` under everything."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "graphdsl"

# what each folder may import besides itself
ALLOWED = {
    "source": set(),
    "ops": {"source"},
    "core": {"source", "ops"},
    "syntax": {"source"},
    "native": {"source", "ops", "core", "graph", "runtime"},
    "runtime": {"source", "ops", "core", "native"},
    "check": {"source", "ops", "core", "syntax", "runtime"},
    "eager": {"source", "ops", "core", "runtime"},
    "graph": {"source", "ops", "core", "runtime"},
    "api": {"source", "ops", "core", "syntax", "check", "eager", "graph", "native", "runtime"},
    "render": {"source", "ops", "core", "syntax", "runtime"},
    "cli": {"source", "ops", "core", "syntax", "check", "eager", "graph", "native", "runtime", "api", "render"},
}


def imports(path: Path) -> set[str]:
    """The folders of graphdsl that a module imports as it runs (annotations' imports are not counted)."""
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
        for name in names:
            parts = name.split(".")
            if parts[0] == "graphdsl" and len(parts) > 1 and (ROOT / parts[1]).is_dir():
                found.add(parts[1])
    return found


@pytest.mark.parametrize("folder", sorted(ALLOWED))
def test_a_folder_imports_only_what_stands_before_it(folder: str) -> None:
    for path in sorted((ROOT / folder).rglob("*.py")):
        extra = imports(path) - ALLOWED[folder] - {folder}
        assert not extra, f"{path.relative_to(ROOT)} imports {sorted(extra)}"


def test_every_folder_is_in_the_list() -> None:
    assert {p.name for p in ROOT.iterdir() if (p / "__init__.py").exists()} == set(ALLOWED)


@pytest.mark.parametrize("module", ["llvmlite", "rich", "click"])
def test_running_a_small_program_eagerly_loads_no_compiler_and_no_terminal(module: str) -> None:
    code = (
        "import sys, graphdsl; graphdsl.loads('param w = 2.0; y = w * (w + 1); g = grad(y, w)').run(); "
        f"sys.exit({module!r} in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
