"""Published networks that are lines of the language, beside dense numpy evaluations of their rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import rdgraph as rd
from gread.datasets.synthetic import csbm
from gread.models.place import Place
from gread.models.problem import make_features
from gread.models.randomness import Randomness, make_rates
from gread.settings.config import Config
from gread.settings.model_records import models
from gread.settings.presets import find_preset
from gread.zoo.deep_networks import FIRST, SECOND
from gread.zoo.equation_networks import LineModel
from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName

DATA = csbm(5, n=14, features=5)
LINES = ("grand-pp", "graff", "acmp", "cgnn", "gcon-gcn", "blend")


def make(name: str, **values: Any) -> LineModel:
    """A network of two members whose parameters are all drawn anew, so that nothing is zero."""
    settings = Config.of(name, **{"hidden": 4, **values}).model
    trusted = torch.tensor(DATA.masks.train[:2], dtype=torch.float64)
    place = Place.of(DATA.graph, dtype=torch.float64, trusted=trusted)
    model = models[name].network(settings, place, features=5, classes=2, seeds=[0, 1])
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / 2)
    assert isinstance(model, LineModel)
    return model


def values(model: LineModel, member: int) -> dict[str, np.ndarray]:
    return {name: part[member].detach().numpy() for name, part in model.parts.items()}


def logits(model: LineModel, member: int) -> np.ndarray:
    with torch.no_grad():
        found: np.ndarray = model(make_features(DATA.x, model.config, dtype=torch.float64))[member].numpy()
    return found


def edges(loops: float = 0.0) -> np.ndarray:
    """The weights of the graph, from its edges alone."""
    found = np.zeros((DATA.num_nodes, DATA.num_nodes))
    found[DATA.graph.edge_index[1], DATA.graph.edge_index[0]] = 1
    np.fill_diagonal(found, loops)
    return found


def symmetric(weights: np.ndarray) -> np.ndarray:
    scale = np.array([d**-0.5 if d else 0.0 for d in weights.sum(1)])
    return scale[:, None] * weights * scale


def attention(p: dict[str, np.ndarray], h: np.ndarray, heads: int, loops: float = 1.0) -> np.ndarray:
    """The mean over the heads of a softmax of scaled dot products over the edges."""
    query, key = (h @ p[f"{name}_weight"] + p[f"{name}_bias"] for name in ("query", "key"))
    present, total = edges(loops) > 0, np.zeros((len(h), len(h)))
    for q, k in zip(np.split(query, heads, 1), np.split(key, heads, 1), strict=True):
        scores = np.where(present, np.exp(q @ k.T / np.sqrt(q.shape[1])), 0.0)
        total += scores / scores.sum(1, keepdims=True)
    return total / heads


def sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def linear(p: dict[str, np.ndarray], name: str, x: np.ndarray) -> np.ndarray:
    return x @ p[f"{name}_weight"] + p[f"{name}_bias"]


X = np.asarray(DATA.x)


# ---------------------------------------------------------------------- GRAND++
@pytest.mark.parametrize(("method", "step"), [("euler", 0.3), ("exact", None)])
def test_grand_plus_plus(method: str, step: float | None) -> None:
    model = make("grand-pp", method=method, step=step, time=1.0, heads=2, attention_dim=4)
    for member in range(2):
        p = values(model, member)
        start = linear(p, "encoder", X)
        S, trusted = attention(p, start, 2), DATA.masks.train[member]
        source = np.where(trusted[:, None], start - start[trusted].mean(0), 0.0)
        np.testing.assert_allclose(source.sum(0), 0, atol=1e-12)
        steps = [0.3, 0.3, 0.3, 0.1] if step else [1e-3] * 1000
        h = start
        for dt in steps:  # the classical method of order 4 stands for the exact flow
            f = lambda x: S @ x - x + source  # noqa: E731, B023
            if step:
                h = h + dt * f(h)
            else:
                a = f(h)
                b = f(h + dt / 2 * a)
                c = f(h + dt / 2 * b)
                h = h + dt / 6 * (a + 2 * b + 2 * c + f(h + dt * c))
        np.testing.assert_allclose(logits(model, member), linear(p, "decoder", relu(h)), rtol=1e-6, atol=1e-9)


def test_grand_plus_plus_needs_trusted_nodes() -> None:
    settings = Config.of("grand-pp", hidden=4).model
    model = models["grand-pp"].network(settings, Place.of(DATA.graph), features=5, classes=2, seeds=[0])
    with pytest.raises(InvalidArgument, match="trusted nodes"):
        model(make_features(DATA.x, settings))


# ---------------------------------------------------------------------- GRAFF
def dominant(p: dict[str, np.ndarray]) -> np.ndarray:
    W = (p["coefficient_W"] + p["coefficient_W"].T) / 2
    np.fill_diagonal(W, 0)
    return W + np.diag(p["coefficient_W_slope"] * np.abs(W).sum(1) + p["coefficient_W_shift"])


@pytest.mark.parametrize(
    "reaction", ["GRAFF-diagonal", "GRAFF", "A@H@W", "relu(A@H@W - omega*H + beta*H0) where omega channel"]
)
@pytest.mark.parametrize("norm", [False, True])
def test_graff(reaction: str, norm: bool) -> None:
    model = make("graff", reaction=reaction, time=2.3, step=1.0, step_norm=norm)
    A = symmetric(edges())
    for member in range(2):
        p = values(model, member)
        W = np.diag(p["coefficient_w"]) if "coefficient_w" in p else dominant(p)
        omega, beta = p.get("coefficient_omega", 0.0), p.get("coefficient_beta", 0.0)
        start = linear(p, "encoder", X)
        h = start
        for dt in (1.0, 1.0, 0.3):  # the last step is what is left of the time
            f = A @ h @ W - h * omega + beta * start
            f = relu(f) if reaction.startswith("relu") else f
            f = (f - f.mean(0)) / np.sqrt(f.var(0) + 1e-5) if norm else f
            h = h + dt * f
        np.testing.assert_allclose(logits(model, member), linear(p, "decoder", relu(h)), rtol=1e-9, atol=1e-9)


def test_whole_matrices_of_graff_are_symmetric() -> None:
    for kind in ("symmetric", "dominant"):
        W = make("graff", reaction="GRAFF", matrices=kind).coefficients()["W"]
        assert torch.equal(W, W.mT)


def test_graff_starts_without_a_source() -> None:
    settings = Config.of("graff", hidden=4).model
    model = models["graff"].network(settings, Place.of(DATA.graph), features=5, classes=2, seeds=[0])
    found = {letter: value.detach() for letter, value in model.coefficients().items()}
    assert found["beta"].tolist() == [0]
    assert found["omega"].abs().max() > 0


@pytest.mark.parametrize(("name", "is_held"), [("graff", True), ("cgnn", True), ("grand-pp", False)])
def test_sources_that_are_held_have_no_gradient(name: str, is_held: bool) -> None:
    """The gradient of the encoder is that of a flow whose source is a constant."""
    grads = []
    for kind in ("start", Config.of(name).model.source_term):  # type: ignore[attr-defined]
        model = make(name, source_term=kind)
        out = model(make_features(DATA.x, model.config, dtype=torch.float64))
        grads.append(torch.autograd.grad(out.square().sum(), model.get_parameter("encoder_weight"))[0])
    assert not torch.allclose(grads[0], grads[1])
    if not is_held:
        return
    model = make(name)
    x = make_features(DATA.x, model.config, dtype=torch.float64)
    constant = model.source(model.encode(x))
    assert constant is not None
    assert not constant.requires_grad
    model.source = lambda H0: constant  # type: ignore[method-assign]
    own = torch.autograd.grad(model(x).square().sum(), model.get_parameter("encoder_weight"))[0]
    torch.testing.assert_close(own, grads[1], rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------------- ACMP
@pytest.mark.parametrize("adjacency", ["original", "soft"])
def test_acmp(adjacency: str) -> None:
    model = make(
        "acmp", adjacency=adjacency, normalisation="row", values="b=0.3", method="euler", step=0.25, time=0.5,
        heads=2, attention_dim=4,
    )  # fmt: skip
    B = edges(1.0)
    for member in range(2):
        p = values(model, member)
        h = start = linear(p, "encoder", X)
        S = B / B.sum(1, keepdims=True) if adjacency == "original" else attention(p, start, 2)
        alpha, delta = (sigmoid(p[f"coefficient_{name}"]) for name in ("alpha", "delta"))
        assert alpha.shape == delta.shape == (4,)
        for _ in range(2):
            f = alpha * ((S - 0.3 * B) @ h - h) - delta * (h**2 - 1) * h + p["coefficient_beta"] * start
            h = h + 0.25 * f
        np.testing.assert_allclose(logits(model, member), linear(p, "decoder", relu(h)), rtol=1e-9, atol=1e-9)


def test_the_reaction_of_acmp_is_almost_off_at_the_start() -> None:
    settings = Config.of("acmp", hidden=4).model
    model = models["acmp"].network(settings, Place.of(DATA.graph), features=5, classes=2, seeds=[0])
    found = model.coefficients()
    np.testing.assert_allclose(found["delta"].detach().numpy(), sigmoid(np.array(-10.0)), rtol=1e-5)
    assert set(found) == {"alpha", "delta"}  # the repulsion is a number of the settings


# ---------------------------------------------------------------------- CGNN
@pytest.mark.parametrize("reaction", ["CGNN-authors", "CGNN-unweighted"])
def test_cgnn(reaction: str) -> None:
    model = make("cgnn", reaction=reaction, hidden=6, self_loops=0.7, method="euler", step=0.5, time=1.0)
    A = symmetric(edges(0.7))
    for member in range(2):
        p = values(model, member)
        start = np.pad(linear(p, "encoder", X), [(0, 0), (0, 3)])
        a = sigmoid(p["coefficient_a"])[:, None]
        h = start
        for _ in range(2):
            f = a / 2 * (A @ h - h) + start
            if "coefficient_W" in p:
                U, w = p["coefficient_W"], np.clip(p["coefficient_W_gain"], 0, 1)
                f = f + h @ (U @ np.diag(w) @ U.T) - h
            h = h + 0.5 * f
        np.testing.assert_allclose(logits(model, member), linear(p, "decoder", relu(h[:, :3])), rtol=1e-9, atol=1e-9)


def test_the_matrix_of_cgnn_comes_back_to_an_orthogonal_one() -> None:
    model = make("cgnn")
    U = model.get_parameter("coefficient_W").data
    noise = torch.randn(U.shape, generator=torch.Generator().manual_seed(0), dtype=U.dtype)
    with torch.no_grad():
        U.copy_(torch.eye(4, dtype=U.dtype) + 0.05 * noise)
    off = [float((U @ U.mT - torch.eye(4)).abs().max())]
    x, rates = make_features(DATA.x, model.config, dtype=torch.float64), make_rates([model.config] * 2)
    for step in range(6):
        model.encode(x, rates, Randomness(model.seeds, torch.tensor(step)))
        off.append(float((U @ U.mT - torch.eye(4)).abs().max()))
    assert off[0] > 0.05
    assert off[-1] < 1e-9
    model.encode(x)  # prediction changes nothing
    assert float((U @ U.mT - torch.eye(4)).abs().max()) == off[-1]


# ---------------------------------------------------------------------- GraphCON-GCN
@pytest.mark.parametrize("version", [1, 2])
def test_graphcon_gcn(version: int) -> None:
    model = make("gcon-gcn", reaction=FIRST if version == 1 else SECOND, values="alpha=0.4, gamma=0.7", time=3.0)
    A = symmetric(edges(1.0))
    for member in range(2):
        p = values(model, member)
        W, R, c = (p[f"coefficient_{name}"] for name in ("W", "V", "c"))
        h = v = relu(linear(p, "encoder", X))
        for _ in range(3):
            residual = -h @ W @ R if version == 1 else -h @ W + h @ R
            v = v + relu(A @ h @ W + residual + c) - 0.4 * v - 0.7 * h
            h = h + v  # the new velocity
        np.testing.assert_allclose(logits(model, member), linear(p, "decoder", h), rtol=1e-9, atol=1e-9)


def test_entries_are_dropped_between_the_layers_of_graphcon() -> None:
    model = make("gcon-gcn", input_dropout=0.0, dropout=0.5, time=3.0)
    x, rates = make_features(DATA.x, model.config, dtype=torch.float64), make_rates([model.config] * 2)
    model.prepare(x, rates)
    masks = []
    drawn = model.additions(model.encode(x), _recorder(masks))
    assert drawn.after is not None
    state = torch.ones(2, 14, 8, dtype=torch.float64)
    kept = [drawn.after(number, state) for number in range(3)]
    assert len(masks) == 2
    assert kept[2] is state  # what the decoder reads is dropped there
    one, other = (model.run(x, rates, Randomness(model.seeds, torch.tensor(k))).logits for k in (1, 2))
    assert not torch.allclose(one, other)


def _recorder(masks: list[Any]) -> Any:
    def drop(x: torch.Tensor) -> torch.Tensor:
        masks.append(x)
        return x

    return drop


# ---------------------------------------------------------------------- BLEND
@pytest.mark.parametrize("positions", ["pagerank", "laplacian"])
def test_blend(positions: str) -> None:
    model = make("blend", positions=positions, largest=6, method="euler", step=0.5, time=1.0, heads=2, attention_dim=4)
    T = symmetric(edges(1.0))
    if positions == "pagerank":
        P = 0.05 * np.linalg.inv(np.eye(14) - 0.95 * T)
        P = np.where(np.sort(P, 1)[:, -6:-5] - 1e-9 <= P, P, 0.0)
        P = P / P.sum(1, keepdims=True)
    else:
        P = np.linalg.eigh(np.eye(14) - T)[1][:, 1:7]
        P = P * np.sign((P**3).sum(0))
    for member in range(2):
        p = values(model, member)
        z = np.concatenate([linear(p, "encoder", X), linear(p, "positions", P)], 1)
        S = attention(p, z, 2)
        for _ in range(2):
            z = z + 0.5 * (S @ z - z)
        np.testing.assert_allclose(logits(model, member), linear(p, "decoder", relu(z)), rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------------- the equations
@pytest.mark.slow
@pytest.mark.parametrize("name", LINES)
def test_the_line_of_a_network_is_a_system(name: str) -> None:
    config = Config.of(name)
    system = config.gread.system
    assert rd.parse(str(system)) == system
    report = rd.preflight(system, T=1, method="rk4", step=0.25)
    assert report.outcome in ("safe", "safe if", "undecided", "unsafe")


def test_values_become_numbers_of_the_equation() -> None:
    system = Config.of("gcon-gcn", values="alpha=0, gamma=0.5").gread.system
    assert "alpha" not in system.coefficients
    assert "gamma" not in system.coefficients


@pytest.mark.parametrize(
    ("values", "error", "text"),
    [
        ({"values": "zeta=1"}, UnknownName, "zeta"),
        ({"starts": "zeta=1"}, UnknownName, "zeta"),
        ({"values": "alpha"}, InvalidArgument, "values such as"),
        ({"values": "alpha=x"}, InvalidArgument, "a number for alpha"),
        ({"links": "c=square"}, UnknownName, "link of c"),
        ({"augmented": True, "hidden": 5}, InvalidArgument, "an even number"),
        ({"matrices": "round"}, UnknownName, "matrices"),
    ],
)
def test_settings_that_make_no_sense_are_refused(values: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        assert Config.of("gcon-gcn", **values).gread.system


def test_a_source_that_is_not_the_start_needs_steps_or_a_linear_equation() -> None:
    model = make("graff", reaction="tanh(A@H) - H + beta*H0", method="dopri5", step=None)
    with pytest.raises(NotApplicable, match="a method with steps"):
        model(make_features(DATA.x, model.config, dtype=torch.float64))


@pytest.mark.parametrize(
    ("name", "datasets"),
    [
        ("graff", "texas wisconsin cornell film squirrel chameleon cora citeseer pubmed"),
        ("cgnn", "cora citeseer pubmed"),
        ("gcon-gcn", "texas wisconsin cornell"), ("gde", "cora citeseer pubmed"), ("acmp", "texas cora"),
    ],
)  # fmt: skip
def test_published_settings_can_be_trained(name: str, datasets: str) -> None:
    """Whatever was published makes a network, with the equation it names."""
    for dataset in datasets.split():
        preset = find_preset("published", name, dataset)
        assert preset.source
        assert preset.config.model.model == name
        if name != "gde":
            assert preset.config.gread.system
