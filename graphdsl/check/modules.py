"""Modules: `use nn`, `use "lib/mine.gdl" as mine`. All files of a program become one.

The functions and consts of a module are given its name before their own, `nn.softmax`, wherever they are read: so there is
one way to check, and nothing of one file is taken for that of another. No name that a program may write holds a dot.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import replace

from graphdsl.check.problems import nearest
from graphdsl.check.reads import (
    Read,
    dim_names,
    function_locals,
    function_reads,
    names_set,
    own_expressions,
    reads,
    statements,
)
from graphdsl.source.diagnostic import Diagnostic, Label, ProgramError
from graphdsl.source.files import read_source
from graphdsl.source.record import dataclass, field
from graphdsl.source.span import Source, Span
from graphdsl.syntax import ast
from graphdsl.syntax.parser import parse
from graphdsl.syntax.walk import replace_children, walk

STANDARD = os.path.join(os.path.dirname(os.path.dirname(__file__)), "modules")
FOR_FORMS = ("zip", "enumerate")  # which are no functions
MOST = 1000  # modules in one program


@dataclass(eq=False, slots=True)
class File:
    """One file: `key` is its name before those of its own (None: the program itself); `uses` what it calls other files."""

    module: ast.Module
    key: str | None
    uses: dict[str, File] = field(default_factory=dict)

    @property
    def members(self) -> list[str]:
        """The names of its functions and consts."""
        return [s.name.id for s in self.module.body if isinstance(s, ast.FnDef | ast.Declare)]


def linked(main: ast.Module) -> ast.Module:
    """A program with the modules that it uses, theirs before its own. Raises `ProgramError`."""
    files = _Loader().load(main)
    members = {file: frozenset(file.members) for file in files}
    problems: list[Diagnostic] = []
    for file in files:
        problems += _Linker(file, members).link()
    if problems:
        raise ProgramError(*sorted(problems, key=lambda p: (p.span.source is not main.source, p.span.start)))
    body: list[ast.Stmt] = []
    for file in files:
        if file.key is None:
            continue
        for stmt in file.module.body:
            match stmt:
                case ast.Default(dtype=dtype):
                    main.defaults[file.module.source] = dtype
                case ast.Use():
                    pass
                case _:
                    body.append(stmt)
    first = next(i for i, s in enumerate(main.body) if isinstance(s, ast.Use))
    main.body[first:first] = body
    return main


# ---- files ---------------------------------------------------------------------------------------------


class _Loader:
    """Reads files, each once."""

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.keys: set[str] = set()
        self.way: list[tuple[str, ast.Use]] = []  # from the program to the file that is being read

    def load(self, main: ast.Module) -> list[File]:
        """The program and all files that it uses, those first that others use."""
        top = File(main, None)
        ordered: list[File] = []
        path = os.path.realpath(main.source.name)
        self.files[path] = top
        todo: list[tuple[str, File, Iterator[ast.Use]]] = [(path, top, _uses(main))]
        while todo:
            path, file, rest = todo[-1]
            use = next(rest, None)
            if use is None:
                todo.pop()
                ordered.append(file)
                continue
            target = _path(use)
            if target in (p for p, _, _ in todo):
                raise ProgramError(_circle(use, [p for p, _, _ in todo], target))
            fresh = target not in self.files
            if fresh:
                self.files[target] = self._read(use, target)
            file.uses[use.alias.id] = self.files[target]
            if fresh:
                todo.append((target, self.files[target], _uses(self.files[target].module)))
        return ordered

    def _read(self, use: ast.Use, path: str) -> File:
        if len(self.files) > MOST:
            raise ProgramError(Diagnostic("E0227", f"a program uses at most {MOST:,} modules", use.span))
        try:
            if not os.path.isdir(path) and not stat.S_ISREG(os.stat(path).st_mode):
                raise _unreadable(use, "it is not a plain file")
            source = read_source(path)
            module = parse(source if use.is_path else replace(source, name=os.path.basename(path)))
        except OSError as error:
            raise _unreadable(use, (error.strerror or "no such file").lower()) from None
        stem = os.path.basename(path).partition(".")[0]
        key, n = stem, 1
        while key in self.keys:
            n += 1
            key = f"{stem}({n})"
        self.keys.add(key)
        return File(module, key)


def _uses(module: ast.Module) -> Iterator[ast.Use]:
    return iter([s for s in module.body if isinstance(s, ast.Use)])


def _path(use: ast.Use) -> str:
    if not use.is_path:
        return os.path.join(STANDARD, f"{use.module}.gdl")
    try:
        return os.path.realpath(os.path.join(use.span.source.folder, use.module))
    except ValueError:
        raise _unreadable(use, "no path holds the character U+0000") from None


def _unreadable(use: ast.Use, reason: str) -> ProgramError:
    message = (
        f"the module `{use.module}` cannot be read: {reason}" if use.is_path else f"there is no module `{use.module}`"
    )
    return ProgramError(Diagnostic("E0227", message, use.span, _hint(use)))


def standard() -> list[str]:
    """The names of the modules that come with the language."""
    return sorted(name.removesuffix(".gdl") for name in os.listdir(STANDARD) if name.endswith(".gdl"))


def is_standard(source: Source) -> bool:
    """Whether a file is one of the modules that come with the language."""
    return source.folder == STANDARD


def _hint(use: ast.Use) -> str:
    if use.is_path:
        return "the path starts from the folder of the file that holds this line"
    close = nearest(use.module, standard())
    if close is not None:
        return f"did you mean `{close}`?"
    known = ", ".join(f"`{name}`" for name in standard())
    return f'there are {known}; a file of your own is used by its path: `use "{use.module}.gdl" as {use.module}`'


def _circle(use: ast.Use, around: list[str], target: str) -> Diagnostic:
    names = [os.path.basename(p) for p in (*around[around.index(target) :], target)]
    return Diagnostic("E0227", f"a module uses itself: {' → '.join(names)}", use.span)


# ---- names ---------------------------------------------------------------------------------------------


class _Linker:
    """Gives the names of one file their modules."""

    def __init__(self, file: File, members: dict[File, frozenset[str]]) -> None:
        self.file = file
        self.members = members
        self.body = file.module.body
        self.variables = names_set(self.body)
        self.problems: list[Diagnostic] = []

    def link(self) -> list[Diagnostic]:
        """Change the tree; what is wrong with it as a module or as the user of some."""
        self._places()
        free = [r for stmt in self.body for r in self._reads(stmt)]
        aliases = {r.node for r in free if r.node.id in self.file.uses and r.node.id not in self.variables}
        for stmt in self.body:
            for node in walk(stmt):
                replace_children(node, lambda child: self._member(child, aliases))
        if self.file.key is not None:
            self._qualify(free, self.file.key)
        return self.problems

    def _places(self) -> None:
        """What may stand in a module, and where a `use` stands."""
        begun: ast.Stmt | None = None
        names: dict[str, ast.Use] = {}
        for stmt in self.body:
            if isinstance(stmt, ast.Use) and (before := names.setdefault(stmt.alias.id, stmt)) is not stmt:
                labels = (Label(before.span, "used here"),)
                self._problem("E0228", f"another module is called `{stmt.alias.id}` already", stmt.span, labels=labels)
            match stmt:
                case ast.Default():
                    continue
                case ast.Use() if begun is not None:
                    labels = (Label(begun.span, "this comes before"),)
                    self._problem("E0228", "`use` stands before all statements but `default`", stmt.span, labels=labels)
                case ast.Use():
                    continue
                case ast.FnDef() | ast.VjpDef():
                    pass
                case ast.Declare(kind="const"):
                    pass
                case _ if self.file.key is not None:
                    hint = "the program that uses it runs; give it a function to call"
                    self._problem(
                        "E0228", "a module holds functions and consts, and no other statements", stmt.span, hint
                    )
            begun = begun or stmt  # not reached by those that may come first

    def _reads(self, stmt: ast.Stmt) -> Iterator[Read]:
        """The names that are read in a statement and belong to nothing inside."""
        if isinstance(stmt, ast.FnDef):
            yield from function_reads(stmt, function_locals(stmt))
        elif isinstance(stmt, ast.VjpDef):
            own = {n.id for n in (*stmt.params, *stmt.results)} | names_set(stmt.body.body)
            inside = (r for s in statements(stmt.body.body) for r in reads(*own_expressions(s)))
            yield from (r for r in inside if r.node.id not in own)
        else:
            yield from (r for s in statements([stmt]) for r in reads(*own_expressions(s)))

    def _qualify(self, free: list[Read], key: str) -> None:
        """The names of a module's own; what it reads otherwise is built in, whatever others call by that name."""
        mine = self.variables | self.members[self.file]
        for read in free:
            if read.node.id in FOR_FORMS:
                continue
            read.node.id = f"{key if read.node.id in mine else ''}.{read.node.id}"
        for stmt in self.body:
            if isinstance(stmt, ast.FnDef | ast.VjpDef | ast.Declare):
                stmt.name.id = f"{key}.{stmt.name.id}"
            if isinstance(stmt, ast.Declare):
                for dim in dim_names(stmt.type):
                    dim.id = f"{key}.{dim.id}"

    def _member(self, node: ast.Node, aliases: set[ast.Name]) -> ast.Node:
        """`nn.softmax` as one name."""
        if not isinstance(node, ast.Attribute) or node.value not in aliases or not isinstance(node.value, ast.Name):
            return node
        used = self.file.uses[node.value.id]
        members = self.members[used]
        if node.name.id not in members:
            close = nearest(node.name.id, sorted(members))
            hint = f"did you mean `{node.value.id}.{close}`?" if close else None
            self._problem("E0229", f"the module `{node.value.id}` has no `{node.name.id}`", node.name.span, hint)
        return ast.Name(node.span, f"{used.key}.{node.name.id}")

    def _problem(
        self, code: str, message: str, span: Span, hint: str | None = None, labels: tuple[Label, ...] = ()
    ) -> None:
        self.problems.append(Diagnostic(code, message, span, hint, labels))
