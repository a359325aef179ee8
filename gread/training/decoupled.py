"""Decoupled training: the graph acts on the features once, and networks are trained on rows of the result.

If the equation is linear with scalar and channel coefficients, A is fixed by the graph and the encoder is linear,
H(T) = sum_k c_k (b_k(A) X) W + c_k (b_k(A) 1) b: a node needs only its rows of the powers, so encoder, coefficients and
decoder are trained in mini-batches of nodes, without the graph. With one batch of all training nodes this equals the
training on the whole graph up to rounding, including dropout between flow and decoder, which depends on the number of a
node and not on its batch. Dropout of single entries of X does not commute with A; here `input_dropout` drops whole
columns of X, the same at all nodes, which does.
"""

from __future__ import annotations

import math
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gread.datasets.meta import ACCURACY
from gread.datasets.node_data import NodeData, read_data
from gread.datasets.splits import PARTS, Masks
from gread.datasets.variants import row_normalised
from gread.kernels import counters
from gread.kernels.training_operations import adam_step, dropout
from gread.models.flow import POLYNOMIAL, Flow
from gread.models.gread_model import GREAD
from gread.models.place import Place
from gread.models.problem import check
from gread.models.randomness import Randomness, make_rates
from gread.models.resolution import resolve_method, resolve_trials
from gread.settings.gread_settings import GreadSettings
from gread.settings.model_records import ModelSettings
from gread.settings.trials import Trial
from gread.training.ensemble import BETAS, EPS, METRICS
from gread.training.trainer import Progress, Trained, TrialOutcome, choose_device, joined_outcomes
from rdgraph import Graph
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.kernels.devices import free_memory
from rdgraph.language.tree import Kind
from rdgraph.run import propagate
from rdgraph.run.lowering.coefficients import valued_letters
from rdgraph.run.solvers.feature_powers import Powers
from rdgraph.run.solvers.linear_part import linear_part
from rdgraph.run.solvers.polynomial_flow import TOLERANCE, LinearFlow
from rdgraph.run.solvers.schedules import AnySchedule

# ---------------------------------------------------------------------- row store
# `RowStore`: the rows of propagated features that a batch needs, from memory if they fit, else from disk.

#: The share of the free memory that rows may use.
SHARE = 0.4
#: Approximate bytes of the rows that are evaluated together.
PIECE = 1 << 28


class RowStore:
    """Rows (m, (K + 1)(f + 1)) of the powers up to a degree, for a fixed set of nodes.

    Args:
        powers: The propagated features.
        nodes: The nodes (m,) whose rows are used, in increasing order.
        degree: The last power that is read.
        device: The device of the rows.
        dtype: The precision of the rows on the device.
        memory: Bytes that the rows may use; by default a share of the free memory.
    """

    def __init__(
        self, powers: Powers, nodes: np.ndarray, degree: int, device: str, dtype: torch.dtype, memory: int | None = None
    ) -> None:
        self.powers, self.nodes, self.degree, self.device, self.dtype = powers, nodes, degree, device, dtype
        columns = (degree + 1) * (powers.features + 1)
        self.row_bytes = columns * dtype.itemsize
        available = int(SHARE * free_memory(device)) if memory is None else memory
        self.cached: Tensor | None = None
        if len(nodes) * self.row_bytes <= available:
            self.cached = torch.empty((len(nodes), columns), dtype=dtype, device=device)
            for a, b in self.pieces(len(nodes)):
                self.cached[a:b] = self._read(nodes[a:b])

    def pieces(self, count: int) -> list[tuple[int, int]]:
        """Spans of rows that are evaluated together when there is no gradient."""
        size = max(1, PIECE // self.row_bytes)
        return [(a, min(a + size, count)) for a in range(0, count, size)]

    def span(self, first: int, end: int) -> Tensor:
        """The rows of the nodes from position `first` up to `end`."""
        return self._read(self.nodes[first:end]) if self.cached is None else self.cached[first:end]

    def take(self, nodes: np.ndarray) -> Tensor:
        """The rows of some of the nodes, in the given order."""
        if self.cached is None:
            return self._read(nodes)
        positions = torch.from_numpy(np.searchsorted(self.nodes, nodes)).to(self.cached.device)
        return self.cached[positions]

    def _read(self, nodes: np.ndarray) -> Tensor:
        rows = torch.from_numpy(self.powers.rows(nodes, self.degree)).to(self.device, self.dtype)
        return rows.transpose(0, 1).reshape(len(nodes), -1)


# ---------------------------------------------------------------------- decoupled
#: Returns powers up to at least a degree.
Extend = Callable[[int], Powers]


def check_decoupled(settings: ModelSettings) -> GreadSettings:
    """The settings with their method chosen, if the training can be decoupled; otherwise an error says why not.

    >>> check_decoupled(GreadSettings("BS", adjacency="original")).method
    'exact'
    """
    if not isinstance(settings, GreadSettings) or settings.model != GreadSettings.model:
        raise NotApplicable(
            f"expected the network gread for decoupled training, got {settings.model}; train it on the whole graph"
        )
    if settings.adjacency != "original":
        raise NotApplicable(
            f"expected the original adjacency for decoupled training, got {settings.adjacency}, which follows from the "
            "state; set adjacency=original"
        )
    if settings.is_stacked:
        raise NotApplicable(
            "expected one flow for decoupled training, got blocks with functions between them, which do not commute "
            "with A; set blocks=1 without mixing, residual and norm"
        )
    if settings.encoder_mlp:
        raise NotApplicable(
            "expected a linear encoder for decoupled training, which commutes with A, got layers with ReLU; set "
            "encoder_mlp=false"
        )
    for name, kind in valued_letters(settings.system).items():
        if kind not in (Kind.SCALAR, Kind.CHANNEL):
            raise NotApplicable(
                f"expected scalar and channel coefficients for decoupled training, got {name} of kind {kind.value}; "
                "declare another kind"
            )
    resolved = resolve_method(settings)[0]
    is_curved = resolved.system.is_single and not resolved.system.structure.linear  # refused for that, by its own words
    if not resolved.region.is_free and not is_curved:
        raise NotApplicable(
            f"expected states as they are encoded for decoupled training, got states={resolved.states!r}, a map that "
            "does not commute with A; set states=free"
        )
    return resolved


class DecoupledNetwork:
    """A network on the rows of propagated features: H(T) of a batch of nodes by one product, then the decoder.

    Args:
        settings: The result of `check_decoupled`.
        features: Columns of X.
        classes: Columns of the logits.
        seed: The seed of the trial.

    Raises:
        NotApplicable: For an equation whose flow is not a polynomial of A applied to H0.
    """

    def __init__(
        self, settings: GreadSettings, features: int, classes: int, seed: int, device: str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:  # fmt: skip
        # A graph without edges is enough: only the kind of its operator is used.
        place = Place.of(Graph.from_edges([[], []], num_nodes=1), device=device, dtype=dtype)
        self.model = GREAD(settings, place, features=features, classes=classes, seeds=[seed])
        self.rates = make_rates([settings], device)
        self.time = self.rates["time"]
        start = torch.zeros((1, 1, self.model.layout.width * len(self.model.layout.fields)), dtype=dtype, device=device)
        self._start = start
        with torch.no_grad():
            self.flow: Flow = self.model.flow(start)
            field = self.model.field(start)
            if self.flow.form != POLYNOMIAL or linear_part(field).source is None:
                raise NotApplicable(
                    f"expected a linear equation, a normalised operator and a method that is exact or of Runge-Kutta "
                    f"steps for decoupled training, got {settings.system} by {settings.method} with the normalisation "
                    f"{settings.normalisation}; train it on the whole graph"
                )
            self.degree = self.flow.degree(field, start, self.time)

    @property
    def schedule(self) -> AnySchedule:
        assert self.flow.schedule is not None  # polynomials have one
        return self.flow.schedule

    @torch.no_grad()
    def needed(self) -> int:
        """The degree that the current coefficients and their derivatives need."""
        field = self.model.field(self._start)
        return min(self.flow.whole, self.flow.needed(field, self._start, self.time) + linear_part(field).order)

    def truncation(self) -> float:
        """Bound of the terms beyond the degree at the current coefficients, as a share of the gain."""
        return float(LinearFlow.left_out(self.model.field(self._start), self.schedule, self.time, self.degree))

    def weights(self, random: Randomness | None = None) -> Tensor:
        """The weights c_k (W, b) that rows of the powers are multiplied by, (1, (K + 1)(f + 1), states*d)."""
        model = self.model
        weight: Tensor = model.get_parameter("encoder_weight")
        if random is not None:
            ones = weight.new_ones((1, weight.shape[1], 1))
            stream = counters.DROPOUT + 1
            weight = weight * dropout(ones, random.seeds, random.step, self.rates["input_dropout"], stream)
        both = torch.cat([weight, model.get_parameter("encoder_bias")[:, None]], dim=1)
        start = model.layout.start(both)
        terms = LinearFlow(self.schedule, self.degree).terms(model.field(self._start), start, self.time)
        return terms.transpose(0, 1).reshape(1, -1, terms.shape[-1]).to(both.dtype)

    def logits(self, rows: Tensor, weights: Tensor, random: Randomness | None = None) -> Tensor:
        """Logits (m, classes) of rows (m, (K + 1)(f + 1)) of the powers."""
        rates = None if random is None else self.rates
        return self.model.decode(rows[None] @ weights, rates, random)[0]


@dataclass
class _BestEpoch:
    """The record of the best epoch so far, as in the ensemble."""

    patience: int
    merit: float = -math.inf
    epoch: int = 0
    val: float = 0.0
    test: float = 0.0
    waited: int = 0
    parameters: dict[str, Tensor] = field(default_factory=dict)

    def note(self, epoch: int, scores: np.ndarray, merit: float, parts: Mapping[str, Tensor]) -> None:
        """Record an epoch if it is the best; without validation nodes (the merit is nan) the last epoch counts."""
        if merit > self.merit or math.isnan(merit) or not self.epoch:
            self.merit, self.epoch, self.val, self.test, self.waited = merit, epoch, scores[1], scores[2], 0
            self.parameters = {name: p.detach().cpu().clone() for name, p in parts.items()}
        else:
            self.waited += 1


def _read_batch(batch: Any) -> int:
    """The number of training nodes per step, checked."""
    if isinstance(batch, bool) or not isinstance(batch, int | np.integer) or batch < 1:
        raise InvalidArgument(f"expected batches of one node at least, got {batch!r:.60}; leave it out for all")
    return int(batch)


class DecoupledTraining:
    """One trial on propagated features; `run` trains it.

    Args:
        powers: The propagated features, at least up to the initial degree unless `extend` is given.
        y: Labels (n,), -1 for unknown.
        masks: The splits.
        trial: The configuration, split and seed.
        batch: Training nodes per step; all of them by default.
        extend: Returns powers of a higher degree when the coefficients need them; an error without it.
        memory: Bytes that rows of the powers may use; a share of the free memory by default.
    """

    def __init__(
        self, powers: Powers, y: np.ndarray, masks: Masks, trial: Trial, *, classes: int, batch: int | None = None,
        device: str = "cpu", dtype: torch.dtype = torch.float32, extend: Extend | None = None,
        memory: int | None = None,
    ) -> None:  # fmt: skip
        size = None if batch is None else _read_batch(batch)
        settings = check_decoupled(trial.config.model)
        self.training, self.extend, self.memory = trial.config.training, extend, memory
        self.network = DecoupledNetwork(settings, powers.features, classes, trial.member_seed, device, dtype)
        self.model, self.device, self.dtype = self.network.model, device, dtype
        split = [getattr(masks, part)[trial.split] for part in PARTS]
        self.nodes, self.training_nodes = np.flatnonzero(np.any(split, axis=0)), np.flatnonzero(split[0])
        self.parts = np.stack([part[self.nodes] for part in split])
        self.batch, self.y, self.classes = size or len(self.training_nodes), y, classes
        self.parameters = dict(self.model.named_parameters())
        self.moments = {name: [torch.zeros_like(p.data) for _ in range(2)] for name, p in self.parameters.items()}
        self.step, self.truncation = 0, 0.0
        self.seed, self.powers = trial.member_seed, powers
        self._extend(self.network.degree)

    def _extend(self, degree: int) -> None:
        """Get the powers up to a degree, and their rows."""
        if degree > self.powers.degree:
            if self.extend is None:
                raise NotApplicable(
                    f"expected powers up to {degree} for the current coefficients, got {self.powers.degree}; propagate "
                    f"further with degree={degree}"
                )
            self.powers = self.extend(degree)
        self.network.degree = degree
        self.rows = RowStore(self.powers, self.nodes, degree, self.device, self.dtype, self.memory)

    # ------------------------------------------------------------------ an epoch
    def epoch(self) -> float:
        """Train for one pass over the training nodes; returns the mean loss."""
        needed = self.network.needed()
        if needed > self.network.degree:
            grown = max(needed, self.network.degree + max(4, self.network.degree // 2))
            self._extend(min(self.network.flow.whole, grown))
        self.truncation = max(self.truncation, self.network.truncation())
        order, total = self._order(), 0.0
        for start in range(0, len(order), self.batch):
            nodes = order[start : start + self.batch]
            total += self._step(nodes) * len(nodes)
        return total / len(order)

    def _order(self) -> np.ndarray:
        """The training nodes in the order of this epoch: unchanged for a single batch, else shuffled."""
        if self.batch >= len(self.training_nodes):
            return self.training_nodes
        return np.random.default_rng([self.seed, self.step]).permutation(self.training_nodes)

    def _step(self, nodes: np.ndarray) -> float:
        step = torch.tensor(self.step, device=self.device)
        random = Randomness(self.model.seeds, step, torch.from_numpy(nodes).to(self.device))
        logits = self.network.logits(self.rows.take(nodes), self.network.weights(random), random)
        labels = torch.from_numpy(self.y[nodes]).to(self.device)
        loss = functional.cross_entropy(logits, labels)
        gradients = torch.autograd.grad(loss, list(self.parameters.values()), allow_unused=True)
        self.step += 1
        if math.isfinite(value := float(loss.detach())):
            self._update(gradients)
        return value

    @torch.no_grad()
    def _update(self, gradients: tuple[Tensor | None, ...]) -> None:
        t, rate, decay = self.training, self.training.learning_rate, self.training.weight_decay
        some = next(iter(self.parameters.values()))
        corrections = some.new_tensor([1 / (1 - BETAS[0] ** self.step), (1 - BETAS[1] ** self.step) ** -0.5])
        is_updated = torch.ones(1, dtype=torch.bool, device=some.device)
        is_decoupled = t.optimiser == "adamw"
        for (name, p), g in zip(self.parameters.items(), gradients, strict=True):
            if g is None:
                continue
            is_decayed = name not in self.model.undecayed
            if is_decoupled and is_decayed:
                p.data.mul_(1 - rate * decay)
            in_gradient = p.new_tensor([decay if is_decayed and not is_decoupled else 0.0])
            first, second = self.moments[name]
            adam_step(p.data, g, first, second, p.new_tensor([rate]), in_gradient, is_updated, corrections, BETAS, EPS)

    @torch.no_grad()
    def scores(self) -> tuple[np.ndarray, float, bool]:
        """Accuracies on training, validation and test nodes, the selection score, whether all logits are finite."""
        weights, sound = self.network.weights(), True
        hits, likely = np.zeros(len(PARTS)), 0.0
        for a, b in self.rows.pieces(len(self.rows.nodes)):
            logits = self.network.logits(self.rows.span(a, b), weights)
            labels = torch.from_numpy(self.y[self.rows.nodes[a:b]]).to(self.device)
            highest, chosen = logits.max(-1)
            finite = highest.isfinite()
            sound = sound and bool(finite.all())
            right = ((chosen == labels) & finite).cpu().numpy()
            hits += [np.count_nonzero(right & part[a:b]) for part in self.parts]
            if self.training.select == "loss":
                losses = functional.cross_entropy(logits, labels, reduction="none").cpu().double().numpy()
                likely -= losses[self.parts[1][a:b]].sum()
        with np.errstate(invalid="ignore"):
            sizes = self.parts.sum(-1)
            shares = hits / sizes
            merit = shares[1] if self.training.select == "accuracy" else np.float64(likely) / sizes[1]
        return shares, float(merit), sound

    def run(self, progress: Callable[[int, float, float], object] | None = None) -> TrialOutcome:
        """Train all epochs; `progress` is called with epoch, loss and validation accuracy.

        `truncation` is then the largest bound, over the epochs, of the terms beyond the degree as a share of the gain.
        """
        t = self.training
        history = np.full((t.epochs, len(METRICS)), np.nan, dtype=np.float32)
        best, status = _BestEpoch(t.patience), "ok"
        for epoch in range(1, t.epochs + 1):
            loss = self.epoch()
            if not math.isfinite(loss):
                status = f"diverged in epoch {epoch}"
                history[epoch - 1, 0] = loss
                break
            scores, merit, sound = self.scores()
            history[epoch - 1] = [loss, *scores]
            if sound:
                best.note(epoch, scores, merit, self.parameters)
            if progress is not None:
                progress(epoch, loss, float(scores[1]))
            if best.patience and best.waited >= best.patience:
                break
        self.truncation = max(self.truncation, self.network.truncation())
        parameters = best.parameters or {name: p.detach().cpu().clone() for name, p in self.parameters.items()}
        return TrialOutcome(
            best.epoch, float(best.val), float(best.test), status, history[:epoch], epoch, parameters, self.classes
        )


# ---------------------------------------------------------------------- decoupled trainer
# `train_decoupled`: trials of linear equations on propagated features, with the results of `train`.


def train_decoupled(
    data: NodeData,
    trials: Sequence[Trial],
    *,
    batch: int | None = None,
    folder: str | Path | None = None,
    device: str = "auto",
    precision: str = "float32",
    progress: Callable[[Progress], None] | None = None,
    tell: Callable[[str], object] = warnings.warn,
    dtype: torch.dtype = torch.float32,
    memory: int | None = None,
) -> Trained:
    """Propagate the features once, then train every trial in mini-batches of nodes.

    For linear equations with scalar and channel coefficients, the original adjacency and a linear encoder. With one
    batch and without input dropout the results equal those of `train`, up to rounding; `input_dropout` drops whole
    columns of the features here, the same at all nodes, which commutes with A; dropping single entries does not.

    Args:
        data: The data set.
        trials: The trials, trained one after another; equal operators share their powers.
        batch: Training nodes per step of Adam; all of them by default.
        folder: The folder in which the powers are stored for the next call; by default they are temporary.
        device: "auto" uses a GPU if there is one.
        precision: The precision of the powers on disk, float32 or float16.
        progress: Called after every epoch.
        tell: Called with a message about the degree of the polynomials if their truncation is not negligible.
        dtype: The precision of parameters and states.
        memory: Bytes that rows of the powers may use in memory; a share of the free memory by default.

    Returns:
        The results, in the order of the trials; their networks are the same kind as those of `train`.

    Raises:
        NotApplicable: For networks whose training cannot be decoupled, with the reason.
        InvalidArgument: For trials and data that do not match.

    >>> import gread
    >>> config = gread.Config().updated({"adjacency": "original", "input_dropout": 0.0, "hidden": 8, "epochs": 5})
    >>> run = gread.train_decoupled(gread.karate(), [gread.Trial(config)], batch=4, device="cpu")
    >>> run.history.shape, run.status
    ((1, 5, 4), ('ok',))
    """
    data, (chosen, reasons) = read_data(data), resolve_trials(trials)
    if not chosen:
        raise InvalidArgument("expected at least one trial, got none; make some with make_trials")
    if data.meta.metric != ACCURACY:
        raise NotApplicable(
            f"expected data that are measured by their accuracy for decoupled training, got {data.meta.name} with the "
            f"metric {data.meta.metric}; train on the whole graph"
        )
    for trial in chosen:
        check_decoupled(trial.config.model)
        check(data, trial.split)
    device, started = choose_device(device), time.monotonic()
    epochs = [trial.config.training.epochs for trial in chosen]
    outcomes: list[TrialOutcome] = []
    degree, truncation = 0, 0.0
    with ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory())) if folder is None else Path(folder)
        for k, trial in enumerate(chosen):
            extend = partial(_powers, data, trial.config.gread, base, device, precision)

            def report(epoch: int, loss: float, val: float, k: int = k) -> None:
                if progress is not None:
                    seconds = time.monotonic() - started
                    progress(Progress(sum(epochs[:k]) + epoch, sum(epochs), k, len(chosen), loss, val, seconds))

            training = DecoupledTraining(
                extend(1), data.y, data.masks, trial, classes=data.num_classes, batch=batch, device=device, dtype=dtype,
                extend=extend, memory=memory,
            )  # fmt: skip
            outcomes.append(training.run(report))
            degree, truncation = max(degree, training.network.degree), max(truncation, training.truncation)
            del training
    if truncation > TOLERANCE:
        tell(f"truncating polynomials at degree {degree} changes the gain by up to {truncation:.1e} of it")
    return joined_outcomes(data, chosen, reasons, outcomes, time.monotonic() - started)


def _powers(data: NodeData, settings: GreadSettings, base: Path, device: str, precision: str, degree: int) -> Powers:
    """The powers of the features up to at least a degree, from their folder or computed."""
    words = (settings.normalisation, f"{settings.self_loops:g}", "row" if settings.row_features else "raw", precision)
    x: Any = row_normalised(data.x) if settings.row_features else data.x
    return propagate(
        data.graph, x, degree=degree, out=base / "-".join(words), normalisation=settings.normalisation,
        self_loops=settings.self_loops, precision=precision, device=device,
    )  # fmt: skip
