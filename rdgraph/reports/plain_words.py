"""An analysis in a few sentences: what a reader wants to know first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sympy as sp

from rdgraph.language.printer import to_text
from rdgraph.language.reader import NOISE_LETTER, PRIME, start_of
from rdgraph.language.tree import Times, field
from rdgraph.reports.summary import Analysis
from rdgraph.systems.coupling import Coupling, OperatorWord
from rdgraph.systems.system import System

# ---------------------------------------------------------------------- plain words
_LIFETIMES = {
    "global": "Solutions exist for all time",
    "local": "Solutions exist for a while, and not all of them for all time",
}


def plain_words(analysis: Analysis) -> tuple[str, ...]:
    """The main answers of an analysis, a sentence each, undecided ones included.

    >>> from rdgraph.reports.summary import analyse
    >>> for sentence in plain_words(analyse("FB*"))[:3]: print(sentence)
    Linear in H, without a source.
    As a filter it is low-pass if beta < alpha; all-pass if beta = alpha; high-pass if beta > alpha.
    Solutions exist for all time: the vector field is affine in H.
    """
    sentences = [_nature(analysis), _filter(analysis), _lifetime(analysis), _box(analysis), _steps(analysis)]
    sentences += [_energy(analysis), _gradient(analysis), _known(analysis), f"The method auto is {analysis.method}"]
    return tuple(f"{text.rstrip('.')}." for text in sentences if text)


def _nature(analysis: Analysis) -> str:
    fields = analysis.system.fields
    kind = "linear" if analysis.answers["linear"] else "nonlinear"
    source = "with" if analysis.answers["has_source"] else "without"
    if len(fields) > 1:
        return f"{len(fields)} fields, {', '.join(fields)}; {kind}, {source} a source"
    return f"{kind.capitalize()} in {fields[0]}, {source} a source"


def _filter(analysis: Analysis) -> str:
    return f"As a filter it is {'; '.join(analysis.filter_classes)}" if analysis.filter_classes else ""


def _lifetime(analysis: Analysis) -> str:
    known = _LIFETIMES.get(str(analysis.answers["existence"]))
    if known is None:
        return f"Whether solutions exist for all time is undecided: {analysis.existence_reason}"
    starts = analysis.answers.get("starts")
    why = "; ".join(analysis.blow_ups) or analysis.existence_reason
    return f"{known}{f' from starts with {starts}' if starts else ''}: {why}"


def _box(analysis: Analysis) -> str:
    boxes = _by_answer(analysis.words["invariant_box"])
    if not boxes:
        return "No bounds of the states are known that hold for all time"
    kept = ", and ".join(f"{_interval(box)} ({', '.join(kinds)})" for box, kinds in boxes)
    return f"States that start within bounds stay there: {kept}"


def _steps(analysis: Analysis) -> str:
    found = []
    for method, key in (("Euler", "step_limit_euler"), ("RK4", "step_limit_rk4")):
        limits = _by_answer(analysis.words[key])
        if limits:
            shown = [f"{value} ({', '.join(kinds)})" if len(limits) > 1 else value for value, kinds in limits]
            found.append(f"with {method} {' and '.join(shown)}")
    return f"Largest step with a guarantee, stated below: {'; '.join(found)}" if found else "No step limit is known"


def _energy(analysis: Analysis) -> str:
    fate = analysis.energy.partition("; ")[2]
    return f"The Dirichlet energy {fate}" if fate and not fate.startswith("undecided") else ""


def _gradient(analysis: Analysis) -> str:
    flow = analysis.gradient
    return f"Where A is symmetric it is the {flow}" if flow.startswith("gradient flow") else ""


def _known(analysis: Analysis) -> str:
    revealed = analysis.answers["identifiable"]
    return f"A run reveals {', '.join(revealed)}" if isinstance(revealed, list) and revealed else ""


def _by_answer(values: Any) -> list[tuple[Any, list[str]]]:
    """The different answers, and the normalisations of each; those without one are left out."""
    found: list[tuple[Any, list[str]]] = []
    for kind, value in (values or {}).items():
        if value is None:
            continue
        same = next((kinds for known, kinds in found if known == value), None)
        if same is None:
            found.append((value, [kind]))
        else:
            same.append(kind)
    return found


def _interval(box: Any) -> str:
    """[0, 1], or u in [0, 1], v in [0, no limit] of several fields."""
    if isinstance(box, Mapping):
        return ", ".join(f"{name} in {_interval(ends)}" for name, ends in box.items())
    return f"[{', '.join('no limit' if end is None else str(end) for end in box)}]"


# ---------------------------------------------------------------------- coupling words
# The coupling of several fields in words: what moves each of them, and from where.


def coupling_words(system: System) -> dict[str, str]:
    """What each state is moved by, by the left-hand side of its equation of first order.

    Args:
        system: any system that has normal forms.

    Returns:
        A line for every state: linear terms and whether they come over edges, starts, constants, reactions in every
        node, what couples nodes otherwise, noise.

    Raises:
        NotApplicable: the equations are too large to multiply out.

    >>> from rdgraph.systems.parser import parse
    >>> for left, words in coupling_words(parse("u' = a - u + u**2*v - Du*L@u; v' = u - v*(A@u) + sigma*xi")).items():
    ...     print(left, words)
    u' linear in u (node and A); constant a; reaction u**2*v
    v' linear in u (node); between nodes -v*A@u; noise sigma*xi
    """
    coupling = system.coupling
    found = {}
    for state in system.fields:
        parts = [*_linear(coupling, state), *_rest(coupling, state)]
        if state in system.noise:
            factor, noise = system.noise[state], field(NOISE_LETTER)
            parts.append(f"noise {to_text(noise if factor == 1 else Times(factor, noise))}")
        found[state + PRIME] = "; ".join(parts) or "nothing"
    return found


def _linear(coupling: Coupling, state: str) -> list[str]:
    """The states and starts that act on a state linearly, and the operators they come through."""
    parts = []
    for terms, name in ((coupling.linear, str), (coupling.source, start_of)):
        pairs = [(j, terms[state, j]) for j in coupling.fields if (state, j) in terms]
        own = [f"{name(j)} ({_ways(words)})" for j, words in pairs]
        parts += [f"linear in {', '.join(own)}"] if own else []
    return parts


def _ways(words: Iterable[OperatorWord]) -> str:
    """The operators of some terms: `node` for the state of the node itself."""
    texts = ["@".join(word) if word else "node" for word in words]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _rest(coupling: Coupling, state: str) -> list[str]:
    sorts = {"constant": coupling.constant, "reaction": coupling.reaction, "between nodes": coupling.coupled}
    return [f"{word} {terms[state]}" for word, terms in sorts.items() if terms[state] != sp.S.Zero]
