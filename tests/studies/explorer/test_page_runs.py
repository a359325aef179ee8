"""Right-hand sides, modes and runs of the page on graphs, compared with Python's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdgraph.errors import NotApplicable
from rdgraph.language.answer_symbols import lam, public
from rdgraph.language.reader import start_of
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.system import System
from rdgraph.testing import field_systems, systems
from rdgraph.theory.equality.dense_oracle import evaluate
from rdgraph.theory.patterns.dispersion import dispersion
from rdgraph.theory.patterns.kinetics import system_kinetics
from studies.explorer.equation_bundle import field_plan
from studies.explorer.page_text import small_graph
from tests.paths import ROOT
from tests.property_examples import examples
from tests.studies.runs.test_browser import Browser

RATES = """(() => {
  const {text, plan, coefficients, states, fixed, fields} = %s;
  const graph = smallGraph({nodes: 6, edges: [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0], [0, 3], [1, 4]]}, "row");
  const arrays = (rows) => rows.map((row) => Float64Array.from(row));
  const held = Object.fromEntries(Object.entries(fixed).map(([name, row]) => [name, Float64Array.from(row)]));
  return [plan && planOfBundle(plan), planOf(readSystem(text))].map((one) => {
    if (!one) return null;
    const rates = fields.map(() => new Float64Array(6));
    makeField(one, fields, graph, coefficients, held)(0.7, arrays(states), rates);
    return rates.map((row) => [...row]);
  });
})()"""
EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 3), (1, 4)]


def compare_rates(browser: Browser, system: System, seed: int) -> None:
    """The plan of the core and that of the page, on a state in (0.2, 1), compared with the dense oracle."""
    rng = np.random.default_rng(seed)
    A = np.zeros((6, 6))
    for i, j in EDGES:
        A[i, j] = A[j, i] = 1.0
    A /= A.sum(axis=1, keepdims=True)
    coefficients = {name: float(rng.uniform(0.2, 1.5)) for name in [*system.coefficients, "W"]}
    states = {name: rng.uniform(0.2, 1.0, 6) for name in system.fields}
    fixed = {
        **{start_of(name): rng.uniform(0.2, 1.0, 6) for name in system.fields},
        "M": np.array([1.0, 0, 1, 1, 0, 0]),
    }
    kinds = {**system.coefficients, "W": "matrix"}
    shaped = {n: np.full((1, 1), v) if kinds[n] == "matrix" else np.full((6, 1), v) if kinds[n] == "node" else v
              for n, v in coefficients.items()}  # fmt: skip
    columns = {name: value[:, None] for name, value in {**states, **fixed}.items()}
    values: dict[str, Any] = {"A": A, "I": np.eye(6), "t": 0.7, "xi": np.zeros((6, 1)), **columns, **shaped}
    with np.errstate(all="ignore"):
        expected = [np.broadcast_to(evaluate(tree, values), (6, 1))[:, 0] for tree in system.flow.values()]
    if not all(np.isfinite(row).all() and np.abs(row).max() < 1e12 for row in expected):
        return
    try:
        plan = field_plan(system)
    except NotApplicable:
        plan = None
    asked = {"text": str(system), "plan": plan, "coefficients": coefficients, "fields": list(system.fields),
             "states": [list(s) for s in states.values()], "fixed": {n: list(v) for n, v in fixed.items()}}  # fmt: skip
    for told in browser.evaluate(RATES % json.dumps(asked)):
        if told is not None:
            scale = 1 + max(float(np.abs(row).max()) for row in expected)
            assert np.array(told, dtype=float) == pytest.approx(np.array(expected), rel=1e-9, abs=1e-9 * scale)


@pytest.mark.slow
@pytest.mark.usefixtures("opened")
class TestRates:
    def test_of_the_catalogue(self, chromium: Browser) -> None:
        for name, system in catalogue.items():
            compare_rates(chromium, system, len(name))

    @settings(max_examples=examples(120))
    @given(system=systems(depth=2) | field_systems(), seed=st.integers(0, 99))
    def test_of_random_systems(self, chromium: Browser, system: System, seed: int) -> None:
        if not system.operators.names:
            compare_rates(chromium, system, seed)


MODES = """(() => {
  const {text, values, lams} = %s;
  const kinetics = kineticsOf(readSystem(text));
  return lams.map((lam) => kinetics.matrix(values, lam));
})()"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["BS", "F", "Schnakenberg", "SIR", "GraphCON", "Gierer-Meinhardt", "BS-inhibited"])
def test_modes_by_dual_numbers_are_those_of_the_core(opened: Browser, name: str) -> None:
    kinetics = system_kinetics(catalogue[name])
    numbers = {x.name: 0.3 + 0.1 * k for k, x in enumerate((*kinetics.letters, *kinetics.coefficients.values()))}
    lams = [0.0, 0.4, 2.0]
    got = opened.evaluate(MODES % json.dumps({"text": str(catalogue[name]), "values": numbers, "lams": lams}))
    for theirs, at in zip(got, lams, strict=True):
        values = {x: numbers.get(x.name, at) for x in public(kinetics.matrix).free_symbols}
        ours = np.array(public(kinetics.matrix).subs(values).tolist(), dtype=float)
        assert np.array(theirs) == pytest.approx(ours, rel=1e-12, abs=1e-12)
    assert lam in kinetics.mode_letters


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "numbers", "kind"),
    [
        ("Schnakenberg", {"a": 0.1, "b": 0.9, "Du": 2, "Dv": 40}, "turing"),
        ("Schnakenberg", {"a": 0.1, "b": 0.9, "Du": 2, "Dv": 2}, "stable"),
        ("Brusselator", {"a": 1, "b": 3, "Du": 0.02, "Dv": 0.02}, "hopf"),
        ("BS-inhibited", {"alpha": 0.1, "beta": 2, "gamma": 1, "epsilon": 1, "Dv": 10}, "anti-diffusion"),
        ("BS", {"alpha": 1, "beta": 2}, "long-wave"),
    ],
)
def test_dispersion_relations_are_those_of_rdgraph(
    opened: Browser, name: str, numbers: dict[str, float], kind: str
) -> None:
    relation = dispersion(name, numbers)
    told = opened.evaluate(f"""(() => {{
      const model = modelOfBundle(entryOf({name!r}).bundle), numbers = {json.dumps(numbers)};
      const modes = modesOf(model, numbers, steadyStates(model, numbers)[0]);
      return [modes.growth, modes.frequency, stabilityKind(modes)];
    }})()""")
    grid = np.linspace(0, 2, 201)
    assert told[0] == pytest.approx(relation.growth(grid), rel=1e-9, abs=1e-9)
    assert told[1] == pytest.approx(relation.frequency(grid), rel=1e-6, abs=1e-6)
    assert told[2] == relation.kind == kind


@pytest.mark.slow
def test_eigenvalues_of_larger_matrices_and_of_the_graph(opened: Browser) -> None:
    rng = np.random.default_rng(1)
    for n in (3, 4, 6):
        matrix = rng.normal(size=(n, n))
        told = [complex(*z) for z in opened.evaluate(f"eigenvalues({json.dumps(matrix.tolist())})")]
        wanted = np.linalg.eigvals(matrix)
        assert max(min(abs(z - w) for w in wanted) for z in told) < 1e-8
        assert sum(told) == pytest.approx(wanted.sum(), abs=1e-8)
    graph = small_graph("karate")
    A = np.zeros((34, 34))
    for i, j in graph["edges"]:
        A[i, j] = A[j, i] = 1
    root = 1 / np.sqrt(A.sum(axis=0))
    wanted = np.linalg.eigvalsh(np.eye(34) - root[:, None] * A * root)
    assert opened.evaluate("spectrumOf(GRAPH)") == pytest.approx(wanted, abs=1e-9)


VIEWS = [
    "e=BS&c.alpha=0.6&c.beta=1&T=3.3&step=0.5&method=rk4",
    "e=F&T=4&step=0.1&method=euler&start=spots&normalisation=row",
    "e=Schnakenberg&T=2&step=0.01&method=heun&start=noise&seed=11",
    "e=GraphCON&T=3&step=0.1&method=midpoint&start=checker",
    "e=-alpha*L%40H + H%40W + M*k*tanh(H) where k scalar&c.alpha=1&c.k=0.7&c.W=-0.5&T=1&step=0.1",
]


@pytest.mark.slow
def test_the_exported_python_computes_the_same_states(opened: Browser, tmp_path: Path) -> None:
    told, verdicts = [], []
    for k, view in enumerate(VIEWS):
        opened.evaluate(f"openView({json.dumps('#' + view)})")
        opened.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        opened.evaluate("view.runs.graph.advanceTo(1e9, 9000); view.settings.t = view.settings.T")
        told.append(opened.evaluate("csvOf('graph')").split())
        verdicts.append(opened.evaluate("byId('verdict').dataset.status"))
        (tmp_path / f"view{k}.py").write_text(opened.evaluate("pythonOf()"), encoding="utf-8")
    program = "import runpy, sys\nfor path in sys.argv[1:]: runpy.run_path(path); print('end')"
    done = subprocess.run([sys.executable, "-c", program, *(f"view{k}.py" for k in range(len(VIEWS)))], cwd=tmp_path,
                          env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
                          timeout=200, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    for rows, verdict, part in zip(told, verdicts, done.stdout.split("end\n"), strict=False):
        # Free text has no bundle, so the page leaves open what the program decides.
        assert part.splitlines()[-1].startswith(verdict) or verdict == "undecided"
        lines = [line.split() for line in part.splitlines()[:-1]]
        assert [line[0] for line in lines] == rows[0].split(",")[2:]
        theirs = np.array([row.split(",") for row in rows[1:]], dtype=float)[:, 2:].T
        assert theirs == pytest.approx(np.array([line[1:] for line in lines], dtype=float), rel=1e-8, abs=1e-10)
