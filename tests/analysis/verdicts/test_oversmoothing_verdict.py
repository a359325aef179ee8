"""Verdicts: predicted rates and limits of energies beside measured ones; proven statements with their hypotheses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from analysis.spectra.eigenvalues import spectral_gap, spectrum
from analysis.verdicts.energy_fates import GROWS, EnergyFate
from analysis.verdicts.statements import STAYS, VANISHES, EnergyStatement, Reaction
from analysis.verdicts.verdict import OversmoothingVerdict, oversmoothing
from rdgraph.answers import Status
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs import generators
from rdgraph.graphs.graph import Graph
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse

DOUBLE = torch.float64


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Irregular, connected, not bipartite."""
    return generators.barabasi_albert(14, 2, seed=4)


def start(graph: Graph, channels: int = 2, seed: int = 0) -> Tensor:
    return torch.as_tensor(np.random.default_rng(seed).standard_normal((graph.num_nodes, channels)))


def fates(verdict: OversmoothingVerdict) -> dict[str, EnergyFate]:
    return {fate.energy: fate for fate in verdict.fates}


def dirichlet(graph: Graph, H: Tensor) -> float:
    """(1/N) sum over ordered neighbours, by its definition."""
    source, target = graph.edge_index
    gaps = (H.numpy()[source] - H.numpy()[target]) ** 2
    return float((graph.weight[:, None] * gaps).sum() / graph.num_nodes)


# ---------------------------------------------------------------------- linear systems
def test_row_diffusion_decays_at_twice_the_gap(graph: Graph) -> None:
    gap = spectral_gap(graph.operator("row", dtype=DOUBLE))
    found = oversmoothing("diffusion", graph, {"alpha": 0.7}, start(graph), T=60.0, normalisation="row")
    fate = fates(found)["dirichlet"]
    assert found.answer == fate.answer == VANISHES
    assert found.lam2 == pytest.approx(gap)
    assert fate.rate == pytest.approx(-2 * 0.7 * gap, rel=1e-9)
    assert fate.measured_rate == pytest.approx(fate.rate, rel=1e-3)
    assert fates(found)["normalised"].answer == VANISHES


def test_rounding_does_not_pass_for_a_plateau(graph: Graph) -> None:
    """At T = 400 the energy is e^-400 of its start, and what is left in the states is rounding."""
    found = oversmoothing("diffusion", graph, {"alpha": 0.7}, start(graph), T=400.0, normalisation="row")
    fate = fates(found)["dirichlet"]
    assert fate.rate * 400 < -150
    assert fate.measured_rate == pytest.approx(fate.rate, rel=1e-2)


def test_symmetric_diffusion_leaves_a_profile_on_irregular_graphs(graph: Graph) -> None:
    """E -> (2/N) sum_edges (sqrt d_i - sqrt d_j)^2/(2m) |v' H0|^2 with v = sqrt(d/2m)."""
    H0, degree = start(graph), graph.degree
    v = np.sqrt(degree / degree.sum())
    pairs = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    steps = ((np.sqrt(degree[pairs[0]]) - np.sqrt(degree[pairs[1]])) ** 2).sum() / degree.sum()
    limit = 2 / graph.num_nodes * steps * ((v @ H0.numpy()) ** 2).sum()
    found = oversmoothing("diffusion", graph, {"alpha": 1.0}, H0, T=80.0)
    fate = fates(found)["dirichlet"]
    assert found.answer == STAYS
    assert fate.limit == pytest.approx(limit, rel=1e-10)
    assert fate.final == pytest.approx(limit, rel=1e-6)
    assert fates(found)["laplacian"].answer == VANISHES  # the operator's own energy does go to zero
    assert fates(found)["laplacian"].rate == pytest.approx(-2 * found.lam2, rel=1e-9)


def test_symmetric_diffusion_vanishes_on_regular_graphs() -> None:
    ring = generators.ring(9)
    found = oversmoothing("diffusion", ring, {"alpha": 1.0}, start(ring), T=30.0)
    fate = fates(found)["dirichlet"]
    assert fate.rate == pytest.approx(-2 * (1 - math.cos(2 * math.pi / 9)), rel=1e-9)
    assert fate.measured_rate == pytest.approx(fate.rate, rel=1e-3)


@pytest.mark.parametrize("share", [0.8, 1.25])
def test_blurring_sharpening_vanishes_or_grows_by_its_threshold(graph: Graph, share: float) -> None:
    """beta (1 - lam2) against alpha, nothing in between but a null set."""
    gap = spectral_gap(graph.operator("row", dtype=DOUBLE))
    values = {"alpha": 0.6, "beta": share * 0.6 / (1 - gap)}
    found = oversmoothing("BS", graph, values, start(graph), T=150.0, normalisation="row")
    fate = fates(found)["dirichlet"]
    assert found.answer == (VANISHES if share < 1 else GROWS)
    if share < 1:
        assert fate.rate == pytest.approx(2 * gap * (values["beta"] * (1 - gap) - values["alpha"]), rel=1e-9)
    assert fate.measured_rate == pytest.approx(fate.rate, rel=2e-2)


def test_on_the_threshold_the_energy_stays() -> None:
    """A ring of 8: lam2 = 1 - cos(pi/4), and beta = alpha/(1 - lam2) keeps that mode as it is."""
    ring = generators.ring(8)
    values = {"alpha": 0.5, "beta": 0.5 / math.cos(math.pi / 4)}
    found = oversmoothing("BS", ring, values, start(ring), T=60.0)
    fate = fates(found)["laplacian"]
    modes = spectrum(ring.operator("symmetric", dtype=DOUBLE))
    kept = modes.transform(start(ring)).numpy()[1:3]
    assert fate.answer == STAYS
    assert fate.limit == pytest.approx(modes.values[1] * (kept**2).sum(), rel=1e-8)
    assert fate.final == pytest.approx(fate.limit, rel=1e-6)


def test_the_source_term_settles_at_its_plateau(graph: Graph) -> None:
    """tr(H' L H) -> (beta/alpha)^2 sum c_k^2/lam_k, while the kernel grows linearly."""
    H0 = start(graph)
    modes = spectrum(graph.operator("symmetric", dtype=DOUBLE))
    c = modes.transform(H0).numpy()[1:]
    plateau = (0.5 / 0.8) ** 2 * (c**2 / modes.values[1:, None]).sum()
    found = oversmoothing("ST", graph, {"alpha": 0.8, "beta": 0.5}, H0, T=100.0)
    fate = fates(found)["laplacian"]
    assert fate.answer == STAYS
    assert fate.limit == pytest.approx(plateau, rel=1e-10)
    assert fate.final == pytest.approx(plateau, rel=1e-6)
    # In the paper's energy the growing kernel, sqrt(degree), is not constant.
    assert (fates(found)["dirichlet"].rate, fates(found)["dirichlet"].power) == (0.0, 2.0)


def test_the_source_term_by_rows_keeps_raw_energy_and_loses_normalised(graph: Graph) -> None:
    found = oversmoothing("ST", graph, {"alpha": 0.8, "beta": 0.5}, start(graph), T=400.0, normalisation="row")
    assert found.answer == STAYS
    fate = fates(found)["dirichlet"]
    assert fate.final == pytest.approx(fate.limit, rel=1e-6)
    normalised = fates(found)["normalised"]
    assert (normalised.rate, normalised.power, normalised.answer) == (0.0, -2.0, VANISHES)
    assert normalised.measured_power == pytest.approx(-2.0, abs=0.1)
    assert normalised.final * 400.0**2 == pytest.approx(normalised.limit, rel=0.05)


def test_raw_energy_may_blow_up_while_the_normalised_one_vanishes(graph: Graph) -> None:
    """FB*: the kernel grows at beta, the gap's mode at beta - (alpha - beta) lam2."""
    gap = spectral_gap(graph.operator("row", dtype=DOUBLE))
    found = oversmoothing("FB*", graph, {"alpha": 1.0, "beta": 0.6}, start(graph), T=80.0, normalisation="row")
    assert found.answer == GROWS
    assert fates(found)["dirichlet"].rate == pytest.approx(2 * (0.6 - 0.4 * gap), rel=1e-9)
    assert fates(found)["normalised"].rate == pytest.approx(-2 * 0.4 * gap, rel=1e-9)
    assert fates(found)["normalised"].measured_rate == pytest.approx(-2 * 0.4 * gap, rel=1e-2)


def test_channels_have_their_own_rates(graph: Graph) -> None:
    system = parse("-alpha*L@H + beta*H", {"beta": "channel"}, assume=["beta real"])
    values = {"alpha": 0.2, "beta": torch.tensor([-1.0, 0.3], dtype=DOUBLE)}
    gap = spectral_gap(graph.operator("row", dtype=DOUBLE))
    found = oversmoothing(system, graph, values, start(graph), T=60.0, normalisation="row")
    assert fates(found)["dirichlet"].rate == pytest.approx(2 * (0.3 - 0.2 * gap), rel=1e-9)
    assert fates(found)["dirichlet"].measured_rate == pytest.approx(2 * (0.3 - 0.2 * gap), rel=1e-2)


def test_modes_that_the_start_lacks_do_not_count(graph: Graph) -> None:
    modes = spectrum(graph.operator("row", dtype=DOUBLE))
    H0 = torch.as_tensor(modes.vectors[:, [0]] + modes.vectors[:, [5]])
    found = oversmoothing("diffusion", graph, {"alpha": 1.0}, H0, T=10.0, normalisation="row")
    assert fates(found)["dirichlet"].rate == pytest.approx(-2 * modes.values[5], rel=1e-9)
    assert fates(found)["dirichlet"].measured_rate == pytest.approx(-2 * modes.values[5], rel=1e-6)


def test_a_constant_start_has_no_energy(graph: Graph) -> None:
    flat = torch.ones(graph.num_nodes, 1, dtype=DOUBLE)
    found = oversmoothing("diffusion", graph, {"alpha": 1.0}, flat, T=5.0, normalisation="row")
    assert found.answer == VANISHES
    assert fates(found)["dirichlet"].rate == -math.inf
    assert "it is zero" in found.text


def test_a_blow_up_ends_the_measured_trajectory(graph: Graph) -> None:
    found = oversmoothing("FB*", graph, {"alpha": 1.0, "beta": 30.0}, start(graph), T=40.0, normalisation="row")
    assert found.blew_up
    assert found.times[-1] < 40.0
    assert found.answer == GROWS
    assert np.isfinite(found.energies["normalised"]).all()


def test_the_trajectory_is_the_energy_of_the_states(graph: Graph) -> None:
    H0 = start(graph)
    found = oversmoothing("BS", graph, {"alpha": 1.0, "beta": 0.5}, H0, T=2.0)
    rows = found.rows()
    assert len(rows) == len(found.times) == 129
    assert rows[0]["dirichlet"] == pytest.approx(dirichlet(graph, H0))
    A = graph.operator("symmetric", dtype=DOUBLE).dense()
    L = torch.eye(len(A), dtype=DOUBLE) - A
    end = torch.linalg.matrix_exp(2.0 * (-L + 0.5 * (A - A @ A))) @ H0
    assert rows[-1]["dirichlet"] == pytest.approx(dirichlet(graph, end), rel=1e-9)
    assert rows[-1]["laplacian"] == pytest.approx(float((end * (L @ end)).sum()), rel=1e-9)


# ---------------------------------------------------------------------- reactions
def statement(verdict: OversmoothingVerdict, name: str) -> EnergyStatement:
    return next(s for s in verdict.statements if s.name == name)


def rowwise(
    name: str, graph: Graph, values: dict[str, float], H0: Tensor, T: float = 30.0, **more: Any
) -> OversmoothingVerdict:
    return oversmoothing(name, graph, values, H0, T=T, normalisation="row", **more)


def signs(graph: Graph, size: float) -> Tensor:
    return size * torch.as_tensor(np.random.default_rng(7).choice([-1.0, 1.0], size=(graph.num_nodes, 1)))


@pytest.mark.parametrize(
    ("name", "steepest"), [("AC", 1.0), ("Z", 1 / 3), ("F", 1.0)], ids=["allen-cahn", "zeldovich", "fisher"]
)
def test_contraction_below_the_threshold(graph: Graph, name: str, steepest: float) -> None:
    gap = spectral_gap(graph.operator("row", dtype=DOUBLE))
    H0 = start(graph).abs()
    values = {"alpha": 1.0, "beta": 0.8 * gap / steepest}
    found = rowwise(name, graph, values, H0)
    mine = statement(found, "contraction")
    assert mine.numbers["rate"] == pytest.approx(2 * (0.8 * gap - gap), rel=1e-9)
    assert (mine.applies, mine.observed, found.answer) == (True, True, VANISHES)
    assert mine.numbers["over_bound"] <= 1 + 1e-9
    above = statement(rowwise(name, graph, {"alpha": 1.0, "beta": 1.2 * gap / steepest}, H0, T=1.0), "contraction")
    assert (above.applies, above.observed) == (False, None)
    assert [h.holds for h in above.hypotheses] == [True, True, False]


def test_fisher_does_not_contract_from_negative_values(graph: Graph) -> None:
    mine = statement(rowwise("F", graph, {"alpha": 1.0, "beta": 1e-3}, start(graph), T=1.0), "contraction")
    assert not mine.applies
    assert "inf everywhere" in str(mine)


def test_allen_cahn_keeps_every_sign(graph: Graph) -> None:
    H0 = signs(graph, 0.5)
    found = rowwise("AC", graph, {"alpha": 0.25, "beta": 1.0}, H0)
    mine = statement(found, "sign pattern")
    source, target = graph.edge_index
    cut = (H0.numpy()[source] != H0.numpy()[target]).sum() / 2
    assert cut > 0
    assert mine.numbers["cut"] == cut
    assert mine.numbers["bound"] == pytest.approx(2 / graph.num_nodes * cut)
    assert (mine.applies, mine.observed, found.answer) == (True, True, STAYS)
    assert found.energies["dirichlet"].min() >= mine.numbers["bound"]


def test_a_stronger_reaction_guarantees_more(graph: Graph) -> None:
    """alpha/beta = 0.16 = 0.2 * 0.8: from |h0| = 0.2 on signs stay, and 0.8 is kept."""
    values = {"alpha": 0.16, "beta": 1.0}
    assert statement(rowwise("AC", graph, values, signs(graph, 0.2)), "sign pattern").observed
    mine = statement(rowwise("AC", graph, values, signs(graph, 1.0)), "sign pattern")
    assert mine.numbers["level"] == pytest.approx(0.8)
    assert mine.observed
    assert not statement(rowwise("AC", graph, values, signs(graph, 0.19), T=1.0), "sign pattern").applies
    assert not statement(rowwise("AC", graph, values, signs(graph, 1.01), T=1.0), "sign pattern").applies


def test_the_constant_four_is_sharp() -> None:
    """A leaf on a large hub of the other sign: kept at alpha/beta = 0.24, lost at 0.27."""
    star = generators.star(60)
    H0 = torch.full((60, 1), 1.0, dtype=DOUBLE)
    H0[1] = -0.5
    kept = statement(rowwise("AC", star, {"alpha": 0.24, "beta": 1.0}, H0, T=80.0), "sign pattern")
    lost = rowwise("AC", star, {"alpha": 0.27, "beta": 1.0}, H0, T=80.0)
    assert (kept.applies, kept.observed) == (True, True)
    assert not statement(lost, "sign pattern").applies
    assert (lost.answer, lost.status) == (VANISHES, "measured")
    assert lost.energies["dirichlet"][-1] < 0.1 * lost.energies["dirichlet"][0]


def test_a_pattern_of_one_sign_says_nothing_about_the_energy(graph: Graph) -> None:
    found = rowwise("AC", graph, {"alpha": 0.2, "beta": 1.0}, signs(graph, 0.6).abs(), T=5.0)
    assert statement(found, "sign pattern").observed
    assert found.status != "proved"


def test_zeldovich_collapses_whatever_the_start(graph: Graph) -> None:
    found = rowwise("Z", graph, {"alpha": 0.5, "beta": 2.0}, start(graph), T=60.0)
    mine = statement(found, "collapse")
    assert not statement(found, "contraction").applies
    assert (mine.applies, mine.observed, found.answer) == (True, True, VANISHES)
    assert mine.numbers["share"] < 1e-2


def test_fisher_collapses_to_one_from_above_and_blows_up_from_below(graph: Graph) -> None:
    above = rowwise("F", graph, {"alpha": 0.3, "beta": 1.0}, start(graph).abs())
    assert (statement(above, "collapse").observed, above.answer) == (True, VANISHES)
    assert statement(above, "collapse").numbers["distance"] < 1e-6
    below = rowwise("F", graph, {"alpha": 0.3, "beta": 1.0}, start(graph) - 3)
    assert (statement(below, "collapse").applies, below.blew_up, below.answer) == (False, True, GROWS)


def test_collapse_needs_a_connected_graph_and_a_stochastic_operator(graph: Graph) -> None:
    apart = generators.sbm([4, 4], np.eye(2), seed=0)
    H0 = start(apart, 1).abs() + 0.1
    mine = statement(rowwise("Z", apart, {"alpha": 1.0, "beta": 0.1}, H0, T=1.0), "collapse")
    assert [h.holds for h in mine.hypotheses] == [True, False, True]
    irregular = oversmoothing("Z", graph, {"alpha": 1.0, "beta": 0.1}, start(graph), T=1.0)
    assert all(not s.applies and not s.hypotheses[0].holds for s in irregular.statements)
    assert irregular.answer == Status.UNDECIDED
    ring = generators.ring(6)  # regular: the symmetric operator is row-stochastic
    assert oversmoothing("Z", ring, {"alpha": 1.0, "beta": 0.1}, start(ring), T=1.0).answer == VANISHES


def test_other_reactions_contract_too(graph: Graph) -> None:
    """Nagumo, beta h (1 - h)(h - a): sup f' = beta ((1 + a)^2/3 - a)."""
    r = Reaction.read(catalogue["Nagumo"], {"alpha": 1.0, "beta": 2.0, "a": 0.25})
    assert (r.name, r.alpha) == (None, 1.0)
    assert r.steepest(-math.inf) == pytest.approx(2 * (1.25**2 / 3 - 0.25))
    assert r.steepest(5.0) == pytest.approx(float(np.polyval([-6.0, 5.0, -0.5], 5.0)))
    found = rowwise("Nagumo", graph, {"alpha": 1.0, "beta": 0.1, "a": 0.25}, start(graph), T=20.0)
    assert [s.name for s in found.statements] == ["contraction"]
    assert (statement(found, "contraction").observed, found.answer) == (True, VANISHES)


@pytest.mark.parametrize("name", ["F", "AC", "Z"])
def test_reactions_are_recognised_by_their_form(name: str) -> None:
    r = Reaction.read(catalogue[name], {"alpha": 0.5, "beta": -0.75})
    assert (r.name, r.beta) == (name, -0.75)


# ---------------------------------------------------------------------- words and refusals
def test_the_text_says_what_was_found(graph: Graph) -> None:
    found = oversmoothing("diffusion", graph, {"alpha": 1.0}, start(graph), T=60.0)
    head, first, second, third = found.text.splitlines()
    assert head.startswith("diffusion on Operator(symmetric: 14 nodes")
    assert head.endswith("E stays positive.")
    assert f"the limit {found.fates[0].limit:.6g}" in first
    assert f"exp({-2 * found.lam2:.6g} t)" in second
    assert third.startswith("normalised energy")
    lines = rowwise("AC", graph, {"alpha": 0.2, "beta": 1.0}, signs(graph, 0.8), T=5.0).text.splitlines()
    assert "no statement, since not sup f' < alpha lam2" in lines[1]
    assert "every sign stays" in lines[2]
    assert "seen in the run" in lines[2]


def test_equations_without_a_theorem_are_measured(graph: Graph) -> None:
    """The gate is 1/2 at small states, where the rate of E is that of the linear system with that number."""
    H0 = 1e-4 * start(graph)
    gated = oversmoothing("-0.5*L@H + sigmoid(H)*(A@H - H)", graph, {}, H0, T=20.0, normalisation="row")
    linear = oversmoothing("-L@H", graph, {}, H0, T=20.0, normalisation="row")
    assert (gated.answer, gated.status, linear.status) == (VANISHES, "measured", "proved")
    assert gated.measured.rate == pytest.approx(linear.fates[0].rate, rel=1e-2)
    kept = oversmoothing("-alpha*L@H + tanh(3*H) - H", graph, {"alpha": 0.01}, signs(graph, 0.6), T=60.0)
    assert (kept.answer, kept.status) == (STAYS, "measured")
    assert abs(kept.measured.rate) < 1e-3
    blown = oversmoothing("-alpha*L@H + H*abs(H) + H*(A@H)**2", graph, {"alpha": 0.1}, start(graph), T=60.0)
    assert (blown.answer, blown.status, blown.blew_up) == (GROWS, "measured", True)


def test_bad_input_is_refused(graph: Graph) -> None:
    H0 = start(graph)
    with pytest.raises(NotApplicable, match="undirected graph"):
        oversmoothing("diffusion", Graph.from_edges([[0], [1]]), {"alpha": 1.0}, H0[:2], normalisation="row")
    with pytest.raises(InvalidArgument, match="finite start"):
        oversmoothing("diffusion", graph, {"alpha": 1.0}, H0 * torch.nan)
    with pytest.raises(InvalidArgument, match="finite start"):
        oversmoothing("diffusion", graph, {"alpha": 1.0}, H0[:3])
    with pytest.raises(InvalidArgument, match="T > 0"):
        oversmoothing("diffusion", graph, {"alpha": 1.0}, H0, T=0.0)
    with pytest.raises(InvalidArgument, match="none for beta"):
        oversmoothing("BS", graph, {"alpha": 1.0}, H0)
    with pytest.raises(InvalidArgument, match="none for beta"):
        oversmoothing("AC", graph, {"alpha": 1.0}, H0)
    with pytest.raises(InvalidArgument, match="beta, a scalar coefficient"):
        oversmoothing("AC", graph, {"alpha": 1.0, "beta": torch.ones(2)}, H0)
    with pytest.raises(NotApplicable, match="one field"):
        oversmoothing("u' = -L@u; v' = -L@v", graph, {}, H0)
    with pytest.raises(NotApplicable, match="does not commute"):
        oversmoothing("BS", graph, {"alpha": 1.0, "beta": 1.0}, H0, normalisation="none")
