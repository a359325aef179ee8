"""`discover`: trains the safe equations of a grammar, each behaviour once, and chooses by validation accuracy.

Equations are examined, trained and saved round by round; an interrupted search resumes after its last finished round.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from gread.datasets.node_data import NodeData, read_data, read_splits
from gread.discovery.behaviours import Behaviours
from gread.discovery.discovery_plan import (
    ROUND,
    Discovered,
    DiscoveryPlan,
    DiscoveryProgress,
    TriedLine,
    line_record,
    order_of,
    read_line,
)
from gread.discovery.equation_batches import EquationResult, train_lines
from gread.discovery.line_safety import LEFT_OUT, Examination, Examine, Safety
from gread.discovery.line_sampling import LineSampler, make_line_sampler
from gread.discovery.term_grammar import Line, Term, TermGrammar, find_terms
from gread.settings.config import Config
from gread.settings.gread_settings import GreadSettings
from gread.training.trainer import choose_device
from gread.tuning.selection import chosen
from gread.tuning.space import Value
from rdgraph.errors import FileError
from rdgraph.files import read_text, write_text

# ---------------------------------------------------------------------- examined ahead
# `AheadExamination`: equations examined by other processes before they are needed, with the same answers.
#
# Proofs take most of the time before a training, one processor each. While a round is trained, the next is examined.

#: Equations that a process takes at a time, and the most that wait for each process.
CHUNK, WAITING = 4, 32
#: The answer of a process about an equation: state, terms of the trained equation, finding, reason.
Answer = tuple[str, tuple[Term, ...], str, str]

_examination: list[Examination] = []


class AheadExamination:
    """Answers of `Examination`, computed ahead for equations that are known to come.

    Args:
        settings: The network.
        lines: The equations in the order of their requests; others are examined when requested.
        jobs: The number of processes; with 1 everything runs in this process.

    >>> from gread.discovery.term_grammar import find_terms
    >>> with AheadExamination(GreadSettings(), list(find_terms("small").lines(1)), jobs=1) as examine:
    ...     examine(find_terms("small").line([Term("H**3", "+")])).state
    'bounded'
    """

    def __init__(self, settings: GreadSettings, lines: Sequence[Line], jobs: int) -> None:
        self._examination = Examination(settings)
        self._settings, self._jobs = settings, jobs
        self._unsent = list(lines) if jobs > 1 else []
        self._answers: dict[Line, tuple[Future[list[Answer]], int]] = {}
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def __call__(self, line: Line) -> Safety:
        """The safety of an equation, see `Examination`."""
        self._send()
        if line not in self._answers:
            return self._examination(line)
        future, index = self._answers.pop(line)
        state, terms, finding, reason = future.result()[index]
        return Safety(state, line if terms == line.terms else line.with_terms(terms), finding, reason)

    def _send(self) -> None:
        """Keep the processes busy."""
        while self._unsent and len(self._answers) < WAITING * self._jobs:
            if self._pool is None:
                self._pool = ProcessPoolExecutor(
                    self._jobs, multiprocessing.get_context("spawn"), _begin, (self._settings,)
                )
            chunk, self._unsent = self._unsent[:CHUNK], self._unsent[CHUNK:]
            future = self._pool.submit(_examined, chunk)
            self._answers |= {line: (future, index) for index, line in enumerate(chunk)}


def _begin(settings: GreadSettings) -> None:
    """Set up a worker process."""
    _examination[:] = [Examination(settings)]


def _examined(lines: Sequence[Line]) -> list[Answer]:
    answers = [_examination[0](line) for line in lines]
    return [(answer.state, answer.line.terms, answer.finding, answer.reason) for answer in answers]


# ---------------------------------------------------------------------- discovering
ROUNDS, JOURNAL, MARK = "rounds", "journal.log", "discover.json"
FORMAT = "rdgraph discover round 1"
#: The most draws of known equations per wanted equation before a round stops drawing.
PATIENCE = 20
#: Equations per process that examines them, and the most processes.
FOR_A_JOB, MOST_JOBS = 60, 12


def discover(
    data: NodeData,
    *,
    terms: str | Path | TermGrammar = "default",
    size: int = 3,
    budget: int = 2000,
    base: Config | str | None = None,
    fixed: Mapping[str, Value] | None = None,
    splits: Sequence[int] | None = None,
    sampler: str = "tpe",
    seed: int = 0,
    round_size: int = ROUND,
    folder: str | Path | None = None,
    device: str = "auto",
    jobs: int = 1,
    progress: Callable[[DiscoveryProgress], None] | None = None,
    tell: Callable[[str], object] = warnings.warn,
) -> Discovered:
    """Search for an equation: enumerate, merge, examine, train, and choose by mean validation accuracy over the splits.

    Equations with the same behaviour are trained once. Equations whose solutions may blow up get tanh around the terms
    that may outgrow the state, or are excluded. The worse part of a round is dropped early. Test labels are never used
    for selection.

    docs/guides/finding.md compares the functions that find equations.

    Args:
        data: One data set.
        terms: The grammar: "default", "small", a toml file, or a `TermGrammar`.
        size: The largest number of terms; all equations up to it are enumerated.
        budget: The number of trained equations. If there are more, those of the largest size are a random sample; if
            there are fewer, larger ones are drawn.
        base: The network around the equations and its training; the defaults if left out.
        fixed: Settings that differ from `base`, by name.
        splits: Numbers of splits; all by default.
        sampler: The sampler of larger equations: random, or tpe or evolution, which need Optuna.
        seed: The seed of draws and trainings.
        round_size: Equations that are trained together.
        folder: The folder of the search, from which it can be resumed; None keeps it in memory.
        device: "auto" uses a GPU if there is one.
        jobs: Processes that examine equations while others are trained, with the same answers. With more than one,
            guard the calling program with `if __name__ == "__main__"`.
        progress: Called with the progress, about once a second.
        tell: Called with messages for the user.

    Returns:
        All equations with their results, and the chosen one, see `Discovered`.

    Raises:
        MissingDependency: Without optuna, if larger equations are drawn by tpe or evolution.
        InvalidArgument: For settings that the network does not have, or data without validation nodes.
        UnknownName: For an unknown grammar or sampler.
        FileError: For a folder that holds another search.

    >>> import gread
    >>> from gread import karate
    >>> found = gread.discover(
    ...     karate(), terms="small", size=1, budget=6, fixed={"epochs": 20, "hidden": 8}, splits=[0, 1], device="cpu"
    ... )
    >>> len(found.results), found.enumerated, found.best.size
    (6, 9, 1)
    """
    data, start = read_data(data), Config.read(base).updated({} if fixed is None else fixed)
    grammar = terms if isinstance(terms, TermGrammar) else find_terms(terms)
    plan = DiscoveryPlan(data, start, grammar, read_splits(splits, data), size, budget, sampler, seed, round_size)
    path = None if folder is None else Path(folder)
    return Discovery(plan, path, device=device, progress=progress, tell=tell, jobs=jobs).run()


def usual_jobs(budget: int) -> int:
    """The default number of processes for examining `budget` equations: each takes seconds to start.

    >>> usual_jobs(10)
    1
    """
    return max(1, min((os.cpu_count() or 1) - 2, budget // FOR_A_JOB, MOST_JOBS))


class Discovery:
    """A running search for equations; `run` completes it.

    `on_round` is called with the results after every round; `jobs` processes examine equations, see `usual_jobs`.
    """

    def __init__(
        self,
        plan: DiscoveryPlan,
        folder: Path | None,
        *,
        device: str = "auto",
        progress: Callable[[DiscoveryProgress], None] | None = None,
        tell: Callable[[str], object] = warnings.warn,
        on_round: Callable[[Discovered], None] = lambda found: None,
        jobs: int = 1,
    ) -> None:
        self.plan, self.folder, self.device = plan, folder, choose_device(device)
        self._progress, self._tell, self._on_round = progress, tell, on_round
        self._jobs = jobs
        self._examine: Examine = Examination(plan.base.gread)
        self._seen = Behaviours.under(plan.base.gread)
        self._enumerated = self._distinct = 0
        self._tried: list[TriedLine] = []
        self._repeats: list[Line] = []  # drawn in this round, but seen before
        self._results: dict[int, EquationResult] = {}
        self._started, self._before, self._running = time.monotonic(), 0, 0.0
        self._sampler: LineSampler | None = None
        self._draws = 0

    def run(self) -> Discovered:
        """Enumerate, then examine and train round by round."""
        self._claim()
        for line in self.plan.grammar.lines(self.plan.size):
            self._seen.add(line)
            self._enumerated += 1
        self._distinct = len(self._seen.lines)
        queue = self._ordered()
        self._read_rounds()
        self._before = len(self._results)
        known = {t.line.text for t in self._tried}
        queue = [line for line in queue if line.text not in known]
        missing = self.plan.budget - len(self._results)
        with AheadExamination(self.plan.base.gread, queue[:missing], self._jobs) as self._examine:
            lines = iter(queue)
            while len(self._results) < self.plan.budget:
                tried = self._next_round(lines)
                if not tried:
                    self._tell(f"no more equations were found: {len(self._results)} of {self.plan.budget} were trained")
                    break
                self._train(tried)
        return self.found()

    def found(self) -> Discovered:
        """The results of the search so far."""
        results = tuple(self._results[k] for k in sorted(self._results))
        return Discovered(self.plan, self._seen, self._enumerated, self._distinct, tuple(self._tried), results)

    def _ordered(self) -> list[Line]:
        """The enumerated equations, each behaviour once: in order while all of a size fit, then in random order."""
        lines = list(self._seen.lines.values())
        fits = order_of([line.size for line in lines], self.plan.budget)
        rest = [line for line in lines if line.size > fits]
        shuffled = np.random.default_rng([self.plan.seed, 1]).permutation(len(rest))
        later = sorted((rest[k] for k in shuffled), key=lambda line: line.size)
        return [line for line in lines if line.size <= fits] + later

    # ------------------------------------------------------------------ a round
    def _next_round(self, lines: Iterator[Line]) -> list[TriedLine]:
        """The equations to be trained next, with all that were examined for them."""
        wanted = min(self.plan.round_size, self.plan.budget - len(self._results))
        tried: list[TriedLine] = []
        self._repeats = []
        count, known = 0, 0
        while count < wanted and known < PATIENCE * wanted:
            line, draw = next(lines, None), -1
            if line is None:
                draw, line = self._drawn()
                if self._seen.add(line) is not None:
                    known += 1
                    self._repeats.append(line)
                    self._tell_known(draw, line)
                    continue
            examined = self._examined(line, draw, len(self._results) + count)
            tried.append(examined)
            count += examined.number >= 0
            self._report_progress()
        return tried if count or any(t.draw < 0 for t in tried) else []

    def _examined(self, line: Line, draw: int, number: int) -> TriedLine:
        """An equation with its safety; with tanh added it may behave like another one."""
        safety = self._examine(line)
        if safety.state == LEFT_OUT:
            return TriedLine(line, safety, draw=draw)
        if safety.line != line and (merge := self._seen.add(safety.line)) is not None:
            return TriedLine(line, safety, draw=draw, into=merge.into.text)
        return TriedLine(line, safety, number, draw)

    def _drawn(self) -> tuple[int, Line]:
        if self._sampler is None:
            plan, journal = self.plan, None if self.folder is None else self.folder / JOURNAL
            self._sampler = make_line_sampler(
                plan.sampler, plan.grammar, plan.size + 1, plan.largest, plan.seed, journal, self._draws
            )
            for tried in self._tried:  # of a saved round that the sampler may not know yet
                self._tell_sampler(tried)
        number, line = self._sampler.ask()
        self._draws = max(self._draws, number + 1)
        return number, line

    def _tell_known(self, draw: int, line: Line) -> None:
        """Tell the sampler the result of a known equation with the same behaviour as a drawn one."""
        known = self._seen.representative(line).text
        values = [
            self._results[t.number].val_accuracy
            for t in self._tried
            if t.number in self._results and known in (t.line.text, t.safety.line.text)
        ]
        assert self._sampler is not None
        self._sampler.tell(draw, values[0] if values and np.isfinite(values[0]) else None)

    def _tell_sampler(self, tried: TriedLine) -> None:
        if self._sampler is not None and tried.draw >= 0:
            result = self._results.get(tried.number)
            value = None if result is None or not result.val else result.val_accuracy
            self._sampler.tell(tried.draw, value)

    def _train(self, tried: Sequence[TriedLine]) -> None:
        """Train a round, save it and report it."""
        plan, lines = self.plan, [(t.number, t.safety.line) for t in tried if t.number >= 0]

        def report(share: float) -> None:
            self._running = share * len(lines)
            self._report_progress()

        results = train_lines(
            plan.data, lines, plan.base, splits=plan.splits, seed=plan.seed, device=self.device, progress=report,
            tell=self._tell,
        )  # fmt: skip
        self._write_round(tried, results)
        self._record(tried, results)
        for one in tried:
            self._tell_sampler(one)
        self._on_round(self.found())
        self._report_progress()

    def _record(self, tried: Sequence[TriedLine], results: Sequence[EquationResult]) -> None:
        self._tried += tried
        self._results |= {result.number: result for result in results}
        self._running = 0.0

    # ------------------------------------------------------------------ the folder
    def _claim(self) -> None:
        """Write the description of the search, or refuse a folder with another search."""
        if self.folder is None:
            return
        path = self.folder / MARK
        if path.exists() and path.read_text(encoding="utf-8") != self.plan.mark:
            raise FileError(f"{self.folder} holds another search; choose another folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(path, self.plan.mark)

    def _write_round(self, tried: Sequence[TriedLine], results: Sequence[EquationResult]) -> None:
        if self.folder is None:
            return
        (self.folder / ROUNDS).mkdir(exist_ok=True)
        body = {
            "format": FORMAT, "tried": [t.record() for t in tried],
            "met": [line_record(line) for line in self._repeats], "results": [r.record() for r in results],
        }  # fmt: skip
        number = len(list((self.folder / ROUNDS).glob("*.json")))
        write_text(self.folder / ROUNDS / f"{number:04d}.json", json.dumps(body) + "\n", durable=True)

    def _read_rounds(self) -> None:
        """Read the saved rounds."""
        if self.folder is None:
            return
        for path in sorted((self.folder / ROUNDS).glob("*.json")):
            try:
                body = json.loads(read_text(path, "a round of equations"))
                if body["format"] != FORMAT:
                    raise ValueError(f"the format {body['format']!r}")
                tried = [TriedLine.read(record, self.plan.grammar) for record in body["tried"]]
                repeats = [read_line(record, self.plan.grammar) for record in body.get("met", ())]
                results = [EquationResult.read(record) for record in body["results"]]
            except (ValueError, LookupError, TypeError) as problem:
                raise FileError(f"expected a round of equations in {path}, got {problem}; delete the folder") from None
            for one in tried:
                if one.draw >= 0:
                    self._seen.add(one.line)
                if one.safety.state != LEFT_OUT and one.safety.line != one.line:
                    self._seen.add(one.safety.line)
            for line in repeats:
                self._seen.add(line)
            self._draws = max([self._draws, *(one.draw + 1 for one in tried)])
            self._record(tried, results)

    # ------------------------------------------------------------------ progress
    def _report_progress(self) -> None:
        if self._progress is None:
            return
        passed, best = time.monotonic() - self._started, chosen(list(self._results.values()))
        done = min(self.plan.budget, len(self._results) + self._running)
        new = done - self._before
        remaining = passed * (self.plan.budget - done) / new if new >= 1 else float("nan")
        value, text = (float("nan"), "") if best is None else (best.val_accuracy, self.found().best.formula)
        self._progress(DiscoveryProgress(done, self.plan.budget, value, text, passed, remaining))
