"""Why a layer differs: readings, comparisons and equations with one fault that agree with what it answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rdgraph.conformance.equation_target import Target
from rdgraph.conformance.fault_edits import FREED, single_faults
from rdgraph.conformance.layer_check import Comparison, LayerCheck
from rdgraph.conformance.number_words import array_word
from rdgraph.conformance.operator_reading import Reading, declared_readings, differences, neighbouring_readings
from rdgraph.conformance.search_effort import Effort
from rdgraph.errors import RdgraphError
from rdgraph.syntax.tree import Kind, names_in

#: What the search for faults may cost: some four seconds.
EXPLANATION_EFFORT = 40_000_000
#: The order in which explanations that agree equally well are told: what explains most by itself comes last.
_ORDER = (
    "dropout", "comparison", "transposed edges", "self-loops", "normalisation", "weights", "activation", "sign",
    "operator", "missing term", "power", "letter", "bias", "coefficient", "attention", "training mode",
)  # fmt: skip


@dataclass(frozen=True)
class Hint:
    """A kind of fault, and what it is in words; `explains` says whether the layer agrees once it is allowed for."""

    kind: str
    text: str
    explains: bool = True
    equation: str = ""
    term: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}" if self.explains else f"maybe {self.kind}: {self.text}"


@dataclass(frozen=True)
class Explanation:
    """A hint with the comparison that agrees."""

    hint: Hint
    comparison: Comparison


def explanations(
    check: LayerCheck, target: Target, reading: Reading, effort: float = EXPLANATION_EFFORT
) -> list[Explanation]:
    """Single faults under which the layer agrees, the likeliest first, one of each kind.

    Where there is none, readings that differ in several things are tried, too.
    """
    check = replace(check, effort=Effort(effort))
    found: dict[str, Explanation] = {}
    for source in (_other_readings, _other_comparisons, _other_equations):
        for hint, changed, other, known in source(check, target, reading):
            if hint.kind in found or check.effort.is_spent:
                continue
            if found and hint.kind in ("coefficient", "bias"):
                continue  # a free number explains what something else does, too
            comparison = _tried(check, changed, other, known, starts=0 if found else 1)
            if comparison is not None:
                found[hint.kind] = Explanation(_worded(check, hint, comparison), comparison)
    if not found:
        return _several_readings(check, target, reading)
    return sorted(found.values(), key=lambda e: _ORDER.index(e.hint.kind))


def _several_readings(check: LayerCheck, target: Target, reading: Reading) -> list[Explanation]:
    for other in declared_readings(transposed=None):
        if check.effort.is_spent:
            break
        comparison = _tried(check, target, other, check.known, starts=1)
        if comparison is not None:
            return [Explanation(Hint(kind, text), comparison) for kind, text in differences(reading, other)]
    return []


Candidate = tuple[Hint, Target, Reading, Mapping[str, Any]]


def _tried(
    check: LayerCheck, target: Target, reading: Reading, known: Mapping[str, Any], starts: int
) -> Comparison | None:
    """The comparison, where it agrees; None where it does not, or the changed equation has no meaning."""
    try:
        comparison = check.compared(target, reading, known, starts=starts)
    except RdgraphError:
        return None
    return comparison if check.agrees(comparison) else None


def _other_readings(check: LayerCheck, target: Target, reading: Reading) -> Iterator[Candidate]:
    for kind, text, other in neighbouring_readings(reading):
        yield Hint(kind, text), target, other, check.known


def _other_comparisons(check: LayerCheck, target: Target, reading: Reading) -> Iterator[Candidate]:
    """Euler's step for the flow, the increment for the step, and the like."""
    if check.widths[0] != check.widths[1]:
        return
    step = Target(target.tree, "step", 1, target.step if target.compared == "step" else target.T)
    forms = {
        "one step of Euler's method": step,
        "the right-hand side alone, without the state": Target(target.tree, "field"),
        "the flow": Target(
            target.tree, "flow", T=target.step * target.count if target.compared == "step" else target.T
        ),
    }
    if target.count > 1:
        forms |= {
            f"{n} of {target.count} steps": replace(target, count=n) for n in (target.count - 1, target.count + 1) if n
        }
    if target.compared == "field":
        forms = {"a step of Euler's method, H + f(H)": Target(target.tree, "step", 1, 1.0)}
    for words, form in forms.items():
        if form != target:
            yield Hint("comparison", f"the layer computes {words}"), form, reading, check.known


def _other_equations(check: LayerCheck, target: Target, reading: Reading) -> Iterator[Candidate]:
    for edit in single_faults(target.tree):
        if edit.freed and edit.freed != FREED and edit.freed not in check.known:
            continue  # it was free before
        changed = replace(target, tree=edit.tree)
        yield Hint(edit.kind, edit.text, equation=str(changed), term=edit.term), changed, reading, check.known
    used = {n.name for n in names_in(target.tree)}
    for name in sorted(used & set(check.known)):
        others = {key: value for key, value in check.known.items() if key != name}
        yield Hint("coefficient", f"{name} has another value", term=name), target, reading, others


def _worded(check: LayerCheck, hint: Hint, comparison: Comparison) -> Hint:
    """The hint with the value that a freed number was found to have, in the text and in the equation."""
    values = comparison.fit.values
    if hint.term in values and hint.term in check.known:
        return replace(hint, text=f"{hint.text}: {array_word(hint.term, values[hint.term], check.named, check.near)}")
    if FREED not in values or FREED in comparison.fit.loose:
        return hint
    word = array_word(FREED, values[FREED], check.named, check.near)
    text = f"{hint.text}: {word.removeprefix(f'{FREED} = ')}"
    shown = word.removeprefix(f"{FREED} = ") if values[FREED].ndim == 0 else FREED
    return replace(hint, text=text, equation=hint.equation.replace(FREED, shown))


def attention_hint(check: LayerCheck, target: Target, reading: Reading) -> Hint | None:
    """Rows of the operator that the layer applies do not sum to what the equation's do; for layers linear in H."""
    if not any(n.kind is Kind.OPERATOR and n.name != "I" for n in names_in(target.tree)):
        return None
    if reading.normalisation != "row" or check.unknowns(target.tree).size or check.widths[0] != check.widths[1]:
        return None
    graph = max(check.answers.graphs, key=lambda g: g.num_nodes)
    shape = (graph.num_nodes, check.call.width)
    rows = check.call(graph, np.ones(shape)) - check.call(graph, np.zeros(shape))
    letters = {**reading.operators(graph), **check.known, "H": np.ones(shape), "H0": np.zeros(shape)}
    wanted = target.values(letters) - target.values({**letters, "H": np.zeros(shape)})
    worst = int(np.abs(rows - wanted).max(axis=1).argmax())
    if np.abs(rows - wanted).max() <= check.precision:
        return None
    text = (
        f"on constants node {worst} gets {rows[worst, 0]:.4g} where weights that sum to 1 give {wanted[worst, 0]:.4g}"
    )
    return Hint("attention", f"the weights of a node do not sum to 1: {text}", explains=False)
