"""Regimes: what the linearisation predicts of a member, and what its run is seen to do at the end."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import rdgraph as rd
from studies.stability.deviations import LIMIT, sizes_of, solve_members, start_states, step_of
from studies.stability.plane import PlaneCase
from studies.stability.plane_rows import BLOW_UP, NO_STATE, PlanePrediction

#: Differences between nodes, over time, and from the steady state, as a share of the state, that count.
SEEN = 0.01
#: At how many times a run is looked at, and the share of earlier motion that has to be left where it lasts.
LOOKS, LASTING = 161, 0.8
#: A graph on which nodes that agree keep agreeing to the last bit: the system without a graph.
MIXED = "ring:3"
#: A cycle moves faster than small deviations do: the step of RK4 is divided by the first number, and where a member
#: blew up by the second, to see whether the step was the reason.
COARSE, FINE = 1.5, 6.0

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
class PlaneRun:
    """States (K, m, n, F) at times (K,) of the members that have a steady state, and who blew up, (m,)."""

    case: PlaneCase
    members: np.ndarray
    times: np.ndarray
    states: np.ndarray
    blown_up: np.ndarray

    @classmethod
    def solved(cls, case: PlaneCase, members: np.ndarray, deviation: np.ndarray, time: float, share: float) -> PlaneRun:
        """Run from a deviation of the steady state; members that blow up once more, with a finer step."""
        times = np.linspace(0, time, LOOKS)
        states, blown_up = cls._states(case, members, deviation, times, share, COARSE)
        if blown_up.any():
            finer = cls._states(case, members[blown_up], deviation, times, share, FINE)
            states[:, blown_up] = finer[0]
            blown_up[blown_up] = finer[1]
        return cls(case, members, times, states, blown_up)

    @staticmethod
    def _states(
        case: PlaneCase, members: np.ndarray, deviation: np.ndarray, times: np.ndarray, share: float, finer: float
    ) -> tuple[np.ndarray, np.ndarray]:
        point = case.states[members]
        values = {name: value[members] for name, value in case.values.items()}
        start = start_states(case, point, deviation, share)
        step = step_of(case, point, values) / finer
        solution = solve_members(case, start, values, times, step, limit=LIMIT * float(sizes_of(point).max()))
        return solution.states.cpu().numpy(), solution.codes.cpu().numpy() != rd.Status.OK.code

    def seen(self) -> dict[str, np.ndarray]:
        """What shows at the end, (m,) each: differences between nodes and from the steady state, and lasting motion.

        Motion that has fallen in the last quarter of the run, against the quarter before, is that of a state that
        settles, and is not counted.
        """
        quarter = len(self.times) // 4
        before, late = self.states[-2 * quarter : -quarter], self.states[-quarter:]
        point = self.case.states[self.members]
        size = np.maximum(np.sqrt(np.square(late).mean((0, 2, 3))), sizes_of(point) / 10)

        def part(away: np.ndarray) -> np.ndarray:
            return np.asarray(np.sqrt(np.square(away).mean((0, 2, 3))) / size)

        mean = late.mean(2, keepdims=True)
        motion, earlier = part(late - late.mean(0)), part(before - before.mean(0))
        lasting = np.where(motion > LASTING * earlier, motion, 0.0)
        return {"nodes": part(late - mean), "motion": lasting, "state": part(mean - point[:, None, :])}


def measured_regimes(run: PlaneRun, deviation: np.ndarray, share: float) -> list[str]:
    """What every member of the plane does at the end, with and without the graph; one word each.

    Oscillation death: without the graph (all nodes agree) the member oscillates, with it it rests in a pattern.
    """
    seen = run.seen()
    patterned, moving = seen["nodes"] > SEEN, seen["motion"] > SEEN
    resting = np.flatnonzero(patterned & ~moving & ~run.blown_up)
    oscillates_alone = np.zeros(len(run.members), dtype=bool)
    if len(resting):
        mixed = replace(run.case, graph_text=MIXED)
        same = np.tile(deviation.mean(0) + 1.0, (3, 1))
        alone = PlaneRun.solved(mixed, run.members[resting], same, float(run.times[-1]), share)
        oscillates_alone[resting] = (alone.seen()["motion"] > SEEN) & ~alone.blown_up
    words = [NO_STATE] * len(run.case.states)
    for k, member in enumerate(run.members):
        if run.blown_up[k]:
            words[member] = BLOW_UP
        elif patterned[k]:
            at_rest = "oscillation death" if oscillates_alone[k] else "pattern"
            words[member] = "oscillating pattern" if moving[k] else at_rest
        elif moving[k]:
            words[member] = "oscillation"
        else:
            words[member] = "moved away" if seen["state"][k] > SEEN else "uniform"
    return words
