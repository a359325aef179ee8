"""A learned function as several trials have it, and the states at which it is taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gread.settings.gread_settings import GreadSettings
from gread.training.trainer import Trained
from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.vocabulary.learned_functions import LearnedValues

#: Points of a curve; of the states, the share that counts; times of a flow; trials whose states count.
POINTS, SHARE, TIMES, MOST_TRIALS = 121, 0.99, 5, 5
#: Of the mean density, what every point weighs beside its own: a formula should not run away where states are rare.
FLOOR = 0.1


@dataclass(frozen=True, eq=False)
class LearnedCurves:
    """The function of every trial on `x` (points,) as `y` (trials, points), with weights by the density of states."""

    name: str
    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(
        cls, name: str, functions: Sequence[LearnedValues], places: np.ndarray, density: np.ndarray
    ) -> LearnedCurves:
        """From the functions of all trials, and the density of the states at rising places; without any, the range.

        Where a function is one for each channel, no one formula stands for it.
        """
        if not functions:
            raise InvalidArgument(f"expected trials that did not diverge, got none with {name}; train again")
        declared = functions[0].declaration
        if declared.per_channel:
            raise NotApplicable(
                f"expected one function for all channels, got {name} with one for each; train it without per_channel"
            )
        low, high = (float(end) for end in declared.range)
        if len(places) < 2:
            x, weights = np.linspace(low, high, POINTS), np.ones(POINTS)
        else:
            mass = np.cumsum(density) / np.sum(density)
            rest = (1 - SHARE) / 2
            first, last = (int(np.searchsorted(mass, side).clip(0, len(places) - 1)) for side in (rest, 1 - rest))
            x = np.linspace(float(places[first]), float(places[last]), POINTS)
            weights = np.interp(x, places, density)
            weights = weights + FLOOR * weights.mean()
        return cls(name, x, np.stack([own(x) for own in functions]), weights)


def chosen_name(names: Sequence[str], asked: str | None) -> str:
    """The learned function that is meant: the one that was named, or the only one.

    >>> chosen_name(["phi"], None)
    'phi'
    """
    if asked is not None:
        if asked not in names:
            raise UnknownName("learned function", asked, names)
        return asked
    if len(names) != 1:
        told = ", ".join(names) or "none"
        raise InvalidArgument(
            f"expected one learned function, got {told}; name it, or train with phi(H) in the equation"
        )
    return names[0]


def curves_of(done: Trained, name: str | None = None) -> LearnedCurves:
    """The curves of a training in this process."""
    sound = [k for k, status in enumerate(done.status) if status == "ok"]
    if not sound or not isinstance(done.trials[sound[0]].config.model, GreadSettings):
        raise InvalidArgument("expected trained networks around an equation with a learned function, got none")
    each = [done.network(k).functions() for k in sound]
    own = chosen_name(list(each[0]), name)
    found = []
    for k in sound[:MOST_TRIALS]:
        network, data = done.network(k), done.data_of(k)
        times = np.linspace(0.0, network.gread.time, TIMES).tolist()
        found.append(network.states(data.x, data.graph, times).double().cpu().numpy().ravel())
    entries = np.concatenate(found)
    entries = entries[np.isfinite(entries)]
    density, edges = np.histogram(entries, bins=POINTS, range=tuple(np.quantile(entries, [0.001, 0.999])))
    return LearnedCurves.of(own, [functions[own] for functions in each], (edges[1:] + edges[:-1]) / 2, density)
