"""The study of discretisation: mode errors by hand, against runs on a graph, and the whole study on two data sets."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch

import rdgraph as rd
from gread.settings.presets import Preset, paper_presets
from studies.discretisation import study
from studies.discretisation import study as discretisation
from studies.discretisation.study import (
    coefficient_box,
    compare,
    error_map,
    forms,
    gains,
    mode_rows,
    product_row,
    settings,
    steps,
    worst_cases,
)
from studies.registered_studies import find_study
from studies.runs.study import execute
from studies.runs.tables import Row, read_rows

LAM = np.linspace(0.0, 2.0, 41)


def published(reaction: str, dataset: str) -> Preset:
    return next(s for s in paper_presets() if (s.reaction, s.dataset) == (reaction, dataset))


# ---------------------------------------------------------------------- forms and gains
@pytest.mark.parametrize(("reaction", "slopes"), [("F", [1, -1]), ("AC", [1, -2]), ("Z", [0, -1])])
def test_classical_reactions_are_linearised_at_every_state_at_rest(reaction: str, slopes: list[float]) -> None:
    """r' of h(1-h), h(1-h^2), h^2(1-h) at 0 and at 1 (AC: at -1 as well, with the same slope)."""
    found = forms(reaction)
    assert [f.name for f in found] == [f"{reaction} near 0", f"{reaction} near 1"]
    for form, slope in zip(found, slopes, strict=True):
        assert rd.equivalent(form.system, f"-alpha*L@H + {slope}*beta*H").outcome == "proved"


def test_linear_reactions_stand_for_themselves() -> None:
    assert [f.system for f in forms("FB*")] == [rd.catalogue["FB*"]]


def test_gain_of_two_unequal_euler_steps_by_hand() -> None:
    """Texas, BS: T = 1.46 with step 1 is a step of 1 and one of 0.46; p = (b-a) lam - b lam^2."""
    exact, computed = gains(forms("BS")[0], published("BS", "texas"))
    p = (0.4 - 0.7) * LAM - 0.4 * LAM**2
    np.testing.assert_allclose(exact(LAM, 0.7, 0.4), np.exp(1.46 * p), rtol=1e-13)
    np.testing.assert_allclose(computed(LAM, 0.7, 0.4), (1 + p) * (1 + 0.46 * p), rtol=1e-13)


def test_gain_of_a_source_at_its_removable_point() -> None:
    """ST at lam = 0: 1 + beta T, exact and computed."""
    exact, computed = gains(forms("ST")[0], published("ST", "chameleon"))
    for gain in (exact, computed):
        assert np.isfinite(gain(LAM, 1.0, 0.5)).all()
        assert gain(np.zeros(1), 1.0, 0.5)[0] == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("reaction", "dataset"), [("BS", "squirrel"), ("ST", "pubmed"), ("FB*", "film"), ("FB", "texas")]
)
def test_gain_is_what_the_solver_does_to_an_eigenvector(reaction: str, dataset: str) -> None:
    setting = published(reaction, dataset)
    model = setting.config.gread
    op = rd.generators.path(5).operator("symmetric", dtype=torch.float64)
    values, vectors = np.linalg.eigh(np.eye(5) - op.dense().numpy())
    values[np.abs(values) < 1e-12] = 0.0  # the source's response has a removable point there
    field = rd.lower(reaction, op, {"alpha": 0.5, "beta": 1.0})
    start = torch.as_tensor(vectors)
    solved = rd.solve(field, start, [0.0, model.time], model.method, step=model.step).final.numpy()
    _, computed = gains(forms(reaction)[0], setting)
    np.testing.assert_allclose(np.diag(vectors.T @ solved), computed(values, 0.5, 1.0), rtol=1e-10, atol=1e-12)


# ---------------------------------------------------------------------- comparison
def test_compare_counts_classes_and_signs() -> None:
    exact = np.array([2.0, 2.0, 0.5, 0.5, 1.0])
    computed = np.array([0.5, 2.0, -1.5, 0.25, 3.0])
    found = compare(exact, computed)
    assert found == {"error": 1.0, "amplified": 0.2, "damped": 0.2, "flipped": 0.2}


def test_a_scalar_beta_is_positive_and_a_vector_is_not() -> None:
    chosen = settings(True)
    assert {b for _, b in coefficient_box(published("BS", "cora"), chosen)} == {0.5, 1.0}
    assert {b for _, b in coefficient_box(published("BS", "texas"), chosen)} == {-1.0, -0.5, 0.5, 1.0}


@pytest.mark.parametrize(
    ("reaction", "dataset", "typical", "worst"),
    [
        ("BS", "texas", 0.3, 3.0),
        ("BS", "squirrel", 0.04, 100.0),
        ("BS", "film", 8e-6, 1e-4),
        ("ST", "cora", 7e-8, 5e-7),
        ("ST", "chameleon", 0.3, 6.0),
        ("FB", "film", 6e-5, 0.2),
        ("FB*", "film", 4e-5, 50.0),
    ],
)
def test_errors_agree_with_an_independent_table(reaction: str, dataset: str, typical: float, worst: float) -> None:
    """To the one digit of a table worked out by hand, for settings whose beta is a vector."""
    (row,) = mode_rows(published(reaction, dataset), settings(True))
    assert float(f"{row['error_typical']:.0e}") == pytest.approx(typical)
    assert float(f"{row['error_worst']:.0e}") == pytest.approx(worst)


def test_euler_amplifies_the_top_of_bs_and_flips_it() -> None:
    """alpha = beta = 1, factors 1 - lam^2 (step 1) and 1 - 0.46 lam^2: the first is negative for lam > 1."""
    setting = published("BS", "texas")
    exact, computed = gains(forms("BS")[0], setting)
    found = compare(exact(LAM, 1.0, 1.0), computed(LAM, 1.0, 1.0))
    values = (1 - LAM**2) * (1 - 0.46 * LAM**2)
    assert found["flipped"] == pytest.approx(np.mean((values < 0) & (np.abs(values) > 1e-9)))
    assert found["amplified"] == pytest.approx(np.mean(np.abs(values)[1:] > 1) * 40 / 41)
    assert found["amplified"] > 0


def test_steps_count_the_shortened_one() -> None:
    assert steps(published("BS", "cora")) == 14  # 3.49/0.25 = 13.96
    assert steps(published("F", "cornell")) == 1
    assert steps(published("BS", "film")) == 4  # 0.31/0.1, which is 3.1 in decimals and not in binary


@pytest.mark.parametrize(("reaction", "dataset"), [("BS", "cora"), ("ST", "texas"), ("FB", "citeseer")])
def test_products_are_those_of_a_run(reaction: str, dataset: str) -> None:
    setting = published(reaction, dataset)
    model = setting.config.gread
    row = product_row(setting, settings(True))
    op = rd.generators.ring(5).operator("symmetric", dtype=torch.float64)
    field = rd.lower(reaction, op, {"alpha": 0.7, "beta": 0.4})
    start = torch.ones(5, 1, dtype=torch.float64)
    solved = rd.solve(field, start, [0.0, model.time], model.method, step=model.step)
    assert row["solver_products"] == solved.stats.products
    assert 0 < int(row["exact_typical"]) <= int(row["exact_worst"])
    if model.adjacency == "original":
        exact = rd.solve(field, start, [0.0, model.time], "exact", rtol=1e-6)
        assert row["exact_typical"] == exact.stats.products


# ---------------------------------------------------------------------- the study
@pytest.fixture(scope="module")
def few() -> tuple[Preset, ...]:
    return tuple(s for s in paper_presets() if s.dataset in ("texas", "cora"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, few: tuple[Preset, ...]) -> Path:
    place = tmp_path_factory.mktemp("runs") / "discretisation"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discretisation, "paper_presets", lambda: few)
        execute(find_study("discretisation"), place, small=True)
    return place


def test_study_writes_numbers_figures_and_verdicts(folder: Path, few: tuple[Preset, ...]) -> None:
    assert (folder / "state").read_text().strip() == "done"
    results = read_rows(folder / "results.csv")
    assert {(r["reaction"], r["dataset"]) for r in results} == {(s.reaction, s.dataset) for s in few}
    for name in ("errors_typical", "errors_worst", "worst"):
        for ending in ("png", "pdf", "csv"):
            assert (folder / "figures" / f"{name}.{ending}").stat().st_size > 0
    with (folder / "figures" / "worst.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 6 * settings(True)["points"]


def test_verdicts_follow_from_the_rows(folder: Path) -> None:
    modes: list[Row] = [dict(row) for row in read_rows(folder / "results.csv")]
    answers = {s: (a, e) for s, a, e in study.solved(modes)}
    typical = answers["the layer is the continuous equation: RK4 settings solve it to 1 % at typical coefficients"]
    assert typical[0] == "holds"
    assert typical[1].startswith("3 of 3 linear settings")  # BS, ST and FB on Cora
    euler = answers["the layer is the continuous equation: Euler settings solve it to 1 % at typical coefficients"]
    assert euler[0] == "fails"
    assert euler[1].startswith("0 of 5 linear settings")
    (_, inert, words) = study.inert_steps(modes)
    assert inert == "fails"
    assert words == ("2 of 14 settings have a step longer than T and take one step of length T: FB texas, FB* texas")
    fine = [{**row, "error_typical": 1e-5, "error_worst": 1e-3, "amplified": 0.0, "flipped": 0.0} for row in modes]
    assert {a for _, a, _ in (*study.solved(fine), *study.class_changes(fine))} == {"holds"}


def test_costs_are_compared_per_setting() -> None:
    def row(steps: int, solver: int, exact: int) -> Row:
        return {"solver": "rk4", "steps": steps, "solver_products": solver, "exact_typical": 3, "exact_worst": exact}

    assert study.product_counts([row(1, 4, 5), row(9, 36, 20)], 1e-6)[1] == "holds if RK4 takes more than 1 steps"
    assert study.product_counts([row(9, 36, 20)], 1e-6)[1] == "holds"
    assert study.product_counts([row(1, 4, 5)], 1e-6)[1] == "fails"


def test_worst_cases_show_every_reaction(folder: Path) -> None:
    modes: list[Row] = [dict(row) for row in read_rows(folder / "results.csv")]
    found = worst_cases(modes)
    assert len(found) == 6
    assert {r["reaction"] for r in found[:4]} == {"BS", "ST", "FB", "FB*"}
    rest = [float(r["error_worst"]) for r in found[4:]]
    assert rest == sorted(rest, reverse=True)


def test_map_takes_the_largest_error_of_the_forms(folder: Path) -> None:
    modes: list[Row] = [dict(row) for row in read_rows(folder / "results.csv")]
    shown = error_map(modes, "worst")
    errors = [float(r["error_worst"]) for r in modes if (r["reaction"], r["dataset"]) == ("AC", "cora")]
    assert len(errors) == 2
    row = next(k for k, name in enumerate(shown.rows) if name.startswith("AC"))
    assert shown.values[row, list(shown.columns).index("cora")] == max(errors)
