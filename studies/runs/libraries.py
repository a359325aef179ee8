"""Optional libraries: which extra installs which, and the error that names the missing extra."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from rdgraph.errors import MissingDependency

#: From extras to the libraries they install, by import name; the extras of an extra are included.
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

#: Libraries that download files; not needed with a local copy of the data, and required only where a download starts.
FETCHING = ("pooch", "requests")


def require(purpose: str, extra: str) -> None:
    """Raise MissingDependency for the first missing library of an extra, except those for downloads."""
    for library in EXTRAS[extra]:
        if library not in FETCHING and not is_installed(library):
            raise missing(library, purpose, extra)


def is_installed(library: str) -> bool:
    """Whether a library is installed; it is not imported.

    >>> is_installed("json"), is_installed("no_such_library")
    (True, False)
    """
    try:
        return importlib.util.find_spec(library) is not None
    except (ImportError, ValueError):
        return False


def missing(library: str, purpose: str, extra: str | None = None) -> MissingDependency:
    """The error for a missing library; it names `extra`, or the first extra that installs the library."""
    installer = extra or next((name for name, known in EXTRAS.items() if library in known), None)
    remedy = f"pip install 'rdgraph[{installer}]'" if installer else f"install {library}"
    return MissingDependency(f"{purpose} needs {library}, which is not installed: {remedy}")
