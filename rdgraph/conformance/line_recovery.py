"""The line of maths that a layer computes, found from its answers; None where the language has none for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rdgraph.conformance.equation_target import Target, right_hand_side
from rdgraph.conformance.feature_fit import FeatureFit, Line, fit_features, written
from rdgraph.conformance.function_inverses import BESIDE_THE_STATE, INVERSES, OF_ENTRIES, is_in_range
from rdgraph.conformance.layer_check import Comparison, LayerCheck
from rdgraph.conformance.layer_properties import slopes
from rdgraph.conformance.operator_reading import Reading, declared_readings
from rdgraph.conformance.probe_stack import Probe, Stack
from rdgraph.conformance.search_effort import Effort
from rdgraph.systems.parser import parse

#: Words up to this length are looked for.
LONGEST = 4
#: What the fits may cost; where it is spent, no further class of lines is tried.
RECOVERY_EFFORT = 60_000_000
#: Most unknown numbers of a line that are looked for by steps: their cost grows with the cube.
MOST_SEARCHED = 200
#: Readings that lines beyond affine ones are tried under: the usual ones, which come first.
USUAL = 20
MONOMIALS = ("H**2", "H**3", "H*(A@H)", "(A@H)**2", "H**2*(A@H)", "H*(A@H)**2", "(A@H)**3", "A@(H**2)", "A@(H**3)")
_RESIDUAL = "c*H + a*{}(H@W + A@H@V + b) where b channel, V matrix, a real, c real"


@dataclass(frozen=True)
class RecoveredLine:
    """A line with the values of its letters, and the comparison that shows that it agrees."""

    text: str
    comparison: Comparison
    line: Line


def recovered_line(
    check: LayerCheck, readings: Sequence[Reading] | None = None, reach: int | None = None
) -> RecoveredLine | None:
    """The simplest line that agrees with every answer; None where none of those that are tried does.

    Tried: words up to A^4 on H and H0 with matrices; the degree matrix D; monomials up to degree 3; functions of H and
    A@H; a function around everything; H and a function of H and A@H.
    """
    given = tuple(readings or declared_readings(transposed=None))
    bare = replace(check, known={}, rules={}, effort=Effort(RECOVERY_EFFORT))
    longest = LONGEST if reach is None else min(reach, LONGEST)
    for candidates in (_affine, _with_degrees, _outer, _monomials, _functions, _residual):
        for line, reading in candidates(bare, given if candidates is _affine else given[:USUAL], longest):
            if (found := _confirmed(bare, line, reading)) is not None:
                return found
        if bare.effort.is_spent:
            break
    return None


Candidates = Iterator[tuple[Line, Reading]]


def degree_matrix(adjacency: np.ndarray) -> np.ndarray:
    """D: the sums of the rows on the diagonal."""
    return np.diag(adjacency.sum(axis=1))


def _confirmed(check: LayerCheck, line: Line, reading: Reading) -> RecoveredLine | None:
    """The line, read back and compared with every answer."""
    rules = {"D": degree_matrix} if "D@" in line.text else {}
    kinds = {name: kind for name, kind in line.kinds.items() if name != "W"}  # which is a matrix by itself
    system = parse(line.text, kinds, operators=dict.fromkeys(rules, "operator"))
    held = replace(check, rules=rules, assumptions=system.assumptions)
    comparison = held.compared(Target(right_hand_side(system)), reading, line.values)
    return RecoveredLine(str(system), comparison, line) if held.agrees(comparison) else None


def _words(check: LayerCheck, longest: int) -> list[str]:
    powers = ["H", *("@".join(["A"] * k) + "@H" for k in range(1, longest + 1))]
    starts = ["H0", "A@H0"] if check.call.takes_start else []
    return powers + starts


def _fitted(
    check: LayerCheck, stack: Stack, reading: Reading, words: Sequence[str], entries: Sequence[str] = (), **how: Any
) -> FeatureFit:
    """The fit of some features, paid for by its numbers."""
    check.effort.spend(stack.outputs.size, len(words) * check.widths[0] + len(entries))
    return fit_features(stack, reading, words, entries, **how)


def _best(fits: list[tuple[FeatureFit, Reading]], precision: float) -> Candidates:
    """The lines of the fits that are good enough, those with the fewest words first."""
    good = [(fit, reading) for fit, reading in fits if fit.error <= precision]
    for fit, reading in sorted(good, key=lambda pair: pair[0].occurring)[:3]:
        yield written(fit), reading


def _affine(check: LayerCheck, readings: Sequence[Reading], longest: int) -> Candidates:
    words = _words(check, longest)
    stack = check.part(len(words) * check.widths[0])
    yield from _best([(_fitted(check, stack, reading, words), reading) for reading in readings], check.precision)


def _with_degrees(check: LayerCheck, readings: Sequence[Reading], longest: int) -> Candidates:
    """Words beside D@H, and constants that were added before a sum over neighbours: H**0 is 1 everywhere."""
    words = [*_words(check, min(longest, 2)), "D@H", *(["D@H0"] if check.call.takes_start else [])]
    is_square = check.widths[0] == check.widths[1]
    stack = Stack(check.part(len(words) * check.widths[0] + 8).probes, {"D": degree_matrix})
    sums = {r: ["D@(H**0)" if r.normalisation == "none" else "A@(H**0)"] if is_square else [] for r in readings}
    yield from _best([(_fitted(check, stack, r, words, sums[r]), r) for r in readings], check.precision)


def _outer(check: LayerCheck, readings: Sequence[Reading], longest: int) -> Candidates:
    words = _words(check, min(longest, 2))
    stack = check.part(2 * len(words) * check.widths[0])
    for name, inverse in INVERSES.items():
        if check.effort.is_spent:
            return
        with np.errstate(all="ignore"):
            if np.isfinite(inverse(stack.outputs)).mean() < 0.05 or not is_in_range(name, stack.outputs):
                continue
        fits = [(_fitted(check, stack, reading, words, undone=inverse), reading) for reading in readings]
        for line, reading in _best(fits, 1e3 * check.precision):
            yield replace(line, text=f"{name}({line.text})"), reading


def _monomials(check: LayerCheck, readings: Sequence[Reading], longest: int) -> Candidates:
    if check.widths[0] != check.widths[1]:
        return
    words = _words(check, min(longest, 3))
    entries = [*MONOMIALS, *(["H*H0", "H0**2"] if check.call.takes_start else [])]
    stack = check.part(2 * (len(words) * check.widths[0] + len(entries)))
    yield from _best([(_fitted(check, stack, r, words, entries), r) for r in readings], check.precision)


def _functions(check: LayerCheck, readings: Sequence[Reading], longest: int) -> Candidates:
    if check.widths[0] != check.widths[1]:
        return
    words = _words(check, min(longest, 2))
    stack = check.part(2 * (len(words) * check.widths[0] + 3))
    for name in OF_ENTRIES:
        if check.effort.is_spent:
            return
        entries = [f"{name}(H)", f"{name}(A@H)", f"A@{name}(H)"]
        with np.errstate(all="ignore"):
            fits = [(_fitted(check, stack, reading, words, entries), reading) for reading in readings]
        yield from _best(fits, check.precision)


def _residual(check: LayerCheck, readings: Sequence[Reading], longest: int) -> Candidates:
    """H and a function around an affine map, where the slopes at zero are words under some reading."""
    width = check.widths[0]
    if check.widths[1] != width or check.call.is_single_precision or 2 * width**2 + width + 2 > MOST_SEARCHED:
        return
    stack = _linearised(check)
    fits = [(_fitted(check, stack, reading, ["H", "A@H"]), reading) for reading in readings]
    near = [reading for fit, reading in sorted(fits, key=lambda pair: pair[0].error) if fit.error <= 1e-6]
    for name in BESIDE_THE_STATE:
        system = parse(_RESIDUAL.format(name))
        held = replace(check, assumptions=system.assumptions)
        for reading in near[:2]:
            if check.effort.is_spent:
                return
            comparison = held.compared(Target(right_hand_side(system)), reading, {}, starts=4)
            if held.agrees(comparison):
                values = comparison.fit.values
                yield Line(_RESIDUAL.format(name), {}, values), reading


def _linearised(check: LayerCheck) -> Stack:
    """The slopes of the layer at zero, as answers to generic states."""
    probes = []
    rng = np.random.default_rng(41)
    for graph in check.answers.graphs:
        zero = np.zeros((graph.num_nodes, check.call.width))
        jacobian = slopes(check.call, graph, zero)
        for _ in range(4):
            state = rng.normal(size=zero.shape)
            probes.append(Probe(graph, state, state, (jacobian @ state.ravel()).reshape(graph.num_nodes, -1)))
    return Stack(probes)
