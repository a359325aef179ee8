"""The numbers, figures and page of a training: against closed forms, the flow itself, and what diverged."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from analysis.spectra.eigenvalues import spectrum
from gread.datasets.embedded import karate
from gread.models.trained_network import Network
from gread.settings.config import Config
from gread.settings.presets import Published
from gread.settings.trials import make_trials
from gread.training.trainer import Trained, train
from rdgraph.errors import Diverged, NotApplicable
from rdgraph.vocabulary.methods import FIXED
from studies.runs.chart import Chart, FieldMap, MovingDots
from studies.runs.chart_figures import chart_figure
from studies.runs.study import perform
from studies.training import learned_tables
from studies.training import study as training
from studies.training import training_figures as training_figures
from studies.training import training_figures as training_states
from studies.training import training_summary as training_rows
from studies.training import training_summary as training_summary
from studies.training.plan import Request, TrainingPlan, make_plan, read_plan
from studies.training.training_summary import Summary

BASE = {"hidden": 4, "epochs": 6, "adjacency": "original", "input_dropout": 0.0, "dropout": 0.0}


def trained(splits: int = 2, **settings: Any) -> Trained:
    config = Config().updated(BASE | settings)
    return train(karate(), make_trials(config, range(splits)), device="cpu")


@pytest.fixture(scope="module")
def done() -> Trained:
    return trained(method="euler", step=0.75)


def rows_of(*cells: tuple[int, int, float, str]) -> list[dict[str, Any]]:
    return [{"split": s, "seed": k, "test_accuracy": a, "status": status} for s, k, a, status in cells]


# ---------------------------------------------------------------------- what to try next
@pytest.mark.parametrize(
    ("title", "settings", "expected"),
    [
        ("MLP", {}, "On validation nodes the MLP is 10.0 points ahead: with `--set residual=linear`"),
        ("GCN", {}, "On validation nodes the GCN is 10.0 points ahead: `--set blocks=3"),
        ("GCN", {"residual": "linear"}, ""),
        ("GCN", {"blocks": 2, "mixing": True}, ""),
        ("label propagation", {}, ""),
    ],
)
def test_blocks_are_advised_where_validation_scores_say_so(title: str, settings: dict[str, Any], expected: str) -> None:
    model = Config().updated(settings).model
    ours = [{"val_accuracy": value} for value in (0.6, 0.7)]
    theirs = [{"method": title, "val_accuracy": value, "test_accuracy": 0.0} for value in (0.7, 0.8)]
    advice = training_summary.block_advice(model, ours, theirs)
    assert advice.startswith(expected)
    assert bool(advice) == bool(expected)
    assert training_summary.block_advice(model, theirs, [{**row, "method": title} for row in ours]) == ""


# ---------------------------------------------------------------------- the result
def test_summary_takes_splits_as_units() -> None:
    rows = rows_of((0, 0, 0.80, "ok"), (1, 0, 0.70, "ok"), (0, 1, 0.90, "ok"), (1, 1, 0.60, "ok"))
    found = Summary.of(rows, Published("GREAD-BS", "cora", 80.0, 3.0, "a table"))
    assert found.mean == pytest.approx(75.0)
    assert found.std == pytest.approx(10.0)  # population, over the splits
    assert found.sentences()[0] == (
        "Test accuracy 75.00 ± 10.00 % (4 trials on 2 splits; ± is the standard deviation over the splits)."
    )
    assert (found.trials, found.splits, found.difference) == (4, 2, pytest.approx(-5.0))
    assert found.error == pytest.approx(math.sqrt(10.0**2 / 1 + 3.0**2 / 9))  # means 85 and 65, deviation 10
    assert found.sentences()[1] == (
        f"Published for GREAD-BS: 80.00 ± 3.00 %; difference -5.00, standard error {found.error:.2f}."
    )


def test_several_seeds_on_one_split_say_so() -> None:
    found = Summary.of(rows_of((0, 0, 0.80, "ok"), (0, 1, 0.90, "ok")))
    assert found.std == pytest.approx(5.0)
    assert found.sentences() == [
        "Test accuracy 85.00 ± 5.00 % (2 trials on 1 split; ± is the standard deviation over the seeds)."
    ]


def test_splits_that_share_nodes_need_more_than_students_interval() -> None:
    """+1.0 with a deviation of 1.2 over ten splits is significant for independent samples alone."""
    values = np.random.default_rng(0).normal(size=10)
    gaps = 1.0 + 1.2 * (values - values.mean()) / values.std(ddof=1)
    rows = rows_of(*((k, 0, 0.8 + gap / 100, "ok") for k, gap in enumerate(gaps)))
    references = [{"method": "MLP", **row} for row in rows_of(*((k, 0, 0.8, "ok") for k in range(10)))]
    for ratio, answer in ((20 / 48, "undecided"), (0.0, "holds")):
        (verdict,) = training_summary.verdicts(Summary.of(rows, None, references, ratio=ratio))
        assert verdict.answer == answer
    assert "p = 0.027" in verdict.evidence


def test_one_split_has_no_error() -> None:
    found = Summary.of(rows_of((3, 0, 0.5, "ok")), Published("GREAD-BS", "cora", 80.0, 3.0, "a table"))
    assert math.isnan(found.error)
    assert found.sentences() == [
        "Test accuracy 50.00 % (1 trial on 1 split).",
        "Published for GREAD-BS: 80.00 ± 3.00 %; difference -30.00.",
    ]
    assert training_summary.verdicts(found) == ()


@pytest.mark.parametrize(("published", "answer"), [(74.0, "holds"), (76.0, "holds"), (90.0, "fails"), (20.0, "holds")])
def test_verdict_counts_standard_errors(published: float, answer: str) -> None:
    rows = rows_of((0, 0, 0.74, "ok"), (1, 0, 0.76, "ok"))
    (verdict,) = training_summary.verdicts(Summary.of(rows, Published("GREAD-BS", "cora", published, 3.0, "")))
    assert verdict.answer == answer


def test_a_training_that_was_cut_off_is_not_told_to_be_worse() -> None:
    rows = rows_of((0, 0, 0.74, "ok"), (1, 0, 0.76, "ok"), (2, 0, 0.75, "ok"))
    references = [{"method": "MLP", **row} for row in rows_of((0, 0, 0.9, "ok"), (1, 0, 0.9, "ok"), (2, 0, 0.9, "ok"))]
    other = Published("GREAD-BS", "cora", 90.0, 3.0, "")
    for cut, answer in (("", "fails"), ("trained for only 20 of 200 epochs", "undecided")):
        found = Summary.of(rows, other, references, cut=cut, ratio=20 / 48)
        told = training_summary.verdicts(found)
        assert [verdict.answer for verdict in told] == [answer, answer]
        assert all(
            v.evidence.endswith(" The network was trained for only 20 of 200 epochs.") == bool(cut) for v in told
        )
        assert ("The network was trained for only 20 of 200 epochs." in found.sentences()) == bool(cut)
    low = [row | {"test_accuracy": 0.1} for row in references]
    better = Summary.of(
        rows, dataclasses.replace(other, mean=20.0), low, cut="trained for only 20 of 200 epochs", ratio=20 / 48
    )
    assert [verdict.answer for verdict in training_summary.verdicts(better)] == ["holds", "holds"]


def test_a_plan_remembers_the_epochs_of_its_preset(tmp_path: Path) -> None:
    rows = rows_of((0, 0, 0.5, "ok"), (1, 0, 0.5, "ok"))
    short = make_plan(Request("karate", settings={"epochs": 7}))
    whole = make_plan(Request("karate"))
    cut = f"trained for only 7 of {whole.config.training.epochs} epochs"
    assert training_summary.summarise(short, rows).cut == cut
    assert training_summary.summarise(whole, rows).cut == ""
    assert "preset_epochs" not in whole.run_config.toml()
    (tmp_path / "config.toml").write_text(short.run_config.toml())
    assert training_summary.summarise(read_plan(tmp_path), rows).cut == cut
    again = make_plan(Request("karate", preset=str(tmp_path / "config.toml")))
    assert training_summary.summarise(again, rows).cut == cut


def test_a_preset_that_is_not_the_published_one_is_named() -> None:
    rows, plan = rows_of((0, 0, 0.5, "ok"), (1, 0, 0.6, "ok")), make_plan(Request("karate"))
    for name, words in (("defaults", " with the preset defaults"), ("paper/BS/cora", ""), ("published/gcn/cora", "")):
        preset = dataclasses.replace(plan.preset, dataset="cora", name=name)
        found = training_summary.summarise(dataclasses.replace(plan, preset=preset), rows)
        assert training_summary.verdicts(found)[0].statement.startswith(f"The mean test accuracy{words} is at least")
        assert ("with the preset" in found.sentences()[1]) == bool(words)


def test_published_numbers_belong_to_the_reaction_and_the_set() -> None:
    plan = make_plan(Request("karate"))
    assert training_summary.summarise(plan, rows_of((0, 0, 0.5, "ok"))).published is None
    cora = dataclasses.replace(plan, preset=dataclasses.replace(plan.preset, dataset="cora"))
    assert training_summary.summarise(cora, rows_of((0, 0, 0.5, "ok"))).published.mean == 88.57  # type: ignore[union-attr]


# ---------------------------------------------------------------------- metrics
def test_columns_hold_the_history(done: Trained) -> None:
    columns = training_rows.metric_columns(done)
    assert {len(c) for c in columns.values()} == {12}
    assert columns["epoch"].tolist() == [1, 2, 3, 4, 5, 6] * 2
    assert columns["split"].tolist() == [0] * 6 + [1] * 6
    assert columns["val_accuracy"][6 + 2] == done.history[1, 2, 2]
    assert columns["loss"][4] == done.history[0, 4, 0]


# ---------------------------------------------------------------------- figures
def test_learning_curves_draw_the_history(done: Trained) -> None:
    drawing = training_figures.learning_curves(done)
    row = next(r for r in drawing.rows if (r["metric"], r["epoch"]) == ("test_accuracy", 5))
    assert row["split 1 seed 0"] == pytest.approx(100 * done.history[1, 4, 3])
    assert row["mean"] == pytest.approx(100 * done.history[:, 4, 3].mean())


def test_best_epochs_are_marked_where_they_are(done: Trained) -> None:
    history = np.random.default_rng(0).uniform(size=done.history.shape)
    known = dataclasses.replace(done, history=history, best_epoch=np.array([2, 5]))
    accuracies, loss = training_figures.learning_curves(known).drawn.panels
    (dots,) = (line for line in accuracies.lines if line.style == "dots")
    assert np.allclose([dots.x, dots.y], [[2, 5], [100 * history[0, 1, 3], 100 * history[1, 4, 3]]])
    assert all(line.style == "line" for line in loss.lines)


def test_the_page_has_all_three_parts_on_one_scale(done: Trained) -> None:
    history = np.random.default_rng(1).uniform(size=done.history.shape)
    history[0, 3, 2] = np.nan
    known = dataclasses.replace(done, history=history, best_epoch=np.array([2, 5]))
    chart = training_figures.learning_curves(known).drawn
    assert isinstance(chart, Chart)
    accuracies, loss = chart.panels
    lines = {line.label: line for line in accuracies.lines}
    assert list(lines) == ["training", "validation", "test", "test at the best epochs"]
    assert lines["validation"].y[3] == pytest.approx(100 * history[1, 3, 2])
    assert lines["validation"].low is not None
    assert lines["validation"].low[3] == pytest.approx(100 * history[1, 3, 2])
    assert lines["training"].high is not None
    assert np.allclose(lines["training"].high, 100 * history[:, :, 1].max(axis=0))
    assert np.allclose(loss.lines[0].y, history[:, :, 0].mean(axis=0))


def test_large_gains_have_another_scale(done: Trained) -> None:
    chart = training_figures.response_lines(done, [0], karate()).drawn
    lines = training_figures.gains(done.network(0))
    assert isinstance(chart, Chart)
    assert np.allclose(chart.panels[0].lines[0].y, lines.mean(axis=0))
    assert chart.panels[0].y_scale == "linear"
    steep = training_figures.response_chart(100 * np.abs(lines), "channel", 1.0, np.zeros(2), np.zeros(2))
    assert steep.panels[0].y_scale == "symlog"
    assert chart_figure(steep).axes[0].get_yscale() == "symlog"


def test_means_pass_over_what_is_not_a_number() -> None:
    values = np.array([[1.0, np.nan, np.nan], [3.0, 5.0, np.inf]])
    assert training_figures._mean(values)[:2].tolist() == [2.0, 5.0]
    assert np.isnan(training_figures._mean(values)[2])


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "euler", "step": 0.75},
        {"method": "rk4", "step": 0.4, "reaction": "ST"},
        {"method": "exact", "reaction": "FB*", "alpha": "channel"},
        {"method": "dopri5", "step": 1.0, "beta": "scalar"},
    ],
    ids=lambda s: s["method"],
)
def test_gains_are_what_the_flow_does_to_eigenvectors(settings: dict[str, Any]) -> None:
    """Run the trained flow from every eigenvector of L: it comes out multiplied by g(lam), channel by channel."""
    network = trained(1, **settings).network(0)
    network = dataclasses.replace(network, parameters={k: v.double() for k, v in network.parameters.items()})
    graph = karate().graph
    op = graph.operator("symmetric", self_loops=1.0, dtype=torch.float64)
    found = spectrum(op)
    gains = training_figures.gains(network, found.values)
    assert gains.shape == (1 if settings.get("beta") == "scalar" else 4, 34)
    for k in (0, 7, 33):
        start = torch.tensor(found.vectors[:, k], dtype=torch.float64)[:, None].expand(-1, 4).contiguous()
        end = flow(network, start)
        expected = np.broadcast_to(gains, (4, 34))[:, k]
        assert np.allclose(end.numpy(), start.numpy() * expected, atol=1e-5 if settings["method"] == "dopri5" else 1e-9)


def flow(network: Network, start: torch.Tensor) -> torch.Tensor:
    """H(T) of the network's equation from a state of one's own, by `rdgraph.solve`."""
    import rdgraph as rd

    model = network.model(karate().graph)
    c = network.config
    field = rd.lower(network.system, model.operator, {k: v[0] for k, v in model.coefficients().items()})
    step = {"step": c.step} if c.method in FIXED else {}
    return rd.solve(field, start, [0.0, c.time], c.method, **step).final


@pytest.mark.parametrize(
    ("settings", "needle"),
    [
        ({"reaction": "F", "method": "euler", "step": 0.5}, "nonlinear"),
        ({"beta": "node", "method": "euler", "step": 0.5}, "node coefficient"),
        ({"adjacency": "live", "method": "euler", "step": 0.5}, "adjacency depends on the state"),
        ({"normalisation": "none", "method": "euler", "step": 0.1}, "not normalised"),
    ],
)
def test_flows_without_a_response_say_why(settings: dict[str, Any], needle: str) -> None:
    with pytest.raises(NotApplicable, match=needle):
        training_figures.gains(trained(1, **settings, epochs=1).network(0))


def test_scalar_coefficients_give_a_line_per_trial() -> None:
    one = trained(3, beta="scalar", method="euler", step=0.5)
    drawing = training_figures.response_lines(one, [0, 2], karate())
    lines = {r["line"] for r in drawing.rows}
    assert lines == {"trial 0", "trial 1", "density"}
    last = [r["gain"] for r in drawing.rows if r["line"] == "trial 1"]
    assert last == pytest.approx(training_figures.gains(one.network(2))[0].tolist())


def test_coefficients_are_those_of_the_networks(done: Trained) -> None:
    drawing = training_figures.coefficient_values(done, [0, 1])
    assert drawing is not None
    rows = [r for r in drawing.rows if r["coefficient"] == "beta" and r["split"] == 1]
    assert [r["value"] for r in rows] == pytest.approx(done.network(1).coefficients()["beta"].tolist())
    assert {r["kind"] for r in rows} == {"channel"}
    assert sum(r["coefficient"] == "alpha" for r in drawing.rows) == 2


@pytest.fixture(scope="module")
def in_blocks() -> Trained:
    return trained(blocks=3, mixing=True, norm="layer", residual="linear", reaction="-alpha*L@H + beta*phi(H)")


def test_coefficients_of_blocks_are_drawn_block_by_block(in_blocks: Trained) -> None:
    drawing = training_figures.coefficient_values(in_blocks, [0, 1])
    assert drawing is not None
    rows = [r for r in drawing.rows if r["coefficient"] == "beta" and r["split"] == 1 and r["block"] == 2]
    assert [r["value"] for r in rows] == pytest.approx(in_blocks.network(1).coefficients(2)["beta"].tolist())
    line = next(panel for panel in drawing.drawn.panels if panel.title.startswith("beta")).lines[0]
    both = np.concatenate([in_blocks.network(k).coefficients(2)["beta"].numpy() for k in (0, 1)])
    assert (line.x[1], line.y[1], line.low[1], line.high[1]) == pytest.approx((2, both.mean(), both.min(), both.max()))


def test_functions_of_blocks_are_drawn_block_by_block(in_blocks: Trained) -> None:
    drawing = learned_tables.function_curves(in_blocks, [0, 1])
    assert drawing is not None
    assert [panel.title for panel in drawing.drawn.panels] == ["phi[1]", "phi[2]", "phi[3]"]
    second = in_blocks.network(0).functions(2)["phi"]
    rows = [r for r in drawing.rows if r["function"] == "phi[2]" and r.get("split") == 0]
    assert [r["value"] for r in rows] == pytest.approx(second(np.array([r["x"] for r in rows])).tolist())


def test_filters_of_blocks_are_drawn_block_by_block() -> None:
    linear = trained(blocks=2, mixing=True, method="euler", step=0.5)
    drawing = training_figures.response_lines(linear, [0, 1], karate())
    assert {r["line"] for r in drawing.rows} == {"block 1", "block 2", "density"}
    mean = np.concatenate([training_figures.gains(linear.network(k), block=2) for k in (0, 1)]).mean(0)
    assert [r["gain"] for r in drawing.rows if r["line"] == "block 2"] == pytest.approx(mean.tolist())
    shared = trained(1, blocks=2, shared="coefficients", method="euler", step=0.5)
    lines = {r["line"] for r in training_figures.response_lines(shared, [0], karate()).rows}
    assert lines == {"channel 0", "channel 1", "channel 2", "channel 3", "density"}


def test_every_figure_of_blocks_can_be_drawn(in_blocks: Trained) -> None:
    drawings, missing = training.draw_all(in_blocks)
    assert {d.name for d in drawings} >= {"coefficients", "functions", "states", "confusion"}
    assert [text.partition(":")[0] for text in missing] == ["Filter response"]


def test_confusion_counts_every_test_node_once(done: Trained) -> None:
    counts = training_states.confusion(done, [0, 1])
    data = karate()
    for c in (0, 1):
        assert counts[c].sum() == sum((data.y[data.masks.test[k]] == c).sum() for k in (0, 1))
    hits = sum(done.test_accuracy[k] * data.masks.test[k].sum() for k in (0, 1))
    assert np.trace(counts) == pytest.approx(hits)
    fields = training_states.confusion_matrix(done, [0, 1]).drawn
    assert isinstance(fields, FieldMap)
    assert np.allclose(fields.values.sum(axis=1), 100)
    assert fields.notes[0][0].startswith(f"{counts[0, 0]} nodes")
    only = training_states.confusion(done, [1])
    assert np.trace(only) / only.sum() == pytest.approx(done.test_accuracy[1])


def test_states_are_mapped_the_same_way_every_time(done: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_states, "MOST_NODES", 20)
    first, second = (training_states.embedded_states(done.network(0), karate()) for _ in range(2))
    assert first.rows == second.rows
    assert len(first.rows) == 3 * 20
    assert [r["time"] for r in first.rows[::20]] == [0.0, 0.5, 1.0]
    assert isinstance(first.drawn, MovingDots)
    assert first.drawn.classes == ["Mr. Hi", "Officer"]
    (panel,) = first.drawn.panels
    assert panel.places[1, 7].tolist() == [first.rows[27]["x"], first.rows[27]["y"]]
    nodes = [r["node"] for r in first.rows[:20]]
    assert nodes == sorted(set(nodes))
    assert [r["label"] for r in first.rows[:20]] == karate().y[nodes].tolist()
    assert "20 of 34 nodes" in first.caption


def test_maps_keep_clusters_apart() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(15, 1)), 40 + rng.normal(size=(15, 1))])  # one channel only
    flat = training_states.flat_map(points)
    own = flat[:15].mean(axis=0) - flat[15:].mean(axis=0)
    assert np.linalg.norm(own) > 2 * max(flat[:15].std(axis=0).max(), flat[15:].std(axis=0).max())
    for bad, error in (
        (np.ones((9, 2)), NotApplicable),
        (np.full((9, 2), np.nan), Diverged),
        (np.eye(3), NotApplicable),
    ):
        with pytest.raises(error, match="no map"):
            training_states.flat_map(bad)


# ---------------------------------------------------------------------- the page
def written(plan: TrainingPlan, done: Trained, folder: Path) -> list[Any]:
    """The rows of a run folder filled with what was trained before."""
    perform(training.training_study(plan, lambda: done), plan.run_config, folder)
    return training_rows.read_results(folder, plan)


@pytest.mark.slow
def test_trials_that_diverged_are_told_and_left_out(done: Trained, tmp_path: Path) -> None:
    plan = make_plan(Request("karate", splits="0-1"))
    broken = dataclasses.replace(done, status=("diverged in epoch 3", "ok"))
    rows = written(plan, broken, tmp_path)
    kept = Network.load(tmp_path / "network").parameters
    assert all(torch.equal(kept[name], value) for name, value in done.network(1).parameters.items())
    summary = training_summary.summarise(plan, rows)
    assert summary.sentences()[-1] == "1 of 2 trials diverged: split 0 seed 0: diverged in epoch 3."


@pytest.mark.slow
def test_a_training_that_failed_altogether_has_a_page(done: Trained, tmp_path: Path) -> None:
    plan = make_plan(Request("karate", splits="0-1"))
    history = np.full_like(done.history, np.nan)
    nothing = dataclasses.replace(
        done, status=("diverged in epoch 1",) * 2, history=history, best_epoch=np.zeros(2, dtype=int),
        test_accuracy=np.zeros(2), val_accuracy=np.zeros(2),
    )  # fmt: skip
    written(plan, nothing, tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Every trial diverged, so there is no network to draw." in page
    assert "2 of 2 trials diverged" in page
    assert [p.name for p in (tmp_path / "figures").iterdir() if p.suffix == ".png"] == ["learning.png"]
    assert not (tmp_path / "network").exists()


def test_the_page_says_what_could_not_be_drawn() -> None:
    one = trained(1, reaction="AC", method="euler", step=0.5)
    pictures, missing = training.draw_all(one)
    assert [p.name for p in pictures] == ["learning", "coefficients", "confusion", "states"]
    assert len(missing) == 1
    assert missing[0].startswith("Filter response: no symbol because")
