"""`Ensemble`: many trainings as one program; an epoch is one CUDA graph, or one eager pass on a CPU.

Every parameter, mask, rate and time has a member axis. An epoch is a training step, an evaluation and the record of the
first best validation accuracy (the last epoch without validation nodes), all on the device. The host waits for the
device only after every `CHUNK` epochs and at the end of a call, to check that the polynomials of linear flows are still
long enough; if not, the chunk is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gread.datasets.node_data import NodeData
from gread.kernels.training_operations import adam_step, select
from gread.models.batched_model import BatchedModel
from gread.models.features import Features
from gread.models.mixed_coefficients import fitted
from gread.models.problem import Problem
from gread.models.randomness import Randomness, make_rates
from gread.models.resolution import resolve_trials
from gread.settings.model_records import ModelSettings, find_model
from gread.settings.trials import Trial, grouped
from rdgraph.errors import InvalidArgument
from rdgraph.graphs.kernels.device_names import read_device
from rdgraph.graphs.kernels.devices import free_memory
from rdgraph.run.solvers.polynomial_flow import TOLERANCE

# ---------------------------------------------------------------------- recomputation
# How many states of a forward pass are kept for the gradient: all if they fit, else some, with the rest recomputed.

AUTO, NONE = "auto", "none"
#: Share of the free memory that the states of all members may use before some of them are recomputed.
SHARE = 0.8


def choose_segment(model: BatchedModel, x: Features, asked: str | int, device: str) -> int:
    """The number of steps or terms between kept states, 0 to keep all; `asked` is auto, none or a number.

    The results do not depend on it; recomputing states costs one more forward pass.
    """
    if isinstance(asked, int) and asked > 0:
        return asked if model.segments else 0
    if asked not in (AUTO, NONE):
        raise InvalidArgument(f"expected auto, none or a number of steps from 1 for checkpointing, got {asked!r}")
    if asked == NONE or not model.segments:
        return 0
    available, needs = SHARE * free_memory(device), dict[int, int]()
    for size in (0, *model.segments):
        model.segment = size
        needs[size] = (model.memory(x) or 0) * x.values.element_size() * model.members
        if needs[size] <= available:
            return size
    return min(needs, key=needs.__getitem__)


# ---------------------------------------------------------------------- member state
# `MemberState`: everything that training changes in some members of an ensemble, to continue in another one.

#: Parts of the state that all members share.
SHARED = ("step",)


@dataclass(frozen=True, eq=False)
class MemberState:
    """Everything that training changes in some members of an ensemble, and the degrees of their polynomials."""

    values: dict[str, Tensor]
    degrees: tuple[int, ...]

    def chosen(self, members: Sequence[int]) -> MemberState:
        """A copy of the state of the chosen members, in the given order."""
        first = next(iter(self.values.values()))
        index = torch.tensor(list(members), dtype=torch.int64, device=first.device)
        values = {
            name: value.clone() if name in SHARED else value.index_select(_member_axis(name), index)
            for name, value in self.values.items()
        }
        return MemberState(values, tuple(self.degrees[k] for k in members))

    def on(self, device: str) -> MemberState:
        """The state of the members on another device."""
        return MemberState({name: value.to(device) for name, value in self.values.items()}, self.degrees)

    @staticmethod
    def joined(pieces: Sequence[MemberState]) -> MemberState:
        """The state of all members of several pieces, which must be at the same epoch."""
        epochs = {int(piece.values["step"]) for piece in pieces}
        if len(epochs) != 1:
            given = ", ".join(map(str, sorted(epochs)))
            raise InvalidArgument(f"expected states after one number of epochs, got {given}")
        values = {}
        for name, first in pieces[0].values.items():
            parts = [piece.values[name] for piece in pieces]
            widest = max(parts, key=lambda part: part.ndim)
            values[name] = (
                first if name in SHARED else torch.cat([fitted(p, widest) for p in parts], dim=_member_axis(name))
            )
        return MemberState(values, tuple(degree for piece in pieces for degree in piece.degrees))


def _member_axis(name: str) -> int:
    """The axis of the members in a part of the state."""
    return 1 if name == "history" else 0


# ---------------------------------------------------------------------- recording
# Work recorded as a CUDA graph, without stopping other work on the device if memory is plentiful.
#
# `torch.cuda.graph` first waits for the whole device and releases all cached memory, which makes room for the graph's
# pool, but leaves the device idle while many batches are recorded one after the other. With half of the memory free
# this is unnecessary.

T = TypeVar("T")
#: The share of the device's memory that must be free to record while other work runs.
ROOM = 0.5


def captured_after_warming(
    work: Callable[[], None], device: torch.device, snapshot: Callable[[], T], restore: Callable[[T], None]
) -> Callable[[], None]:
    """Record some work as a CUDA graph, after one warm-up run that is undone; returns the function that replays it.

    It is recorded on the stream on which it is replayed, unless that is the default one, where recording is impossible.
    cuBLAS has one workspace per stream: work recorded on one stream and replayed on several at once would share it.
    """
    before, current = snapshot(), torch.cuda.current_stream()
    is_default = current == torch.cuda.default_stream()
    stream = torch.cuda.Stream(device) if is_default else current
    stream.wait_stream(current)
    with torch.cuda.stream(stream):
        work()
    current.wait_stream(stream)
    restore(before)
    return capture(work, stream).replay


def capture(work: Callable[[], None], stream: torch.cuda.Stream) -> torch.cuda.CUDAGraph:
    """Record some work on a stream other than the default one, without running it.

    If memory runs out while other work is running, it is recorded again with the device to itself.
    """
    free, total = torch.cuda.mem_get_info(stream.device)
    if free >= ROOM * total:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.stream(stream), _capturing(graph):
                work()
            return graph
        except torch.OutOfMemoryError:
            pass
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        work()
    return graph


@contextmanager
def _capturing(graph: Any) -> Iterator[None]:
    graph.capture_begin()
    try:
        yield
    finally:
        graph.capture_end()


# ---------------------------------------------------------------------- ensemble
#: Epochs between two checks of the polynomials.
CHUNK = 20
#: The largest tail of a polynomial before its degree is raised.
LARGEST_TAIL = 10 * TOLERANCE
BETAS, EPS = (0.9, 0.999), 1e-8
#: Columns of the history; the accuracies are areas under the ROC curve if that is the metric of the data.
METRICS = ("loss", "train_accuracy", "val_accuracy", "test_accuracy")


@dataclass(frozen=True)
class Outcome:
    """The results of M trials: best epochs (from 1), accuracies there, and every epoch's metrics (epochs, M, 4).

    `epochs` counts the epochs of each trial: until the last epoch, early stopping or divergence.
    """

    best_epoch: Tensor
    val_accuracy: Tensor
    test_accuracy: Tensor
    failed_at: Tensor
    history: Tensor
    epochs: Tensor

    def status(self, member: int) -> str:
        """The word ok, or the epoch in which the loss diverged."""
        failed = int(self.failed_at[member])
        return "ok" if failed < 0 else f"diverged in epoch {failed}"


class Ensemble:
    """Trials of one shape, trained together as one program.

    Args:
        data: One data set, or one of equal size for every trial.
        trials: Trainings of one shape (`Trial.shape`): they differ in splits, seeds, rates and times, and in methods,
            steps and kinds of coefficients as their equations allow; the method "auto" is chosen.
        device: cpu, cuda or cuda:0.
        dtype: The precision of parameters and states.
        keep_best: Whether the parameters of every member's best epoch are kept.
        use_graph: Whether an epoch is recorded as a CUDA graph; by default on a GPU.
        weights: Weights of the training nodes in the loss (n,); all equal by default.
        checkpointing: Which states are kept for the gradient: none keeps all, N one every N steps or terms, auto as
            many as fit.
        networks: Network classes by class of settings, for settings without a registered network.

    Raises:
        InvalidArgument: For no trials, trials of several shapes, data that cannot be trained on, or a device that torch
            cannot use.

    >>> import gread
    >>> config = gread.Config().updated({"hidden": 8, "epochs": 5})
    >>> ensemble = gread.training.Ensemble(gread.karate(), [gread.Trial(config, split) for split in range(3)])
    >>> ensemble.advance(5)
    >>> ensemble.outcome().history.shape
    torch.Size([5, 3, 4])
    """

    def __init__(
        self,
        data: NodeData | Sequence[NodeData],
        trials: Sequence[Trial],
        *,
        device: str = "cpu",
        dtype: torch.dtype = torch.float32,
        keep_best: bool = True,
        use_graph: bool | None = None,
        weights: np.ndarray | None = None,
        checkpointing: str | int = AUTO,
        networks: Mapping[type[ModelSettings], type[BatchedModel]] | None = None,
    ) -> None:
        device, (chosen, _) = read_device(device), resolve_trials(trials)
        if not chosen:
            raise InvalidArgument("expected at least one trial, got none")
        if len(grouped(chosen)) > 1:
            raise InvalidArgument("expected trials of one shape, got several; let `train` group them")
        self.trials = chosen
        configs = [t.config for t in chosen]
        self._network_classes = networks or {}
        self.problem = Problem.make(data, chosen, device=device, dtype=dtype, weights=weights)
        self.model = self._make_networks([c.model for c in configs])
        self.rates = make_rates([c.model for c in configs], device)
        self.training = configs[0].training
        self.epochs = self.training.epochs
        rates = [[getattr(c.training, name) for c in configs] for name in ("learning_rate", "weight_decay")]
        self.learning_rates, self.decays = torch.tensor(rates, dtype=dtype, device=device)
        self._no_decay = torch.zeros_like(self.decays)
        self.keep_best = keep_best
        self._data, self._weights, self.checkpointing = data, weights, checkpointing
        self.parameters = dict(self.model.named_parameters())
        #: What training changes in the networks: parameters and buffers.
        self.parts = self.model.parts
        self.state = self._fresh_state(dtype, device)
        self.model.prepare(self.problem.features, self.rates)
        self.model.segment = choose_segment(self.model, self.problem.features, checkpointing, device)
        self.use_graph = device.startswith("cuda") if use_graph is None else use_graph
        self.use_graph = self.use_graph and self.model.is_capturable
        self._replay: Callable[[], None] | None = None
        #: The state at the start of the current chunk, if its polynomials may turn out too short.
        self.started: dict[str, Tensor] | None = None

    def _make_networks(self, settings: list[ModelSettings]) -> BatchedModel:
        network = self._network_classes.get(type(settings[0])) or find_model(settings[0].model).network
        options = {
            "features": self.problem.features.shape[1], "classes": self.problem.classes,
            "seeds": [t.member_seed for t in self.trials],
        }  # fmt: skip
        make: Callable[..., BatchedModel] = getattr(
            network, "of_members", lambda each, *a, **k: network(each[0], *a, **k)
        )
        return make(settings, self.problem.place, **options)

    @property
    def members(self) -> int:
        return len(self.trials)

    @property
    def epoch(self) -> int:
        """The number of finished epochs."""
        return int(self.state["step"])

    def _fresh_state(self, dtype: torch.dtype, device: str) -> dict[str, Tensor]:
        """Everything that changes: parameters, buffers, moments of Adam, the step, the record of the best epoch."""
        state: dict[str, Tensor] = {name: p.data for name, p in self.parts.items()}
        for name, p in self.parts.items():
            if name in self.parameters:
                state[f"first.{name}"], state[f"second.{name}"] = torch.zeros_like(p.data), torch.zeros_like(p.data)
            if self.keep_best:
                state[f"best.{name}"] = p.data.clone()
        members = len(self.trials)
        none = torch.zeros(members, dtype=torch.int64, device=device)
        return state | {
            "step": none.new_zeros(()),
            "alive": torch.ones(members, dtype=torch.bool, device=device),
            "failed_at": none - 1,
            "best_epoch": none.clone(),
            "best_val": torch.zeros(members, dtype=dtype, device=device),
            "best_test": torch.zeros(members, dtype=dtype, device=device),
            "merit": torch.full((members,), -torch.inf, dtype=dtype, device=device),
            "waited": none.clone(),
            "history": torch.full((self.epochs, members, len(METRICS)), torch.nan, dtype=dtype, device=device),
            "tail": torch.zeros(members, dtype=torch.float64, device=device),
        }

    # ------------------------------------------------------------------ one epoch
    def _epoch(self) -> None:
        loss, gradients = self._slopes()
        state = self.state
        state["alive"].logical_and_(torch.isfinite(loss))
        state["step"].add_(1)
        self._update(gradients)
        scores, merit, sound = self._scores()
        failed = ~state["alive"] & (state["failed_at"] < 0)
        # Without validation nodes the merit is nan and every epoch replaces the one before.
        better = (merit > state["merit"]) | merit.isnan() | (state["best_epoch"] == 0)
        improved = state["alive"] & sound & better
        row = torch.cat([loss[:, None], scores], dim=1)
        if self.training.patience:
            is_patient = state["waited"] < self.training.patience
            failed, improved = failed & is_patient, improved & is_patient
            state["waited"].copy_(torch.where(improved, 0, state["waited"] + is_patient))
            row = torch.where(is_patient[:, None], row, torch.nan)
        state["failed_at"].copy_(torch.where(failed, state["step"], state["failed_at"]))
        for name, value in (
            ("merit", merit), ("best_val", scores[:, 1]), ("best_test", scores[:, 2]), ("best_epoch", state["step"]),
        ):  # fmt: skip
            state[name].copy_(torch.where(improved, value, state[name]))
        if self.keep_best:
            select([state[n] for n in self.parts], [state[f"best.{n}"] for n in self.parts], improved)
        state["history"].index_copy_(0, (state["step"] - 1).view(1), row[None])

    def _slopes(self) -> tuple[Tensor, list[Tensor | None]]:
        """The loss of every member (M,) and its gradients."""
        random = Randomness(self.model.seeds, self.state["step"])
        logits, tail = self.model.run(self.problem.features, self.rates, random)
        loss = -(functional.log_softmax(logits, -1) * self.problem.targets).sum((1, 2))
        gradients = torch.autograd.grad(loss.sum(), list(self.parameters.values()), allow_unused=True)
        if tail is not None:
            # Members that have diverged do not need more terms.
            living = torch.where(self.state["alive"] & ~tail.isnan(), tail, 0.0)
            self.state["tail"].copy_(torch.maximum(self.state["tail"], living))
        return loss.detach(), list(gradients)

    def _update(self, gradients: Sequence[Tensor | None]) -> None:
        state = self.state
        step = state["step"].double()
        powers = torch.stack([1 - BETAS[0] ** step, (1 - BETAS[1] ** step).sqrt()])
        corrections = powers.reciprocal().to(self.learning_rates.dtype)
        is_decoupled = self.training.optimiser == "adamw"
        for name, g in zip(self.parameters, gradients, strict=True):
            if g is None:
                continue
            is_decayed = name not in self.model.undecayed
            if is_decoupled and is_decayed:
                shrink = 1 - self.learning_rates * self.decays * state["alive"]
                state[name].mul_(shrink.reshape(-1, *(1,) * (g.ndim - 1)))
            adam_step(
                state[name], g, state[f"first.{name}"], state[f"second.{name}"], self.learning_rates,
                self.decays if is_decayed and not is_decoupled else self._no_decay, state["alive"], corrections, BETAS,
                EPS,
            )  # fmt: skip

    @torch.no_grad()
    def _scores(self) -> tuple[Tensor, Tensor, Tensor]:
        """Accuracies (M, 3) on training, validation and test nodes without dropout, the merit of the epoch (M,), and
        whether all logits are finite (M,).

        The merit is the validation accuracy, or minus the loss on the validation nodes.
        """
        problem, logits = self.problem, self.logits()
        highest, chosen = logits.max(-1)
        finite = highest.isfinite()
        scores = problem.scores(logits, (chosen == problem.labels) & finite)
        if self.training.select == "accuracy":
            return scores, scores[:, 1], finite.all(-1)
        labels = problem.labels.expand(self.members, -1)[..., None].clamp(min=0)  # unknown ones are in no mask
        likely = functional.log_softmax(logits, -1).gather(-1, labels)[..., 0]
        merit = torch.where(problem.masks[:, 1] > 0, likely, 0.0).sum(-1) / problem.sizes[:, 1]
        return scores, merit, finite.all(-1)

    @torch.no_grad()
    def logits(self) -> Tensor:
        """Logits (M, n, classes) of the current parameters, without dropout."""
        return self.model.run(self.problem.features, self.rates).logits

    # ------------------------------------------------------------------ many epochs
    def advance(self, epochs: int) -> None:
        """Train for some more epochs, at most to the end.

        Chunks are counted from the first epoch, so the results do not depend on how the epochs are divided among calls,
        to the bit if every call ends with a chunk. A call that ends within a chunk checks the polynomials as well.
        """
        end = min(self.epoch + epochs, self.epochs)
        while (done := self.epoch) < end:
            self.start(end - done)
            self.settle(at_once=self.epoch == end)

    def start(self, epochs: int) -> None:
        """Start some more epochs, at most to the end of the chunk; on a GPU they may still run when this returns."""
        done = self.epoch
        if done % CHUNK == 0:
            self.started = self.snapshot() if self.model.is_cut else None
            self.state["tail"].zero_()
        for _ in range(min(done + epochs, self.epochs, done - done % CHUNK + CHUNK) - done):
            self._one()

    def settle(self, *, at_once: bool = False) -> None:
        """Check a chunk of epochs at its end: if polynomials were too short, restore its start and lengthen them.

        The number of added terms follows from the whole chunk, so it does not depend on when this is called; `at_once`
        also checks within a chunk, when its results are needed now.
        """
        if not (at_once or self.epoch % CHUNK == 0 or self.is_done):
            return
        if self.started is not None and float(self.state["tail"].amax()) > LARGEST_TAIL:
            tails = self.state["tail"].clone()
            self.restore(self.started)
            self.model.lengthen(self.problem.features, self.rates, tails)
            self._replay = None
        done = self.epoch
        if done % CHUNK == 0 or done == self.epochs:
            self.started = None

    def record(self) -> None:
        """Record the epoch as a CUDA graph now instead of before the first epoch."""
        if self.use_graph and self._replay is None and not self.is_done:
            self._replay = self._captured()

    def _one(self) -> None:
        if not self.use_graph:
            self._epoch()
            return
        if self._replay is None:
            self._replay = self._captured()
        self._replay()

    def _captured(self) -> Callable[[], None]:
        """The epoch as a CUDA graph."""
        return captured_after_warming(self._epoch, self.learning_rates.device, self.snapshot, self.restore)

    @property
    def is_done(self) -> bool:
        """True after the last epoch, or when every member has stopped early or diverged."""
        if self.epoch >= self.epochs:
            return True
        is_patient = (self.state["waited"] < self.training.patience) & self.state["alive"]
        return bool(self.training.patience) and not bool(is_patient.any())

    def snapshot(self) -> dict[str, Tensor]:
        """A copy of everything that changes."""
        return {name: value.clone() for name, value in self.state.items()}

    def restore(self, values: dict[str, Tensor]) -> None:
        """Restore a copy made by `snapshot`."""
        with torch.no_grad():
            for name, value in values.items():
                self.state[name].copy_(value)

    # ------------------------------------------------------------------ some of the members
    def member_state(self, members: Sequence[int]) -> MemberState:
        """A copy of everything that training changes in some members.

        Not available within a chunk whose polynomials may turn out too short, since it may be repeated.
        """
        if self.started is not None:
            raise InvalidArgument(
                f"expected an epoch that is a multiple of {CHUNK}, got {self.epoch} in a flow that may need more terms"
            )
        values = {name: value.detach() for name, value in self.state.items()}
        return MemberState(values, self.model.member_degrees).chosen(members)

    def resume(self, state: MemberState) -> None:
        """Continue from the state of members that were trained in other ensembles, in the order of the members here."""
        values = {name: fitted(v, self.state[name]) for name, v in state.values.items() if name in self.state}
        for name, value in self.state.items():
            if name not in values or values[name].shape != value.shape:
                got = tuple(values[name].shape) if name in values else "none"
                raise InvalidArgument(f"expected {name} of shape {tuple(value.shape)}, got {got}; take the same trials")
        self.restore(values)
        self.model.take_degrees(state.degrees)
        self.started, self._replay = None, None

    def subset(self, members: Sequence[int]) -> Ensemble:
        """A smaller ensemble of some members, which continues to the same results as here.

        >>> import gread
        >>> config = gread.Config().updated({"hidden": 8, "epochs": 40})
        >>> whole = gread.training.Ensemble(gread.karate(), [gread.Trial(config, split) for split in range(3)])
        >>> whole.advance(20)
        >>> part = whole.subset([2])
        >>> part.members, part.epoch
        (1, 20)
        """
        several = not isinstance(self._data, NodeData) and len(self._data) > 1
        data = [self._data[k] for k in members] if several else self._data  # type: ignore[index]
        small = Ensemble(
            data, [self.trials[k] for k in members], device=str(self.learning_rates.device),
            dtype=self.learning_rates.dtype, keep_best=self.keep_best, use_graph=self.use_graph, weights=self._weights,
            checkpointing=self.checkpointing, networks=self._network_classes,
        )  # fmt: skip
        small.resume(self.member_state(members))
        return small

    def outcome(self) -> Outcome:
        """Results so far, on the host."""
        s = {name: self.state[name].cpu() for name in ("best_epoch", "best_val", "best_test", "failed_at", "history")}
        best, failed, patience = s["best_epoch"], s["failed_at"], self.training.patience
        ends = (best + (patience or self.epochs)).clamp(max=self.epoch)
        epochs = torch.where(failed > 0, failed, ends)
        return Outcome(best, s["best_val"], s["best_test"], failed, s["history"][: self.epoch], epochs)

    def use_best(self) -> None:
        """Load the parameters of every member's best epoch."""
        if not self.keep_best:
            raise InvalidArgument("the best parameters were not kept (keep_best=False); train with keep_best=True")
        with torch.no_grad():
            for name, part in self.parts.items():
                part.copy_(self.state[f"best.{name}"])
