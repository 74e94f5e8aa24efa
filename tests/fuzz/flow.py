"""Random programs of nothing but control flow: loops, branches, early exits, names set on some paths, closures, calls."""

from __future__ import annotations

import random

NAMES = ("a", "b", "c", "d", "e")


class Flow:
    """Writes one program from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 0
        self.counters = 0
        self.function: str | None = None
        self.loops = 0
        self.arities: dict[str, int] = {}
        self.budget = 60

    def program(self) -> str:
        rng = self.rng
        self.start()
        self.add("fn twice(f, x) = f(f(x))")
        self.add(f"fn plus(x, y = {self.rng.choice(NAMES)}) = x + y")
        for i in range(rng.randint(0, 2)):
            self.define(f"f{i}")
        self.block(rng.randint(3, 9))
        for name in NAMES:
            if rng.random() < 0.4:
                self.add(f"print {name}")
        return "\n".join(self.lines) + "\n"

    def define(self, name: str) -> None:
        arity = self.rng.randint(0, 2)
        params = [f"p{i}" for i in range(arity)]
        self.add(f"fn {name}({', '.join(params)}) {{")
        self.function, self.depth = name, self.depth + 1
        before, self.budget = self.budget, 15
        self.start()
        self.block(self.rng.randint(1, 5))
        if self.rng.random() < 0.8:
            self.add(f"return {self.expression(2)}")
        self.function, self.depth, self.budget = None, self.depth - 1, before
        self.add("}")
        self.arities[name] = arity

    def start(self) -> None:
        """Most names hold something from the beginning."""
        for name in NAMES:
            if self.rng.random() < 0.92:
                self.add(f"{name} = {self.literal()}")
        if self.rng.random() < 0.8:
            self.add("t = (1, 2)")

    # ---- statements ----

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def block(self, count: int) -> None:
        for _ in range(count):
            if self.budget > 0:
                self.budget -= 1
                self.statement()

    def nested(self, head: str) -> None:
        self.add(head + " {")
        self.depth += 1
        self.block(self.rng.randint(0, 4))
        self.depth -= 1
        self.add("}")

    def statement(self) -> None:
        kinds = ["assign"] * 5 + ["augment", "print", "swap", "lambda", "assert", "pack", "unpack"]
        if self.depth < 5:
            kinds += ["if"] * 4 + ["for"] * 2 + ["while"] * 2
        if self.loops:
            kinds += ["break", "continue"] * 2
        if self.function is not None:
            kinds += ["return"] * 2
        getattr(self, self.rng.choice(kinds) + "_")()

    def assign_(self) -> None:
        self.add(f"{self.rng.choice(NAMES)} = {self.expression(2)}")

    def augment_(self) -> None:
        self.add(f"{self.rng.choice(NAMES)} {self.rng.choice(['+=', '-='])} {self.expression(1)}")

    def print_(self) -> None:
        self.add(f"print {self.expression(1)}")

    def assert_(self) -> None:
        self.add(f"assert {self.condition()} or {self.condition()} or {self.condition()}")

    def swap_(self) -> None:
        a, b = self.rng.sample(NAMES, 2)
        self.add(f"{a}, {b} = {self.expression(1)}, {self.expression(1)}")

    def lambda_(self) -> None:
        name = f"g{self.rng.randint(0, 1)}"
        self.add(f"{name} = x -> {self.expression(2, ('x',))}")
        self.add(f"{self.rng.choice(NAMES)} = {name}({self.expression(1)})")

    def pack_(self) -> None:
        self.add(f"t = ({self.expression(1)}, {self.expression(1)})")

    def unpack_(self) -> None:
        a, b = self.rng.sample(NAMES, 2)
        self.add(f"{a}, {b} = t" if self.rng.random() < 0.7 else f"{a} = t[{self.rng.randint(0, 1)}]")

    def if_(self) -> None:
        self.nested(f"if {self.condition()}")
        while self.rng.random() < 0.3:
            self.lines[-1] += f" else if {self.condition()} {{"
            self.depth += 1
            self.block(self.rng.randint(0, 3))
            self.depth -= 1
            self.add("}")
        if self.rng.random() < 0.5:
            self.lines[-1] += " else {"
            self.depth += 1
            self.block(self.rng.randint(0, 3))
            self.depth -= 1
            self.add("}")

    def for_(self) -> None:
        target = self.rng.choice([*NAMES, "i", "i"])
        over = self.rng.choice(
            [f"0..{self.rng.randint(0, 4)}", "3..0 step -1", "[1, 5, 2]", f"{self.atom(())} % 4..{self.atom(())} % 4"]
        )
        head = f"for {target} in {over}"
        if self.rng.random() < 0.2:
            head = f"for i, {self.rng.choice(NAMES)} in enumerate({over})"
        self.loops += 1
        self.nested(head)
        self.loops -= 1

    def while_(self) -> None:
        self.counters += 1
        counter = f"n{self.counters}"
        self.add(f"{counter} = 0")
        self.add(f"while {counter} < {self.rng.randint(0, 4)} and ({self.condition()}) {{")
        self.depth += 1
        self.loops += 1
        self.add(f"{counter} += 1")
        self.block(self.rng.randint(0, 4))
        self.loops -= 1
        self.depth -= 1
        self.add("}")

    def break_(self) -> None:
        self.add(f"if {self.condition()} {{ break }}" if self.rng.random() < 0.8 else "break")

    def continue_(self) -> None:
        self.add(f"if {self.condition()} {{ continue }}" if self.rng.random() < 0.8 else "continue")

    def return_(self) -> None:
        given = f"return {self.expression(1)}"
        self.add(f"if {self.condition()} {{ {given} }}" if self.rng.random() < 0.8 else given)

    # ---- expressions ----

    def literal(self) -> str:
        return str(self.rng.randint(-3, 6))

    def atom(self, extra: tuple[str, ...]) -> str:
        names = [*NAMES, *extra]
        return self.rng.choice(names) if self.rng.random() < 0.7 else self.literal()

    def condition(self) -> str:
        sign = self.rng.choice(["<", "<=", ">", ">=", "==", "!="])
        simple = f"{self.atom(())} {sign} {self.atom(())}"
        return (
            simple if self.rng.random() < 0.7 else f"{simple} {self.rng.choice(['and', 'or'])} not {self.atom(())} > 1"
        )

    def expression(self, depth: int, extra: tuple[str, ...] = ()) -> str:
        if depth == 0 or self.rng.random() < 0.3:
            return self.atom(extra)
        a, b = self.expression(depth - 1, extra), self.expression(depth - 1, extra)
        match self.rng.randint(0, 11):
            case 0 if self.arities:
                name = self.rng.choice(list(self.arities))
                return f"{name}({', '.join(self.expression(0, extra) for _ in range(self.arities[name]))})"
            case 1:
                return f"({a} if {self.condition()} else {b})"
            case 2:
                return f"(({a}, {b})[{self.rng.randint(0, 1)}])"
            case 3:
                return f"({a} % 7 - {b})"
            case 4:
                return f"twice(x -> {self.expression(1, (*extra, 'x'))}, {a})"
            case 5:
                return f"plus({a})" if self.rng.random() < 0.5 else f"plus({a}, {b})"
            case 6:
                return f"cond({self.condition()}, x -> x - {a}, x -> {b}, {self.atom(extra)})"
            case 7:
                test = f"(x, y) -> x < {self.atom(extra)} % 5 and y < 9"
                return f"while_loop({test}, (x, y) -> (x + 1, y + x), {a} % 3, {b} % 5)[{self.rng.randint(0, 1)}]"
        return f"({a} {self.rng.choice(['+', '-'])} {b})"
