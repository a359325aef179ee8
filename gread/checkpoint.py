"""Checkpoints: all that changes in an ensemble, as safetensors; a kill never leaves half a file."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import torch
from scipy.sparse import csr_array

from gread.datasets.nodes import NodeData
from gread.ensemble import Ensemble
from gread.trials import Trial
from rdgraph.errors import NotApplicable


def fingerprint(datas: list[NodeData], trials: list[Trial], manner: str = "") -> str:
    """A digest of what is trained on what, and in which manner; a checkpoint of something else is refused."""
    digest = hashlib.sha256(manner.encode())
    for trial in trials:
        digest.update(f"{trial.split} {trial.seed}\n{trial.config.toml()}".encode())
    for data in datas:
        x = data.x
        features: list[Any] = [x.data, x.indices, x.indptr] if isinstance(x, csr_array) else [x]
        masks = [data.masks.train, data.masks.val, data.masks.test]
        arrays = [data.graph.edge_index, data.graph.weight, data.y, *masks, *features]
        for array in arrays:
            digest.update(str(array.shape).encode() + array.tobytes())
    return digest.hexdigest()


def save_checkpoint(path: Path, ensemble: Ensemble, mark: str) -> None:
    """Write the state beside the old file, then put it in its place."""
    from safetensors.torch import save_file

    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in ensemble.state.items()}
    head = {"fingerprint": mark, "degree": str(ensemble.degree), "torch": torch.__version__}
    fresh = path.with_suffix(f".{os.getpid()}.part")
    save_file(tensors, fresh, metadata=head)
    with fresh.open("rb+") as stream:
        os.fsync(stream.fileno())
    fresh.replace(path)


def load_checkpoint(path: Path, ensemble: Ensemble, mark: str) -> bool:
    """Put a saved state into an ensemble; False where there is none. Another training's state is an error."""
    from safetensors import SafetensorError, safe_open

    if not path.exists():
        return False
    try:
        with safe_open(path, framework="pt") as stream:
            head = stream.metadata() or {}
            if head.get("fingerprint") != mark:
                raise NotApplicable(
                    f"expected a checkpoint of these trials on this data in {path}, got one of another training; "
                    "remove it, or choose another folder"
                )
            ensemble.restore({name: stream.get_tensor(name) for name in stream.keys()})  # noqa: SIM118
    except SafetensorError as error:
        raise NotApplicable(f"expected a checkpoint in {path}, got a file that is none ({error}); remove it") from None
    ensemble.degree = int(head["degree"])
    return True
