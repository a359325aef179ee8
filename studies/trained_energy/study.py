"""The paper's figures of the Dirichlet energy as it ran them: trained networks of 40 layers, here on many graphs."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.measures.measure_records import MEASURES
from gread.datasets.node_data import NodeData
from gread.settings.model_records import find_model
from rdgraph.errors import InvalidArgument
from studies.oversmoothing.energy_figures import ENERGY, Curve, curves_chart
from studies.oversmoothing.rows import GONE, Answer, median
from studies.runs.cell_work import each_cell
from studies.runs.tables import MutableRow
from studies.runs.uncertainty import FAILS, HOLDS, UNDECIDED, decide, interval
from studies.runs.word_sheets import WordSheet
from studies.trained_energy.networks import (
    CLASSICAL,
    LINEAR,
    PLAIN,
    STAGES,
    EnergyTable,
    NetworkCourse,
    Subject,
    course,
    layer_count,
    layer_rows,
    make_graphs,
    make_subjects,
)

if TYPE_CHECKING:
    from studies.runs.study_run import StudyRun


# ---------------------------------------------------------------------- figures
# Figures of trained networks: energies layer by layer, a scalar against a vector beta, other measures.

SHEET = WordSheet("trained_energy")
#: Stages that are drawn: solid and dashed.
DRAWN = {"end": "trained", "start": "untrained"}
#: Columns of the measures drawn in addition to the energy.
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
    common = SHEET.text("drawn", s=s, nodes=sum(s["sizes"]), layers=layer_count(s))
    rounds = f" H2GCN is trained with {s['rounds']} rounds; further ones, which have no parameters, are added."
    rounds = rounds if "h2gcn" in s["models"] else ""
    for name, make, title, more, columns in (
        ("energy", family_curves, "Dirichlet energy, layer by layer",
         f"Solid: trained, dashed: the same networks before training.{rounds}", 3),
        ("energy_beta", beta_curves, "A scalar beta (SC) against a vector (VC)",
         "Solid: trained, dashed: before training.", 4),
    ):  # fmt: skip
        drawn = make(table)
        if not drawn:
            continue
        chart = curves_chart(drawn, y_label=ENERGY, x_label="layer", columns=columns)
        run.figure(name, chart, f"{title}. {more} {common}", curve_rows(drawn))
    drawn = measure_curves(table)
    chart = curves_chart(drawn, y_label="measure", x_label="layer", measures=MEASURES)
    caption = f"Other measures of the trained networks. Compared methods dashed. {common}"
    run.figure("measures", chart, caption, curve_rows(drawn))


def make_line(
    table: EnergyTable, subject: Subject, stage: str, name: str, group: str, colour: int = 0, dash: int = 0,
    measure: str = "energy",
) -> Curve:  # fmt: skip
    """Median and band over the graphs of a measure at every layer; a network that diverged is left out."""
    values = table.values(subject, stage, measure)
    alive = np.isfinite(table.values(subject, stage)).sum(1)
    return Curve.over(name, group, np.arange(len(values), dtype=float), values, colour, dash, alive)


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


# ---------------------------------------------------------------------- verdicts
# The paper's statements about the energies of trained networks, decided by counting random graphs.
#
# A statement is true or not on each graph; it holds if it is true on most graphs, fails if it is not on most, and is
# undecided where the 95 % interval of the share contains one half.

#: The paper's "first five layers".
FIRST = 5
#: Reactions of which the paper says that a vector beta conserves more energy.
VECTORS = ("F", "AC", "ST", "FB")
#: What the paper says of every reaction.
BOUNDED = ': "the Dirichlet energy of GREAD can be bounded in time thanks to the reaction term"'
STAGE_WORDS = {"start": "untrained", "best": "best epoch", "end": "trained"}


def count(truths: np.ndarray) -> str:
    """k of n graphs with the 95 % interval of the share, in words."""
    seen, total = int(np.sum(truths)), len(truths)
    if not total:
        return "no graph"
    low, high = interval(seen, total)
    return f"{seen} of {total} graphs ({low:.2f} to {high:.2f})"


def verdicts(table: EnergyTable, rounds: int) -> list[Answer]:
    """Every statement about networks that were trained with its answer: the paper's in its order, then others."""
    reactions = [subject.name for subject in table.subjects if subject.kind == "VC"]
    listed = {Subject(name) for name in ("GCN", "GAT", "H2GCN", "GRAND", PLAIN)}
    others = [subject for subject in table.subjects if subject.is_compared and subject not in listed]
    return [
        *(vanishes(name, table) for name in ("GCN", "GAT") if Subject(name) in table),
        *([delays(table)] if {Subject("GRAND"), Subject("GCN")} <= set(table.subjects) else []),
        *(bounded(name, table) for name in reactions),
        *([deeper(table, rounds)] if Subject("H2GCN") in table else []),
        *(conserves(name, table) for name in VECTORS if name in reactions),
        *(keeps(subject, table) for subject in others),
    ]


# ---------------------------------------------------------------------- baselines
def vanishes(name: str, table: EnergyTable) -> Answer:
    """Is less than a thousandth of the features' energy left after five layers?"""
    truths, parts = {}, []
    for stage in STAGES:
        energy = table.values(Subject(name), stage)
        fifth = min(FIRST, len(energy) - 1)
        truths[stage] = energy[fifth] <= GONE * energy[0]
        parts.append(
            f"{STAGE_WORDS[stage]}: {count(truths[stage])}, median E_{fifth}/E_0 {_share(energy, fifth)}, last layer "
            f"{_share(energy, -1)}, exactly zero by then on {int((energy[-1] == 0).sum())}"
        )
    return Answer.of(
        SHEET, "vanishes", decide(truths["end"]), name=name, threshold=GONE, parts="; ".join(reversed(parts)),
        gone=int(truths["end"].sum()), all=len(truths["end"]),
    )  # fmt: skip


def delays(table: EnergyTable) -> Answer:
    """Does GRAND keep a larger share of its first energy than GCN on the same graph, and yet lose some of it?"""
    grand, gcn = (table.values(Subject(name), "end") for name in ("GRAND", "GCN"))
    fifth = min(FIRST, len(grand) - 1)
    later = grand[fifth] / grand[0] > gcn[fifth] / gcn[0]
    falls = grand[-1] < grand[0]
    gone = grand[-1] <= GONE * grand[0]
    return Answer.of(
        SHEET, "delays", decide(later & falls), fifth=fifth, slower=count(later & falls), grand=_share(grand, fifth),
        gcn=_share(gcn, fifth), grand_last=_share(grand, -1), gcn_last=_share(gcn, -1), threshold=GONE,
        lost=count(gone),
    )  # fmt: skip


def deeper(table: EnergyTable, rounds: int) -> Answer:
    """Are there energies of H2GCN at every depth?"""
    energy, rough = (table.values(Subject("H2GCN"), "end", measure) for measure in ("energy", "normalised"))
    there = np.isfinite(energy).all(0)
    deepest = len(energy) - 1
    return Answer.of(
        SHEET, "deeper", FAILS if there.any() else UNDECIDED, deepest=deepest, there=count(there), rounds=rounds,
        last=_share(energy, -1), rough=_share(rough, -1),
    )  # fmt: skip


# ---------------------------------------------------------------------- within bounds
def within(subject: Subject, table: EnergyTable) -> tuple[np.ndarray, str]:
    """On which graphs the energy stays within three decades of its start at every layer after training, and in words
    how it is at all stages."""
    parts, result = [], {}
    for stage in STAGES:
        energy = table.values(subject, stage)
        with np.errstate(invalid="ignore"):
            low, high = (energy >= GONE * energy[0]).all(0), (energy <= energy[0] / GONE).all(0)
        lost = np.isnan(energy).any(0)
        result[stage] = low & high & ~lost
        parts.append(
            f"{STAGE_WORDS[stage]}: {count(result[stage])}, {int((~low & ~lost).sum())} fell below, "
            f"{int((~high & ~lost).sum())} rose above, {int(lost.sum())} diverged"
        )
    evidence = f"energy between {GONE:g} and {1 / GONE:g} times its start at every layer; " + "; ".join(reversed(parts))
    return result["end"], evidence


def keeps(subject: Subject, table: EnergyTable) -> Answer:
    """Does the energy of a network stay within three decades of its start? A question of ours."""
    stored, evidence = within(subject, table)
    energy = table.values(subject, "end")
    return Answer.of(
        SHEET, "keeps", decide(stored), subject=subject, evidence=evidence, last=_share(energy, -1),
        depth=len(energy) - 1, kept=int(stored.sum()), all=len(stored),
    )  # fmt: skip


def bounded(name: str, table: EnergyTable) -> Answer:
    """Does the energy of a reaction stay within three decades of its start at every layer?"""
    subject = Subject(name, "VC")
    stored, evidence = within(subject, table)
    plain, subset = (table.values(s, "end") for s in (Subject(PLAIN), subject))
    more = np.nan_to_num(subset[-1] / subset[0]) > plain[-1] / plain[0]
    return Answer(
        f"{name}{BOUNDED}",
        decide(stored),
        f"vector beta, {evidence}"
        + f". Median E_T/E_0 {_share(subset, -1)}; plain diffusion {_share(plain, -1)}, which is less on {count(more)}"
        * bool(np.isfinite(subset[-1]).any()),
        f"{name} keeps its energy within three decades on {int(stored.sum())} of {len(stored)} graphs.",
    )


def kept_energies(answers: Sequence[Answer]) -> str:
    """For which reactions the energy stays bounded, in one sentence; empty if no reaction was asked."""
    asked = [(a.statement.removesuffix(BOUNDED), a.answer) for a in answers if BOUNDED in a.statement]
    listed = {word: ", ".join(name for name, w in asked if w == word) for word in (HOLDS, FAILS, UNDECIDED)}
    words = "; ".join(f"{word} for {names}" for word, names in listed.items() if names)
    return f"The energy stays within three decades of its start on most graphs: {words}." if asked else ""


def conserves(name: str, table: EnergyTable) -> Answer:
    """Has a vector beta more energy left at the last layer than a scalar one, on the same graph?"""
    scalar, vector = (Subject(name, kind) for kind in ("SC", "VC"))
    parts, truths = [], {}
    for stage in STAGES:
        remaining, right = (table.values(s, stage)[-1] for s in (scalar, vector))
        both = np.isfinite(remaining) & np.isfinite(right)
        truths[stage] = right[both] > remaining[both]
        lost = int(np.isnan(remaining).sum()), int(np.isnan(right).sum())
        parts.append(f"{STAGE_WORDS[stage]}: more on {count(truths[stage])}; diverged: {lost[0]} SC, {lost[1]} VC")
    seen = truths["end"]
    return Answer.of(
        SHEET, "conserves", decide(seen), name=name, parts="; ".join(reversed(parts)), more=int(seen.sum()),
        all=len(seen),
    )  # fmt: skip


def _share(energy: np.ndarray, layer: int) -> str:
    """The median over the graphs of the share of the first energy that is left at a layer."""
    ratio = energy[layer] / energy[0]
    there = ratio[np.isfinite(ratio)]
    return f"{np.median(there):.2g}" if there.size else "unknown"


# ---------------------------------------------------------------------- study
#: Settings of the graphs, and of them and the trainings what the page calls otherwise than the settings do.
GRAPH = ("sizes", "means", "sigma", "channels", "within", "between")
SETTING_WORDS = {"sizes": "sizes of classes", "time": "layers", "hidden": "hidden channels"}


def settings(small: bool) -> dict[str, Any]:
    """The published graph and training, what the paper leaves open, and the size of the run."""
    subset = _settings_file("trained_energy")
    return {**published_settings(), **subset["choice"], **subset["small" if small else "full"]}


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
    for _, (result, ended) in each_cell(run, subjects, partial(_trained, datas=datas, seeds=seeds), "networks"):
        layers += result
        results += ended
    table = EnergyTable.make(subjects, layers, results)
    run.say("What is run", about(run.settings))
    draw_all(run, table)
    summary = summary_rows(table)
    run.table("networks", summary, SHEET.text("networks"))
    answers = verdicts(table, run.settings["rounds"])
    for answer in answers:
        run.verdict(answer.statement, answer.answer, answer.evidence)
    first, *further = [answer.summary for answer in answers if answer.summary]
    run.answer(" ".join(filter(None, (first, kept_energies(answers)))))
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

    result = run.part(f"layers-{subject.key}", lambda: layer_rows(subject, made(), datas, run.settings["step"]))
    return result, run.part(f"networks-{subject.key}", lambda: made().results)


# ---------------------------------------------------------------------- text and table
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
                "failed": failed, "left": int(np.isnan(energy[-1]).sum()), "E_0": median(energy[0]),
                "E_5": median(energy[fifth]), "E_T": median(energy[-1]), "E_T/E_0": median(energy[-1] / energy[0]),
                "normalised": median(rough[-1] / rough[0]), "mad_T": median(table.values(subject, stage, "mad")[-1]),
                "rank_T": median(table.values(subject, stage, "rank")[-1]),
                "accuracy": round(float(accuracy.mean()), 2) if accuracy.size else float("nan"),
                "std": round(float(accuracy.std()), 2) if accuracy.size else float("nan"),
                "alpha": median(table.column(subject, "alpha")),
                "beta_least": median(table.column(subject, "beta_least")),
                "beta_largest": median(table.column(subject, "beta_largest")),
            })  # fmt: skip
    return rows


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
    return SHEET.text("changes", moved=", ".join(moved))


def _exceptions(s: Mapping[str, Any], *, of_graph: bool) -> str:
    """The settings that are not as published, of the graphs or of the trainings, as words behind a sentence."""
    published = published_settings()
    names = [name for name in published if (name in GRAPH) == of_graph and s[name] != published[name]]
    return f" but for {', '.join(SETTING_WORDS.get(name, name.replace('_', ' ')) for name in names)}" if names else ""


def about(s: Mapping[str, Any]) -> str:
    """Which networks were trained on which graphs with which settings, and what a layer is."""
    names = ", ".join(find_model(name).title for name in s["models"]) or "none"
    return SHEET.text(
        "about", s=s, graphs=_exceptions(s, of_graph=True), trainings=_exceptions(s, of_graph=False),
        layers=layer_count(s), names=names,
    )  # fmt: skip
