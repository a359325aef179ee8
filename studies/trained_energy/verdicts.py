"""The paper's statements about the energies of trained networks, decided by counting random graphs.

A statement is true or not on each graph; it holds if it is true on most graphs, fails if it is not on most, and is
undecided where the 95 % interval of the share contains one half.
"""

from __future__ import annotations

import numpy as np

from studies.oversmoothing.answers import GONE, Answer
from studies.runs.uncertainty import FAILS, UNDECIDED, decide, interval
from studies.trained_energy.networks import STAGES
from studies.trained_energy.rows import EnergyTable
from studies.trained_energy.subjects import PLAIN, Subject

#: The paper's "first five layers".
FIRST = 5
#: Reactions of which the paper says that a vector beta conserves more energy.
VECTORS = ("F", "AC", "ST", "FB")
WORDS = {"start": "untrained", "best": "best epoch", "end": "trained"}


def count(truths: np.ndarray) -> str:
    """k of n graphs with the interval of the share, in words."""
    seen, total = int(np.sum(truths)), len(truths)
    if not total:
        return "no graph"
    low, high = interval(seen, total)
    return f"{seen} of {total} graphs (95 % interval of the share {low:.2f} to {high:.2f})"


def verdicts(table: EnergyTable, rounds: int) -> list[Answer]:
    """Every statement about networks that were trained with its answer: the paper's in its order, then others."""
    reactions = [subject.name for subject in table.subjects if subject.kind == "VC"]
    told = {Subject(name) for name in ("GCN", "GAT", "H2GCN", "GRAND", PLAIN)}
    others = [subject for subject in table.subjects if subject.is_compared and subject not in told]
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
            f"{WORDS[stage]}: {count(truths[stage])}, median E_{fifth}/E_0 {_share(energy, fifth)}, last layer "
            f"{_share(energy, -1)}, exactly zero by then on {int((energy[-1] == 0).sum())}"
        )
    return Answer(
        f'{name}: "the Dirichlet energy decays exponentially to zero in the first five layers"',
        decide(truths["end"]),
        f"at most {GONE:g} of the features' energy left after five layers; " + "; ".join(reversed(parts)),
        f"Of {name}, {int(truths['end'].sum())} of {len(truths['end'])} trained networks have lost all but a "
        f"thousandth of the energy after five layers.",
    )


def delays(table: EnergyTable) -> Answer:
    """Does GRAND keep a larger share of its first energy than GCN on the same graph, and yet lose some of it?"""
    grand, gcn = (table.values(Subject(name), "end") for name in ("GRAND", "GCN"))
    fifth = min(FIRST, len(grand) - 1)
    later = grand[fifth] / grand[0] > gcn[fifth] / gcn[0]
    falls = grand[-1] < grand[0]
    gone = grand[-1] <= GONE * grand[0]
    return Answer(
        'GRAND: "it can delay the oversmoothing"',
        decide(later & falls),
        f"trained: a larger share of the energy than GCN is left after {fifth} layers and less than at the start after "
        f"the last one on {count(later & falls)}; median E_{fifth}/E_0 {_share(grand, fifth)} against "
        f"{_share(gcn, fifth)}, E_T/E_0 {_share(grand, -1)} against {_share(gcn, -1)}; at the last layer at most "
        f"{GONE:g} is left on {count(gone)}",
        f"GRAND's energy falls more slowly than GCN's, to {_share(grand, -1)} of its start in the median.",
    )


def deeper(table: EnergyTable, rounds: int) -> Answer:
    """Are there energies of H2GCN at every depth?"""
    energy, rough = (table.values(Subject("H2GCN"), "end", measure) for measure in ("energy", "normalised"))
    there = np.isfinite(energy).all(0)
    deepest = len(energy) - 1
    return Answer(
        'H2GCN: "it is impossible to report on deeper layers due to memory limitations"',
        FAILS if there.any() else UNDECIDED,
        f"energies at all of {deepest} rounds on {count(there)}: each round doubles the columns of the state, but the "
        "inner products of its rows, which decide the energy, are nodes x nodes at any depth. Trained with "
        f"{rounds} rounds; rounds have no parameters of their own. Median E_T/E_0 {_share(energy, -1)}, relative to "
        f"|H|^2 {_share(rough, -1)}",
        f"H2GCN's energies can be had at any depth: at {deepest} rounds the energy is {_share(energy, -1)} times its "
        f"start in the median, and {_share(rough, -1)} times relative to |H|^2.",
    )


# ---------------------------------------------------------------------- within bounds
def within(subject: Subject, table: EnergyTable) -> tuple[np.ndarray, str]:
    """On which graphs the energy stays within three decades of its start at every layer after training, and in words
    how it is at all stages."""
    parts, found = [], {}
    for stage in STAGES:
        energy = table.values(subject, stage)
        with np.errstate(invalid="ignore"):
            low, high = (energy >= GONE * energy[0]).all(0), (energy <= energy[0] / GONE).all(0)
        lost = np.isnan(energy).any(0)
        found[stage] = low & high & ~lost
        parts.append(
            f"{WORDS[stage]}: {count(found[stage])}, {int((~low & ~lost).sum())} fell below, "
            f"{int((~high & ~lost).sum())} rose above, {int(lost.sum())} diverged"
        )
    evidence = f"energy between {GONE:g} and {1 / GONE:g} times its start at every layer; " + "; ".join(reversed(parts))
    return found["end"], evidence


def keeps(subject: Subject, table: EnergyTable) -> Answer:
    """Does the energy of a network stay within three decades of its start? A question of ours."""
    kept, evidence = within(subject, table)
    energy = table.values(subject, "end")
    return Answer(
        f"{subject.name}: the Dirichlet energy neither vanishes nor explodes over the layers",
        decide(kept),
        f"{evidence}. Median E_T/E_0 {_share(energy, -1)} at layer {len(energy) - 1}",
        f"{subject.name} keeps its energy within three decades on {int(kept.sum())} of {len(kept)} graphs.",
    )


def bounded(name: str, table: EnergyTable) -> Answer:
    """Does the energy of a reaction stay within three decades of its start at every layer?"""
    subject = Subject(name, "VC")
    kept, evidence = within(subject, table)
    plain, own = (table.values(s, "end") for s in (Subject(PLAIN), subject))
    more = np.nan_to_num(own[-1] / own[0]) > plain[-1] / plain[0]
    return Answer(
        f'{name}: "the Dirichlet energy of GREAD can be bounded in time thanks to the reaction term"',
        decide(kept),
        f"vector beta, {evidence}"
        + f". Median E_T/E_0 {_share(own, -1)}; plain diffusion {_share(plain, -1)}, which is less on {count(more)}"
        * bool(np.isfinite(own[-1]).any()),
        f"{name} keeps its energy within three decades on {int(kept.sum())} of {len(kept)} graphs.",
    )


def conserves(name: str, table: EnergyTable) -> Answer:
    """Has a vector beta more energy left at the last layer than a scalar one, on the same graph?"""
    scalar, vector = (Subject(name, kind) for kind in ("SC", "VC"))
    parts, truths = [], {}
    for stage in STAGES:
        left, right = (table.values(s, stage)[-1] for s in (scalar, vector))
        both = np.isfinite(left) & np.isfinite(right)
        truths[stage] = right[both] > left[both]
        lost = int(np.isnan(left).sum()), int(np.isnan(right).sum())
        parts.append(f"{WORDS[stage]}: more on {count(truths[stage])}; diverged: {lost[0]} SC, {lost[1]} VC")
    seen = truths["end"]
    return Answer(
        f'{name}: a vector beta (VC) "conserves more energy" than a scalar one (SC)',
        decide(seen),
        "energy at the last layer, graphs on which both have one; " + "; ".join(reversed(parts)),
        f"For {name}, VC ends with more energy than SC on {int(seen.sum())} of {len(seen)} graphs.",
    )


def _share(energy: np.ndarray, layer: int) -> str:
    """The median over the graphs of the share of the first energy that is left at a layer."""
    ratio = energy[layer] / energy[0]
    there = ratio[np.isfinite(ratio)]
    return f"{np.median(there):.2g}" if there.size else "unknown"
