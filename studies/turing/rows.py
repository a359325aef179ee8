"""What the study of Turing patterns computes, as rows: growth of single modes, patterns, dispersion, thresholds."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np
import torch
from scipy.optimize import brentq

import rdgraph as rd
from rdgraph.patterns.threshold_values import Threshold
from studies.runs.tables import MutableRow, Row
from studies.stability.deviations import LINEAR, START, fitted, noise, solve_members, start_states, step_of
from studies.stability.plane import PlaneCase, read_values
from studies.stability.plane_rows import CLASSES, PlanePrediction, class_codes

#: Times at which a mode is projected, and modes of a member that are followed.
MODE_SAVES, MODES = 41, 3
#: From this part of the time on a pattern is asked whether it still moves.
LATE = 0.9
#: Modes that grow less than this share of the fastest one are left to the plane.
SHARE = 0.5


def chosen_members(prediction: PlanePrediction, count: int) -> np.ndarray:
    """Turing-unstable members, evenly spread over the order of their growth rates, the slower half left out."""
    turing = class_codes(prediction.at_zero, prediction.beyond_zero) == CLASSES.index("Turing")
    members = np.flatnonzero(turing)
    ordered = members[np.argsort(prediction.beyond_zero[members])]
    places = np.linspace(0.6, 1, count) * (len(ordered) - 1)
    return ordered[np.unique(places.round().astype(int))] if len(ordered) else ordered


def growth_rows(prediction: PlanePrediction, members: np.ndarray, generator: np.random.Generator) -> list[MutableRow]:
    """Growth rates of single modes: the slope of the log of the projected state, beside the predicted rate.

    Every member is watched for the time in which its fastest mode is predicted to grow from the start to the end of
    the linear regime; the fit takes the second half of it.
    """
    case = prediction.case
    if not len(members):
        return []
    point = case.states[members]
    values = {name: value[members] for name, value in case.values.items()}
    ends = np.log(LINEAR / START / 10) / prediction.beyond_zero[members]
    times = np.linspace(0, 1, MODE_SAVES)[:, None] * ends
    start = start_states(case, point, noise(case, generator), START)
    solution = solve_members(case, start, values, times, step_of(case, point, values))
    away = solution.states - torch.as_tensor(point, device=case.device)[:, None, :]
    sizes = case.spectrum.transform(away).square().sum(-1).cpu().numpy()
    rows: list[MutableRow] = []
    for i, member in enumerate(members):
        leading = prediction.leading[member, 1:]
        for k in np.argsort(-leading.real)[:MODES]:
            if leading[k].real < SHARE * leading.real.max():
                continue
            lam = case.frequencies[k]
            own = np.abs(case.spectrum.values - lam) <= 1e-8 * case.spectrum.bound
            size = np.sqrt(sizes[:, i, own].sum(-1))
            slope, _ = fitted(times[:, i], size[:, None], np.ones((MODE_SAVES, 1), dtype=bool))
            rows.append({
                case.across.name: float(values[case.across.name][i]), case.up.name: float(values[case.up.name][i]),
                "lam": float(lam), "predicted": float(leading[k].real), "measured": float(slope[0]),
                "difference": float(abs(slope[0] / leading[k].real - 1)),
            })  # fmt: skip
    return rows


def reference_member(case: PlaneCase) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The steady state (1, F) and the coefficients (1,) of the reference."""
    values = {name: np.array([value]) for name, value in case.reference.items()}
    return case.kinetics.follow(case.reference, values), values


def pattern_states(
    case: PlaneCase, time: float, frames: int, share: float, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The reference member from a deviation that is a share of the steady state: times (K,) and states (K, n, F)."""
    point, values = reference_member(case)
    start = start_states(case, point, noise(case, generator), share)
    times = np.unique(np.append(np.linspace(0, time, frames), LATE * time).round(9))
    solution = solve_members(case, start, values, times, step_of(case, point, values))
    return times, solution.states[:, 0].cpu().numpy()


def pattern_rows(case: PlaneCase, times: np.ndarray, states: np.ndarray) -> list[MutableRow]:
    """The state of every node at the end and the fastest mode of its linearisation, with the node's degree.

    `moved` is how far a field still moved in the last tenth of the time.
    """
    point, values = reference_member(case)
    leading = case.kinetics.leading(point, values, case.frequencies)[0]
    fastest = case.frequencies[int(np.argmax(leading.real))]
    mode = case.spectrum.vectors[:, int(np.argmin(np.abs(case.spectrum.values - fastest)))]
    late = int(np.argmin(np.abs(times - LATE * times[-1])))
    moved = np.abs(states[-1] - states[late])
    return [
        {
            "node": i, "degree": float(case.graph.degree[i]), "mode": float(mode[i]),
            **{name: float(states[-1, i, f]) for f, name in enumerate(case.system.fields)},
            **{f"{name}_moved": float(moved[i, f]) for f, name in enumerate(case.system.fields)},
        }
        for i in range(case.graph.num_nodes)
    ]  # fmt: skip


def threshold_on_graph(case: PlaneCase, name: str, low: float, high: float) -> float:
    """The value of a coefficient between two at which the fastest mode with lam > 0 begins to grow; NaN without one."""

    def growth(size: float) -> float:
        own = {key: np.array([value]) for key, value in {**case.reference, name: size}.items()}
        point = case.kinetics.follow(case.reference, own)
        return float(case.kinetics.leading(point, own, case.frequencies).real.max())

    return float(brentq(growth, low, high, xtol=1e-10)) if growth(low) < 0 < growth(high) else float("nan")


def dispersion_rows(case: PlaneCase, points: int) -> list[MutableRow]:
    """Growth rates over lam and at the graph's eigenvalues: below the threshold of the first axis, at it, and drawn."""
    drawn = case.reference[case.across.name]
    border = threshold_on_graph(case, case.across.name, case.across.low, drawn)
    places = (0.9 * border, border, drawn) if np.isfinite(border) else (0.8 * drawn, drawn, 1.2 * drawn)
    rows: list[MutableRow] = []
    top = float(case.frequencies[-1])
    curve = np.linspace(0, 1.05 * top, points)
    marks = np.concatenate([[0.0], case.frequencies])
    for value in places:
        own = {**case.reference, case.across.name: float(value)}
        values = {name: np.array([value]) for name, value in own.items()}
        point = case.kinetics.follow(case.reference, values)
        for is_eigenvalue, lams in ((0, curve), (1, marks)):
            rates = case.kinetics.leading(point, values, lams)[0].real
            rows += [
                {case.across.name: own[case.across.name], "is_eigenvalue": is_eigenvalue, "lam": float(lam),
                 "rate": float(rate)}
                for lam, rate in zip(lams, rates, strict=True)
            ]  # fmt: skip
    return rows


# ---------------------------------------------------------------------- published thresholds
def published() -> list[dict[str, Any]]:
    """The printed thresholds, with their sources."""
    text = resources.files("studies").joinpath("data/turing.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["published"])


def threshold_rows(entry: dict[str, Any], network: str, seeds: Sequence[int]) -> list[Row]:
    """The threshold over all lam > 0, and over the eigenvalues of networks like the published one."""
    values, name = read_values(entry["values"]), entry["threshold"]
    closed = exact_threshold(entry)
    exact = float(closed)
    common = {"source": entry["name"], "coefficient": name, "printed": float(entry["printed"])}
    rows: list[Row] = [
        {
            **common,
            "network": "every λ > 0",
            "seed": -1,
            "threshold": exact,
            "lam": closed.lam,
            "formula": str(closed.value),
        }
    ]
    for seed in seeds:
        case = PlaneCase.single(entry["system"], network, {**values, name: exact}, seed)
        found = threshold_on_graph(case, name, 0.5 * exact, 4 * exact)
        own = {key: np.array([value]) for key, value in {**case.reference, name: found}.items()}
        rates = case.kinetics.leading(case.kinetics.follow(case.reference, own), own, case.frequencies)[0].real
        mode = float(case.frequencies[int(np.argmax(rates))])
        rows.append({**common, "network": network, "seed": seed, "threshold": found, "lam": mode, "formula": ""})
    return rows


def exact_threshold(entry: dict[str, Any]) -> Threshold:
    """The least value at which patterns begin, over all lam > 0 that a graph could have."""
    system, values = rd.parse(entry["system"]), read_values(entry["values"])
    at_printed = rd.steady_states(system, {**values, entry["threshold"]: entry["printed"]})
    wanted = read_values(entry["state"])
    number = next(k for k, state in enumerate(at_printed) if state.numbers() == wanted)
    found = rd.turing_threshold(system, entry["threshold"], values, state=number, to=float("inf"))
    return next(threshold for threshold in found if threshold.above in ("turing", "turing-wave"))
