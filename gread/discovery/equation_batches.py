"""`train_equations`: trains many different equations together, dropping the worse early.

Linear equations differ only in the coefficients of a polynomial of A, so hundreds of them on all splits are one
program; others are stepped together, every term computed once for all equations that contain it. Remaining equations
are trained in separate batches. An equation that diverges or cannot be trained does not affect the others.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import torch

from gread.datasets.node_data import NodeData
from gread.discovery.term_grammar import Line
from gread.models.equation_model import EquationBatch
from gread.models.gread_model import GREAD
from gread.models.resolution import resolve_method
from gread.settings.config import Config
from gread.settings.equation_settings import EquationSettings, coefficient_count, shares_batches
from gread.settings.gread_settings import AUTO, GreadSettings
from gread.settings.state_region import SAFE, StateRegion
from gread.training.ensemble import Ensemble
from gread.training.trainer import choose_device
from gread.tuning.candidates import COMPLETE, DIVERGED, FAILED, PRUNED, Candidate, TrialResult
from gread.tuning.rounds import REFUSALS, check_splits, reason
from gread.tuning.successive_halving import HalvedRound, Rungs, halving_options
from rdgraph import parse
from rdgraph.graphs.kernels.devices import free_memory
from rdgraph.systems.system import System
from rdgraph.theory.method_choice import choose_method
from rdgraph.vocabulary.normalisations import find_normalisation

# ---------------------------------------------------------------------- equation batches
#: The reason of equations that were not started.
LATE = "the time limit was reached before it was trained"
#: The most members of a batch: more do not make an epoch cheaper, and all kernels use 32-bit indices.
MOST_MEMBERS = 3072
#: The most numbers in one stack of states of a batch.
MOST_NUMBERS = 2**31
#: Share of the free memory for the parameters of a round that wait for the end of a rung.
WAITING = 0.25
#: Stored copies of the waiting parameters: the values and both moments.
COPIES = 3


@dataclass(frozen=True)
class EquationResult(TrialResult):
    """The result of an equation, as of a trial; one that cannot be trained has failed, and its note says why.

    `coefficients` are means over splits and channels after the last trained epoch.
    """

    equation: str = ""
    coefficients: dict[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> EquationResult:
        known = vars(TrialResult.read(record))
        return cls(**known, equation=str(record.get("equation", "")), coefficients=dict(record["coefficients"]))


class EquationProgress(NamedTuple):
    """Progress of a training of many equations: the finished share, and the best mean validation accuracy so far."""

    share: float
    best: float
    equation: str


def train_equations(
    equations: Sequence[System | str],
    data: NodeData,
    settings: Config | GreadSettings,
    *,
    splits: Sequence[int],
    epochs: int | None = None,
    rungs: Sequence[int] = (),
    keep: float = 0.5,
    seed: int = 0,
    device: str = "auto",
    seconds: float | None = None,
    on_progress: Callable[[EquationProgress], None] | None = None,
    tell: Callable[[str], object] = warnings.warn,
) -> list[EquationResult]:
    """Train every equation on every split, as one batched program per way to compute H(T).

    Equations are compared at rungs by their mean validation accuracy over the splits. If the parameters of all do not
    fit into memory, they are trained in several rounds with similar samples, and compared within their round.

    Args:
        equations: Equations in the language of rdgraph, of any form that a network can be trained around.
        data: The data set.
        settings: The network around every equation, and its training; its own equation is ignored.
        splits: Numbers of splits.
        epochs: Epochs of every training; by default those of the settings.
        rungs: Epochs after which the worse part is dropped, rounded up to a multiple of 20.
        keep: The share that remains at every rung.
        seed: The random seed.
        device: "auto" uses a GPU if there is one.
        seconds: A time limit, after which no further epochs start: running equations are dropped with their results so
            far, the others fail.
        on_progress: Called with the progress.
        tell: Called with messages for the user.

    Returns:
        The results in the order of the equations.

    Raises:
        InvalidArgument: For no splits, splits without validation nodes, or rungs that do not increase.

    >>> from gread.datasets.embedded import karate
    >>> lines = ["-alpha*L@H + gamma*A@A@H", "-alpha*L@H + gamma*tanh(H)", "-alpha*L@H + gamma*H0", "H +"]
    >>> small = Config().updated({"hidden": 8, "adjacency": "original"})
    >>> found = train_equations(lines, karate(), small, splits=[0, 1], epochs=40, rungs=[20], keep=0.4, device="cpu")
    >>> [(one.state, one.epochs) for one in found]
    [('complete', 40), ('complete', 40), ('pruned', 20), ('failed', 0)]
    """
    config = settings if isinstance(settings, Config) else Config(settings)
    config = config if epochs is None else config.updated({"epochs": epochs})
    device, until = choose_device(device), math.inf if seconds is None else time.monotonic() + seconds
    check_splits(data, splits)
    stages = make_rungs(rungs, keep, config.training.epochs)
    prepared = [_prepared(k, equation, config) for k, equation in enumerate(equations)]
    results: dict[int, EquationResult] = {k: one for k, one in enumerate(prepared) if isinstance(one, EquationResult)}
    sound = {k: one for k, one in enumerate(prepared) if isinstance(one, GreadSettings)}
    numbers = list(sound)
    slots = max((coefficient_count(one.system) for one in sound.values() if shares_batches(one)), default=0)
    candidates = {k: Candidate(k, replace(config, model=_sharing(one, slots))) for k, one in sound.items()}
    count = _round_count(len(numbers) * len(splits), data, config.gread, device)
    work = _Work(data, tuple(splits), seed, stages, device, until, tell, on_progress, len(numbers))
    for first in range(min(count, len(numbers))):
        results |= work.train([candidates[k] for k in numbers[first::count]])
    return [results[k] for k in range(len(equations))]


def make_rungs(rungs: Sequence[int], keep: float, epochs: int) -> Rungs:
    """Rungs after the given numbers of epochs; at each, the share `keep` of the trials continues.

    >>> make_rungs([20, 80], 0.5, 200).stages
    ((0.1, 0.5), (0.4, 0.25))
    """
    return Rungs(tuple((rung / epochs, keep ** (k + 1)) for k, rung in enumerate(rungs)))


def _prepared(number: int, equation: System | str, config: Config) -> GreadSettings | EquationResult:
    """The settings of an equation with its method, or a failed result with the reason."""
    try:
        system = parse(equation)
        settings = type(config.gread).of(system, **_other_settings(config.gread))
        resolved = _exact(settings) or resolve_method(settings)[0]
        if settings.method == AUTO and not shares_batches(resolved):
            resolved = _stepped(resolved)
        if shares_batches(resolved):
            coefficient_count(resolved.system)
    except REFUSALS as problem:
        return EquationResult(number, FAILED, 0, note=str(problem), equation=str(equation))
    return resolved


def _exact(settings: GreadSettings) -> GreadSettings | None:
    """The settings of a linear equation with method "auto", resolved to the exact flow; None for others."""
    if settings.method != AUTO or not settings.system.is_single:
        return None
    region = StateRegion() if settings.states in (AUTO, SAFE) else settings.region
    resolved = settings.resolved("exact", None, settings.beta_link, region)
    return resolved if resolved.is_polynomial and shares_batches(resolved) else None


def _stepped(settings: GreadSettings) -> GreadSettings:
    """The settings of an equation with steps instead of the chosen splitting, so that it can share batches."""
    normalisation = settings.normalisation if settings.adjacency == "original" else "row"
    undirected = find_normalisation(normalisation).is_symmetric
    choice = choose_method(
        settings.system, settings.time, normalisation=normalisation, undirected=undirected, stepped=True
    )
    return settings.resolved(choice.method, choice.step, settings.beta_link)


def _sharing(settings: GreadSettings, slots: int) -> GreadSettings:
    """The settings of an equation in a form that shares batches with others, if possible."""
    if not shares_batches(settings):
        return settings
    return EquationSettings.of(settings.system, **_other_settings(settings), slots=slots)


def _other_settings(settings: GreadSettings) -> dict[str, Any]:
    """All settings but the equation, by name."""
    return {f.name: getattr(settings, f.name) for f in fields(settings) if f.name != "reaction"}


def _round_count(trainings: int, data: NodeData, model: GreadSettings, device: str) -> int:
    """The number of rounds of these trainings, so that the parameters of a round fit into memory while they wait."""
    size = 4 * COPIES * model.hidden * (data.num_features + 4 * model.hidden)
    return max(1, math.ceil(trainings * size / (WAITING * free_memory("cpu" if device == "cpu" else device))))


def coefficient_means(ensemble: Ensemble) -> list[dict[str, float]]:
    """The coefficients of every member by name, as means over channels, nodes and entries."""
    model = ensemble.model
    if isinstance(model, EquationBatch):
        return model.coefficient_means()
    if not isinstance(model, GREAD):
        return [{} for _ in range(ensemble.members)]
    with torch.no_grad():
        means = {name: value.flatten(1).mean(1).tolist() if value.ndim > 1 else value.tolist()
                 for name, value in model.coefficients().items()}  # fmt: skip
    return [{name: values[member] for name, values in means.items()} for member in range(ensemble.members)]


@dataclass(eq=False)
class _Work:
    """A training of many equations: the shared data of all rounds, and the best result so far."""

    data: NodeData
    splits: tuple[int, ...]
    seed: int
    rungs: Rungs
    device: str
    until: float
    tell: Callable[[str], object]
    on_progress: Callable[[EquationProgress], None] | None
    total: int
    done: int = 0
    best: tuple[float, str] = (-math.inf, "")

    def train(self, candidates: Sequence[Candidate]) -> dict[int, EquationResult]:
        """Train a round; one that fails is divided into halves, so that only the equations at fault are refused."""
        if time.monotonic() >= self.until:
            return {c.number: _failed(c, LATE) for c in candidates}
        try:
            return self._round(candidates)
        except REFUSALS as problem:
            if len(candidates) == 1:
                self.done += 1
                return {candidates[0].number: _failed(candidates[0], reason(problem))}
            self.tell(f"a round of {len(candidates)} equations restarts in two halves: {reason(problem)}")
        if self.device.startswith("cuda"):
            torch.cuda.empty_cache()
        middle = len(candidates) // 2
        return self.train(candidates[:middle]) | self.train(candidates[middle:])

    def _round(self, candidates: Sequence[Candidate]) -> dict[int, EquationResult]:
        options: dict[str, Any] = halving_options(self.device) | {"networks": {EquationSettings: EquationBatch}}
        halved = HalvedRound(
            self.data, candidates, self.splits, self.seed, self.rungs, options, None, self.tell,
            lambda share: self._report(share, candidates, halved), most=self._most(candidates), until=self.until,
            look=_coefficients_and_soundness,
        )  # fmt: skip
        results = halved.run()
        self.done += len(candidates)
        pairs = enumerate(zip(candidates, results, strict=True))
        return {c.number: self._result(c, result, index, halved) for index, (c, result) in pairs}

    def _most(self, candidates: Sequence[Candidate]) -> int:
        """The most members of a batch, so that a stack of their states can be indexed."""
        models = [c.config.gread for c in candidates]
        stack = self.data.num_nodes * models[0].hidden * (max(model.effort for model in models) + 8)
        return max(1, min(MOST_MEMBERS, MOST_NUMBERS // stack))

    def _report(self, share: float, candidates: Sequence[Candidate], halved: HalvedRound) -> None:
        if self.on_progress is None:
            return
        for index, result in halved.results.items():
            if result.val_accuracy > self.best[0]:
                self.best = result.val_accuracy, _text(candidates[index])
        whole = (self.done + share * len(candidates)) / max(1, self.total)
        self.on_progress(EquationProgress(min(1.0, whole), *self.best))

    def _result(self, candidate: Candidate, result: TrialResult, index: int, halved: HalvedRound) -> EquationResult:
        each = [halved.seen[index, split] for split in self.splits]
        means = {name: math.fsum(values[name] for values, _ in each) / len(each) for name in each[0][0]}
        is_sound = all(alive for _, alive in each)
        state = DIVERGED if not is_sound else COMPLETE if result.state == COMPLETE else PRUNED
        fields_of = {**vars(result), "number": candidate.number, "state": state, "note": ""}
        return EquationResult(**fields_of, equation=_text(candidate), coefficients=means)


def _coefficients_and_soundness(ensemble: Ensemble) -> list[tuple[dict[str, float], bool]]:
    """The coefficients of every member, and whether it has not diverged."""
    return list(zip(coefficient_means(ensemble), (ensemble.state["failed_at"] < 0).tolist(), strict=True))


def _failed(candidate: Candidate, note: str) -> EquationResult:
    return EquationResult(candidate.number, FAILED, 0, note=note, equation=_text(candidate))


def _text(candidate: Candidate) -> str:
    return str(candidate.config.gread.system)


# ---------------------------------------------------------------------- line training
# Equations of a grammar, trained on all splits in one call, with the worse dropped early.

#: Shares of the epochs after which the worse half of the remaining equations is dropped.
RUNGS, KEEP = (0.1, 0.2, 0.4), 0.5


def line_config(base: Config, line: Line) -> Config:
    """The configuration of an equation, with the declared kinds and signs of its coefficients.

    >>> from gread.discovery.term_grammar import find_terms
    >>> grammar = find_terms("default")
    >>> model = line_config(Config(), grammar.line(grammar.terms[:2])).gread
    >>> model.reaction, model.alpha, model.beta
    ('alpha*H + beta*A@H where alpha channel, beta channel, alpha real, beta real', 'channel', 'channel')
    """
    kinds = {"alpha": line.kind, "beta": line.kind}
    return base.updated({"reaction": line.text, **kinds, "alpha_link": "auto", "beta_link": "auto"})


def rungs_of(epochs: int) -> list[int]:
    """The epochs after which equations are dropped, as increasing whole numbers.

    >>> rungs_of(200), rungs_of(20), rungs_of(2)
    ([20, 40, 80], [2, 4, 8], [1])
    """
    ends = {math.ceil(share * epochs) for share in RUNGS}
    return sorted(end for end in ends if end < epochs)


def train_lines(
    data: NodeData,
    lines: Sequence[tuple[int, Line]],
    base: Config,
    *,
    splits: Sequence[int],
    seed: int,
    device: str,
    progress: Callable[[float], None] = lambda share: None,
    tell: Callable[[str], object] = warnings.warn,
) -> list[EquationResult]:
    """Train numbered equations; returns their results in the same order.

    Args:
        data: The data set.
        lines: Equations with their numbers.
        base: The network around them and its training.
        splits: The splits on which every equation is trained.
        seed: The seed of the trainings.
        device: cpu, cuda or cuda:N.
        progress: Called with the finished share.
        tell: Called with messages for the user.

    Returns:
        A result for each; an equation that cannot be trained has failed, with the reason.
    """
    if not lines:
        return []

    def report(now: EquationProgress) -> None:
        progress(now.share)

    epochs = base.training.epochs
    results = train_equations(
        [line.system for _, line in lines], data, line_config(base, lines[0][1]), splits=splits, epochs=epochs,
        rungs=rungs_of(epochs), keep=KEEP, seed=seed, device=device, on_progress=report, tell=tell,
    )  # fmt: skip
    return [_numbered(number, result, epochs) for (number, _), result in zip(lines, results, strict=True)]


def _numbered(number: int, one: EquationResult, epochs: int) -> EquationResult:
    """The result with its number; one that diverged and was dropped counts as dropped.

    >>> _numbered(3, EquationResult(0, DIVERGED, 7, (0.5,), (0.5,), ((20, 0.5),)), 200).state
    'pruned'
    """
    is_dropped = one.state == DIVERGED and one.rungs[-1][0] < epochs
    return replace(one, number=number, state=PRUNED if is_dropped else one.state)
