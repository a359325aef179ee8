"""`SearchTask`: a fully resolved search for settings, and its config.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gread.settings.config import Config
from gread.settings.model_records import find_model
from gread.settings.presets import BORROWED, Published, find_preset, find_published, presets
from gread.tuning.ask_tell import STUDY, check_reach, public_url
from gread.tuning.searching import JOURNAL, SearchPlan
from gread.tuning.space import Choice, Searched
from rdgraph.errors import FileError, InvalidArgument
from rdgraph.files import read_text
from studies.runs.run_config import RunConfig, command_line, prepare
from studies.training.choices import folder_name, parse_splits
from studies.training.data_source import DataRequest

#: The network around an equation.
AROUND_EQUATIONS = "gread"
#: The entry of config.toml with the name of a search in its database.
STORED = "study_in_storage"
CONFIG = "config.toml"


@dataclass(frozen=True, eq=False)
class SearchRequest(DataRequest):
    """The choices on the command line; None for those left open."""

    reaction: str | None = None
    model: str | None = None
    preset: str | None = None
    space: str = "paper"
    trials: int = 50
    sampler: str = "random"
    halving: bool = False
    settings: Mapping[str, str] | None = None
    splits: str | None = None
    seed: int = 0
    round_size: int | None = None
    device: str = "cpu"
    storage: str | None = None
    is_elsewhere: bool = False


@dataclass(frozen=True, eq=False)
class SearchTask:
    """A search with its names; `subject` is the reaction or the network."""

    request: SearchRequest
    plan: SearchPlan
    subject: str
    base_source: str

    @property
    def dataset(self) -> str:
        """The name of the data."""
        return self.request.dataset or self.plan.data.meta.name

    @property
    def run_config(self) -> RunConfig:
        """Contents of config.toml: the choices, then the fixed and the searched settings."""
        plan, request = self.plan, self.request
        head = {
            "dataset": self.dataset, **request.source.head(), "model": plan.base.model.model, "trials": plan.trials,
            "space": request.space, "source": plan.space.source, "base": self.base_source, "sampler": plan.sampler,
            "halving": plan.halving, "round_size": plan.round_size, "splits": list(plan.splits),
        }  # fmt: skip
        searched = {s.name for s in plan.space.searched}
        start = plan.space.config(plan.base, {}).sections()
        others = {name: value for part in start.values() for name, value in part.items() if name not in searched}
        sections = {"fixed": others, "searched": {s.name: described(s) for s in plan.space.searched}}
        if request.storage is not None:
            head |= {"storage": public_url(request.storage), STORED: plan.study_name}
        return RunConfig(
            "search", False, plan.seed, request.device, sections=sections, head=head, is_elsewhere=request.is_elsewhere
        )

    def prepare(self, folder: Path) -> str:
        """State of the prepared folder of this search, "" if it is new; raises FileError for another search.

        No folder is made for a search that cannot start.
        """
        if not (folder / CONFIG).is_file():
            check_reach(self.plan.sampler, self.request.storage)
        return prepare(folder, self.run_config)

    def command(self, folder: Path) -> str:
        """The command that repeats and resumes this search."""
        request, plan = self.request, self.plan
        return command_line(
            "search", *request.source.words(), reaction=request.reaction, model=request.model, preset=request.preset,
            space=request.space, trials=plan.trials, sampler=plan.sampler, halving=plan.halving,
            set=[f"{name}={value}" for name, value in (request.settings or {}).items()],
            storage=None if request.storage is None else public_url(request.storage), splits=tuple(plan.splits),
            seed=plan.seed, round=plan.round_size, device=request.device, out=folder,
        )  # fmt: skip

    @property
    def published(self) -> Published | None:
        """The published accuracy of the same reaction or network on the same data, if any."""
        around = self.plan.base.model.model == AROUND_EQUATIONS
        method = f"GREAD-{self.subject}" if around else find_model(self.subject).published
        return find_published(method, self.dataset) if method and not self.request.source.is_own else None

    def default_folder(self, base: Path = Path("runs/search")) -> Path:
        """base/DATASET-SUBJECT-SPACE: the same search has the same folder."""
        around = self.plan.base.model.model == AROUND_EQUATIONS
        stem = folder_name(self.dataset, self.subject) if around else f"{self.dataset}-{self.subject}"
        return base / f"{stem}-{Path(self.request.space).stem}"


def make_task(request: SearchRequest) -> SearchTask:
    """Task of a request; wrong names, splits and settings raise here, before any training.

    >>> task = make_task(SearchRequest("karate", model="gcn", space="small", settings={"epochs": "20"}))
    >>> task.subject, task.plan.base.training.epochs, [s.name for s in task.plan.space.searched][:2]
    ('gcn', 20, ['hidden', 'learning_rate'])
    """
    if request.model is not None and request.reaction is not None:
        raise InvalidArgument("--reaction and --model exclude each other; give one of them")
    data = request.source.read()
    base, source = base_config(request)
    given = dict(request.settings or {})
    fixed: dict[str, Any] = {name: _value(base.updated({name: text}), name) for name, text in given.items()}
    if request.reaction is not None and "reaction" not in fixed:
        fixed["reaction"] = request.reaction
    plan = SearchPlan.make(
        data, trials=request.trials, space=request.space, base=base, fixed=fixed,
        splits=parse_splits(request.splits, data.num_splits), sampler=request.sampler,
        halving=request.halving, seed=request.seed, round_size=request.round_size,
    )  # fmt: skip
    return SearchTask(request, plan, _subject(plan), source)


def _subject(plan: SearchPlan) -> str:
    """The reaction if it is not searched, else the network."""
    searched = {s.name: s.distribution for s in plan.space.searched}
    if plan.base.model.model != AROUND_EQUATIONS:
        return plan.base.model.model
    reactions = searched.get("reaction")
    return f"{len(reactions.values)} equations" if isinstance(reactions, Choice) else plan.base.gread.reaction


def base_config(request: SearchRequest) -> tuple[Config, str]:
    """The configuration to search around, and its source.

    Settings that the paper leaves open come from the authors' released settings of the same data set, if any.
    """
    subject = request.model or request.reaction or "BS"
    if request.preset is not None:
        preset = find_preset(request.preset, subject, request.dataset or "")
        return preset.config, preset.source
    if request.model is not None:
        return Config.of(request.model), f"the defaults of {request.model}"
    released = next((p for p in presets() if p.name.startswith("authors/") and p.dataset == request.dataset), None)
    if request.space != "paper" or released is None:
        return Config(), "the defaults of gread"
    open_there = {name: getattr(released.config.gread, name) for name in BORROWED}
    return Config().updated(open_there), f"the defaults of gread; {', '.join(BORROWED)} from {released.source}"


def _value(config: Config, name: str) -> Any:
    return next(part[name] for part in config.sections().values() if name in part)


def stored_trials(folder: Path, storage: str | None = None) -> tuple[Path | str, str]:
    """The storage of the trials of a search, and their name in it; `storage` may contain a password."""
    known = folder / CONFIG
    try:
        result = tomllib.loads(read_text(known, "the settings of a search")) if known.is_file() else {}
    except tomllib.TOMLDecodeError:
        raise FileError(f"{known} does not hold the settings of a search; delete the folder") from None
    if STORED not in result:
        return folder / JOURNAL, STUDY
    return storage or str(result["storage"]), str(result[STORED])


def described(searched: Searched) -> str:
    """The distribution of a searched setting, in words.

    >>> from gread.tuning.space import Range
    >>> described(Searched("step", Range(0.1, 1.5), (("method", ("euler", "rk4")),)))
    '0.1 to 1.5, where method is euler or rk4'
    """
    distribution = searched.distribution
    if isinstance(distribution, Choice):
        text = " or ".join(map(str, distribution.values))
    else:
        text = f"{distribution.low} to {distribution.high}" + (", logarithmic" if distribution.log else "")
        text += "" if distribution.step is None else f", in steps of {distribution.step}"
    conditions = " and ".join(f"{name} is {' or '.join(map(str, values))}" for name, values in searched.when)
    return f"{text}, where {conditions}" if conditions else text
