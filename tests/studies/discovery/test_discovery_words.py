"""What the report says of how many equations there are, held against counts that are plain to see."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from gread import karate
from gread.discovery import discovering
from gread.discovery.discovering import discover
from gread.discovery.equation_batches import EquationResult
from gread.discovery.term_grammar import Line
from gread.discovery.winner_checks import Retrained
from studies.discovery.discovery_words import (
    CursePart,
    Yardsticks,
    answer_sentence,
    counted_sentence,
    reaction_rows,
    verdicts,
)


def pretended(data: Any, lines: list[tuple[int, Line]], base: Any, **options: Any) -> list[EquationResult]:
    values = (0.5,) * len(options["splits"])
    return [EquationResult(number, "complete", 20, values, values) for number, _ in lines]


@pytest.mark.parametrize(("budget", "is_sample", "drawn"), [(20, True, 0), (40, False, 0), (46, False, 6)])
def test_the_counts_are_those_of_the_search(
    monkeypatch: pytest.MonkeyPatch, budget: int, is_sample: bool, drawn: int
) -> None:
    monkeypatch.setattr(discovering, "train_lines", pretended)
    found = discover(karate(), terms="small", size=2, budget=budget, sampler="random", splits=[0], device="cpu")
    text = counted_sentence(found)
    assert "44 equations of up to 2 terms (small, 9 terms): 40 behaviours." in text
    assert f"{budget} were trained on 1 split," in text
    assert ("are a random sample" in text) == is_sample
    larger = re.search(r"(\d+) larger ones were drawn by random", text)
    assert (int(larger[1]) if larger else 0) == drawn


def test_a_reaction_that_always_diverged_is_not_tested_against(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovering, "train_lines", pretended)
    found = discover(karate(), terms="small", size=1, budget=5, sampler="random", splits=[0, 1, 2], device="cpu")
    low = {0: (0.2, 0.3), 1: (0.2, 0.3), 2: (0.2, 0.33)}
    none = dict.fromkeys(range(3), (0.0, 0.0))
    beside = Yardsticks({"BS": Retrained("BS", low, 3, 1), "Z": Retrained("Z", none, 3, 3)}, 0.5)
    chosen, bs, z = reaction_rows(found, beside)
    assert list(chosen) == list(bs) == list(z)
    assert (bs["validation"], bs["chosen_minus_it"], bs["diverged"]) == (pytest.approx(20.0), pytest.approx(19.0), 1)
    assert 0 < bs["p"] < 1
    assert all(math.isnan(z[name]) for name in ("validation", "test", "chosen_minus_it", "error", "p"))
    assert (z["equation"], z["diverged"]) == ("Z", 3)


@pytest.mark.parametrize(("diverged", "words"), [(2, "BS with the same settings has 0.00 %"), (3, "diverged in all")])
def test_nothing_is_better_than_what_always_diverged(
    monkeypatch: pytest.MonkeyPatch, diverged: int, words: str
) -> None:
    monkeypatch.setattr(discovering, "train_lines", pretended)
    found = discover(karate(), terms="small", size=1, budget=5, sampler="random", splits=[0, 1, 2], device="cpu")
    bs = Retrained("BS", dict.fromkeys(range(3), (0.0, 0.0)), 3, diverged)
    own = Retrained("chosen", {0: (0.5, 0.5), 1: (0.5, 0.5), 2: (0.5, 0.51)}, 3, 0)
    beside, curse = Yardsticks({"BS": bs}, 0.5), CursePart({"fresh_splits": {"chosen": own, "BS": bs}}, 0.5)
    task: Any = None  # the words need none
    assert len(verdicts(task, found, beside, curse)) == (2 if diverged < 3 else 0)
    text = answer_sentence(task, found, beside, curse)
    assert words in text
    assert ("better than BS" in text) == (diverged < 3)
