"""Preflight verdicts: never "safe" for a run that fails, reasons named, bad settings refused."""

from __future__ import annotations

import io
from typing import Any

import networkx as nx
import numpy as np
import pytest

import rdgraph as rd
from rdgraph.errors import InvalidArgument, Undecided
from rdgraph.graphs.normalisation import dense_operator
from rdgraph.reals.budget import spend
from rdgraph.reports import preflight_report, safety_checks
from rdgraph.reports.findings import INFO, PROBLEM, UNKNOWN, Finding
from rdgraph.reports.run_settings import RunSettings, read_run
from rdgraph.theory.equality.dense_oracle import evaluate


def test_verdicts() -> None:
    one = {"alpha": 1, "beta": 1}
    assert rd.preflight("BS", T=40, method="euler", step=1, values=one).outcome == "unsafe"
    assert rd.preflight("BS", T=4, method="rk4", step=0.25, values={"alpha": 1, "beta": 0.5}).outcome == "safe"
    assert rd.preflight("BS", T=4, method="exact", values=one).outcome == "safe"
    assert rd.preflight("diffusion", T=1, method="euler", step=1).outcome == "safe if"
    fisher = rd.preflight("F", normalisation="row", T=4, method="euler", step=0.25, values=one)
    assert fisher.outcome == "safe if"
    assert "H0 lies in [0, 1]" in fisher.verdict
    assert rd.preflight("-alpha*L@H + beta*(H**2 + 1)", T=1, method="exact").outcome == "unsafe"
    negative = rd.preflight("-alpha*L@H + beta*H**2", normalisation="row", T=1, method="exact")
    assert negative.verdict.startswith("safe if H0 lies in [-R, 0] for some R > 0")
    assert rd.preflight("CGNN", T=1, method="euler", step=0.1).outcome == "undecided"
    growing = rd.preflight("FB", T=40, method="exact", values={"alpha": 0.1, "beta": 1})
    assert growing.outcome == "unsafe"
    assert "grows" in growing.verdict


def test_nonlinear_runs_are_not_called_safe_for_all_states() -> None:
    """Euler on Allen-Cahn diverges from large states although the flow does not."""
    report = rd.preflight("AC", normalisation="row", T=10, method="euler", step=0.25, values={"alpha": 1, "beta": 1})
    assert report.outcome == "safe if"
    a = dense_operator(nx.to_numpy_array(nx.path_graph(3)), "row")
    state = np.full((3, 1), 4.0)
    values = {"A": a, "alpha": np.array(1.0), "beta": np.array(1.0)}
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(40):
            state = state + 0.25 * evaluate(rd.catalogue["AC"].expression, values | {"H": state})
    assert not np.isfinite(state).all()
    stepped = rd.preflight("AC", normalisation="row", T=1, method="rk4", step=0.1, values={"alpha": 1, "beta": 1})
    assert stepped.verdict.startswith("safe if step 1/10 <= 2.785/(3*R**2 + 1) as long as |h| <= R")


@pytest.mark.parametrize(
    ("text", "values", "box", "limit", "keeps"),
    [
        ("F", None, ("0", "1"), "1/(alpha + beta)", "box"),
        ("F", {"alpha": 1, "beta": 3}, ("0", "1"), "1/4", "box"),
        ("diffusion", None, None, "1/alpha", "stability"),
        ("-alpha*L@H + beta*tanh(H) - H", {"alpha": 1, "beta": 0.5}, None, "2/3", "slopes"),
    ],
)
def test_a_step_line_carries_its_limit_and_what_it_keeps(
    text: str, values: dict[str, float] | None, box: tuple[str, str] | None, limit: str, keeps: str
) -> None:
    report = rd.preflight(text, normalisation="row", T=1, method="euler", step=0.1, values=values)
    line = finding(report, "step")
    assert (line.box and tuple(map(str, line.box)), str(line.limit), line.keeps) == (box, limit, keeps)


def test_a_step_beyond_its_limit_keeps_nothing() -> None:
    one = {"alpha": 1, "beta": 3}
    line = finding(rd.preflight("F", normalisation="row", T=1, method="euler", step=0.3, values=one), "step")
    assert (line.outcome, line.limit, line.keeps) == (PROBLEM, None, "")


def test_functions_of_neighbours_are_judged_without_their_operators() -> None:
    """phi(A@H - H) becomes a question about numbers, without a number for A."""
    text = "-alpha*L@H + phi(A@H - H) where phi learned lipschitz=1 odd"
    report = rd.preflight(text, T=2, method="euler", step=0.25)
    assert report.outcome == "safe if"
    assert {"conserved", "energy"} <= {f.topic for f in report.findings}
    one = {"alpha": 1, "beta": 1}
    report = rd.preflight("-alpha*L@H + beta*sigmoid(A@H - H)", T=2, method="euler", step=0.25, values=one)
    assert finding(report, "step").text.startswith("step 1/4 <= 4/5 ")


def test_verdicts_say_a_condition_once_and_name_their_letters() -> None:
    verdict = rd.preflight("F", T=2, method="euler", step=0.25).verdict
    assert verdict.count("H0 lies in") == 1
    assert verdict.endswith("(s is the largest row sum of A)")


def test_a_step_beyond_a_limit_that_is_not_sharp_is_open() -> None:
    one = {"alpha": 1, "beta": 1}
    report = rd.preflight("-alpha*L@H + beta*sigmoid(H)*(A@H - H)", T=2, method="euler", step=1, values=one)
    assert report.outcome == "undecided"
    assert "1/2" in finding(report, "step").text
    assert "exceeds the limit" not in report.verdict


def test_bounds_on_the_growth_of_errors_are_no_stability() -> None:
    """H' = H@W with W = -100 decays; Euler with step 0.1 multiplies by -9, though it separates runs as it may."""
    report = rd.preflight("-L@H + H@W + H0", T=1, method="euler", step=0.1)
    assert report.outcome == "undecided"
    assert "errors grow" in finding(report, "step").text
    damped = rd.preflight("-2*H + sin(A@H)", normalisation="row", T=1, method="euler", step=0.1)
    assert damped.outcome.startswith("safe")


def test_a_step_beyond_its_limit_is_not_called_safe_by_its_reason() -> None:
    """Below the verdict "exceeds the limit" the reason says that it holds up to the limit only."""
    one = {"alpha": 1, "beta": 1}
    step = finding(rd.preflight("BS", T=40, method="euler", step=1, values=one), "step")
    assert step.outcome == "problem"
    assert step.reason.startswith("only up to the limit")
    below = finding(rd.preflight("BS", T=40, method="euler", step=0.25, values=one), "step")
    assert below.outcome == "ok"
    assert "only" not in below.reason


def printed(report: rd.reports.Report, everything: bool = False) -> list[str]:
    from rich.console import Console

    from studies.cli.printed_pages import report_page

    console = Console(width=80, record=True, file=io.StringIO())
    console.print(report_page(report, everything=everything))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_the_page_of_several_fields_begins_with_their_equations() -> None:
    lines = printed(rd.preflight("u' = 1 - u; v' = u - v", T=4))
    assert lines[1].strip("│ ") == "u' = 1 - u"
    assert not any("dH/dt" in line for line in lines)


@pytest.mark.parametrize("name", ["BS", "F", "Brusselator"])
def test_a_preflight_fits_one_screen_and_names_what_it_leaves_out(name: str) -> None:
    report = rd.preflight(name, T=4, method="rk4", step=0.25)
    lines = printed(report)
    topics = [line[2:].split("  ")[0] for line in lines if line.startswith("  ") and line[2:3].strip()]
    assert len(lines) <= 40
    assert {f.topic for f in report.findings if f.outcome != INFO} <= set(topics)
    others = len(report.findings) - len(topics)
    assert any(f"{others} further" in line for line in lines)
    everything = printed(report, everything=True)
    assert all(any(line.startswith(f"  {f.topic} ") for line in everything) for f in report.findings)


def test_graph_refines_the_bounds() -> None:
    graph = nx.star_graph(5)
    wide = rd.preflight("F", T=1, method="euler", step=0.25, values={"alpha": 1, "beta": 1}, graph=graph)
    assert wide.outcome == "unsafe"  # s = sqrt(5): the limit is 1/(2 s - 1 + 1) = 0.2236
    narrow = rd.preflight("F", T=1, method="euler", step=0.1, values={"alpha": 1, "beta": 1}, graph=graph)
    assert narrow.outcome == "safe if"
    text = next(f.text for f in narrow.findings if f.topic == "graph")
    assert "6 nodes, 5 edges" in text
    assert "2.236" in text
    lonely = rd.preflight("diffusion", T=1, method="exact", graph=nx.empty_graph(3))
    assert any(f.topic == "isolated nodes" for f in lonely.findings)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"method": "rk9", "step": 1}, "expected a method"),
        ({"method": "euler"}, "expected a step"),
        ({"method": "euler", "step": 0}, "step > 0"),
        ({"method": "exact", "T": -1}, "T >= 0"),
        ({"method": "exact", "T": float("nan")}, "finite T"),
        ({"method": "exact", "normalisation": "none"}, "expected a normalisation"),
        ({"method": "exact", "graph": nx.DiGraph([(0, 1)])}, "undirected"),
        ({"method": "exact", "graph": np.ones((2, 3))}, "square"),
        ({"method": "exact", "graph": "cora"}, "networkx graph"),
        ({"method": "exact", "graph": np.full((2, 2), np.nan)}, "finite weights"),
        ({"method": "exact", "graph": np.zeros((0, 0))}, "square"),
        ({"method": "exact", "values": {"omega": 1}}, "expected coefficients among"),
    ],
)
def test_bad_settings(settings: dict[str, object], text: str) -> None:
    with pytest.raises(rd.errors.RdgraphError, match=text):
        rd.preflight("diffusion", **settings)  # type: ignore[arg-type]


def test_page_has_everything() -> None:
    page = str(rd.preflight("BS", T=3.49, method="rk4", step=0.25))
    for topic in (
        "symbol",
        "filter",
        "Lipschitz",
        "one-sided",
        "existence",
        "box",
        "step",
        "growth",
        "identifiable",
        "conserved",
        "energy",
    ):
        assert topic in page
    assert page.splitlines()[2].startswith("verdict: ")


def finding(report: rd.reports.Report, topic: str) -> Finding:
    return next(f for f in report.findings if f.topic == topic)


@pytest.mark.slow
def test_by_default_the_method_follows_from_the_equation() -> None:
    linear = rd.preflight("BS", T=4, values={"alpha": 1, "beta": 0.5})
    assert linear.outcome == "safe"
    assert linear.settings == {"normalisation": "symmetric", "T": "4", "method": "exact"}
    assert "exact flow" in finding(linear, "method").reason
    tanh = rd.preflight("-alpha*L@H + beta*tanh(H)", T=1)
    assert tanh.settings["method"] == "rk4"
    assert (tanh.settings["step"], tanh.settings["steps"]) == ("1/3", "3")
    assert rd.preflight("-alpha*L@H + beta*tanh(H)", T=0).settings["step"] == "23/50"
    given = rd.preflight("BS", T=4, step=0.25, values={"alpha": 1, "beta": 0.5})
    assert (given.settings["method"], given.settings["step"]) == ("rk4", "1/4")
    assert all(f.topic != "method" for f in rd.preflight("BS", method="exact").findings)


@pytest.mark.parametrize(
    ("line", "status", "text"),
    [
        ("AC", "ok", "exists for all time from every state"),
        ("F", "if", "H0 >= 0"),
        ("-alpha*L@H + H**2", "unknown", "not settled"),
        ("-alpha*L@H - beta*A@H + H*(1 - H)", "unknown", "not settled"),
        ("-alpha*L@H + beta*H", "ok", "commute"),
    ],
)
def test_steps_of_a_splitting(line: str, status: str, text: str) -> None:
    found = finding(rd.preflight(line, T=1, method="strang", step=0.5), "step")
    assert found.outcome == status
    assert text in found.text


@pytest.mark.parametrize(
    ("normalisation", "graph", "status"),
    [
        ("symmetric", nx.star_graph(4), "unknown"), ("symmetric", nx.cycle_graph(6), "if"), ("symmetric", None, "if"),
        ("row", nx.star_graph(4), "if"), ("row", nx.empty_graph(3), "unknown"),
        ("row", nx.gn_graph(6, seed=0), "unknown"),
    ],
)  # fmt: skip
def test_a_limit_at_states_that_are_equal_in_all_nodes_makes_no_run_safe(
    normalisation: str, graph: nx.Graph | None, status: str
) -> None:
    """Euler with step 10 multiplies a damped mode of the star by -3.7, and on rings it is far from the flow as well."""
    found = rd.preflight(
        "alpha*A@tanh(H) - beta*tanh(A@H)", T=100, method="euler", step=10, normalisation=normalisation, graph=graph,
        values={"alpha": 1, "beta": 0.9},
    )  # fmt: skip
    assert finding(found, "step").outcome == status
    assert not found.verdict.startswith("safe:")
    assert status == "unknown" or "nearly the same in all nodes" in found.verdict


DIRECTED = nx.DiGraph([(0, 1), (1, 2), (2, 0), (2, 3), (3, 0)])


@pytest.mark.parametrize(
    ("line", "method", "status", "text"),
    [
        ("-alpha*L@H - 0.2*sin(H)", "rk4", "ok", "2/5 <= 13/11"),
        ("-alpha*L@H - 0.2*sin(H)", "midpoint", "unknown", "no step limit"),
        ("-alpha*L@H - 0.2*tanh(H)", "euler", "ok", "2/5 <= 5/6"),
        ("-alpha*L@H - 0.2*sin(H)", "euler", "unknown", "how fast errors grow"),
    ],
)
def test_steps_on_a_directed_graph_need_no_real_spectrum(line: str, method: str, status: str, text: str) -> None:
    """Limits for undirected graphs make no run on a directed one safe."""
    found = rd.preflight(line, T=5, method=method, step=0.4, normalisation="row", graph=DIRECTED, values={"alpha": 1})
    step = finding(found, "step")
    assert (step.outcome, text in step.text) == (status, True)
    assert "undirected" not in found.verdict


def test_small_steps_are_safe_at_every_state_where_others_are_at_equal_ones() -> None:
    for graph in (nx.star_graph(4), nx.cycle_graph(6), None):
        found = rd.preflight("alpha*A@tanh(H) - 3*H", T=5, method="rk4", step=0.4, graph=graph, values={"alpha": 1})
        assert finding(found, "step").outcome == "ok"
        found = rd.preflight("alpha*A@tanh(H) - 3*H", T=5, method="rk4", step=0.68, values={"alpha": 1})
        assert finding(found, "step").outcome == "if"


def test_a_linear_system_whose_damping_has_a_bound_alone_is_safe_on_every_graph() -> None:
    line = "-alpha*L@L@L@L@H + 3*alpha*L@L@H - beta*L@H"
    assert rd.step_limit(line, "euler").keeps == "slopes"
    found = rd.preflight(line, T=1, method="euler", step=0.05, graph=nx.star_graph(4), values={"alpha": 1, "beta": 0.2})
    assert finding(found, "step").outcome == "ok"


def test_a_part_has_the_time_that_those_before_it_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part may spend the effort that the parts before it did not need."""

    def busy(run: RunSettings) -> list[Finding]:
        for _ in range(30):
            spend(0.01)
        return [Finding("Lipschitz", INFO, "in time")]

    monkeypatch.setitem(preflight_report.PARTS, "Lipschitz", busy)
    monkeypatch.setitem(preflight_report.SHARES, "Lipschitz", 0.05)
    found = rd.preflight("BS", T=1.0, method="euler", step=0.5)
    assert [f.text for f in found.findings if f.topic == "Lipschitz"] == ["in time"]
    monkeypatch.setitem(preflight_report.SHARES, "graph", 0.0)
    monkeypatch.setitem(preflight_report.SHARES, "symbol", 0.1)
    found = rd.preflight("BS", T=1.0, method="euler", step=0.5)
    assert [f.text[:23] for f in found.findings if f.topic == "Lipschitz"] == ["Lipschitz is undecided:"]


def test_a_box_that_takes_too_long_leaves_the_run_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fisher's equation blows up from below 0 and is kept in [0, 1]: without the box both are possible."""
    settings: dict[str, Any] = {"T": 5, "method": "euler", "step": 0.1, "normalisation": "row"}
    assert rd.preflight("F", **settings).outcome == "safe if"

    def late(run: object) -> None:
        raise Undecided("time ran out after 1.5 s")

    monkeypatch.setattr(safety_checks, "invariant_box_of", late)
    (found,) = safety_checks.safety(read_run("F", "row", 5, "euler", 0.1, None, None))
    assert found.outcome == UNKNOWN
    assert "whether a box keeps others is undecided: time ran out after 1.5 s" in found.text


@pytest.mark.parametrize(
    ("line", "values", "problem"),
    [
        ("BS", {"alpha": -1}, "alpha is assumed to be positive, got -1"),
        ("-alpha*L@H where alpha negative", {"alpha": 0}, "alpha is assumed to be negative, got 0"),
        ("-alpha*L@H + beta*H where alpha <= beta", {"alpha": 2, "beta": 1}, "alpha = 2, beta = 1"),
    ],
)
def test_values_against_the_assumptions_are_refused(line: str, values: dict[str, int], problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        rd.preflight(line, values=values)
    assert rd.preflight("BS where alpha real", values={"alpha": -1, "beta": 1}).outcome == "safe"


@pytest.mark.parametrize("method", ["exact", "dopri5"])
def test_a_step_is_refused_where_the_method_takes_none(method: str) -> None:
    with pytest.raises(InvalidArgument, match=f"no step for the method {method}"):
        rd.preflight("BS", T=1, method=method, step=0.5)
    assert "step" not in rd.preflight("BS", T=1, method=method).settings
