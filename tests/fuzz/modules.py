"""Modules: those of the language, and files that are written beside the program, which use one another."""

from __future__ import annotations

from dataclasses import replace

from tests.fuzz import statements
from tests.fuzz.writer import Kind, Writer

STANDARD: dict[str, dict[tuple[int, ...], tuple[str, ...]]] = {
    "nn": {
        (): (
            "nn.mse({3}, {3})",
            "nn.mae({2,3}, {.})",
            "nn.cross_entropy({2,3}, [2, 0])",
            "nn.accuracy({2,3}, [0, 1])",
            "sum(nn.attention({2,3}, {2,3}, {2,2}))",
            "sum(nn.gru_cell({2,2}, {2,2}, stack([{3}, {3}]) @ ones(3, 6), ones(2, 6) * {.}))",
            "sum(nn.lstm_cell({3}, {2}, {2}, outer({3}, linspace(0.0, 1.0, 8)), ones(2, 8))[{i.} % 1])",
        ),
        (3,): (
            "nn.softmax({3})",
            "nn.log_softmax({3})",
            "nn.layer_norm({3}, {3}, bias={.})",
            "nn.rms_norm({3}, gain={3})",
        ),
        (2, 3): (
            "nn.softmax({2,3})",
            "nn.batch_norm({2,3})",
            "nn.attention({2,2}, {3,2}, {3,3})",
            "nn.linear({2,2}, {2,3}, {3})",
        ),
        (2, 2): ("nn.rnn_cell({2,3}, {2,2}, {3,2}, {2,2}, b={.})", "nn.linear({2,3}, {3,2})"),
    },
    "optim": {
        (): (
            "optim.sgd({.}, {.})",
            "optim.momentum({.}, {.}, {.})[{p}]",
            "optim.cosine({.}, {i.} % 9, 10)",
            "optim.warm_up({.}, {i.}, 4)",
            "optim.exponential({.}, 0.5, {i.} % 4)",
            "optim.inverse_time({.}, {.}, 3)",
        ),
        (3,): (
            "optim.sgd({3}, {3}, 0.1)",
            "optim.adam({3}, {3}, {3}, {3} ** 2, 1 + abs({i.}) % 3, rate={.})[{p}]",
            "optim.adamw({3}, {3}, {3}, {3} ** 2, 2, eps={.})[{p}]",
            "optim.nesterov({3}, {3}, {3}, decay={.})[{p}]",
            "optim.adagrad({3}, {3}, {3} ** 2)[{p}]",
            "optim.rmsprop({3}, {3}, {3} ** 2)[{p}]",
            "optim.clip_by_norm({3}, 1.0)",
        ),
        (2, 3): ("optim.sgd({2,3}, {2,3}, rate={.})", "optim.clip_by_norm({2,3}, {.})"),
    },
    "stats": {
        (): (
            "sum(stats.normal_logpdf({3}, {.}, 0.5 + {.} ** 2))",
            "stats.normal_cdf({.})",
            "stats.covariance({3}, {3})",
            "stats.correlation({4}, {4})",
            "stats.skewness({3})",
            "stats.r_squared({3}, {3})",
            "stats.entropy(softmax({3}))",
            "stats.kl_divergence(softmax({3}), softmax({3}))",
            "stats.gamma_logpdf(abs({.}), 2.0)",
            "stats.binomial_logpmf(2, 5, sigmoid({.}))",
        ),
        (3,): (
            "stats.normal_pdf({3})",
            "stats.laplace_logpdf({3}, scale={.})",
            "stats.student_logpdf({3}, 3.0)",
            "stats.uniform_logpdf({3})",
            "stats.exponential_logpdf({3}, rate={.})",
            "stats.standardized({3})",
            "stats.beta_logpdf(sigmoid({3}), 2.0, {.})",
        ),
    },
}
"""By the shape of the result; `{p}` is 0 or 1."""


def declare(w: Writer) -> list[str]:
    """The `use` statements of a program; what the modules give is called where expressions are written."""
    lines = []
    for name, table in STANDARD.items():
        if w.chance(40):
            lines.append(f"use {name}")
            for shape, ways in table.items():
                w.also[shape] = w.also.get(shape, ()) + tuple(way.replace("{p}", w.pick("01")) for way in ways)
    if w.chance(70):
        deeper = w.chance(50)
        file(w, "m1.gdl", "one", ['use "m2.gdl" as two'] if deeper else [])
        lines.append('use "m1.gdl" as one')
        if deeper:
            file(w, "m2.gdl", "other", ["default f32"] if w.chance(15) else [])
            lines.append('use "m2.gdl" as other')
    return lines


def file(w: Writer, path: str, name: str, head: list[str]) -> None:
    """A module: consts, functions of a few statements, and some that any value may be given to."""
    lines = [*head, f"const k = {w.literal(Kind('f64'))}", "const row = [0.5, k, 2.0]"]
    inner = Writer(w.number(0, 1 << 30), w.templates)
    inner.expressions = inner.statements = 0
    inner.forms = [form for group in ("plain", "loops", "branches") for form in statements.FORMS[group]]
    for _ in range(w.number(1, 2)):
        inner.refill()
        lines += statements.function(inner, {"k": Kind("f64"), "row": Kind("f64", (3,))})
    w.functions += [replace(function, name=f"{name}.{function.name}") for function in inner.functions]
    lines.append("fn made(x) = sin(x) * k + sum(row)")
    w.maps[f"{name}.made"] = 0
    if head and head[0].startswith("use"):
        lines += ["fn through(f, x) = f(two.made(x)) * k", "fn slope(f, x) = grad(sum(f(two.made(x))), x)"]
        w.operators |= {f"{name}.through": 0, f"{name}.slope": 1}
    w.files[path] = "\n".join(lines) + "\n"
