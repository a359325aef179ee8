"""An analysis in a few sentences: what a reader wants to know first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rdgraph.reports.summary import Analysis

_LIFETIMES = {
    "global": "Solutions exist for all time",
    "local": "Solutions exist for a while, and not all of them for all time",
}


def plain_words(analysis: Analysis) -> tuple[str, ...]:
    """The main answers, a sentence each; what is undecided is said to be.

    >>> from rdgraph.reports.summary import analyse
    >>> for sentence in plain_words(analyse("FB*"))[:3]: print(sentence)
    Linear in H, without a source.
    As a filter it is low-pass if beta < alpha; all-pass if beta = alpha; high-pass if beta > alpha.
    Solutions exist for all time: the vector field is affine in H.
    """
    sentences = [_nature(analysis), _filter(analysis), _lifetime(analysis), _box(analysis), _steps(analysis)]
    sentences += [_energy(analysis), _known(analysis), f"The method auto is {analysis.method}"]
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
            found.append(f"with {method} up to {' and '.join(shown)}")
    return f"A step is safe, in the sense given below: {', '.join(found)}" if found else "No limit of the step is known"


def _energy(analysis: Analysis) -> str:
    fate = analysis.energy.partition("; ")[2]
    return f"The Dirichlet energy: {fate}" if fate and not fate.startswith("undecided") else ""


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
