"""Checkpoints: everything that training changes in an ensemble, as a bundle; a kill never leaves half a checkpoint."""

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
#: Prefix of the names in the state at the start of a chunk.
START = "start."
#: The approximate largest share of the time of a training that saving may use.
SHARE_OF_TIME = 0.25


def fingerprint(datas: list[NodeData], trials: list[Trial], options: str = "") -> str:
    """Digest of data, trials and the options as text; a checkpoint with another digest is refused."""
    digest = hashlib.sha256(options.encode())
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


def options_text(dtype: torch.dtype, *, keep_best: bool) -> str:
    """The precision and the option `keep_best` of a training as text, for `fingerprint`."""
    return f"{dtype} keep_best={keep_best}"


def save_checkpoint(path: Path, ensemble: Ensemble, mark: str) -> None:
    """Write the state as the bundle `path`, NAME.json, replacing an older one."""
    words = {"fingerprint": mark, "epoch": ensemble.epoch, "degree": ensemble.model.degree, "torch": torch.__version__}
    started = {f"{START}{name}": value for name, value in (ensemble.started or {}).items()}
    save_bundle(path, FORMAT, words, ensemble.state | started)


def load_checkpoint(path: Path, ensemble: Ensemble, mark: str) -> bool:
    """Load a saved state into an ensemble; False if there is none. The state of another training is an error."""
    if not path.exists():
        return False
    bundle = load_bundle(path, FORMAT, WHAT)
    if bundle.words.get("fingerprint") != mark:
        raise FileError(
            f"expected a checkpoint of these trials on this data in {path}, got one of another training; "
            "remove it, or choose another folder"
        )
    wrong = _wrong_with(bundle, ensemble)
    if wrong:
        raise FileError(f"expected a checkpoint in {path}, got one with {wrong}; remove it")
    started = _started(bundle)
    ensemble.model.degree = bundle.words["degree"]
    ensemble.started = {n: v.to(ensemble.state[n].device) for n, v in started.items()} if started else None
    ensemble.restore({name: value for name, value in bundle.numbers.items() if not name.startswith(START)})
    return True


def _started(bundle: Bundle) -> dict[str, Tensor]:
    return {n.removeprefix(START): v for n, v in bundle.numbers.items() if n.startswith(START)}


def _wrong_with(bundle: Bundle, ensemble: Ensemble) -> str:
    """Why a checkpoint does not belong to this ensemble; "" if it does."""
    epoch, degree = bundle.words.get("epoch"), bundle.words.get("degree")
    if type(epoch) is not int or not 0 <= epoch <= ensemble.epochs:
        return f"the epoch {epoch!r} of {ensemble.epochs}"
    if type(degree) is not int or not 0 <= degree <= max(ensemble.model.whole, ensemble.model.degree):
        return f"polynomials of degree {degree!r}"
    current = {name: value for name, value in bundle.numbers.items() if not name.startswith(START)}
    states, steps = [current], [epoch]
    if epoch % CHUNK and epoch < ensemble.epochs and degree < ensemble.model.whole:
        states.append(_started(bundle))
        steps.append(epoch - epoch % CHUNK)
    elif len(current) != len(bundle.numbers):
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
    """Decides when to save; a full disk costs the checkpoint, not the training.

    Saves are at least `every` seconds apart, and at least four times as long as the last save took, so that large
    states are saved less often; with `every` 0 every opportunity is used.
    """

    def __init__(self, every: float, tell: Callable[[str], object]) -> None:
        self._every, self._tell = every, tell
        self._last, self._took, self._is_failing = time.monotonic(), 0.0, False

    @property
    def is_time(self) -> bool:
        wait = max(self._every, self._took / SHARE_OF_TIME) if self._every else 0.0
        return time.monotonic() - self._last >= wait

    def write(self, save: Callable[[], None]) -> bool:
        """Save now; returns whether it could be written."""
        began = time.monotonic()
        try:
            save()
        except FileError as problem:
            if not self._is_failing:
                self._tell(f"no checkpoint was written; the training continues: {problem}")
            self._is_failing = True
        else:
            if self._is_failing:
                self._tell("checkpoints are written again")
            self._is_failing = False
        self._last = time.monotonic()
        self._took = self._last - began
        return not self._is_failing


class Saver:
    """Saves the state of one batch regularly; resumes from an existing checkpoint.

    `at_end` says whether the state of a finished batch is saved as well.
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
        options = options_text(ensemble.learning_rates.dtype, keep_best=ensemble.keep_best)
        self.mark = "" if self.path is None else fingerprint(datas, ensemble.trials, options)
        if self.path is not None and load_checkpoint(self.path, ensemble, self.mark):
            self.saved = ensemble.epoch

    def tick(self, *, must_save: bool = False) -> None:
        """Save if it is time, the end is reached, or `must_save`."""
        epoch = self.ensemble.epoch
        if self.path is None or epoch == self.saved:
            return
        is_wanted = must_save or self._pace.is_time or (self._at_end and self.ensemble.is_done)
        if is_wanted and self._pace.write(partial(save_checkpoint, self.path, self.ensemble, self.mark)):
            self.saved = epoch
