"""The flows on a grid as rows: fields, measures over time, and where each beta leads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

import rdgraph as rd
from analysis.measures.registry import make_measures
from analysis.spectra.eigenvalues import spectrum
from studies.grid import figures as pictures
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row

#: Measures of the states, by the names of the registry.
MEASURED = ("dirichlet_energy", "laplacian_energy", "rayleigh", "kernel_distance")


def flow_states(
    name: str, op: rd.Operator, H0: Tensor, times: Sequence[float], coefficients: Mapping[str, Any]
) -> Tensor:
    """States (times, *batch, n, 1) of the exact flow."""
    known = rd.catalogue[name].coefficients
    used = {key: value for key, value in coefficients.items() if key in known}
    field = rd.lower(name, op, used, batch=tuple(H0.shape[:-2]))
    return rd.solve(field, H0, list(times), method="exact").states


def field_rows(op: rd.Operator, H0: Tensor, chosen: Mapping[str, Any]) -> list[Row]:
    numbers = {"alpha": chosen["alpha"], "beta": chosen["beta"]}
    rows: list[Row] = []
    for name in pictures.FLOWS:
        states = flow_states(name, op, H0, chosen["times"], numbers).squeeze(-1).cpu().tolist()
        rows += [
            {"flow": name, "t": t, "row": i // chosen["columns"], "column": i % chosen["columns"], "value": value}
            for t, state in zip(chosen["times"], states, strict=True)
            for i, value in enumerate(state)
        ]
    return rows


def energy_rows(run: StudyRun, graph: rd.Graph, op: rd.Operator, H0: Tensor) -> list[Row]:
    """Every measure over time for all beta at once; beta = 0 is diffusion."""
    chosen = run.settings
    betas = torch.tensor(chosen["beta_sweep"], dtype=H0.dtype, device=H0.device)
    times = [float(t) for t in range(int(chosen["times"][-1]) + 1)]
    plain = graph.operator("none", dtype=H0.dtype, device=run.device)
    start = H0.expand(len(betas), *H0.shape)
    states = flow_states("BS", op, start, times, {"alpha": chosen["alpha"], "beta": betas})
    measures = make_measures(plain=plain, op=op, names=MEASURED)
    rows: list[Row] = []
    for t, state in zip(times, run.progress(states, "measuring", len(times)), strict=True):
        found = {
            "energy": measures["dirichlet_energy"](state),
            "laplacian_energy": measures["laplacian_energy"](state),
            "normalised_energy": measures["rayleigh"](state),  # tr(H'LH)/|H|^2, since L is symmetric here
            "kernel_distance": measures["kernel_distance"](state),
            "norm": torch.linalg.vector_norm(state, dim=(-2, -1)),
            "least": state.amin((-2, -1)),
            "largest": state.amax((-2, -1)),
        }
        rows += [
            {"beta": beta, "t": t, **{name: float(value[k]) for name, value in found.items()}}
            for k, beta in enumerate(chosen["beta_sweep"])
        ]
    return rows


def rate_rows(op: rd.Operator, chosen: Mapping[str, Any]) -> list[Row]:
    """Per beta the frequency outside the kernel that grows fastest, or decays slowest; one row is the border."""
    lam = spectrum(op).values[1:]
    alpha = chosen["alpha"]
    border = alpha / (1 - float(lam[0]))
    rows: list[Row] = []
    for beta in sorted([*chosen["beta_sweep"], border]):
        p = (beta - alpha) * lam - beta * lam**2
        at = int(np.argmax(p))
        limits = ("∞", f"{lam[at]:.4f}") if beta > border else ("0", "0") if beta < border else ("bounded, > 0", "> 0")
        rows.append(
            {
                "beta": beta,
                "winning_lam": float(lam[at]),
                "rate": 0.0 if beta == border else float(p[at]),
                "energy_limit": limits[0],
                "normalised_energy_limit": limits[1],
                "gain_at_lam_2": float(np.exp(-2 * (alpha + beta) * chosen["times"][-1])),
            }
        )
    return rows


def named_row(row: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    flow = "diffusion" if row["beta"] == 0 else "BS"
    return {"flow": flow, "alpha": chosen["alpha"], **row}
