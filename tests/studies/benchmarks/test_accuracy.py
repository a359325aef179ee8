"""The pages of accuracy and training speed come from their numbers; the measuring programs compute what they say."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from gread.datasets.embedded import karate
from gread.settings.presets import find_preset, find_published
from gread.settings.trials import make_trials
from gread.training.ensemble import Ensemble
from gread.training.trainer import train
from studies.benchmarks import accuracy, accuracy_page, gather_scatter_network, speed_page, training_speed
from studies.benchmarks.accuracy import chosen, difference, replaced, row_of, verdict


def test_the_page_of_accuracies_is_made_from_the_numbers():
    found = json.loads(accuracy_page.SOURCE.read_text(encoding="utf-8"))
    assert (accuracy_page.DOCS / "accuracy.md").read_text(encoding="utf-8") == accuracy_page.page(found)
    assert len(found["authors"]["rows"]) == 9
    assert len(found["paper"]["rows"]) == 63
    for row in found["paper"]["rows"]:
        assert row["paper"] == find_published(f"GREAD-{row['reaction']}", row["dataset"]).mean
        assert row["mean"] == pytest.approx(np.mean(row["by_seed"]), abs=1e-3)


def test_every_mean_with_the_authors_settings_agrees_with_their_code():
    found = json.loads(accuracy_page.SOURCE.read_text(encoding="utf-8"))
    rows = [row for row in found["authors"]["rows"] if row["authors"] is not None]
    assert len(rows) == 7
    for row in rows:
        gap, error = difference(row["mean"], row["std"], row["splits"], row["authors"], row["authors_std"])
        assert verdict(gap, error) in ("agrees", "above"), row["dataset"]


def test_the_targets_of_training_were_reached():
    found = json.loads(speed_page.TRAINING.read_text(encoding="utf-8"))
    rows = [row for part in found.values() for row in part["rows"]]
    assert {row["topic"] for row in rows} == {"training", "sweep", "cpu training"}
    assert all(row["met"] for row in rows if row["target"])


@pytest.mark.parametrize(("kind", "count"), [("authors", 9), ("paper", 63)])
def test_kinds_of_cells(kind, count):
    cells = chosen(kind, None, None)
    assert len(cells) == count
    assert {cell.name.partition("/")[0] for cell in cells} == {kind}
    assert [c.dataset for c in chosen(kind, ["cora"], ["BS"])] == ["cora"]


def test_a_row_tells_what_was_trained():
    preset = find_preset("paper", "BS", "cora")
    config = preset.config.updated({"hidden": 8, "epochs": 3})
    done = train(karate(), make_trials(config, range(10), range(2)), device="cpu", keep_best=False)
    row = row_of(replace(preset, config=config), done, 10)
    each = 100 * done.test_accuracy.reshape(2, 10)
    assert row.mean == pytest.approx(each.mean())
    assert row.std == pytest.approx(each.std(axis=1).mean())
    assert row.by_seed == tuple(np.round(each.mean(axis=1), 4))
    assert (row.preset, row.paper, row.authors, row.diverged) == ("paper", 88.57, None, 0)
    kept = replaced([{"reaction": "BS", "dataset": "cora", "mean": 0.0}, {"reaction": "BS", "dataset": "film"}], row)
    assert [r["dataset"] for r in kept] == ["film", "cora"]


def test_the_plain_program_computes_the_same_network():
    """The peer of the speed on a CPU has the same logits as our network with the same parameters."""
    config = find_preset("authors", "BS", "cora").config.updated({"hidden": 8, "attention_dim": 8})
    data = karate()
    ensemble = Ensemble(data, make_trials(config, [0]))
    peer = gather_scatter_network.GatherScatter(data, config)
    ours = dict(ensemble.model.named_parameters())
    names = {"encoder": "encoder", "query": "query", "key": "key", "hidden": "decoder_hidden", "decoder": "decoder"}
    with torch.no_grad():
        for layer, name in names.items():
            getattr(peer, layer).weight.copy_(ours[f"{name}_weight"][0].T)
            getattr(peer, layer).bias.copy_(ours[f"{name}_bias"][0])
        peer.alpha.copy_(ours["coefficient_alpha"][0])
        peer.beta.copy_(ours["coefficient_beta"][0])
        torch.testing.assert_close(peer.eval()(), ensemble.logits()[0], rtol=1e-4, atol=1e-5)


def test_the_sweep_has_members_that_share_a_batch():
    trials = training_speed.sweep_trials(4)
    assert len(trials) == 40
    assert len({t.shape for t in trials}) == 1
    assert len({t.config.model.time for t in trials}) == 4


def test_the_floor_counts_gathers_entries_and_parameters():
    config = find_preset("authors", "BS", "cora").config.updated({"hidden": 8, "attention_dim": 8})
    ensemble = Ensemble(karate(), make_trials(config, [0, 1]))
    edges, entries = ensemble.model.operator.num_edges, ensemble.problem.features.values.numel()
    weights = sum(p.numel() for p in ensemble.parameters.values())
    row = 4 * 8 * 2
    expected = (ensemble.model.degree * edges * row * 5 + entries * row * 3 + weights * 28) / 1e9
    assert training_speed.floor(ensemble, 1e9) == pytest.approx(expected)


def test_accuracy_on_the_command_line(tmp_path, monkeypatch, capsys):
    quick = find_preset("authors", "BS", "texas")
    cell = replace(quick, dataset="karate", config=quick.config.updated({"epochs": 2, "hidden": 8}))
    monkeypatch.setattr(accuracy, "chosen", lambda *_: [cell])
    monkeypatch.setattr("sys.argv", ["accuracy", "--preset", "authors", "--seeds", "1", "--device", "cpu",
                                     "--out", str(tmp_path / "a.json")])  # fmt: skip
    accuracy.main()
    found = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert [row["dataset"] for row in found["authors"]["rows"]] == ["karate"]
    assert found["authors"]["command"].startswith("python -m studies.benchmarks.accuracy --preset authors")
    assert "authors BS karate" in capsys.readouterr().err
