"""`ContestPlan`: what `rdgraph compare` is to do, with nothing left open."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from gread.datasets.node_data import NodeData
from gread.models.problem import check
from gread.settings.presets import PUBLISHED
from rdgraph.errors import InvalidArgument
from studies.contest.contestants import Contestant, read_contestants
from studies.runs.config import RunConfig
from studies.training.choices import parse_splits, read_pairs
from studies.training.data_source import DataSource
from studies.training.plan import MOST_SEEDS, SMALL_EPOCHS, SMALL_SPLITS, Request

#: The longest stem of a folder's name.
LONGEST = 60


@dataclass(frozen=True, eq=False)
class ContestPlan:
    """Contestants on every split of a data set with every seed from `seed` on."""

    data: NodeData
    source: DataSource
    contestants: tuple[Contestant, ...]
    splits: tuple[int, ...]
    seed: int
    seeds: int
    device: str
    small: bool = False
    preset: str = PUBLISHED
    changes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.seeds <= MOST_SEEDS:
            raise InvalidArgument(f"expected 1 to {MOST_SEEDS:,} seeds, got {self.seeds}")
        for split in self.splits:
            check(self.data, split)

    @property
    def dataset(self) -> str:
        return self.data.meta.name

    @property
    def run_config(self) -> RunConfig:
        """What config.toml holds: the choices, then the settings of every network."""
        head = {
            "dataset": self.dataset,
            **self.source.head(),
            "models": [one.name for one in self.contestants if not one.equation],
            "reactions": [one.equation for one in self.contestants if one.equation],
            "preset": self.preset,
            "changes": list(self.changes),
            "splits": list(self.splits),
            "seeds": self.seeds,
        }
        settings = {name: value for one in self.contestants for name, value in one.settings.items()}
        return RunConfig("compare", self.small, self.seed, self.device, sections={"settings": settings}, head=head)

    def command(self, folder: Path) -> str:
        """The line that makes the run again, which also resumes it."""
        names = ",".join(one.name for one in self.contestants if not one.equation)
        words = ["rdgraph", "compare", *self.source.words(), "--models", names]
        words += [word for one in self.contestants if one.equation for word in ("--reaction", one.equation)]
        words += ["--preset", self.preset, *(w for text in self.changes for w in ("--set", text))]
        words += ["--splits", ",".join(map(str, self.splits)), "--seed", str(self.seed), "--seeds", str(self.seeds)]
        words += ["--device", self.device, *(["--small"] if self.small else []), "--out", str(folder)]
        return shlex.join(words)


def make_contest(
    request: Request,
    names: list[str],
    preset: str = PUBLISHED,
    changes: tuple[str, ...] = (),
    reactions: tuple[str, ...] = (),
) -> ContestPlan:
    """Resolve a request; every wrong name, split or setting is an error here, before any training.

    >>> plan = make_contest(Request(small=True), ["gcn", "labelprop"])
    >>> plan.dataset, plan.splits, plan.contestants[0].config.training.epochs
    ('karate', (0, 1, 2), 20)
    """
    source = request.source
    data = source.read()
    if request.splits is None and request.small:
        splits = tuple(k for k in SMALL_SPLITS if k < data.num_splits)
    else:
        splits = parse_splits(request.splits, data.num_splits)
    contestants = read_contestants(
        names, data.meta.name, preset=preset, changes=read_pairs(changes),
        epochs=SMALL_EPOCHS if request.small else None, is_own=source.is_own, reactions=reactions,
    )  # fmt: skip
    return ContestPlan(
        data, source, contestants, splits, request.seed, request.seeds, request.device, request.small, preset, changes
    )


def contest_folder(plan: ContestPlan, base: Path = Path("runs/compare")) -> Path:
    """base/DATASET-NAMES, cut where the names are many; the same contest finds its folder again."""
    stem = "-".join([plan.dataset, *(one.key for one in plan.contestants)])[:LONGEST].rstrip("-.")
    return base / (f"{stem}-small" if plan.small else stem)
