"""Sensitivity: the singular values of dH(T)/dH(0), by which what a flow forgets does not depend on how large H is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from analysis.gain_curves import gain_at
from analysis.spectra.eigenvalues import Spectrum, spectrum
from rdgraph.errors import Diverged, InvalidArgument, NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.language.tree import Kind
from rdgraph.run.lowering.vector_field import lower
from rdgraph.run.solvers.solver import solve
from rdgraph.systems.parser import parse
from rdgraph.systems.system import System

#: The largest Jacobian, in entries of the state, and the rows computed at a time.
MOST_ENTRIES, ROWS = 2048, 64


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """The singular values of dH(T)/dH(0).

    Attributes:
        T: The end time.
        values: The singular values, descending: (n,) for one channel of a linear system, in which all channels behave
            alike, else (n*d,).
        is_exact: Whether they come from the filter response of a linear system rather than a Jacobian at one state.

    Example:
        >>> import numpy as np
        >>> from analysis.spectra import Sensitivity
        >>> found = Sensitivity(1.0, np.array([1.0, 1.0, 1e-9]), is_exact=True)
        >>> found.norm, round(found.effective_rank, 3), found.count()
        (1.0, 2.0, 2)
    """

    T: float
    values: np.ndarray
    is_exact: bool

    @property
    def norm(self) -> float:
        """The largest singular value: by how much a small difference of states can grow."""
        return float(self.values[0])

    @property
    def effective_rank(self) -> float:
        """The number of directions of H(0) that still matter at T, exp of the entropy of the singular values."""
        share = torch.as_tensor(self.values / self.values.sum())
        return float(torch.special.entr(share).sum().exp())

    def count(self, tolerance: float = 1e-3) -> int:
        """The number of singular values above `tolerance` times the largest."""
        return int((self.values > tolerance * self.norm).sum())


def sensitivity(
    system: System | str,
    op: Operator,
    values: Mapping[str, Any],
    *,
    T: float,
    H0: Tensor | None = None,
    method: str = "exact",
    step: float | None = None,
    modes: Spectrum | None = None,
) -> Sensitivity:
    """The singular values of dH(T)/dH(0) of a system on a graph.

    For a linear equation with scalar coefficients they are those of g(L), g the filter response, at every state. Other
    systems need a start H0, and the Jacobian at it is computed by derivatives through the integrator.

    Args:
        system: A `System`, a name of the catalogue, or a line of text.
        op: The operator.
        values: A value for every coefficient.
        T: The end time.
        H0: The start (n, d), for systems without a filter response.
        method: A method of `rdgraph.solve`; "exact" for linear systems only.
        step: Its step, if it has one.
        modes: The spectrum of `op`, if known.

    Returns:
        The `Sensitivity`.

    Raises:
        InvalidArgument: For a start that is missing, of another shape, or with more than 2048 entries.
        Diverged: If the run from H0 failed before T.

    Example:
        >>> import torch, rdgraph as rd
        >>> from analysis.spectra import sensitivity
        >>> op = rd.generators.path(3).operator("symmetric", dtype=torch.float64)
        >>> sensitivity("diffusion", op, {"alpha": 1.0}, T=1.0).values.round(4)
        array([1.    , 0.3679, 0.1353])
        >>> start = torch.zeros(3, 1, dtype=torch.float64)
        >>> sensitivity("AC", op, {"alpha": 1.0, "beta": 1.0}, T=1.0, H0=start, method="rk4", step=0.01).norm  # e
        2.71828182...
    """
    system = parse(system)
    used = {name: values[name] for name in system.coefficients if name in values}
    if H0 is None or _has_response(system):
        try:
            return _of_response(system, op, used, T, method, step, modes)
        except NotApplicable as reason:
            if H0 is None:
                raise InvalidArgument(
                    f"expected a start H0 of {system}, whose Jacobian depends on it: {reason}"
                ) from None
    return Sensitivity(float(T), _of_jacobian(system, op, used, T, H0, method, step), False)


def _has_response(system: System) -> bool:
    """Whether the system is one linear equation with scalar coefficients."""
    kinds = set(system.coefficients.values())
    return system.is_single and system.structure.linear and kinds <= {Kind.SCALAR}


def _of_response(
    system: System, op: Operator, values: Mapping[str, float], T: float, method: str, step: float | None,
    modes: Spectrum | None,
) -> Sensitivity:  # fmt: skip
    modes = spectrum(op) if modes is None else modes
    if not modes.is_whole:
        raise InvalidArgument(f"expected the whole spectrum, got {len(modes.values)} of {len(modes.vectors)} modes")
    gains = gain_at(system, modes.values, T=T, values=values, method=method, step=step)
    if np.ptp(modes.scale) == 0:
        found = np.abs(gains)
    else:
        found = np.linalg.svd((modes.vectors * gains) @ modes.duals.T, compute_uv=False)
    return Sensitivity(float(T), -np.sort(-found), True)


def _of_jacobian(
    system: System, op: Operator, values: Mapping[str, Any], T: float, H0: Tensor, method: str, step: float | None
) -> np.ndarray:
    if H0.ndim != 2 or not 0 < H0.numel() <= MOST_ENTRIES:
        raise InvalidArgument(f"expected a start (n, d) of at most {MOST_ENTRIES} entries, got {tuple(H0.shape)}")
    options: dict[str, Any] = {} if step is None else {"step": step}
    rows = []
    for first in range(0, H0.numel(), ROWS):
        count = min(ROWS, H0.numel() - first)
        starts = H0.detach().expand(count, *H0.shape).clone().requires_grad_()
        solution = solve(lower(system, op, dict(values), batch=(count,)), starts, [0.0, float(T)], method, **options)
        if bool((solution.codes != 0).any()):
            raise Diverged(f"the run of {system} from this start failed before T = {T:g}")
        entries = solution.final.flatten(1)[torch.arange(count), torch.arange(first, first + count)]
        rows.append(torch.autograd.grad(entries.sum(), starts)[0].flatten(1))
    return np.asarray(torch.linalg.svdvals(torch.cat(rows).double()).cpu().numpy())
