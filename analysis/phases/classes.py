"""The classes of a phase diagram, and which one a simulated batch shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from analysis.spectra.eigenvalues import Spectrum
from rdgraph.graphs.operator import Operator
from rdgraph.integrators.solution import Solution
from rdgraph.integrators.solver import solve
from rdgraph.integrators.trackers import Tracker
from rdgraph.lowering.vector_field import lower
from rdgraph.systems.system import System

CLASSES = ("smooths", "sharpens", "neutral", "grows without bound")
SMOOTHS, SHARPENS, NEUTRAL, GROWS = range(4)
#: Below this normalised energy a state is as good as in the kernel: what is left is rounding.
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
    return np.where(grows, GROWS, np.where(rate < -still, decays, NEUTRAL))
