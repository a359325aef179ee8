"""Trajectories of an ensemble as rows: curves over time (mean and band), and where every member ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.measures.measure_records import MEASURES
from analysis.spectra.eigenvalues import spectrum
from studies.oversmoothing.flows import Batch, EnsembleTrajectory, GraphEnsemble, GraphFlow
from studies.runs.tables import MutableRow, Value
from studies.runs.word_sheets import WordSheet

# ---------------------------------------------------------------------- rows
#: The band of a curve holds the members between these quantiles.
BAND = (0.1, 0.9)
#: Smaller values are rounding, and zero has no logarithm.
TINY = 1e-300


def curve_rows(flow: GraphFlow, scheme: str, batch: Batch, result: EnsembleTrajectory) -> list[MutableRow]:
    """Mean and band over the members that are not frozen, per coefficient, measure and time.

    A logarithmic measure has the geometric mean; where a measure is no finite number, such as the Fisher ratio of
    classes that sit at one point each, the member is left out of its mean. Draws of channel
    coefficients are pooled, with beta "drawn".
    """
    rows: list[MutableRow] = []
    for label, chosen in _groups(batch):
        alive = result.alive[:, chosen].reshape(len(result.times), -1)
        for name in (n for n in MEASURES if n in result.values):
            values = result.values[name][:, chosen].reshape(alive.shape)
            if np.isnan(values[0]).all():
                continue
            for k, time in enumerate(result.times):
                stored = values[k][alive[k] & np.isfinite(values[k])]
                mean, low, high = _summary(stored, MEASURES[name].is_log)
                rows.append({
                    **_names(flow, scheme, batch), **label, "measure": name, "t": float(time), "mean": mean, "low": low,
                    "high": high, "members": alive.shape[1], "alive": int(alive[k].sum()),
                })  # fmt: skip
    return rows


def end_rows(flow: GraphFlow, scheme: str, batch: Batch, result: EnsembleTrajectory) -> list[MutableRow]:
    """One row a member: measures at the start and at the end, the least energy, the rate of decay, when it was frozen.

    `rate` is the slope of log |H - PH|^2 over the second half of the time, P the projection on the kernel of L: twice
    the growth of the slowest mode outside the kernel. NaN where the member was frozen, or fell to rounding.
    """
    values = result.values
    half = int(np.searchsorted(result.times, result.times[-1] / 2))
    fifth = min(int(np.searchsorted(result.times, 5.0)), len(result.times) - 1)
    outside = np.maximum(values["size"] * values["kernel_distance"] ** 2, TINY)
    span = result.times[-1] - result.times[half]
    rate = (np.log(outside[-1]) - np.log(outside[half])) / span
    rate[~result.alive[-1] | (values["kernel_distance"][-1] < 1e-12)] = np.nan
    frozen = np.where(result.alive, values["dirichlet_energy"], np.inf)
    rows: list[MutableRow] = []
    for label, chosen in _groups(batch):
        for c in chosen:
            for s in range(result.failed_at.shape[1]):
                here = slice(None), c, s
                energy = values["dirichlet_energy"][here]
                rows.append({
                    **_names(flow, scheme, batch), **label, "draw": c if batch.kind == "VC" else 0, "graph": s,
                    "failed_at": float(result.failed_at[c, s]), "rate": float(rate[c, s]), "energy_0": float(energy[0]),
                    "energy_5": float(energy[fifth]), "energy_half": float(energy[half]), "energy_T": float(energy[-1]),
                    "energy_least": float(frozen[here].min()),
                    "laplacian_T": float(values["laplacian_energy"][-1, c, s]),
                    "normalised_0": float(values["normalised_energy"][0, c, s]),
                    "normalised_T": float(values["normalised_energy"][-1, c, s]),
                    "mad_T": float(values["mad"][-1, c, s]), "rank_T": float(values["effective_rank"][-1, c, s]),
                    "kernel_T": float(values["kernel_distance"][-1, c, s]),
                })  # fmt: skip
    return rows


def spectrum_rows(ensemble: GraphEnsemble) -> list[MutableRow]:
    """What the theory needs to know of every graph: eigenvalues of L, where diffusion ends, the cut of a sign pattern.

    With v = sqrt(d/2m), diffusion by A_sym tends to v v'H0, whose energy is `plateau`; `plateau_loops` is the same with
    self-loops. `source` is sum_k |v_k'H0|^2/lam_k over the modes with lam_k > 0: the source term ends at
    tr(H'LH) = (beta/alpha)^2 source. `cut` is (2/N) times the number of edges between entries of different sign, summed
    over channels: an energy that signs of size 1/2 or more cannot go below.
    """
    rows: list[MutableRow] = []
    for k, member in enumerate(ensemble.members):
        result = spectrum(member.graph.operator("symmetric"))
        source, target = member.graph.edge_index
        signs = np.sign(member.features)
        modes = np.square(result.vectors.T @ member.features).sum(1)
        loops = [_plateau(member, weight) for weight in (0.0, 1.0)]
        differ = (signs[source] != signs[target]).sum() / len(signs)
        rows.append({
            "graph": k, "lam2": float(result.values[1]), "lam3": float(result.values[2]),
            "lam_max": float(result.values[-1]),
            "plateau": loops[0], "plateau_loops": loops[1], "cut": float(differ),
            "source": float((modes[1:] / result.values[1:]).sum()),
            "components": int(member.graph.components().max()) + 1, "largest": float(np.abs(member.features).max()),
        })  # fmt: skip
    return rows


def _plateau(member: Any, self_loops: float) -> float:
    """The paper's energy of v v'H0, with v proportional to the root of the degrees."""
    v = np.sqrt(member.graph.degree + self_loops)
    v /= np.linalg.norm(v)
    source, target = member.graph.edge_index
    return float(np.square(v[source] - v[target]).sum() / len(v) * np.square(v @ member.features).sum())


def _groups(batch: Batch) -> list[tuple[MutableRow, list[int]]]:
    """The coefficients by label: every scalar alone, all draws together."""
    if batch.kind == "VC":
        return [({"alpha": float(batch.alpha[0]), "beta": "drawn"}, list(range(len(batch.alpha))))]
    pairs = zip(batch.alpha.tolist(), batch.beta.tolist(), strict=True)
    return [({"alpha": alpha, "beta": beta}, [k]) for k, (alpha, beta) in enumerate(pairs)]


def _names(flow: GraphFlow, scheme: str, batch: Batch) -> MutableRow:
    return {
        "flow": flow.name, "normalisation": flow.normalisation, "start": flow.start, "scheme": scheme,
        "method": flow.method(scheme), "kind": batch.kind,
    }  # fmt: skip


def _summary(values: np.ndarray, is_log: bool) -> tuple[float, float, float]:
    if not values.size:
        return float("nan"), float("nan"), float("nan")
    low, high = (float(q) for q in np.quantile(values, BAND))
    mean = np.exp(np.log(np.maximum(np.abs(values), TINY)).mean()) if is_log else values.mean()
    return float(mean), low, high


def select(rows: list[MutableRow], **wanted: Any) -> list[MutableRow]:
    """The rows with these values.

    >>> select([{"a": 1, "b": 2}, {"a": 3, "b": 2}], a=3)
    [{'a': 3, 'b': 2}]
    """
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def column(rows: list[MutableRow] | list[Mapping[str, Any]], name: str) -> np.ndarray:
    """One column as numbers."""
    return np.array([float(row[name]) for row in rows])


def by_graph(rows: list[MutableRow], name: str) -> np.ndarray:
    """One column of rows with a row for every time or layer and graph, (times or layers, graphs)."""
    return column(rows, name).reshape(-1, 1 + max(int(row["graph"]) for row in rows))


# ---------------------------------------------------------------------- answers
# What a verdict on oversmoothing is made of: the answer, thresholds, medians, ratios.

SHEET = WordSheet("oversmoothing")
#: An energy below this share of the first one counts as gone.
GONE = 1e-3
#: Largest difference of a measured and a predicted number that counts as agreement, as a share.
CLOSE = 0.1


@dataclass(frozen=True)
class Answer:
    """A statement, whether it holds, what was measured, and a sentence for the text."""

    statement: str
    answer: str
    evidence: str
    summary: str = ""

    @classmethod
    def of(cls, sheet: WordSheet, name: str, answer: str, /, **values: object) -> Answer:
        """The words of a sheet's verdict, their places filled."""
        summary = str(sheet.entries["verdicts"][name].get("summary", ""))
        return cls(*sheet.verdict(name, answer, **values), summary.format_map(values))


def median(values: np.ndarray) -> float:
    """The median of the finite numbers, to six digits; nan without any."""
    there = values[np.isfinite(values)]
    return float(f"{np.median(there):.6g}") if there.size else float("nan")


def median_text(values: np.ndarray) -> str:
    """The median of the numbers that there are, to three digits."""
    there = values[~np.isnan(values)]
    return f"{np.median(there):.3g}" if there.size else "nan"


def decades(energy: Value, other: Value) -> float:
    """log10 of a ratio of energies, of which neither counts as less than rounding."""
    return float(np.log10(max(float(energy), TINY)) - np.log10(max(float(other), TINY)))


def is_unfrozen(row: MutableRow) -> bool:
    """Whether a member was never frozen."""
    return bool(np.isnan(float(row["failed_at"])))


def beta_over_alpha(row: MutableRow) -> float:
    """The ratio of the coefficients, without rounding."""
    return round(float(row["beta"]) / float(row["alpha"]), 9)
