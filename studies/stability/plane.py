"""`Axis` and `PlaneCase`: a system on a graph, and the two coefficients that its members differ in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp
import torch

import rdgraph as rd
from analysis.spectra.eigenvalues import Spectrum, distinct, spectrum
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.language.answer_symbols import lam as frequency
from rdgraph.theory.patterns.kinetics import Kinetics, system_kinetics
from rdgraph.theory.patterns.steady_states import state_at
from rdgraph.wording import listed
from studies.stability.named_graph import named_graph

# ---------------------------------------------------------------------- member growth
# The linearisation of a system at its constant steady state, in numbers, for many coefficients at once.
#
# A small deviation that is an eigenvector of L with eigenvalue lam evolves by the matrix P(lam); the real part of its
# leading eigenvalue is the growth rate of that mode.

#: Members whose matrices are made at a time, so that memory does not grow with the plane.
CHUNK = 1024
#: How the steady state is followed from the reference to every member: pieces of the way, Newton steps in each.
PIECES, NEWTON_STEPS = 24, 8
#: Rates at a steady state, as a share of the largest term, and the share of an eigenvalue that counts as imaginary.
RESIDUAL, IMAGINARY = 1e-9, 1e-9


@dataclass(frozen=True, eq=False)
class MemberKinetics:
    """Rates and linearisation of a system as functions of arrays: m members, F fields.

    >>> found = MemberKinetics.of(rd.parse("u' = a - u - Du*L@u"))
    >>> values = {"a": np.array([1.0, 2.0]), "Du": np.array([1.0, 0.5])}
    >>> point = found.follow({"a": 1.0, "Du": 1.0}, values)
    >>> point.tolist()
    [[1.0], [2.0]]
    >>> found.leading(point, values, np.array([0.0, 2.0])).real.tolist()
    [[-1.0, -3.0], [-1.0, -2.0]]
    """

    kinetics: Kinetics

    @classmethod
    def of(cls, system: rd.System) -> MemberKinetics:
        """From a system; raises NotApplicable where no state is the same in all nodes."""
        return cls(system_kinetics(system))

    @property
    def names(self) -> tuple[str, ...]:
        """The coefficients."""
        return tuple(self.kinetics.coefficients)

    @cached_property
    def _starts(self) -> dict[Any, np.ndarray]:
        return {}

    @cached_property
    def _functions(self) -> tuple[Any, Any, Any]:
        k = self.kinetics
        plain = [sp.Dummy() for _ in k.letters]  # velocities have names that are none in Python
        places = dict(zip(k.letters, plain, strict=True))
        arguments = [*plain, *k.coefficients.values()]
        rates = [rate.xreplace(places) for rate in k.rates]
        slopes = [[sp.diff(rate, x) for x in plain] for rate in rates]
        matrix = k.matrix.xreplace(places).tolist()
        return (
            sp.lambdify(arguments, rates, "numpy"),
            sp.lambdify(arguments, slopes, "numpy"),
            sp.lambdify([*arguments, frequency], matrix, "numpy"),
        )

    def _arguments(self, point: np.ndarray, values: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        missing = set(self.names) - set(values)
        if missing:
            raise InvalidArgument(f"expected numbers for {listed(self.names)}, got none for {listed(sorted(missing))}")
        return [*point.T, *(np.asarray(values[name], dtype=float) for name in self.names)]

    def rates(self, point: np.ndarray, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """f(u) of constant states (m, F), the same shape."""
        result = self._functions[0](*self._arguments(point, values))
        return np.stack([np.broadcast_to(np.asarray(x, dtype=float), len(point)) for x in result], axis=-1)

    def slopes(self, point: np.ndarray, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """The Jacobian of the rates, (m, F, F)."""
        return _stacked(self._functions[1](*self._arguments(point, values)), (len(point),))

    def matrices(self, point: np.ndarray, values: Mapping[str, np.ndarray], lam: np.ndarray) -> np.ndarray:
        """P(lam) at constant states (m, F) and eigenvalues (k,): (m, k, F, F)."""
        arguments = [x[:, None] for x in self._arguments(point, values)]
        return _stacked(self._functions[2](*arguments, lam[None, :]), (len(point), len(lam)))

    def leading(self, point: np.ndarray, values: Mapping[str, np.ndarray], lam: np.ndarray) -> np.ndarray:
        """The eigenvalue of P(lam) with the largest real part, Im >= 0, complex (m, k); NaN without a state."""
        result = np.full((len(point), len(lam)), complex(np.nan, np.nan))
        known = np.flatnonzero(np.isfinite(point).all(1))
        for chosen in np.array_split(known, max(1, -(-len(known) // CHUNK))):
            group = {name: np.broadcast_to(values[name], len(point))[chosen] for name in self.names}
            every = np.linalg.eigvals(self.matrices(point[chosen], group, lam))
            first = np.argmax(every.real, axis=-1)[..., None]
            best = np.take_along_axis(every, first, -1)[..., 0]
            result[chosen] = best.real + 1j * np.abs(best.imag)
        return result

    def stiffness(self, point: np.ndarray, values: Mapping[str, np.ndarray], top: float) -> float:
        """The largest modulus of an eigenvalue of P(0) and P(top) over the members: what a step has to resolve."""
        stored = np.isfinite(point).all(1)
        group = {name: np.broadcast_to(values[name], len(point))[stored] for name in self.names}
        every = np.linalg.eigvals(self.matrices(point[stored], group, np.array([0.0, top])))
        return float(np.abs(every).max())

    def follow(self, reference: Mapping[str, float], values: Mapping[str, np.ndarray], state: int = 0) -> np.ndarray:
        """The steady state of every member (m, F), followed from that of the reference by Newton's method.

        It is the number `state` of `rd.steady_states` at the reference, moved along a straight way in the coefficients;
        NaN where it is lost on the way.
        """
        first = self._start({name: reference[name] for name in self.names}, state)
        count = max(np.size(values[name]) for name in self.names)
        ends = {name: np.broadcast_to(np.asarray(values[name], dtype=float), count) for name in self.names}
        point = np.tile(first, (count, 1))
        with np.errstate(all="ignore"):
            for share in np.linspace(0, 1, PIECES + 1)[1:]:
                here = {n: reference[n] + share * (ends[n] - reference[n]) for n in self.names}
                for _ in range(NEWTON_STEPS):
                    point = point - self._newton(point, here)
            size = np.abs(self.slopes(point, ends)).max((-2, -1)) * (1 + np.abs(point).max(-1))
            lost = ~(np.abs(self.rates(point, ends)).max(-1) <= RESIDUAL * size)
        point[lost] = np.nan
        return point

    def _start(self, reference: Mapping[str, float], state: int) -> np.ndarray:
        """The steady state with a number at the reference, (F,); solved exactly, and once."""
        key = (*sorted(reference.items()), state)
        if key not in self._starts:
            start = state_at(self.kinetics.at(reference), state)
            if start.free:
                raise NotApplicable(
                    f"expected an isolated steady state, got {start}, where {start.free[0]} may be anything"
                )
            self._starts[key] = np.array([float(start.point[x]) for x in self.kinetics.letters])
        return self._starts[key]

    def _newton(self, point: np.ndarray, values: Mapping[str, np.ndarray]) -> np.ndarray:
        slopes = self.slopes(point, values)
        good = np.isfinite(slopes).all((-2, -1))
        slopes[~good] = np.nan
        good[good] = np.abs(np.linalg.det(slopes[good])) > 0
        step = np.full_like(point, np.nan)
        step[good] = np.linalg.solve(slopes[good], self.rates(point, values)[good][..., None])[..., 0]
        return step


def _stacked(entries: Any, shape: tuple[int, ...]) -> np.ndarray:
    """A matrix of arrays that broadcast to a shape, as one array with the matrix last."""
    rows = [[np.broadcast_to(np.asarray(x, dtype=float), shape) for x in row] for row in entries]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def is_real(leading: np.ndarray) -> np.ndarray:
    """Whether leading eigenvalues grow or decay without oscillation.

    >>> is_real(np.array([1.0 + 0j, 1.0 + 1j])).tolist()
    [True, False]
    """
    return np.asarray(np.abs(leading.imag) <= IMAGINARY * np.maximum(np.abs(leading), 1e-30))


# ---------------------------------------------------------------------- plane
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
            text = listed(sorted(given)) or "none"
            raise InvalidArgument(f"expected numbers for the coefficients {listed(sorted(known))}, got {text}")
        for axis in (self.across, self.up):
            if axis.name not in known:
                raise InvalidArgument(f"expected an axis among {', '.join(sorted(known))}, got {axis.name!r}")
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
        return distinct(self.spectrum.values[~self.spectrum.kernel], SAME * self.spectrum.bound)

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
