"""The verdict of the page beside that of rdgraph's own preflight, for the same numbers."""

from __future__ import annotations

import json
import random

import pytest

from rdgraph.reports.preflight_report import preflight
from rdgraph.systems.catalogue import catalogue
from tests.studies.runs.test_browser import Browser

#: A verdict of the page and one of the preflight that contradict each other.
CONTRADICTING = {("safe", "unsafe"), ("unsafe", "safe"), ("safe if", "unsafe"), ("unsafe", "safe if")}
ASK = """(() => {
  const {name, settings} = %s;
  const entry = entryOf(name), model = modelOfBundle(entry.bundle);
  const full = {...defaultsFor(model, entry), ...settings};
  const state = steadyStates(model, full.coefficients)[0] ?? null;
  const modes = isLinear(model) || state ? modesOf(model, full.coefficients, state) : null;
  return verdictOf(model, full, modes, responsesOf(model, full, modes), 1).status;
})()"""


def drawn(name: str, rng: random.Random) -> dict[str, object]:
    """Coefficients, an end, a step and a method."""
    letters = {n: round(rng.uniform(0.1, 2.0), 2) for n in catalogue[name].coefficients}
    step = rng.choice([0.05, 0.25, 0.5, 1.0])
    return {"coefficients": letters, "T": rng.choice([1.0, 5.0, 20.0]), "step": step,
            "method": rng.choice(["euler", "heun", "rk4"]),
            "normalisation": rng.choice(["symmetric", "row"])}  # fmt: skip


def both(browser: Browser, name: str, settings: dict[str, object]) -> tuple[str, str]:
    page = browser.evaluate(ASK % json.dumps({"name": name, "settings": settings}))
    return page, preflight(name, **settings).status  # type: ignore[arg-type]


LINEAR = ["BS", "ST", "FB", "FB*-released", "SGC"]
NONLINEAR = ["F", "AC"]


def test_a_safe_and_an_unsafe_run_are_told_apart(opened: Browser) -> None:
    told = [both(opened, "BS", {"coefficients": {"alpha": 1, "beta": 1}, "T": 5.0, "step": step, "method": "euler"})
            for step in (0.25, 1.0)]  # fmt: skip
    assert told == [("safe", "safe"), ("unsafe", "unsafe")]


@pytest.mark.slow
@pytest.mark.parametrize("name", LINEAR)
def test_one_linear_field_is_judged_alike(opened: Browser, name: str) -> None:
    rng = random.Random(name)
    for settings in (drawn(name, rng) for _ in range(3)):
        page, ours = both(opened, name, settings)
        assert page == ours, (name, settings)


@pytest.mark.slow
@pytest.mark.parametrize("name", NONLINEAR)
def test_one_nonlinear_field_is_not_judged_otherwise(opened: Browser, name: str) -> None:
    rng = random.Random(name)
    for settings in (drawn(name, rng) for _ in range(4)):
        page, ours = both(opened, name, settings)
        assert (page, ours) not in CONTRADICTING, (name, settings, page, ours)
