"""Regimes: what the linearisation predicts of a member, and what its run is seen to do at the end."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

import rdgraph as rd
from studies.stability.deviations import LIMIT, noise, sizes_of, solve_members, start_states, step_of
from studies.stability.plane import PlaneCase
from studies.stability.plane_rows import BLOW_UP, NO_STATE, PlanePrediction

#: Differences between nodes, over time, and from the steady state, as a share of the state, that count.
SEEN = 0.01
#: The part of the time at the end in which a run is looked at, and at how many times.
WINDOW, LOOKS = 0.25, 41
#: A graph on which nodes that agree keep agreeing to the last bit: the system without a graph.
MIXED = "ring:3"
#: RK4's step is divided by this where a member blew up, to see whether the step was the reason.
FINER = 8.0

PREDICTED = ("stable", "Turing", "wave", "Hopf", "Turing-Hopf", "unstable at 0", NO_STATE)
MEASURED = (
    "uniform", "pattern", "oscillation", "oscillating pattern", "oscillation death", "moved away", BLOW_UP, NO_STATE,
)  # fmt: skip
#: What is measured where the constant state is left, or kept, as predicted.
EXPECTED = {
    "stable": ("uniform",),
    "Turing": ("pattern", "oscillating pattern"),
    "wave": ("pattern", "oscillating pattern"),
    "Hopf": ("oscillation", "oscillating pattern", "oscillation death"),
    "Turing-Hopf": ("oscillation", "oscillating pattern", "oscillation death"),
    "unstable at 0": ("pattern", "oscillation", "oscillating pattern", "oscillation death", "moved away", BLOW_UP),
}


def predicted_regimes(prediction: PlanePrediction) -> list[str]:
    """By the leading eigenvalues at lam = 0 and at the graph's other eigenvalues; one word a member."""
    zero, beyond = prediction.at_zero, prediction.beyond_zero
    real, oscillates = prediction.has_real_pattern, prediction.oscillates_at_zero
    words = []
    for k in range(len(zero)):
        if not (np.isfinite(zero[k]) and np.isfinite(beyond[k])):
            words.append(NO_STATE)
        elif zero[k] > 0:
            words.append(("Turing-Hopf" if real[k] else "Hopf") if oscillates[k] else "unstable at 0")
        else:
            words.append("stable" if beyond[k] <= 0 else "Turing" if real[k] else "wave")
    return words


@dataclass(frozen=True, eq=False)
class EndOfRun:
    """What is seen of every member in the last part of its run, as shares of the state, (m,) each."""

    across_nodes: np.ndarray
    over_time: np.ndarray
    from_state: np.ndarray
    blown_up: np.ndarray

    @classmethod
    def seen(cls, case: PlaneCase, members: np.ndarray, deviation: np.ndarray, time: float, share: float) -> EndOfRun:
        """Members that have a steady state, run from a deviation of it; those that blow up, again with a finer step."""
        first = cls._run(case, members, deviation, time, share, 1.0)
        lost = np.flatnonzero(first.blown_up)
        if not len(lost):
            return first
        again = cls._run(case, members[lost], deviation, time, share, FINER)
        parts = [getattr(first, name).copy() for name in first.__dataclass_fields__]
        for part, name in zip(parts, first.__dataclass_fields__, strict=True):
            part[lost] = getattr(again, name)
        return cls(*parts)

    @classmethod
    def _run(
        cls, case: PlaneCase, members: np.ndarray, deviation: np.ndarray, time: float, share: float, finer: float
    ) -> EndOfRun:
        point = case.states[members]
        values = {name: value[members] for name, value in case.values.items()}
        solution = solve_members(
            case,
            start_states(case, point, deviation, share),
            values,
            np.array([0.0, time]),
            step_of(case, point, values) / (3 * finer),  # a cycle moves faster than small deviations do
            save_at=torch.linspace((1 - WINDOW) * time, time, LOOKS, dtype=torch.float64, device=case.device),
            limit=LIMIT * float(sizes_of(point).max()),
        )
        states = solution.states
        size = torch.maximum(states.square().mean((0, 2, 3)).sqrt(), torch.as_tensor(sizes_of(point)).to(states) / 10)
        mean = states.mean(2, keepdim=True)
        rest = torch.as_tensor(point).to(states)[:, None, :]

        def part(away: torch.Tensor) -> np.ndarray:
            return (away.square().mean((0, 2, 3)).sqrt() / size).cpu().numpy()

        return cls(
            part(states - mean),
            part(states - states.mean(0)),
            part(mean - rest),
            solution.codes.cpu().numpy() != rd.Status.OK.code,
        )


def measured_regimes(case: PlaneCase, generator: np.random.Generator, time: float, share: float) -> list[str]:
    """What every member does at the end, with and without the graph; one word each.

    Oscillation death: without the graph (all nodes agree) the member oscillates, with it it rests in a pattern.
    """
    members = np.flatnonzero(np.isfinite(case.states).all(1))
    deviation = noise(case, generator)
    coupled = EndOfRun.seen(case, members, deviation, time, share)
    mixed = replace(case, graph_text=MIXED)
    alone = EndOfRun.seen(mixed, members, np.tile(deviation.mean(0) + 1.0, (3, 1)), time, share)
    words = [NO_STATE] * len(case.states)
    for k, member in enumerate(members):
        patterned, moving = coupled.across_nodes[k] > SEEN, coupled.over_time[k] > SEEN
        if coupled.blown_up[k]:
            words[member] = BLOW_UP
        elif patterned and moving:
            words[member] = "oscillating pattern"
        elif patterned:
            dead = alone.over_time[k] > SEEN and not alone.blown_up[k]
            words[member] = "oscillation death" if dead else "pattern"
        elif moving:
            words[member] = "oscillation"
        else:
            words[member] = "moved away" if coupled.from_state[k] > SEEN else "uniform"
    return words
