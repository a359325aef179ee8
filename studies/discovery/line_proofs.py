"""What is proved of an equation, in a row: symbol, filter class, Lipschitz constant, existence, step limit.

And the address under which the explorer opens on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from urllib.parse import quote

import sympy as sp

from gread.discovery.term_grammar import Line
from rdgraph.decisions.budget import limited
from rdgraph.decisions.condition_words import in_words
from rdgraph.decisions.line_extents import in_decimals
from rdgraph.errors import RdgraphError
from rdgraph.systems.system import System
from rdgraph.theory.filters import classify, symbol
from rdgraph.theory.global_existence import existence
from rdgraph.theory.rate_bounds import rate_bound
from rdgraph.theory.step_limits import step_limit

#: Seconds of each question, and the file of the explorer.
SECONDS = 4.0
EXPLORER = "explore.html"
#: The normalisation and the method that bounds are told for.
NORMALISATION, METHOD = "row", "rk4"
#: How an answer begins that is none.
NOT_TOLD = "not told"


def proofs(system: System, coefficients: Mapping[str, float] | None = None) -> dict[str, str]:
    """The answers of the core about an equation, each in words; what is not known says why.

    Symbol, slope and existence hold for all coefficients that are declared; the filter class and the step limit are
    those at the given numbers, where there are some.

    >>> from rdgraph.systems.parser import parse
    >>> found = proofs(parse("-alpha*L@H"), {"alpha": 0.5})
    >>> found["symbol"], found["filter_class"], found["step_limit"][:5]
    ('-alpha*lam', 'low-pass', '2.785')
    """
    numbers = {name: f"{value:.4g}" for name, value in (coefficients or {}).items() if math.isfinite(value)}
    here = system.replace(**{name: sp.Rational(text) for name, text in numbers.items()}) if numbers else system
    return {
        "symbol": _asked(lambda: str(symbol(system))),
        "filter_class": _asked(lambda: "; ".join(map(str, classify(here)))),
        "Lipschitz_bound": _asked(lambda: _slope(system)),
        "existence": _asked(lambda: _life(system)),
        "step_limit": _asked(lambda: _step(here)),
    }


def _asked(question: Callable[[], str]) -> str:
    try:
        return limited(SECONDS, question)
    except RdgraphError as problem:
        return f"{NOT_TOLD}: {str(problem).partition(chr(10))[0]}"


def _slope(system: System) -> str:
    bound = rate_bound(system, NORMALISATION)
    if not bound.is_finite:
        return "none for all states"
    return in_words(in_decimals(bound.value)) + (" on |h| <= R" if bound.is_local else "")


def _life(system: System) -> str:
    found = existence(system)
    return f"{found.status}: {found.reason}"


def _step(system: System) -> str:
    limit = step_limit(system, METHOD, NORMALISATION)
    if limit.value is None:
        return limit.means
    value = f"{float(limit.value):.4g}" if limit.value.is_number and limit.value.is_finite else in_words(limit.value)
    return f"{value} ({limit.means})"


def explorer_address(line: Line, coefficients: Mapping[str, float] | None = None) -> str:
    """Where the explorer beside the report opens on an equation, at the means of its coefficients.

    >>> from gread.discovery.term_grammar import Term
    >>> explorer_address(Line((Term("L@H", "-"),), ("alpha",), "scalar"), {"alpha": 0.25})
    'explore.html#e=-alpha%2AL%40H%20where%20alpha%20positive&c.alpha=0.25'
    """
    words = [f"e={quote(line.text, safe='')}"]
    words += [f"c.{name}={value:.6g}" for name, value in (coefficients or {}).items()]
    return f"{EXPLORER}#{'&'.join(words)}"
