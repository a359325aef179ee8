"""`DiscoveryTask`: a fully resolved search over equations on one data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gread.datasets.loading import load_dataset
from gread.discovery.discovery_plan import ROUND, DiscoveryPlan
from gread.discovery.term_grammar import find_terms
from gread.discovery.winner_checks import SEEDS
from gread.settings.config import Config
from rdgraph.errors import InvalidArgument
from studies.runs.run_config import RunConfig, command_line
from studies.training.choices import choose_preset, parse_splits
from studies.training.data_source import DataRequest


@dataclass(frozen=True, eq=False)
class DiscoveryRequest(DataRequest):
    """The choices on the command line; None for those left open."""

    terms: str = "default"
    size: int = 3
    budget: int = 2000
    sampler: str = "tpe"
    preset: str | None = None
    settings: Mapping[str, str] | None = None
    splits: str | None = None
    seed: int = 0
    round_size: int = ROUND
    transfer: tuple[str, ...] = ()
    fresh: int = SEEDS
    device: str = "cpu"


@dataclass(frozen=True, eq=False)
class DiscoveryTask:
    """A search over equations, and the source of the settings around them."""

    request: DiscoveryRequest
    plan: DiscoveryPlan
    base_source: str

    @property
    def dataset(self) -> str:
        """The name of the data."""
        return self.request.dataset or self.plan.data.meta.name

    @property
    def run_config(self) -> RunConfig:
        """Contents of config.toml: the choices, then the settings around the equations."""
        plan, request = self.plan, self.request
        head = {
            "dataset": self.dataset, **request.source.head(), "terms": request.terms, "source": plan.grammar.source,
            "size": plan.size, "budget": plan.budget, "sampler": plan.sampler, "round_size": plan.round_size,
            "base": self.base_source, "splits": list(plan.splits), "fresh_seeds": request.fresh,
            "transfer": list(request.transfer),
        }  # fmt: skip
        model, training = (dict(part) for part in plan.base.sections().values())
        for name in ("reaction", "alpha", "beta", "alpha_link", "beta_link"):
            model.pop(name, None)  # every equation has its own
        sections = {"model": model, "training": training}
        return RunConfig("discover", False, plan.seed, request.device, sections=sections, head=head)

    def command(self, folder: Path) -> str:
        """The command that repeats and resumes this search."""
        request, plan = self.request, self.plan
        return command_line(
            "discover", *request.source.words(), terms=request.terms, size=plan.size, budget=plan.budget,
            sampler=plan.sampler, preset=request.preset, set=[f"{n}={v}" for n, v in (request.settings or {}).items()],
            transfer=list(request.transfer), splits=plan.splits, seed=plan.seed, fresh=request.fresh,
            round=plan.round_size, device=request.device, out=folder,
        )  # fmt: skip

    def default_folder(self, base: Path = Path("runs/discover")) -> Path:
        """base/DATASET-TERMS-SIZE: the same search has the same folder."""
        return base / f"{self.dataset}-{Path(self.request.terms).stem}-{self.plan.size}"


def make_discovery_task(request: DiscoveryRequest) -> DiscoveryTask:
    """Task of a request; wrong names, splits and settings raise here, before any training.

    >>> task = make_discovery_task(DiscoveryRequest("karate", "small", settings={"epochs": "20"}))
    >>> task.plan.base.training.epochs, task.default_folder().name
    (20, 'karate-small-3')
    """
    if request.fresh < 0:
        raise InvalidArgument(f"--fresh must be 0 or more, got {request.fresh}")
    for name in request.transfer:
        load_dataset(name, root=request.root, offline=True)
    data = request.source.read()
    preset = choose_preset(request.preset, None, data.meta.name)
    start = Config() if request.preset is None else preset.config  # a short time and attention suit all equations
    base: Config = start.updated(dict(request.settings or {}))
    splits = tuple(parse_splits(request.splits, data.num_splits))
    plan = DiscoveryPlan(
        data, base, find_terms(request.terms), splits, request.size, request.budget, request.sampler, request.seed,
        request.round_size,
    )  # fmt: skip
    return DiscoveryTask(request, plan, preset.source)
