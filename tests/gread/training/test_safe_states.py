"""States that no run overflows from: every equation trains with what is chosen for it, and `states` says how."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import rdgraph as rd
from gread import GREADClassifier, GREADConv, NodeData, exportable, karate, load_dataset
from gread.datasets.embedded import digits
from gread.datasets.splits import Masks
from gread.models.resolution import pole_warning, resolve_method
from gread.models.state_layout import StateLayout
from gread.settings.config import Config
from gread.settings.gread_settings import GreadSettings
from gread.settings.presets import presets
from gread.settings.state_region import StateRegion
from gread.settings.trials import make_trials
from gread.training.decoupled import check_decoupled
from gread.training.trainer import train
from rdgraph.errors import Diverged, InvalidArgument, NotApplicable
from rdgraph.systems.catalogue import catalogue

QUICK = {"hidden": 4, "heads": 2, "attention_dim": 4, "epochs": 4}
EDGES = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])


def own_graph(kind: str, n: int = 60, seed: int = 0) -> NodeData:
    """A homophilic table, a heterophilic one, or a directed weighted graph with columns of very different scales."""
    draw = np.random.default_rng(seed)
    y = draw.integers(0, 3, n)
    x = draw.normal(size=(3, 5))[y] + 0.5 * draw.normal(size=(n, 5))
    source = draw.integers(0, n, 4 * n)
    wanted = (y[source] + (kind == "heterophilic")) % 3
    target = np.array([draw.choice(np.flatnonzero(y == c)) for c in wanted])
    edges = np.unique(np.stack([source, target])[:, source != target], axis=1)
    if kind == "directed":
        graph = rd.Graph.from_edges(edges, n, 10 * draw.random(edges.shape[1]))
        x = x * 10.0 ** draw.integers(-3, 7, 5)
    else:
        graph = rd.Graph.from_edges(np.unique(np.concatenate([edges, edges[::-1]], 1), axis=1), n)
    part = draw.permutation(n)
    masks = np.zeros((3, 1, n), dtype=bool)
    for mask, rows in zip(masks, np.split(part, [n // 2, 3 * n // 4]), strict=True):
        mask[0, rows] = True
    return NodeData(graph, x, y, Masks(*masks))


def own_config(reaction: str, **values: object) -> Config:
    """What GREADClassifier and `rdgraph train --edges` train where nothing but sizes and epochs is given."""
    return Config.for_own_data("gread", **{**QUICK, "reaction": reaction, **values})


def status(data: NodeData, reaction: str, **values: object) -> str:
    config = own_config(reaction, **values)
    return train(data, make_trials(config, [0]), device="cpu", keep_best=False).status[0]


def test_the_defaults_here_are_those_of_the_classifier_and_the_command() -> None:
    from studies.training.choices import choose_preset

    own = Config.for_own_data("gread")
    assert GREADClassifier().config == choose_preset(None, None, "mine").config == own
    assert (own.gread.adjacency, own.gread.normalisation, own.gread.time) == ("original", "row", 4.0)


# ---------------------------------------------------------------------- nothing diverges
@pytest.mark.slow_cases(9)
@pytest.mark.parametrize("name", list(catalogue))
def test_every_entry_of_the_catalogue_trains_with_the_defaults(name: str) -> None:
    for data in (karate(), own_graph("homophilic"), own_graph("heterophilic"), own_graph("directed")):
        assert status(data, name) == "ok"


@pytest.mark.slow_cases(6)
@pytest.mark.slow
@pytest.mark.parametrize("name", list(catalogue))
def test_every_entry_of_the_catalogue_trains_on_digits(name: str) -> None:
    assert status(digits(), name, epochs=2) == "ok"


#: Reactions that blow up from some starts, and those with poles, roots of negative numbers or roots of zero.
GROWING = ("H**2", "H**3", "H*(A@H)", "-H*(A@H)**2", "exp(H)", "H*abs(H)", "(L@H)**2", "(A@H)**3", "relu(H)**2",
           "H*(1 - H)*(2 + H)", "-H**5", "cos(H)*H**2", "H0*H**2", "softplus(H)*H", "exp(-H)*(A@H)")  # fmt: skip
SINGULAR = ("sqrt(H)", "1/H", "H/(1 - H)", "1/(H**2 - 0.25)", "1/(1 + H)", "sqrt(1 - H**2)", "H/(a - H)", "1/(A@H)",
            "sqrt(abs(H))", "sqrt(relu(H))", "H/(1 + a*(A@H))", "sqrt(2 - A@H)", "1/(2 - exp(H))", "1/(H - 3)",
            "A@(1/(2 + H))")  # fmt: skip


def unsafe_lines(count: int, seed: int = 0) -> list[str]:
    """Lines of a random term with a pole and another random term."""
    draw = np.random.default_rng(seed)
    found: list[str] = []
    while len(found) < count:
        one = draw.choice(SINGULAR)
        two = draw.choice([body for body in (*GROWING, *SINGULAR) if body != one])
        found.append(f"-alpha*L@H + beta*({one}) + gamma*({two})")
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:no states are proved")
def test_lines_with_poles_train_with_the_defaults() -> None:
    graphs = [own_graph(kind, 30) for kind in ("homophilic", "heterophilic", "directed")]
    lines = unsafe_lines(3)
    assert [line for line, data in zip(lines, graphs, strict=True) if status(data, line, epochs=2) != "ok"] == []


@pytest.mark.slow
@pytest.mark.parametrize("reaction", ["H/(1 - H)", "1/(H**2 - 0.25)", "sqrt(relu(H))", "1/(a - H)"])
def test_a_line_with_poles_trains_with_the_defaults(reaction: str) -> None:
    assert status(own_graph("homophilic", 30), f"-alpha*L@H + beta*({reaction}) + gamma*(-H**3)", epochs=2) == "ok"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["F", "AC", "Z", "Nagumo", "Lotka-Volterra", "Mimura-Murray"])
def test_what_is_learned_is_better_than_the_majority(name: str) -> None:
    data = own_graph("homophilic", 150)
    trials = make_trials(own_config(name, hidden=16, epochs=20), [0])
    done = train(data, trials, device="cpu", keep_best=False)
    assert done.test_accuracy[0] > 0.6 > np.bincount(data.y).max() / data.num_nodes


# ---------------------------------------------------------------------- what is chosen
@pytest.mark.parametrize(
    ("reaction", "states"),
    [("BS", "free"), ("GCNII", "free"), ("-alpha*L@H + phi(H) where phi learned", "free"), ("F", "[0, 1]"),
     ("AC", "[-1, 1]"), ("Lotka-Volterra", "[0, 1] x [0, 1]"), ("-alpha*L@H + beta*H**2", "tanh on [-1, 1]"),
     ("Schnakenberg", "tanh on [0, 1] x [0, 1]")],
)  # fmt: skip
def test_the_region_follows_from_the_equation(reaction: str, states: str) -> None:
    chosen, reason = resolve_method(GreadSettings(reaction))
    assert chosen.states == states
    assert ("states='free'" in reason) == (states != "free")


@pytest.mark.parametrize(
    ("reaction", "states"),
    [("-alpha*L@H + sqrt(H)", "[0.25, 1.25]"), ("-alpha*L@H + H/(1 - H)", "[-1, 0.75]"),
     ("-alpha*L@H + 1/(H**2 - 0.25)", "[0.75, 1.75]"), ("-alpha*L@H + 1/(H*(1 - H))", "[1.25, 2.25]"),
     ("-alpha*L@H + sqrt(H*(1 - H))", "[0.25, 0.75]"), ("-alpha*L@H + sqrt(relu(H))", "[0.25, 1.25]"),
     ("-alpha*L@H + 1/(a - H)", "[1.25, 2.25]"), ("-alpha*L@H + 1/(a - H) where a negative", "[0.25, 1.25]"),
     ("-alpha*L@H + H/(1 + a*(A@H))", "[-0.75, 1]"), ("-alpha*L@H + A@(1/(1 - H))", "[-1, 0.75]"),
     ("-alpha*L@H + H@W + sqrt(H - 10)", "[10.25, 11.25]"), ("-alpha*L@H + H**2/H", "[0.25, 1.25]"),
     ("u' = -Du*L@u + sqrt(u); v' = -Dv*L@v + sqrt(-v)", "[0.25, 1.25] x [-1.25, -0.25]"),
     ("u' = -Du*L@u + u*v/(u + v); v' = -Dv*L@v - v**2", "[0.25, 1.25] x [0.25, 1.25]")],
)  # fmt: skip
def test_states_keep_away_from_poles(reaction: str, states: str) -> None:
    chosen, reason = resolve_method(own_config(reaction).gread)
    assert chosen.states == f"tanh within {states}"
    assert pole_warning(reason) == ""


def test_a_box_with_poles_outside_needs_no_clamp() -> None:
    holling = "u' = -Du*L@u + u*(1 - u) - u*v/(1 + u); v' = -Dv*L@v + u*v/(1 + u) - v"
    assert resolve_method(own_config(holling).gread)[0].states == "[0, 1] x [0, 1]"


def test_an_average_can_be_zero_where_nodes_can_be_alone() -> None:
    for loops, is_proved in ((1.0, True), (0.0, False)):
        chosen, reason = resolve_method(own_config("-alpha*L@H + 1/(A@H)", self_loops=loops).gread)
        assert chosen.states == "tanh within [0.25, 1.25]"
        assert (pole_warning(reason) == "") == is_proved


#: Equations with poles that no interval is proved to avoid.
REACHED = ("-alpha*L@H + beta/(H0 - H)", "-alpha*L@H + 1/(1 + phi(H)) where phi learned",
           "-alpha*L@H + 1/(1 + a*H) where a channel", "-alpha*L@H + sqrt(H - H0)",
           "-alpha*L@H + 1/(A@H - H)")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("reaction", REACHED)
def test_trainings_pass_over_poles_that_no_region_is_proved_to_avoid(reaction: str) -> None:
    data, said = own_graph("homophilic", 30), []
    trials = make_trials(own_config(reaction, epochs=3), [0])
    done = train(data, trials, device="cpu", keep_best=False, tell=said.append)
    assert said == [pole_warning(resolve_method(trials[0].config.gread)[1])] != [""]
    assert done.status == ("ok",)
    assert np.isfinite(done.history).all()
    with pytest.warns(UserWarning, match="poles"):
        layer = GREADConv(4, reaction, heads=2)
    x = torch.zeros(4, 4, requires_grad=True)
    out = layer(x, EDGES)
    out.square().sum().backward()
    assert out.isfinite().all()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())


@pytest.mark.slow_cases(4)
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:no states are proved")
@pytest.mark.parametrize("reaction", REACHED)
@pytest.mark.parametrize("values", [{"adjacency": "soft"}, {"adjacency": "live"}, {"beta": "scalar", "time": 12.0}])
def test_poles_are_passed_over_whatever_the_operator(reaction: str, values: dict[str, object]) -> None:
    assert status(own_graph("directed", 30), reaction, epochs=3, **values) == "ok"


@pytest.mark.slow
def test_what_is_not_finite_changes_nothing_of_other_members() -> None:
    data, reaction = own_graph("homophilic", 30), REACHED[0]
    trials, said = make_trials(own_config(reaction, epochs=4), [0], range(2)), []
    both = train(data, trials, device="cpu", keep_best=False, tell=said.append)
    for k in (0, 1):
        alone = train(data, [trials[k]], device="cpu", keep_best=False, tell=said.append)
        assert np.array_equal(alone.history[0], both.history[k], equal_nan=True)


def test_slopes_are_taken_at_clamped_states() -> None:
    layout = StateLayout.of(GreadSettings("Lotka-Volterra", hidden=1, states="tanh within [0.25, 0.75] x [-1, 1]"))
    states = torch.tensor([[-3.0, -3.0], [0.5, 0.5], [9.0, 9.0]])
    torch.testing.assert_close(layout.clamped(states), torch.tensor([[0.25, -1.0], [0.5, 0.5], [0.75, 1.0]]))


def test_a_box_is_used_only_where_the_coefficients_keep_what_its_proof_assumes() -> None:
    assert resolve_method(GreadSettings("AC", beta_link="free"))[0].states == "tanh on [-1, 1]"
    free = "-alpha*L@H + gamma*H*(1 - H**2) where gamma channel"
    assert resolve_method(GreadSettings(free))[0].states == "tanh on [-1, 1]"
    assert resolve_method(GreadSettings("Nagumo"))[0].states == "[0, 1]"
    beyond = "-alpha*L@H + beta*H*(1 - H)*(H - a) where a > 2"
    assert resolve_method(GreadSettings(beyond))[0].region.is_saturated


def test_published_settings_and_given_methods_are_free() -> None:
    published = [p for p in presets() if hasattr(p.config.model, "states") and not p.name.startswith("modern/")]
    assert {p.config.gread.region for p in published} == {StateRegion()}
    given = GreadSettings("AC", method="euler", step=0.5)
    assert resolve_method(given) == (given, "")
    assert resolve_method(GreadSettings("AC", method="euler", step=0.5, states="safe"))[0].states == "[-1, 1]"
    assert resolve_method(GreadSettings("AC", states="free"))[0].states == "free"


def test_a_box_is_not_left() -> None:
    for name in ("F", "AC", "Nagumo"):
        data, config = own_graph("homophilic"), own_config(name, time=2.0)
        done = train(data, make_trials(config, [0]), device="cpu")
        states = done.network(0).states(data.x, data.graph, np.linspace(0, 2, 5).tolist())
        ((low, high),) = done.network(0).gread.region.intervals
        assert low - 1e-5 <= float(states.min()) <= float(states.max()) <= high + 1e-5


# ---------------------------------------------------------------------- the setting
def test_intervals_are_read_and_printed() -> None:
    for text in ("free", "[0, 1]", "[-2, 0.5] x [0, 1]", "tanh on [0, 1]", "tanh within [0.25, 1] x [-1, 1]"):
        assert str(StateRegion.read(text)) == GreadSettings(states=text).states == text
    assert GreadSettings(states="tanh").states == "tanh on [-1, 1]"
    for wrong in ("box", "[1, 0]", "[a, 1]", "[0, 1", "tanh on", "tanh within", "[0, inf]"):
        with pytest.raises(InvalidArgument):
            GreadSettings(states=wrong)
    with pytest.raises(InvalidArgument):
        StateLayout.of(GreadSettings("BS", states="[0, 1] x [0, 1]"))
    with pytest.raises(NotApplicable):
        check_decoupled(GreadSettings("BS", adjacency="original", states="[0, 1]"))


def test_the_start_is_mapped_onto_its_interval() -> None:
    layout = StateLayout.of(GreadSettings("Lotka-Volterra", hidden=1, states="[0, 1] x [-2, 2]"))
    far = layout.start(torch.tensor([[-50.0, -50.0], [0.0, 0.0], [50.0, 50.0]]))
    torch.testing.assert_close(far, torch.tensor([[0.0, -2.0], [0.5, 0.0], [1.0, 2.0]]))
    slope = layout.start(torch.full((1, 2), 1e-3)) - layout.start(torch.zeros(1, 2))
    torch.testing.assert_close(slope, torch.full((1, 2), 1e-3), rtol=1e-3, atol=0.0)


def test_a_network_is_saved_with_its_region(tmp_path: object) -> None:
    data = karate()
    clf = GREADClassifier("AC", hidden=4, epochs=3, device="cpu").fit(data)
    assert clf.network_.config.states == "[-1, 1]"
    assert "states='free'" in clf.network_.reason
    clf.save(str(tmp_path))
    assert np.array_equal(GREADClassifier.load(str(tmp_path)).predict_proba(), clf.predict_proba())


# ---------------------------------------------------------------------- the layer
@pytest.mark.parametrize("reaction", ["AC", "-alpha*L@H + beta*H**2", "-alpha*L@H + beta*sqrt(H)"])
def test_a_layer_stays_finite_and_says_where_it_starts(reaction: str) -> None:
    torch.manual_seed(0)
    layer = GREADConv(6, reaction, heads=2)
    x = 100 * torch.randn(4, 6)
    x.requires_grad_(True)
    layer(x, EDGES).sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())
    assert f"states {layer.config.states}" in repr(layer)
    assert GREADConv(6, reaction, states="free", method="euler", step=0.1)(x, EDGES).isfinite().all().item() is False
    given = GREADConv(6, reaction, heads=2, method="euler", step=0.1)
    assert given.config.states == layer.config.states
    assert given(x, EDGES).isfinite().all()


def test_a_layer_with_bounded_slopes_is_exported_as_it_is() -> None:
    torch.manual_seed(0)
    for reaction in ("-alpha*L@H + beta*H**2", "-alpha*L@H + beta*sqrt(H)", "Nagumo"):
        layer = GREADConv(6, reaction, heads=2)
        x = torch.randn(4, 6)
        torch.testing.assert_close(exportable(layer)(x, EDGES), layer(x, EDGES))


# ---------------------------------------------------------------------- what to do about a divergence
def test_the_remedies_of_a_divergence_work() -> None:
    data = own_graph("homophilic")
    free = GREADClassifier("AC", method="euler", step=0.5, epochs=3, hidden=4, beta_link="free", time=8.0, device="cpu")
    with pytest.raises(Diverged, match="states=safe"):
        free.fit(data)
    assert free.set_params(states="safe").fit(data).status_ == ("ok",)
    huge = NodeData(data.graph, np.asarray(data.x) / abs(data.x).max() * 3e38, data.y, data.masks)
    linear = GREADClassifier("BS", epochs=3, hidden=4, device="cpu")
    with pytest.raises(Diverged, match="standardise"):
        linear.fit(huge)
    assert linear.fit(huge.standardised()).status_ == ("ok",)
    growing = GREADClassifier("alpha*H", time=500.0, epochs=3, hidden=4, device="cpu")
    with pytest.raises(Diverged, match="time"):
        growing.fit(data)
    assert growing.set_params(time=5.0).fit(data).status_ == ("ok",)


def test_embedded_sets_have_quick_settings_that_are_safe() -> None:
    assert load_dataset("karate").num_nodes == 34
    from studies.training.choices import choose_preset

    preset = choose_preset(None, "AC", "karate", is_embedded=True)
    chosen = resolve_method(preset.config.updated({"reaction": "AC"}).gread)[0]
    assert (chosen.method, chosen.states) == ("euler", "[-1, 1]")
