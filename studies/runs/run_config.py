"""Provenance of a run: its settings as TOML, versions and machine as json, a fingerprint of the code; its folder."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from shlex import join
from typing import Any

import tomli_w

import rdgraph
from rdgraph.errors import FileError, InvalidArgument
from rdgraph.files import file_lock, read_text, remove_drafts, unwritable
from rdgraph.graphs.kernels.device_names import read_device

PACKAGES = ("rdgraph", "analysis", "gread", "studies")
LIBRARIES = (
    "numpy", "scipy", "sympy", "networkx", "torch", "torchdiffeq", "triton", "matplotlib", "pillow",
    "scikit-learn", "pyarrow", "safetensors", "pooch", "torch-geometric", "optuna", "ray",
)  # fmt: skip


def command_line(*words: object, **options: object) -> str:
    """A command line of `rdgraph` that can be pasted; see `option_words`.

    >>> command_line("train", Path("my run"), seed=0, small=True)
    "rdgraph train 'my run' --seed 0 --small"
    """
    return join(["rdgraph", *map(str, words), *option_words(options)])


def option_words(options: Mapping[str, object]) -> list[str]:
    """Options as words: a tuple is joined by commas, a list repeats the option, True gives the option alone.

    None and False are left out.

    >>> option_words({"splits": (0, 1), "set": ["a=1", "b=2"], "batch": None})
    ['--splits', '0,1', '--set', 'a=1', '--set', 'b=2']
    """
    words: list[str] = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif isinstance(value, tuple):
            words += [option, ",".join(map(str, value))]
        elif value is not None and value is not False:
            words += [word for one in (value if isinstance(value, list) else [value]) for word in (option, str(one))]
    return words


@dataclass(frozen=True)
class RunConfig:
    """Everything the numbers of a run depend on, as written to config.toml.

    `sections` are the tables of the file, [settings] for most studies; `head` are the entries before them. If the work
    is done on other machines (`is_elsewhere`), the device need not exist here.

    >>> print(RunConfig("grid", sections={"settings": {"alpha": 1.0}}).toml(), end="")
    study = "grid"
    small = false
    seed = 0
    device = "cpu"
    version = "0.1.0"
    <BLANKLINE>
    [settings]
    alpha = 1.0
    """

    study: str
    small: bool = False
    seed: int = 0
    device: str = "cpu"
    version: str = rdgraph.__version__
    sections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    head: Mapping[str, Any] = field(default_factory=dict)
    is_elsewhere: bool = False

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InvalidArgument(f"the seed must be 0 or more, got {self.seed}")
        if not self.is_elsewhere:
            read_device(self.device)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of all sections, by their names."""
        return {name: value for section in self.sections.values() for name, value in section.items()}

    @property
    def values(self) -> dict[str, Any]:
        """The content of config.toml."""
        general = {"seed": self.seed, "device": self.device, "version": self.version}
        return {"study": self.study, "small": self.small, **self.head, **general, **self.sections}

    def toml(self) -> str:
        """The text of config.toml; `tomllib` reads it back."""
        for name, value in (*self.head.items(), *self.settings.items()):
            if not _is_setting(value):
                raise InvalidArgument(f"settings are numbers, texts or lists of them, got {name}={value!r}")
        return tomli_w.dumps(self.values)

    def differences(self, text: str) -> list[str]:
        """The differences from another config.toml in words; [] if there are none."""
        try:
            theirs, ours = tomllib.loads(text), tomllib.loads(self.toml())
        except (tomllib.TOMLDecodeError, RecursionError):
            return ["its config.toml was not written by a study"]
        if any(not isinstance(theirs.get(name, {}), dict) for name in self.sections):
            return ["its config.toml was not written by a study"]
        if theirs.get("study") != self.study:
            return [f"study = {theirs.get('study')!r} there, {self.study!r} here"]
        there, here = _flat(theirs), _flat(ours)
        return [
            f"{name} = {there.get(name)!r} there, {here.get(name)!r} here"
            for name in dict.fromkeys([*here, *there])
            if there.get(name) != here.get(name)
        ]


def _is_setting(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_setting, value))
    return isinstance(value, bool | int | float | str)


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, those of a section by SECTION.NAME."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= {f"{name}.{key}": v for key, v in value.items()} if isinstance(value, dict) else {name: value}
    return flat


def environment(device: str) -> dict[str, Any]:
    """Versions, machine and the fingerprint of the code, for environment.json."""
    facts: dict[str, Any] = {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "code": fingerprint(),
        "libraries": {name: version for name in LIBRARIES if (version := _version(name))},
    }
    if device.startswith("cuda"):
        import torch

        if torch.cuda.is_available():
            facts["gpu"] = torch.cuda.get_device_name(device)
    return facts


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@cache
def fingerprint() -> str:
    """Twelve hexadecimal digits that change with any source or data file of the packages.

    >>> len(fingerprint())
    12
    """
    root = Path(rdgraph.__file__).parent.parent
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*")):
            if path.is_file() and path.suffix in (".py", ".toml", ".csv", ".json", ".html"):
                digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


# ---------------------------------------------------------------------- run folder
# The folder of a run: preparing it, locking it, and which code has written to it.

#: Differing settings that an error lists; the first ones name the data and the network.
MOST_LISTED = 4


def prepare(folder: Path, config: RunConfig, *, resume: bool = True) -> str:
    """State of the folder, which is made if necessary; "" if it is new.

    Raises FileError if it holds other files, another study or other settings, or without `resume` anything at all.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        entries = [p.name for p in folder.iterdir() if not p.name.startswith(".")]
    except OSError as problem:
        raise unwritable(folder, problem) from None
    if not entries:
        return ""
    known = folder / "config.toml"
    if not resume or not known.is_file():
        remedy = "add --resume, or choose another with --out" if known.is_file() else "choose another with --out"
        raise FileError(f"{folder} is not empty (it holds {min(entries)}); {remedy}")
    different = config.differences(read_text(known, "the settings of a run"))
    if different:
        rest = len(different) - MOST_LISTED
        listed = "; ".join(different[:MOST_LISTED]) + (f" and {rest} more" if rest > 0 else "")
        raise FileError(
            f"{folder} holds a run with other settings: {listed}; resume with the same settings, choose another folder "
            "with --out, or delete this one"
        )
    state = folder / "state"
    return read_text(state, "the state of a run").strip() if state.is_file() else ""


def earlier_codes(path: Path) -> set[str]:
    """Fingerprints of the code that has written to a folder, from its environment.json, if there is one."""
    if not path.is_file():
        return set()
    try:
        earlier = json.loads(read_text(path, "an environment"))
        codes = [*earlier.get("earlier_code", []), earlier["code"]]
    except (FileError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        codes = [""]
    if not all(isinstance(code, str) and code for code in codes):
        raise FileError(f"{path} was changed by hand; delete the folder")
    return set(codes)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the folder until the process ends, and remove the drafts of killed ones."""
    with ExitStack() as held:
        try:
            is_free = held.enter_context(file_lock(folder / ".lock", wait=False))
        except OSError as problem:
            raise unwritable(folder, problem) from None
        if not is_free:
            raise FileError(f"another study is writing to {folder}; wait for it, or choose another folder with --out")
        remove_drafts(folder)
        yield
