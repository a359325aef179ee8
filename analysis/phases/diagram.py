"""Phase diagrams of linear systems over two coefficients: predicted from the spectrum, simulated as one batch.

The energy is E = <H, L H>, the normalised energy E/<H, H>, in the inner product in which L is symmetric. As t -> inf,

    grows without bound   E -> inf, exponentially: a mode with lam > 0 grows,
    neutral               E -> a positive limit: no such mode grows, and one stays,
    smooths               E -> 0 and E/|H|^2 -> 0: the kernel of L wins,
    sharpens              E -> 0, yet E/|H|^2 keeps a positive limit: the state decays, its roughness does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.ndimage import maximum_filter, minimum_filter
from torch import Tensor

from analysis.phases.borders import Border, roughness_borders, stability_borders
from analysis.phases.classes import CLASSES, GROWS, NEUTRAL, SHARPENS, SMOOTHS, simulated_classes
from analysis.spectra.eigenvalues import Spectrum, spectrum
from analysis.verdicts.asymptotics import check_symbol, growth, make_symbols
from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.graphs.operator import Operator
from rdgraph.integrators.trackers import Tracker
from rdgraph.methods.registry import is_exact_flow
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System

#: A member is away from the border where all members within this many cells have its class.
MARGIN = 2


@dataclass(frozen=True, eq=False)
class PhaseDiagram:
    """Classes over a grid of two coefficients, as positions in `CLASSES`.

    Attributes:
        system: the equation.
        operator: that of the graph.
        names: the two coefficients.
        alphas: (nx,) values of the first one.
        betas: (ny,) values of the second one.
        predicted: (ny, nx) int, from the spectrum.
        simulated: (ny, nx) int, from the runs.
        vanishing: (ny, nx) bool, whether the normalised energy is predicted to tend to zero.
        away: (ny, nx) bool, members that are not next to a border.
        borders: between decay and growth of the energy.
        ties: for the flow alone, where the fate of the normalised energy changes.
        T: the end time.
        method: the integrator.
        step: its step.

    Example:
        See `phase_diagram`.
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
    names: tuple[str, str] | None = None,
    coefficients: Mapping[str, float] | None = None,
    H0: Tensor | None = None,
    T: float = 40.0,
    method: str = "rk4",
    step: float | None = 0.25,
    seed: int = 0,
    trackers: Sequence[Tracker] = (),
) -> PhaseDiagram:
    """The diagram of a linear system on a graph; all len(betas) x len(alphas) members run as one batch.

    Prediction and borders are those of the method itself, "exact" or Runge-Kutta with a step, from the sign of
    max p(lam) over the eigenvalues that H0 excites.

    Args:
        system: a `System`, a name of the catalogue, or a line of text; linear.
        op: an operator as `spectrum` takes it, normalised where the equation contains A.
        alphas: (nx,) values of the first coefficient.
        betas: (ny,) values of the second one.
        names: the two coefficients; where None those of `swept_names`.
        coefficients: numbers for the coefficients that are not swept.
        H0: the start (n, channels); where None every mode once, with random signs.
        T: the end time.
        method: "exact" or a Runge-Kutta method.
        step: its step.
        seed: of the random signs.
        trackers: hear how far the simulation is.

    Returns:
        The `PhaseDiagram`.

    Raises:
        InvalidArgument: for axes, names or a start that cannot be.
        NotApplicable: for a system without a symbol on this operator, or whose symbol is not affine in the two.

    Example:
        >>> import rdgraph as rd
        >>> op = rd.generators.path(4).operator("symmetric", dtype=torch.float64)
        >>> d = phase_diagram("FB", op, np.array([0.5, 1.0]), np.array([0.75]), T=10.0)
        >>> [CLASSES[k] for k in d.predicted[0]], [CLASSES[k] for k in d.simulated[0]]
        (['grows without bound', 'smooths'], ['grows without bound', 'smooths'])
    """
    system = parse(system)
    fixed = dict(coefficients or {})
    names = names or swept_names(system, fixed)
    _check_names(system, names, fixed)
    check_symbol(system, op)
    op = op.to(dtype=torch.float64)
    x, y = (_axis(values, name) for values, name in zip((alphas, betas), names, strict=True))
    modes = spectrum(op)
    H0 = _start(op, modes, H0, seed)
    excited = _excited(modes, H0)
    if not (excited & ~modes.kernel).any():
        raise InvalidArgument("expected a start outside the kernel of L, got one without energy; pass another H0")
    values = {names[0]: x[None, :], names[1]: y[:, None], **fixed}
    predicted, vanishing = _predict(system, modes, excited, values, method, step)
    simulated = simulated_classes(system, op, modes, H0, values, (len(y), len(x)), T, method, step, trackers)
    window = ((float(x.min()), float(x.max())), (float(y.min()), float(y.max())))
    rough = modes.values[excited & ~modes.kernel]
    borders = stability_borders(system, rough, names, window, fixed, method, step)
    ties = roughness_borders(system, rough, names, window, fixed) if is_exact_flow(method) else []
    around = {"size": 2 * MARGIN + 1, "mode": "nearest"}
    away = maximum_filter(predicted, **around) == minimum_filter(predicted, **around)
    return PhaseDiagram(
        system, op, names, x, y, predicted, simulated, vanishing, away, tuple(borders), tuple(ties), float(T), method,
        step,
    )  # fmt: skip


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
    return np.where(grows, GROWS, np.where(rough.rate < 0, decays, NEUTRAL)), vanishing


def _excited(modes: Spectrum, H0: Tensor) -> np.ndarray:
    size = torch.linalg.vector_norm(modes.transform(H0), dim=-1).cpu().numpy()
    return np.asarray(size > 1e-9 * size.max())


# ---------------------------------------------------------------------- checks
def _axis(values: Any, name: str) -> np.ndarray:
    axis = np.asarray(values, dtype=float)
    if axis.ndim != 1 or not axis.size or not np.isfinite(axis).all():
        raise InvalidArgument(f"expected finite values of {name} of shape (m,), got shape {axis.shape}; use linspace")
    return axis


def swept_names(system: System | str, fixed: Mapping[str, float] | None = None) -> tuple[str, str]:
    """The coefficients of the axes where none are named: alpha and beta, else the first two without a number.

    Args:
        system: a `System`, a name of the catalogue, or a line of text.
        fixed: the coefficients that have numbers.

    Returns:
        Their names.

    Raises:
        InvalidArgument: for a system with fewer than two.

    Example:
        >>> swept_names("-a*L@H + b*A@H - c*H", {"a": 1.0}), swept_names("BS")
        (('b', 'c'), ('alpha', 'beta'))
    """
    known = parse(system).coefficients
    free = [name for name in known if name not in (fixed or {})]
    if len(free) < 2:
        raise InvalidArgument(
            f"expected two of the coefficients {', '.join(known) or '(none)'} to sweep, got {len(free)} without a "
            "number; leave them without, or name them in the equation"
        )
    first, second = ("alpha", "beta") if {"alpha", "beta"} <= set(free) else free[:2]
    return first, second


def _check_names(system: System, names: tuple[str, str], fixed: Mapping[str, float]) -> None:
    for name in (*names, *fixed):
        if name not in system.coefficients:
            raise UnknownName(f"coefficient of {system}", name, system.coefficients)
    missing = [name for name in system.coefficients if name not in (*names, *fixed)]
    if missing or names[0] == names[1] or set(names) & set(fixed):
        raise InvalidArgument(
            f"expected two of the coefficients {', '.join(system.coefficients)} to sweep and numbers for the others, "
            f"got {' and '.join(names)} with numbers for {', '.join(sorted(fixed)) or 'none'}; give the others "
            "numbers (coefficients=, --set)"
        )


def _start(op: Operator, modes: Spectrum, H0: Tensor | None, seed: int) -> Tensor:
    if H0 is None:
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(op.num_nodes, 1))
        return modes.inverse(torch.as_tensor(signs, dtype=op.dtype, device=op.device))
    if H0.ndim != 2 or len(H0) != op.num_nodes or not bool(torch.isfinite(H0).all()):
        raise InvalidArgument(f"expected a finite start ({op.num_nodes}, channels), got shape {tuple(H0.shape)}")
    return H0.to(dtype=op.dtype, device=op.device)
