"""Figures of trained networks: energies layer by layer, a scalar against a vector beta, other measures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from analysis.measures.registry import MEASURES, find_measure
from studies.oversmoothing.figures import ENERGY, Curve, curves_chart, curves_figure, measures_figure
from studies.oversmoothing.rows import BAND
from studies.runs.tables import MutableRow
from studies.trained_energy.rows import EnergyTable
from studies.trained_energy.subjects import CLASSICAL, LINEAR, Subject, layer_count

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun

#: Stages that are drawn: solid and dashed.
DRAWN = {"end": "trained", "start": "untrained"}
#: Our columns for the measures drawn beside the energy.
OTHERS = {"normalised": "normalised_energy", "mad": "mad", "rank": "effective_rank"}


def families(table: EnergyTable) -> dict[str, tuple[Subject, ...]]:
    """Panels of the first figure, and the networks in each."""
    vectors = [subject for subject in table.subjects if subject.kind == "VC"]
    panels = {
        "compared methods": tuple(subject for subject in table.subjects if subject.is_compared),
        "GREAD, linear reactions (VC)": tuple(s for s in vectors if s.name in LINEAR),
        "GREAD, classical reactions (VC)": tuple(s for s in vectors if s.name in CLASSICAL),
        "GREAD, other reactions (VC)": tuple(s for s in vectors if s.name not in (*LINEAR, *CLASSICAL)),
    }
    return {name: subjects for name, subjects in panels.items() if subjects}


def draw_all(run: StudyRun, table: EnergyTable) -> None:
    """Energies by family, a scalar against a vector beta, and the measures that do not depend on size."""
    s = run.settings
    common = (
        f"{s['graphs']} graphs of {sum(s['sizes'])} nodes, {layer_count(s)} layers (Euler, step {s['step']:g}), "
        f"{s['epochs']} epochs. Lines: medians of the networks that have not diverged, bands: 10 to 90 %; "
        "pale: some have diverged, cross: all have; ×k/n in a legend: k of n have."
    )
    label = find_measure("dirichlet_energy").formula
    rounds = f" H2GCN is trained with {s['rounds']} rounds; further ones, which have no parameters, are added."
    rounds = rounds if "h2gcn" in s["models"] else ""
    for name, make, title, more, options in (
        ("energy", family_curves, "Dirichlet energy, layer by layer",
         f"Solid: trained, dashed: the same networks before training.{rounds}", {"columns": 3}),
        ("energy_beta", beta_curves, "A scalar beta (SC) against a vector (VC)",
         "Solid: trained, dashed: before training. Grey: between the two trained lines.", {"shaded": True}),
    ):  # fmt: skip
        drawn = make(table)
        if not drawn:
            continue
        picture = curves_figure(drawn, ylabel=label, title=title, xlabel="layer", **options)
        chart = curves_chart(drawn, y_label=ENERGY, x_label="layer")
        run.figure(name, picture, f"{title}. {more} {common}", curve_rows(drawn), chart)
    drawn = measure_curves(table)
    title = "Other measures of the trained networks"
    picture = measures_figure(drawn, MEASURES, title=title, xlabel="layer")
    chart = curves_chart(drawn, y_label="measure", x_label="layer", measures=MEASURES)
    run.figure("measures", picture, f"{title}. Compared methods dashed. {common}", curve_rows(drawn), chart)


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
        for family, subjects in families(table).items()
        for colour, subject in enumerate(subjects)
        for dash, (stage, word) in enumerate(DRAWN.items())
    ]


def beta_curves(table: EnergyTable) -> list[Curve]:
    """One panel a reaction: the scalar and the vector, trained first."""
    return [
        make_line(table, Subject(name, kind), stage, f"{kind}, {word}", name, colour, dash)
        for name in dict.fromkeys(subject.name for subject in table.subjects if not subject.is_compared)
        for dash, (stage, word) in enumerate(DRAWN.items())
        for colour, kind in enumerate(("SC", "VC"))
    ]


def measure_curves(table: EnergyTable) -> list[Curve]:
    """Trained networks, one panel a measure."""
    subjects = [subject for family in families(table).values() for subject in family]
    return [
        make_line(table, subject, "end", subject.name, measure, k, k // 7 * 2 + subject.is_compared, ours)
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
