"""Checkpoints: all that changes in an ensemble, as a bundle; a kill never leaves half of one."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from scipy.sparse import csr_array
from torch import Tensor

from gread.datasets.meta import ACCURACY
from gread.datasets.node_data import NodeData
from gread.models.bundle import Bundle, load_bundle, save_bundle
from gread.settings.trials import Trial
from gread.training.ensemble import CHUNK, Ensemble
from rdgraph.errors import FileError

FORMAT, WHAT = "gread checkpoint 2", "a checkpoint"
#: What the names of the state at the start of a chunk begin with.
START = "start."
#: The most that saving may take of the time of a training, about: a kill costs half a minute up to gigabytes of state.
SHARE_OF_TIME = 0.25


def fingerprint(datas: list[NodeData], trials: list[Trial], manner: str = "") -> str:
    """Digest of data, trials, precision and `keep_best`; a checkpoint with another digest is refused."""
    digest = hashlib.sha256(manner.encode())
    for trial in trials:
        digest.update(f"{trial.split} {trial.seed}\n{trial.config.toml()}".encode())
    for data in datas:
        if data.meta.metric != ACCURACY:
            digest.update(data.meta.metric.encode())
        x = data.x
        features: list[Any] = [x.data, x.indices, x.indptr] if isinstance(x, csr_array) else [x]
        masks = [data.masks.train, data.masks.val, data.masks.test]
        arrays = [data.graph.edge_index, data.graph.weight, data.y, *masks, *features]
        for array in arrays:
            digest.update(str(array.shape).encode() + array.tobytes())
    return digest.hexdigest()


def manner_of(dtype: torch.dtype, *, keep_best: bool) -> str:
    """The precision and the option `keep_best` of a training as text, for its fingerprint."""
    return f"{dtype} keep_best={keep_best}"


def save_checkpoint(path: Path, ensemble: Ensemble, mark: str) -> None:
    """Write the state as the bundle `path`, NAME.json, in the place of an older one."""
    words = {"fingerprint": mark, "epoch": ensemble.epoch, "degree": ensemble.model.degree, "torch": torch.__version__}
    started = {f"{START}{name}": value for name, value in (ensemble.started or {}).items()}
    save_bundle(path, FORMAT, words, ensemble.state | started)


def load_checkpoint(path: Path, ensemble: Ensemble, mark: str) -> bool:
    """Put a saved state into an ensemble; False where there is none. Another training's state is an error."""
    if not path.exists():
        return False
    found = load_bundle(path, FORMAT, WHAT)
    if found.words.get("fingerprint") != mark:
        raise FileError(
            f"expected a checkpoint of these trials on this data in {path}, got one of another training; "
            "remove it, or choose another folder"
        )
    wrong = _wrong_with(found, ensemble)
    if wrong:
        raise FileError(f"expected a checkpoint in {path}, got one with {wrong}; remove it")
    started = _started(found)
    ensemble.model.degree = found.words["degree"]
    ensemble.started = {n: v.to(ensemble.state[n].device) for n, v in started.items()} if started else None
    ensemble.restore({name: value for name, value in found.numbers.items() if not name.startswith(START)})
    return True


def _started(found: Bundle) -> dict[str, Tensor]:
    return {n.removeprefix(START): v for n, v in found.numbers.items() if n.startswith(START)}


def _wrong_with(found: Bundle, ensemble: Ensemble) -> str:
    """What keeps a checkpoint from being one of this ensemble, in words; "" where nothing does."""
    epoch, degree = found.words.get("epoch"), found.words.get("degree")
    if type(epoch) is not int or not 0 <= epoch <= ensemble.epochs:
        return f"the epoch {epoch!r} of {ensemble.epochs}"
    if type(degree) is not int or not 0 <= degree <= max(ensemble.model.whole, ensemble.model.degree):
        return f"polynomials of degree {degree!r}"
    now = {name: value for name, value in found.numbers.items() if not name.startswith(START)}
    states, steps = [now], [epoch]
    if epoch % CHUNK and epoch < ensemble.epochs and degree < ensemble.model.whole:
        states.append(_started(found))
        steps.append(epoch - epoch % CHUNK)
    elif len(now) != len(found.numbers):
        return "a state that does not belong there"
    for state, step in zip(states, steps, strict=True):
        if wrong := _wrong_with_state(state, ensemble, step):
            return wrong
    return ""


def _wrong_with_state(state: dict[str, Tensor], ensemble: Ensemble, step: int) -> str:
    if different := sorted(set(state) ^ set(ensemble.state)):
        return f"{different[0]} {'missing' if different[0] in ensemble.state else 'too many'}"
    for name, value in ensemble.state.items():
        if (state[name].shape, state[name].dtype) != (value.shape, value.dtype):
            return f"{name} of shape {tuple(state[name].shape)} and {state[name].dtype}"
    if int(state["step"]) != step:
        return f"{int(state['step'])} steps after epoch {step}"
    for name, least in (("best_epoch", 0), ("failed_at", -1)):
        if not bool(((state[name] >= least) & (state[name] <= step)).all()):
            return f"{name} outside of {least}..{step}"
    return ""


class SavingPace:
    """When it is time to save, and what a disk that is full costs: the checkpoint, not the training.

    After some seconds it is time, and not before four times those that the last save took, so that large states are
    saved less often; with `every` 0 always.
    """

    def __init__(self, every: float, tell: Callable[[str], object]) -> None:
        self._every, self._tell = every, tell
        self._last, self._took, self._is_failing = time.monotonic(), 0.0, False

    @property
    def is_time(self) -> bool:
        wait = max(self._every, self._took / SHARE_OF_TIME) if self._every else 0.0
        return time.monotonic() - self._last >= wait

    def write(self, save: Callable[[], None]) -> bool:
        """Save now; whether it could be written."""
        began = time.monotonic()
        try:
            save()
        except FileError as problem:
            if not self._is_failing:
                self._tell(f"no checkpoint was written, and the training goes on: {problem}")
            self._is_failing = True
        else:
            if self._is_failing:
                self._tell("checkpoints are written again")
            self._is_failing = False
        self._last = time.monotonic()
        self._took = self._last - began
        return not self._is_failing


class Saver:
    """Writes the state of one batch now and then; starts by looking for an older one.

    `at_end` says whether the state of a batch that is done is written, too.
    """

    def __init__(
        self,
        folder: Path | None,
        number: int,
        ensemble: Ensemble,
        datas: list[NodeData],
        every: float,
        tell: Callable[[str], object],
        *,
        at_end: bool = True,
    ) -> None:
        self.path = None if folder is None else Path(folder) / f"batch-{number}.json"
        self.ensemble, self.saved, self._pace, self._at_end = ensemble, 0, SavingPace(every, tell), at_end
        manner = manner_of(ensemble.learning_rates.dtype, keep_best=ensemble.keep_best)
        self.mark = "" if self.path is None else fingerprint(datas, ensemble.trials, manner)
        if self.path is not None and load_checkpoint(self.path, ensemble, self.mark):
            self.saved = ensemble.epoch

    def tick(self, *, must_save: bool = False) -> None:
        """Save where it is time, the end is reached, or it has to be."""
        epoch = self.ensemble.epoch
        if self.path is None or epoch == self.saved:
            return
        is_wanted = must_save or self._pace.is_time or (self._at_end and self.ensemble.is_done)
        if is_wanted and self._pace.write(partial(save_checkpoint, self.path, self.ensemble, self.mark)):
            self.saved = epoch
