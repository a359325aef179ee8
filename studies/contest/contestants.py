"""Who is compared: networks by name, reactions as gread-R, and references that need no training."""

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

#: References by the names they have on the command line.
REFERENCES = {"labelprop": PROPAGATION, "majority": MAJORITY}
#: Which settings networks are compared with: the published ones where there are some, or the defaults.
PRESETS = (PUBLISHED, DEFAULTS)
EQUATION = f"{GREAD}-"
#: Digits by which the files of one equation differ from those of another.
DIGITS = 6


@dataclass(frozen=True)
class Contestant:
    """A network with its settings and their source, or a reference, which has none.

    `published` is the number that was published for it on the data set, where there is one, `equation` the text of a
    reaction that has no name, `preset_epochs` what its settings have before any change.
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
        """Whether its settings are published ones, with epochs that belong to them."""
        return self.source.startswith(("paper/", "authors/", f"{PUBLISHED}/"))

    def handicap(self, other: Contestant, rows: Sequence[Mapping[str, Any]]) -> str:
        """How it was cut off beside another one; "" where both had the same budget, or nothing was published for it.

        The epochs of the defaults are no more than a choice: fewer of them are a budget as good as any other.
        """
        cut = self.cut_off(rows)
        if not cut or self.config is None or self.is_published or other.config is None:
            return cut if self.is_published else ""
        return cut if other.config.training.epochs > self.config.training.epochs else ""

    @property
    def key(self) -> str:
        """A name for files, which tells equations apart."""
        digest = f"-{hashlib.sha256(self.equation.encode()).hexdigest()[:DIGITS]}" if self.equation else ""
        return f"{self.name.replace('*', 'star')}{digest}"

    def cut_off(self, rows: Sequence[Mapping[str, Any]]) -> str:
        """How its training ended before its time, from the rows of its results; "" where it did not."""
        return "" if self.config is None else cut_off(rows, self.config.training, self.preset_epochs)

    @property
    def settings(self) -> dict[str, object]:
        """Its settings by NAME.SETTING, for the config.toml of the run."""
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
    """The contestants of these names on a data set, with changed settings; `is_own` for a graph of the user's.

    `reactions` are names of the catalogue or equations, each for a network of its own after the others.

    A change NAME.SETTING is for one of them, a change SETTING for all that have it. `epochs` holds for all.

    >>> [c.title for c in read_contestants(["gcn", "gread-fb*", "labelprop"], "cora")]
    ['GCN', 'GREAD-FB*', 'label propagation']
    """
    if preset not in PRESETS:
        raise UnknownName("preset", preset, PRESETS)
    found = []
    for name in dict.fromkeys(names):
        if name in REFERENCES:
            found.append(Contestant(name, REFERENCES[name]))
        else:
            found.append(_network(name, dataset, preset, is_own))
    found += [_reacting(text, k, dataset, preset, is_own) for k, text in enumerate(dict.fromkeys(reactions))]
    found = list({one.name: one for one in found}.values())
    if not found:
        raise InvalidArgument("expected networks to compare, got none; write --models gcn,gat,gread-bs,labelprop")
    given = {"epochs": str(epochs), **(changes or {})} if epochs is not None else dict(changes or {})
    changed = [_changed(one, given, {c.name for c in found}) for one in found]
    _check_used(given, found)
    return tuple(changed)


def _network(name: str, dataset: str, preset: str, is_own: bool) -> Contestant:
    """A network with its settings on a data set: published ones, else the defaults."""
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
    """GREAD around a reaction by name, or around an equation; those are called reaction, reaction2, ...

    An equation has the settings that GREAD itself has here: with others it would win or lose by these.
    """
    if text in catalogue and catalogue.entry(text).name in catalogue.single:
        return _network(f"{EQUATION}{catalogue.entry(text).name}", dataset, preset, is_own)
    parse(text)  # which says what is wrong with it
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
    """A reaction of the catalogue, whatever its letters' case."""
    known = {name.lower(): name for name in catalogue.single}
    if text.lower() not in known:
        raise UnknownName("reaction after gread-", text, known.values())
    return known[text.lower()]


def _changed(one: Contestant, given: Mapping[str, str], names: set[str]) -> Contestant:
    """A contestant with the changes that are for it, and the method that follows from its equation."""
    if one.config is None:
        return one
    known = {f.name for part in (one.config.model, one.config.training) for f in fields(part)}
    own: dict[str, str] = {}
    for name, value in given.items():
        whose, dot, setting = name.rpartition(".")
        if not dot and setting in known:
            own.setdefault(setting, value)
        elif dot and whose not in names:
            raise UnknownName("network of a setting", whose, names)
        elif whose == one.name:
            own[setting] = value
    config, _ = resolve_config(one.config.updated(own))
    source = one.source + (f"; changed: {', '.join(own)}" if own else "")
    planned = one.config.training.epochs
    return Contestant(one.name, one.title, config, source, one.published, one.equation, planned)


def _check_used(given: Mapping[str, str], found: Sequence[Contestant]) -> None:
    """Refuse a setting that no network has."""
    configs = [one.config for one in found if one.config is not None]
    known = {f.name for config in configs for part in (config.model, config.training) for f in fields(part)}
    for name in given:
        if "." not in name and name != "epochs" and name not in known:
            raise UnknownName("setting of these networks", name, known)
