"""Fields with learned functions: three routes to one value, batches, gradients, and what may be given for phi."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import rdgraph as rd
from rdgraph.errors import InvalidArgument
from rdgraph.run.lowering.compiled_field import why_not_compiled
from rdgraph.run.lowering.splines import make_controls
from rdgraph.theory.equality import dense_oracle
from rdgraph.vocabulary.learned_functions import LearnedValues

TEXTS = [
    "-alpha*L@H + phi(H)",
    "-alpha*L@H + beta*H*phi(A@H - H) where phi learned knots=5 odd lipschitz=1",
    "phi(H0) - H + phi(phi(H)) where phi learned knots=6 per_channel bound=2",
    "phi(H)@W - A@psi(2*H) where psi learned nondecreasing",
    "M*phi(H) + phi(H)**2 - phi(H + alpha)",
]
GRAPH = rd.generators.erdos_renyi(9, 0.4, seed=1)
OPERATOR = GRAPH.operator("row", dtype=torch.float64)


def drawn(*shape: int, seed: int = 0, size: float = 1.0) -> torch.Tensor:
    return size * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def values_of(system: rd.System, batch: tuple[int, ...] = (), channels: int = 3) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {name: torch.full(batch, 0.3).double() for name in system.coefficients}
    for seed, (name, declared) in enumerate(system.learned.items()):
        own = (channels,) * declared.per_channel + (declared.parameters,)
        found[name] = make_controls(declared, drawn(*batch, *own, seed=seed + 5))
    if "W" in system.letters:
        found["W"] = drawn(channels, channels, seed=2, size=0.3)
    if "M" in system.letters:
        found["M"] = (torch.arange(9) % 2).double()
    return found


@pytest.mark.parametrize("text", TEXTS)
def test_lowered_is_dense(text: str) -> None:
    system, H = rd.parse(text), drawn(9, 3, size=3.0)
    values = values_of(system)
    field = rd.lower(system, OPERATOR, values).bind(H)
    letters = {name: value.numpy() for name, value in values.items()} | {"A": OPERATOR.dense().numpy()}
    if "M" in letters:
        letters["M"] = letters["M"][:, None]
    expected = dense_oracle.evaluate(system.expression, {**letters, "H": H.numpy(), "H0": H.numpy()})
    np.testing.assert_allclose(field(0.0, H), expected, atol=1e-12)
    names: dict = {}
    exec(compile(field.source, "<field>", "exec"), names)  # the source stands alone
    assert "spline" in names


@pytest.mark.parametrize("text", TEXTS[:3])
def test_members_do_not_touch_each_other(text: str) -> None:
    system, H = rd.parse(text), drawn(4, 9, 3, size=2.0)
    field = rd.lower(system, OPERATOR, values_of(system, (4,)), batch=(4,)).bind(H)
    together = field(0.0, H)
    for k in range(4):
        torch.testing.assert_close(field.rebatched(k)(0.0, H[k]), together[k])
    torch.testing.assert_close(field.members(torch.tensor([2, 0]))(0.0, H[[2, 0]]), together[[2, 0]])


@pytest.mark.parametrize("text", ["-alpha*L@H + phi(H0) + L@phi(2*H0)", "exp(-t)*phi(H) - H", "-alpha*L@H + phi(H)*0",
                                  "u' = -u + phi(u0); v' = phi(u) - v", "H'' = -phi(H) - H'"])  # fmt: skip
def test_every_way_to_the_end_agrees(text: str) -> None:
    system, width = rd.parse(text), len(rd.parse(text).fields)
    values = {**dict.fromkeys(system.coefficients, 0.7), **dict.fromkeys(system.learned, np.sin)}
    field, start = rd.lower(system, OPERATOR, values), drawn(9, 2 * width)
    chosen = rd.solve(field, start, t=[0.0, 1.5]).states[-1]
    close = rd.solve(field, start, t=[0.0, 1.5], method="dopri5", rtol=1e-9, atol=1e-11).states[-1]
    torch.testing.assert_close(chosen, close, rtol=2e-4, atol=2e-4)


def test_several_fields() -> None:
    system = rd.parse("u' = phi(u) - A@v; v' = psi(u*v) - v where psi learned per_channel")
    values, state = values_of(system, channels=2), drawn(9, 4)
    field = rd.lower(system, OPERATOR, values)
    u, v, A = state[:, :2].numpy(), state[:, 2:].numpy(), OPERATOR.dense().numpy()
    phi, psi = (LearnedValues(system.learned[name], values[name].numpy()) for name in ("phi", "psi"))
    second = np.stack([LearnedValues(psi.declaration, psi.controls[c])((u * v)[:, c]) for c in range(2)], -1) - v
    np.testing.assert_allclose(field(0.0, state), np.concatenate([phi(u) - A @ v, second], -1), atol=1e-12)


@pytest.mark.parametrize(("method", "options"), [("euler", {"step": 0.25}), ("rk4", {"step": 0.25}), ("dopri5", {}),
                                                 ("dopri5", {"adjoint": True}), ("auto", {})])  # fmt: skip
def test_gradients_reach_the_parameters(method: str, options: dict) -> None:
    system = rd.parse("-alpha*L@H + phi(H) where phi learned knots=6 lipschitz=1")
    declared, H = system.learned["phi"], drawn(9, 2)

    def end(theta: torch.Tensor) -> torch.Tensor:
        values = {"alpha": 0.5, "phi": make_controls(declared, theta)}
        solved = rd.solve(rd.lower(system, OPERATOR, values), H, t=[0.0, 1.0], method=method, **options)
        return solved.states[-1].square().sum()

    theta = drawn(declared.parameters, seed=3).requires_grad_()
    (slope,) = torch.autograd.grad(end(theta), theta)
    way = drawn(declared.parameters, seed=4)
    with torch.no_grad():
        rate = (end(theta + 1e-5 * way) - end(theta - 1e-5 * way)) / 2e-5
    torch.testing.assert_close(slope @ way, rate, rtol=2e-3, atol=2e-4)


def test_what_may_be_given() -> None:
    text = "-H + phi(H) where phi learned knots=7 odd lipschitz=1"
    declared = rd.parse(text).learned["phi"]
    near = LearnedValues.near(declared, np.sin)
    H = drawn(9, 1)
    fields = [
        rd.lower(text, OPERATOR, {"phi": given}) for given in (near, near.controls, near.controls.tolist(), np.sin)
    ]
    for field in fields:
        np.testing.assert_allclose(field(0.0, H), near(H.numpy()) - H.numpy(), atol=1e-12)
    assert "learned" in why_not_compiled(fields[0])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.zeros(6), "7 control values"),
        (torch.zeros(6), "of shape"),
        (torch.zeros(2, 7), "of shape"),
        (np.linspace(-9, 9, 7), "the slope 3"),
        (np.arange(7.0) / 9, "not odd"),
        ("tanh", "control values or a function"),
        (LearnedValues.near(rd.vocabulary.LearnedFunction("phi", knots=7), np.sin), "declare both alike"),
    ],
)
def test_what_does_not_fit_is_refused(given: object, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        rd.lower("-H + phi(H) where phi learned knots=7 odd lipschitz=1", OPERATOR, {"phi": given})


def test_channels_are_compared() -> None:
    field = rd.lower("phi(H) where phi learned knots=4 per_channel", OPERATOR, {"phi": torch.zeros(2, 4)})
    with pytest.raises(InvalidArgument, match="the learned function phi has"):
        field(0.0, drawn(9, 3))
