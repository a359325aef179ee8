"""Names of learned functions: `phi` and `psi` from the start, and those that `learned` declares."""

from __future__ import annotations

from typing import Any

from rdgraph.errors import UnknownName
from rdgraph.syntax.learned_function import STANDARD_KNOTS, STANDARD_RANGE, LearnedFunction
from rdgraph.syntax.reader import LEARNED, USUAL_LEARNED, check_new_name


def learned(
    name: str,
    *,
    knots: int = STANDARD_KNOTS,
    range: tuple[Any, Any] = STANDARD_RANGE,  # noqa: A002 - the word for it
    odd: bool = False,
    monotone: str | None = None,
    bound: Any = None,
    lipschitz: Any = None,
    per_channel: bool = False,
) -> LearnedFunction:
    """Declare a function of one entry that is learned, for equations that are read from now on.

    Args:
        name: as equations call it; a free name.
        knots: of the cubic spline, equidistant.
        range: (lower, upper), the first and the last knot; beyond them the function is a straight line.
        odd: phi(-x) = -phi(x).
        monotone: "nondecreasing" or "nonincreasing".
        bound: |phi(x)| <= bound everywhere.
        lipschitz: |phi'(x)| <= lipschitz everywhere.
        per_channel: one function for each channel of the state.

    Returns:
        The declaration. A system keeps the one that it was read with, and its text says it after `where`.

    Raises:
        InvalidArgument: a declaration that no spline can have.
        LanguageError: a name that the language needs for itself.

    Whatever the parameters become in training, the function has what is declared; proofs use that and nothing else.

    >>> import rdgraph as rd
    >>> _ = rd.learned("gate_example", knots=8, odd=True, lipschitz=2)
    >>> print(rd.parse("-alpha*L@H + gate_example(H)"))
    -alpha*L@H + gate_example(H) where gate_example learned knots=8 range=-3:3 odd lipschitz=2
    >>> forget_learned("gate_example")
    """
    check_new_name(name)
    declared = LearnedFunction(name, knots, range, odd, monotone, bound, lipschitz, per_channel)
    LEARNED[name] = declared
    return declared


def declared_names() -> tuple[str, ...]:
    """The names that mean something else here than in a process in which nothing was declared."""
    usual = {name: LearnedFunction(name) for name in USUAL_LEARNED}
    return tuple(name for name, declared in LEARNED.items() if usual.get(name) != declared)


def forget_learned(name: str) -> None:
    """Take back what `learned` declared; equations that were read stay as they are.

    Args:
        name: of a declared function.

    Raises:
        UnknownName: nothing is declared under this name.

    >>> _ = learned("gate_example")
    >>> forget_learned("gate_example")
    """
    if name not in LEARNED:
        raise UnknownName("learned function", name, LEARNED)
    del LEARNED[name]
    LEARNED.update({usual: LearnedFunction(usual) for usual in USUAL_LEARNED if usual == name})
