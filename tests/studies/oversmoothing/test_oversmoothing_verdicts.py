"""The study of oversmoothing: verdicts that follow the numbers, borders and slopes that are computed."""

from __future__ import annotations

import math
from typing import Any

import pytest

from studies.oversmoothing import study as energy_verdicts
from studies.oversmoothing.flows import SCHEMES
from studies.runs.tables import Row


def end(flow: str, **values: Any) -> Row:
    """A row of ends with unremarkable numbers."""
    plain: Row = {
        "flow": flow, "normalisation": "symmetric", "start": "features", "scheme": "flow", "kind": "SC", "alpha": 0.5,
        "beta": 0.5, "graph": 0, "failed_at": math.nan, "rate": 0.0, "energy_0": 1.0, "energy_5": 1.0,
        "energy_half": 1.0, "energy_T": 1.0, "energy_least": 1.0, "laplacian_T": 1.0, "normalised_0": 1.0,
        "normalised_T": 1.0, "rank_T": 2.0,
    }  # fmt: skip
    return {**plain, **values}


GRAPH: Row = {
    "graph": 0, "lam2": 0.2, "lam3": 0.9, "lam_max": 1.1, "plateau": 0.01, "plateau_loops": 0.01,
    "source": 4.0, "cut": 2.0, "largest": 6.0,
}  # fmt: skip


def pairs(more: int, count: int) -> list[Row]:
    """Ends of Euler's steps with a vector and a scalar beta, on `count` graphs; the vector has more energy on some."""
    scalar = [end("F", scheme="euler", kind="SC", graph=k, beta=1.0, energy_T=1.0) for k in range(count)]
    return scalar + [
        end("F", scheme="euler", kind="VC", graph=k, beta=0.0, energy_T=2.0 if k < more else 0.5) for k in range(count)
    ]


@pytest.mark.parametrize(
    ("more", "count", "expected"),
    [(9, 20, "undecided"), (5, 20, "fails"), (6, 20, "undecided"), (14, 20, "undecided"), (15, 20, "holds"),
     (0, 5, "undecided"), (0, 6, "fails"), (6, 6, "holds"), (0, 0, "undecided")],
)  # fmt: skip
def test_a_count_is_undecided_where_its_interval_contains_one_half(more: int, count: int, expected: str) -> None:
    found = energy_verdicts.vectors("F", pairs(more, count), {"alpha": 0.5, "beta": 1.0})
    assert found.answer == expected
    assert f"in {more} of {count} pairs (95 % interval of the share" in found.evidence


def test_what_graphs_do_not_agree_on_is_undecided() -> None:
    rows = [end("GCN", scheme="euler", graph=k, energy_T=last) for k, last in enumerate((0.01, 1e-12))]
    assert energy_verdicts.gcn_decay(rows, [GRAPH, GRAPH]).answer == "undecided"
    source = [end("ST", graph=k, normalised_0=1.0, normalised_T=last) for k, last in enumerate((0.1, 0.9))]
    for chosen, expected in ((source, "undecided"), (source[:1], "fails"), (source[1:], "holds")):
        assert energy_verdicts.source_normalised(chosen, {"alpha": 0.5, "beta": 0.5}).answer == expected


def test_gcn_fails_at_a_plateau_and_holds_at_zero() -> None:
    def answer(last: float) -> str:
        return energy_verdicts.gcn_decay([end("GCN", scheme="euler", energy_T=last)], [GRAPH]).answer

    assert answer(0.01) == "fails"
    assert answer(1e-12) == "holds"


def test_growth_is_the_largest_symbol_on_the_spectrum() -> None:
    """BS, alpha = 0.5, beta = 1: p = 0.5 lam - lam^2, 0.06 at 0.2; FB: 0.5 lam, 0.55 at 1.1."""
    assert energy_verdicts.growth("BS", 0.5, 1.0, [GRAPH]) == pytest.approx([0.06])
    assert energy_verdicts.growth("FB", 0.5, 1.0, [GRAPH]) == pytest.approx([0.55])


def test_linear_reactions_decay_or_grow() -> None:
    rows = [end("BS", beta=0.5, rate=-0.04), end("BS", beta=1.0, rate=0.12)]
    found = energy_verdicts.bounded("BS", rows, [GRAPH])
    assert found.answer == "fails"
    assert "decays in 1, grows in 1, stays in 0" in found.evidence
    assert energy_verdicts.bounded("BS", [end("BS", beta=1.0, rate=-0.1)], [GRAPH]).answer == "undecided"
    still = energy_verdicts.bounded("FB", [end("FB", rate=0.0), end("FB", beta=0.1, rate=-0.16)], [GRAPH])
    assert still.answer == "holds if beta/alpha = 1"
    both = [end("FB", rate=0.0), end("FB", alpha=1.0, beta=1.0, rate=0.0)]
    assert energy_verdicts.bounded("FB", both, [GRAPH]).answer == "holds if beta/alpha = 1"


def test_source_keeps_raw_energy_and_loses_normalised() -> None:
    rows = [end("ST", laplacian_T=3.95, normalised_T=0.1)]
    start = {"alpha": 0.5, "beta": 0.5}
    assert energy_verdicts.source_plateau(rows, [GRAPH], start).answer == "holds"
    assert energy_verdicts.source_plateau([end("ST", laplacian_T=1.0)], [GRAPH], start).answer == "undecided"
    assert energy_verdicts.source_normalised(rows, start).answer == "fails"


def test_sign_patterns_need_a_strong_reaction() -> None:
    def rows(weak: float, strong: float) -> list[Row]:
        box = {"normalisation": "row", "start": "box"}
        return [end("AC", **box, beta=0.5, energy_least=weak), end("AC", **box, beta=2.0, energy_least=strong)]

    assert energy_verdicts.sign_patterns(rows(1.0, 2.5), [GRAPH]).answer == "holds if beta >= 4 alpha"
    assert energy_verdicts.sign_patterns(rows(3.0, 2.5), [GRAPH]).answer == "holds"
    assert energy_verdicts.sign_patterns(rows(1.0, 1.5), [GRAPH]).answer == "fails"


def test_vectors_are_compared_graph_by_graph() -> None:
    start = {"alpha": 0.5, "beta": 0.5}

    def answer(*energies: float, **more: Any) -> str:
        rows = [end("ST", scheme="euler", graph=k) for k in range(len(energies))]
        rows += [
            end("ST", scheme="euler", kind="VC", beta="drawn", graph=k, energy_T=e, **more)
            for k, e in enumerate(energies)
        ]
        return energy_verdicts.vectors("ST", rows, start).answer

    assert answer(*[2.0] * 9) == "holds"
    assert answer(*[0.5] * 9) == "fails"
    assert answer(2.0, 3.0) == answer(0.5, 3.0) == answer(*[0.5, 3.0] * 8, 2.0) == "undecided"
    assert answer(*[2.0] * 9, failed_at=1.0) == "undecided"


def test_euler_differs_where_it_loses_members_or_orders_of_magnitude() -> None:
    def answer(**other: Any) -> energy_verdicts.Answer:
        names = ("BS", "ST", "FB", "FB*", "F", "AC", "Z")
        rows = [end(name, scheme=scheme) for name in names for scheme in SCHEMES]
        rows[0].update(other)
        return energy_verdicts.euler_is_flow(rows, [GRAPH], {"step": 1.0, "beta": 0.5})

    assert answer().answer == "holds"
    assert answer(energy_T=0.0).answer == answer(failed_at=3.0).answer == "fails"
    assert "BS: frozen 1 by Euler, 0 by the flow;" in answer(failed_at=3.0).evidence
    assert "sqrt(1 + 2/(step*beta)) = 2.24" in answer().evidence


def test_a_profile_without_memory_is_told_from_features_that_stay_apart() -> None:
    def answer(rank: float) -> str:
        return energy_verdicts.profile([end("F", start="box", rank_T=rank), end("F", start="box", beta=0.05)]).answer

    assert answer(1.0 + 1e-8) == "fails"
    assert answer(1.5) == "holds"


def test_borders_follow_from_the_symbol() -> None:
    """BS 1/(1 - lam2) with lam2 = 0.2; FB 1; FB* lam2/(1 + lam2)."""
    found = {name: float(energy_verdicts.border(name, [GRAPH])[0]) for name in ("BS", "FB", "FB*")}
    assert found == pytest.approx({"BS": 1.25, "FB": 1.0, "FB*": 0.2 / 1.2})


@pytest.mark.parametrize(("level", "ratio"), [(0.5, 4.0), (0.25, 16 / 3)])
def test_persistence_of_signs_is_computed(level: float, ratio: float) -> None:
    """1/(c (1 - c)) at the level c."""
    assert energy_verdicts.persistence("AC", level) == pytest.approx(ratio)


def test_slopes_of_the_reactions_are_computed() -> None:
    """sup r' on the box: F and AC 1 (at 0), Z 1/3 (at 1/3)."""
    assert energy_verdicts._slopes() == pytest.approx({"F": 1.0, "AC": 1.0, "Z": 1 / 3})
