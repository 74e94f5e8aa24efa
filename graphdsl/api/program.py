"""A program from its text to its results: parsed once, checked once for each set of fed names, run in either mode."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdsl.api.resumed import Heard
from graphdsl.runtime.events import Recorded, Shown, Sink
from graphdsl.runtime.limits import Limits
from graphdsl.runtime.state import Files, Runtime, Stream
from graphdsl.source.diagnostic import Diagnostic, ProgramError
from graphdsl.source.record import dataclass, field
from graphdsl.source.span import Source
from graphdsl.syntax import ast
from graphdsl.syntax.parser import parse
from graphdsl.syntax.walk import walk

if TYPE_CHECKING:
    from graphdsl.api.engines import Engine, Values
    from graphdsl.check import Probe
    from graphdsl.check.program import Checked
    from graphdsl.core.ir import Value
    from graphdsl.ops.types import Type
    from graphdsl.runtime.nan_trace import Trace


NO_ROOM = ("E0732", "E0734")  # errors of a run whose values together are too much


class UnknownName(ValueError):
    """A name that the program does not have, in a feed or among the values wanted; `kind`: but it has one of this kind."""

    def __init__(self, message: str, kind: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass
class Given:
    """What a run is given from outside. Values are as `runtime.feeds` takes them: texts, Python values, arrays; `files`
    is what loads and saves (None: the disk itself)."""

    feeds: dict[str, Any] = field(default_factory=dict)
    sets: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    limits: Limits = field(default_factory=Limits)
    files: Files | None = None

    @property
    def values(self) -> dict[str, Any]:
        return {**self.feeds, **self.sets}


@dataclass
class Result:
    """What a run left: top-level values and the derivatives asked for, by name (second derivatives by two: `w,b`)."""

    values: dict[str, Shown]
    gradients: dict[str, Shown]

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value


class Program:
    """A parsed program."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.module = self._linked(parse(source))

    @staticmethod
    def _linked(module: ast.Module) -> ast.Module:
        if not any(isinstance(stmt, ast.Use) for stmt in module.body):
            return module
        from graphdsl.check.modules import linked

        return linked(module)

    @cached_property
    def declared(self) -> dict[str, str]:
        """The inputs and params at top level, by name."""
        found = (s for s in self.module.body if isinstance(s, ast.Declare))
        return {s.name.id: s.kind for s in found if s.kind != "const"}

    @cached_property
    def bound(self) -> frozenset[str]:
        """The names that the top level binds, on whatever path."""
        functions = (ast.FnDef, ast.VjpDef, ast.Lambda)
        found: set[str] = set()
        for node in walk(self.module.body, lambda node: not isinstance(node, functions)):
            match node:
                case ast.Declare(name=name) | ast.Update(name=name):
                    found.add(name.id)
                case ast.Assign(targets=targets) | ast.ForStmt(targets=targets):
                    found.update(target.id for target in targets if isinstance(target, ast.Name))
                case ast.TypeExpr(dims=dims):
                    found.update(dim.id for dim in dims if isinstance(dim, ast.Name))
        return frozenset(name for name in found if "." not in name)

    def check(
        self,
        fed: Iterable[str] = (),
        wanted: Iterable[str] = (),
        of: str | None = None,
        wrt: tuple[str, ...] | None = None,
        probes: tuple[Probe, ...] = (),
        order: int = 1,
        every: bool = False,
        displaced: tuple[tuple[str, Type], ...] = (),
        check_nan: bool = False,
        why_nan: bool = False,
    ) -> Checked:
        """The typed core for a run in which these names are fed; with `check_nan`, one that stops where a NaN or inf is
        made, with `why_nan` one that follows them all. Raises `ProgramError`."""
        from graphdsl.check import Request, check

        request = Request(
            frozenset(fed),
            frozenset(wanted),
            of,
            wrt,
            probes,
            order,
            every,
            displaced=displaced,
            nans="follow" if why_nan else "stop" if check_nan else None,
        )
        return check(self.module, request)

    def warnings(self) -> tuple[Diagnostic, ...]:
        """What the checker warns of, and advises (which no run tells). Raises `ProgramError` with all it found where the
        program is wrong."""
        from graphdsl.check.advice import advice
        from graphdsl.check.problems import in_order

        checked = self.check()
        return in_order([*checked.warnings, *advice(self.module, checked.program)])

    def given(self, feeds: Mapping[str, Any], sets: Mapping[str, Any], seed: int = 0) -> Given:
        """Feeds and first values, their names looked up. Raises `UnknownName`."""
        return Given(self._named(feeds, "input"), self._named(sets, "param"), seed)

    def _named(self, given: Mapping[str, Any], kind: str) -> dict[str, Any]:
        found = {}
        for written, value in given.items():
            name = unicodedata.normalize("NFC", written)
            if (has := self.declared.get(name)) is None:
                raise UnknownName(f"the program has no {kind} `{name}`{self._near(name, kind)}")
            if has != kind:
                are = {"param": "a param", "input": "an input"}
                raise UnknownName(f"`{name}` is {are[has]}, not {are[kind]}", has)
            found[name] = value
        return found

    def _near(self, name: str, kind: str) -> str:
        from difflib import get_close_matches

        known = [n for n, k in self.declared.items() if k == kind]
        if near := get_close_matches(name, known, 1, 0.5):
            return f"; did you mean `{near[0]}`?"
        return f"; its {kind}s are {', '.join(f'`{n}`' for n in known)}" if known else f"; it has no {kind}s"

    def prepare(self, mode: str, given: Given, checked: Checked | None = None) -> Prepared:
        """The program made ready to run in a mode."""
        return Prepared(self, mode, given, checked or self.check(given.values))

    def fetch(
        self,
        mode: str,
        given: Given,
        wanted: tuple[str, ...],
        probes: tuple[Probe, ...] = (),
        check_nan: bool = False,
    ) -> Prepared:
        """The program made ready to give only these values and to print nothing; what serves nothing else is left out."""
        checked = self.check(given.values, wanted, probes=probes, check_nan=check_nan)
        exports = checked.program.exports
        found: list[str] = []
        for name in wanted:
            parts = [name] if name in exports else [part for part in exports if part.startswith(f"{name}[")]
            if not parts:
                raise UnknownName(f"the program binds no value to `{name}`")
            found += parts
        return Prepared(self, mode, given, checked, wanted=tuple(found), silent=True)


class Prepared:
    """A program checked and made ready for one mode; `run` as often as one likes. `silent`: it prints nothing.

    Where memory does not suffice for what derivatives need of its loops, a run begins again, with code that computes this
    anew where it is needed, bit for bit the same: `recomputes`, and `notice` is called.
    """

    def __init__(
        self,
        program: Program,
        mode: str,
        given: Given,
        checked: Checked,
        use_cache: bool = True,
        wanted: tuple[str, ...] | None = None,
        silent: bool = False,
    ) -> None:
        self.source = program.source
        self.mode = mode
        self.given = given
        self.warnings = checked.warnings
        self.wanted = tuple(checked.program.exports) if wanted is None else wanted
        self.use_cache = use_cache
        self.silent = silent
        self.notice: Callable[[], object] = lambda: None
        self.trace: Trace | None = None  # of the last run, where NaNs are followed
        self._make(checked)

    def _make(self, checked: Checked) -> None:
        from graphdsl.api.engines import make

        self.checked = checked
        if self.silent:
            from graphdsl.core.effects import silence

            silence(checked.program.main, lambda instr: instr.event == "print")
        self.engine: Engine = make(checked.program, self.mode, self.wanted, self.use_cache, self.given.limits.watched)

    @property
    def recomputes(self) -> bool:
        """Whether loops compute anew what derivatives need of them."""
        return self.checked.segmented

    def run(self, sink: Sink) -> Result:
        """Run it; what it prints goes to `sink`. Raises `ProgramError` where it fails."""
        heard = Heard(sink)
        runtime = self._runtime(heard)
        try:
            return self._result(self.engine.run(runtime))
        except ProgramError as error:
            if error.diagnostics[0].code not in NO_ROOM or runtime.saves or not self._recompute():
                raise
        self.notice()
        again = self._runtime(Heard(sink, heard.count))
        again.deadline = runtime.deadline
        return self._result(self.engine.run(again))

    def _recompute(self) -> bool:
        """Make it anew so that derivatives of loops need little memory, if that can be."""
        from graphdsl.check import recomputing

        checked = recomputing(self.checked)
        if checked is not None:
            self._make(checked)
        return checked is not None

    def _result(self, found: Values) -> Result:
        core = self.checked.program
        return Result(
            {name: self._shown(name, core.exports[name][0], value) for name, value in found.exports.items()},
            {name: self._shown(name, core.derivatives[name], value) for name, value in found.derivatives.items()},
        )

    def _runtime(self, sink: Sink) -> Runtime:
        """For one run."""
        given = self.given
        if given.files is not None:
            given.files.begin()
        runtime = Runtime(sink, Stream(), self.source.folder, given.values, limits=given.limits, files=given.files)
        if given.limits.time is not None:
            runtime.deadline = monotonic() + given.limits.time
        runtime.random.seed(given.seed)
        if self.checked.paths is not None:
            from graphdsl.runtime.nan_trace import Trace

            self.trace = runtime.nans = Trace(self.checked.paths)
        return runtime

    def ops(self) -> int:
        """How many ops a run takes (one more is made, by code that counts them)."""
        runtime = self._runtime(Recorded())
        self.engine.counting().run(runtime)
        return runtime.ops

    def peak_bytes(self) -> int:
        """The most memory that values took at once in a run (one more is made where only that can tell)."""
        return self.engine.peak_bytes(lambda: self.run(Recorded()))

    def _shown(self, name: str, value: Value, found: Any) -> Shown:
        """A value under its name, a weak one in the default type."""
        dtype = value.type.dtype
        if value.type.weak and dtype.is_float and dtype is not self.checked.program.default_float:
            dtype = self.checked.program.default_float
            with np.errstate(over="ignore"):  # too large for it: infinite
                found = np.asarray(found).astype(dtype.numpy)[()]
        return Shown(name, dtype, found)
