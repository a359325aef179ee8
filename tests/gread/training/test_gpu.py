"""What runs on a GPU: the same numbers as on the CPU, gradients, compiled fields, captured graphs, many precisions."""

from __future__ import annotations

import os

import pytest
import torch
from torch.autograd import gradcheck

import rdgraph as rd
from tests.equations import random_networks

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@pytest.fixture(scope="module")
def graph() -> rd.Graph:
    return rd.generators.barabasi_albert(300, 4, seed=1)


@pytest.mark.parametrize("name", ["BS", "F", "ST", "GRAFF"])
def test_fields_and_gradients_equal_those_of_the_cpu(graph, name):
    system = rd.parse(name)
    own = {"scalar": (), "channel": (5,), "node": (300,), "matrix": (5, 5)}
    letters = {n: k for n, k in system.letters.items() if n not in {"H", "H0", "A", "L", "I"}}
    found = {}
    for device in ("cpu", "cuda"):
        op = graph.operator("row", dtype=torch.float64, device=device)
        op = op.with_weights((op.weights * 1.5).requires_grad_(True))
        values = {
            n: random(*own[str(k)], seed=i).to(device).requires_grad_(True) for i, (n, k) in enumerate(letters.items())
        }
        H = random(3, 300, 5, seed=9).to(device).requires_grad_(True)
        out = rd.lower(system, op, values, batch=(3,)).bind(H)(0.0, H)
        gradients = torch.autograd.grad(out.square().sum(), [H, op.weights, *values.values()])
        found[device] = [out, *gradients]
    for one, two in zip(found["cpu"], found["cuda"], strict=True):
        torch.testing.assert_close(one, two.cpu(), rtol=1e-10, atol=1e-10)


def test_derivatives_through_the_kernels():
    op = rd.Graph.from_edges([[0, 1, 2, 2], [1, 2, 0, 1]]).operator("none", dtype=torch.float64, device="cuda")
    inputs = [
        random(2, 4),
        random(2, 3, 5, seed=1),
        random(5, seed=2),
        random(2, 1, 1, seed=3),
        random(2, 3, 5, seed=4),
    ]
    inputs = [x.cuda().requires_grad_(True) for x in inputs]
    assert gradcheck(lambda w, x, s, k, y: op.with_weights(w).product(x, s, [(k, y)]), inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_storage_and_accumulation(graph, dtype):
    op = graph.operator("symmetric", dtype=dtype, device="cuda")
    x = random(300, 70, dtype=dtype).cuda()
    exact = op.dense().double() @ x.double()
    error = ((op @ x).double() - exact).norm() / exact.norm()
    assert error < (1e-6 if dtype == torch.float32 else 3e-3)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_compiled_equals_eager(graph):
    op = graph.operator("symmetric", dtype=torch.float32, device="cuda")
    field = rd.lower("AC", op, {"alpha": 1.0, "beta": 0.5})
    H = random(300, 16, dtype=torch.float32).cuda()
    torch.testing.assert_close(torch.compile(field, fullgraph=True)(0.0, H), field(0.0, H))


def test_a_field_can_be_captured(graph):
    op = graph.operator("symmetric", dtype=torch.float32, device="cuda")
    field = rd.lower("BS", op, {"alpha": 1.0, "beta": 0.5}).prepared()
    H = random(300, 16, dtype=torch.float32).cuda()
    with torch.no_grad():
        expected = field(0.0, H)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            out = field(0.0, H)
        H.mul_(2)
        captured.replay()
    torch.testing.assert_close(out, 2 * expected)


@pytest.mark.parametrize(("method", "step"), [("euler", 0.1), ("rk4", 0.1), ("exact", None), ("dopri5", None)])
def test_solutions_equal_those_of_the_cpu(graph, method, step):
    found = []
    for device in ("cpu", "cuda"):
        op = graph.operator("symmetric", dtype=torch.float64, device=device)
        field = rd.lower("BS", op, {"alpha": 1.0, "beta": torch.tensor([0.5, -0.5])}, batch=(2,))
        found.append(rd.solve(field, random(2, 300, 3).to(device), [0.0, 1.25], method=method, step=step).final.cpu())
    torch.testing.assert_close(*found, rtol=1e-8, atol=1e-8)


def test_dopri5_fails_and_differentiates_as_on_the_cpu(graph):
    """Members of different stiffness, one of which blows up: status, steps, states and gradients."""
    found = []
    for device in ("cpu", "cuda"):
        op = graph.operator("row", dtype=torch.float64, device=device)
        alpha = torch.tensor([1.0, 1.0, 20.0], dtype=torch.float64, device=device, requires_grad=True)
        start = random(3, 300, 2).sigmoid().to(device)
        start[1] -= 1
        field = rd.lower("F", op, {"alpha": alpha, "beta": 1.0}, batch=(3,))
        sol = rd.solve(field, start, [0.0, 0.3, 2.0], method="dopri5", rtol=1e-5, atol=1e-7)
        assert sol.status.tolist() == ["ok", "blow-up", "ok"]
        (slope,) = torch.autograd.grad(sol.states[:, [0, 2]].square().sum(), alpha)
        found.append((sol, [sol.states[:, [0, 2]], slope]))
    for one, two in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(one, two.cpu(), rtol=1e-8, atol=1e-9)
    here, there = (
        sol for sol, _ in found
    )  # close to the end rounding decides about single steps of the failing member
    torch.testing.assert_close(here.failed_at[1], there.failed_at[1].cpu(), rtol=1e-5, atol=0)
    assert there.stats.evaluations == pytest.approx(here.stats.evaluations, rel=0.1)


def test_strang_equals_the_cpu(graph):
    found = []
    for device in ("cpu", "cuda"):
        op = graph.operator("row", dtype=torch.float64, device=device)
        field = rd.lower("Z", op, {"alpha": 1.0, "beta": 2.0})
        start = random(300, 3).sigmoid().to(device)
        found.append(rd.solve(field, start, [0.0, 1.0], method="strang", step=0.25).final.cpu())
    torch.testing.assert_close(*found, rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------------- training
def trained(device: str, use_graph: bool | None = None, dtype: torch.dtype = torch.float32, **values: object):
    from gread.datasets.embedded import karate
    from gread.settings.config import Config
    from gread.settings.trials import Trial
    from gread.training.ensemble import Ensemble

    base = {"hidden": 8, "epochs": 15, "attention_dim": 8, "method": "euler", "step": 0.5}
    trials = [Trial(Config().updated(base | values), split, seed) for split in (0, 3) for seed in (0, 1)]
    ensemble = Ensemble(karate(), trials, device=device, dtype=dtype, use_graph=use_graph)
    ensemble.advance(15)
    return ensemble


def test_a_chunk_saved_in_its_midst_goes_on_to_the_same_bits(tmp_path):
    """Polynomials that grow, captured graphs, a checkpoint within a chunk: the same as in one go."""
    from gread.datasets.embedded import karate
    from gread.settings.config import Config
    from gread.settings.trials import Trial
    from gread.training.checkpoint import load_checkpoint, save_checkpoint
    from gread.training.ensemble import Ensemble

    values = {"hidden": 8, "epochs": 46, "method": "exact", "step": None, "adjacency": "original", "beta": "scalar",
              "beta_link": "free", "time": 6.0, "learning_rate": 0.2}  # fmt: skip
    trials = [Trial(Config().updated(values))]

    def fresh() -> Ensemble:
        ensemble = Ensemble(karate(), trials, device="cuda")
        ensemble.parameters["coefficient_beta"].data.fill_(4.0)
        return ensemble

    whole, cut = fresh(), fresh()
    whole.advance(46)
    for count in (1, 6, 15, 3, 21):
        cut.advance(count)
        save_checkpoint(tmp_path / "c.json", cut, "mark")
        cut = fresh()
        assert load_checkpoint(tmp_path / "c.json", cut, "mark")
    for name, value in whole.state.items():
        assert torch.equal(cut.state[name].nan_to_num(), value.nan_to_num()), name


NETWORKS = [
    {"adjacency": "original"},
    {"adjacency": "soft"},
    {"adjacency": "soft", "method": "exact", "step": None},
    {"adjacency": "live", "reaction": "ST"},
    {"reaction": "F", "encoder_mlp": True, "decoder_mlp": True},
    {"adjacency": "original", "method": "exact", "step": None, "time": 6.0},
]


@pytest.mark.parametrize("values", NETWORKS, ids=str)
def test_a_captured_epoch_is_the_eager_one_to_the_bit(values):
    captured, eager = trained("cuda", True, **values), trained("cuda", False, **values)
    assert captured._replay is not None
    assert eager._replay is None
    for name, value in captured.state.items():
        assert torch.equal(value, eager.state[name]), name


@pytest.mark.parametrize("values", NETWORKS, ids=str)
def test_training_on_a_gpu_follows_the_cpu(values):
    """The same initial parameters and the same dropped entries, so the same curves up to rounding."""
    found = [trained(device, **values).outcome().history for device in ("cpu", "cuda")]
    torch.testing.assert_close(found[0][:5, :, 0], found[1][:5, :, 0], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("values", NETWORKS[:2], ids=str)
def test_training_in_double_precision_gives_the_curves_of_the_cpu(values):
    found = [trained(device, dtype=torch.float64, **values).outcome() for device in ("cpu", "cuda")]
    torch.testing.assert_close(found[0].history, found[1].history, rtol=1e-8, atol=1e-8)
    assert torch.equal(found[0].best_epoch, found[1].best_epoch)


#: How many random networks are trained; RANDOM_NETWORKS=12 is a quick look.
RANDOM_NETWORKS = int(os.environ.get("RANDOM_NETWORKS", "100"))


@pytest.mark.parametrize("number", range(RANDOM_NETWORKS))
def test_random_networks_train_on_a_gpu_as_on_the_cpu(number):
    """The same flow, the same degree and the same losses; losses that diverge do so on both devices.

    Mostly in double precision, where rounding has no say in Adam's first steps, which divide gradients by their size.
    """
    from gread.datasets.embedded import karate
    from gread.settings.config import Config
    from gread.settings.trials import Trial
    from gread.training.ensemble import Ensemble

    config = Config().updated({"epochs": 5, **random_networks(RANDOM_NETWORKS, 20)[number]})
    dtype, rtol = (torch.float32, 2e-3) if number % 4 == 3 else (torch.float64, 1e-6)
    runs = []
    for device in ("cpu", "cuda"):
        runs.append(Ensemble(karate(), [Trial(config, split) for split in (0, 3)], device=device, dtype=dtype))
        runs[-1].advance(5)
    assert runs[0].flow == runs[1].flow
    assert runs[0].degree == runs[1].degree
    assert (runs[1]._replay is not None) == runs[1].flow.is_capturable
    here, there = (run.outcome().history[..., 0].double() for run in runs)
    lost = ((~here.isfinite() | (here > 1e3)) & (~there.isfinite() | (there > 1e3))).cummax(0).values
    torch.testing.assert_close(here[~lost], there[~lost], rtol=rtol, atol=rtol)


@pytest.mark.parametrize("relu", [False, True])
def test_dropout_has_the_same_bits_on_every_device(relu):
    from gread.kernels.operations import dropout

    x, seeds, step = random(3, 50, 33, dtype=torch.float32), torch.tensor([1, 5 << 32, 2**62 + 7]), torch.tensor(11)
    rates = torch.tensor([0.0, 0.3, 0.9])
    here = dropout(x, seeds, step, rates, 5, relu=relu)
    there = dropout(*(t.cuda() for t in (x, seeds, step, rates)), 5, relu=relu)
    torch.testing.assert_close(here, there.cpu(), rtol=1e-6, atol=0)
    assert torch.equal(here == 0, there.cpu() == 0)


@pytest.mark.parametrize("normalisation", ["symmetric", "row"])
@pytest.mark.parametrize(("method", "step"), [("euler", 0.5), ("rk4", 0.5), ("exact", None)])
def test_linear_flows_and_their_gradients_equal_those_of_the_cpu(graph, normalisation, method, step):
    from rdgraph.graphs.twin_quotient import Quotient
    from rdgraph.integrators.flow_coefficients import Schedule
    from rdgraph.integrators.polynomial_flow import LinearFlow

    found = []
    for device in ("cpu", "cuda"):
        op = graph.operator(normalisation, self_loops=1.0, dtype=torch.float64, device=device)
        if normalisation == "row":
            op = op.with_weights(op.weights.repeat(2, 1).requires_grad_(True), "row")
        leaves = [random(2).sigmoid(), random(2, 3, seed=1).tanh(), random(2, 300, 3, seed=2)]
        alpha, beta, H0 = leaves = [x.to(device).requires_grad_(True) for x in leaves]
        field = rd.lower(rd.parse("BS", {"beta": "channel"}), op, {"alpha": alpha, "beta": beta}, batch=(2,))
        quotient = None if normalisation == "row" else Quotient.of(op)
        flow = LinearFlow(Schedule.make(method, 1.5, step), 24, quotient)
        out = flow(field, H0, torch.tensor([1.3, 1.5], dtype=torch.float64, device=device))
        leaves += [op.weights] if normalisation == "row" else []
        weight = random(2, 300, 3, seed=3).to(device)
        found.append([out, *torch.autograd.grad((out * weight).sum(), leaves)])
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two.cpu(), rtol=1e-9, atol=1e-9)


def test_a_member_that_diverges_changes_no_bit_of_the_others_on_a_gpu():
    from gread.datasets.embedded import karate
    from gread.settings.config import Config
    from gread.settings.trials import Trial
    from gread.training.ensemble import Ensemble

    calm = Config().updated({"hidden": 8, "epochs": 15, "method": "euler", "step": 0.5})
    wild = calm.updated({"learning_rate": 1e6})
    runs = []
    for second in (wild, calm):
        ensemble = Ensemble(karate(), [Trial(calm), Trial(second, 1)], device="cuda")
        ensemble.advance(15)
        runs.append(ensemble.outcome())
    assert runs[0].status(0) == "ok"
    assert runs[0].status(1).startswith("diverged in epoch")
    assert torch.equal(runs[0].history[:, 0], runs[1].history[:, 0])
