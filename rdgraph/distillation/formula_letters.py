"""Letters for the constants of a formula, signs written out, and the equation in which it stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rdgraph.distillation.prefix_terms import Word, to_text
from rdgraph.syntax.reader import USUAL_COEFFICIENTS

Array = np.ndarray
#: Factors are called by these in their order; what the equation uses already is left out.
LETTERS = tuple(name for name in USUAL_COEFFICIENTS if name not in ("alpha", "epsilon"))


@dataclass(frozen=True)
class LetteredFormula:
    """A formula with letters: its text, and for every constant its letter and the sign that is written before it.

    `signs` are 1 or -1 where the letter is positive, and 0 where it may have either sign.
    """

    text: str
    names: tuple[str, ...]
    signs: tuple[int, ...]

    @property
    def statements(self) -> list[str]:
        """What must be declared after `where`."""
        return [f"{name} real" for name, sign in zip(self.names, self.signs, strict=True) if not sign]

    def values(self, constants: Array) -> dict[str, float]:
        """The letters for constants (count,)."""
        found = zip(self.names, self.signs, constants, strict=True)
        return {name: float(value) * (sign or 1) for name, sign, value in found}

    def constants(self, values: Mapping[str, float]) -> Array:
        """The constants (count,) for values of the letters, the other way."""
        return np.array([values[name] * (sign or 1) for name, sign in zip(self.names, self.signs, strict=True)])

    def ranges(self, constants: Array) -> dict[str, tuple[float, float]]:
        """The smallest and the largest value of each letter, for constants (sets, count).

        >>> lettered(("*", "c", "x"), np.array([[-2.0], [-3.0]]), ["alpha"]).ranges(np.array([[-2.0], [-3.0]]))
        {'beta': (2.0, 3.0)}
        """
        values = constants * np.array([sign or 1 for sign in self.signs])
        return {
            name: (float(column.min()), float(column.max())) for name, column in zip(self.names, values.T, strict=True)
        }

    def within(self, equation: str, function: str) -> str:
        """The equation with the formula declared as its function.

        >>> lettered(("*", "c", "x"), np.array([[2.0]]), ["alpha"]).within("-alpha*L@H + phi(H)", "phi")
        '-alpha*L@H + phi(H) where phi = beta*H'
        """
        body = self.text if "H" in self.text else f"({self.text})*H**0"
        return with_function(equation, function, body, self.statements)


def lettered(word: Word, constants: Array, taken: Iterable[str], *, numbered: bool = False) -> LetteredFormula:
    """Letters for the constants (sets, count); a constant of one sign in all sets is written with it.

    Where the letters of the language do not suffice, it is an error, or c1, c2 and so on follow if `numbered`.

    >>> lettered(("+", "*", "c", "x", "*", "c", "cube", "x"), np.array([[1.0, -2.0]]), ["alpha"]).text
    'beta*H - gamma*H**3'
    """
    used = set(taken)
    names = tuple(name for name in LETTERS if name not in used)[: constants.shape[1]]
    if numbered:
        names += tuple(f"c{k}" for k in range(1, constants.shape[1] - len(names) + 1))
    if len(names) < constants.shape[1]:
        raise ValueError(f"expected at most {len(names)} constants, got {constants.shape[1]}")
    signs = tuple(1 if (column > 0).all() else -1 if (column < 0).all() else 0 for column in constants.T)
    written = [f"-{name}" if sign < 0 else name for name, sign in zip(names, signs, strict=True)]
    return LetteredFormula(to_text(word, written), names, signs)


def range_words(ranges: Mapping[str, tuple[float, float]], digits: int = 4) -> str:
    """Ranges of letters in words.

    >>> range_words({"beta": (-0.25, 1.5), "gamma": (2.0, 2.0)})
    'beta from -0.25 to 1.5, gamma = 2'
    """
    return ", ".join(f"{name} {_span(*ends, digits)}" for name, ends in ranges.items())


def _span(low: float, high: float, digits: int) -> str:
    first, last = f"{low:.{digits}g}", f"{high:.{digits}g}"
    return f"= {first}" if first == last else f"from {first} to {last}"


def with_function(equation: str, name: str, body: str, statements: Sequence[str] = ()) -> str:
    """The equation with its function declared after `where`, in place of what was declared of it before.

    >>> with_function("-alpha*L@H + phi(H) where alpha real, phi learned knots=8", "phi", "H**2")
    '-alpha*L@H + phi(H) where alpha real, phi = H**2'
    """
    line, _, clause = equation.partition(" where ")
    kept = [part.strip() for part in clause.split(",") if part.split() and part.split()[0] != name]
    return f"{line.rstrip()} where {', '.join([*kept, f'{name} = {body}', *statements])}"
