"""Phase diagrams of linear systems over two coefficients: predicted from the spectrum, simulated as one batch.

The energy is E = <H, L H>, the normalised energy E/<H, H>, in the inner product in which L is symmetric. As t -> inf,

    blows up   E -> inf: a mode with lam > 0 grows,
    neutral    E -> a positive limit: no such mode grows, and one stays,
    smooths    E -> 0 and E/|H|^2 -> 0: the kernel of L wins,
    sharpens   E -> 0, yet E/|H|^2 keeps a positive limit: the state decays, its roughness does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.ndimage import maximum_filter, minimum_filter
from torch import Tensor

from analysis.phases.borders import Border, roughness_borders, stability_borders
from analysis.spectra.eigenvalues import Spectrum, spectrum
from analysis.verdicts.asymptotics import check_symbol, growth, make_symbols
from rdgraph.errors import NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.integrators.solution import Solution
from rdgraph.integrators.solver import solve
from rdgraph.lowering.vector_field import lower
from rdgraph.methods.registry import is_exact_flow
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System

CLASSES = ("smooths", "sharpens", "neutral", "blows up")
SMOOTHS, SHARPENS, NEUTRAL, BLOWS_UP = range(4)
#: Below this normalised energy a state is as good as in the kernel: what is left is rounding.
FLOOR = 1e-11
#: Save times of the simulation.
SAVES = 25
#: A member is away from the border where all members within this many cells have its class.
MARGIN = 2


@dataclass(frozen=True, eq=False)
class PhaseDiagram:
    """Classes over a grid of two coefficients, as positions in `CLASSES`.

    alphas (nx,), betas (ny,) the values of the coefficients called `names`; predicted, simulated (ny, nx) int;
    vanishing (ny, nx) bool, whether the normalised energy is predicted to tend to zero; away (ny, nx) bool, members
    that are not next to a border; agreement, the share of those that were simulated as predicted. `borders` lie between
    decay and growth of the energy; `ties`, for the flow alone, where the fate of the normalised energy changes.
    """

    system: System
    operator: Operator
    names: tuple[str, str]
    alphas: np.ndarray
    betas: np.ndarray
    predicted: np.ndarray
    simulated: np.ndarray
    vanishing: np.ndarray
    away: np.ndarray
    borders: tuple[Border, ...]
    ties: tuple[Border, ...]
    T: float
    method: str
    step: float | None

    @property
    def agreement(self) -> float:
        same = self.predicted == self.simulated
        return float(same[self.away].mean()) if self.away.any() else float("nan")

    def share(self, name: str) -> float:
        """Share of the grid that is predicted to be in a class."""
        return float((self.predicted == CLASSES.index(name)).mean())

    def rows(self) -> list[dict[str, Any]]:
        """One row a member."""
        x, y = np.meshgrid(self.alphas, self.betas)
        columns = (x, y, self.predicted, self.simulated, self.vanishing, self.away)
        return [
            {self.names[0]: a, self.names[1]: b, "predicted": CLASSES[p], "simulated": CLASSES[s],
             "normalised_vanishes": int(v), "away_from_border": int(w)}
            for a, b, p, s, v, w in zip(*(c.ravel().tolist() for c in columns), strict=True)
        ]  # fmt: skip


def phase_diagram(
    system: System | str,
    op: Operator,
    alphas: np.ndarray,
    betas: np.ndarray,
    *,
    names: tuple[str, str] = ("alpha", "beta"),
    coefficients: Mapping[str, float] | None = None,
    H0: Tensor | None = None,
    T: float = 40.0,
    method: str = "rk4",
    step: float | None = 0.25,
    seed: int = 0,
) -> PhaseDiagram:
    """The diagram of a linear system on a graph; all len(betas) x len(alphas) members run as one batch.

    Prediction and borders are those of the method itself, "exact" or Runge-Kutta with a step, from p at the eigenvalues
    that H0 (n, channels) excites; without H0 it holds every mode once, with random signs. `coefficients` fixes the
    coefficients that are not swept.

    >>> import rdgraph as rd
    >>> op = rd.generators.path(4).operator("symmetric", dtype=torch.float64)
    >>> d = phase_diagram("FB", op, np.array([0.5, 1.0]), np.array([0.75]), T=10.0)
    >>> [CLASSES[k] for k in d.predicted[0]], [CLASSES[k] for k in d.simulated[0]]
    (['blows up', 'smooths'], ['blows up', 'smooths'])
    """
    system = parse(system) if isinstance(system, str) else system
    check_symbol(system, op)
    op = op.to(dtype=torch.float64)
    x, y = (_axis(values, name) for values, name in zip((alphas, betas), names, strict=True))
    fixed = dict(coefficients or {})
    _check_names(system, names, fixed)
    modes = spectrum(op)
    H0 = _start(op, modes, H0, seed)
    excited = _excited(modes, H0)
    if not (excited & ~modes.kernel).any():
        raise NotApplicable("expected a start outside the kernel of L, got one without energy; pass another H0")
    values = {names[0]: x[None, :], names[1]: y[:, None], **fixed}
    predicted, vanishing = _predict(system, modes, excited, values, method, step)
    simulated = _simulate(system, op, modes, H0, values, (len(y), len(x)), T, method, step)
    window = ((float(x.min()), float(x.max())), (float(y.min()), float(y.max())))
    rough = modes.values[excited & ~modes.kernel]
    borders = stability_borders(system, rough, names, window, fixed, method, step)
    ties = roughness_borders(system, rough, names, window, fixed) if is_exact_flow(method) else []
    around = {"size": 2 * MARGIN + 1, "mode": "nearest"}
    away = maximum_filter(predicted, **around) == minimum_filter(predicted, **around)
    return PhaseDiagram(
        system,
        op,
        names,
        x,
        y,
        predicted,
        simulated,
        vanishing,
        away,
        tuple(borders),
        tuple(ties),
        float(T),
        method,
        step,
    )


# ---------------------------------------------------------------------- prediction
def _predict(
    system: System, modes: Spectrum, excited: np.ndarray, values: Mapping[str, Any], method: str, step: float | None
) -> tuple[np.ndarray, np.ndarray]:
    kept = np.flatnonzero(excited)
    p, q = make_symbols(system)(modes.values[kept][:, None, None], values)
    found, kernel = growth(p, q, method, step), modes.kernel[kept][:, None, None]
    rough, smooth = found.largest(np.broadcast_to(~kernel, p.shape)), found.largest(np.broadcast_to(kernel, p.shape))
    vanishing = smooth.compare(rough) > 0
    decays = np.where(vanishing, SMOOTHS, SHARPENS)
    grows = (rough.rate > 0) | ((rough.rate == 0) & (rough.power > 0))
    return np.where(grows, BLOWS_UP, np.where(rough.rate < 0, decays, NEUTRAL)), vanishing


def _excited(modes: Spectrum, H0: Tensor) -> np.ndarray:
    size = torch.linalg.vector_norm(modes.transform(H0), dim=-1).cpu().numpy()
    return np.asarray(size > 1e-9 * size.max())


# ---------------------------------------------------------------------- simulation
def _simulate(
    system: System, op: Operator, modes: Spectrum, H0: Tensor, values: Mapping[str, Any], batch: tuple[int, int],
    T: float, method: str, step: float | None,
) -> np.ndarray:  # fmt: skip
    tensors = {
        name: torch.as_tensor(np.broadcast_to(v, batch).copy(), dtype=op.dtype, device=op.device)
        for name, v in values.items() if name in system.coefficients
    }  # fmt: skip
    field = lower(system, op, tensors, batch=batch)
    weight = torch.as_tensor(modes.scale, dtype=op.dtype, device=op.device)[:, None]
    solution = solve(
        field, H0.expand(*batch, *H0.shape).contiguous(), [0.0, float(T)], method,
        save_at=np.linspace(0.0, T, SAVES).tolist(), measures={"size": make_measure(op, weight)}, keep_states=False,
        step=step,
    )  # fmt: skip
    return _judge(solution, float(T))


def make_measure(op: Operator, weight: Tensor) -> Callable[[Tensor], Tensor]:
    """log <H, H> and E/<H, H>, stacked (2, *batch), without overflow."""

    def measure(H: Tensor) -> Tensor:
        largest = H.abs().amax((-2, -1)).clamp(min=torch.finfo(H.dtype).tiny)
        G = H / largest[..., None, None]
        size = (weight * G * G).sum((-2, -1))
        energy = (weight * G * op.laplacian(G)).sum((-2, -1)).clamp(min=0.0)
        return torch.stack((size.log() + 2 * largest.log(), energy / size))

    return measure


def _judge(solution: Solution, T: float) -> np.ndarray:
    """Classes from the last quarter of what can be trusted: energies above rounding, members that have not failed."""
    log_size, share = (solution.measures["size"][:, k].cpu().numpy() for k in (0, 1))
    times = solution.times.cpu().numpy()
    clock = times.reshape(-1, *(1,) * (share.ndim - 1))
    failed_at = np.nan_to_num(solution.failed_at.cpu().numpy(), nan=np.inf)
    trusted = np.logical_and.accumulate((share > FLOOR) & (clock <= failed_at), axis=0)
    last = np.maximum(trusted.sum(axis=0) - 1, 1)
    window = (SAVES - 1) // 4
    log_share = np.log(np.maximum(share, FLOOR))

    def slope(values: np.ndarray, end: np.ndarray) -> np.ndarray:
        begin = np.maximum(end - window, 0)
        low, high = (np.take_along_axis(values, k[None], axis=0)[0] for k in (begin, end))
        return np.asarray((high - low) / (times[end] - times[begin]))

    fell = ~(share > FLOOR).all(axis=0)
    still = 1 / (10 * T)
    log_energy = log_size + log_share
    rate, vanishing = slope(log_energy, last), (slope(log_share, last) < -still) | fell
    # Growth that slows down is on its way to a limit.
    grows = (rate > still) & (rate > 0.9 * slope(log_energy, np.maximum(last - window, 1)))
    decays = np.where(vanishing, SMOOTHS, SHARPENS)
    return np.where(grows, BLOWS_UP, np.where(rate < -still, decays, NEUTRAL))


# ---------------------------------------------------------------------- checks
def _axis(values: Any, name: str) -> np.ndarray:
    axis = np.asarray(values, dtype=float)
    if axis.ndim != 1 or not axis.size or not np.isfinite(axis).all():
        raise NotApplicable(f"expected finite values of {name} of shape (m,), got shape {axis.shape}; use linspace")
    return axis


def _check_names(system: System, names: tuple[str, str], fixed: Mapping[str, float]) -> None:
    missing = [name for name in system.coefficients if name not in (*names, *fixed)]
    swept = [name for name in names if name not in system.coefficients]
    if missing or swept:
        raise NotApplicable(
            f"expected two of the coefficients {', '.join(system.coefficients)} to sweep and numbers for the others, "
            f"got names={names} and {sorted(fixed)}"
        )


def _start(op: Operator, modes: Spectrum, H0: Tensor | None, seed: int) -> Tensor:
    if H0 is None:
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(op.num_nodes, 1))
        return modes.inverse(torch.as_tensor(signs, dtype=op.dtype, device=op.device))
    if H0.ndim != 2 or len(H0) != op.num_nodes or not bool(torch.isfinite(H0).all()):
        raise NotApplicable(f"expected a finite start ({op.num_nodes}, channels), got shape {tuple(H0.shape)}")
    return H0.to(dtype=op.dtype, device=op.device)
