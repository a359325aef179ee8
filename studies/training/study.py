"""A training as a study: its run folder holds results, metrics, a network, predictions, figures and the report.

The folder is valid at any moment. An interrupted training resumes from its checkpoints with the same results.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gread.comparison import UNDECIDED
from gread.settings.gread_settings import GreadSettings
from gread.settings.model_records import find_model
from gread.training.decoupled import train_decoupled
from gread.training.ensemble import METRICS
from gread.training.trainer import EVERY, Progress, Trained, train
from rdgraph.errors import Diverged, NotApplicable, UnknownName
from rdgraph.run.engines.engine import silent
from rdgraph.wording import counted
from studies.runs.libraries import require
from studies.runs.report import Passage
from studies.runs.run_config import prepare
from studies.runs.study import Study, perform
from studies.runs.study_run import StudyRun
from studies.runs.tables import Row, write_rows
from studies.training import learned_tables, predictions, training_figures
from studies.training.choices import folder_name
from studies.training.plan import TrainingPlan
from studies.training.reference_answers import FILE as REFERENCES
from studies.training.reference_answers import read_references, reference_rows
from studies.training.training_figures import Drawing
from studies.training.training_summary import (
    SHEET,
    first_sound,
    in_percent,
    read_results,
    result_rows,
    sound_trials,
    summarise,
    summary_rows,
    verdicts,
    write_metrics,
)

if TYPE_CHECKING:
    from gread.training.trainer import Progress, Trained


# ---------------------------------------------------------------------- event files
# Event files for TensorBoard: the progress of a running training, and the curves of every trial at its end.

#: Values of `--log`, which also name the folder of their files.
TENSORBOARD = "tensorboard"
LOGS = (TENSORBOARD,)
PURPOSE = "event files of TensorBoard: curves of every trial and of the batches"


def check_log(log: str | None) -> None:
    """Raise an error for an unknown log, or if its library is not installed."""
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

    def update(self, progress: Progress) -> None:
        """Write a progress: means over the members of a batch."""
        batch = f"batch {progress.batch}"
        for name, value in (("loss", progress.loss), ("val_accuracy", progress.val_accuracy)):
            self._live.add_scalar(f"{name}/{batch}", value, progress.epoch)
        self._live.flush()

    def write(self, done: Trained) -> None:
        """Write the curves of every trial as separate runs; epochs count from 1."""
        from torch.utils.tensorboard import SummaryWriter

        self._live.close()
        for trial, curves in zip(done.trials, done.history, strict=True):
            with SummaryWriter(str(self.folder / f"split{trial.split}-seed{trial.seed}")) as writer:
                for epoch, values in enumerate(curves.tolist(), 1):
                    for name, value in zip(METRICS, values, strict=True):
                        if value == value:
                            writer.add_scalar(name, value, epoch)


# ---------------------------------------------------------------------- study
#: Called with the progress of a training.
OnProgress = Callable[[Progress], None]
#: Called with the name of the current stage.
Stage = Callable[[str], object]

CHECKPOINTS, POWERS = "checkpoints", "powers"
#: The files of a training in addition to those of every study.
FILES = {
    "config.toml": "settings; --preset reads it",
    "results.csv": "a row per trial",
    "metrics.parquet": "a row per trial and epoch",
}
NETWORK = "the network of the first trial that did not diverge, at its best epoch; gread.Network.load reads it"


def execute(
    plan: TrainingPlan,
    folder: Path,
    *,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    reference_progress: Callable[[Progress, str], None] | None = None,
    tell: Callable[[str], object] = warnings.warn,
    every: float = EVERY,
    log: str | None = None,
    stage: Stage = silent,
    has_references: bool = True,
    has_figures: bool = True,
) -> list[Row]:
    """Rows of results.csv of a training, run in a new folder or resumed in its own.

    `progress` and `tell` are those of `gread.training.trainer.train`; `reference_progress` is called with the progress
    and the name of every baseline network, and `stage` with the stages before and after the epochs; `log` is one of
    `LOGS`. `has_references` and `has_figures` switch parts of the plan off. Ctrl-C and SIGTERM leave a valid folder
    and raise KeyboardInterrupt, Ctrl-C after a checkpoint; `kill -9` leaves the last checkpoint.
    """
    check_log(log)
    if prepare(folder, plan.run_config, resume=resume) != "done":
        events = None if log is None else EventFiles(folder / log)
        if events is not None:
            progress = both(progress, events.update)
        make: Callable[[], Trained] = partial(
            train, plan.data, plan.trials, device=plan.device, checkpoint=folder / CHECKPOINTS, every=every,
            progress=progress, tell=tell,
        )  # fmt: skip
        if plan.decoupled:  # products with the graph are stored for resuming
            make = partial(
                train_decoupled, plan.data, plan.trials, batch=plan.batch, folder=folder / CHECKPOINTS / POWERS,
                device=plan.device, progress=progress, tell=tell,
            )  # fmt: skip
        refer = partial(reference_rows, plan, reference_progress, stage) if has_references and plan.references else list
        perform(training_study(plan, make, refer, events, stage, has_figures and plan.figures), plan.run_config, folder)
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)  # also those of a run killed after its last file
    return read_results(folder, plan)


def training_study(
    plan: TrainingPlan,
    make: Callable[[], Trained],
    refer: Callable[[], Sequence[Row]] | None = None,
    events: EventFiles | None = None,
    stage: Stage = silent,
    has_figures: bool = True,
) -> Study:
    """The study of a plan; `make()` trains, `refer()` returns the rows of the baselines."""
    where = plan.preset.dataset
    what = f"the reaction {plan.reaction}" if plan.subject == plan.reaction else plan.title
    refer = refer or partial(reference_rows, plan)
    return Study(
        "train",
        f"Training {plan.reaction if plan.subject == plan.reaction else plan.title} on {where}",
        f"How well does {what} classify the nodes of {where}, and what did the network learn?",
        partial(run, plan=plan, make=make, refer=refer, events=events, stage=stage, has_figures=has_figures),
        extra="gread",
        commands=lambda config, folder: (plan.command(folder), f"rdgraph train --resume --out {folder}"),
    )


def both(first: OnProgress | None, second: OnProgress) -> OnProgress:
    """A callback that calls two others."""

    def update(progress: Progress) -> None:
        if first is not None:
            first(progress)
        second(progress)

    return update


def run(
    run: StudyRun, plan: TrainingPlan, make: Callable[[], Trained], refer: Callable[[], Sequence[Row]],
    events: EventFiles | None = None, stage: Stage = silent, has_figures: bool = True,
) -> None:  # fmt: skip
    """Train, compare with the baselines, and write the numbers, the network, the figures and the report."""
    stage("preparing the training")
    done = make()
    if events is not None:
        events.write(done)
        run.describe(f"{events.folder.name}/", PURPOSE)
    rows = result_rows(done)
    run.results(rows)
    references = read_references(run.folder) or refer()
    summary = summarise(plan, rows, references)
    first, *further = summary.sentences()
    baselines = () if summary.all_diverged else summary.references
    better = [one for one in baselines if one.is_better or one.paired.difference < 0]
    ahead = " and ".join(f"{one.method} scores {one.text} %" for one in better)
    apart = "" if any(one.paired.answer != UNDECIDED for one in better) else ", not significantly more"
    run.answer(f"{first} On the same splits {ahead}{apart}." if ahead else first)
    if further:
        run.say("Comparisons", "\n\n".join(further))
    run.table("summary", summary_rows(plan, summary), SHEET.text("summary"))
    if references:
        write_rows(run.folder / f"{REFERENCES}.csv", references)
        run.show(REFERENCES, SHEET.text("references"), [in_percent(row) for row in references])
    if plan.has_equation:
        run.equation(plan.reaction, plan.title)
    run.say("Method", about_method(plan))
    if bias := plan.selection_bias:
        run.say("Selection", bias)
    stage("writing results, the network and its predictions")
    write_metrics(run.folder / "metrics.parquet", done)
    for name, text in FILES.items():
        run.describe(name, text)
    first_trial = first_sound(done)
    if first_trial is not None:
        network = replace(done.network(first_trial), reason=plan.method_reason)
        network.save(run.folder / predictions.NETWORK)
        run.describe(f"{predictions.NETWORK}/", NETWORK)
        split = done.trials[first_trial].split
        predicted = predictions.Predictions.of(network, done.data_of(first_trial), split)
        predicted.write(run.folder / predictions.FILE)
        run.describe(predictions.FILE, predictions.CAPTION)
        if type(network.config) is GreadSettings:
            learned_tables.add_bounds(run, network, done.data_of(first_trial))
        if learned_tables.write_functions(run.folder, done, sound_trials(done)):
            run.describe(learned_tables.FILE, learned_tables.CAPTION)
    drawings, missing = draw_all(done, stage) if has_figures else ([], [])
    for number, drawing in enumerate(drawings, 1):
        stage(f"writing figure {number} of {len(drawings)}: {drawing.name}")
        drawing.add_to(run)
    stage("writing the report")
    if missing:
        run.say("Not drawn", "\n\n".join(missing))
    run.show("results", SHEET.text("results"), [in_percent(row) for row in rows])
    about = about_data(plan)
    run.say(about.heading, about.text)
    for verdict in verdicts(summary):
        run.verdict(verdict.statement, verdict.answer, verdict.evidence)
    run.record(training_seconds=round(done.seconds, 1))


def draw_all(done: Trained, stage: Stage = silent) -> tuple[list[Drawing], list[str]]:
    """The figures that can be drawn, and sentences about the others."""
    sound = sound_trials(done)
    makers: dict[str, Callable[[], Drawing | None]] = {
        "Learning curves": lambda: training_figures.learning_curves(done)
    }
    if sound:
        data, network = done.data_of(sound[0]), done.network(sound[0])
        if isinstance(network.config, GreadSettings):
            makers |= {
                "Coefficients": lambda: training_figures.coefficient_values(done, sound),
                "Learned functions": lambda: learned_tables.function_curves(done, sound),
                "Filter response": lambda: training_figures.response_lines(done, sound, data),
            }
        makers |= {
            "Confusion matrix": lambda: training_figures.confusion_matrix(done, sound),
            "States": lambda: training_figures.embedded_states(network, data, stage),
        }
    drawings, missing = [], [] if sound else ["Every trial diverged, so there is no network to draw."]
    for name, draw in makers.items():
        stage(f"drawing {name.lower()}")
        try:
            drawing = draw()
        except (Diverged, NotApplicable) as reason:
            missing.append(f"{name}: {reason}.")
            continue
        if drawing is not None:
            drawings.append(drawing)
    return drawings, missing


def about_method(plan: TrainingPlan) -> str:
    """The integration method and the reason for it; for a network without an equation its rule."""
    model = plan.config.model
    if not isinstance(model, GreadSettings):
        record = find_model(model.model)
        return f"{record.title} ({record.source}): {record.rule}."
    step = "" if model.step is None else f", step {model.step:.4g}"
    why = f"chosen from the equation: {plan.method_reason}" if plan.method_reason else "from the settings"
    blocks = f"{counted(model.blocks, 'block')}, in each " if model.is_stacked else ""
    how = f"{blocks}{model.method}{step}, to T = {model.time:g}; {why}."
    if not plan.decoupled:
        return how
    batch = "in one batch" if plan.batch is None else f"in batches of {plan.batch:,}"
    return f"{how} Decoupled: A is multiplied with the features once, then training nodes are used {batch}."


def about_data(plan: TrainingPlan) -> Passage:
    """The data, their splits, and known oddities."""
    data, meta = plan.data, plan.data.meta
    size = (
        f"{data.num_nodes:,} nodes, {data.graph.num_edges:,} directed edges, {data.num_features:,} features, "
        f"{data.num_classes} classes"
    )
    splits = f"Splits: {meta.split}." if meta.split else ""
    notes: Sequence[str] = [text for text in (splits, *meta.notes, *data.warnings()) if text]
    return Passage("The data", "\n\n".join([f"{meta.title or meta.name}: {size}.", *notes]))


def default_folder(plan: TrainingPlan, *, resume: bool = False, base: Path = Path("runs/train")) -> Path:
    """base/DATASET-SUBJECT-N with the first free number, or with the last used one to resume."""
    stem = folder_name(plan.preset.dataset, plan.subject)
    numbers = [int(rest) for path in base.glob(f"{stem}-*") if (rest := path.name.removeprefix(f"{stem}-")).isdecimal()]
    last = max(numbers, default=0)
    return base / f"{stem}-{max(1, last) if resume else last + 1}"
