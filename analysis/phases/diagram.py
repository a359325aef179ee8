"""Phase diagrams of linear systems over two coefficients: predicted from the spectrum, simulated as one batch.

The energy is E = <H, L H>, the normalised energy E/<H, H>, in the inner product in which L is symmetric. As t -> inf,

    grows without bound   E -> inf, exponentially: a mode with lam > 0 grows,
    neutral               E -> a positive limit: no such mode grows, and one stays,
    smooths               E -> 0 and E/|H|^2 -> 0: the kernel of L wins,
    sharpens              E -> 0, yet E/|H|^2 keeps a positive limit: the state decays, its roughness does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
import torch
from scipy.ndimage import maximum_filter, minimum_filter
from torch import Tensor

from analysis.spectra.eigenvalues import Spectrum, distinct, spectrum
from analysis.verdicts.energy_fates import check_symbol, growth, make_symbols
from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.graphs.operator import Operator
from rdgraph.run.lowering.vector_field import lower
from rdgraph.run.solvers.solution import Solution
from rdgraph.run.solvers.solver import solve
from rdgraph.run.solvers.trackers import Tracker
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.theory.filters import symbol
from rdgraph.vocabulary.methods import is_exact_flow, tableau, z

# ---------------------------------------------------------------------- classes
# The classes of a phase diagram, and those of a simulated batch.

CLASSES = ("smooths", "sharpens", "neutral", "grows without bound")
SMOOTHS, SHARPENS, NEUTRAL, GROWS = range(4)
#: Below this normalised energy a state is in the kernel up to rounding.
FLOOR = 1e-11
#: Save times of the simulation.
SAVES = 25


def simulated_classes(
    system: System, op: Operator, modes: Spectrum, H0: Tensor, values: Mapping[str, Any], batch: tuple[int, int],
    T: float, method: str, step: float | None, trackers: Sequence[Tracker] = (),
) -> np.ndarray:  # fmt: skip
    """Classes (ny, nx) of all members, run as one batch up to T."""
    tensors = {
        name: torch.as_tensor(np.broadcast_to(v, batch).copy(), dtype=op.dtype, device=op.device)
        for name, v in values.items() if name in system.coefficients
    }  # fmt: skip
    field = lower(system, op, tensors, batch=batch)
    weight = torch.as_tensor(modes.scale, dtype=op.dtype, device=op.device)[:, None]
    solution = solve(
        field, H0.expand(*batch, *H0.shape).contiguous(), [0.0, float(T)], method,
        save_at=np.linspace(0.0, T, SAVES).tolist(), measures={"size": make_measure(op, weight)}, keep_states=False,
        step=step, trackers=trackers,
    )  # fmt: skip
    return _classify(solution, float(T))


def make_measure(op: Operator, weight: Tensor) -> Callable[[Tensor], Tensor]:
    """log <H, H> and E/<H, H>, stacked (2, *batch), without overflow."""

    def measure(H: Tensor) -> Tensor:
        largest = H.abs().amax((-2, -1)).clamp(min=torch.finfo(H.dtype).tiny)
        G = H / largest[..., None, None]
        size = (weight * G * G).sum((-2, -1))
        energy = (weight * G * op.laplacian(G)).sum((-2, -1)).clamp(min=0.0)
        return torch.stack((size.log() + 2 * largest.log(), energy / size))

    return measure


def _classify(solution: Solution, T: float) -> np.ndarray:
    """Classes from the last quarter of the trusted times: energies above rounding, before a member has failed."""
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
    return np.where(grows, GROWS, np.where(rate < -still, decays, NEUTRAL))


# ---------------------------------------------------------------------- borders
# Closed-form borders in a plane of two coefficients: where the fastest mode of a graph neither grows nor decays, and
# where it ties with the kernel of L.

POINTS = 801
#: Eigenvalues that are closer are one eigenvalue.
SAME = 1e-9

Window = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Border:
    """The line p(lam) = level of one eigenvalue, drawn where no other mode grows.

    Attributes:
        formula: The line as an equation in the two coefficients and lam.
        lam: The eigenvalue.
        level: 0 for the flow; Runge-Kutta methods add the ends of their stability.
        x: (m,) values of the first coefficient on it, NaN outside the window or if it is no border there.
        y: (m,) values of the second one.

    Example:
        See `stability_borders`.
    """

    formula: sp.Eq
    lam: float
    level: float
    x: np.ndarray
    y: np.ndarray

    def __str__(self) -> str:
        return f"{self.formula.lhs} = {self.formula.rhs} at lam = {self.lam:.6g}"


def stability_borders(
    system: System | str,
    lams: np.ndarray,
    names: tuple[str, str],
    window: Window,
    *,
    values: Mapping[str, float],
    method: str = "exact",
    step: float | None = None,
) -> list[Border]:
    """Borders between decay and growth of the modes `lams` (k,) in the plane of the two coefficients `names`.

    p must be affine in both, p = a + b x + c y with a, b, c functions of lam, so that every mode gives one line.

    Args:
        system: A `System`, a name of the catalogue, or a line of text.
        lams: (k,) eigenvalues of L.
        names: The two coefficients.
        window: Their smallest and largest values.
        values: Values of the other coefficients.
        method: "exact" for the flow, or a Runge-Kutta method.
        step: The step of the method.

    Returns:
        The borders inside the window.

    Raises:
        NotApplicable: For a system without a symbol, or whose symbol is not affine in the two.
        InvalidArgument: For a Runge-Kutta method without a step.

    Example:
        >>> import numpy as np, analysis
        >>> window = ((0.0, 1.0), (0.0, 2.0))
        >>> ts = np.array([0.5, 2.0])
        >>> for b in analysis.phases.stability_borders("BS", ts, ("alpha", "beta"), window, values={}): print(b)
        beta = -alpha/(lam - 1) at lam = 0.5
    """
    system = parse(system)
    plane = _Plane.of(system, names, values)
    return _lines(
        plane, distinct(lams, SAME), window, _levels(method, step), lambda p: growth(p, 0 * p, method, step).rate
    )


def roughness_borders(
    system: System | str, lams: np.ndarray, names: tuple[str, str], window: Window, *, values: Mapping[str, float]
) -> list[Border]:
    """Where the flow's fastest mode of `lams` grows as fast as the kernel of L, p(lam) = p(0); for systems without H0.

    On one side the normalised energy tends to zero, on the other it keeps a positive limit.

    Args:
        system: A `System`, a name of the catalogue, or a line of text.
        lams: (k,) eigenvalues of L.
        names: The two coefficients.
        window: Their smallest and largest values.
        values: Values of the other coefficients.

    Returns:
        The borders inside the window; none for a system with H0.

    Raises:
        NotApplicable: For a system without a symbol, or whose symbol is not affine in the two.

    Example:
        >>> import numpy as np, analysis
        >>> window = ((0.0, 1.0), (0.0, 2.0))
        >>> ts = np.array([0.5, 2.0])
        >>> for b in analysis.phases.roughness_borders("FB*", ts, ("alpha", "beta"), window, values={}): print(b)
        beta = alpha at lam = 0.5
    """
    system = parse(system)
    if system.source_symbol != 0:
        return []
    return _lines(_Plane.of(system, names, values, relative=True), distinct(lams, SAME), window, [0.0], lambda p: p)


def _lines(
    plane: _Plane, lams: np.ndarray, window: Window, levels: list[float], make_rate: Callable[[np.ndarray], np.ndarray]
) -> list[Border]:
    """Lines p = level of the modes, where no mode has a positive rate."""
    borders: list[Border] = []
    seen: set[tuple[float, ...]] = set()
    for lam in lams:
        for level in levels:
            line = plane.line(float(lam), level, window)
            if line is None:
                continue
            ends = tuple(round(float(end), 9) for axis in line for end in axis[[0, -1]])
            if ends in seen:  # FB: one line for all modes
                continue
            seen.add(ends)
            x, y = line
            rate = make_rate(plane.value(lams[:, None], x, y)).max(axis=0)
            inside = (y >= window[1][0]) & (y <= window[1][1]) & (x >= window[0][0]) & (x <= window[0][1])
            drawn = inside & (rate <= 1e-7)
            if drawn.sum() > 1:  # a point alone is where lines of all modes cross
                shown = (np.where(drawn, values, np.nan) for values in (x, y))
                borders.append(Border(plane.formula(level), float(lam), level, *shown))
    return borders


@dataclass(frozen=True, eq=False)
class _Plane:
    """p = a(lam) + b(lam) x + c(lam) y, or p(lam) - p(0) of that form."""

    names: tuple[str, str]
    parts: tuple[sp.Expr, sp.Expr, sp.Expr]

    @classmethod
    def of(cls, system: System, names: tuple[str, str], values: Mapping[str, float], relative: bool = False) -> _Plane:
        system.require_single()
        x, y = (sp.Symbol(name) for name in names)
        p = sp.expand(symbol(system).subs({sp.Symbol(k): sp.Rational(repr(float(v))) for k, v in values.items()}))
        p = sp.expand(p - p.subs(sp.Symbol("lam"), 0)) if relative else p
        parts = (p.subs({x: 0, y: 0}), sp.diff(p, x), sp.diff(p, y))
        if any(part.free_symbols - {sp.Symbol("lam")} for part in parts[1:]):
            raise NotApplicable(
                f"expected a symbol that is affine in {names[0]} and {names[1]}, got {p}; sweep other coefficients"
            )
        return cls(names, tuple(sp.factor(part) for part in parts))

    def value(self, lam: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        a, b, c = (np.asarray(sp.lambdify(sp.Symbol("lam"), part, "numpy")(lam), dtype=float) for part in self.parts)
        return np.asarray(a + b * x + c * y)

    def line(self, lam: float, level: float, window: Window) -> tuple[np.ndarray, np.ndarray] | None:
        """Points of p = level, or None where p does not depend on either coefficient."""
        a, b, c = (float(part.subs(sp.Symbol("lam"), lam)) for part in self.parts)
        if max(abs(b), abs(c)) <= 1e-12:
            return None
        if abs(c) >= abs(b):
            x = np.linspace(*window[0], POINTS)
            return x, (level - a - b * x) / c
        y = np.linspace(*window[1], POINTS)
        return (level - a - c * y) / b, y

    def formula(self, level: float) -> sp.Eq:
        a, b, c = self.parts
        x, y = (sp.Symbol(name) for name in self.names)
        height = sp.nsimplify(level) if float(level).is_integer() else sp.Float(level, 8)
        if c != 0:
            return sp.Eq(y, sp.factor((height - a - b * x) / c), evaluate=False)
        return sp.Eq(x, sp.factor((height - a) / b), evaluate=False)


def _levels(method: str, step: float | None) -> list[float]:
    """Values of p at which a mode neither grows nor decays: |R(step p)| = 1."""
    if is_exact_flow(method):
        return [0.0]
    if step is None:
        raise InvalidArgument(f"expected a step for {method}, got none")
    stability = tableau(method).stability
    roots = {float(r) for side in (1, -1) for r in sp.Poly(stability - side, z).nroots(n=15) if abs(sp.im(r)) < 1e-12}
    return sorted((0.0 if abs(r) < 1e-12 else r / step for r in roots), reverse=True)


# ---------------------------------------------------------------------- diagram
#: A member is away from the border where all members within this many cells have its class.
MARGIN = 2


@dataclass(frozen=True, eq=False)
class PhaseDiagram:
    """Classes over a grid of two coefficients, as positions in `CLASSES`.

    Attributes:
        system: The equation.
        operator: The operator of the graph.
        names: The two coefficients.
        alphas: (nx,) values of the first one.
        betas: (ny,) values of the second one.
        predicted: (ny, nx) int, from the spectrum.
        simulated: (ny, nx) int, from the runs.
        vanishing: (ny, nx) bool, whether the normalised energy is predicted to tend to zero.
        away: (ny, nx) bool, members that are not next to a border.
        borders: The borders between decay and growth of the energy.
        ties: For the flow only: where the fate of the normalised energy changes.
        T: The end time.
        method: The integrator.
        step: The step of the method.

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
    values: Mapping[str, float] | None = None,
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
        system: A `System`, a name of the catalogue, or a line of text; linear.
        op: An operator, as in `spectrum`, normalised if the equation contains A.
        alphas: (nx,) values of the first coefficient.
        betas: (ny,) values of the second one.
        names: The two coefficients; by default those of `swept_names`.
        values: Values of the coefficients that are not swept.
        H0: The start (n, channels); by default every mode once, with random signs.
        T: The end time.
        method: "exact" or a Runge-Kutta method.
        step: The step of the method.
        seed: The seed of the random signs.
        trackers: Receive the progress of the simulation.

    Returns:
        The `PhaseDiagram`.

    Raises:
        InvalidArgument: For invalid axes, names or starts.
        NotApplicable: For a system without a symbol on this operator, or whose symbol is not affine in the two.

    Example:
        >>> import numpy as np, torch, analysis, rdgraph as rd
        >>> op = rd.generators.path(4).operator("symmetric", dtype=torch.float64)
        >>> d = analysis.phase_diagram("FB", op, np.array([0.5, 1.0]), np.array([0.75]), T=10.0)
        >>> [row["predicted"] for row in d.rows()], [row["simulated"] for row in d.rows()]
        (['grows without bound', 'smooths'], ['grows without bound', 'smooths'])
    """
    system = parse(system)
    fixed = dict(values or {})
    names = names or swept_names(system, fixed)
    _check_names(system, names, fixed)
    check_symbol(system, op)
    op = op.to(dtype=torch.float64)
    x, y = (_axis(numbers, name) for numbers, name in zip((alphas, betas), names, strict=True))
    modes = spectrum(op)
    H0 = _start(op, modes, H0, seed)
    size = torch.linalg.vector_norm(modes.transform(H0), dim=-1).cpu().numpy()
    excited = size > 1e-9 * size.max()
    if not (excited & ~modes.kernel).any():
        raise InvalidArgument("expected a start outside the kernel of L, got one without energy; pass another H0")
    numbers = {names[0]: x[None, :], names[1]: y[:, None], **fixed}
    predicted, vanishing = _predict(system, modes, excited, numbers, method, step)
    simulated = simulated_classes(system, op, modes, H0, numbers, (len(y), len(x)), T, method, step, trackers)
    window = ((float(x.min()), float(x.max())), (float(y.min()), float(y.max())))
    rough = modes.values[excited & ~modes.kernel]
    borders = stability_borders(system, rough, names, window, values=fixed, method=method, step=step)
    ties = roughness_borders(system, rough, names, window, values=fixed) if is_exact_flow(method) else []
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
    active = np.flatnonzero(excited)
    p, q = make_symbols(system)(modes.values[active][:, None, None], values)
    modal, kernel = growth(p, q, method, step), modes.kernel[active][:, None, None]
    rough, smooth = (modal.largest(np.broadcast_to(chosen, p.shape)) for chosen in (~kernel, kernel))
    vanishing = smooth.compare(rough) > 0
    decays = np.where(vanishing, SMOOTHS, SHARPENS)
    grows = (rough.rate > 0) | ((rough.rate == 0) & (rough.power > 0))
    return np.where(grows, GROWS, np.where(rough.rate < 0, decays, NEUTRAL)), vanishing


# ---------------------------------------------------------------------- checks
def _axis(values: Any, name: str) -> np.ndarray:
    axis = np.asarray(values, dtype=float)
    if axis.ndim != 1 or not axis.size or not np.isfinite(axis).all():
        raise InvalidArgument(f"expected finite values of {name} of shape (m,), got shape {axis.shape}; use linspace")
    return axis


def swept_names(system: System | str, fixed: Mapping[str, float] | None = None) -> tuple[str, str]:
    """The coefficients of the axes where none are named: alpha and beta, else the first two without a number.

    Args:
        system: A `System`, a name of the catalogue, or a line of text.
        fixed: The coefficients with values.

    Returns:
        Their names.

    Raises:
        InvalidArgument: For a system with fewer than two coefficients.

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
            "numbers (values=)"
        )


def _start(op: Operator, modes: Spectrum, H0: Tensor | None, seed: int) -> Tensor:
    if H0 is None:
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(op.num_nodes, 1))
        return modes.inverse(torch.as_tensor(signs, dtype=op.dtype, device=op.device))
    if H0.ndim != 2 or len(H0) != op.num_nodes or not bool(torch.isfinite(H0).all()):
        raise InvalidArgument(f"expected a finite start ({op.num_nodes}, channels), got shape {tuple(H0.shape)}")
    return H0.to(dtype=op.dtype, device=op.device)
