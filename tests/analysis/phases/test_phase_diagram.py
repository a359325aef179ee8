"""Growth of modes, closed-form borders, and phase diagrams simulated as one batch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp
import torch

from analysis.measures.energies import rayleigh
from analysis.phases.diagram import (
    CLASSES,
    GROWS,
    NEUTRAL,
    SHARPENS,
    SMOOTHS,
    PhaseDiagram,
    make_measure,
    phase_diagram,
    roughness_borders,
    stability_borders,
)
from analysis.phases.picture import phase_figure
from analysis.spectra.eigenvalues import spectral_gap, spectrum
from analysis.verdicts.energy_fates import check_symbol, growth, make_symbols
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs import generators
from rdgraph.graphs.operator import Operator
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse

DOUBLE = torch.float64
GRID = np.linspace(-1, 3, 120), np.linspace(-3, 3, 120)


@pytest.fixture(scope="module")
def random_op() -> Operator:
    """An irregular connected graph, not bipartite."""
    graph = generators.erdos_renyi(12, 0.4, seed=1)
    assert graph.components().max() == 0
    return graph.operator("symmetric", dtype=DOUBLE)


# ---------------------------------------------------------------------- growth of modes
def test_growth_against_the_closed_form() -> None:
    """h(t)/h0 = e^{tp} + q (e^{tp} - 1)/p, at a late time, over factor t^power e^{rate t}."""
    p = np.array([-0.7, -0.7, 0.0, 0.0, 0.4, 0.4, 0.4])
    q = np.array([0.0, 0.3, 0.0, 0.3, 0.0, 0.3, -0.4])
    found, t = growth(p, q), 60.0
    source = np.where(p == 0, t, np.expm1(t * p) / np.where(p == 0, 1, p))
    exact = np.exp(t * p) + q * source
    predicted = found.factor * t**found.power * np.exp(found.rate * t)
    assert predicted == pytest.approx(exact, rel=0.06)  # 1 + 0.3 t against 0.3 t at t = 60
    assert found.rate.tolist() == [-0.7, 0, 0, 0, 0.4, 0.4, 0]  # the last source cancels the growth
    assert found.power.tolist() == [0, 0, 0, 1, 0, 0, 0]


def test_growth_under_euler() -> None:
    found = growth(np.array([-0.5, -2.0, -3.0, 0.5]), np.array([0.0, 0.0, 1.0, 0.0]), "euler", 1.0)
    assert found.rate == pytest.approx([math.log(0.5), 0.0, math.log(2), math.log(1.5)])
    assert found.factor[2] == pytest.approx(1 - 1 / 3)
    with pytest.raises(InvalidArgument, match="step > 0"):
        growth(np.zeros(1), np.zeros(1), "rk4")


def test_symbols_are_numbers() -> None:
    p, q = make_symbols(catalogue["BS"])(np.array([0.5, 2.0])[:, None], {"alpha": 1.0, "beta": np.array([0.0, 3.0])})
    assert p.tolist() == [[-0.5, 2 * 0.5 - 3 * 0.25], [-2.0, 2 * 2.0 - 3 * 4.0]]
    assert q.shape == (2, 2)
    with pytest.raises(InvalidArgument, match="none for beta"):
        make_symbols(catalogue["BS"])(np.zeros(1), {"alpha": 1.0})
    with pytest.raises(NotApplicable, match="no symbol"):
        make_symbols(catalogue["F"])


def test_the_unnormalised_laplacian_does_not_commute_with_the_adjacency() -> None:
    op = generators.star(4).operator("none", dtype=DOUBLE)
    check_symbol(catalogue["FB"], op)
    with pytest.raises(NotApplicable, match="does not commute"):
        check_symbol(catalogue["BS"], op)


# ---------------------------------------------------------------------- borders
def test_borders_of_blurring_sharpening_are_the_thresholds_of_the_extreme_modes() -> None:
    """p = (beta - alpha) lam - beta lam^2 = 0 where beta (1 - lam) = alpha: lam2 above, lam_max below."""
    lams, window = np.array([0.2, 0.6, 1.3, 1.8]), ((0.0, 1.0), (-2.0, 2.0))
    found = stability_borders(catalogue["BS"], lams, ("alpha", "beta"), window, values={})
    assert [b.lam for b in found] == [0.2, 1.8]
    alpha, lam = sp.symbols("alpha lam")
    assert all(sp.simplify(b.formula.rhs - alpha / (1 - lam)) == 0 for b in found)
    for b in found:
        drawn = np.isfinite(b.x)
        assert b.y[drawn] == pytest.approx(b.x[drawn] / (1 - b.lam))
    assert np.nanmax(found[0].x) == pytest.approx(1.0, abs=0.005)


def test_lines_of_all_modes_that_coincide_are_one_border() -> None:
    window = ((0.0, 1.0), (0.0, 1.0))
    found = stability_borders(catalogue["FB"], np.array([0.3, 0.9, 1.6]), ("alpha", "beta"), window, values={})
    assert [str(b.formula.rhs) for b in found] == ["alpha"]
    upright = stability_borders(catalogue["ST"], np.array([0.3, 0.9]), ("alpha", "beta"), ((-1, 1), (0, 1)), values={})
    assert [str(b.formula.lhs) for b in upright] == ["alpha"]
    assert np.abs(upright[0].x).max() == 0


def test_runge_kutta_methods_add_the_ends_of_their_stability() -> None:
    diffusion, window = parse("-alpha*L@H + beta*H"), ((0.0, 8.0), (-0.5, 0.5))
    euler = stability_borders(
        diffusion, np.array([1.0, 2.0]), ("alpha", "beta"), window, values={}, method="euler", step=0.5
    )
    assert {b.level for b in euler} == {0.0, -4.0}
    end = next(b for b in euler if b.level == -4.0)
    assert end.lam == 2.0  # alpha lam - beta = 2/step
    assert np.interp(0.0, end.y[np.isfinite(end.y)], end.x[np.isfinite(end.x)]) == pytest.approx(2.0)
    rk4 = stability_borders(diffusion, np.array([2.0]), ("alpha", "beta"), window, values={}, method="rk4", step=1.0)
    assert min(b.level for b in rk4) == pytest.approx(-2.785293563405282)


def test_ties_with_the_kernel() -> None:
    """p(lam) = p(0): for BS beta (1 - lam) = alpha as well, since p(0) = 0; for FB* alpha = beta; ST has none."""
    lams, window = np.array([0.2, 0.6, 1.8]), ((0.0, 1.0), (0.0, 2.0))
    ties = roughness_borders(catalogue["BS"], lams, ("alpha", "beta"), window, values={})
    assert [b.lam for b in ties] == [0.2]
    drawn = np.isfinite(ties[0].x)
    assert ties[0].y[drawn] == pytest.approx(ties[0].x[drawn] / 0.8)
    assert [
        str(b.formula.rhs) for b in roughness_borders(catalogue["FB*"], lams, ("alpha", "beta"), window, values={})
    ] == ["alpha"]
    assert roughness_borders(catalogue["ST"], lams, ("alpha", "beta"), window, values={}) == []


def test_borders_need_an_affine_symbol() -> None:
    with pytest.raises(NotApplicable, match="affine in alpha and beta"):
        stability_borders(parse("-alpha*beta*L@H"), np.array([1.0]), ("alpha", "beta"), ((0, 1), (0, 1)), values={})


# ---------------------------------------------------------------------- diagrams
@pytest.mark.parametrize(("name", "step", "T"), [("BS", 1.0, 40.0), ("FB*", 0.25, 20.0)])
@pytest.mark.slow
def test_thousands_of_members_agree_away_from_the_border(random_op: Operator, name: str, step: float, T: float) -> None:
    found = phase_diagram(name, random_op, *GRID, method="euler", step=step, T=T)
    assert found.predicted.shape == (120, 120)
    assert found.away.mean() > 0.8
    assert found.agreement == 1.0
    assert (found.predicted == found.simulated).mean() > 0.98


def test_the_source_term_is_neutral_whatever_its_strength(random_op: Operator) -> None:
    """E -> (beta/alpha)^2 sum c_k^2/lam_k: bounded and positive for alpha > 0; the normalised energy vanishes."""
    axes = np.linspace(-1, 3, 60), np.linspace(-3, 3, 40)
    found = phase_diagram("ST", random_op, *axes, method="euler", step=0.25)
    assert (found.predicted[:, found.alphas > 0] == NEUTRAL).all()
    assert (found.predicted[:, found.alphas < 0] == GROWS).all()
    assert found.vanishing[:, found.alphas > 0].all()
    assert found.agreement > 0.99  # slow members near alpha = 0


@pytest.mark.slow
def test_the_flow_and_runge_kutta_agree_where_the_step_is_small(random_op: Operator) -> None:
    axes = np.linspace(-0.5, 1.5, 24), np.linspace(-1, 2, 24)
    exact = phase_diagram("BS", random_op, *axes, method="exact", step=None, T=20.0)
    rk4 = phase_diagram("BS", random_op, *axes, method="rk4", step=0.25, T=20.0)
    assert np.array_equal(exact.predicted, rk4.predicted)
    assert exact.agreement == 1.0
    assert rk4.agreement == 1.0


def test_the_threshold_of_blurring_sharpening(random_op: Operator) -> None:
    """For alpha, beta > 0 the energy vanishes iff beta (1 - lam2) < alpha, and never stays bounded and positive."""
    gap = spectral_gap(random_op)
    axes = np.linspace(0.1, 2, 31), np.linspace(0.1, 4, 37)
    found = phase_diagram("BS", random_op, *axes, method="exact", step=None, T=1.0)
    alpha, beta = np.meshgrid(*axes)
    assert np.array_equal(found.predicted == SMOOTHS, beta * (1 - gap) < alpha)
    assert np.array_equal(found.predicted == GROWS, beta * (1 - gap) > alpha)
    assert np.array_equal(found.vanishing, found.predicted == SMOOTHS)


def test_equal_coefficients_of_the_filter_bank_are_neutral(random_op: Operator) -> None:
    values = np.linspace(0.25, 1.25, 5)
    found = phase_diagram("FB", random_op, values, values, method="exact", step=None, T=10.0)
    for classes in (found.predicted, found.simulated):
        assert (np.diag(classes) == NEUTRAL).all()
        assert (classes[np.triu_indices(5, 1)] == SMOOTHS).all()  # beta < alpha
        assert (classes[np.tril_indices(5, -1)] == GROWS).all()


def test_raw_and_normalised_energy_may_disagree(random_op: Operator) -> None:
    """FB*, beta < alpha: the raw energy grows where beta > alpha lam2/(1 + lam2), the normalised one vanishes."""
    gap = spectral_gap(random_op)
    beta = np.array([0.5, 1.5]) * gap / (1 + gap)
    found = phase_diagram("FB*", random_op, np.array([1.0]), beta, method="exact", step=None)
    assert found.predicted[:, 0].tolist() == found.simulated[:, 0].tolist() == [SMOOTHS, GROWS]
    assert found.vanishing.all()


def test_the_fate_of_the_normalised_energy_changes_at_the_tie(random_op: Operator) -> None:
    axes = np.linspace(0, 2, 21), np.linspace(0.05, 2.05, 21)
    found = phase_diagram("FB*", random_op, *axes, method="exact", step=None, T=5.0)
    alpha, beta = np.meshgrid(*axes)
    assert np.array_equal(found.vanishing, beta < alpha)
    assert [str(tie.formula) for tie in found.ties] == ["Eq(beta, alpha)"]
    assert len(phase_figure(found).axes[0].lines) == len(found.borders) + 1


def test_a_decaying_state_may_sharpen(random_op: Operator) -> None:
    found = phase_diagram(
        "beta*L@H - alpha*H", random_op, np.array([4.0]), np.array([1.0, -1.0]), method="exact", step=None, T=10.0
    )
    assert found.predicted[:, 0].tolist() == found.simulated[:, 0].tolist() == [SHARPENS, SMOOTHS]


@pytest.mark.parametrize("kind", ["row", "column"])
def test_normalisations_share_one_diagram(random_op: Operator, kind: str) -> None:
    op = generators.erdos_renyi(12, 0.4, seed=1).operator(kind, dtype=DOUBLE)
    axes = np.linspace(-1, 3, 30), np.linspace(-3, 3, 30)
    own, other = (phase_diagram("BS", x, *axes, method="euler", step=0.5) for x in (op, random_op))
    assert np.array_equal(own.predicted, other.predicted)
    assert own.agreement == 1.0


@pytest.mark.parametrize("kind", ["row", "column", "none"])
def test_the_simulation_measures_size_and_rayleigh_quotient(kind: str) -> None:
    op = generators.star(6).operator(kind, dtype=DOUBLE)
    scale = torch.as_tensor(spectrum(op).scale)[:, None]
    H = torch.randn(3, 6, 2, dtype=DOUBLE) * torch.tensor([1e-200, 1.0, 1e200], dtype=DOUBLE)[:, None, None]
    log_size, share = make_measure(op, scale)(H)
    torch.testing.assert_close(share, rayleigh(H, op))
    unit = H / H.abs().amax((-2, -1), keepdim=True)
    expected = (scale * unit**2).sum((-2, -1)).log() + 2 * H.abs().amax((-2, -1)).log()
    torch.testing.assert_close(log_size, expected)


def test_only_excited_modes_count(random_op: Operator) -> None:
    """A start in the kernel and the highest mode knows nothing of lam2."""
    modes = spectrum(random_op)
    top = modes.values[-1]
    H0 = torch.as_tensor(modes.vectors[:, [0]] + modes.vectors[:, [-1]])
    beta = np.array([1.5, 3.0]) / (1 - spectral_gap(random_op))
    found = phase_diagram("BS", random_op, np.array([1.0]), beta, H0=H0, method="exact", step=None, T=5.0)
    assert top > 1  # so that beta > 0 damps it
    assert found.predicted[:, 0].tolist() == found.simulated[:, 0].tolist() == [SMOOTHS, SMOOTHS]
    with pytest.raises(InvalidArgument, match="outside the kernel"):
        phase_diagram("BS", random_op, np.ones(1), np.ones(1), H0=torch.as_tensor(modes.vectors[:, [0]]))


def test_other_coefficients_are_fixed(random_op: Operator) -> None:
    found = phase_diagram(
        "-alpha*L@H + beta*(A@H - A@A@H) - gamma*H", random_op, np.array([0.5]), np.array([1.0, 2.0]),
        values={"gamma": 5.0}, method="exact", step=None, T=5.0,
    )  # fmt: skip
    assert (found.simulated != GROWS).all()
    with pytest.raises(InvalidArgument, match="numbers for the others"):
        phase_diagram("-alpha*L@H + beta*L@H - gamma*H", random_op, np.ones(1), np.ones(1))
    with pytest.raises(InvalidArgument, match="two of the coefficients alpha"):
        phase_diagram("diffusion", random_op, np.ones(1), np.ones(1))


def test_bad_axes_and_starts_are_refused(random_op: Operator) -> None:
    with pytest.raises(InvalidArgument, match="finite values of beta"):
        phase_diagram("BS", random_op, np.ones(2), np.array([np.nan]))
    with pytest.raises(InvalidArgument, match=r"finite start \(12, channels\)"):
        phase_diagram("BS", random_op, np.ones(2), np.ones(2), H0=torch.full((12, 1), torch.nan, dtype=DOUBLE))


# ---------------------------------------------------------------------- figure and numbers
def small_diagram(op: Operator) -> PhaseDiagram:
    return phase_diagram("FB*", op, np.linspace(0, 3, 20), np.linspace(-1, 2, 15), method="euler", step=0.25, T=20.0)


def test_rows_hold_every_member(random_op: Operator) -> None:
    found = small_diagram(random_op)
    rows = found.rows()
    assert len(rows) == 300
    assert rows[21]["alpha"] == pytest.approx(3 / 19)
    assert rows[21]["beta"] == pytest.approx(-1 + 3 / 14)
    assert rows[21]["predicted"] == CLASSES[found.predicted[1, 1]]
    assert sum(found.share(name) for name in CLASSES) == pytest.approx(1.0)
    assert found.share("smooths") == pytest.approx(sum(r["predicted"] == "smooths" for r in rows) / 300)


def test_the_same_seed_gives_the_same_diagram(random_op: Operator) -> None:
    assert small_diagram(random_op).rows() == small_diagram(random_op).rows()


def test_the_figure_shows_both_and_the_borders(random_op: Operator) -> None:
    found = small_diagram(random_op)
    figure = phase_figure(found)
    panels = figure.axes
    assert [p.get_title() for p in panels] == ["predicted from the spectrum", "simulated"]
    assert all(len(p.lines) == len(found.borders) > 0 for p in panels)
    labels = [t.get_text() for t in figure.legends[0].get_texts()]
    assert found.ties == ()  # those of Euler's method are no lines
    assert labels[-2:] == ["border, closed form", "... normalised energy -> 0"]


@pytest.mark.parametrize(
    "text",
    ["u' = -alpha*L@u; v' = beta*v", "H'' = -alpha*L@H - beta*H'", "-alpha*L@H + beta*xi", "-alpha*L@H + beta*t*H"],
)
def test_borders_are_those_of_one_equation(text: str) -> None:
    for borders in (stability_borders, roughness_borders):
        with pytest.raises(NotApplicable, match="expected one autonomous equation of first order"):
            borders(text, np.array([0.5, 1.0]), ("alpha", "beta"), ((0.0, 1.0), (0.0, 1.0)), values={})
