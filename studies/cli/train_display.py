"""Progress of a running training: a live table on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table

from rdgraph.status_line import BAR, StatusLine
from rdgraph.wording import duration
from studies.runs.tables import number_text

if TYPE_CHECKING:
    from gread.training.trainer import Progress
    from gread.tuning.searching import SearchProgress


# ---------------------------------------------------------------------- train display
class Display(StatusLine):
    """Progress of a training: a live table on a terminal, occasional lines elsewhere.

    >>> import io
    >>> from gread.training.trainer import Progress
    >>> text = io.StringIO()
    >>> with Display(Console(file=text, width=100)) as display:
    ...     display.update(Progress(40, 40, 0, 1, 0.5, 0.8125, 1.5))
    ...     display.stage("drawing the states")
    >>> print(text.getvalue())
    epoch 40 of 40, loss 0.5000, validation 81.25 % (0 s)
    drawing the states (0 s)
    <BLANKLINE>

    `update` takes the name of the network if it is a baseline, such as the MLP; `stage` shows the work before and after
    the epochs.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(console=console)
        self.latest: Progress | None = None
        self.what = ""

    def update(self, progress: Progress, what: str = "") -> None:
        """Show the progress of a training, with the name of a baseline in `what`."""
        self.latest, self.what = progress, what
        from gread.training.trainer import training_text

        self.say((f"{what}: " if what else "") + training_text(progress))
        if self._ticker is not None and progress.epoch >= progress.epochs:
            self.write()

    def stage(self, text: str) -> None:
        self.latest = None
        super().stage(text)

    def drawn(self) -> RenderableType:
        """Bar, epochs, batch, loss, validation accuracy, time and remaining time; or the stage and the time."""
        p = self.latest
        if p is None:
            return super().drawn()
        table = Table(box=box.SIMPLE_HEAD)
        for k, heading in enumerate((self.what or "training", "epoch", "batch", "loss", "validation", "time", "left")):
            table.add_column(heading, justify="right" if k else "left", no_wrap=True)
        table.add_row(
            ProgressBar(total=p.epochs, completed=p.epoch, width=BAR), f"{p.epoch}/{p.epochs}",
            f"{p.batch + 1} of {p.batches}", number_text(p.loss, ".4f"), _percent(p.val_accuracy),
            duration(self.seconds), duration(p.seconds * (p.epochs - p.epoch) / p.epoch) if p.epoch else "",
        )  # fmt: skip
        return table


def _percent(share: float) -> str:
    """
    >>> _percent(0.8125), _percent(float("nan"))
    ('81.25 %', '-')
    """
    return number_text(100 * share) + ("" if math.isnan(share) else " %")


# ---------------------------------------------------------------------- search display


class SearchDisplay(StatusLine):
    """Progress of a search: a bar on a terminal, lines elsewhere, with the best trial and the remaining time.

    >>> import io
    >>> from gread.tuning.searching import SearchProgress
    >>> text = io.StringIO()
    >>> with SearchDisplay(Console(file=text, width=100)) as display:
    ...     display.update(SearchProgress(50, 50, 0.8125, 3, 40, 0))
    >>> text.getvalue()
    'searching: 50 of 50 trials, best validation 81.25 % (trial 3), 0 s left (0 s)\\n'
    """

    #: The text before the first progress.
    doing = "searching"

    def __init__(self, console: Console) -> None:
        super().__init__(self.doing, console=console)

    def update(self, progress: Any) -> None:
        """Show a progress, described by `described`, with its finished trials and their total."""
        self.say(self.described(progress), progress.trials, progress.total)
        if self._ticker is not None and progress.trials >= progress.total:
            self.write()

    @staticmethod
    def described(p: SearchProgress) -> str:
        return f"{p.text}{p.left}"
