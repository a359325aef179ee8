"""The contestants of a comparison: networks by name, reactions as gread-R, and baselines without training."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from gread.datasets.sources import embedded
from gread.models.resolution import resolve_config
from gread.settings.config import Config
from gread.settings.gread_settings import GreadSettings
from gread.settings.model_records import find_model, models
from gread.settings.presets import PUBLISHED, Preset, Published, find_published, presets
from rdgraph.errors import InvalidArgument, UnknownName
from rdgraph.systems.catalogue import catalogue
from rdgraph.systems.parser import parse
from studies.training.choices import DEFAULTS, GREAD, choose_preset
from studies.training.reference_answers import MAJORITY, PROPAGATION, cut_off

#: Baselines by their names on the command line.
REFERENCES = {"labelprop": PROPAGATION, "majority": MAJORITY}
#: Settings of the networks: published ones if there are any, or the defaults.
PRESETS = (PUBLISHED, DEFAULTS)
EQUATION = f"{GREAD}-"
#: Digits of the hash of an equation in file names.
DIGITS = 6


@dataclass(frozen=True)
class Contestant:
    """A network with its settings and their source, or a baseline, which has none.

    `published` is its published accuracy on the data set, if any, `equation` the text of a reaction without a name, and
    `preset_epochs` the epochs of its settings before any change.
    """

    name: str
    title: str
    config: Config | None = None
    source: str = ""
    published: Published | None = None
    equation: str = ""
    preset_epochs: int = 0

    @property
    def is_published(self) -> bool:
        """Whether its settings, including the epochs, are published."""
        return self.source.startswith(("paper/", "authors/", f"{PUBLISHED}/"))

    def handicap(self, other: Contestant, rows: Sequence[Mapping[str, Any]]) -> str:
        """How its training was shortened compared with another contestant; "" for equal budgets.

        Fewer epochs than the defaults count only if the other contestant had more; fewer than published ones always do.
        """
        cut = self.cut_off(rows)
        if not cut or self.config is None or self.is_published or other.config is None:
            return cut if self.is_published else ""
        return cut if other.config.training.epochs > self.config.training.epochs else ""

    @property
    def key(self) -> str:
        """Name for files, unique for every equation."""
        digest = f"-{hashlib.sha256(self.equation.encode()).hexdigest()[:DIGITS]}" if self.equation else ""
        return f"{self.name.replace('*', 'star')}{digest}"

    def cut_off(self, rows: Sequence[Mapping[str, Any]]) -> str:
        """How its training was shortened, from the rows of its results; "" if it was not."""
        return "" if self.config is None else cut_off(rows, self.config.training, self.preset_epochs)

    @property
    def settings(self) -> dict[str, object]:
        """Its settings as NAME.SETTING, for the config.toml of the run."""
        if self.config is None:
            return {}
        return {f"{self.name}.{k}": v for part in self.config.sections().values() for k, v in part.items()}


def read_contestants(
    names: Sequence[str],
    dataset: str,
    *,
    preset: str = PUBLISHED,
    changes: Mapping[str, str] | None = None,
    epochs: int | None = None,
    is_own: bool = False,
    reactions: Sequence[str] = (),
) -> tuple[Contestant, ...]:
    """Contestants by name on a data set, with changed settings; `is_own` marks the user's own graph.

    `reactions` are names of the catalogue or equations, which add one network each. A change NAME.SETTING applies to
    one contestant, a change SETTING to all that have it, and `epochs` to all.

    >>> [c.title for c in read_contestants(["gcn", "gread-fb*", "labelprop"], "cora")]
    ['GCN', 'GREAD-FB*', 'label propagation']
    """
    if preset not in PRESETS:
        raise UnknownName("preset", preset, PRESETS)
    result = []
    for name in dict.fromkeys(names):
        if name in REFERENCES:
            result.append(Contestant(name, REFERENCES[name]))
        else:
            result.append(_network(name, dataset, preset, is_own))
    result += [_reacting(text, k, dataset, preset, is_own) for k, text in enumerate(dict.fromkeys(reactions))]
    result = list({one.name: one for one in result}.values())
    if not result:
        raise InvalidArgument("there are no networks to compare; write --models gcn,gat,gread-bs,labelprop")
    given = {"epochs": str(epochs), **(changes or {})} if epochs is not None else dict(changes or {})
    changed = [_changed(one, given, {c.name for c in result}) for one in result]
    _check_used(given, result)
    return tuple(changed)


def _network(name: str, dataset: str, preset: str, is_own: bool) -> Contestant:
    """A network with its published settings on a data set, else with the defaults."""
    model, reaction = name, None
    if name.lower().startswith(EQUATION):
        model, reaction = GREAD, _reaction(name[len(EQUATION) :])
    if model not in models:
        raise UnknownName("network or reference", name, (*models, *REFERENCES))
    chosen = _preset(model, reaction, dataset, preset, is_own)
    config = chosen.config.updated({"reaction": reaction}) if reaction else chosen.config
    record = find_model(model)
    equation = config.model.reaction if model == GREAD and isinstance(config.model, GreadSettings) else ""
    title = f"{record.title}-{equation}" if equation else record.title
    method = record.published if not equation else title
    published = None if is_own or not method else find_published(method, dataset)
    return Contestant(f"{EQUATION}{reaction}" if reaction else name, title, config, chosen.name, published)


def _reacting(text: str, number: int, dataset: str, preset: str, is_own: bool) -> Contestant:
    """GREAD around a reaction by name, or around an equation; equations are called reaction, reaction2, ...

    An equation gets the settings of GREAD, so that a difference is due to the equation.
    """
    if text in catalogue and catalogue.entry(text).name in catalogue.single:
        return _network(f"{EQUATION}{catalogue.entry(text).name}", dataset, preset, is_own)
    parse(text)  # raises if it is invalid
    chosen = _preset(GREAD, None, dataset, preset, is_own)
    config = chosen.config.updated({"reaction": text})
    title = f"{find_model(GREAD).title} with {text}"
    source = f"{chosen.name}, with another reaction"
    return Contestant(f"reaction{number + 1 if number else ''}", title, config, source, equation=text)


def _preset(model: str, reaction: str | None, dataset: str, preset: str, is_own: bool) -> Preset:
    kind, subject = ("paper", reaction or "BS") if model == GREAD else (PUBLISHED, model)
    if preset == PUBLISHED and not is_own:
        for known in presets():
            if known.name == f"{kind}/{subject}/{dataset}":
                return known
    name = DEFAULTS if preset == DEFAULTS else None
    return choose_preset(name, reaction, dataset, model=model, is_embedded=dataset in embedded() and not is_own)


def _reaction(text: str) -> str:
    """Name of a reaction of the catalogue, ignoring case."""
    known = {name.lower(): name for name in catalogue.single}
    if text.lower() not in known:
        raise UnknownName("reaction after gread-", text, known.values())
    return known[text.lower()]


def _changed(one: Contestant, given: Mapping[str, str], names: set[str]) -> Contestant:
    """A contestant with its changes, and the method chosen for its equation."""
    if one.config is None:
        return one
    known = {f.name for part in (one.config.model, one.config.training) for f in fields(part)}
    updates: dict[str, str] = {}
    for name, value in given.items():
        whose, dot, setting = name.rpartition(".")
        if not dot and setting in known:
            updates.setdefault(setting, value)
        elif dot and whose not in names:
            raise UnknownName("network of a setting", whose, names)
        elif whose == one.name:
            updates[setting] = value
    config, _ = resolve_config(one.config.updated(updates))
    source = one.source + (f"; changed: {', '.join(updates)}" if updates else "")
    planned = one.config.training.epochs
    return Contestant(one.name, one.title, config, source, one.published, one.equation, planned)


def _check_used(given: Mapping[str, str], result: Sequence[Contestant]) -> None:
    """Raise UnknownName for a setting that no network has."""
    configs = [one.config for one in result if one.config is not None]
    known = {f.name for config in configs for part in (config.model, config.training) for f in fields(part)}
    for name in given:
        if "." not in name and name != "epochs" and name not in known:
            raise UnknownName("setting of these networks", name, known)
