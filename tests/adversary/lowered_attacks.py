"""Attacks on lowered fields: values, first and second derivatives, members alone and in a batch, compiled C.

`python -m tests.adversary.lowered_attacks --count 3000` draws equations, graphs, coefficients and states, compares the
fields with dense arrays of 80 bits, and prints what differs, and counts.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

import rdgraph as rd
from rdgraph.errors import RdgraphError
from rdgraph.run.lowering.compiled_field import compile_field, why_not_compiled
from tests.adversary import graphs
from tests.adversary.lowered_systems import KINDS, LONG, Evaluation, LoweredSystem, draw

Array = np.ndarray
Random = np.random.Generator

NORMALISATIONS = ("symmetric", "row", "column", "none")
BATCHES: tuple[tuple[int, ...], ...] = ((), (), (3,), (2, 2))
#: Values and arguments beyond this one are not compared.
LARGE = 1e6
#: Differences of the values, of first and of second derivatives, relative to what they are made of.
TOLERANCE, SLOPE_TOLERANCE, CURVE_TOLERANCE = 1e-10, 1e-7, 1e-5
#: The steps of differences in 80 bits, and the factors of f(x - 2h), ..., f(x + 2h) for both derivatives.
STEPS = (2e-4, 1e-5)
STENCIL = np.arange(-2, 3)
FIRST = np.array([1, -8, 0, 8, -1], dtype=LONG) / 12
SECOND = np.array([-1, 16, -30, 16, -1], dtype=LONG) / 12


@dataclass(frozen=True)
class Verdict:
    """What became of one comparison: held, skipped (kinks, large values), refused, differs or error."""

    text: str
    question: str
    status: str
    detail: str = ""


@dataclass(frozen=True, eq=False)
class Case:
    """An equation on a graph with numbers for everything; members are counted through the flattened batch."""

    system: LoweredSystem
    normalisation: str
    graph: graphs.Graph
    batch: tuple[int, ...]
    values: dict[str, Array]

    @cached_property
    def places(self) -> list[tuple[int, ...]]:
        return list(np.ndindex(*self.batch))

    @cached_property
    def edges(self) -> tuple[Array, Array]:
        return np.nonzero(self.graph.weights)

    def members(self, name: str) -> bool:
        """Whether every member has a value for itself."""
        return self.values[name].ndim > OWN_AXES[KINDS.get(name, name)]

    def inputs(self, place: tuple[int, ...], values: dict[str, Array]) -> dict[str, Array]:
        """What the dense arrays of one member are computed from."""
        found = {name: (x[place] if self.members(name) else x).astype(LONG) for name, x in values.items()}
        matrix = np.zeros((self.graph.nodes, self.graph.nodes), dtype=LONG)
        matrix[self.edges] = found.pop("weights")
        return {"A": matrix, **found}

    def speeds(self, values: dict[str, Array]) -> tuple[Array, Evaluation]:
        """f of all members, (members, n, width), and what its functions were given."""
        evaluation = Evaluation(self.system, self.normalisation == "none")
        return np.stack([evaluation.speed(self.inputs(place, values)) for place in self.places]), evaluation

    def lowered(self, tensors: dict[str, torch.Tensor]) -> Any:
        """The field with tensors in the place of the values, bound to its start."""
        operator = rd.Graph.from_dense(self.graph.weights).operator(self.normalisation, dtype=torch.float64)
        kind = "none" if self.normalisation == "none" else "free"
        operator = operator.with_weights(tensors["weights"], kind)
        letters = {name: tensors[name] for name in self.system.letters if name in KINDS}
        further = {"B": tensors["B"]} if "B" in tensors else {}
        field = rd.lower(self.system.text, operator, letters, batch=self.batch, operators=further)
        return field.bind(tensors["start"])

    def __str__(self) -> str:
        shapes = {name: x.shape for name, x in self.values.items()}
        return f"{self.normalisation} normalisation of {self.graph}, batch {self.batch}, {shapes}"


#: Axes of one member's value, by kind or name.
OWN_AXES = {
    "scalar": 0, "node": 1, "channel": 1, "matrix": 2, "state": 2, "start": 2, "weights": 1, "B": 2, "t": 0,
}  # fmt: skip


def drawn(rng: Random, system: LoweredSystem | None = None) -> Case:
    """A case: letters and weights with and without the batch in front."""
    system = draw(rng) if system is None else system
    normalisation = str(rng.choice(NORMALISATIONS))
    graph, batch = graphs.draw(rng, normalisation), BATCHES[rng.integers(len(BATCHES))]
    nodes, channels = graph.nodes, int(rng.integers(1, 4))
    own = {"scalar": (), "node": (nodes,), "channel": (channels,), "matrix": (channels, channels)}
    values: dict[str, Array] = {}
    for name in system.letters:
        lead = batch if rng.random() < 0.5 else ()
        if name == "M":
            values[name] = rng.integers(0, 2, (*lead, nodes)).astype(float)
        elif name == "B":
            values[name] = rng.normal(size=(nodes, nodes)) * (rng.random((nodes, nodes)) < 0.4)
        elif name == "t":
            values[name] = rng.uniform(0, 2, lead)
        else:
            values[name] = rng.uniform(0.1, 1.2, (*lead, *own[KINDS[name]])) * rng.choice([-1.0, 1.0])
    width = channels * len(system.states)
    values["state"], values["start"] = rng.normal(size=(2, *batch, nodes, width))
    weights = graph.operator(normalisation)[np.nonzero(graph.weights)]
    lead = batch if rng.random() < 0.4 else ()
    values["weights"] = weights * rng.uniform(0.5, 1.5, (*lead, len(weights))) if lead else weights
    return Case(system, normalisation, graph, batch, values)


# ---------------------------------------------------------------------- the comparisons
def attacked(case: Case, rng: Random, *, is_compiled: bool) -> Iterator[Verdict]:
    """All comparisons of one case."""
    text = case.system.text
    expected, evaluation = case.speeds(case.values)
    if not np.isfinite(expected).all() or max(float(np.abs(expected).max()), evaluation.largest) > LARGE:
        yield Verdict(text, "value", "skipped", "large")
        return
    tensors = {name: torch.as_tensor(x) for name, x in case.values.items()}
    try:
        field = case.lowered(tensors)
    except RdgraphError as reason:
        yield Verdict(text, "value", "refused", str(reason))
        return
    t = tensors.get("t", torch.tensor(0.0, dtype=torch.float64))
    found = field(t, tensors["state"])
    yield _compared(case, "value", found, expected, evaluation)
    if case.batch:
        yield _alone(case, field, found, t, tensors)
    if is_compiled:
        reason = why_not_compiled(field)
        if reason:
            yield Verdict(text, "compiled", "skipped", reason)
        else:
            width = case.values["state"].shape[-1] // len(case.system.states)
            compiled = compile_field(field, width)(t, tensors["state"])
            yield _compared(case, "compiled", compiled, expected, evaluation)
    yield from _derivatives(case, rng, expected.shape)


def _compared(case: Case, question: str, found: torch.Tensor, expected: Array, evaluation: Evaluation) -> Verdict:
    off = float(np.abs(found.detach().numpy().reshape(expected.shape) - expected).max())
    size = 1 + evaluation.largest**2 + float(np.abs(expected).max())
    is_wrong = not off <= TOLERANCE * size
    return Verdict(case.system.text, question, "differs" if is_wrong else "held", f"off by {off:.3g}, {case}")


def _alone(case: Case, field: Any, found: torch.Tensor, t: torch.Tensor, tensors: dict[str, torch.Tensor]) -> Verdict:
    """Members by themselves give the same bits."""
    off = 0.0
    for index, place in enumerate(case.places):
        own = t[place] if t.ndim else t
        alone = field.rebatched(index)(own, tensors["state"][place]) if field.batch else field(own, tensors["state"])
        off = max(off, float((alone - found[place]).abs().max()))
    size = 1 + float(found.abs().max())
    status = "held" if off == 0 else "rounded" if off <= 1e-12 * size else "differs"
    return Verdict(case.system.text, "members", status, f"off by {off:.3g}, {case}")


def _derivatives(case: Case, rng: Random, shape: tuple[int, ...]) -> Iterator[Verdict]:
    """Along a direction of the state, of the edge weights and of another input: autograd and differences."""
    factors = rng.normal(size=shape)
    others = [name for name in case.values if name not in ("B", "t", "M", "state", "weights")]
    names = ["state", "weights", str(rng.choice(others))]
    tensors = {name: torch.as_tensor(x).requires_grad_(name in names) for name, x in case.values.items()}
    t = tensors.get("t", torch.tensor(0.0, dtype=torch.float64))
    total = (case.lowered(tensors)(t, tensors["state"]).reshape(shape) * torch.as_tensor(factors)).sum()
    wanted = [tensors[name] for name in names]
    if not total.requires_grad:
        return
    slopes = torch.autograd.grad(total, wanted, create_graph=True, allow_unused=True)
    for name, slope in zip(names, slopes, strict=True):
        direction = rng.normal(size=case.values[name].shape)
        if direction.size:
            yield _slope(case, name, direction, slope, factors, wanted[names.index(name)])


def _slope(
    case: Case, name: str, direction: Array, slope: torch.Tensor | None, factors: Array, x: torch.Tensor
) -> Verdict:
    """First and second derivative along a direction of one input; where they differ, with a finer step as well."""
    question = "derivatives of weights" if name == "weights" else "derivatives"
    along = torch.as_tensor(direction)
    got = along.new_zeros(()) if slope is None else (slope * along).sum()
    curve = torch.autograd.grad(got, x, retain_graph=True, allow_unused=True)[0] if got.requires_grad else None
    bent = 0.0 if curve is None else float((curve * along).detach().sum())
    found, size = float(got.detach()), 0.0 if slope is None else float((slope * along).detach().abs().sum())
    for step in STEPS:
        expected = _differences(case, name, direction, factors, step)
        if expected is None:
            return Verdict(case.system.text, question, "skipped", "kink or large")
        first, second = expected
        room = 1 + size + abs(first)
        is_right = abs(found - first) <= SLOPE_TOLERANCE * room
        if is_right and abs(bent - second) <= CURVE_TOLERANCE * (room + abs(second)):
            return Verdict(case.system.text, question, "held")
    note = f"{name}: {found:.9g} and {bent:.9g} by autograd, {first:.9g} and {second:.9g} by differences, {case}"
    return Verdict(case.system.text, question, "differs", note)


def _differences(case: Case, name: str, direction: Array, factors: Array, step: float) -> tuple[float, float] | None:
    """Both derivatives by differences; None at a kink, or where values are large."""
    rows, sizes, kinks = [], [], []
    for k in STENCIL:
        moved = case.values | {name: case.values[name].astype(LONG) + k * LONG(step) * direction}
        speed, evaluation = case.speeds(moved)
        rows.append((speed * factors).sum())
        sizes.append(max(evaluation.largest, float(np.abs(speed).max())))
        kinks.append(np.concatenate([np.zeros(0, dtype=LONG), *evaluation.kinks]))
    if not max(sizes) < LARGE or _meets_kink(np.stack(kinks)):
        return None
    first, second = (float(w @ np.array(rows) / LONG(step) ** k) for k, w in ((1, FIRST), (2, SECOND)))
    return first, second


def _meets_kink(arguments: Array) -> bool:
    """Whether an argument (steps, entries) of a function with a kink comes near it; one that is always 0 does not."""
    is_clear = (np.abs(arguments) > 1e-7).all(0) & (np.sign(arguments) == np.sign(arguments[0])).all(0)
    is_nil = (np.abs(arguments) <= 1e-16).all(0)
    return not (is_clear | is_nil).all()


def attacks(count: int, seed: int, first: int = 0, share: float = 0.1) -> Iterator[Verdict]:
    """The verdicts on numbered cases; a share of them is compiled."""
    for index in range(first, first + count):
        rng = np.random.default_rng([seed, index])
        case = drawn(rng)
        try:
            for verdict in attacked(case, rng, is_compiled=bool(rng.random() < share)):
                yield replace(verdict, detail=f"case {index}: {verdict.detail}")
        except Exception as problem:
            yield Verdict(
                case.system.text, "value", "error", f"case {index}: {type(problem).__name__}: {problem}, {case}"
            )


def _fields(counts: Counter[tuple[str, str]]) -> int:
    return sum(number for (question, _), number in counts.items() if question == "value")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--compiled", type=float, default=0.1, help="share of the cases that are compiled")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: Counter[tuple[str, str]] = Counter()
    start = time.process_time()
    for verdict in attacks(chosen.count, chosen.seed, chosen.first, chosen.compiled):
        counts[verdict.question, verdict.status] += 1
        if verdict.question == "value" and (fields := _fields(counts)) % 250 == 0:
            sys.stderr.write(f"{fields} fields, {time.process_time() - start:.0f} s of CPU, {dict(counts)}\n")
        if verdict.status in ("differs", "error"):
            sys.stdout.write(f"{verdict.status}: {verdict.question}\n  {verdict.text}\n  {verdict.detail}\n")
            sys.stdout.flush()
    for (question, status), number in sorted(counts.items()):
        sys.stdout.write(f"{question:<24} {status:<10} {number}\n")
    sys.stdout.write(f"{_fields(counts)} fields in {time.process_time() - start:.0f} s of CPU\n")


if __name__ == "__main__":
    main()
