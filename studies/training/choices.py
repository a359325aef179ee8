"""How the words of a command line become choices: presets, settings, splits, the name of a folder."""

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
#: The network that is trained where none is named.
GREAD = "gread"
_QUICK_FILE = Path(str(resources.files("studies").joinpath("data/quick.toml")))
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


def choose_preset(
    name: str | None, reaction: str | None, dataset: str, *, model: str | None = None, is_embedded: bool = False
) -> Preset:
    """The preset of that name; without one, `quick` for GREAD on embedded sets and the defaults for all others.

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
            raise InvalidArgument(f"expected a preset of {network}, got {QUICK}, which is GREAD's; leave --preset out")
        return Preset(QUICK, subject, dataset, Config.load(_QUICK_FILE), f"studies/data/{_QUICK_FILE.name}")
    path = Path(chosen)
    if path.suffix == ".toml" and path.is_file():
        return Preset(chosen, reaction or "", dataset, read_settings(path, model), f"file {path.name}")
    if network == GREAD:
        return find_preset("paper" if chosen == PUBLISHED else chosen, subject, dataset)
    return find_preset(chosen, network, dataset)


def planned_epochs(preset: Preset) -> int:
    """The epochs of a preset; of the config.toml of a training that had fewer than its own preset, that one's."""
    path, own = Path(preset.name), preset.config.training.epochs
    if path.suffix != ".toml" or not path.is_file():
        return own
    values = read_toml(path, "settings")
    kept = values.get("preset_epochs") if is_run(values) else None
    return max(own, kept) if isinstance(kept, int) else own


def with_learned(reaction: str | None, declared: Sequence[str]) -> str | None:
    """An equation with what the command line declares of its learned functions after `where`.

    >>> with_learned("-alpha*L@H + phi(H)", ["phi: knots=8, odd"])
    '-alpha*L@H + phi(H) where phi learned knots=8 range=-3:3 odd'
    """
    if not declared:
        return reaction
    if reaction is None:
        raise InvalidArgument("expected --learned beside --reaction with an equation that calls it, got no equation")
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
    """The settings of a toml file, of that network if one is named; of a run's config.toml, [model] and [training]."""
    values = read_toml(path, "settings")
    base = None if model is None else Config.of(model)
    found = Config.from_sections(sections(values) if is_run(values) else values, base=base)
    if model is not None and found.model.model != model:
        raise InvalidArgument(
            f"expected settings of {model} in {path}, got those of {found.model.model}; leave --model out, or name "
            "another file"
        )
    return found


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The values of a toml file that should hold `what`."""
    text = read_text(path, what)
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise FileError(f"expected {what} as toml in {path}, got a text that is not: {problem}; correct it") from None


def is_run(values: Mapping[str, Any]) -> bool:
    """Whether these are the values of the config.toml of a training."""
    return values.get("study") == "train"


def sections(values: Mapping[str, Any]) -> dict[str, Any]:
    """[model] and [training] of the config.toml of a training."""
    return {name: part for name, part in values.items() if name in ("model", "training")}


def read_pairs(texts: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE, as given on the command line; `Config.updated` reads the values.

    >>> read_pairs(["hidden=128", "relu=false"])
    {'hidden': '128', 'relu': 'false'}
    """
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not (name and sign and value):
            raise InvalidArgument(f"expected NAME=VALUE, got {text!r}; write --set hidden=128")
        if name in found:
            raise InvalidArgument(f"expected every setting once, got {name} twice; leave one out")
        found[name] = value
    return found


def parse_splits(text: str | None, count: int) -> tuple[int, ...]:
    """The numbers in "all", "0,1,2" or "0-4", of `count` splits there are; without a text all.

    >>> parse_splits("0-2,5", 10), parse_splits("all", 3)
    ((0, 1, 2, 5), (0, 1, 2))
    """
    if text is None or text.strip() == "all":
        return tuple(range(count))
    found: list[int] = []
    for part in text.split(","):
        read = _RANGE.fullmatch(part.strip())
        if read is None:
            raise InvalidArgument(f"expected splits as all, 0,1,2 or 0-4, got {text!r}")
        first, last = int(read[1]), int(read[2] or read[1])
        if not first <= last < count:
            raise InvalidArgument(f"expected splits among 0..{count - 1}, got {part.strip()}; write --splits all")
        found += range(first, last + 1)
    return tuple(dict.fromkeys(found))


def folder_name(dataset: str, subject: str) -> str:
    """The stem of a run folder's name, from the data set and the reaction or the network.

    >>> folder_name("cora", "FB*"), folder_name("cora", "gcn"), folder_name("my graph", "-alpha*L@H")
    ('cora-FBstar', 'cora-gcn', 'my-graph-equation')
    """
    short = subject.replace("*", "star") if subject in catalogue or subject in models else "equation"
    return re.sub(r"[^A-Za-z0-9_+.-]+", "-", f"{dataset}-{short}").strip(".-")
