"""What a run was made with: resolved settings as toml, versions and machine as json, a fingerprint of the code."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import rdgraph
from rdgraph.errors import RdgraphError

PACKAGES = ("rdgraph", "analysis", "gread", "studies")
LIBRARIES = (
    "numpy", "scipy", "sympy", "networkx", "torch", "torchdiffeq", "triton", "matplotlib", "pillow",
    "scikit-learn", "pyarrow", "safetensors", "pooch", "torch-geometric",
)  # fmt: skip


@dataclass(frozen=True)
class Config:
    """Everything the numbers of a run depend on.

    >>> print(Config("grid", settings={"alpha": 1.0}).toml(), end="")
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
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise RdgraphError(f"expected a seed of 0 or more, got {self.seed}")
        check_device(self.device)

    def toml(self) -> str:
        """The text of config.toml; `tomllib` reads it back."""
        head = {name: getattr(self, name) for name in ("study", "small", "seed", "device", "version")}
        lines = [f"{key} = {_toml(value)}" for key, value in head.items()]
        lines += ["", "[settings]", *(f"{_key(name)} = {_toml(value)}" for name, value in self.settings.items())]
        return "\n".join(lines) + "\n"

    def differences(self, text: str) -> list[str]:
        """In words, where the config.toml with this text differs; [] where it does not."""
        try:
            theirs, ours = tomllib.loads(text), tomllib.loads(self.toml())
        except (tomllib.TOMLDecodeError, RecursionError):
            return ["a config.toml that no study wrote"]
        settings = theirs.get("settings", {})
        if not isinstance(settings, dict):
            return ["a config.toml that no study wrote"]
        pairs = ((theirs, ours), (settings, ours["settings"]))
        return [
            f"{name} = {there.get(name)!r} there, {here.get(name)!r} here"
            for there, here in pairs
            for name in dict.fromkeys([*here, *there])
            if name != "settings" and there.get(name) != here.get(name)
        ]


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case int() | float():
            return repr(value)
        case list() | tuple():
            return f"[{', '.join(map(_toml, value))}]"
    raise RdgraphError(f"expected settings that are numbers, texts or lists of them, got {value!r}")


def check_device(device: str) -> None:
    """Refuse a device that torch cannot use here."""
    kind, _, number = device.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdecimal()):
        raise RdgraphError(f"expected the device cpu, cuda or cuda:N, got {device!r}")
    if kind == "cuda":
        import torch

        if int(number or 0) >= torch.cuda.device_count():
            raise RdgraphError(
                f"expected a CUDA device torch can use, got {device!r} and {torch.cuda.device_count()} such devices; "
                "choose --device cpu"
            )


def environment(device: str) -> dict[str, Any]:
    """Versions, machine and the fingerprint of the code, as environment.json keeps them."""
    found: dict[str, Any] = {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "code": fingerprint(),
        "libraries": {name: version for name in LIBRARIES if (version := _version(name))},
    }
    if device.startswith("cuda"):
        import torch

        found["gpu"] = torch.cuda.get_device_name(device)
    return found


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
