"""Studies of the paper that sweep a setting: sensitivity, homophily and significance."""

from __future__ import annotations

import numpy as np
import pytest

from gread.comparison import Estimate, Gap
from gread.settings.published_tables import published_tests
from studies.cells.cell import SETS
from studies.paper import ablation, depth, homophily, paired_rows, sensitivity, significance
from studies.runs.tables import MutableRow
from tests.studies.paper.planted import planted_rows


def test_a_step_that_misses_the_exact_flow_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired_rows, "share_ratio", lambda _: 20 / 48)
    monkeypatch.setattr(paired_rows, "load_set", lambda name: name)

    def rows(small: float, large: float) -> list[MutableRow]:
        wobble = planted_rows(80.0, 1.0, "cora", curve="step", reaction="BS", x=0.0)
        made = list(wobble)
        for x, shift in ((0.1, small), (1.5, large)):
            moved = planted_rows(80.0 + shift, 1.1, "cora", curve="step", reaction="BS", x=x)
            made += moved
        return made

    for small, large, answer in ((0.05, 3.0, "holds"), (-6.0, 1.0, "fails")):
        own = rows(small, large)
        tests = sensitivity.exact_tests(own)
        found = {s: a for s, a, _ in sensitivity.verdicts(own, tests)}
        assert found["The smallest step of RK4 gives the accuracy of the exact flow."] == answer
        assert tests[0]["nearer"] == ("yes" if answer == "holds" else "no")
    for large in (0.5, -0.5):  # a tie is not nearer, on whichever side of the exact flow
        own = rows(0.5, large)
        tests = sensitivity.exact_tests(own)
        ((_, _, evidence),) = [v for v in sensitivity.verdicts(own, tests) if v[0].startswith("The smallest step")]
        assert tests[0]["nearer"] == "as near"
        assert evidence.endswith("nearer than the largest step in 0, as near in 1")


def test_choices_are_made_on_validation_nodes_and_drops_are_found() -> None:
    rows = [
        {**row, "val_accuracy": val, "method": "MLP", "choice": choice, "dataset": f"cora:{level}:{graph}"}
        for level in (0.0, 0.5, 1.0)
        for graph in range(3)
        for choice, val, mean in ((0, 0.9, 70.0 + graph), (1, 0.5, 99.0))
        for row in planted_rows(mean, 0.1, "", splits=3)
    ]
    chosen = homophily.chosen_rows(rows)
    assert {row["choice"] for row in chosen} == {0}  # not the one with the better test accuracy
    curves = homophily.make_curves(chosen)
    assert curves["MLP"][0.5] == pytest.approx({0: 70.0, 1: 71.0, 2: 72.0}, abs=1e-6)
    curves["H2GCN"] = {
        0.0: {0: 80.0, 1: 81.0, 2: 80.0},
        0.5: {0: 60.0, 1: 62.0, 2: 60.5},
        1.0: dict.fromkeys(range(3), 90.0),
    }
    curves["GREAD-BS"] = {h: {0: 90.0, 1: 90.2, 2: 90.1} for h in (0.0, 0.5, 1.0)}
    assert [answer for _, answer, _ in homophily.verdicts(curves)] == ["holds"] * 4
    curves["GREAD-BS"] = {h: {k: 90.0 + 4.0 * h + 0.1 * k for k in range(3)} for h in (0.0, 0.5, 1.0)}
    (told,) = [evidence for statement, _, evidence in homophily.verdicts(curves) if "no sudden drop" in statement]
    assert told.startswith("it never falls; the smallest rise is 2.00 points")  # not a fall of -2.00 points
    curves["GREAD-BS"][1.0] = {0: 40.0, 1: 40.2, 2: 40.1}  # falls by fifty points, and is behind H2GCN on every graph
    assert [answer for _, answer, _ in homophily.verdicts(curves)] == ["holds", "holds", "fails", "fails"]


def homophily_answers(curves: homophily.Curves) -> dict[str, str]:
    return {statement: answer for statement, answer, _ in homophily.verdicts(curves)}


def test_three_graphs_are_no_surer_than_three_graphs() -> None:
    """Two standard errors decide each of these; Student's quantile with two degrees, 4.3, does not."""
    steady = {h: dict.fromkeys(range(3), 70.0) for h in (0.0, 0.1, 0.2, 0.3)}
    rise = [4.0, 5.0, 1.5]  # mean 3.5, standard error 1.04
    curves: homophily.Curves = {
        "MLP": steady,
        "GCN": {h: {k: 70.0 - rise[k] for k in range(3)} for h in steady},
        "GREAD-BS": {h: {k: 90.0 - (rise[k] if h == 0.3 else 1.5) for k in range(3)} for h in steady},
    }
    t, p = student(np.array(rise))
    assert 2 < t < 4.3
    found = homophily_answers(curves)
    assert found["GCN performs poorly at low homophily: below the MLP for h up to 0.3."] == "undecided"
    assert p > 0.05
    curves["MLP"] = dict(steady)
    curves["MLP"][0.3] = {0: 72.4, 1: 73.0, 2: 70.6}  # a spread of 2.0 (0.72): 2 + 2 * 0.72 < 5 < 2 + 4.3 * 0.72
    assert homophily_answers(curves)["MLP maintains its accuracy for all homophily rates (within 5 points)."] == (
        "undecided"
    )
    curves["GREAD-BS"] = {0.0: dict.fromkeys(range(3), 90.0), 0.1: {0: 82.0, 1: 84.0, 2: 80.0}}  # a fall of 8 (1.15)
    assert homophily_answers(curves)["GREAD-BS has no sudden drop (of 5 points or more)."] == "undecided"
    curves["GREAD-BS"][0.1] = {0: 82.0, 1: 82.1, 2: 81.9}
    assert homophily_answers(curves)["GREAD-BS has no sudden drop (of 5 points or more)."] == "fails"


def student(gaps: np.ndarray) -> tuple[float, float]:
    from scipy.stats import ttest_1samp

    found = ttest_1samp(gaps, 0.0)
    return float(found.statistic), float(found.pvalue)


def test_levels_of_a_graph_count_once() -> None:
    """Forty levels of the same three graphs say what one level says."""
    gaps = np.array([3.0, 1.0, 0.5])
    for levels in (1, 40):
        names = [k / 100 for k in range(levels)]
        curves: homophily.Curves = {
            "MLP": {h: dict.fromkeys(range(3), 70.0) for h in names},
            "GCN": {h: {k: 70.0 - float(gaps[k]) for k in range(3)} for h in names},
        }
        ((_, answer, evidence),) = [v for v in homophily.verdicts(curves) if v[0].startswith("GCN")]
        assert answer == "undecided"
        assert f"p {student(gaps)[1]:.2g}" in evidence
        assert "over 3 graphs" in evidence


def test_the_largest_of_many_falls_is_corrected_for_their_number() -> None:
    """Without any fall, one of ten is beyond its own interval often; of all together it is not."""
    draw, wrong = np.random.default_rng(0), 0
    for _ in range(100):
        curve = {h / 10: {k: float(v) for k, v in enumerate(draw.normal(70 - 5 * h, 1.0, 3))} for h in range(11)}
        answers = homophily_answers({"GREAD-BS": curve})
        wrong += answers["GREAD-BS has no sudden drop (of 5 points or more)."] == "fails"
    assert wrong <= 10


def test_reactions_on_a_set_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Better by all reactions on six of nine sets is 42 of 63 cells, and yet six of nine."""
    rows: list[MutableRow] = [
        {"effect": "VC - SC", "reaction": r, "dataset": s, "difference": 1.0 if k < 6 else -1.0, "p_holm": 1.0}
        for r in "abcdefg"
        for k, s in enumerate(SETS)
    ]
    ((_, answer, evidence),) = ablation.effect_verdicts(rows)
    assert answer == "undecided"
    assert "42 of 63 cells" in evidence
    assert "of 6 of 9 sets" in evidence
    few: list[MutableRow] = [{**row, "effect": "SA - OA", "dataset": "film", "difference": 1.0} for row in rows[:14]]
    answers = [answer for _, answer, _ in ablation.effect_verdicts(few)]
    assert answers == ["undecided"] * 2  # one set decides nothing, unless most of its cells are sure by themselves
    sure: list[MutableRow] = [{**row, "p_holm": 0.01} for row in few]
    assert [answer for _, answer, _ in ablation.effect_verdicts(sure)] == ["holds"] * 2


def test_a_trend_over_steps_has_splits_as_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Means that rise with the step by the luck of one split are no trend."""
    monkeypatch.setattr(paired_rows, "share_ratio", lambda _: 20 / 48)
    monkeypatch.setattr(paired_rows, "load_set", lambda name: name)

    def rows(rising: int) -> list[MutableRow]:
        steps = (0.1, 0.25, 0.5, 0.8, 1.0, 1.5)
        return [
            {"curve": "step", "reaction": "BS", "dataset": "cora", "x": x, "split": k, "seed": 0, "status": "ok",
             "test_accuracy": 0.8 + (0.02 * j if k < rising else 0.001 * ((7 * j + 3 * k) % 5))}
            for j, x in enumerate(steps) for k in range(10)
        ]  # fmt: skip

    for rising, answer in ((1, "undecided"), (10, "holds")):
        ((statement, found, _),) = sensitivity.verdicts(rows(rising), [])
        assert "larger steps" in statement
        assert found == answer


def test_the_best_time_is_best_only_where_every_other_is_below_for_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired_rows, "share_ratio", lambda _: 20 / 48)
    monkeypatch.setattr(paired_rows, "load_set", lambda name: name)
    for near, answer in ((60.0, "holds"), (69.9, "undecided"), (80.0, "fails")):
        rows = [
            row
            for x, mean in ((0.1, 50.0), (1.9, 70.0), (3.0, near))
            for row in planted_rows(mean, 1.0 + 0.1 * x, "chameleon", curve="T", reaction="BS", x=x)
        ]
        ((statement, found, _),) = sensitivity.verdicts(rows, [])
        assert "T = 1.9" in statement
        assert found == answer


def test_depths_that_were_not_the_best_can_still_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deepest is the best by chance among few splits: that it loses nothing is not sure."""
    monkeypatch.setattr(paired_rows, "share_ratio", lambda _: 20 / 48)
    monkeypatch.setattr(paired_rows, "load_set", lambda name: name)
    deep = [
        {"method": "GREAD-FB*", "reading": depth.EXACT, "layers": layers, "dataset": "cora", "split": k, "seed": 0,
         "status": "ok", "test_accuracy": 0.8 + (0.3 * (k - 0.9) if layers == 256 else 0.0)}
        for layers in (2, 256) for k in range(3)
    ]  # fmt: skip
    ((_, answer, _),) = depth.deep_verdicts(deep, "cora")
    assert answer == "undecided"
    ((_, answer, _),) = depth.deep_verdicts([r for r in deep if r["layers"] == 256], "cora")
    assert answer == "undecided"  # there is nothing beside it


def test_few_splits_beside_a_printed_mean() -> None:
    """Two standard errors are for ten splits; over three, Student's quantile with Welch's degrees."""
    assert Gap.between(Estimate(84.0, 0.9, 10), 85.0, 0.9).word == "below"
    few = Gap.between(Estimate(83.5, 0.9, 3), 85.0, 0.9)
    assert 2 * few.error < 1.5 < few.chance * few.error
    assert few.word == "within noise"
    assert few.p > 0.05


def test_the_printed_test_and_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired_rows, "share_ratio", lambda _: 20 / 48)
    monkeypatch.setattr(paired_rows, "load_set", lambda name: name)
    rows: list[MutableRow] = []
    draw = np.random.default_rng(0)
    for p in published_tests():
        for method, mean, std in (
            (significance.OWN, p.own_mean, p.own_std),
            (significance.OTHER, p.other_mean, p.other_std),
        ):
            made = planted_rows(mean, std, p.dataset, seeds=10, method=method)
            order = draw.permutation(10)  # splits that are hard for one network need not be for the other
            rows += [{**row, "split": int(order[int(row["split"])])} for row in made]
    table = significance.set_table(rows)
    assert [row["dataset"] for row in table] == list(SETS)
    texas, cornell = table[0], table[2]
    assert float(texas["welch_t"]) == pytest.approx(18.42, rel=0.01)
    assert float(cornell["welch_p_holm"]) < 0.05  # as printed
    answers = [answer for _, answer, _ in significance.set_verdicts(table)]
    assert answers[4] == "holds"  # squirrel, 20 points apart
    assert answers[2] == "undecided"  # cornell: four points, deviations of seven, ten splits
    assert {a for _, a, _ in significance.row_verdicts(rows)} == {"holds"}
    assert significance.printed_verdict()[1] == "holds"
