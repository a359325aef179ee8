"""The analysis and the preflight of several fields answer every question, or say why not."""

from __future__ import annotations

import json

import pytest

import rdgraph as rd

SYSTEMS = (
    "u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v",
    "H'' = -gamma*H - alpha*H' + tanh(A@H)",
    "u' = -alpha*exp(-t)*L@u + beta*sin(omega*t)",
    "H' = -alpha*L@H + beta*B@H where B antisymmetric",
    "u' = -L@u + sigma*u*xi",
    "u' = k*u - M*u*v; v' = A@(u*v) - v where k node",
    "u' = tanh(u@W) - c*v; v' = v0 - v",
    "u' = sqrt(u) - v; v' = u/(1 + u) - v",
)
KEYS = {
    "text", "latex", "fields", "linear", "has_source", "symbol", "response_exact", "lipschitz_global",
    "lipschitz_local", "one_sided", "existence", "starts", "invariant_box", "nonnegative", "step_limit_euler",
    "step_limit_rk4", "identifiable", "conserved",
}  # fmt: skip


@pytest.mark.parametrize("text", SYSTEMS)
def test_every_question_is_answered_or_explained(text: str) -> None:
    found = rd.analyse(text, ["row"]).to_dict()
    assert set(found) >= KEYS
    json.dumps(found)
    for key in ("symbol", "lipschitz_global", "lipschitz_local", "one_sided", "conserved", "step_limit_rk4"):
        assert found[key] is not None or found["notes"][key]
    assert found["existence"] in ("global", "local", "undecided")


@pytest.mark.parametrize("text", SYSTEMS)
@pytest.mark.parametrize("normalisation", ["row", "none"])
def test_preflight_never_fails(text: str, normalisation: str) -> None:
    page = rd.preflight(text, T=2, normalisation=normalisation)
    assert page.outcome in ("safe", "safe if", "undecided")
    assert {"existence", "step"} <= {finding.topic for finding in page.findings}
    assert str(page).startswith(f"preflight of {rd.parse(text)!r}")


def test_the_symbol_comes_by_rows() -> None:
    found = rd.analyse("u' = -L@u + 2*v; v' = -u", ["row"])
    assert found.answers["symbol"] == [["-lam", "2"], ["-1", "0"]]
    assert found.answers["fields"] == ["u", "v"]
    assert found.method.method == "exact"


@pytest.mark.slow
def test_verdicts_of_known_systems() -> None:
    grows = rd.preflight("u' = u**2 - L@u; v' = v*u - v", T=1)
    assert grows.outcome == "unsafe"
    linear = rd.preflight("u' = -L@u + 2*v; v' = -u", T=1, graph=[[0, 1], [1, 0]])
    assert linear.outcome == "safe"
    densities = rd.preflight("u' = -u*(A@v); v' = u*(A@v) - v", T=1)
    assert "u, v >= 0" in densities.verdict
    noisy = rd.preflight("u' = -L@u + xi", T=1)
    assert noisy.outcome == "undecided"
    assert noisy.settings["method"] == "euler-maruyama"
    assert rd.preflight("u' = -L@u + u*v; v' = -u", T=1).settings["method"] == "dopri5"


def test_the_step_follows_from_the_bound_of_the_slopes() -> None:
    choice = rd.theory.choose_method("u' = -L@u + tanh(v); v' = -u", T=4, normalisation="row", stepped=True)
    assert choice.method == "rk4"
    assert choice.step <= 1 / 3
    assert "K = 3" in choice.reason
    timed = rd.theory.choose_method("u' = t*u - v; v' = u", T=10, normalisation="row", stepped=True)
    assert timed.step <= 1 / 11
