"""Coefficients that no run from the given start shows: verdicts against a rank by numpy, within limits of memory."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

import rdgraph as rd
from rdgraph import status_line
from rdgraph.errors import NotApplicable
from rdgraph.infer.fit.fitting import FlatDirections
from rdgraph.infer.fit.least_squares import Residuals, Unknowns
from rdgraph.infer.fit.observations import read_observations

Array = np.ndarray
TIMES = np.linspace(0, 1, 6)
#: Fits of a start that hides alpha, in a process that may not take more memory than 256 MiB beyond its libraries.
LIMITED = """
import json, resource, torch, numpy as np, networkx as nx, rdgraph as rd
rd.fit, rd.lower
rd.solve(rd.lower("-alpha*L@H", rd.generators.path(3).operator(dtype=torch.float64), {"alpha": 1.0}),
         torch.ones(3, 1, dtype=torch.float64), [0.0, 1.0])
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 2**28, size + 2**28))
resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
times = np.linspace(0, 2, 9)
for noise in (0.0, 0.01):
    for known in ("known", "unknown"):
        seen = np.exp(-0.4 * times)[:, None] * np.ones(6)
        seen = seen + noise * np.random.default_rng(1).standard_normal(seen.shape)
        given = {"graph": nx.cycle_graph(6), "initial": np.ones(6) if known == "known" else None, "starts": 2}
        found = rd.fit("-alpha*L@H - beta*H", seen, times, **given)
        print(json.dumps([noise, known, found.identifiable, found.intervals]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.slow
def test_a_hidden_coefficient_costs_no_memory() -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 4
    for *case, verdict, intervals in found:
        assert verdict == {"alpha": False, "beta": True}, case
        assert intervals["alpha"] == [0.0, np.inf], case
        low, high = intervals["beta"]
        assert low - 1e-9 <= 0.4 <= high + 1e-9, case


def drawn_graph(rng: np.random.Generator) -> nx.Graph:
    """A connected graph of 5 to 8 nodes."""
    nodes = int(rng.integers(5, 9))
    return [nx.cycle_graph(nodes), nx.path_graph(nodes), nx.star_graph(nodes - 1), nx.complete_graph(nodes)][
        rng.integers(4)
    ]


def dense(graph: nx.Graph, normalisation: str) -> Array:
    """A of the language, by numpy alone."""
    walk = nx.to_numpy_array(graph)
    degree = walk.sum(1)
    if normalisation == "symmetric":
        return walk / np.sqrt(degree[:, None] * degree[None, :])
    return walk / degree[:, None]


def drawn_start(rng: np.random.Generator, A: Array) -> Array:
    """Generic states, and those that hide something: constants, kernels, eigenvectors, zero, halves of a graph."""
    values, vectors = np.linalg.eig(A)
    real = vectors[:, rng.integers(len(values))].real
    kernel = vectors[:, np.argmax(values.real)].real
    masked = np.where(np.arange(len(A)) % 2, 0.0, 1.0)
    return [rng.standard_normal(len(A)), np.ones(len(A)), kernel, real, np.zeros(len(A)), masked][rng.integers(6)]


#: Terms by the text of the language and by numpy.
TERMS: dict[str, Any] = {
    "-{c}*L@H": lambda A, M, H: -(H - A @ H),
    "-{c}*H": lambda A, M, H: -H,
    "{c}*A@A@H": lambda A, M, H: A @ A @ H,
    "{c}*M*H": lambda A, M, H: M * H,
    "-{c}*H**3": lambda A, M, H: -(H**3),
    "{c}*relu(H)": lambda A, M, H: np.maximum(H, 0),
}


def run(terms: list[str], values: Array, A: Array, M: Array, start: Array) -> Array:
    """States of Runge's and Kutta's steps by numpy."""
    states, H, h = [start], start, 0.01

    def rate(x: Array) -> Array:
        return np.asarray(sum(c * TERMS[t](A, M, x) for c, t in zip(values, terms, strict=True)))

    for _ in range(100):
        one = rate(H)
        two = rate(H + h / 2 * one)
        three = rate(H + h / 2 * two)
        H = H + h / 6 * (one + 2 * two + 2 * three + rate(H + h * three))
        states.append(H)
    return np.array(states)


@pytest.mark.parametrize("seed", range(40))
def test_flat_directions_are_those_of_a_rank_by_numpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, normalisation = drawn_graph(rng), ["symmetric", "row"][rng.integers(2)]
    A = dense(graph, normalisation)
    start, mask = drawn_start(rng, A), (rng.random(len(A)) < 0.5).astype(float)
    terms = list(rng.choice(list(TERMS), int(rng.integers(2, 5)), replace=False))
    names = ["a", "b", "c", "mu"][: len(terms)]
    text = " + ".join(t.format(c=name) for t, name in zip(terms, names, strict=True)).replace("+ -", "- ")
    system = rd.parse(text)
    known = {"M": torch.from_numpy(mask)} if "M" in system.letters else {}
    rows = torch.from_numpy(0.3 * rng.standard_normal((2, len(names))))
    observed = read_observations(system, np.zeros((6, len(A))), TIMES, len(A))
    operator = rd.Graph.from_networkx(graph).operator(normalisation, dtype=torch.float64)
    unknowns = Unknowns.of(system, names, len(A), 1, 0)
    settings = {"method": "rk4", "step": 0.02}
    residuals = Residuals(system, operator, observed, unknowns, known, torch.from_numpy(start)[:, None], settings)
    found = FlatDirections.along(residuals, rows)
    slopes = []
    for row in rows.numpy():
        states = run(terms, np.exp(row), A, mask, start)
        slopes += [np.stack([TERMS[t](A, mask, H) for t in terms], -1) for H in states]
    matrix = np.concatenate(slopes)
    scale = max(np.abs(start).max(), 1e-300)
    hidden = np.abs(matrix).max(0) <= 1e-9 * scale
    assert found.hidden.tolist() == hidden.tolist()
    kept = matrix[:, ~hidden] / np.linalg.norm(matrix[:, ~hidden], axis=0)
    rank = np.linalg.matrix_rank(kept, tol=1e-7) if kept.size else 0
    assert len(found.mixed) == (~hidden).sum() - rank
    for direction in found.mixed.numpy():
        assert np.abs(matrix @ direction).max() <= 1e-6 * scale * np.abs(direction).max()
    assert set(found.reasons(system, unknowns)) == set(found.names(unknowns))


@pytest.mark.parametrize("normalisation", ["symmetric", pytest.param("row", marks=pytest.mark.slow)])
def test_an_eigenvector_tells_one_combination(normalisation: str) -> None:
    """On the second eigenvector of a cycle L@H = H/2, so that the rate is alpha/2 + beta."""
    start = np.cos(np.pi / 3 * np.arange(6))
    seen = start * np.exp(-0.75 * TIMES)[:, None] + 1e-3 * np.random.default_rng(0).standard_normal((6, 6))
    given = {"graph": nx.cycle_graph(6), "normalisation": normalisation, "initial": start, "starts": 3}
    found = rd.fit("-alpha*L@H - beta*H", seen, TIMES, **given, level=None)
    assert found.undetermined == ("alpha", "beta")
    assert "alpha + 2*beta" in found.reasons["alpha"]
    assert found.values["alpha"] / 2 + found.values["beta"] == pytest.approx(0.75, abs=0.01)


def test_others_are_fitted_with_their_intervals() -> None:
    """The mask of a start that is zero where it is one hides b; a and c do not notice."""
    graph, mask, start = nx.complete_graph(5), np.array([1.0, 0, 0, 0, 0]), np.zeros(5)
    seen = np.full((6, 5), np.nan)
    seen[:] = (0.3 * TIMES)[:, None]
    noisy = seen + 1e-3 * np.random.default_rng(0).standard_normal(seen.shape)
    found = rd.fit("c - a*L@H - b*M*L@H", noisy, TIMES, graph=graph, initial=start, values={"M": mask}, starts=2)
    assert set(found.reasons) == {"a", "b"}
    assert found.identifiable == {"a": False, "b": False, "c": True}
    assert found.intervals is not None
    assert found.intervals["c"][0] < 0.3 < found.intervals["c"][1]
    assert found.intervals["b"] == (0.0, np.inf)


def test_the_search_is_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_line, "FIRST", 0.0)
    seen = np.exp(-0.4 * TIMES)[:, None] * np.ones(5)
    heard: list[str] = []
    given = {"graph": nx.cycle_graph(5), "initial": np.ones(5), "starts": 1, "level": None}
    rd.fit("-beta*H", seen, TIMES, **given, progress=heard.append)
    assert heard[:3] == ["the first rates", "identifiability", "choosing starts"]
    assert len(heard) > 3
    assert capsys.readouterr().err == ""
    rd.fit("-beta*H", seen, TIMES, **given, progress=True)
    assert capsys.readouterr().err.startswith("fit")
    rd.fit("-beta*H", seen, TIMES, **given, progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("normalisation", ["symmetric", "row"])
def test_an_exact_flow_beyond_its_products_is_refused(normalisation: str) -> None:
    operator = rd.generators.ring(6).operator(normalisation, dtype=torch.float64)
    start = torch.eye(6, dtype=torch.float64)[:, :1]
    rate = torch.tensor(50.0, dtype=torch.float64, requires_grad=True)
    field = rd.lower("-alpha*L@H", operator, {"alpha": rate})
    rd.solve(field, start, [0.0, 1.0], "exact")
    with pytest.raises(rd.errors.NotApplicable, match="more than 16 products"):
        rd.solve(field, start, [0.0, 1.0], "exact", max_steps=16)
    with pytest.raises(rd.errors.NotApplicable, match="more than 4,096 products"):
        rd.solve(rd.lower("-alpha*L@H", operator, {"alpha": 1e7 * rate}), start, [0.0, 1.0], "exact")


@pytest.mark.slow
def test_the_gradient_of_a_long_series_takes_memory_in_proportion() -> None:
    """No saved tensor is as large as the series for each of its terms."""
    operator = rd.generators.ring(6).operator(dtype=torch.float64)
    rate = torch.full((8,), 2e3, dtype=torch.float64, requires_grad=True)
    field = rd.lower("-alpha*L@H", operator, {"alpha": rate}, batch=(8,))
    start = torch.eye(6, dtype=torch.float64)[:, :1].expand(8, 6, 1)
    with torch.profiler.profile(profile_memory=True) as profiler:
        states = rd.solve(field, start, [0.0, 1.0], "exact").final
        (slope,) = torch.autograd.grad(states.sum(), rate)
    largest = max(event.self_cpu_memory_usage for event in profiler.key_averages())
    assert torch.isfinite(slope).all()
    assert largest < 2e8


@pytest.mark.parametrize(
    ("line", "start"), [("-alpha*L@H + beta*H*sigmoid(H)", 0.0), ("-alpha*L@H + beta*tanh(L@H)", 1.0)]
)
def test_a_start_at_rest_is_refused_before_anything_is_integrated(
    line: str, start: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rdgraph.infer.fit.least_squares.solve", None)
    monkeypatch.setattr("rdgraph.infer.fit.fitting.identify", None)
    seen = np.full((3, 5), start)
    with pytest.raises(NotApplicable, match="every rate vanishes at the start"):
        rd.fit(line, seen, [0, 1, 2], graph=rd.generators.ring(5), normalisation="row", initial=seen[0])


def test_identifiability_is_announced_before_it_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that moves is no reason to refuse, though it hides alpha."""
    texts: list[str] = []
    monkeypatch.setattr("rdgraph.infer.fit.fitting.identify", None)
    with pytest.raises(TypeError):
        rd.fit(
            "-alpha*L@H + beta*H*sigmoid(H)", np.ones((3, 5)), [0, 1, 2], graph=rd.generators.ring(5),
            normalisation="row", initial=np.ones(5), progress=texts.append,
        )  # fmt: skip
    assert texts == ["the first rates", "identifiability"]
