"""How far a training is, while it runs: a live table on a terminal, lines elsewhere."""

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
    """How far a training is: a live table on a terminal, a line now and then elsewhere.

    >>> import io
    >>> from gread.training.trainer import Progress
    >>> text = io.StringIO()
    >>> with Display(Console(file=text, width=100)) as display:
    ...     display.hear(Progress(40, 40, 0, 1, 0.5, 0.8125, 1.5))
    ...     display.stage("drawing the states")
    >>> print(text.getvalue())
    epoch 40 of 40, loss 0.5000, validation 81.25 % (0 s)
    drawing the states (0 s)
    <BLANKLINE>

    `hear` is given the name of what is trained where it is not the network itself, such as the MLP it is compared with;
    `stage` shows what is under way before and after the epochs.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(console=console)
        self.latest: Progress | None = None
        self.what = ""

    def hear(self, progress: Progress, what: str = "") -> None:
        self.latest, self.what = progress, what
        from gread.training.trainer import training_text

        self.say((f"{what}: " if what else "") + training_text(progress))
        if self._ticker is not None and progress.epoch >= progress.epochs:
            self.write()

    def stage(self, text: str) -> None:
        self.latest = None
        super().stage(text)

    def drawn(self) -> RenderableType:
        """One row: bar, epochs, batch, loss, validation accuracy, time, time left; or the stage and the time."""
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
# How far a search is, while it runs: a bar on a terminal, lines elsewhere; with the best so far and the time left.


class SearchDisplay(StatusLine):
    """How far a search is.

    >>> import io
    >>> from gread.tuning.searching import SearchProgress
    >>> text = io.StringIO()
    >>> with SearchDisplay(Console(file=text, width=100)) as display:
    ...     display.hear(SearchProgress(50, 50, 0.8125, 3, 40, 0))
    >>> text.getvalue()
    'searching: 50 of 50 trials, best validation 81.25 % (trial 3), 0 s left (0 s)\\n'
    """

    #: What is under way.
    doing = "searching"

    def __init__(self, console: Console) -> None:
        super().__init__(self.doing, console=console)

    def hear(self, progress: Any) -> None:
        """Show a progress with the trials that are done and their total, in the words of `described`."""
        self.say(self.described(progress), progress.trials, progress.total)
        if self._ticker is not None and progress.trials >= progress.total:
            self.write()

    @staticmethod
    def described(p: SearchProgress) -> str:
        return f"{p.text}{p.left}"
