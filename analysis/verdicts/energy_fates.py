"""Asymptotics of the energy of a linear system as t -> infinity: predicted by its modes, measured on a trajectory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
import torch
from torch import Tensor

from analysis.measures.energies import dirichlet_energy, laplacian_energy, normalised_energy
from analysis.spectra.eigenvalues import Spectrum, spectrum
from analysis.verdicts.statements import STAYS, VANISHES
from rdgraph.answers import Status
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.language.answer_symbols import public
from rdgraph.run.lowering.vector_field import VectorField
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.vocabulary.methods import is_exact_flow, tableau, z

# ---------------------------------------------------------------------- asymptotics
# What the modes of a linear system do as t -> infinity: growth rate, power of t, and the factor in front.
#
# On an eigenvector of L the system is h' = p h + q h0, so h(t)/h0 = e^{tp} + q (e^{tp} - 1)/p. A Runge-Kutta method
# with step tau has R(tau p)^(t/tau) in the place of e^{tp}, source included.

#: Rates below this part of the largest one count as zero.
ZERO_RATE = 1e-9

Symbols = Callable[[np.ndarray, Mapping[str, Any]], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class ModeGrowth:
    """h(t)/h0 ~ factor * t^power * e^{rate t}, each an array over modes (and members or channels)."""

    rate: np.ndarray
    power: np.ndarray
    factor: np.ndarray

    def compare(self, other: ModeGrowth) -> np.ndarray:
        """Sign of which one wins in the end: by rate, then by power."""
        gap = self.rate - other.rate
        near = np.isclose(self.rate, other.rate, rtol=ZERO_RATE, atol=ZERO_RATE)
        return np.where(near, np.sign(self.power - other.power), np.sign(gap))

    def largest(self, chosen: np.ndarray) -> ModeGrowth:
        """The strongest growth among the chosen modes, over axis 0; rate -inf where none is chosen."""
        rate = np.where(chosen, self.rate, -np.inf)
        top = rate.max(axis=0)
        near = chosen & (self.rate >= top - ZERO_RATE * (1 + np.abs(np.where(np.isfinite(top), top, 0.0))))
        power = np.where(near, self.power, 0).max(axis=0)
        factor = np.where(near & (self.power == power), np.abs(self.factor), 0.0).max(axis=0)
        return ModeGrowth(top, power, factor)


def check_symbol(system: System | str, op: Operator) -> None:
    """Whether H' = p(L) H holds on this operator: always with L = I - A; with L = D - A where A itself is not used."""
    system = parse(system)
    if op.degree is not None and "A" in system.letters:
        raise NotApplicable(
            f"expected a normalised operator, since {system.text} contains A, which does not commute with L = D - A; "
            "use symmetric, row or column"
        )


def make_symbols(system: System | str) -> Symbols:
    """A function of (lam, coefficients) that gives p and q, broadcast against each other.

    >>> p, q = make_symbols("ST")(np.array([0.0, 1.0]), {"alpha": 2.0, "beta": 0.5})
    >>> p + 0.0, q
    (array([ 0., -2.]), array([0.5, 0.5]))
    """
    system = parse(system)
    names = tuple(system.coefficients)
    arguments = [sp.Symbol(name) for name in ("lam", *names)]
    functions = [sp.lambdify(arguments, public(p), "numpy") for p in (system.generator_symbol, system.source_symbol)]

    def symbols(lam: np.ndarray, coefficients: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        missing = [name for name in names if name not in coefficients]
        if missing:
            raise InvalidArgument(f"expected a value for every coefficient, got none for {', '.join(missing)}; add it")
        values = [np.asarray(coefficients[name], dtype=float) for name in names]
        shape = np.broadcast_shapes(lam.shape, *(v.shape for v in values))
        p, q = (np.broadcast_to(np.asarray(f(lam, *values), dtype=float), shape) for f in functions)
        return p, q

    return symbols


def growth(p: np.ndarray, q: np.ndarray, method: str = "exact", step: float | None = None) -> ModeGrowth:
    """Growth of modes with generator p and source q under the exact flow or a Runge-Kutta method with a step.

    >>> g = growth(np.array([-2.0, 0.0, 1.0, -2.0]), np.array([0.0, 3.0, 1.0, 1.0]))
    >>> g.rate, g.power, g.factor
    (array([-2.,  0.,  1.,  0.]), array([0., 1., 0., 0.]), array([1. , 3. , 2. , 0.5]))
    >>> growth(np.array([-3.0]), np.array([0.0]), "euler", 1.0).rate  # |1 - 3| = 2 a step
    array([0.69314718])
    """
    small = ZERO_RATE * (1 + np.abs(p).max(initial=0.0))
    rate = np.where(np.abs(p) <= small, 0.0, p)
    if not is_exact_flow(method):
        if step is None or not step > 0:
            raise InvalidArgument(f"expected a step > 0 for {method}, got {step}")
        stability = sp.lambdify(z, tableau(method).stability, "numpy")
        size = np.abs(np.broadcast_to(np.asarray(stability(step * rate), dtype=float), rate.shape))
        rate = np.log(np.maximum(size, np.finfo(float).tiny)) / step
        rate = np.where(np.abs(rate) <= small, 0.0, rate)
    is_constant, forced = np.abs(p) <= small, np.abs(q) > small
    ratio = np.divide(q, p, out=np.zeros(p.shape), where=~is_constant)
    is_growing = np.abs(1 + ratio) > ZERO_RATE  # else the source cancels the growing part and the mode stays as it is
    settled = (rate < 0) & forced
    linear = is_constant & forced
    factor = np.where(linear, q, np.where(settled, -ratio, np.where((rate > 0) & is_growing, 1 + ratio, 1.0)))
    return ModeGrowth(np.where(settled | ((rate > 0) & ~is_growing), 0.0, rate), np.where(linear, 1.0, 0.0), factor)


# ---------------------------------------------------------------------- energy fates
GROWS = "grows without bound"
TITLES = {"dirichlet": "Dirichlet energy", "laplacian": "tr(H' L H)", "normalised": "normalised energy"}
#: Parts of a state smaller than this, relative to the largest, are rounding.
ROUNDING = 1e-11
TINY = np.finfo(float).tiny
#: A measured energy has vanished at this part of its start, and settled if its logarithm changes by less over the
#: last quarter of a run.
GONE, SETTLED = 1e-12, 0.01


@dataclass(frozen=True)
class EnergyFate:
    """An energy ~ limit * t^power * e^{rate t} as predicted, and what the trajectory shows.

    Attributes:
        energy: The energy: dirichlet, laplacian or normalised.
        rate: The rate of its exponential.
        power: The power of t.
        limit: The factor in front, the limit itself where rate = power = 0.
        measured_rate: The slope of log E over the last quarter of the times before rounding dominates.
        measured_power: The slope against log t.
        final: The value at T.

    Example:
        >>> import analysis
        >>> print(analysis.verdicts.EnergyFate("dirichlet", -2.0, 0.0, 1.0, -1.999, 0.0, 1e-7))
        Dirichlet energy vanishes like exp(-2 t); measured rate -1.999
    """

    energy: str
    rate: float
    power: float
    limit: float
    measured_rate: float
    measured_power: float
    final: float

    @property
    def answer(self) -> str:
        if self.rate == self.power == 0:
            return STAYS
        return GROWS if self.rate > 0 or (self.rate == 0 and self.power > 0) else VANISHES

    def __str__(self) -> str:
        title = TITLES[self.energy]
        if self.rate != 0:
            how = f"like exp({self.rate:.6g} t)" if np.isfinite(self.rate) else "at once: it is zero"
            return f"{title} {self.answer} {how}; measured rate {self.measured_rate:.6g}"
        if self.power != 0:
            return f"{title} {self.answer} like t^{self.power:g}; measured power {self.measured_power:.4g}"
        return f"{title} {self.answer}, with the limit {self.limit:.6g}; at T {self.final:.6g}"


@dataclass(frozen=True)
class MeasuredFate:
    """What a trajectory shows of the Dirichlet energy, where nothing is proved.

    Attributes:
        rate: The slope of log E over the last quarter of the run.
        share: E(T)/E(0).
        T: The end of the run.

    Example:
        >>> times = np.linspace(0, 8, 33)
        >>> print(MeasuredFate.of(times, np.exp(-2 * times)))
        measured up to t = 8: E(T)/E(0) = 1.13e-07, rate -2
    """

    rate: float
    share: float
    T: float

    @classmethod
    def of(cls, times: np.ndarray, energy: np.ndarray) -> MeasuredFate:
        rate, _, final = _slopes(times, energy, np.isfinite(energy) & (energy > ROUNDING**2 * energy[0]))
        return cls(rate, final / energy[0] if energy[0] > 0 else 0.0, float(times[-1]))

    @property
    def answer(self) -> str:
        """vanishes, stays positive or grows where the last quarter is clear about it, else undecided."""
        change = self.rate * self.T / 4
        if self.share <= GONE:
            return VANISHES
        if abs(change) < SETTLED:
            return STAYS
        return Status.UNDECIDED.value if not abs(change) > 1 else VANISHES if change < 0 else GROWS

    def __str__(self) -> str:
        return f"measured up to t = {self.T:g}: E(T)/E(0) = {self.share:.3g}, rate {self.rate:.3g}"


def energy_measures(op: Operator, plain: Operator) -> dict[str, Callable[[Tensor], Tensor]]:
    """The energies of a verdict, by name: tr(H' L H) only if L is symmetric."""
    measures: dict[str, Callable[[Tensor], Tensor]] = {"dirichlet": lambda H: dirichlet_energy(H, plain)}
    if op.record.is_symmetric and op.record.is_similar:
        measures["laplacian"] = lambda H: laplacian_energy(H, op)
    return {**measures, "normalised": lambda H: normalised_energy(H, plain)}


def energy_fates_of(
    field: VectorField, op: Operator, plain: Operator, H0: Tensor, times: np.ndarray, energies: Mapping[str, np.ndarray]
) -> tuple[EnergyFate, ...]:
    """The fate of each energy: rate, power and factor of its leading modes, with the measured slopes for comparison."""
    modes = spectrum(op)
    values = {name: np.atleast_1d(v.numpy()) for name, v in field.coefficients.items()}
    symbols = make_symbols(field.system)
    p, q = symbols(modes.values[:, None], values)
    shape = (len(modes.values), H0.shape[1])
    modal = growth(np.broadcast_to(p, shape), np.broadcast_to(q, shape))
    # The error of the run is relative to the largest gain on the whole interval that the spectrum may fill.
    wide, forced = symbols(np.linspace(0.0, modes.bound, 129)[:, None], values)
    log_gain = max(0.0, float(wide.max())) * times + np.log1p(float(np.abs(forced).max()) * times)
    reach = 1.0 if plain.degree is None else max(1.0, float(plain.degree.max()))
    log_floor = 2 * (np.log(ROUNDING * float(torch.linalg.vector_norm(H0)) + TINY) + log_gain) + np.log(reach)
    fates: list[EnergyFate] = []
    for name, measure in energy_measures(op, plain).items():
        log_energy = np.log(np.maximum(energies["dirichlet" if name == "normalised" else name], TINY))
        trusted = np.isfinite(log_energy) & (log_energy > log_floor)
        if name == "normalised":
            raw, size = fates[0], _leading(modes, modal, H0, lambda S: torch.linalg.vector_norm(S) ** 2)
            order = (raw.rate - size[0], raw.power - size[1], raw.limit / size[2] * op.num_nodes / 2)
        else:
            order = _leading(modes, modal, H0, measure)
        fates.append(EnergyFate(name, *order, *_slopes(times, energies[name], trusted)))
    return tuple(fates)


def _leading(
    modes: Spectrum, modal: ModeGrowth, H0: Tensor, measure: Callable[[Tensor], Tensor]
) -> tuple[float, float, float]:
    """Rate, power and factor of a quadratic measure: those of the strongest modes that it does not overlook."""
    content = modes.transform(H0).numpy()
    remaining = np.abs(content) > ROUNDING * np.abs(content).max(initial=0.0)
    while remaining.any():
        top = ModeGrowth(*(x.ravel() for x in (modal.rate, modal.power, modal.factor))).largest(remaining.ravel())
        rate, power = float(top.rate), float(top.power)
        here = remaining & np.isclose(modal.rate, rate, rtol=1e-9, atol=1e-9) & (modal.power == power)
        state = modes.inverse(torch.as_tensor(np.where(here, modal.factor * content, 0.0)))
        value = float(measure(state))
        if value > (ROUNDING * float(torch.linalg.vector_norm(state))) ** 2:
            return 2 * rate, 2 * power, value
        remaining &= ~here
    return -np.inf, 0.0, 0.0


def _slopes(times: np.ndarray, energy: np.ndarray, trusted: np.ndarray) -> tuple[float, float, float]:
    """Slope of log E against t and against log t over the last quarter of the trusted times, and the last value."""
    count = int(np.logical_and.accumulate(trusted & (energy > 0)).sum())
    first = max(count - 1 - max(count // 4, 1), 1)
    if count < 3:
        return float("nan"), float("nan"), float(energy[-1])
    t, height = times[first:count], np.log(energy[first:count])
    slope, power = (float((height[-1] - height[0]) / (x[-1] - x[0])) for x in (t, np.log(t)))
    return slope, power, float(energy[-1])
