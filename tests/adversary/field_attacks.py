"""Attacks on what is proved of several fields, with numpy and scipy alone.

`python -m tests.adversary.field_attacks --count 2000` draws systems, asks one question about each and tries to refute
the answer; it prints what was refuted, and counts.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import RK45

from tests.adversary import field_systems, formulas, graphs
from tests.adversary.answers import Undecided, ask_fields
from tests.adversary.field_systems import DrawnFields, FieldRun, states

Array = np.ndarray
Random = np.random.Generator
Bounds = Mapping[str, tuple[Any, Any]]

NORMALISATIONS = ("symmetric", "row", "column", "none")
CASES = 6
END = 2.0
#: Evaluations of the speed, and the size of a state, after which a run is not followed any further.
MOST_SPEEDS = 8_000
FAR = 1e8


@dataclass(frozen=True)
class Attack:
    """What became of one answer: held, undecided, or refuted by a witness."""

    text: str
    question: str
    status: str
    detail: str = ""


def numbers(run: FieldRun, radius: float) -> dict[str, float]:
    """Letters at numbers; those of nodes count by their largest modulus."""
    letters = {name: float(max(np.ravel(x), key=abs)) for name, x in run.letters.items()}
    return {**letters, "R": radius, "s": run.row_sum, "T": END}


def value(formula: Any, run: FieldRun, radius: float) -> float:
    """A formula of the tool at numbers; infinite ends stand for themselves."""
    text = str(formula)
    if text in ("oo", "-oo"):
        return float(text.replace("oo", "inf"))
    return float(np.real(formulas.evaluate(text, numbers(run, radius))))


def runs(drawn: DrawnFields, normalisation: str, rng: Random, **options: bool) -> Iterator[FieldRun]:
    for _ in range(CASES):
        graph = graphs.draw(rng, normalisation, **options)
        yield FieldRun(drawn, graph, normalisation, drawn.values(rng, graph.nodes))


# ---------------------------------------------------------------------- slopes
def _norm(jacobian: Array, *, is_one_sided: bool = False) -> float:
    """The largest sum of |slopes| over a row; one-sided, the own slope counts with its sign."""
    own = np.diag(jacobian)
    return float((np.abs(jacobian).sum(1) + (own - np.abs(own) if is_one_sided else 0.0)).max())


def lipschitz(
    drawn: DrawnFields, constant: Any, normalisation: str, rng: Random, *, is_local: bool, is_one_sided: bool = False
) -> str | None:
    """A state whose Jacobian has a larger norm than is claimed; an exact claim must nearly be reached."""
    if constant.value is None:
        return _is_bounded(drawn, normalisation, rng) if constant.is_sharp and not (is_local or is_one_sided) else None
    for run in runs(drawn, normalisation, rng):
        radius = float(np.exp(rng.uniform(-1.5, 1.5)))
        claimed = value(constant.value, run, radius)
        size = radius if is_local else 20.0
        ends = np.full(len(drawn.fields), size)
        inside = states(rng, -ends, ends, run.graph.nodes)
        for state, start in zip(inside, states(rng, -ends, ends, run.graph.nodes), strict=True):
            t = float(rng.uniform(0, END))
            found = _norm(run.jacobian(state, t, start), is_one_sided=is_one_sided)
            if found > claimed + 1e-7 * (1 + abs(found)):
                place = f"R = {radius}, t = {t}, {state.tolist()} from {start.tolist()}"
                return f"slopes sum to {found:.9g} > {claimed:.9g} at {place}, {run.told()}"
    return _reached(drawn, constant, normalisation, rng, is_local) if constant.is_sharp and not is_one_sided else None


def _reached(drawn: DrawnFields, constant: Any, normalisation: str, rng: Random, is_local: bool) -> str | None:
    graph = graphs.directed_cycle(7) if normalisation == "row" else graphs.star(5)
    run = FieldRun(drawn, graph, normalisation, drawn.values(rng, graph.nodes))
    radius = float(np.exp(rng.uniform(-1, 1)))
    claimed, count = value(constant.value, run, radius), len(drawn.fields)
    size = radius if is_local else 20.0
    ends = np.full(2 * count, size)  # a state, and the start of its run

    def norm(both: Array) -> float:
        return _norm(run.jacobian(both[:count], 0.0, both[count:]))

    trials = [*states(rng, -ends, ends, graph.nodes, 60), np.zeros((len(ends), graph.nodes))]
    worst = max(trials, key=norm)
    for k in range(300):  # climbs from the best of the trials, entry by entry
        moved = worst.copy()
        step = size * rng.choice([-1.0, 0.0, 1.0, rng.uniform(-1, 1)])
        moved[rng.integers(len(ends)), rng.integers(graph.nodes) if k % 2 else slice(None)] = step
        if norm(moved) >= norm(worst):
            worst = moved
    best = norm(worst)
    if best < 0.9 * claimed - 1e-9:
        return f"called exact at {claimed:.9g}, but {best:.9g} is the most that was reached; R = {radius}, {run.told()}"
    return None


def _is_bounded(drawn: DrawnFields, normalisation: str, rng: Random) -> str | None:
    run = next(runs(drawn, normalisation, rng))
    ends = np.full(len(drawn.fields), 1.0)
    largest = max(np.abs(run.jacobian(1e7 * x)).sum(1).max() for x in states(rng, -ends, ends, run.graph.nodes))
    return f"no constant is claimed, but slopes reach {largest:.3g} only, {run.told()}" if largest < 1e3 else None


# ---------------------------------------------------------------------- rectangles
def rectangle(drawn: DrawnFields, bounds: Bounds, normalisation: str, rng: Random, assumes: str) -> str | None:
    """A state on a face that moves outwards, or a run that leaves; bounds are the same in all nodes."""
    if stray := [end for pair in bounds.values() for end in pair if re.search(r"\b[kM]\b", str(end))]:
        return f"the bound {stray[0]} differs between nodes"
    for k, run in enumerate(runs(drawn, normalisation, rng, isolated=not assumes)):
        if assumes and (run.graph.weights.sum(1) == 0).any():
            continue
        radius = float(np.exp(rng.uniform(-1.5, 1.5)))
        ends = np.array([[value(end, run, radius) for end in bounds[name]] for name in drawn.fields])
        for state in states(rng, ends[:, 0], ends[:, 1], run.graph.nodes):
            if witness := _crossed(run, state, ends, float(rng.uniform(0, END))):
                return f"{witness}; R = {radius}, {run.told()}"
        if k < 2 and (witness := _left(run, state, ends)):
            return f"{witness}; R = {radius}, {run.told()}"
    return None


def _crossed(run: FieldRun, state: Array, ends: Array, t: float) -> str | None:
    """Every entry is put on its faces, one after the other."""
    places = [(i, node, side) for i in range(len(state)) for node in range(state.shape[1]) for side in (0, 1)]
    places = [(i, node, side) for i, node, side in places if np.isfinite(ends[i, side])]
    if not places:
        return None
    many = np.repeat(state[..., None], len(places), axis=-1)
    for k, (i, node, side) in enumerate(places):
        many[i, node, k] = ends[i, side]
    speeds = run.speed(many, t)
    for k, (i, node, side) in enumerate(places):
        outward, at = speeds[i, node, k] * (1 if side else -1), many[..., k]
        if outward > 1e-8 * (1 + np.abs(at).max() ** 3 + np.abs(speeds[..., k]).max()):
            name = run.drawn.fields[i]
            return f"at t = {t} {name} leaves with speed {outward:.6g} at node {node} of {at.tolist()}"
    return None


def _left(run: FieldRun, start: Array, ends: Array) -> str | None:
    _, found = _followed(run, start, 1e-8, 0.2)
    found = found[np.abs(found).max((1, 2)) < 1e6]
    lower, upper = ends[:, 0][:, None], ends[:, 1][:, None]
    size = 1e-5 * (1 + np.abs(found).max(initial=0.0))
    for state in found:
        if (state < lower - size).any() or (state > upper + size).any():
            return f"the run from {start.tolist()} reaches {state.tolist()}, outside {ends.tolist()}"
    return None


def _followed(run: FieldRun, start: Array, tolerance: float, longest: float = np.inf) -> tuple[Array, Array]:
    """Times and states (count, fields, nodes) of a run until `END`, or until it is far out or has become too costly."""
    with np.errstate(all="ignore"):
        solver = RK45(
            lambda t, y: run.speed(y.reshape(start.shape), t, start).ravel(), 0.0, start.ravel(), END, rtol=tolerance,
            atol=tolerance / 100, max_step=longest,
        )  # fmt: skip
        times, found = [0.0], [solver.y]
        while solver.status == "running" and solver.nfev < MOST_SPEEDS and np.abs(solver.y).max() < FAR:
            solver.step()
            times.append(solver.t)
            found.append(solver.y)
    return np.array(times), np.reshape(found, (-1, *start.shape))


_POINT = re.compile(r"([A-Za-z]\w*'?)(?: (there|elsewhere))? = (-?[^,]+)")


def refutation(drawn: DrawnFields, bounds: Bounds, note: str) -> str | None:
    """The point of a refutation has to be one: entries inside, one on its face, moving outwards on two nodes."""
    head = re.search(r"edge (\w+) (rises|falls) .*?: \w+' = (.*?) at (.*)", note)
    if head is None:
        return f"no point is told: {note}"
    field, way, point = head[1], 1 if head[2] == "rises" else -1, head[4]
    state, t = np.zeros((len(drawn.fields), 2)), 0.0
    letters: dict[str, Any] = {n: np.ones(2) if n in ("M", field_systems.NODE_LETTER) else 1.0 for n in drawn.letters}
    for name, (low, high) in bounds.items():
        ends = [float(str(e).replace("oo", "inf")) for e in (low, high)]
        state[drawn.fields.index(name)] = next(e for e in (*ends, 0.0) if np.isfinite(e))
    for name, place, text in _POINT.findall(point):
        number = float(np.real(formulas.evaluate(text, {})))
        if place and name in letters:
            letters[name][0 if place == "there" else 1] = number
        elif place:
            state[drawn.fields.index(name), 0 if place == "there" else 1] = number
        elif name == "t":
            t = number
        else:
            letters[name] = number
    run = FieldRun(drawn, graphs.pair(), "row", letters)
    i = drawn.fields.index(field)
    outward = run.speed(state, t)[i, 0] * way
    ends = np.array([[float(str(end).replace("oo", "inf")) for end in bounds[name]] for name in drawn.fields])
    inside = bool((state >= ends[:, :1] - 1e-9).all() and (state <= ends[:, 1:] + 1e-9).all())
    return None if outward > 0 and inside else f"the point does not refute: speed {outward}, inside {inside}, {note}"


# ---------------------------------------------------------------------- lives and sums
def existence(drawn: DrawnFields, found: Any, rng: Random) -> str | None:
    """A run from the starts that are named, on any graph, which ends before its time."""
    if found.outcome != "global":
        return None
    normalisation = "row" if "row normalisation" in found.starts else str(rng.choice(NORMALISATIONS))
    for run in runs(drawn, normalisation, rng, isolated="no node" not in found.starts):
        ends = np.full(len(drawn.fields), np.inf)
        low = np.zeros(len(ends)) if ">= 0" in found.starts else -ends
        if " in [" in found.starts:
            return None  # the rectangle is attacked by itself
        start = next(states(rng, low, ends, run.graph.nodes)) * rng.choice([0.3, 1.0, 3.0])
        if _blows_up(run, start):
            return f"the run from {start.tolist()} reaches infinity before t = {END}, {run.told()}"
    return None


def _blows_up(run: FieldRun, start: Array) -> bool:
    """Whether a run takes ever less time for the next factor of 100; exponential growth takes the same time."""
    times, found = _followed(run, start, 1e-6)
    sizes = np.abs(found).max((1, 2))
    passed = [times[np.argmax(sizes > level)] for level in (1e3, 1e5, 1e7) if sizes.max() > level]
    return len(passed) == 3 and passed[2] - passed[1] < 0.3 * (passed[1] - passed[0])


WEIGHTS: dict[str, Callable[[Array], Array]] = {"sqrt(d)": np.sqrt, "d": lambda d: d, "1": np.ones_like}


def conserved(drawn: DrawnFields, found: Any, rng: Random) -> str | None:
    """A state at which a conserved sum moves, or a sum that was not found although all are claimed to be."""
    for normalisation in NORMALISATIONS:
        letters = drawn.values(rng, 1)
        rows, held = [], 0
        for _ in range(5):
            graph = graphs.draw(rng, normalisation, one_way=False, isolated=False)
            nodewise = {n: x for n, x in drawn.values(rng, graph.nodes).items() if np.ndim(x)}
            run = FieldRun(drawn, graph, normalisation, {**letters, **nodewise})
            for state in states(rng, *(np.full(len(drawn.fields), e) for e in (-2.0, 2.0)), graph.nodes, 6):
                speeds = run.speed(state, float(rng.uniform(0, END)))
                for one in found.sums:
                    if witness := _moves(run, one, speeds, rng):
                        return f"{witness} at {state.tolist()}, {run.told()}"
                law = {"symmetric": "sqrt(d)", "row": "d", "column": "1", "none": "1"}[normalisation]
                rows.append(speeds @ WEIGHTS[law](graph.weights.sum(1)))
        law = {"symmetric": "sqrt(d)", "row": "d", "column": "1", "none": "1"}[normalisation]
        held = sum(one.weights.get(normalisation) in (law, "any") for one in found.sums)
        table = np.array(rows)
        rank = np.linalg.matrix_rank(table, tol=1e-9 * (1 + np.abs(table).max()))
        if found.is_complete and len(drawn.fields) - rank > held:
            return (
                f"{len(drawn.fields) - rank} sums with the weights {law} are constant, {held} were found; {run.told()}"
            )
    return None


def _moves(run: FieldRun, one: Any, speeds: Array, rng: Random) -> str | None:
    law = one.weights.get(run.normalisation)
    if law is None:
        return None
    degrees = run.graph.weights.sum(1)
    weights = rng.uniform(0, 1, len(degrees)) if law == "any" else WEIGHTS[law](degrees)
    factors = {name: value(c, run, 1.0) for name, c in one.coefficients}
    rate = sum(c * weights @ speeds[run.drawn.fields.index(name)] for name, c in factors.items())
    scale = sum(abs(c) * weights @ np.abs(speeds[run.drawn.fields.index(name)]) for name, c in factors.items())
    return f"{one} moves by {rate:.6g}" if abs(rate) > 1e-9 * (1 + scale) else None


# ---------------------------------------------------------------------- a run of the adversary
def attacked(drawn: DrawnFields, question: str, rng: Random) -> Attack:
    """Ask one question about a system and try to refute the answer."""
    text, normalisation = drawn.text, str(rng.choice(NORMALISATIONS))
    asked = f"{question}, {normalisation}"
    witness: str | None = None
    status = "held"
    match question:
        case "lipschitz_local" | "lipschitz_global":
            found = ask_fields(text, question, normalisation)
            status = "undecided" if found.reason.startswith("undecided") else "held"
            witness = lipschitz(drawn, found, normalisation, rng, is_local=question == "lipschitz_local")
        case "one_sided":
            found = ask_fields(text, question, normalisation)
            status = "undecided" if found.reason.startswith("undecided") else "held"
            witness = lipschitz(drawn, found, normalisation, rng, is_local=False, is_one_sided=True)
        case "rectangle":
            box = ask_fields(text, "invariant_box", normalisation)
            status = "held" if box.exists else "undecided"
            witness = rectangle(drawn, box.bounds, normalisation, rng, box.assumes) if box.exists else None
            if witness is None:
                witness = _of_densities(drawn, box.nonnegative, normalisation, rng)
        case "bounds":
            pairs = [(0, 1), (-1, 1), (0, "oo"), (0, 2), (-2, 2), (-1, 0.5)]
            bounds = {name: pairs[rng.integers(len(pairs))] for name in drawn.fields}
            asked = f"{asked}, {bounds}"
            box = ask_fields(text, "invariant_box", normalisation, bounds)
            status = "undecided" if box.is_kept is None else "held"
            if box.is_kept:
                witness = rectangle(drawn, bounds, normalisation, rng, box.assumes)
            elif box.is_kept is False:
                witness = refutation(drawn, bounds, box.reason)
        case "existence":
            lives = ask_fields(text, question)
            status = "undecided" if lives.outcome == "undecided" else "held"
            witness = existence(drawn, lives, rng)
        case "conserved":
            witness = conserved(drawn, ask_fields(text, question), rng)
        case _:
            ask_fields(text, "pages", normalisation)
    return Attack(text, asked, "refuted" if witness else status, witness or "")


def _of_densities(drawn: DrawnFields, found: Any, normalisation: str, rng: Random) -> str | None:
    cone = dict.fromkeys(drawn.fields, (0, "oo"))
    if found.outcome == "refuted":
        return refutation(drawn, cone, found.reason)
    return rectangle(drawn, cone, normalisation, rng, "") if found.outcome == "proved" and found.is_closed else None


QUESTIONS = (
    "lipschitz_local", "lipschitz_global", "one_sided", "rectangle", "bounds", "existence", "conserved", "pages"
)  # fmt: skip
#: How often each is asked.
SHARES = (0.16, 0.08, 0.08, 0.22, 0.22, 0.12, 0.1, 0.02)


def attacks(count: int, seed: int, first: int = 0) -> Iterator[Attack]:
    """The attacks of numbered systems."""
    for index in range(first, first + count):
        rng = np.random.default_rng([seed, index])
        drawn = field_systems.draw(rng)
        question = str(rng.choice(QUESTIONS, p=SHARES))
        try:
            yield attacked(drawn, question, rng)
        except Undecided as reason:
            yield Attack(drawn.text, question, "undecided", str(reason))
        except Exception as problem:
            yield Attack(drawn.text, question, "error", f"{type(problem).__name__}: {problem}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no system is begun after so many")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: Counter[tuple[str, str]] = Counter()
    start = time.perf_counter()
    for index, found in enumerate(attacks(chosen.count, chosen.seed, chosen.first), chosen.first):
        counts[found.question.partition(",")[0], found.status] += 1
        if found.status in ("refuted", "error"):
            _say(f"{index} {found.status}: {found.question}\n  {found.text}\n  {found.detail}")
        if time.perf_counter() - start > chosen.seconds:
            break
    for (question, status), number in sorted(counts.items()):
        _say(f"{question:<20} {status:<10} {number}")
    _say(f"{sum(counts.values())} systems in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
