"""The paper's figures of the Dirichlet energy as it ran them: trained networks of 40 layers, here on many graphs."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from gread.datasets.node_data import NodeData
from gread.settings.model_records import find_model
from rdgraph.errors import InvalidArgument
from studies.runs.cell_work import each_cell
from studies.runs.tables import MutableRow
from studies.trained_energy.figures import draw_all
from studies.trained_energy.networks import STAGES, NetworkCourse, course
from studies.trained_energy.rows import EnergyTable, layer_rows
from studies.trained_energy.subjects import Subject, layer_count, make_graphs, make_subjects
from studies.trained_energy.verdicts import verdicts

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun


#: Settings of the graphs, and of them and the trainings what the page calls otherwise than the settings do.
GRAPH = ("sizes", "means", "sigma", "channels", "within", "between")
WORDS = {"sizes": "sizes of classes", "time": "layers", "hidden": "hidden channels"}


def settings(small: bool) -> dict[str, Any]:
    """The published graph and training, what the paper leaves open, and the size of the run."""
    own = _settings_file("trained_energy")
    return {**published_settings(), **own["choice"], **own["small" if small else "full"]}


def published_settings() -> dict[str, Any]:
    """The graph and the training that the paper prints."""
    return {**_settings_file("oversmoothing")["published"], **_settings_file("trained_energy")["published"]}


def _settings_file(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files("studies").joinpath(f"data/{name}.toml").read_text(encoding="utf-8"))


def run(run: StudyRun) -> None:
    """Train every network on every graph, draw its energies before and after, answer the paper's statements."""
    seeds = [int(run.generator(f"graph {k}").integers(2**31)) for k in range(run.settings["graphs"])]
    datas = make_graphs(run.settings, seeds)
    subjects = make_subjects(run.settings)
    if not subjects:
        raise InvalidArgument("expected a network or a reaction, got neither; name some in models or reactions")
    layers: list[MutableRow] = []
    results: list[MutableRow] = []
    for _, (found, ended) in each_cell(run, subjects, partial(_trained, datas=datas, seeds=seeds), "networks"):
        layers += found
        results += ended
    table = EnergyTable.make(subjects, layers, results)
    run.say("What is run", about(run.settings))
    draw_all(run, table)
    summary = summary_rows(table)
    run.table("networks", summary, CAPTION)
    answers = verdicts(table, run.settings["rounds"])
    for answer in answers:
        run.verdict(answer.statement, answer.answer, answer.evidence)
    first, *further = [answer.summary for answer in answers if answer.summary]
    run.answer(first)
    run.say("What was found", " ".join(further))
    run.say("What training changes", _changes(table))
    run.results(summary)


def _trained(
    run: StudyRun, subject: Subject, *, datas: list[NodeData], seeds: list[int]
) -> tuple[list[MutableRow], list[MutableRow]]:
    """Measures and results of one kind of network, trained once, and only where a part is missing."""

    @cache
    def made() -> NetworkCourse:
        return course(subject, run.settings, datas, seeds, run.device)

    found = run.part(f"layers-{subject.key}", lambda: layer_rows(subject, made(), datas, run.settings["step"]))
    return found, run.part(f"networks-{subject.key}", lambda: made().results)


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
    for subject in table.subjects:
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
    for subject in table.subjects:
        before, after = (table.values(subject, stage)[-1] for stage in ("start", "end"))
        there = (before > 0) & (after > 0)
        if there.any():
            decades = np.log10(after[there]) - np.log10(before[there])
            kind = "" if subject.kind == "-" else f" {subject.kind}"
            moved.append(f"{subject.name}{kind} {np.median(decades):+z.2f} ({int(there.sum())} graphs)")
    return (
        "Median change of log10 of the energy at the last layer by training, on graphs where both energies are "
        f"positive numbers: {', '.join(moved)}."
    )


def _exceptions(s: Mapping[str, Any], *, of_graph: bool) -> str:
    """The settings that are not as published, of the graphs or of the trainings, as words behind a sentence."""
    published = published_settings()
    names = [name for name in published if (name in GRAPH) == of_graph and s[name] != published[name]]
    return f" but for {', '.join(WORDS.get(name, name.replace('_', ' ')) for name in names)}" if names else ""


def about(s: Mapping[str, Any]) -> str:
    """Which networks were trained on which graphs with which settings, and what a layer is."""
    names = ", ".join(find_model(name).title for name in s["models"]) or "none"
    return (
        f"{s['graphs']} contextual stochastic block models as in the paper's appendix{_exceptions(s, of_graph=True)}, "
        f"each with one stratified split ({s['train']:.0%} training, {s['val']:.0%} validation nodes), and on each of "
        f"them every network with the paper's settings{_exceptions(s, of_graph=False)}: {s['epochs']} epochs of Adam, "
        f"learning rate {s['learning_rate']:g}, weight decay {s['weight_decay']:g}, input dropout "
        f"{s['input_dropout']:g}, {s['hidden']} hidden channels, {layer_count(s)} layers where the number of layers is "
        f"a setting, which for equations are Euler's steps of {s['step']:g}. Networks by name: {names}. GREAD and "
        f"plain diffusion use the {s['adjacency']} adjacency, {s['normalisation']}, self-loops of weight "
        f"{s['self_loops']:g}; GRAND is diffusion with attention computed from H(0). Coefficients start as the "
        "authors' code starts them: alpha and a scalar beta at 0.5, a vector beta drawn from U(-1, 1).\n\n"
        "Layer 0 is the state before the first layer: the features for networks whose first layer takes them, as GCN "
        "and GAT, the encoded features for the others. The paper does not say which parameters its figure shows; drawn "
        "and judged are those after the last epoch, and the evidence tells also what the best validation epoch gives. "
        "All graphs of a network are trained as one ensemble in single precision; states are computed from the "
        "parameters in double precision. A network has diverged when an entry of its state is beyond what single "
        "precision holds, and one whose training failed has no trained states."
    )
