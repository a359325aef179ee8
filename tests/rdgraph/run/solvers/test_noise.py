"""White noise: numbers by counting, paths that follow from seeds alone, strong order, exact laws, gradients."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
import torch
from torch import Tensor

import rdgraph as rd
from rdgraph.errors import InvalidArgument, NotApplicable, RdgraphError
from rdgraph.run.lowering.vector_field import VectorField
from rdgraph.run.solvers import noise
from rdgraph.run.solvers.noise import BrownianPath, normals, philox, read_seeds
from rdgraph.run.solvers.solver import solve

F64 = torch.float64
NODES = 5
GRAPH = rd.generators.erdos_renyi(NODES, 0.6, 1)
NOISY = ("euler-maruyama", "exponential-euler-maruyama")
VALUES = {"gamma": 1.2, "alpha": 0.7, "sigma": 0.4, "beta": 0.5, "a": 0.3, "b": 0.9, "Du": 0.2, "Dv": 1.5}
ORNSTEIN = "u' = -gamma*u - alpha*L@u + sigma*xi"
PAIR = "u' = a - u + u**2*v - Du*L@u + sigma*u*xi; v' = b - u**2*v - Dv*L@v"
KICKED = "H'' = -gamma*H - alpha*H' - L@H + sigma*xi"
SEASONS = "u' = -u - L@u + sigma*exp(-t)*(A@v)*xi; v' = u*v - v + beta*u0*xi"
SYSTEMS = (ORNSTEIN, PAIR, KICKED, SEASONS)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def made(text: str, normalisation: str = "row", batch: tuple[int, ...] = (), **own: Any) -> VectorField:
    system = rd.parse(text)
    values = {**{n: VALUES[n] for n in system.coefficients}, **own}
    return rd.lower(system, GRAPH.operator(normalisation, dtype=F64), values, batch=batch)


def start_for(field: VectorField, *batch: int, channels: int = 2) -> Tensor:
    return random(*batch, NODES, len(field.system.fields) * channels, seed=3)


# ---------------------------------------------------------------------- numbers by counting
@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)  # fmt: skip
def test_the_bits_are_those_published_for_philox(counter: Any, key: Any, words: str) -> None:
    found = philox(tuple(map(torch.tensor, counter)), tuple(map(torch.tensor, key)))
    assert " ".join(f"{int(x):08x}" for x in found) == words


def test_the_numbers_are_normal_and_independent() -> None:
    drawn = normals(torch.tensor([0, 1, 2**40 + 5, -3]), 0, 0, 50, 401)
    assert drawn.shape == (50, 4, 401)
    assert scipy.stats.kstest(drawn.flatten().numpy(), "norm").pvalue > 1e-3
    rows = torch.cat([drawn.reshape(200, 401), normals(torch.tensor([0]), 1, 0, 50, 401)[:, 0]])
    correlation = torch.corrcoef(rows) - torch.eye(250, dtype=F64)
    assert float(correlation.abs().max()) < 5.5 / 401**0.5
    along = (drawn[..., 1:] * drawn[..., :-1]).mean()
    assert abs(float(along)) < 4 / (50 * 4 * 400) ** 0.5


def test_a_number_follows_from_seed_stream_step_and_place() -> None:
    drawn = normals(torch.tensor([7, 8]), 2, 10, 5, 9)
    assert torch.equal(drawn[3, 1], normals(torch.tensor([8]), 2, 13, 1, 9)[0, 0])
    assert torch.equal(drawn[..., :6], normals(torch.tensor([7, 8]), 2, 10, 5, 6))
    assert not bool((drawn == normals(torch.tensor([7, 8]), 3, 10, 5, 9)).any())


@pytest.mark.parametrize("step", [None, torch.tensor([0.5, 0.25], dtype=F64)])
def test_parts_of_a_step_are_steps_of_a_finer_path(step: Tensor | None) -> None:
    like = torch.zeros(2, 3, 4, dtype=F64)
    dt = torch.tensor([0.5, 0.25], dtype=F64)[:, None, None]
    coarse = BrownianPath(torch.tensor([4, 9]), ("u", "v"), ("v",), step, 4)
    fine = BrownianPath(torch.tensor([4, 9]), ("u", "v"), ("v",))
    for k in range(3):
        sums = sum(fine.increment(4 * k + j, dt / 4, like) for j in range(4))
        torch.testing.assert_close(coarse.increment(k, dt, like), sums, rtol=0, atol=1e-15)
    assert float(coarse.increment(5, dt, like)[..., :2].abs().max()) == 0


@pytest.mark.parametrize("parts", [1, 4])
def test_how_many_numbers_are_drawn_at_once_does_not_matter(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    like, dt = torch.zeros(2, 3, 4, dtype=F64), torch.tensor(0.5, dtype=F64)
    found = []
    for most in (1 << 16, 200, 1):
        monkeypatch.setattr(noise, "_AT_ONCE", most)
        path = BrownianPath(torch.tensor([4, 9]), ("u", "v"), ("u", "v"), parts=parts)
        found.append(torch.stack([path.increment(k, dt, like) for k in range(12)]))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    assert len(found[0].unique()) == found[0].numel()


# ---------------------------------------------------------------------- what a step is
@pytest.mark.parametrize("text", SYSTEMS)
def test_a_step_is_the_formula(text: str) -> None:
    field = made(text)
    H0 = start_for(field)
    bound = field.bind(H0)
    path = BrownianPath(torch.tensor(5), field.system.fields, tuple(field.system.noise))
    wanted = H0 + 0.1 * bound(0.2, H0) + bound.diffusion(0.2, H0) * path.increment(0, torch.tensor(0.1, dtype=F64), H0)
    wanted = wanted + 0.1 * bound(0.3, wanted) + bound.diffusion(0.3, wanted) * path.increment(
        1, torch.tensor(0.1, dtype=F64), H0
    )  # fmt: skip
    sol = solve(field, H0, [0.2, 0.4], "euler-maruyama", step=0.1, seed=5)
    torch.testing.assert_close(sol.final, wanted, rtol=1e-13, atol=1e-13)


def test_the_exponential_step_is_the_formula() -> None:
    field = made(ORNSTEIN, "symmetric")
    H0 = start_for(field)
    path = BrownianPath(torch.tensor(5), ("u",), ("u",))
    generator = -1.2 * np.eye(NODES) - 0.7 * (np.eye(NODES) - field.operator.dense().numpy())
    kick = 0.4 * path.increment(0, torch.tensor(0.3, dtype=F64), H0).numpy()
    wanted = scipy.linalg.expm(0.3 * generator) @ H0.numpy() + scipy.linalg.expm(0.15 * generator) @ kick
    sol = solve(field, H0, [0.0, 0.3], NOISY[1], step=0.3, seed=5)
    np.testing.assert_allclose(sol.final.numpy(), wanted, rtol=1e-9, atol=1e-10)


def test_only_fields_with_noise_are_kicked() -> None:
    field = made(KICKED)
    H0 = start_for(field)
    one, two = (solve(field, H0, [0.0, 0.1], "euler-maruyama", step=0.1, seed=seed) for seed in (1, 2))
    assert torch.equal(one["H"], two["H"])
    assert not bool((one["H'"][-1] == two["H'"][-1]).any())


# ---------------------------------------------------------------------- paths
@pytest.mark.parametrize("method", NOISY)
@pytest.mark.parametrize("text", SYSTEMS)
def test_a_member_has_the_bits_of_its_own_run(text: str, method: str) -> None:
    field = made(text, batch=(3,))
    H0, seeds = start_for(field, 3), torch.tensor([11, 4, 7])
    sol = solve(field, H0, [0.0, 0.5], method, step=0.1, seed=seeds)
    order = torch.tensor([2, 0])
    other = solve(field.members(order), H0[order], [0.0, 0.5], method, step=0.1, seed=seeds[order])
    assert torch.equal(sol.final[order], other.final)
    again = solve(field, H0, [0.0, 0.5], method, step=0.1, seed=seeds)
    assert torch.equal(sol.states, again.states)
    broken = H0.clone()
    broken[1] = torch.nan
    beside = solve(field, broken, [0.0, 0.5], method, step=0.1, seed=seeds)
    assert torch.equal(beside.final[[0, 2]], sol.final[[0, 2]])
    assert beside.status.tolist() == ["ok", "not-a-number", "ok"]


@pytest.mark.parametrize("method", NOISY)
def test_saves_do_not_change_the_path(method: str) -> None:
    field = made(PAIR)
    H0 = start_for(field)
    plain = solve(field, H0, [0.0, 1.0], method, step=0.1, seed=2)
    saved = solve(field, H0, [0.0, 1.0], method, step=0.1, seed=2, save_at=[0.0, 0.33, 0.5, 1.0])
    assert torch.equal(plain.final, saved.final)
    longer = solve(field, H0, [0.0, 2.0], method, step=0.1, seed=2, save_at=[1.0])
    torch.testing.assert_close(longer.final, plain.final, rtol=1e-13, atol=1e-13)


def test_a_seed_counts_on_through_the_members() -> None:
    field = made(ORNSTEIN)
    H0 = start_for(field).expand(2, 2, -1, -1)
    sol = solve(field, H0, [0.0, 0.5], "euler-maruyama", step=0.1, seed=40)
    alone = solve(field, H0[1, 0], [0.0, 0.5], "euler-maruyama", step=0.1, seed=42)
    torch.testing.assert_close(sol.final[1, 0], alone.final, rtol=1e-14, atol=1e-14)
    first = solve(field, H0, [0.0, 0.5], "euler-maruyama", step=0.1)
    assert torch.equal(first.final, solve(field, H0, [0.0, 0.5], "euler-maruyama", step=0.1, seed=0).final)
    assert len({float(x) for x in sol.final[..., 0, 0].flatten()}) == 4


@pytest.mark.parametrize("seed", ["abc", [[1], [2, 3]], 0.5, True, 2**64, [2**64, 1], torch.tensor([0.5, 1.5])])
def test_seeds_that_are_no_whole_numbers_are_refused(seed: object) -> None:
    with pytest.raises(InvalidArgument, match="expected a whole number as seed"):
        read_seeds(seed, (2,), "cpu")


def test_coarse_and_fine_runs_follow_one_path() -> None:
    """Without drift the sum of the increments is all there is, also where the last step is short."""
    field = made("u' = sigma*xi")
    H0, t = start_for(field, 2), torch.tensor([[0.0, 0.1], [1.0, 0.85]], dtype=F64)
    step = torch.tensor([0.4, 0.2], dtype=F64)
    fine = solve(field, H0, t, "euler-maruyama", step=step / 8, seed=6)
    for parts in (2, 4, 8):
        coarse = solve(field, H0, t, "euler-maruyama", step=step / 8 * parts, seed=6, path_parts=parts)
        torch.testing.assert_close(coarse.final, fine.final, rtol=0, atol=1e-14)
    assert not torch.allclose(fine.final, solve(field, H0, t, "euler-maruyama", step=step / 4, seed=6).final)


# ---------------------------------------------------------------------- orders, with their uncertainty
def observed_order(text: str, method: str, **values: float) -> tuple[float, float]:
    """The slope of log error against log step, and its standard error, from 30 independent groups of paths.

    Of the distance between a run and that with half the step on the same path, whose order is the method's: a distance
    from the finest run shrinks faster where the steps come near to it, and long steps show the error of the drift.
    """
    groups, paths, finest = 30, 300, 8
    field = made(text, **values)
    H0 = torch.full((groups, NODES, paths // NODES), 0.8, dtype=F64)

    def final(level: int) -> Tensor:
        parts = 2 ** (finest - level)
        return solve(field, H0, [0.0, 1.0], method, step=2.0**-level, seed=100, path_parts=parts).final

    levels = np.arange(4, finest)
    runs = [final(k) for k in (*levels, finest)]
    errors = torch.stack([(a - b).abs().mean((-2, -1)) for a, b in pairwise(runs)]).numpy()
    slopes = -np.polyfit(levels, np.log2(errors), 1)[0]
    return float(slopes.mean()), float(slopes.std(ddof=1) / groups**0.5)


@pytest.mark.slow
@pytest.mark.parametrize("method", NOISY)
@pytest.mark.parametrize(
    ("text", "order"),
    [("u' = -alpha*L@u - u + sigma*u*xi", 0.5), ("u' = -alpha*L@u - tanh(u) + sigma*xi", 1.0)],
)
def test_the_strong_order_is_the_declared_one(text: str, order: float, method: str) -> None:
    slope, uncertainty = observed_order(text, method, sigma=1.0)
    assert uncertainty < 0.03
    assert abs(slope - order) < 0.12 + 3 * uncertainty


def test_geometric_brownian_motion_has_strong_order_one_half() -> None:
    """Against exp((a - sigma^2/2)T + sigma W(T)), with the W(T) of the very path that was followed."""
    field = made("u' = a*u + sigma*u*xi", a=0.5, sigma=1.0)
    H0 = torch.ones(20, NODES, 100, dtype=F64)
    walk = solve(made("u' = xi"), 0 * H0, [0.0, 1.0], "euler-maruyama", step=2.0**-8, seed=3).final
    exact = torch.exp((0.5 - 0.5) + walk)
    errors = []
    for level in (4, 6, 8):
        parts = 2 ** (8 - level)
        sol = solve(field, H0, [0.0, 1.0], "euler-maruyama", step=2.0**-level, seed=3, path_parts=parts)
        errors.append((sol.final - exact).abs().mean((-2, -1)).numpy())
    slopes = np.log2(errors[0] / errors[2]) / 4
    assert abs(slopes.mean() - 0.5) < 0.06 + 3 * slopes.std(ddof=1) / 20**0.5


# ---------------------------------------------------------------------- laws
@pytest.mark.parametrize(("method", "step"), [("euler-maruyama", 0.01), ("exponential-euler-maruyama", 0.1)])
def test_the_ornstein_uhlenbeck_process_has_its_mean_and_covariance(method: str, step: float) -> None:
    field, paths, end = made(ORNSTEIN, "symmetric"), 6000, 0.8
    H0 = start_for(field, channels=1).expand(NODES, paths).contiguous()
    found = solve(field, H0, [0.0, end], method, step=step, seed=17).final.numpy()
    decay = 1.2 * np.eye(NODES) + 0.7 * (np.eye(NODES) - field.operator.dense().numpy())
    mean = scipy.linalg.expm(-end * decay) @ H0[:, :1].numpy()
    covariance = 0.16 * np.linalg.solve(2 * decay, np.eye(NODES) - scipy.linalg.expm(-2 * end * decay))
    spread = np.sqrt(np.diag(covariance) / paths)[:, None]
    assert (np.abs(found.mean(1, keepdims=True) - mean) < 4 * spread + 0.01 * np.abs(mean)).all()
    sizes = np.diag(covariance)
    deviation = np.sqrt((np.outer(sizes, sizes) + covariance**2) / paths)
    assert (np.abs(np.cov(found) - covariance) < 4.5 * deviation + 0.02 * sizes.max()).all()
    assert np.abs(covariance[0, 1:]).max() > 10 * deviation[0, 1:].min()  # neighbours are correlated, and it is seen


def test_the_stationary_variance_of_a_kicked_oscillator() -> None:
    """H'' = -k H - c H' + sigma xi rests at var H = sigma^2/(2 c k) and var H' = sigma^2/(2 c)."""
    field, paths = made("H'' = -gamma*H - alpha*H' + sigma*xi", gamma=2.0, alpha=1.5, sigma=1.0), 3000
    H0 = torch.zeros(NODES, 2 * paths, dtype=F64)
    sol = solve(field, H0, [0.0, 6.0], "euler-maruyama", step=0.01, seed=8)
    count = NODES * paths
    for name, variance in (("H", 1 / 6), ("H'", 1 / 3)):
        found = float(sol[name][-1].var())
        assert abs(found - variance) < variance * (4 * (2 / count) ** 0.5 + 0.03)


def test_the_mean_of_multiplicative_noise_is_that_of_ito() -> None:
    field = made("u' = a*u + sigma*u*xi", a=0.5, sigma=0.8)
    sol = solve(field, torch.ones(NODES, 8000, dtype=F64), [0.0, 1.0], "euler-maruyama", step=0.01, seed=1)
    count, variance = NODES * 8000, np.exp(1.0) * (np.exp(0.64) - 1)
    assert abs(float(sol.final.mean()) - np.exp(0.5)) < 4 * (variance / count) ** 0.5 + 0.005  # Stratonovich: exp(0.82)


# ---------------------------------------------------------------------- gradients and precision
@pytest.mark.parametrize("method", NOISY)
@pytest.mark.parametrize("text", [ORNSTEIN, PAIR, SEASONS])
@pytest.mark.slow
def test_gradients_go_through_the_path(text: str, method: str) -> None:
    system, op = rd.parse(text), GRAPH.operator("row", dtype=F64)
    names = list(system.coefficients)

    def final(weights: Tensor, H0: Tensor, *numbers: Tensor) -> Tensor:
        field = rd.lower(system, op.with_weights(weights, "row"), dict(zip(names, numbers, strict=True)))
        return solve(field, H0, [0.0, 0.4], method, step=0.2, seed=3).final

    leaves = [
        op.weights.clone(),
        random(NODES, len(system.fields)),
        *(torch.tensor(VALUES[n], dtype=F64) for n in names),
    ]
    assert torch.autograd.gradcheck(final, [x.requires_grad_(True) for x in leaves], fast_mode=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_narrow_states_follow_the_same_path(dtype: torch.dtype) -> None:
    wide = made(PAIR)
    narrow = rd.lower(wide.system, wide.operator.to(dtype=dtype), {n: VALUES[n] for n in wide.coefficients})
    H0 = start_for(wide)
    sol = solve(narrow, H0.to(dtype), [0.0, 0.5], "euler-maruyama", step=0.1, seed=3)
    wanted = solve(wide, H0, [0.0, 0.5], "euler-maruyama", step=0.1, seed=3).final
    assert sol.final.dtype == dtype
    assert (sol.final.double() - wanted).norm() / wanted.norm() < 50 * torch.finfo(dtype).eps


def test_a_member_that_blows_up_is_marked() -> None:
    field = made("u' = u**3 + sigma*xi")
    H0 = torch.stack([torch.zeros(NODES, 1, dtype=F64), torch.full((NODES, 1), 5.0, dtype=F64)])
    sol = solve(field, H0, [0.0, 1.0], "euler-maruyama", step=0.05)
    assert sol.status.tolist() == ["ok", "blow-up"]
    assert bool(torch.isfinite(sol.final).all())


def test_products_of_drift_and_noise_are_counted() -> None:
    sol = solve(made("u' = -L@u + sigma*(A@A@u)*xi"), random(NODES, 1), [0.0, 1.0], "euler-maruyama", step=0.25)
    assert (sol.stats.evaluations, sol.stats.products) == (4, 4 * 3)


# ---------------------------------------------------------------------- the choice, and refusals
def test_auto_takes_steps_with_noise_and_says_so() -> None:
    sol = solve(made(PAIR), start_for(made(PAIR)), [0.0, 0.5])
    assert sol.method == "euler-maruyama"
    assert "noise" in sol.reason
    assert sol.ok


@pytest.mark.parametrize(
    ("text", "settings", "error", "words"),
    [
        (ORNSTEIN, {"method": "rk4"}, NotApplicable, "expected euler-maruyama or exponential-euler-maruyama"),
        (ORNSTEIN, {"method": "dopri5"}, NotApplicable, "for white noise, got dopri5"),
        (ORNSTEIN, {"method": "exact"}, NotApplicable, "for white noise, got exact"),
        (ORNSTEIN, {"method": "imex"}, NotApplicable, "for white noise, got imex"),
        (ORNSTEIN, {"adjoint": True}, InvalidArgument, "expected a method with an adjoint"),
        (ORNSTEIN, {"interpolation": "cubic"}, InvalidArgument, "got interpolation"),
        (ORNSTEIN, {"seed": 1.5}, InvalidArgument, "expected a whole number as seed"),
        (ORNSTEIN, {"seed": [1, 2]}, InvalidArgument, "expected a whole number as seed"),
        (ORNSTEIN, {"path_parts": 0}, InvalidArgument, "path_parts"),
        (ORNSTEIN, {"rtol": 1e-3}, InvalidArgument, "rtol"),
        ("u' = -L@u", {"seed": 1}, InvalidArgument, "seed"),
        ("u' = -L@u", {"method": "euler-maruyama"}, NotApplicable, "expected a system with noise"),
    ],
)
def test_refusals_say_why(text: str, settings: dict[str, Any], error: type[RdgraphError], words: str) -> None:
    field = made(text)
    with pytest.raises(error, match=words):
        solve(field, start_for(field), [0.0, 1.0], **settings)


def test_times_with_a_gradient_are_refused() -> None:
    field = made(ORNSTEIN)
    with pytest.raises(NotApplicable, match="times without a gradient"):
        solve(field, start_for(field), torch.tensor([0.0, 1.0], dtype=F64, requires_grad=True), "euler-maruyama")


def test_the_factor_of_noise_needs_noise() -> None:
    with pytest.raises(NotApplicable, match="expected a system with noise"):
        made("u' = -L@u").diffusion(None, random(NODES, 1))
    assert read_seeds(torch.tensor([3, 1]), (2,), "cpu").tolist() == [3, 1]
