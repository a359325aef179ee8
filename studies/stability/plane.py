"""`Axis` and `PlaneCase`: a system on a graph, and the two coefficients that its members differ in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

import rdgraph as rd
from analysis.spectra.eigenvalues import Spectrum, spectrum
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.operator import Operator
from studies.stability.member_growth import MemberKinetics
from studies.stability.named_graph import named_graph

#: Eigenvalues of L closer than this share of the largest one are one eigenvalue.
SAME = 1e-9
#: L@1 may differ from zero by this share of the largest eigenvalue.
CONSTANT = 1e-9


@dataclass(frozen=True)
class Axis:
    """A coefficient over a range, evenly spaced.

    >>> Axis.read("sigma 1 3", 3).values.tolist()
    [1.0, 2.0, 3.0]
    """

    name: str
    low: float
    high: float
    count: int

    def __post_init__(self) -> None:
        if not (self.low < self.high and self.count >= 2):
            raise InvalidArgument(
                f"expected an axis from a smaller to a larger number with two values or more, got {self.name} from "
                f"{self.low:g} to {self.high:g} with {self.count}"
            )

    @classmethod
    def read(cls, text: str, count: int) -> Axis:
        """From NAME LOW HIGH."""
        words = text.split()
        try:
            name, low, high = words[0], float(words[1]), float(words[2])
        except (IndexError, ValueError):
            raise InvalidArgument(f"expected an axis NAME LOW HIGH, got {text!r}; write 'sigma 1 30'") from None
        return cls(name, low, high, count)

    @property
    def values(self) -> np.ndarray:
        return np.linspace(self.low, self.high, self.count)


def read_values(text: str) -> dict[str, float]:
    """Numbers by name, from NAME=VALUE separated by commas.

    >>> read_values("a=0.1, Du=1")
    {'a': 0.1, 'Du': 1.0}
    """
    result: dict[str, float] = {}
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        name, sign, value = piece.partition("=")
        try:
            result[name.strip()] = float(value)
        except ValueError:
            sign = ""
        if not sign:
            raise InvalidArgument(f"expected NAME=VALUE separated by commas, got {text!r}; write 'a=0.1, Du=1'")
    return result


@dataclass(frozen=True, eq=False)
class PlaneCase:
    """A system on one operator of a graph, at reference values, over two axes; members go row by row, up and across.

    `label` names it in figures, `key` in files.
    """

    label: str
    text: str
    graph_text: str
    normalisation: str
    reference: Mapping[str, float]
    across: Axis
    up: Axis
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        known = set(self.kinetics.names)
        given = set(self.reference)
        if given != known:
            raise InvalidArgument(f"expected numbers for the coefficients {sorted(known)}, got {sorted(given)}")
        for axis in (self.across, self.up):
            if axis.name not in known:
                raise InvalidArgument(f"expected an axis among {sorted(known)}, got {axis.name!r}")
        if "A" in self.system.letters and self.normalisation == "none":
            raise NotApplicable("expected a system in L for L = D - A, got one in A; write L@u, or choose the row form")
        lost = self.operator.laplacian(torch.ones(self.graph.num_nodes, 1, dtype=torch.float64, device=self.device))
        if float(lost.abs().max()) > CONSTANT * self.spectrum.bound:
            raise NotApplicable(
                f"expected a graph that keeps constant states, got {self.graph_text} with the normalisation "
                f"{self.normalisation}, where L@1 is not 0; choose none or row"
            )

    @classmethod
    def single(cls, text: str, graph: str, reference: Mapping[str, float], seed: int) -> PlaneCase:
        """One system on L = D - A of a graph, with the first coefficient on both axes."""
        name = next(iter(reference))
        axis = Axis(name, reference[name], 2 * abs(reference[name]) + 1, 2)
        return cls("single", text, graph, "none", reference, axis, axis, seed)

    @property
    def key(self) -> str:
        """A name for files."""
        return "".join(c if c.isascii() and c.isalnum() else "-" for c in self.label.lower()).strip("-")

    @cached_property
    def system(self) -> rd.System:
        return rd.parse(self.text)

    @cached_property
    def kinetics(self) -> MemberKinetics:
        return MemberKinetics.of(self.system)

    @cached_property
    def graph(self) -> rd.Graph:
        return named_graph(self.graph_text, self.seed)

    @cached_property
    def operator(self) -> Operator:
        return self.graph.operator(self.normalisation, dtype=torch.float64, device=self.device)

    @cached_property
    def spectrum(self) -> Spectrum:
        return spectrum(self.graph.operator(self.normalisation, dtype=torch.float64))

    @cached_property
    def frequencies(self) -> np.ndarray:
        """The different eigenvalues of L above zero, ascending."""
        return distinct(self.spectrum.values[~self.spectrum.kernel], self.spectrum.bound)

    @cached_property
    def values(self) -> dict[str, np.ndarray]:
        """The coefficients of all members, (m,) each."""
        count = self.across.count * self.up.count
        result = {name: np.full(count, float(value)) for name, value in self.reference.items()}
        result[self.across.name] = np.tile(self.across.values, self.up.count)
        result[self.up.name] = np.repeat(self.up.values, self.across.count)
        return result

    @property
    def shape(self) -> tuple[int, int]:
        """Rows (up) and columns (across) of the plane."""
        return self.up.count, self.across.count

    @cached_property
    def states(self) -> np.ndarray:
        """The constant steady state of every member, (m, fields)."""
        return self.kinetics.follow(self.reference, self.values)


def distinct(values: np.ndarray, scale: float) -> np.ndarray:
    """Ascending numbers without those that follow another within rounding.

    >>> distinct(np.array([1.0, 1.0 + 1e-13, 2.0]), 2.0).tolist()
    [1.0, 2.0]
    """
    ordered = np.sort(values)
    return ordered[np.concatenate([[True], np.diff(ordered) > SAME * scale])] if len(ordered) else ordered


def read_cases(settings: Mapping[str, Any], seed: int, device: str, also: Sequence[str] = ()) -> list[PlaneCase]:
    """The cases of a study's settings: lists of the same length, one entry a case; `also` names further such lists.

    Raises InvalidArgument where the lists differ in length.
    """
    names = ("labels", "systems", "graphs", "normalisations", "values", "across", "up")
    lists: dict[str, Sequence[str]] = {name: settings[name] for name in names}
    lengths = {name: len(settings[name]) for name in (*names, *also)}
    if len(set(lengths.values())) != 1:
        raise InvalidArgument(f"expected lists of one length, one entry a case, got {lengths}")
    count = settings["points"]
    return [
        PlaneCase(
            label, text, graph, normalisation, read_values(values), Axis.read(across, count), Axis.read(up, count),
            seed, device,
        )
        for label, text, graph, normalisation, values, across, up in zip(*lists.values(), strict=True)
    ]  # fmt: skip
