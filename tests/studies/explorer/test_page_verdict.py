"""The verdict of the page compared with that of rdgraph's preflight, for the same numbers."""

from __future__ import annotations

import json
import random

import pytest

from rdgraph.reports.preflight_report import preflight
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from studies.explorer.equation_bundle import make_bundle
from tests.studies.runs.test_browser import Browser

#: A verdict of the page and one of the preflight that contradict each other.
CONTRADICTING = {("safe", "unsafe"), ("unsafe", "safe"), ("safe if", "unsafe"), ("unsafe", "safe if")}
ASK = """(() => {
  const {name, bundle, settings} = %s;
  const entry = bundle ? null : entryOf(name), model = modelOfBundle(bundle ?? entry.bundle);
  const full = {...defaultsFor(model, entry), ...settings};
  const state = steadyStates(model, full.coefficients)[0] ?? null;
  const modes = isLinear(model) || state ? modesOf(model, full.coefficients, state) : null;
  return verdictOf(model, full, modes, responsesOf(model, full, modes), 1).status;
})()"""


def drawn(name: str, rng: random.Random) -> dict[str, object]:
    """Coefficients, an end, a step and a method."""
    coefficients = {n: round(rng.uniform(0.1, 2.0), 2) for n in catalogue[name].coefficients}
    step = rng.choice([0.05, 0.25, 0.5, 1.0])
    return {"coefficients": coefficients, "T": rng.choice([1.0, 5.0, 20.0]), "step": step,
            "method": rng.choice(["euler", "heun", "rk4"]),
            "normalisation": rng.choice(["symmetric", "row"])}  # fmt: skip


def both(browser: Browser, name: str, settings: dict[str, object], bundle: object = None) -> tuple[str, str]:
    page = browser.evaluate(ASK % json.dumps({"name": name, "bundle": bundle, "settings": settings}))
    ours = {{"coefficients": "values"}.get(setting, setting): value for setting, value in settings.items()}
    return page, preflight(name, **ours).outcome  # type: ignore[arg-type]


LINEAR = ["BS", "ST", "FB", "FB*-released", "SGC"]
NONLINEAR = ["F", "AC"]


def test_a_safe_and_an_unsafe_run_are_distinguished(opened: Browser) -> None:
    pairs = [both(opened, "BS", {"coefficients": {"alpha": 1, "beta": 1}, "T": 5.0, "step": step, "method": "euler"})
            for step in (0.25, 1.0)]  # fmt: skip
    assert pairs == [("safe", "safe"), ("unsafe", "unsafe")]


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


#: Equations whose step limits hold at states that are the same in all nodes; no run is safe by them alone.
EQUAL_STATES = ["-alpha*L@H + beta*sigmoid(H)*(A@H - H)", "-alpha*L@H + beta*tanh(A@H)*H"]


@pytest.mark.slow
@pytest.mark.parametrize("equation", EQUAL_STATES)
def test_a_limit_at_equal_states_makes_no_run_safe(opened: Browser, equation: str) -> None:
    bundle = make_bundle(parse(equation), seconds=60)
    coefficients = {"alpha": 1.0, "beta": 1.0}
    for step in (0.02, 0.25, 5.0):
        settings = {"coefficients": coefficients, "T": 2.0, "step": step, "method": "euler", "normalisation": "row"}
        page, ours = both(opened, equation, settings, bundle)
        assert page == ours, (equation, step)
        assert page != "safe"
