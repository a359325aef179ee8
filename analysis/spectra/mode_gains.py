"""Empirical filter responses: the gain of an integrator on eigenvectors of L, compared with the symbolic response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from analysis.figure_files import PALETTE, plain
from analysis.gain_curves import gain_at
from analysis.spectra.eigenvalues import Spectrum, spectrum
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.language.tree import Kind
from rdgraph.run.lowering.vector_field import lower
from rdgraph.run.solvers.solver import solve
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System
from rdgraph.vocabulary.methods import find_method, is_exact_flow

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Gains:
    """The gains of an integrator on eigenvectors of L after time T.

    Attributes:
        system: The equation.
        values: The numbers of its coefficients.
        T: The end time.
        method: The integrator.
        step: Its step; None without one.
        lam: (k,) eigenvalues of L.
        gain: (k,) the factor <w, Phi(v)>/<w, v>, NaN where the run failed.
        leak: (k,) the part of Phi(v) that left the mode, |Phi(v) - gain v|/|v|: rounding for a linear system, more for
            a nonlinear one.

    Example:
        See `empirical_gains`.
    """

    system: System
    values: Mapping[str, float]
    T: float
    method: str
    step: float | None
    lam: np.ndarray
    gain: np.ndarray
    leak: np.ndarray

    @property
    def label(self) -> str:
        return self.method if self.step is None else f"{self.method}, step {self.step:g}"

    def predicted(self, lam: np.ndarray) -> np.ndarray:
        """The symbolic response of the same method; that of the exact flow for dopri5, which has none."""
        method = "exact" if find_method(self.method).is_adaptive else self.method
        return gain_at(self.system, lam, T=self.T, values=self.values, method=method, step=self.step)

    @property
    def error(self) -> np.ndarray:
        """|gain - predicted| per mode, relative to the largest predicted gain, (k,)."""
        expected = self.predicted(self.lam)
        return np.asarray(np.abs(self.gain - expected) / np.abs(expected).max())

    def rows(self) -> list[dict[str, Any]]:
        name, step = self.system.name or str(self.system), "" if self.step is None else self.step
        columns = {"lam": self.lam, "gain": self.gain, "predicted": self.predicted(self.lam), "leak": self.leak}
        return [
            {"system": name, "method": self.method, "step": step, **dict(zip(columns, row, strict=True))}
            for row in zip(*(column.tolist() for column in columns.values()), strict=True)
        ]


def empirical_gains(
    system: System | str,
    op: Operator,
    values: Mapping[str, float],
    *,
    T: float,
    method: str = "exact",
    step: float | None = None,
    modes: Spectrum | None = None,
    amplitude: float = 1.0,
) -> Gains:
    """Gain of every eigenvector of L (or of those in `modes`) under any method of `rdgraph.solve`, in one batched run.

    gain = <w, Phi(a v)>/<w, a v> for the start a v, v an eigenvector, w its left eigenvector (w = v where A is
    symmetric) and a the amplitude, which matters for nonlinear systems only.

    Args:
        system: A `System`, a name of the catalogue, or a line of text.
        op: An operator, as in `spectrum`.
        values: A value for every coefficient.
        T: The end time.
        method: Any method of `rdgraph.solve`.
        step: Its step, if it has one.
        modes: The eigenvectors to start from; all by default.
        amplitude: The amplitude of the starts.

    Returns:
        The `Gains`.

    Raises:
        NotApplicable: For coefficients that are not scalars, and where `spectrum` or the method does not apply.

    Example:
        >>> import torch, analysis, rdgraph as rd
        >>> op = rd.generators.path(3).operator("symmetric", dtype=torch.float64)
        >>> found = analysis.empirical_gains("diffusion", op, {"alpha": 1.0}, T=1.0, method="euler", step=0.5)
        >>> found.gain.round(6) + 0.0
        array([1.  , 0.25, 0.  ])
    """
    system = parse(system)
    vectors = [name for name, kind in system.coefficients.items() if kind is not Kind.SCALAR]
    if vectors:
        raise NotApplicable(
            f"expected scalar coefficients, got {', '.join(vectors)}; take one channel at a time, as a scalar"
        )
    modes = spectrum(op) if modes is None else modes
    start, dual = (
        torch.as_tensor(x.T, dtype=op.dtype, device=op.device)[..., None] for x in (modes.vectors, modes.duals)
    )
    start = amplitude * start
    used = {name: values[name] for name in system.coefficients if name in values}
    field = lower(system, op, used, batch=(len(start),))
    options: dict[str, Any] = {} if step is None else {"step": step}
    if is_exact_flow(method) and op.dtype == torch.float64:
        options["rtol"] = 1e-13
    solution = solve(field, start, [0.0, float(T)], method, **options)
    gain = (dual * solution.final).sum((-2, -1)) / (dual * start).sum((-2, -1))
    rest = torch.linalg.vector_norm(solution.final - gain[:, None, None] * start, dim=(-2, -1))
    leak = rest / torch.linalg.vector_norm(start, dim=(-2, -1))
    gain = torch.where(solution.codes == 0, gain, torch.nan)
    numbers = [x.double().cpu().numpy() for x in (gain, leak)]
    return Gains(system, dict(used), float(T), method, step, modes.values, *numbers)


def gains_figure(measured: Sequence[Gains]) -> tuple[Figure, list[dict[str, Any]]]:
    """Measured gains as points over the symbolic responses as curves, |g(lam)| on a log axis.

    Args:
        measured: Results of `empirical_gains`, one colour each.

    Returns:
        The figure, and the numbers drawn in it, one row per point.

    Raises:
        InvalidArgument: If there are no gains.

    Example:
        >>> import torch, analysis, rdgraph as rd
        >>> op = rd.generators.path(3).operator("symmetric", dtype=torch.float64)
        >>> gains = analysis.empirical_gains("diffusion", op, {"alpha": 1.0}, T=1.0)
        >>> figure, rows = analysis.spectra.gains_figure([gains])
        >>> len(rows), figure.axes[0].get_xlabel()
        (3, 'λ, eigenvalue of L')
    """
    from matplotlib.figure import Figure

    if not measured:
        raise InvalidArgument("expected at least one set of gains, got none; see empirical_gains")
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    panel = figure.subplots()
    tiny = np.finfo(float).tiny
    top = max(2.0, *(float(g.lam.max()) for g in measured))
    grid = np.linspace(0.0, top, 401)
    for i, g in enumerate(measured):
        colour, marker = PALETTE[i % len(PALETTE)], "os^Dvx+"[i % 7]
        panel.plot(grid, np.maximum(np.abs(g.predicted(grid)), tiny), color=colour, lw=1.6)
        panel.plot(
            g.lam, np.maximum(np.abs(g.gain), tiny), marker, color=colour, ms=5, mfc="none", label=plain(g.label)
        )
    sizes = np.concatenate([np.abs(g.predicted(grid)) for g in measured])
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    panel.axhline(1.0, color="0.8", lw=0.8, zorder=0)
    panel.set(yscale="log", xlim=(0, top), ylim=(max(1e-6, sizes.min() / 2), max(2.0, 2 * sizes.max())))
    panel.set(xlabel="λ, eigenvalue of L", ylabel="|gain|")
    first = measured[0]
    values = ", ".join(f"{plain(name)} = {value:g}" for name, value in first.values.items())
    title = plain(first.system.name or str(first.system))
    panel.set_title(f"{title}: T = {first.T:g}, {values}; points measured, lines symbolic")
    panel.legend(frameon=False)
    return figure, [row for g in measured for row in g.rows()]
