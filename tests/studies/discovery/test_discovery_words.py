"""What the report says of how many equations there are, held against counts that are plain to see."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gread import karate
from gread.discovery import discovering
from gread.discovery.discovering import discover
from gread.discovery.line_training import LineResult
from gread.discovery.term_grammar import Line
from gread.tuning.candidates import TrialResult
from studies.discovery.discovery_words import counted_sentence


def pretended(data: Any, lines: list[tuple[int, Line]], base: Any, **options: Any) -> list[LineResult]:
    values = (0.5,) * len(options["splits"])
    return [LineResult(TrialResult(number, "complete", 20, values, values), {}) for number, _ in lines]


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
    told = re.search(r"(\d+) are larger ones, drawn by random", text)
    assert (int(told[1]) if told else 0) == drawn
