"""`TrainingPlan`: a fully resolved training, from the defaults, the preset and the command line, in this order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from gread.datasets.node_data import NodeData
from gread.datasets.sources import embedded
from gread.models.flow import Flow
from gread.models.problem import check
from gread.models.resolution import resolve_config, resolve_method
from gread.models.state_layout import StateLayout
from gread.settings.config import CHOSEN, Config
from gread.settings.gread_settings import GreadSettings
from gread.settings.model_records import find_model
from gread.settings.presets import Preset, Published, find_published
from gread.settings.trials import Trial, make_trials
from gread.training.decoupled import DecoupledNetwork, check_decoupled
from rdgraph.errors import FileError, InvalidArgument
from rdgraph.graphs.edges import read_whole
from rdgraph.graphs.kernels.device_names import read_device
from rdgraph.vocabulary.methods import find_method
from studies.runs.run_config import RunConfig, command_line
from studies.training.choices import GREAD, choose_preset, is_run, parse_splits, planned_epochs, read_toml, sections
from studies.training.data_source import HEAD as READING_HEAD
from studies.training.data_source import DataRequest, DataSource

#: Entries of config.toml outside of [model] and [training], with their types.
HEAD = {
    "study": str, "small": bool, "dataset": str, "preset": str, "source": str, "splits": list,
    "seed": int, "seeds": int, "device": str, "version": str,
}  # fmt: skip
#: Optional entries: of an equation, an automatic method, files, decoupled and shortened trainings, parts left out.
OPTIONAL = {
    "reaction": str, "method_reason": str, "edges": str, "nodes": str, "decoupled": bool, "batch": int,
    "preset_epochs": int, "references": bool, "figures": bool, **READING_HEAD,
}  # fmt: skip
#: The data set, epochs and splits of `--small`.
SMALL_SET, SMALL_EPOCHS, SMALL_SPLITS = "karate", 20, (0, 1, 2)
#: Advice for a folder that holds no training: one to resume, and one to read.
RESUMED = (
    "if the training stopped before it started, repeat its whole command; else name the folder to resume with --out"
)
NAMED = "name the folder of a finished training, as written by rdgraph train --out FOLDER"
#: Most seeds per split.
MOST_SEEDS = 10_000


@dataclass(frozen=True, eq=False)
class Request(DataRequest):
    """The choices on the command line; None for those left open."""

    reaction: str | None = None
    preset: str | None = None
    settings: Mapping[str, Any] | None = None
    splits: str | None = None
    seed: int = 0
    seeds: int = 1
    device: str = "cpu"
    small: bool = False
    model: str | None = None
    decoupled: bool = False
    batch: int | None = None
    references: bool = True
    figures: bool = True

    @property
    def source(self) -> DataSource:
        """Source of the data; with `small` and without a choice, a set without files."""
        is_open = self.small and self.dataset is None and self.edges is None
        return DataSource(SMALL_SET, root=self.root, reading=self.reading) if is_open else super().source


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """A fully resolved training: every split, with `seeds` seeds from `seed` on.

    `method_reason` explains a method chosen from the equation. A `decoupled` training uses propagated features in
    batches of `batch` nodes, or of all training nodes. `preset_epochs` are those of the preset if the training has
    fewer, else 0. The run trains the baselines if `references`, and draws figures if `figures`.
    """

    data: NodeData
    source: DataSource
    preset: Preset
    splits: tuple[int, ...]
    seed: int
    seeds: int
    device: str
    small: bool = False
    method_reason: str = ""
    decoupled: bool = False
    batch: int | None = None
    preset_epochs: int = 0
    references: bool = True
    figures: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.seeds <= MOST_SEEDS:
            raise InvalidArgument(f"expected 1 to {MOST_SEEDS:,} seeds, got {self.seeds}")
        read_device(self.device)
        _check_equation(self.config)
        if self.decoupled:
            settings = check_decoupled(self.config.model)
            DecoupledNetwork(settings, 1, self.data.num_classes, 0)  # raises for flows that are no polynomials
            if self.batch is not None:
                read_whole(self.batch, 1, "--batch")
        elif self.batch is not None:
            raise InvalidArgument("--batch needs --decoupled; add it, or leave --batch out")
        for split in self.splits:
            check(self.data, split)

    @property
    def config(self) -> Config:
        return self.preset.config

    @property
    def has_equation(self) -> bool:
        """Whether the network is built around an equation."""
        return isinstance(self.config.model, GreadSettings)

    @property
    def reaction(self) -> str:
        """The equation or its name; "" for a network without one."""
        return self.config.gread.reaction if self.has_equation else ""

    @property
    def subject(self) -> str:
        """The reaction of GREAD, or the name of another network."""
        model = self.config.model.model
        return self.reaction if model == GREAD else model

    @property
    def title(self) -> str:
        """Name of the network in print, such as GREAD-BS, GCN, or GRAND with another equation."""
        settings = self.config.model
        record = find_model(settings.model)
        if settings.model == GREAD:
            return f"{record.title}-{self.reaction}"
        defaults = record.settings()
        changed = isinstance(defaults, GreadSettings) and defaults.reaction != self.reaction
        return f"{record.title} with {self.reaction}" if changed else record.title

    @property
    def published(self) -> Published | None:
        """The published accuracy of this network on this data set, if any; None for the user's own graph."""
        record = find_model(self.config.model.model)
        method = record.published if record.title == self.title else self.title
        return None if self.source.is_own or not method else find_published(method, self.preset.dataset)

    @property
    def trials(self) -> list[Trial]:
        return make_trials(self.config, self.splits, range(self.seed, self.seed + self.seeds))

    @property
    def selection_bias(self) -> str:
        """A warning if the settings or the equation were chosen on the same splits; else ""."""
        path = Path(self.preset.name)
        chosen = read_toml(path, "settings").get(CHOSEN) if path.suffix == ".toml" and path.is_file() else None
        if not isinstance(chosen, dict) or chosen.get("dataset") != self.preset.dataset:
            return ""
        shared = sorted(set(chosen.get("splits", ())) & set(self.splits))
        if not shared:
            return ""
        seeds = range(self.seed, self.seed + self.seeds)
        seed = f" and seed {chosen['seed']}" if chosen.get("seed") in seeds else ""
        others = sorted(set(range(self.data.num_splits)) - set(chosen["splits"]))
        remedy = f"--splits {','.join(map(str, others))}" if others else "--seed with another number"
        return (
            f"the {chosen.get('what', 'settings')} of {path.name} was chosen among {chosen.get('among', 'several')} by "
            f"rdgraph {chosen.get('command', 'search')} on the same splits ({', '.join(map(str, shared))}){seed}, so "
            f"accuracies on them are biased upwards; use {remedy} for a fairer estimate"
        )

    @property
    def run_config(self) -> RunConfig:
        """Contents of config.toml: the choices, then [model] and [training]."""
        head = {
            "dataset": self.preset.dataset,
            **self.source.head(),
            **({"reaction": self.reaction} if self.has_equation else {}),
            "preset": self.preset.name,
            "source": self.preset.source,
            "splits": list(self.splits),
            "seeds": self.seeds,
            **({"method_reason": self.method_reason} if self.method_reason else {}),
            **({"decoupled": True} if self.decoupled else {}),
            **({"batch": self.batch} if self.batch is not None else {}),
            **({"preset_epochs": self.preset_epochs} if self.preset_epochs else {}),
            **{name: False for name in ("references", "figures") if not getattr(self, name)},
        }
        return RunConfig("train", self.small, self.seed, self.device, sections=self.config.sections(), head=head)

    def command(self, folder: Path) -> str:
        """The command that repeats the training, with the settings of the folder's config.toml."""
        return command_line(
            "train", *self.source.words(), preset=folder / "config.toml", splits=self.splits, seed=self.seed,
            seeds=self.seeds, device=self.device, decoupled=self.decoupled, batch=self.batch,
            no_references=not self.references, no_figures=not self.figures,
        )  # fmt: skip


def make_plan(request: Request) -> TrainingPlan:
    """Plan of a request; wrong names, splits, settings and missing files raise here, before any training.

    >>> plan = make_plan(Request(small=True, settings={"hidden": 8}))
    >>> plan.data.meta.name, plan.splits, plan.config.model.hidden, plan.config.training.epochs, plan.preset.name
    ('karate', (0, 1, 2), 8, 20, 'quick')
    """
    given = dict(request.settings or {})
    if request.small:
        given.setdefault("epochs", SMALL_EPOCHS)
    source = request.source
    data = source.read()
    name = data.meta.name
    is_embedded = name in embedded() and not source.is_own
    preset = choose_preset(request.preset, request.reaction, name, model=request.model, is_embedded=is_embedded)
    if request.reaction and not isinstance(preset.config.model, GreadSettings):
        raise InvalidArgument(
            f"--reaction needs a network around an equation, such as gread, and {preset.config.model.model} has none; "
            "leave --reaction out"
        )
    config = preset.config.updated(given | ({"reaction": request.reaction} if request.reaction else {}))
    splits = _chosen_splits(request, data)
    changed = changes(preset.config, config)
    origin = preset.source + (f"; changed here: {', '.join(changed)}" if changed else "")
    chosen, reason = resolve_config(config)
    reaction = chosen.model.reaction if isinstance(chosen.model, GreadSettings) else ""
    resolved = replace(preset, config=chosen, reaction=reaction, dataset=name, source=origin)
    planned = planned_epochs(preset)
    return TrainingPlan(
        data, source, resolved, splits, request.seed, request.seeds, request.device, request.small, reason,
        request.decoupled, request.batch, planned if chosen.training.epochs < planned else 0,
        request.references, request.figures,
    )  # fmt: skip


def changes(old: Config, new: Config) -> list[str]:
    """The names of the settings that differ.

    >>> changes(Config(), Config().updated({"hidden": 8, "epochs": 3, "heads": 4}))
    ['hidden', 'epochs']
    """
    pairs = ((old.model, new.model), (old.training, new.training))
    return [f.name for a, b in pairs for f in fields(a) if getattr(a, f.name) != getattr(b, f.name)]


def read_plan(folder: Path, root: Path | None = None, *, resumes: bool = False) -> TrainingPlan:
    """The plan described by a run's config.toml, with its data; `resumes` selects the advice in errors."""
    path = folder / "config.toml"
    if not path.is_file():
        remedy = RESUMED if resumes else NAMED
        raise InvalidArgument(f"{folder} has no config.toml, so it is not a training run; {remedy}")
    values = read_toml(path, "the settings of a training")
    head = _read_head(values, path, "train into another folder" if resumes else NAMED)
    source = DataSource.from_head(head, root)
    config = Config.from_sections(sections(values))
    preset = Preset(head["preset"], head.get("reaction", ""), head["dataset"], config, head["source"])
    return TrainingPlan(
        source.read(), source, preset, tuple(head["splits"]), head["seed"], head["seeds"], head["device"],
        head["small"], head.get("method_reason", ""), head.get("decoupled", False), head.get("batch"),
        head.get("preset_epochs", 0), head.get("references", True), head.get("figures", True),
    )  # fmt: skip


def _read_head(values: Mapping[str, Any], path: Path, remedy: str) -> dict[str, Any]:
    """The entries outside of [model] and [training], with checked types."""
    head = {name: value for name, value in values.items() if name not in ("model", "training")}
    files = ("edges",) if "nodes" in head else ()
    kinds = HEAD | {name: kind for name, kind in OPTIONAL.items() if name in head or name in files}
    wrong = [name for name, kind in kinds.items() if type(head.get(name)) is not kind]
    if not is_run(values) or wrong or not all(type(k) is int for k in head["splits"]):
        problem = "settings of another program" if not is_run(values) else f"no valid {wrong[0] if wrong else 'splits'}"
        raise FileError(f"{path} has {problem}, so it is not the config.toml of a training; {remedy}")
    return head


def _chosen_splits(request: Request, data: NodeData) -> tuple[int, ...]:
    if request.splits is None and request.small:
        return tuple(k for k in SMALL_SPLITS if k < data.num_splits)
    return parse_splits(request.splits, data.num_splits)


def _check_equation(config: Config) -> None:
    """Raise an error for an equation that cannot be trained, or a method without a step."""
    if not isinstance(config.model, GreadSettings):
        return
    StateLayout.of(config.model)
    model, _ = resolve_method(config.model)
    if find_method(model.method).takes_step and model.step is None:
        raise InvalidArgument(f"the method {model.method} needs a step; add --set step=0.5")
    Flow.check(model.method, model.time, model.step, model.adjacency == "live")
