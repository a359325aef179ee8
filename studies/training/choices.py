"""From words of the command line to presets, settings, splits and folder names."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from gread.settings.config import Config
from gread.settings.model_records import find_model, models
from gread.settings.presets import PUBLISHED, Preset, find_preset
from rdgraph.errors import FileError, InvalidArgument
from rdgraph.files import read_text
from rdgraph.systems.catalogue import catalogue
from rdgraph.vocabulary.learned_functions import WORD as LEARNED
from rdgraph.vocabulary.learned_functions import LearnedFunction

QUICK, DEFAULTS = "quick", "defaults"
#: The default network.
GREAD = "gread"
_QUICK_FILE = Path(str(resources.files("studies").joinpath("data/quick.toml")))
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def choose_preset(
    name: str | None, reaction: str | None, dataset: str, *, model: str | None = None, is_embedded: bool = False
) -> Preset:
    """The preset of that name; by default `quick` for GREAD on embedded data sets, else the defaults.

    >>> choose_preset(None, None, "cora").name, choose_preset("paper", "ST", "cora").config.model.reaction
    ('defaults', 'ST')
    >>> choose_preset("published", None, "cora", model="gcn").name
    'published/gcn/cora'
    """
    network = model or GREAD
    subject = (reaction or "BS") if network == GREAD else ""
    chosen = name or (QUICK if is_embedded and network == GREAD else DEFAULTS)
    if chosen == DEFAULTS:
        config, title = Config.for_own_data(network), find_model(network).title
        return Preset(DEFAULTS, subject, dataset, config, f"the defaults of {title}")
    if chosen == QUICK:
        if network != GREAD:
            raise InvalidArgument(f"the preset {QUICK} is for GREAD, not for {network}; leave --preset out")
        return Preset(QUICK, subject, dataset, Config.load(_QUICK_FILE), f"studies/data/{_QUICK_FILE.name}")
    path = Path(chosen)
    if path.suffix == ".toml" and path.is_file():
        return Preset(chosen, reaction or "", dataset, read_settings(path, model), f"file {path.name}")
    if network == GREAD:
        return find_preset("paper" if chosen == PUBLISHED else chosen, subject, dataset)
    return find_preset(chosen, network, dataset)


def planned_epochs(preset: Preset) -> int:
    """The epochs of a preset; for the config.toml of a shortened training, those of its preset."""
    path, epochs = Path(preset.name), preset.config.training.epochs
    if path.suffix != ".toml" or not path.is_file():
        return epochs
    values = read_toml(path, "settings")
    planned = values.get("preset_epochs") if is_run(values) else None
    return max(epochs, planned) if isinstance(planned, int) else epochs


def with_learned(reaction: str | None, declared: Sequence[str]) -> str | None:
    """An equation with the declarations of its learned functions from the command line after `where`.

    >>> with_learned("-alpha*L@H + phi(H)", ["phi: knots=8, odd"])
    '-alpha*L@H + phi(H) where phi learned knots=8 range=-3:3 odd'
    """
    if reaction is not None and not reaction.strip():
        raise InvalidArgument("the equation is empty; write one, or leave --reaction out")
    if not declared:
        return reaction
    if reaction is None:
        raise InvalidArgument("--learned needs --reaction with an equation that calls the function")
    notes = []
    for text in declared:
        name, colon, facts = text.partition(":")
        if not colon:
            raise InvalidArgument(f"expected --learned 'NAME: FACTS', got {text!r:.60}; write 'phi: knots=12, odd'")
        note = f"{name.strip()} {LEARNED} {facts.replace(',', ' ')}"
        notes.append(str(LearnedFunction.read(note)))
    joint = "," if re.search(r"\bwhere\b", reaction.rpartition(";")[2]) else " where"
    return f"{reaction}{joint} {', '.join(notes)}"


def read_settings(path: Path, model: str | None = None) -> Config:
    """The settings in a TOML file, or in [model] and [training] of a run's config.toml; optionally of one network."""
    values = read_toml(path, "settings")
    base = None if model is None else Config.of(model)
    result = Config.from_sections(sections(values) if is_run(values) else values, base=base)
    if model is not None and result.model.model != model:
        raise InvalidArgument(
            f"{path} has settings of {result.model.model}, not of {model}; leave --model out, or name another file"
        )
    return result


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The values of a TOML file; `what` names its contents in errors."""
    text = read_text(path, what)
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise FileError(f"{path} is not valid TOML: {problem}") from None


def is_run(values: Mapping[str, Any]) -> bool:
    """Whether these are the values of the config.toml of a training."""
    return values.get("study") == "train"


def sections(values: Mapping[str, Any]) -> dict[str, Any]:
    """[model] and [training] of the config.toml of a training."""
    return {name: part for name, part in values.items() if name in ("model", "training")}


def read_pairs(texts: Sequence[str]) -> dict[str, str]:
    """Settings by name, from NAME=VALUE as given on the command line, for `Config.updated`.

    >>> read_pairs(["hidden=128", "relu=false"])
    {'hidden': '128', 'relu': 'false'}
    """
    result: dict[str, str] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (name and sign and value):
            raise InvalidArgument(f"expected NAME=VALUE, got {text!r}; write --set hidden=128")
        if name in result:
            raise InvalidArgument(f"the setting {name} is given twice; leave one out")
        result[name] = value
    return result


def parse_splits(text: str | None, count: int) -> tuple[int, ...]:
    """Numbers of splits, from "all", "0,1,2" or "0-4", among `count` splits; None stands for all.

    >>> parse_splits("0-2,5", 10), parse_splits("all", 3)
    ((0, 1, 2, 5), (0, 1, 2))
    """
    if text is None or text.strip() == "all":
        return tuple(range(count))
    result: list[int] = []
    for part in text.split(","):
        read = _RANGE.fullmatch(part.strip())
        if read is None:
            raise InvalidArgument(f"expected splits as all, 0,1,2 or 0-4, got {text!r}")
        first, last = int(read[1]), int(read[2] or read[1])
        if not first <= last < count:
            raise InvalidArgument(f"expected splits among 0..{count - 1}, got {part.strip()}; write --splits all")
        result += range(first, last + 1)
    return tuple(dict.fromkeys(result))


def folder_name(dataset: str, subject: str) -> str:
    """Stem of the name of a run folder, from the data set and the reaction or network.

    >>> folder_name("cora", "FB*"), folder_name("cora", "gcn"), folder_name("my graph", "-alpha*L@H")
    ('cora-FBstar', 'cora-gcn', 'my-graph-equation')
    """
    short = subject.replace("*", "star") if subject in catalogue or subject in models else "equation"
    return re.sub(r"[^A-Za-z0-9_+.-]+", "-", f"{dataset}-{short}").strip(".-")
