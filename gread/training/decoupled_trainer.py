"""`train_decoupled`: trials of linear equations on propagated features, with the results that `train` gives."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gread.datasets.given_data import read_data
from gread.datasets.meta import ACCURACY
from gread.datasets.node_data import NodeData
from gread.datasets.variants import row_normalised
from gread.models.problem import check
from gread.models.resolution import resolve_trials
from gread.settings.gread_settings import GreadSettings
from gread.settings.trials import Trial
from gread.training.decoupled import DecoupledTraining, Fitted, check_decoupled
from gread.training.trainer import Progress, Trained, choose_device
from rdgraph import Powers, propagate
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.integrators.polynomial_flow import TOLERANCE


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
    batch and without input dropout the results are those of `train`, up to rounding; `input_dropout` drops whole
    columns of the features here, the same at all nodes, which commutes with A as dropping single entries does not.

    Args:
        data: The data set.
        trials: What is trained, one after another; equal operators share their powers.
        batch: Training nodes per step of Adam; all of them by default.
        folder: Where the powers are kept, so that they are there the next time; by default they are temporary.
        device: "auto" takes a GPU where there is one.
        precision: That of the powers on the disk, float32 or float16.
        progress: Hears of every epoch.
        tell: Hears how far polynomials were taken, and what is left out of them where that is not negligible.
        dtype: The precision of parameters and states.
        memory: Bytes that rows of the powers may take in memory; a share of what is free by default.

    Returns:
        The results, in the order of the trials; their networks are those that `train` makes.

    Raises:
        NotApplicable: For networks whose training cannot be decoupled, with the reason.
        InvalidArgument: For trials and data that do not fit together.

    >>> from gread.datasets.embedded import karate
    >>> from gread.settings.config import Config
    >>> config = Config().updated({"adjacency": "original", "input_dropout": 0.0, "hidden": 8, "epochs": 5})
    >>> done = train_decoupled(karate(), [Trial(config)], batch=4, device="cpu")
    >>> done.history.shape, done.status
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
    place, started = choose_device(device), time.monotonic()
    epochs = [trial.config.training.epochs for trial in chosen]
    fitted: list[Fitted] = []
    with ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory())) if folder is None else Path(folder)
        for k, trial in enumerate(chosen):
            extend = partial(_powers, data, trial.config.gread, base, place, precision)

            def hear(epoch: int, loss: float, val: float, k: int = k) -> None:
                if progress is not None:
                    seconds = time.monotonic() - started
                    progress(Progress(sum(epochs[:k]) + epoch, sum(epochs), k, len(chosen), loss, val, seconds))

            training = DecoupledTraining(
                extend(1), data.y, data.masks, trial, classes=data.num_classes, batch=batch, device=place, dtype=dtype,
                extend=extend, memory=memory,
            )  # fmt: skip
            fitted.append(training.run(hear))
            del training
    worst = max(one.left_out for one in fitted)
    if worst > TOLERANCE:
        tell(f"polynomials of degree {max(one.degree for one in fitted)} left out up to {worst:.1e} of the gain")
    return _gathered(data, chosen, reasons, fitted, time.monotonic() - started)


def _powers(data: NodeData, settings: GreadSettings, base: Path, device: str, precision: str, degree: int) -> Powers:
    """The powers of a data set's features up to a degree at least, from their folder or made."""
    words = (settings.normalisation, f"{settings.self_loops:g}", "row" if settings.row_features else "raw", precision)
    x: Any = row_normalised(data.x) if settings.row_features else data.x
    return propagate(
        data.graph, x, degree=degree, out=base / "-".join(words), normalisation=settings.normalisation,
        self_loops=settings.self_loops, precision=precision, device=device,
    )  # fmt: skip


def _gathered(data: NodeData, trials: list[Trial], reasons: list[str], fitted: list[Fitted], seconds: float) -> Trained:
    longest = max(len(one.history) for one in fitted)
    history = np.full((len(fitted), longest, fitted[0].history.shape[1]), np.nan, dtype=np.float32)
    for row, one in zip(history, fitted, strict=True):
        row[: len(one.history)] = one.history
    return Trained(
        data, tuple(trials), np.array([one.best_epoch for one in fitted]),
        np.array([one.val_accuracy for one in fitted]), np.array([one.test_accuracy for one in fitted]),
        tuple(one.status for one in fitted), history, np.array([len(one.history) for one in fitted]), seconds,
        tuple(one.parameters for one in fitted), tuple(reasons), (data.num_classes,) * len(fitted),
    )  # fmt: skip
