"""Where the coefficients of graphdsl/ops/math come from: `python -m tests.accuracy.minimax [name]` makes them anew.

Polynomials by Sollya's fpminimax (https://www.sollya.org, version 8.0, which must be installed), those of the gamma
functions by mpmath's Chebyshev fit. Prints coefficients, constant first, and the base-2 logarithm of the greatest error.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import mpmath


@dataclass(frozen=True)
class Fit:
    """`function` in Sollya's language, as a polynomial with these powers of x and formats, on an interval."""

    function: str
    powers: range
    formats: str  # single, double; "doubledouble double": the first alone in two parts
    low: str
    high: str
    mode: str = "absolute"


_LN2 = "log(2)/2+1b-12"
_ATANH = "(log((1+sqrt(x))/(1-sqrt(x)))/sqrt(x)"
_S2 = "((sqrt(2)-1)/(sqrt(2)+1))^2+1b-20"
_ODD = "({0}(sqrt(x))/sqrt(x)-1)/x"
_X = "(4*(1+x)/(1-x))"
_ERFCX = f"(1+2*{_X})*exp({_X}^2)*erfc({_X})"


def _t(x: str) -> str:
    return f"({x}-4)/({x}+4)"


FITS = {
    "exponential._TAIL_F32": Fit("exp(x)-1-x", range(2, 7), "single", f"-({_LN2})", _LN2),
    "exponential._TAIL_F64": Fit("exp(x)-1-x", range(2, 13), "double", f"-({_LN2})", _LN2),
    "exponential.CUBIC_TAIL": Fit("(exp(x)-1-x-x^2/2)/x^3", range(10), "double", "-(log(2)/2+1b-10)", "log(2)/2+1b-10"),
    "power._EXP2_FOR_F32": Fit("2^x", range(8), "double", "-0.5-1b-10", "0.5+1b-10"),
    "power._LOG2_FOR_F32": Fit(f"{_ATANH}/log(2))", range(6), "double", "1b-40", _S2),
    "power._INVERSE_CBRT": Fit("x^(-1/3)", range(6), "double", "0.35", "2.83", "relative"),
    "logarithm._TAIL_F32": Fit("(log(1+x)-x+x^2/2)/x^3", range(9), "single", "sqrt(1/2)-1-1b-20", "sqrt(2)-1+1b-20"),
    "logarithm._TAIL_F64": Fit(f"({_ATANH}-2))/x", range(8), "double", "1b-40", _S2),
    "logarithm._TAIL_OF_PAIR": Fit(f"({_ATANH}-2-2/3*x-2/5*x^2))/x^3", range(7), "double", "1b-30", _S2),
    "logarithm._LOG_FOR_F32": Fit(f"{_ATANH})", range(6), "double", "1b-40", _S2),
    "trigonometric._SIN": Fit(_ODD.format("sin"), range(6), "double", "1b-40", "(pi/4)^2+1b-10"),
    "trigonometric._COS": Fit("(cos(sqrt(x))-1+x/2)/x^2", range(6), "double", "1b-30", "(pi/4)^2+1b-10"),
    "trigonometric._SIN_FOR_F32": Fit(_ODD.format("sin"), range(5), "double", "1b-40", "(pi/2)^2+1b-10"),
    "random._SIN_OF_TURN_F32": Fit("sin(2*pi*sqrt(x))/sqrt(x)", range(5), "single", "1b-40", "1/16"),
    "random._SIN_OF_TURN_F64": Fit("sin(2*pi*sqrt(x))/sqrt(x)", range(9), "double", "1b-60", "1/16"),
    "hyperbolic._TANH_F32": Fit(_ODD.format("tanh"), range(7), "single", "1b-30", "0.85^2"),
    "hyperbolic._SINH_F32": Fit(_ODD.format("sinh"), range(4), "single", "1b-30", "1"),
    "hyperbolic._SINH_F64": Fit(_ODD.format("sinh"), range(7), "double", "1b-60", "1"),
    "arcs._ASIN_F64": Fit(_ODD.format("asin"), range(13), "double", "1b-60", "0.25+1b-10"),
    "arcs._ASIN_FOR_F32": Fit(_ODD.format("asin"), range(6), "double", "1b-60", "0.25+1b-10"),
    "arcs._ATAN_F64": Fit(_ODD.format("atan"), range(11), "double", "1b-60", "(tan(pi/8))^2+1b-10"),
    "arcs._ATAN_FOR_F32": Fit(_ODD.format("atan"), range(6), "double", "1b-60", "(tan(pi/8))^2+1b-10"),
    "error._SMALL_F32": Fit("erf(sqrt(x))/sqrt(x)-1", range(7), "single", "1b-30", "1"),
    "error._SMALL_F64": Fit("erf(sqrt(x))/sqrt(x)-1", range(13), "double", "1b-60", "1"),
    "error._SMALLER_FOR_F32": Fit("erf(sqrt(x))/sqrt(x)-1", range(6), "double", "1b-60", "0.25"),
    "error._TAIL_F64": Fit(_ERFCX, range(22), "doubledouble double", _t("0.49"), _t("27.3"), "relative"),
    "error._TAIL_FOR_F32": Fit(_ERFCX, range(10), "double", _t("0.49"), _t("10.6"), "relative"),
    # remez with a weight: `error._LOG_ERFC_F32` below
}
_WEIGHTED = "w=erfc(x); p=remez(-log(erfc(x))*w,6,[0.92;4.0],w); for i from 0 to 6 do print(single(coeff(p,i)));"


def sollya(fit: Fit) -> str:
    """The coefficients and errors, as Sollya prints them."""
    first, *rest = fit.formats.split()
    formats = [first, *(rest or [first]) * (len(fit.powers) - 1)]
    powers, interval = ",".join(map(str, fit.powers)), f"[{fit.low};{fit.high}]"
    return _run(
        f"f={fit.function}; p=fpminimax(f,[|{powers}|],[|{','.join(formats)}|],{interval},{fit.mode});"
        f"for i in [|{powers}|] do print(coeff(p,i));"
        f"display=decimal!; print(round(log2(dirtyinfnorm(p-f,{interval})),24,RN));"
    )


def _run(text: str) -> str:
    command = "display=hexadecimal!; prec=400!; " + text
    return subprocess.run(["sollya", "/dev/stdin"], input=command, capture_output=True, text=True, check=False).stdout


def chebyshev() -> None:
    """The polynomials of `gamma`."""
    mpmath.mp.dps = 90
    zero = mpmath.findroot(mpmath.digamma, mpmath.mpf("1.46163214496836"))

    def stirling(z: mpmath.mpf) -> mpmath.mpf:
        if z < mpmath.mpf(10) ** -12:
            return mpmath.mpf(1) / 12
        x = 1 / mpmath.sqrt(z)
        return x * (mpmath.loggamma(x) - ((x - 0.5) * mpmath.log(x) - x + mpmath.log(2 * mpmath.pi) / 2))

    def series(z: mpmath.mpf) -> mpmath.mpf:
        if z < mpmath.mpf(10) ** -12:
            return mpmath.mpf(1) / 12
        x = 1 / mpmath.sqrt(z)
        return (mpmath.log(x) - 1 / (2 * x) - mpmath.digamma(x)) / z

    half, eighth = mpmath.mpf(1) / 2, mpmath.mpf(1) / 64
    for name, function, interval, count in (
        ("_NEAR_2", lambda w: mpmath.loggamma(2 + w) / w if w else mpmath.digamma(2), [-half, half], 20),
        ("_STIRLING", stirling, [mpmath.mpf(0), eighth], 7),
        ("_DIGAMMA_SERIES", series, [mpmath.mpf(0), eighth], 7),
        ("_DIGAMMA_NEAR", lambda w: mpmath.digamma(w + 1.5) / (w + 1.5 - zero), [-half, half], 24),
    ):
        coefficients, error = mpmath.chebyfit(function, interval, count, error=True)
        sys.stdout.write(f"gamma.{name} {mpmath.nstr(mpmath.log(error, 2), 6)}\n")
        sys.stdout.write(" ".join(float(c).hex() for c in reversed(coefficients)) + "\n")


def main() -> None:
    wanted = sys.argv[1:] or [*FITS, "error._LOG_ERFC_F32", "gamma"]
    for name in wanted:
        if name == "gamma":
            chebyshev()
        else:
            made = sollya(FITS[name]) if name in FITS else _run(_WEIGHTED)
            sys.stdout.write(f"{name}\n{' '.join(made.split())}\n")


if __name__ == "__main__":
    main()
