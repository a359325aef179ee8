"""What becomes of an energy of a linear system as t -> infinity: predicted by its modes, measured on a trajectory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from analysis.measures.energies import dirichlet_energy, laplacian_energy, normalised_energy
from analysis.spectra.eigenvalues import Spectrum, spectrum
from analysis.verdicts.asymptotics import ModeGrowth, growth, make_symbols
from analysis.verdicts.statements import STAYS, VANISHES
from rdgraph.graphs.operator import Operator
from rdgraph.lowering.vector_field import VectorField

GROWS, UNDECIDED = "grows without bound", "undecided"
TITLES = {"dirichlet": "Dirichlet energy", "laplacian": "tr(H' L H)", "normalised": "normalised energy"}
#: Parts of a state smaller than this, relative to the largest, are rounding.
ROUNDING = 1e-11
TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class EnergyFate:
    """An energy ~ limit * t^power * e^{rate t} as predicted, and what the trajectory shows.

    Attributes:
        energy: which one: dirichlet, laplacian or normalised.
        rate: of its exponential.
        power: of t.
        limit: the factor in front, the limit itself where rate = power = 0.
        measured_rate: the slope of log E over the last quarter of what rounding lets through.
        measured_power: the slope against log t.
        final: the value at T.

    Example:
        >>> print(EnergyFate("dirichlet", -2.0, 0.0, 1.0, -1.999, 0.0, 1e-7))
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


def energy_measures(op: Operator, plain: Operator) -> dict[str, Callable[[Tensor], Tensor]]:
    """The energies that a verdict looks at, by name: tr(H' L H) only where L is symmetric."""
    found: dict[str, Callable[[Tensor], Tensor]] = {"dirichlet": lambda H: dirichlet_energy(H, plain)}
    if op.record.is_symmetric and op.record.is_similar:
        found["laplacian"] = lambda H: laplacian_energy(H, op)
    return {**found, "normalised": lambda H: normalised_energy(H, plain)}


def energy_fates_of(
    field: VectorField, op: Operator, plain: Operator, H0: Tensor, times: np.ndarray, energies: Mapping[str, np.ndarray]
) -> tuple[EnergyFate, ...]:
    """What becomes of each energy: rate, power and factor of its leading modes, beside the measured slopes."""
    modes = spectrum(op)
    values = {name: np.atleast_1d(v.numpy()) for name, v in field.coefficients.items()}
    symbols = make_symbols(field.system)
    p, q = symbols(modes.values[:, None], values)
    shape = (len(modes.values), H0.shape[1])
    found = growth(np.broadcast_to(p, shape), np.broadcast_to(q, shape))
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
            raw, size = fates[0], _leading(modes, found, H0, lambda S: torch.linalg.vector_norm(S) ** 2)
            order = (raw.rate - size[0], raw.power - size[1], raw.limit / size[2] * op.num_nodes / 2)
        else:
            order = _leading(modes, found, H0, measure)
        fates.append(EnergyFate(name, *order, *_slopes(times, energies[name], trusted)))
    return tuple(fates)


def _leading(
    modes: Spectrum, found: ModeGrowth, H0: Tensor, measure: Callable[[Tensor], Tensor]
) -> tuple[float, float, float]:
    """Rate, power and factor of a quadratic measure: those of the strongest modes that it does not overlook."""
    content = modes.transform(H0).numpy()
    left = np.abs(content) > ROUNDING * np.abs(content).max(initial=0.0)
    while left.any():
        top = ModeGrowth(*(x.ravel() for x in (found.rate, found.power, found.factor))).largest(left.ravel())
        rate, power = float(top.rate), float(top.power)
        here = left & np.isclose(found.rate, rate, rtol=1e-9, atol=1e-9) & (found.power == power)
        state = modes.inverse(torch.as_tensor(np.where(here, found.factor * content, 0.0)))
        value = float(measure(state))
        if value > (ROUNDING * float(torch.linalg.vector_norm(state))) ** 2:
            return 2 * rate, 2 * power, value
        left &= ~here
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
