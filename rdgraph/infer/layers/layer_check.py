"""`LayerCheck`: one layer with its outputs on probes, compared with equations under readings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from rdgraph.infer.fit.damped_steps import Effort
from rdgraph.infer.formulas.slopes_and_inverses import OF_PARAMETERS
from rdgraph.infer.layers.coefficient_fit import (
    FREED,
    STARTS,
    Fit,
    Search,
    Shape,
    Unknowns,
    fitted,
    parameter_guesses,
    unknown_coefficients,
)
from rdgraph.infer.layers.equation_target import Target
from rdgraph.infer.layers.layer_call import LayerCall
from rdgraph.infer.layers.probe_graphs import Reading
from rdgraph.infer.layers.probe_stack import Answers, OperatorRule, Probe, Stack
from rdgraph.language.assumptions import Assumptions
from rdgraph.language.tree import Kind, names_in
from rdgraph.theory.equality.dense_oracle import evaluate
from rdgraph.wording import fraction_text, near_fraction

# ---------------------------------------------------------------------- number words
# Fitted numbers in words: fractions, functions of fractions, and parameters of the layer.

#: Tolerance for identifying a number with a fraction.
NEAR = 1e-9

Array = np.ndarray


def number_word(
    value: float, named: Mapping[str, Array] | None = None, near: float = NEAR, letter: str = ""
) -> tuple[str, float]:
    """A number in words, and the value of these words.

    Among matching parameters of the layer, the one named `letter` is preferred, and p to 1 - p.

    >>> number_word(0.3333333333333), number_word(1/(1 + np.exp(-0.3)))[0], number_word(2.0)[0]
    (('1/3', 0.3333333333333333), 'sigmoid(0.3)', '2')
    >>> number_word(0.123456, {"beta": np.array(0.123456)})[0]
    'beta of the layer'
    >>> layer = {"alpha": np.array(0.7654321), "beta": np.array(0.2345679)}
    >>> [number_word(0.2345679, layer, letter=letter)[0] for letter in ("beta", "k")]
    ['beta of the layer', 'beta of the layer']
    """
    close = near * max(1.0, abs(value))
    if (plain := near_fraction(value, close)) is not None:
        return fraction_text(plain), float(plain)
    single = {key: float(array.reshape(-1)[0]) for key, array in (named or {}).items() if array.size == 1}
    ordered = sorted(single.items(), key=lambda pair: pair[0].rpartition(".")[2] != letter)
    for words in (_as_parameter, _from_parameter):
        for key, parameter in ordered:
            if word := words(value, key, parameter, close):
                return word
    for name, (function, inverse) in OF_PARAMETERS.items():
        try:
            inner = near_fraction(inverse(value), near)
            if inner is not None and inner.denominator <= 20 and abs(function(float(inner)) - value) <= close:
                return f"{name}({fraction_text(inner)})", function(float(inner))
        except (ValueError, OverflowError, ZeroDivisionError):
            continue
    return f"{value:.10g}", value


def array_word(name: str, value: Array, named: Mapping[str, Array] | None = None, near: float = NEAR) -> str:
    """A fitted coefficient in words.

    >>> array_word("W", np.eye(2)), array_word("k", np.array([0.5, 0.25]))
    ('W = I', 'k = (0.5, 0.25)')
    """
    if value.ndim == 0:
        return f"{name} = {number_word(float(value), named, near, name)[0]}"
    for key, array in (named or {}).items():
        squeezed = array.squeeze() if array.ndim > value.ndim else array
        if squeezed.shape == value.shape and _same(squeezed, value, near):
            return f"{name} = {key} of the layer"
        if squeezed.ndim == 2 and squeezed.T.shape == value.shape and _same(squeezed.T, value, near):
            return f"{name} = {key} of the layer, transposed"
    if value.ndim == 1:
        shown = ", ".join(number_word(float(v), None, near)[0] for v in value[:4])
        return f"{name} = ({shown}{', ...' if len(value) > 4 else ''})"
    rows, columns = value.shape
    if rows == columns and _same(value, np.eye(rows), near):
        return f"{name} = I"
    if rows == columns and _same(value, value[0, 0] * np.eye(rows), near):
        return f"{name} = {number_word(float(value[0, 0]), named, near)[0]}*I"
    return f"{name} fitted ({rows} x {columns})"


def _as_parameter(value: float, key: str, parameter: float, close: float) -> tuple[str, float] | None:
    return (f"{key} of the layer", parameter) if abs(parameter - value) <= close else None


def _from_parameter(value: float, key: str, parameter: float, close: float) -> tuple[str, float] | None:
    if abs(1 - parameter - value) <= close:
        return f"1 - {key} of the layer", 1 - parameter
    for name, (function, _) in OF_PARAMETERS.items():
        try:
            if abs(function(parameter) - value) <= close:
                return f"{name}({key} of the layer)", function(parameter)
        except (ValueError, OverflowError):
            continue
    return None


def _same(left: Array, right: Array, near: float) -> bool:
    return bool(np.abs(left - right).max(initial=0.0) <= near * max(1.0, float(np.abs(right).max(initial=0.0))))


#: Relative differences up to this are rounding, in double and in single precision.
PRECISION, SINGLE_PRECISION = 1e-9, 2e-4
#: The same for a layer in double precision whose constants were rounded to single precision.
MIXED_PRECISION = 5e-7
#: Probes of a fit: rows per unknown number, and the least number of probes.
ROWS_PER_UNKNOWN, FEWEST = 3, 30
#: Budget of the search for coefficients over all equations and readings: about six seconds.
AGREEMENT_EFFORT = 60_000_000

_ALLOWED: dict[str, Callable[[float], bool]] = {
    "positive": lambda v: v > 0, "negative": lambda v: v < 0, "nonnegative": lambda v: v >= 0,
    "nonpositive": lambda v: v <= 0, "real": lambda v: True,
}  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """One equation under one reading compared with the layer: fit, errors, and a violated assumption if any."""

    target: Target
    reading: Reading
    fit: Fit
    errors: tuple[float, ...]
    objection: str = ""

    @property
    def error(self) -> float:
        return max(self.errors, default=self.fit.error)


@dataclass
class LayerCheck:
    """A layer, its outputs on probes, and what is known of the coefficients."""

    call: LayerCall
    answers: Answers
    known: Mapping[str, Array] = field(default_factory=dict)
    rules: Mapping[str, OperatorRule] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    assumptions: Assumptions = field(default_factory=Assumptions)
    is_mixed: bool = False
    effort: Effort = field(default_factory=Effort)

    @property
    def precision(self) -> float:
        if self.call.is_single_precision:
            return SINGLE_PRECISION
        return MIXED_PRECISION if self.is_mixed else PRECISION

    @property
    def near(self) -> float:
        """Tolerance for identifying a fitted number with a fraction."""
        return 1e-5 if self.call.is_single_precision else 1e-6 if self.is_mixed else 1e-8

    @property
    def widths(self) -> tuple[int, int]:
        return self.call.width, self.answers.output_width

    @cached_property
    def whole(self) -> Stack:
        """All probes as one stack."""
        return Stack(self.answers.probes, self.rules)

    @cached_property
    def named(self) -> dict[str, Array]:
        return self.call.named_values()

    def part(self, unknown: int) -> Stack:
        """Enough probes for `unknown` unknown numbers, spread over the graphs; large states first."""
        wanted = FEWEST + ROWS_PER_UNKNOWN * unknown // max(1, self.widths[1])
        if wanted not in self._parts:
            sorts = ("large", "generic", "negative")
            useful = sorted((p for p in self.answers.probes if p.sort in sorts), key=lambda p: sorts.index(p.sort))
            by_graph = [[p for p in useful if p.graph is graph] for graph in self.answers.graphs]
            chosen: list[Probe] = []
            rows = 0
            for turn in range(max(map(len, by_graph))):
                if rows >= 2 * wanted and len(chosen) >= FEWEST:
                    break
                layer = [probes[turn] for probes in by_graph if turn < len(probes)]
                chosen += layer
                rows += sum(p.graph.num_nodes for p in layer)
            self._parts[wanted] = Stack(chosen, self.rules)
        return self._parts[wanted]

    @cached_property
    def _parts(self) -> dict[int, Stack]:
        return {}

    def within(self, domain: str) -> LayerCheck | None:
        """The check restricted to a class of graphs; None where that is all of them, or none."""
        probes = tuple(probe for probe in self.answers.probes if probe.graph.is_in(domain))
        if len(probes) in (0, len(self.answers.probes)):
            return None
        return replace(self, answers=replace(self.answers, probes=probes))

    def unknowns(self, tree: sp.Basic, known: Mapping[str, Array] | None = None) -> Unknowns:
        return unknown_coefficients(tree, self.known if known is None else known, self.widths, self.shapes)

    def compared(
        self, target: Target, reading: Reading, known: Mapping[str, Array] | None = None, *, starts: int = STARTS
    ) -> Comparison:
        """Fit the unknown coefficients, then compare every output; the errors are empty if the fit already fails."""
        given = self.known if known is None else known
        unknowns = self.unknowns(target.tree, given)
        search = Search(
            starts,
            parameter_guesses(unknowns, self.named),
            lambda tried: self.objection(tried, given),
            self.precision,
            self.effort,
        )
        fit = fitted(target, unknowns, self.part(unknowns.size), reading, given, search)
        if not fit.error <= self.precision:
            return Comparison(target, reading, fit, ())
        fit = self._rounded(target, reading, fit, given)
        errors = tuple(self.errors(target, reading, {**given, **fit.values}))
        return Comparison(target, reading, fit, errors, self.objection(fit, given))

    def agrees(self, comparison: Comparison) -> bool:
        return bool(comparison.errors) and comparison.error <= self.precision and not comparison.objection

    def errors(self, target: Target, reading: Reading, values: Mapping[str, Array]) -> list[float]:
        """The largest error of every probe relative to the size of its output."""
        rows = target.values({**self.whole.states, **self.whole.operators(reading), **values})
        if rows.shape != self.whole.outputs.shape:
            return [np.inf] * len(self.whole.probes)
        both = np.isnan(rows) & np.isnan(self.whole.outputs)
        gaps = np.where(both, 0.0, np.abs(rows - self.whole.outputs)) / self.whole.tolerance(1.0)
        return [float(np.nan_to_num(gap, nan=np.inf).max()) for gap in self.whole.per_probe(gaps)]

    def objection(self, fit: Fit, known: Mapping[str, Array]) -> str:
        """The first sign or relation violated by the fitted values, in words; empty if there is none."""
        near = 100 * self.precision
        for name, value in fit.values.items():
            if name in fit.loose or value.ndim > 1 or name == FREED:
                continue
            sign = self.assumptions.sign(name)
            size = max(1.0, float(np.abs(value).max(initial=0.0)))
            cleaned = np.where(np.abs(value) <= near * size, 0.0, value)
            if value.ndim and name not in self._stated:
                continue  # a bias has any sign unless one is declared
            worst = next((float(v) for v in cleaned.ravel() if not _ALLOWED[sign](float(v))), None)
            if worst is not None:
                return f"{name} would be {number_word(worst)[0]}, not {sign}"
        for relation in self.assumptions.relations:
            letters = {n.name for n in names_in(relation.lower) | names_in(relation.upper)}
            values = {**known, **fit.values}
            if letters & set(fit.loose) or not letters <= set(values):
                continue
            lower, upper = (np.asarray(evaluate(side, values)) for side in (relation.lower, relation.upper))
            if not bool((lower <= upper + near).all()):
                return f"{relation} would not hold"
        return ""

    @cached_property
    def _stated(self) -> set[str]:
        """The coefficients with a declared sign, as opposed to a default one."""
        return {name for name, _ in self.assumptions.signs} | set(self.assumptions.stated_positive)

    def _rounded(self, target: Target, reading: Reading, fit: Fit, known: Mapping[str, Array]) -> Fit:
        """The fit with numbers rounded to nearby fractions, if all outputs still agree."""
        values = {
            name: np.array(number_word(float(v), self.named, self.near, name)[1])
            if v.ndim == 0 and name not in fit.loose
            else v
            for name, v in fit.values.items()
        }
        if all(np.array_equal(values[name], fit.values[name]) for name in values):
            return fit
        error = max(self.errors(target, reading, {**known, **values}))
        return replace(fit, values=values, error=error) if error <= self.precision else fit

    def words(self, comparison: Comparison) -> str:
        """The reading and the fitted coefficients in words."""
        letters = [
            f"{name} not determined" if name in comparison.fit.loose else array_word(name, value, self.named, self.near)
            for name, value in comparison.fit.values.items()
        ]
        uses = {n.name for n in names_in(comparison.target.tree) if n.kind is Kind.OPERATOR} - {"I"}
        return ", ".join([*([str(comparison.reading)] if uses else []), *letters])


def read_values(values: Mapping[str, Any] | None) -> dict[str, Array]:
    """Given values as arrays: numbers, lists, tensors."""
    arrays = {}
    for name, value in (values or {}).items():
        plain = value.detach().cpu().double().numpy() if hasattr(value, "detach") else value
        arrays[name] = np.asarray(plain, dtype=float)
    return arrays


@dataclass(frozen=True)
class Outcome:
    """The comparison that agrees, or the nearest one, and whether it is certain that no other one agrees.

    `check` allows for constants rounded to single precision if the layer agrees only then.
    """

    check: LayerCheck
    comparison: Comparison
    is_certain: bool = True


def first_agreeing(
    check: LayerCheck, targets: Sequence[Target], readings: Sequence[Reading], share: float = 1.0
) -> Outcome:
    """The first target and reading that agree, or the nearest: all of them with few starts, then some with many."""
    check = replace(check, effort=Effort(share * AGREEMENT_EFFORT))
    seen: list[Comparison] = []
    for target in targets:
        for reading in readings:
            comparison = check.compared(target, reading, starts=2)
            if check.agrees(comparison):
                return Outcome(check, comparison)
            seen.append(comparison)
    nearest = sorted(seen, key=lambda c: c.fit.error)[:2]
    for comparison in nearest:
        if comparison.fit.is_certain:
            continue
        again = check.compared(comparison.target, comparison.reading, starts=STARTS)
        if check.agrees(again):
            return Outcome(check, again)
    if nearest[0].fit.error <= MIXED_PRECISION and not check.call.is_single_precision:
        mixed = replace(check, is_mixed=True)
        again = mixed.compared(nearest[0].target, nearest[0].reading)
        if mixed.agrees(again):
            return Outcome(mixed, again)
    return Outcome(check, nearest[0], is_certain=all(c.fit.is_certain for c in seen))
