"""A comparison as a study: every contestant on the same splits, resumed where it was left."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from gread.settings.gread_settings import GreadSettings
from rdgraph.engines.engine import Engine
from rdgraph.wording import counted
from studies.contest.contest_figures import accuracy_chart, accuracy_figure, curves_chart, curves_figures
from studies.contest.contest_plan import ContestPlan
from studies.contest.contest_rows import TABLE_CAPTION, Entry, Hears, enter, table_rows
from studies.contest.contestants import REFERENCES, Contestant
from studies.runs.cell_work import each_cell
from studies.runs.pairing import Paired, split_means
from studies.runs.run_folder import prepare
from studies.runs.study import Study, perform
from studies.runs.study_run import StudyRun
from studies.runs.tables import MutableRow, Row, read_rows
from studies.runs.uncertainty import HOLDS, UNDECIDED
from studies.training.reference_answers import article, undecided_words

CHECKPOINTS, TABLE = "checkpoints", "table"


def execute_contest(
    plan: ContestPlan,
    folder: Path,
    *,
    progress: Hears | None = None,
    tell: Callable[[str], object] | None = None,
    engine: Engine | None = None,
) -> list[Row]:
    """Compare what the plan says in a folder, anew or from where it was left; returns the rows of the table.

    `progress` hears of every training, `tell` who is next; neither of what another `engine` does. Ctrl-C leaves a valid
    folder.
    """
    config = plan.run_config
    if prepare(folder, config) != "done":
        perform(contest_study(plan, progress, tell), config, folder, engine=engine)
        shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    return list(read_rows(folder / f"{TABLE}.csv"))


def contest_study(
    plan: ContestPlan, progress: Hears | None = None, tell: Callable[[str], object] | None = None
) -> Study:
    """The study of one plan."""
    names = ", ".join(one.title for one in plan.contestants)
    return Study(
        "compare",
        f"Compared on {plan.dataset}: {names}",
        f"Which of {names} classifies the nodes of {plan.dataset} best, on the same splits, and at what cost?",
        partial(run, plan=plan, progress=progress, tell=tell),
        extra="gread",
        commands=lambda config, folder: (plan.command(folder), plan.command(folder)),
    )


def run(
    run: StudyRun, plan: ContestPlan, progress: Hears | None = None, tell: Callable[[str], object] | None = None
) -> None:
    """Train every network, ask every reference, and write tables, figures and verdicts."""
    results: dict[str, list[MutableRow]] = {}
    curves: dict[str, list[MutableRow]] = {}
    costs: dict[str, MutableRow] = {}
    here = partial(_entered, plan=plan, progress=progress, tell=tell)
    for one, entry in each_cell(run, plan.contestants, here, "contestants", partial(_entered, plan=plan)):
        results[one.name], curves[one.name], costs[one.name] = entry.results, entry.curves, entry.cost[0]
    table = table_rows(plan.contestants, results, costs)
    first, *further = sentences(plan.contestants, results)
    run.answer(first, "accuracy")
    if further:
        run.say("Result", "\n\n".join(further))
    run.table(TABLE, table, TABLE_CAPTION)
    for one in plan.contestants:
        if one.config is not None and isinstance(one.config.model, GreadSettings):
            run.equation(one.config.model.reaction, one.title)
    picture, rows = accuracy_figure(plan.contestants, results)
    caption = "Test accuracy of every trial (dots, one colour a split) and the mean with its standard error."
    run.figure("accuracy", picture, caption, rows, accuracy_chart(plan.contestants, results))
    drawn = curves_figures(plan.contestants, curves, table)
    if drawn is not None:
        picture, rows = drawn
        run.figure(
            "learning", picture,
            "Learning curves side by side: mean accuracy over the trials, band from the least to the largest on the "
            "validation nodes; dotted, the references' mean test accuracy.", rows,
            curves_chart(plan.contestants, curves, table),
        )  # fmt: skip
    for statement, answer, evidence in verdicts(plan.contestants, results):
        run.verdict(statement, answer, evidence)
    run.results([
        {"name": one.name, **row} for one in plan.contestants for row in results[one.name]
    ])  # fmt: skip


def _entered(
    run: StudyRun,
    one: Contestant,
    *,
    plan: ContestPlan,
    progress: Hears | None = None,
    tell: Callable[[str], object] | None = None,
) -> Entry:
    """What a contestant did, computed once, and only where a part is missing."""

    @cache
    def made() -> Entry:
        if tell is not None:
            tell(f"{one.title} ({one.source or 'no settings'})")
        return enter(plan, one, run.folder / CHECKPOINTS / one.key, progress, tell)

    results = run.part(f"results-{one.key}", lambda: made().results)
    curves = run.part(f"curves-{one.key}", lambda: made().curves)
    return Entry(results, curves, run.part(f"cost-{one.key}", lambda: made().cost))


# ---------------------------------------------------------------------- words
def sentences(contestants: Sequence[Contestant], results: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Who is ahead, how references and networks are to each other, and who was cut off before its time."""
    means = {one.name: split_means(results[one.name]) for one in contestants}
    average = {one.name: sum(means[one.name].values()) / len(means[one.name]) for one in contestants}
    cut = {one.name: one.cut_off(results[one.name]) for one in contestants}
    best = max(contestants, key=lambda one: average[one.name])
    alike = [one.title for one in contestants if one is not best and _is_open(means[best.name], means[one.name])]
    apart = f", not told apart from {', '.join(alike)}" if alike else ""
    found = [f"The highest mean test accuracy is {best.title}'s, {average[best.name]:.2f} %{apart}."]
    for reference in (one for one in contestants if one.name in REFERENCES):
        for one in contestants:
            gap = Paired.of(means[reference.name], means[one.name])
            if one.name in REFERENCES or math.isnan(gap.difference) or gap.difference == 0:
                continue
            title = reference.title.capitalize()
            if gap.answer == HOLDS:
                ended = f", {cut[one.name]}" if cut[one.name] else ""
                found.append(f"{title} beats {one.title}{ended}: {gap.text}.")
            elif gap.answer == UNDECIDED:
                found.append(f"{title} against {one.title}: {gap.text}{undecided_words(gap)}.")
    if told := [f"{one.title} was {cut[one.name]}" for one in contestants if cut[one.name]]:
        found.append(f"{', '.join(told)}: that alone may put {'it' if len(told) == 1 else 'them'} below others.")
    return found


def _is_open(best: Mapping[int, float], other: Mapping[int, float]) -> bool:
    """Whether the splits leave open which of two is better."""
    return Paired.of(best, other).answer == UNDECIDED


def verdicts(
    contestants: Sequence[Contestant], results: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[tuple[str, str, str]]:
    """Is the first of them better than each of the others, for all that the splits tell?

    Undecided where the one that is below was cut off before its time.
    """
    first, *others = contestants
    own, found = split_means(results[first.name]), []
    several = f" Not corrected for the number of comparisons, {len(others)}." if len(others) > 1 else ""
    for one in others:
        gap = Paired.of(own, split_means(results[one.name]))
        evidence = (
            f"Mean difference {gap.text} over {counted(gap.splits, 'split')}; Student's interval at 95 % reaches "
            f"{gap.reach:.2f} to both sides. Splits share nodes, so that it may be too narrow.{several}"
        )
        below = one if gap.difference > 0 else first
        answer, cut = gap.answer, below.cut_off(results[below.name])
        if cut and answer != UNDECIDED:
            answer, evidence = UNDECIDED, f"{evidence} {below.title} was {cut}."
        statement = f"{first.title} is more accurate than {article(one.title)} on the same splits."
        found.append((statement, answer, evidence))
    return found
