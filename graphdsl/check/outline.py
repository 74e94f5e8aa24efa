"""What can be said of a file before it is checked: its functions, its top-level names, and who reads what.

A function reads an outer name if its text does, or that of a function it names (grammars/README.md, "Derivatives").
"""

from __future__ import annotations

from collections.abc import Iterable

from graphdsl.check.reads import (
    Read,
    captures,
    function_locals,
    function_reads,
    names_set,
    own_expressions,
    reads,
    statements,
)
from graphdsl.source.record import dataclass, field
from graphdsl.syntax import ast


@dataclass(eq=False, slots=True)
class Outline:
    functions: dict[str, ast.FnDef]
    variables: frozenset[str]  # every name that the top level sets
    own: dict[ast.FnDef, frozenset[str]]
    rules: dict[ast.FnDef, ast.FnDef] = field(default_factory=dict)  # the derivative rule of a function, if it has one
    modules: frozenset[str] = frozenset()  # what the file calls those that it uses
    outer: dict[ast.FnDef, frozenset[str]] = field(default_factory=dict)  # top-level names it reads, through others too
    recursive: frozenset[ast.FnDef] = frozenset()
    lambdas: dict[ast.Lambda, frozenset[str]] = field(default_factory=dict)  # what functions named in a lambda read
    pinned: frozenset[str] = frozenset()  # read by functions that are passed about: who knows when

    free: dict[ast.Lambda, dict[str, ast.Name]] = field(default_factory=dict)

    def free_names(self, node: ast.Lambda) -> dict[str, ast.Name]:
        """The names that a lambda reads from around it, in order, each where it is read first."""
        if node not in self.free:
            self.free.update(captures(node))
        return self.free[node]

    def names_read(self, found: Iterable[Read]) -> set[str]:
        """The variables that reading these names reads at the top level, those of called functions included."""
        names: set[str] = set()
        for read in found:
            names.add(read.node.id)
            if (node := self.functions.get(read.node.id)) is not None:
                names |= self.outer[node]
        return names


def outline(module: ast.Module) -> Outline:
    """Read a file's functions and names off its tree."""
    functions = {s.name.id: s for s in module.body if isinstance(s, ast.FnDef)}
    rules = {
        functions[s.name.id]: _rule(s) for s in module.body if isinstance(s, ast.VjpDef) and s.name.id in functions
    }
    own = {node: function_locals(node) for node in (*functions.values(), *rules.values())}
    modules = frozenset(s.alias.id for s in module.body if isinstance(s, ast.Use))
    found = Outline(functions, frozenset(names_set(module.body)), own, rules, modules)
    direct: dict[ast.FnDef, set[str]] = {}
    calls: dict[ast.FnDef, set[ast.FnDef]] = {}
    pinned: set[ast.FnDef] = set()
    for node, names in own.items():
        direct[node], calls[node] = _direct(found, list(function_reads(node, names)), pinned)
    for node, rule in rules.items():  # who calls a function hands over what its rule reads
        direct[node] |= direct[rule]
        calls[node] |= calls[rule] - {node}
    for stmt in statements(module.body):
        _direct(found, list(reads(*own_expressions(stmt))), pinned)
    components = _components(calls)
    _spread(found, components, direct, calls)
    found.recursive = frozenset(n for c in components for n in c if len(c) > 1 or n in calls[n])
    found.pinned = frozenset(name for node in pinned for name in found.outer[node])
    return found


def _rule(stmt: ast.VjpDef) -> ast.FnDef:
    """A derivative rule as a function: of the arguments, the results, and their cotangents."""
    params = tuple(ast.FnParam(n.span, n, None, None) for n in (*stmt.params, *stmt.results))
    return ast.FnDef(stmt.span, stmt.name, params, None, stmt.body)


def _direct(found: Outline, names: list[Read], pinned: set[ast.FnDef]) -> tuple[set[str], set[ast.FnDef]]:
    """The variables and the functions that are read; functions that are not just called here go to `pinned`."""
    variables = {r.node.id for r in names if r.node.id in found.variables}
    called: set[ast.FnDef] = set()
    for read in names:
        if (node := found.functions.get(read.node.id)) is not None:
            called.add(node)
            if not read.called:
                pinned.add(node)
    return variables, called


def _spread(
    found: Outline,
    components: list[list[ast.FnDef]],
    direct: dict[ast.FnDef, set[str]],
    calls: dict[ast.FnDef, set[ast.FnDef]],
) -> None:
    """What a function reads includes what those it names read; `components` come callees first."""
    for component in components:
        inside = set(component)
        names: set[str] = set()
        for node in component:
            names |= direct[node]
            for callee in calls[node] - inside:
                names |= found.outer[callee]
        for node in component:
            found.outer[node] = frozenset(names)


def _components(calls: dict[ast.FnDef, set[ast.FnDef]]) -> list[list[ast.FnDef]]:
    """The strongly connected components, callees first (Tarjan's algorithm, with a stack of its own)."""
    order: dict[ast.FnDef, int] = {}
    low: dict[ast.FnDef, int] = {}
    open_nodes: list[ast.FnDef] = []
    is_open: set[ast.FnDef] = set()
    components: list[list[ast.FnDef]] = []
    for root, first in calls.items():
        work = [] if root in order else [(root, iter(first))]
        while work:
            node, rest = work[-1]
            if node not in order:
                order[node] = low[node] = len(order)
                open_nodes.append(node)
                is_open.add(node)
            if (callee := next(rest, None)) is not None:
                if callee not in order:
                    work.append((callee, iter(calls[callee])))
                elif callee in is_open:
                    low[node] = min(low[node], order[callee])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == order[node]:
                at = open_nodes.index(node)
                components.append(open_nodes[at:])
                is_open.difference_update(open_nodes[at:])
                del open_nodes[at:]
    return components
