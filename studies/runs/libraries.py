"""Optional libraries: which extra brings which, and the error that names the extra a program needs."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from rdgraph.errors import MissingDependency

#: Extra -> the libraries it brings, by the names they are imported under; the extras of an extra are included.
EXTRAS: Mapping[str, tuple[str, ...]] = {
    "torch": ("torch", "torchdiffeq"),
    "gread": ("torch", "torchdiffeq", "pooch", "requests", "sklearn", "pyarrow", "safetensors"),
    "triton": ("triton",),
    "pyg": ("torch_geometric",),
    "ogb": ("torch", "torchdiffeq", "pooch", "requests", "sklearn", "pyarrow", "safetensors", "ogb"),
    "search": ("optuna",),
    "cmaes": ("optuna", "cmaes"),
    "postgresql": ("optuna", "psycopg"),
    "ray": ("ray",),
    "tensorboard": ("tensorboard",),
    "onnx": ("onnxscript", "onnxruntime"),
}

#: Libraries that fetch files: a local copy of the data needs none, and what fetches asks for them itself.
FETCHING = ("pooch", "requests")


def require(purpose: str, extra: str) -> None:
    """Name the first library of an extra that is missing, before anything is computed; those that fetch aside."""
    for library in EXTRAS[extra]:
        if library not in FETCHING and not is_installed(library):
            raise missing(library, purpose, extra)


def is_installed(library: str) -> bool:
    """Whether a library can be imported, found without importing it.

    >>> is_installed("json"), is_installed("no_such_library")
    (True, False)
    """
    try:
        return importlib.util.find_spec(library) is not None
    except (ImportError, ValueError):
        return False


def missing(library: str, purpose: str, extra: str | None = None) -> MissingDependency:
    """The error for a library that is not there; without an extra, the first one that brings it."""
    brings = extra or next((name for name, known in EXTRAS.items() if library in known), None)
    remedy = f"pip install 'rdgraph[{brings}]'" if brings else f"install {library}"
    return MissingDependency(f"expected {library} for {purpose}, got an installation without; {remedy}")
