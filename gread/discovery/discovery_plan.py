"""`DiscoveryPlan`: a complete description of a search for equations; `TriedLine` and `Discovered`: its results."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gread.datasets.node_data import NodeData
from gread.discovery.behaviours import Behaviours
from gread.discovery.equation_batches import EquationResult, line_config
from gread.discovery.line_safety import LEFT_OUT, Safety
from gread.discovery.line_sampling import SAMPLERS
from gread.discovery.term_grammar import Line, Term, TermGrammar
from gread.settings.config import Config
from gread.training.checkpoint import fingerprint
from gread.tuning.candidates import COMPLETE, DIVERGED, FAILED, PRUNED, TrialResult
from gread.tuning.rounds import check_splits
from gread.tuning.selection import require_chosen
from rdgraph.errors import InvalidArgument, UnknownName

#: Equations that are trained together.
ROUND = 250
#: The most terms of a drawn equation beyond the size of the enumerated ones.
BEYOND = 2
#: The states of a training in the table of equations, and the states of equations that were not trained.
STATE_WORDS = {COMPLETE: "finished", PRUNED: "dropped", DIVERGED: "diverged", FAILED: "refused"}
MERGED, NOT_TRIED = "merged", "not tried"


class DiscoveryProgress(NamedTuple):
    """Progress of a search: trained equations (and shares of running ones), the best so far, seconds."""

    trials: float
    total: int
    best: float
    best_line: str
    seconds: float
    seconds_left: float


@dataclass(frozen=True, eq=False)
class DiscoveryPlan:
    """A search over the equations of a grammar.

    Args:
        data: One data set.
        base: The network around the equations and its training.
        grammar: The terms.
        splits: The splits on which every equation is trained.
        size: The largest number of terms; all equations up to it are enumerated.
        budget: The number of trained equations. If there are more, those of the largest size are a random sample; if
            there are fewer, larger ones are drawn.
        sampler: The sampler of larger ones: random, tpe or evolution.
        seed: The seed of draws and trainings.
        round_size: The number of equations that are trained together and compared with each other.

    Raises:
        InvalidArgument: For sizes and budgets below 1, splits that do not exist or have no validation nodes.
        UnknownName: For an unknown sampler.
    """

    data: NodeData
    base: Config
    grammar: TermGrammar
    splits: tuple[int, ...]
    size: int = 3
    budget: int = 2000
    sampler: str = "tpe"
    seed: int = 0
    round_size: int = ROUND

    def __post_init__(self) -> None:
        if self.sampler not in SAMPLERS:
            raise UnknownName("sampler", self.sampler, SAMPLERS)
        if min(self.size, self.budget, self.round_size) < 1 or self.size > len(self.grammar.names):
            raise InvalidArgument(
                f"expected a size between 1 and {len(self.grammar.names)}, as many as names of coefficients, and a "
                f"budget and rounds of at least 1, got {self.size}, {self.budget} and {self.round_size}"
            )
        check_splits(self.data, self.splits)
        _ = self.base.gread

    @property
    def largest(self) -> int:
        """The most terms of a drawn equation."""
        return min(self.size + BEYOND, len(self.grammar.names))

    @property
    def mark(self) -> str:
        """The description of this search as JSON text; searches with equal texts are the same."""
        choices = {
            "data": fingerprint([self.data], []), "base": self.base.sections(), "splits": list(self.splits),
            "terms": [[t.body, t.sign] for t in self.grammar.terms], "names": list(self.grammar.names),
            "kind": self.grammar.kind, "size": self.size, "budget": self.budget, "sampler": self.sampler,
            "seed": self.seed, "round": self.round_size,
        }  # fmt: skip
        return json.dumps(choices, indent=1) + "\n"


@dataclass(frozen=True)
class TriedLine:
    """An examined equation with its safety, and its number if it was trained.

    `draw` is its number among the drawn equations, -1 for an enumerated one; `into` is the text of the equation that it
    was merged into, "" if it was not merged.
    """

    line: Line
    safety: Safety
    number: int = -1
    draw: int = -1
    into: str = ""

    def record(self) -> dict[str, Any]:
        """The tried equation as a dictionary for JSON; `read` is the inverse."""
        return {
            "line": line_record(self.line), "state": self.safety.state, "trained": line_record(self.safety.line),
            "finding": self.safety.finding, "reason": self.safety.reason, "number": self.number, "draw": self.draw,
            "into": self.into,
        }  # fmt: skip

    @classmethod
    def read(cls, record: Mapping[str, Any], grammar: TermGrammar) -> TriedLine:
        line, trained = (read_line(record[name], grammar) for name in ("line", "trained"))
        safety = Safety(record["state"], trained, record["finding"], record["reason"])
        return cls(line, safety, int(record["number"]), int(record["draw"]), record["into"])


def line_record(line: Line) -> list[list[str]]:
    """An equation as JSON data; `read_line` is the inverse."""
    return [[term.body, term.sign] for term in line.terms]


def read_line(record: Sequence[Sequence[str]], grammar: TermGrammar) -> Line:
    """The equation that `line_record` described."""
    return grammar.line([Term(*pair) for pair in record])


@dataclass(frozen=True, eq=False)
class Discovered:
    """The result of a search over equations.

    `behaviours` are all equations, each behaviour once; `enumerated` counts those up to the size and `distinct` their
    behaviours. `tried` are the examined equations, `results` those of the trained ones, `coefficients` means over
    splits and channels, by number. `best` is the equation with the best mean validation accuracy over the splits; test
    accuracies are never used for selection.
    """

    plan: DiscoveryPlan
    behaviours: Behaviours
    enumerated: int
    distinct: int
    tried: tuple[TriedLine, ...]
    results: tuple[EquationResult, ...]

    @property
    def coefficients(self) -> dict[int, dict[str, float]]:
        """Means over splits and channels, by the numbers of the equations."""
        return {result.number: result.coefficients for result in self.results}

    @property
    def trained(self) -> dict[int, TriedLine]:
        """The trained equations, by their numbers."""
        return {t.number: t for t in self.tried if t.number >= 0}

    @property
    def chosen(self) -> TrialResult:
        """The result of the chosen equation; an error if no equation could be trained."""
        return require_chosen(self.results, "equation")

    @property
    def best(self) -> Line:
        """The chosen equation, as it was trained."""
        return self.trained[self.chosen.number].safety.line

    @property
    def best_config(self) -> Config:
        """The configuration of the chosen equation."""
        return self.config(self.chosen.number)

    def config(self, number: int) -> Config:
        """The configuration of the trained equation with that number."""
        return line_config(self.plan.base, self.trained[number].safety.line)

    def ranked(self) -> list[tuple[TrialResult, Line]]:
        """The equations trained to the last epoch, the best by validation first."""
        order = sorted((r for r in self.results if r.is_eligible), key=lambda r: (-r.val_accuracy, r.number))
        known = self.trained
        return [(r, known[r.number].safety.line) for r in order]

    def safety_counts(self) -> Counter[tuple[str, str]]:
        """The numbers of examined equations by safety and finding."""
        return Counter((t.safety.state, t.safety.finding) for t in self.tried)

    def rows(self) -> list[dict[str, float | int | str]]:
        """The table of equations: the examined ones in order, then those that were merged or not tried."""
        results = {r.number: r for r in self.results}
        rows = [_row(t, results.get(t.number)) for t in self.tried]
        seen = {t.line.text for t in self.tried}
        for merge in self.behaviours.merges.values():
            if merge.line.text not in seen:
                row = _blank(merge.line, MERGED)
                rows.append(row | {"merged_into": merge.into.formula, "rule": merge.rule, "map": merge.coefficients})
        untried = (line for text, line in self.behaviours.lines.items() if text not in seen)
        trained = {t.safety.line.text for t in self.tried}
        return rows + [_blank(line, NOT_TRIED) for line in untried if line.text not in trained]


def _blank(line: Line, state: str) -> dict[str, float | int | str]:
    return {
        "number": -1, "equation": line.formula, "size": line.size, "state": state, "val_accuracy": math.nan,
        "test_accuracy": math.nan, "epochs": 0, "safety": "", "trained": "", "finding": "", "merged_into": "",
        "rule": "", "map": "", "declared": line.text.partition(" where ")[2],
    }  # fmt: skip


def _row(tried: TriedLine, result: TrialResult | None) -> dict[str, float | int | str]:
    """The table row of an examined equation with its result."""
    safety = tried.safety
    state = MERGED if tried.into else LEFT_OUT if safety.state == LEFT_OUT else NOT_TRIED
    row = _blank(tried.line, state) | {"number": tried.number, "safety": safety.state, "finding": safety.finding}
    row |= {"trained": safety.line.formula, "merged_into": tried.into.partition(" where ")[0]}
    if result is not None:
        row |= {"state": STATE_WORDS[result.state], "val_accuracy": result.val_accuracy, "epochs": result.epochs}
        row |= {"test_accuracy": result.test_accuracy, "finding": result.note or safety.finding}
    return row


def order_of(sizes: Sequence[int], budget: int) -> int:
    """The largest size up to which all equations fit into a budget; 0 if none does.

    >>> order_of([1, 1, 2, 2, 2], 2), order_of([1, 1, 2, 2, 2], 9), order_of([1, 1], 1)
    (1, 2, 0)
    """
    counts, total, fits = Counter(sizes), 0, 0
    for size in sorted(counts):
        total += counts[size]
        if total > budget:
            break
        fits = size
    return fits
