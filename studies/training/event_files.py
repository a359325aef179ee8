"""Event files for TensorBoard: how far a training is while it runs, and the curves of every trial at its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gread.training.ensemble import METRICS
from rdgraph.errors import UnknownName
from studies.runs.libraries import require

if TYPE_CHECKING:
    from gread.training.trainer import Progress, Trained

#: What `--log` may name, and the folder of its files in that of the run.
TENSORBOARD = "tensorboard"
LOGS = (TENSORBOARD,)
PURPOSE = "event files of TensorBoard: curves of every trial, and of the batches while they ran"


def check_log(log: str | None) -> None:
    """Whether there is such a log, and the library that writes it; before anything is trained."""
    if log is None:
        return
    if log not in LOGS:
        raise UnknownName("log", log, LOGS)
    require("event files", TENSORBOARD)


class EventFiles:
    """Writes event files below a folder; `tensorboard --logdir FOLDER` shows them."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.folder = folder
        self._live = SummaryWriter(str(folder / "batches"))

    def hear(self, progress: Progress) -> None:
        """How far a training is: means over the members of a batch."""
        batch = f"batch {progress.batch}"
        for name, value in (("loss", progress.loss), ("val_accuracy", progress.val_accuracy)):
            self._live.add_scalar(f"{name}/{batch}", value, progress.epoch)
        self._live.flush()

    def write(self, done: Trained) -> None:
        """The curves of every trial, each as a run of its own; epochs count from 1."""
        from torch.utils.tensorboard import SummaryWriter

        self._live.close()
        for trial, curves in zip(done.trials, done.history, strict=True):
            with SummaryWriter(str(self.folder / f"split{trial.split}-seed{trial.seed}")) as writer:
                for epoch, values in enumerate(curves.tolist(), 1):
                    for name, value in zip(METRICS, values, strict=True):
                        if value == value:
                            writer.add_scalar(name, value, epoch)
