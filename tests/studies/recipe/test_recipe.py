"""The study of the recipe: which line is which layer, choices on validation alone, planted differences."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gread import karate
from gread.models.features import Features
from gread.models.gread_model import GREAD, Stack
from gread.models.place import Place
from gread.models.resolution import resolve_method
from gread.settings.config import Config
from gread.settings.presets import presets
from rdgraph import Graph
from studies.cells import cell as cells
from studies.cells.cell import file_name, load_set
from studies.paper import paired_rows
from studies.recipe import study
from studies.recipe.study import (
    AVERAGES,
    BASE,
    GRAPH,
    PROPAGATIONS,
    RECIPES,
    chosen_trials,
    findings,
    load_fresh,
    variations,
)
from studies.registered_studies import find_study
from studies.results import read_result, results_folder
from studies.runs.study import execute
from studies.runs.tables import MutableRow, parse_rows
from tests.paths import ROOT
from tests.studies.paper.planted import planted_rows

# ---------------------------------------------------------------------- lines and layers
NODES, WIDTH = 5, 4
#: A triangle with a tail, and a node without edges.
EDGES = ((0, 1), (1, 2), (2, 0), (2, 3))


def dense() -> np.ndarray:
    W = np.zeros((NODES, NODES))
    for a, b in EDGES:
        W[a, b] = W[b, a] = 1.0
    return W


def stack_of(propagation: str, **recipe: Any) -> Stack:
    graph = Graph.from_edges(np.argwhere(dense()).T, num_nodes=NODES)
    settings = {
        **GRAPH,
        **PROPAGATIONS[propagation]["settings"],
        **recipe,
        "hidden": WIDTH,
        "heads": 2,
        "attention_dim": 6,
    }
    config = Config().updated(settings)
    place = Place.of(graph, dtype=torch.float64)
    model = GREAD(config.gread, place, features=3, classes=2, seeds=[1])
    assert isinstance(model, Stack)
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(torch.randn(value.shape, generator=draw, dtype=torch.float64))
    return model


def numbers(model: Stack, name: str) -> np.ndarray:
    return model.get_parameter(name)[0].detach().numpy()


def averaged(propagation: str, Z: np.ndarray, model: Stack) -> np.ndarray:
    """What the neighbours pass on, by the formula of the layer."""
    W = dense()
    if propagation == "gcn":
        W = W + np.eye(NODES)
        degree = W.sum(1)
        return W / np.sqrt(degree)[:, None] / np.sqrt(degree) @ Z
    if propagation == "sage":
        degree = np.maximum(W.sum(1), 1.0)[:, None]  # the mean of no neighbours is zero
        return W / degree @ Z
    query, key = (
        (Z @ numbers(model, f"blocks.0.{name}_weight") + numbers(model, f"blocks.0.{name}_bias")).reshape(NODES, 2, 3)
        for name in ("query", "key")
    )
    total = np.zeros_like(W)
    for head in range(2):
        scores = np.where(W + np.eye(NODES) > 0, query[:, head] @ key[:, head].T / np.sqrt(3), -np.inf)
        weights = np.exp(scores - scores.max(1, keepdims=True))
        total += weights / weights.sum(1, keepdims=True) / 2
    return total @ Z


@pytest.mark.parametrize("propagation", ["gcn", "sage", "attention"])
def test_a_line_is_the_layer_it_stands_for(propagation: str) -> None:
    model = stack_of(propagation, blocks=1, mixing=True, residual="linear")
    X = np.random.default_rng(0).standard_normal((NODES, 3))
    states = model.states(Features.make(X, dtype=torch.float64), dropper())
    h, after = (state[0].detach().numpy() for state in states)
    Z = h @ numbers(model, "blocks.0.mixing_weight") + numbers(model, "blocks.0.mixing_bias")
    own = h @ numbers(model, "blocks.0.residual_weight") + numbers(model, "blocks.0.residual_bias")
    expected = averaged(propagation, Z, model)
    np.testing.assert_allclose(after, expected + own, rtol=1e-9, atol=1e-9)


def dropper() -> Any:
    from gread.models.randomness import Dropper

    return Dropper()


# ---------------------------------------------------------------------- what is searched
SMALL: dict[str, Any] = {**study.settings(True), "trials": 5}


def test_trials_have_what_the_propagation_and_the_recipe_fix() -> None:
    for recipe, fixed in RECIPES.items():
        for propagation in PROPAGATIONS:
            wanted = {**GRAPH, **PROPAGATIONS[propagation]["settings"], **fixed, "hidden": SMALL["hidden"]}
            for one in variations(propagation, recipe, SMALL, 0):
                model = one.config.model
                assert {name: getattr(model, name) for name in wanted} == wanted
                assert one.config.training.epochs == SMALL["epochs"]
    drawn = [one.config.gread for one in variations("BS", "tuned", {**SMALL, "trials": 12}, 0)]
    assert len({one.blocks for one in drawn}) > 1
    assert len({one.time for one in drawn}) == 12


def test_test_nodes_choose_nothing() -> None:
    row = {"dataset": "a", "propagation": "BS", "recipe": "bare"}
    rows: list[MutableRow] = [
        {**row, "trial": trial, "val_accuracy": value, "test_accuracy": test}
        for trial, pairs in enumerate([((0.5, 0.9), (0.6, 0.9)), ((0.8, 0.1), (0.7, 0.1)), ((float("nan"), 1.0),)])
        for value, test in pairs
    ]
    assert chosen_trials(rows) == {("a", "BS", "bare"): (1, pytest.approx(0.75))}
    assert chosen_trials(rows[::-1]) == {("a", "BS", "bare"): (1, pytest.approx(0.75))}


def test_the_last_splits_are_new() -> None:
    old, new = load_set("karate").masks, load_fresh("karate", 3, 0).masks
    assert new.num_splits == 3
    assert not any((a == b).all() for a in old.train for b in new.train)


# ---------------------------------------------------------------------- planted numbers
def planted(shifts: dict[tuple[str, str], float]) -> list[MutableRow]:
    """Every propagation with every recipe at 60 percent, some of them moved."""
    extra = {"parameters": 100, "settings": "", "spectrum_end": 1.5, "gains": json.dumps([(1 - study.LAM).tolist()])}
    noise = np.random.default_rng(0)
    rows = []
    for recipe in RECIPES:
        for propagation in ("gcn", "BS", "F"):
            mean = 60.0 + shifts.get((propagation, recipe), 0.0)
            made = planted_rows(mean, 1.0, "film", propagation=propagation, recipe=recipe, trial=0, **extra)
            for row in made:
                row["test_accuracy"] = float(row["test_accuracy"]) + 1e-3 * noise.standard_normal()
            rows += made
    return rows


def found(shifts: dict[tuple[str, str], float], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(paired_rows, "load_set", lambda name: karate())
    chosen = {("film", p, r): (0, 0.5) for r in RECIPES for p in ("gcn", "BS", "F")}
    settings = {**study.settings(False), "propagations": ["gcn", "BS", "F"]}
    return findings(study.Measured(planted(shifts), chosen), settings)


def test_a_planted_equation_and_a_planted_ingredient_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    norm = {(p, r): 5.0 for p in ("gcn", "BS", "F") for r in ("norm", "matrices", "tuned")}
    result = found({**norm, ("BS", "tuned"): 9.0}, monkeypatch)
    (summary,), table = result.items[1].rows, result.items[2].rows
    assert list(summary) == ["data set", *RECIPES]
    effects = {row["name"]: row for row in table if row["kind"] != "equations"}
    equations = {row["name"]: row for row in table if row["kind"] == "equations"}
    assert equations["tuned"]["difference"] == pytest.approx(2.0, abs=0.2)  # the mean of 4 for BS and 0 for F
    assert equations["tuned"]["p_holm"] < 0.05 < min(equations[r]["p_holm"] for r in RECIPES if r != "tuned")
    tuned = equations["tuned"]
    assert summary["tuned"].startswith(
        f"{tuned['difference']:+.1f} ({tuned['low']:+.1f} to {tuned['high']:+.1f}), p = "
    )
    assert effects["norm"]["difference"] == pytest.approx(5.0, abs=0.2)
    assert effects["tuned"]["difference"] == pytest.approx(4 / 3, abs=0.2)
    assert effects["residual"]["p_holm"] > 0.05 > effects["norm"]["p_holm"]
    assert effects["BS"]["difference"] == pytest.approx(4.0, abs=0.2)
    assert effects["F"]["p_holm"] > 0.05 > effects["BS"]["p_holm"]
    assert effects["BS"]["low"] < 4.0 < effects["BS"]["high"]
    assert [answer for _, answer, _ in result.verdicts] == ["holds", "holds"]
    assert "tuned: ahead on 1, behind on 0" in result.answer
    assert (
        "ahead of the GCN average on 0 of 1 data sets and behind on 0; residual: ahead on 0, behind on 0"
        in result.answer
    )
    assert "on 1 of 1" in result.answer
    assert "film BS +4" in result.answer


def test_equal_propagations_are_refuted_and_wide_ones_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    same = found({}, monkeypatch)
    assert [answer for _, answer, _ in same.verdicts] == ["fails", "undecided"]
    assert "tuned: ahead on 0, behind on 0" in same.answer
    assert "on any of 1" in same.answer
    rows = {(r["propagation"], r["recipe"]): r for r in same.results}
    assert all(row["filter"] == "band-stop, |g| 1 at 0 and 0.5 at 1.5" for row in rows.values())
    assert rows[BASE, "tuned"]["ratio"] == 1.0


# ---------------------------------------------------------------------- what was measured
def test_the_kept_numbers_say_what_the_readme_says() -> None:
    kept = read_result("recipe")
    columns = kept["results"]["columns"]
    rows = [dict(zip(columns, row, strict=True)) for row in kept["results"]["rows"]]
    mean = {(row["dataset"], row["propagation"], row["recipe"]): row["mean"] for row in rows}
    sets = {row["dataset"] for row in rows}
    equations = [p for p in PROPAGATIONS if p not in AVERAGES]

    def lead(dataset: str, recipe: str) -> float:
        return float(np.mean([mean[dataset, p, recipe] for p in equations]) - mean[dataset, BASE, recipe])

    ahead = [lead(name, "bare") for name in ("film", "texas", "cornell", "wisconsin")]
    assert 6.5 < min(ahead) < 7.5
    assert 34.5 < max(ahead) < 35.5
    assert len(sets) == 10
    assert kept["answer"].startswith("With the bare recipe the equations are significantly ahead")
    assert " on 4 of 10 " in kept["answer"]
    assert all(f"{recipe}: ahead on 0" in kept["answer"] for recipe in RECIPES if recipe != "bare")
    assert "7 to 35 points" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_modern_presets_are_the_best_trials_by_validation_alone() -> None:
    kept = json.loads((results_folder() / "parts" / "recipe.json").read_text(encoding="utf-8"))["parts"]
    shipped = [preset for preset in presets() if preset.name.startswith("modern/")]
    assert {preset.dataset for preset in shipped} == {str(row[0]) for row in read_result("recipe")["results"]["rows"]}
    for preset in shipped[::7]:
        scores: dict[tuple[str, int], list[float]] = {}
        for recipe in RECIPES:
            for row in parse_rows(kept[file_name("search", preset.dataset, preset.reaction, recipe)]):
                scores.setdefault((recipe, int(row["trial"])), []).append(float(row["val_accuracy"]))
        recipe, trial = max(scores, key=lambda key: np.mean(scores[key]))
        settings = study.settings(False)
        config = variations(preset.reaction, recipe, settings, 0)[trial].config
        assert preset.config == replace(config, model=resolve_method(config.gread)[0])
        assert resolve_method(preset.config.gread) == (preset.config.gread, "")  # nothing is left to choose
        assert f"{recipe} recipe of" in preset.source


# ---------------------------------------------------------------------- the small mode
@pytest.mark.slow
def test_the_small_mode_answers_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = execute(find_study("recipe"), tmp_path / "run", small=True)
    outline = json.loads((tmp_path / "run" / "report.json").read_text(encoding="utf-8"))
    assert outline["state"] == "done"
    assert outline["answer"].startswith("With the bare recipe the equations are significantly ahead")
    assert "<math " in report.read_text(encoding="utf-8")
    results = (tmp_path / "run" / "results.csv").read_bytes()

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("trained again")

    monkeypatch.setattr(cells, "train", never)
    execute(find_study("recipe"), tmp_path / "run", small=True)
    assert (tmp_path / "run" / "results.csv").read_bytes() == results
