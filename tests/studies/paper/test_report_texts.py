"""What reports say of their runs follows from the settings: small runs, changed ones, sets without a printed table."""

from __future__ import annotations

from typing import Any

import pytest

from studies.paper import (
    ablation,
    depth,
    embeddings,
    forensics,
    homophily,
    runtime,
    sensitivity,
    significance,
    wellposedness,
)
from studies.runs.tables import MutableRow


@pytest.mark.parametrize(("module", "small", "full"), [
    (homophily, "random features in place of those of Cora, one graph", "with features of Cora, several graphs a"),
    (homophily, "but for epochs and channels: 15 epochs, 8 channels", "follow Table 11: 100 epochs, 64 channels, E"),
    (homophily, "reactions choose adjacency, the others nothing, with",
     "reactions choose adjacency, T and learning rate, GRAND T, learning rate and weight decay, the others learning "
     "rate and weight decay, with the same epochs, channels and dropouts. Figure 6"),
    (homophily, "one graph has no standard error", "with three graphs Student's quantile is 4.3 standard errors, more"),
    (significance, "released for texas, since karate has none, but 15", "the settings that the authors released;"),
    (embeddings, "released settings for texas, since karate", "GREAD-BS with the authors' released settings, a net"),
    (depth, "for GREAD-ST on texas, since karate has none, but 15", "prints for GREAD-ST on the same set; GRAND++"),
    (sensitivity, "best settings for texas, since karate", "of the paper's best settings and change T alone;"),
    (ablation, "(Tables 13 to 19) for texas, since karate", "the paper's best ones (Tables 13 to 19); the paper"),
    (wellposedness, "The paper's settings for texas, since karate", "The paper's settings. Statements"),
    (forensics, "(Tables 13 to 19) for texas, since karate", "(Tables 13 to 19) on the first 10 public splits"),
    (runtime, "on karate, as the paper times them", "One network at a time on cora, as the paper times them"),
])  # fmt: skip
def test_texts_say_what_was_run(module: Any, small: str, full: str) -> None:
    told, whole = (module.about(module.settings(is_small)) for is_small in (True, False))
    assert small in told
    assert full not in told
    assert full in whole
    assert "karate" not in whole
    assert "nothing is compared" not in whole


def test_texts_follow_settings_that_were_changed() -> None:
    chosen = {**homophily.settings(False), "graphs": 5, "times": [3.0], "models": ["grand"], "dropout": 0.1}
    told = homophily.about(chosen)
    assert "Table 11, but for dropout: 100 epochs, 64 channels, Euler's method, dropout 0.1," in told
    assert "reactions choose adjacency and learning rate, GRAND learning rate and weight decay, with the same" in told
    assert "given are T 3." in told
    assert "with 5 graphs Student's quantile is 2.8 standard errors" in told
    assert "GRAND chooses learning rate" in homophily.about({**chosen, "reactions": []})
    told = embeddings.about(
        {**embeddings.settings(False), "reaction": "AC", "kind": "paper", "sets": ["cora", "karate"]}
    )
    assert "GREAD-AC with the settings that the paper prints, on karate, which has none, those for texas, a n" in told
    assert "T = 2, step 0.5, 32 channels" in runtime.about(
        {**runtime.settings(False), "time": 2.0, "step": 0.5, "hidden": 32}
    )


def test_statements_cite_a_table_that_has_the_set() -> None:
    row = {"layers": 2, "difference": 1.0, "p_holm": 0.5}
    for reading, dataset, words in (
        (depth.BEST, "cora", "GREAD-ST shows superiority to GRAND++ in all data sets (Table 22)."),
        (depth.BEST, "karate", "GREAD-ST is better than GRAND++ on karate."),
        (depth.UNIT, "cora", f"at every depth (Table 23), where {depth.READINGS[depth.UNIT]}."),
        (depth.UNIT, "texas", f"at every depth on texas, where {depth.READINGS[depth.UNIT]}."),
    ):
        ((statement, _, _),) = depth.pair_verdicts([{**row, "reading": reading, "dataset": dataset}])
        assert statement.endswith(words)
    test: MutableRow = {"difference": 1.0, "error": 0.5, "p_holm": 0.5, "splits": 10}
    changes = [{"dataset": name, **test} for name in ("cora", "karate")]
    (cora, karate) = (statement for statement, _, _ in embeddings.verdicts(changes))
    assert (cora.endswith("(Figures 2 and 10)."), karate.endswith("one class.")) == (True, True)
    numbers = ("difference", "corrected_t", "corrected_p_holm", "probability", "runs", "welch_t", "welch_p_holm")
    found = dict.fromkeys(numbers, 0.5)
    rows: list[MutableRow] = [
        {**found, "dataset": "cora", "paper_t": 3.25}, {**found, "dataset": "karate", "paper_t": float("nan")}
    ]  # fmt: skip
    cora, karate = significance.set_verdicts(rows)
    assert (cora[0], cora[2].endswith("after Holm; printed: t = 3.25")) == (
        "GREAD-BS is better than GRAND on cora (Table 24).", True
    )  # fmt: skip
    assert (karate[0], karate[2].endswith("after Holm")) == ("GREAD-BS is better than GRAND on karate.", True)
