"""Short lines whose exact algebra explodes: powers of powers, sines, fractions of fractions, kinks, long lists."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

#: Coefficients that need no declaration.
LETTERS = ("alpha", "beta", "gamma", "delta", "epsilon", "kappa", "mu", "nu", "a", "b", "c")


def exhausting_lines() -> dict[str, str]:
    """The lines by name, each of at most 4,000 characters."""
    families = (_powers, _angles, _fractions, _numbers, _kinks, _coefficients, _nested, _products, _fields, _operators)
    lines = {name: line for family in families for name, line in family()}
    assert all(len(line) <= 4000 for line in lines.values())
    return lines


def _sum(terms: Iterator[str]) -> str:
    return " + ".join(terms)


def _powers() -> Iterator[tuple[str, str]]:
    yield "power 32**3", "((H**32)**32)**32 - L@H"
    yield "power 32**5", "((((H**32)**32)**32)**32)**32"
    yield "power 32**2", "(H**32)**32 - L@H"
    yield "power of a sum", "((1 + H)**32)**32 - L@H"
    yield "power of letters", "(alpha*H + beta*H**2 + gamma)**32 - L@H"
    yield "power of operators", "(H + A@H + L@A@H)**12 - L@H"
    yield "even power 30", "(H**30 - 1)*(H**28 - 2)*(H**26 - 3) - L@H"
    yield "dense degree 100", _sum(f"{k % 7 + 1}*(H**25)**{k // 25}*H**{k % 25}" for k in range(1, 101)) + " - L@H"
    yield "sparse degree 199", "H**7*(H**32)**6 - 3*H**31*(H**30)**4 + 5*H**13 - 1 - L@H"
    yield "Swinnerton-Dyer", "((((H**2 - 10)**2 - 96)**2 - 3000)**2 - 7)**2 - 11 - L@H"


def _angles() -> Iterator[tuple[str, str]]:
    yield "19 sines", _sum(f"sin({i}*H + {i}/7)" for i in range(1, 20))
    yield "24 sines and a field", _sum(f"sin({i}*H)" for i in range(1, 25)) + " - L@H"
    yield "8 sines with letters", _sum(f"{LETTERS[i]}*sin({i + 1}*H + {LETTERS[i]})" for i in range(8)) + " - L@H"
    yield "product of sines", "*".join(f"sin({i}*H)" for i in range(1, 13)) + " - L@H"
    yield "power of sines", "(sin(H) + cos(2*H))**24 - L@H"
    yield "quotients of sines", _sum(f"sin({i}*H)/(2 + cos({i}*H))" for i in range(1, 9)) + " - L@H"
    yield "16 exponentials", _sum(f"exp({i}*H)/(1 + exp({i}*H))" for i in range(1, 17)) + " - L@H"
    yield "20 tanh", _sum(f"tanh({i}*H + {i}/3)" for i in range(1, 21)) + " - L@H"
    yield "20 softplus", _sum(f"softplus({i}*H - {i}/3)" for i in range(1, 21)) + " - L@H"
    yield "incommensurable sines", _sum(f"sin({i}*H/{i + 7})" for i in range(1, 25)) + " - L@H"


def _fractions() -> Iterator[tuple[str, str]]:
    def continued(depth: int, letter: str = "1") -> str:
        text = "H"
        for k in range(depth):
            text = f"{letter if k % 2 else 1} + H/({text} + {k + 1})"
        return text

    yield "continued fraction 10", continued(10)
    yield "continued fraction 20", continued(20) + " - L@H"
    yield "continued fraction with a letter", continued(12, "beta") + " - L@H"
    yield "forty factors below", "H/(" + "*".join(["(1 + H**2)"] * 40) + ") - L@H"
    yield "quotient of forty factors", "*".join(["(1 + H**2)"] * 20) + "/(" + "*".join(["(2 + H**2)"] * 20) + ")"
    yield "forty quotients", _sum(f"1/(1 + {i}*H**2)" for i in range(1, 41)) + " - L@H"
    yield "quotients with letters", _sum(f"{x}*H/({x} + H**2)" for x in LETTERS[:8]) + " - L@H"
    yield "quotients of powers", _sum(f"H**{i}/(1 + H**{i + 2})" for i in range(2, 25, 3)) + " - L@H"
    yield "Hill functions", _sum(f"H**{i}/({x}**{i} + H**{i})" for i, x in enumerate(LETTERS[:6], 3)) + " - L@H"


def _numbers() -> Iterator[tuple[str, str]]:
    yield "many digits", "0.1234567890123456789*H**31 + 1e30*H**30 - L@H"
    long = "0.1234567890123456789012345678901234567890"
    yield "forty digits", f"{long}*H**31 + 1e30*H**30 - 1e-30*H**29 - L@H"
    yield "far apart", _sum(f"1e{30 - 3 * i}*H**{i}" for i in range(1, 20)) + " - L@H"
    yield "digits everywhere", _sum(f"{i}.{'1234567890' * 3}*H**{i}" for i in range(1, 13)) + " - L@H"
    yield "tiny", "1e-30*H**3 - 1e-30*H - 1e30*L@H"
    yield "powers of numbers", "(1e30*H + 1e-30)**31 - L@H"
    yield "numbers in functions", _sum(f"tanh(1e{i}*H)" for i in range(-30, 30, 6)) + " - L@H"
    yield "huge exponentials", "exp(1e30*H) - exp(1e29*H) - L@H"


def _kinks() -> Iterator[tuple[str, str]]:
    yield "30 kinks", _sum(f"abs(H - {i})" for i in range(30)) + " - L@H"
    yield "100 kinks", _sum(f"abs(H - {i})" for i in range(100)) + " - L@H"
    yield "20 rectifiers", _sum(f"relu({i}*H - {i * i})" for i in range(1, 21)) + " - L@H"
    yield "kinks with letters", _sum(f"{x}*abs(H - {x})" for x in LETTERS[:8]) + " - L@H"
    yield "kinks of kinks", "abs(abs(abs(abs(abs(H - 1) - 2) - 3) - 4) - 5) - L@H"
    yield "kinks of polynomials", _sum(f"abs(H**{i} - {i}*H + 1)" for i in range(2, 12)) + " - L@H"
    yield "product of kinks", "*".join(f"abs(H - {i})" for i in range(12)) + " - L@H"
    yield "roots", _sum(f"sqrt({i} + H**2)" for i in range(1, 16)) + " - L@H"


def _coefficients() -> Iterator[tuple[str, str]]:
    yield "11 coefficients", _sum(f"{x}*H**{i}" for i, x in enumerate(LETTERS, 1)) + " - L@H"
    for count in (16, 30):
        names = [f"k{i}" for i in range(count)]
        kinds = ", ".join(f"{x} scalar, {x} real" for x in names)
        yield f"{count} coefficients", _sum(f"{x}*H**{i}" for i, x in enumerate(names)) + f" where {kinds}"
    yield "squares of coefficients", "(" + " + ".join(LETTERS) + ")**4*H - H**3 - L@H"
    yield "determinant", "H*(" + _sum(f"({x} - {y})**3" for x in LETTERS[:6] for y in LETTERS[:6] if x < y) + ") - L@H"
    ordered = ", ".join(f"{x} <= {y}" for x, y in pairwise(LETTERS))
    yield "long list of relations", _sum(f"{x}*H**{i}" for i, x in enumerate(LETTERS, 1)) + f" - L@H where {ordered}"
    squares = ", ".join(f"{x}**2 < {y}" for x in LETTERS[:6] for y in LETTERS[:6] if x != y)
    yield "long list of squares", _sum(f"{x}*H**{i}" for i, x in enumerate(LETTERS[:6], 1)) + f" - L@H where {squares}"
    yield "quartic in letters", "alpha*L@L@H + 1/3*(H - 1)**2 + beta*H**5 where alpha <= beta"
    yield "quotient of letters", "0.5*A@A@A@H + beta*L@L@H + alpha/beta*H/(1 + H**2) where alpha real"
    yield (
        "three letters",
        (
            "gamma*(I + A)@H + (gamma - 1)*L@A@H + alpha*(A - A@A)@H + beta**2*H*abs(H) + gamma*H**5 "
            "+ beta*gamma*tanh(A@A@H) where gamma negative, beta real"
        ),
    )


def _nested() -> Iterator[tuple[str, str]]:
    for name in ("tanh", "exp", "sin", "sqrt", "softplus", "abs", "sigmoid"):
        yield f"nested {name}", f"{name}(1 + {name}(H + {name}(2*H + {name}(3*H + {name}(H))))) - L@H"
    yield "nested squares", "((((H**2 + H)**2 + H)**2 + H)**2 + H)**2 - L@H"
    yield "nested squares with a letter", "((((H**2 + a)**2 + a)**2 + a)**2 + a)**2 - L@H"
    yield "mixed", "tanh(sin(exp(H) + cos(H**5)) + sqrt(1 + H**2))**7 - L@H"
    yield "quotients of functions", "tanh(H/(1 + exp(H/(1 + sin(H)**2))))/(2 + cos(3*H)) - L@H"
    yield "tanh of fields", "tanh(A@tanh(A@tanh(A@tanh(A@tanh(A@H))))) - L@H"


def _products() -> Iterator[tuple[str, str]]:
    yield "Wilkinson 20", "*".join(f"(H - {i})" for i in range(1, 21)) + " - L@H"
    yield "Wilkinson 60", "*".join(f"(H - {i})" for i in range(1, 61)) + " - L@H"
    yield "product of letters", "*".join(f"(H - {x})" for x in LETTERS) + " - L@H"
    yield "product of neighbours", "*".join(f"(H + {i}*A@H)" for i in range(1, 13)) + " - L@H"
    yield "product of exponentials", "*".join(f"(1 + exp({i}*H))" for i in range(1, 13)) + " - L@H"
    yield "long sum", _sum(f"{i % 9 + 1}*H**{i % 32}*tanh(H)**{i % 5}" for i in range(1, 120)) + " - L@H"
    yield "long sum of fields", _sum(f"tanh({i}*A@H + H)" for i in range(1, 40)) + " - L@H"


def _fields() -> Iterator[tuple[str, str]]:
    names = [f"u{i}" for i in range(1, 9)]
    yield (
        "eight fields",
        "; ".join(f"{x}' = {y}*{x} - {x}**3 - L@{x}" for x, y in zip(names, names[1:] + names[:1], strict=True)),
    )
    yield "cubic pair", "u' = (u + v)**9 - L@u; v' = (u - v)**9 - 3*L@v"
    yield "powers of a pair", "u' = ((u + v)**16)**4 - L@u; v' = u**32*v**32 - L@v"
    yield "pair of quotients", ("u' = a*u/(b + u**5 + v**7) - c*u - L@u; v' = u**9/(a + u**9) - v/(1 + v**3) - mu*L@v")
    yield (
        "three species",
        (
            "u' = u*(alpha - a*u - b*v - c*w) - L@u; v' = v*(beta - b*u - c*v - a*w) - mu*L@v; "
            "w' = w*(gamma - c*u - a*v - b*w) - nu*L@w"
        ),
    )
    yield (
        "coupled sines",
        "; ".join(
            f"u{i}' = " + _sum(f"sin(u{j} - u{i})" for j in range(1, 6) if j != i) + f" - L@u{i}" for i in range(1, 6)
        ),
    )
    yield "second order", "H'' = -(H**2 - 1)**9*H' - sin(H)**5 - L@H"
    yield "pair of exponentials", "u' = exp(u - v) - exp(v*u) - L@u; v' = tanh(u*v)*exp(u) - L@v"


def _operators() -> Iterator[tuple[str, str]]:
    yield "operator power 32", "(alpha*A + beta*L)**32@H"
    yield "operator product", "@".join(f"(A - {i}*I)" for i in range(1, 25)) + "@H"
    yield "operators with letters", "@".join(f"(A - {x}*I)" for x in LETTERS) + "@H"
    yield "operators and reactions", "L@(L@(L@(H**9) + H**7) + H**5) - (A@H)**8"
