"""Values saved to files and read again, perhaps in other places than where they were saved."""

from __future__ import annotations

from tests.fuzz.writer import Form, Kind, Scope, Writer


def declared(kind: Kind) -> str:
    return f"{kind.dtype}{list(kind.shape) or ''}"


def save(w: Writer, scope: Scope) -> list[str] | None:
    """Several values in one file, or one; mostly read again."""
    names = list(scope.names)
    if not names:
        return None
    if w.chance(40):
        name, file = w.pick(names), f"{w.fresh('one')}.npy"
        value, entry = name, ""
    else:
        file = f"{w.fresh('all')}.npz"
        some = sorted({w.pick(names) for _ in range(3)})
        name = w.pick(some)
        value, entry = ", ".join(some), f', "{name}"'
    lines = [f'save "{file}", {value}']
    if w.chance(30):
        lines += w.block(scope, 1, "")
    back, kind = w.fresh("v"), scope.names[name]
    if w.chance(90):
        lines.append(f'{back}: {declared(kind)} = load("{file}"{entry})')
        scope.names[back] = kind
    if kind.is_float and w.chance(40):
        lines.append(f"print grad(sum({back} * {name}), {name})" if back in scope.names else f"print {name}")
    return lines


def table(w: Writer, scope: Scope) -> list[str]:
    """Columns of a file that is there from the beginning."""
    file = "d.csv"
    if file not in w.files:
        rows = (f"{w.pick(('1', '-2', '7'))},{w.pick(('0.5', '2', '', 'nan'))},{w.pick('012')}" for _ in range(3))
        w.files[file] = "\n".join(("a,b,c", *rows)) + "\n"
    name = w.fresh("v")
    text, kind = w.pick(
        (
            ('load("d.csv", "b") * 1.0', Kind("f64", (3,))),
            ('f64(load("d.csv", "a"))', Kind("f64", (3,))),
            ('i64(load("d.csv", "c"))', Kind("i64", (3,))),
            ('f64(load("d.csv", ["a", "b"])).T', Kind("f64", (2, 3))),
        )
    )
    scope.names[name] = kind
    return [f"{name} = {text}"]


FORMS = (Form(save, 3), Form(table))
