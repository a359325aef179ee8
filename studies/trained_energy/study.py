"""The paper's figures of the Dirichlet energy as it ran them: trained networks of 40 layers, here on many graphs."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.measures.state_measures import MEASURES
from gread.datasets.node_data import NodeData
from studies.oversmoothing.figures import Curve, curves_figure, measures_figure
from studies.oversmoothing.rows import BAND
from studies.runs.tables import MutableRow
from studies.trained_energy.networks import (
    BASELINES,
    CLASSICAL,
    LINEAR,
    REACTIONS,
    STAGES,
    SUBJECTS,
    NetworkCourse,
    Subject,
    course,
    layer_count,
    make_graphs,
)
from studies.trained_energy.rows import EnergyTable, layer_rows
from studies.trained_energy.verdicts import verdicts

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

#: Panels of the first figure, and the networks in each.
FAMILIES: Mapping[str, tuple[Subject, ...]] = {
    "compared methods": tuple(map(Subject, BASELINES)),
    "GREAD, linear reactions (VC)": tuple(Subject(name, "VC") for name in LINEAR),
    "GREAD, classical reactions (VC)": tuple(Subject(name, "VC") for name in CLASSICAL),
}
#: Stages that are drawn: solid and dashed.
DRAWN = {"end": "trained", "start": "untrained"}
#: Our columns for the measures drawn beside the energy.
OTHERS = {"normalised": "normalised_energy", "mad": "mad", "rank": "effective_rank"}


def settings(small: bool) -> dict[str, Any]:
    """The published graph and training, what the paper leaves open, and the size of the run."""
    graph, own = (
        tomllib.loads(resources.files("studies").joinpath(f"data/{name}.toml").read_text(encoding="utf-8"))
        for name in ("oversmoothing", "trained_energy")
    )
    return {**graph["published"], **own["published"], **own["choice"], **own["small" if small else "full"]}


def run(run: StudyRun) -> None:
    """Train every network on every graph, draw its energies before and after, answer the paper's statements."""
    seeds = [int(run.generator(f"graph {k}").integers(2**31)) for k in range(run.settings["graphs"])]
    datas = make_graphs(run.settings, seeds)
    layers: list[MutableRow] = []
    results: list[MutableRow] = []
    for subject in run.progress(SUBJECTS, "networks"):
        found, ended = _trained(run, subject, datas, seeds)
        layers += found
        results += ended
    table = EnergyTable.make(layers, results)
    _say_settings(run)
    _draw(run, table)
    summary = summary_rows(table)
    run.table("networks", summary, CAPTION)
    answers = verdicts(table, run.settings["rounds"])
    for answer in answers:
        run.verdict(answer.statement, answer.answer, answer.evidence)
    run.say("What was found", " ".join(answer.summary for answer in answers))
    run.say("What training changes", _changes(table))
    run.results(summary)


def _trained(
    run: StudyRun, subject: Subject, datas: list[NodeData], seeds: list[int]
) -> tuple[list[MutableRow], list[MutableRow]]:
    """Measures and results of one kind of network, trained once, and only where a part is missing."""

    @cache
    def made() -> NetworkCourse:
        return course(subject, run.settings, datas, seeds, run.device)

    found = run.part(f"layers-{subject.key}", lambda: layer_rows(subject, made(), datas, run.settings["step"]))
    return found, run.part(f"networks-{subject.key}", lambda: made().results)


# ---------------------------------------------------------------------- figures
def _draw(run: StudyRun, table: EnergyTable) -> None:
    """Energies by family, a scalar against a vector beta, and the measures that do not depend on size."""
    s = run.settings
    common = (
        f"{s['graphs']} graphs of {sum(s['sizes'])} nodes, {layer_count(s)} layers (Euler, step {s['step']:g}), "
        f"{s['epochs']} epochs. Lines: medians of the networks that have not diverged, bands: 10 to 90 %; "
        "pale: some have diverged, cross: all have; ×k/n in a legend: k of n have."
    )
    label = MEASURES["dirichlet_energy"].latex
    for name, make, title, more, options in (
        ("energy", family_curves, "Dirichlet energy, layer by layer",
         f"Solid: trained, dashed: the same networks before training. H2GCN is trained with {s['rounds']} rounds; "
         "further ones, which have no parameters, are added.", {"columns": 3}),
        ("energy_beta", beta_curves, "A scalar beta (SC) against a vector (VC)",
         "Solid: trained, dashed: before training. Grey: between the two trained lines.", {"shaded": True}),
    ):  # fmt: skip
        drawn = make(table)
        picture = curves_figure(drawn, ylabel=label, title=title, xlabel="layer", **options)
        run.figure(name, picture, f"{title}. {more} {common}", curve_rows(drawn))
    drawn = measure_curves(table)
    title = "Other measures of the trained networks"
    picture = measures_figure(drawn, MEASURES, title=title, xlabel="layer")
    run.figure("measures", picture, f"{title}. Compared methods dashed. {common}", curve_rows(drawn))


def make_line(
    table: EnergyTable, subject: Subject, stage: str, name: str, group: str, colour: int = 0, dash: int = 0,
    measure: str = "energy",
) -> Curve:  # fmt: skip
    """Median and band over the graphs of a measure at every layer; a network that diverged is left out."""
    values = table.values(subject, stage, measure)
    alive = np.isfinite(table.values(subject, stage)).sum(1)
    summary = np.full((3, len(values)), np.nan)
    for k, row in enumerate(values):
        there = row[np.isfinite(row)]
        if there.size:
            summary[:, k] = np.quantile(there, (0.5, *BAND))
    layers = np.arange(len(values), dtype=float)
    median, low, high = summary
    return Curve(name, group, layers, median, low, high, alive, values.shape[1], colour, dash)


def family_curves(table: EnergyTable) -> list[Curve]:
    """One panel a family, trained and untrained."""
    return [
        make_line(table, subject, stage, f"{subject.name}, {word}", family, colour, dash)
        for family, subjects in FAMILIES.items()
        for colour, subject in enumerate(subjects)
        for dash, (stage, word) in enumerate(DRAWN.items())
    ]


def beta_curves(table: EnergyTable) -> list[Curve]:
    """One panel a reaction: the scalar and the vector, trained first."""
    return [
        make_line(table, Subject(name, kind), stage, f"{kind}, {word}", name, colour, dash)
        for name in REACTIONS
        for dash, (stage, word) in enumerate(DRAWN.items())
        for colour, kind in enumerate(("SC", "VC"))
    ]


def measure_curves(table: EnergyTable) -> list[Curve]:
    """Trained networks, one panel a measure."""
    subjects = [subject for family in FAMILIES.values() for subject in family]
    return [
        make_line(table, subject, "end", subject.name, measure, k, k // 7 * 2 + (k < len(BASELINES)), ours)
        for ours, measure in OTHERS.items()
        for k, subject in enumerate(subjects)
    ]


def curve_rows(curves: Sequence[Curve]) -> list[MutableRow]:
    """The numbers drawn in a figure."""
    return [
        {
            "panel": c.group, "curve": c.name, "layer": int(c.times[k]), "median": float(c.mean[k]),
            "low": float(c.low[k]), "high": float(c.high[k]), "alive": int(c.alive[k]), "networks": c.members,
        }
        for c in curves
        for k in range(len(c.times))
    ]  # fmt: skip


# ---------------------------------------------------------------------- text and table
CAPTION = (
    "Medians over the graphs whose network has not diverged. E_0, E_5, E_T: Dirichlet energy at the start, "
    "after five layers and at the last; normalised: (N/2) E/|H|^2 at the last layer over the first; failed: trainings "
    "whose loss diverged; left: networks without a state at the last layer; accuracy: test nodes, at the best "
    "validation epoch, in percent, mean and population standard deviation over the networks that had such an epoch; "
    "alpha, beta: after training."
)


def summary_rows(table: EnergyTable) -> list[MutableRow]:
    """One row per network and stage."""
    rows: list[MutableRow] = []
    for subject in SUBJECTS:
        accuracy = 100 * table.column(subject, "test_accuracy")[table.column(subject, "best_epoch") > 0]
        failed = int((~table.trained(subject)).sum())
        for stage in STAGES:
            energy, rough = table.values(subject, stage), table.values(subject, stage, "normalised")
            fifth = min(5, len(energy) - 1)
            rows.append({
                "network": subject.name, "beta": subject.kind, "stage": stage, "graphs": energy.shape[1],
                "failed": failed, "left": int(np.isnan(energy[-1]).sum()), "E_0": _median(energy[0]),
                "E_5": _median(energy[fifth]), "E_T": _median(energy[-1]), "E_T/E_0": _median(energy[-1] / energy[0]),
                "normalised": _median(rough[-1] / rough[0]), "mad_T": _median(table.values(subject, stage, "mad")[-1]),
                "rank_T": _median(table.values(subject, stage, "rank")[-1]),
                "accuracy": round(float(accuracy.mean()), 2) if accuracy.size else float("nan"),
                "std": round(float(accuracy.std()), 2) if accuracy.size else float("nan"),
                "alpha": _median(table.column(subject, "alpha")),
                "beta_least": _median(table.column(subject, "beta_least")),
                "beta_largest": _median(table.column(subject, "beta_largest")),
            })  # fmt: skip
    return rows


def _median(values: np.ndarray) -> float:
    """The median of the numbers that there are, to six digits; nan without any."""
    there = values[np.isfinite(values)]
    return float(f"{np.median(there):.6g}") if there.size else float("nan")


def _changes(table: EnergyTable) -> str:
    """How far training moves the energy at the last layer, in factors of ten."""
    moved = []
    for subject in SUBJECTS:
        before, after = (table.values(subject, stage)[-1] for stage in ("start", "end"))
        there = (before > 0) & (after > 0)
        if there.any():
            decades = np.log10(after[there]) - np.log10(before[there])
            kind = "" if subject.kind == "-" else f" {subject.kind}"
            moved.append(f"{subject.name}{kind} {np.median(decades):+.2f} ({int(there.sum())} graphs)")
    return (
        "Median change of log10 of the energy at the last layer by training, on graphs where both energies are "
        f"positive numbers: {', '.join(moved)}."
    )


def _say_settings(run: StudyRun) -> None:
    s = run.settings
    run.say(
        "What is run",
        f"{s['graphs']} contextual stochastic block models as in the paper's appendix, each with one stratified split "
        f"({s['train']:.0%} training, {s['val']:.0%} validation nodes), and on each of them every network with the "
        f"paper's settings: {s['epochs']} epochs of Adam, learning rate {s['learning_rate']:g}, weight decay "
        f"{s['weight_decay']:g}, input dropout {s['input_dropout']:g}, {s['hidden']} hidden channels, "
        f"{layer_count(s)} layers, which for equations are Euler's steps of {s['step']:g}. GREAD and plain diffusion "
        f"use the original adjacency, {s['normalisation']}, self-loops of weight {s['self_loops']:g}; GRAND is "
        "diffusion with attention computed from H(0). Coefficients start as the authors' code starts them: alpha and a "
        "scalar beta at 0.5, a vector beta drawn from U(-1, 1).\n\n"
        "Layer 0 is the state before the first layer: the features for GCN and GAT, the encoded features for the "
        "others. The paper does not say which parameters its figure shows; drawn and judged are those after the last "
        "epoch, and the evidence tells also what the best validation epoch gives. All graphs of an equation are "
        "trained as one ensemble, except with attention, in single precision; states are computed from the parameters "
        "in double precision. "
        "A network has diverged when an entry of its state is beyond what single precision holds, and one "
        "whose training failed has no trained states.",
    )
