"""Bundles: metadata and tensors in two files that cannot be confused with those of another bundle.

NAME.json, the manifest, holds the format, the metadata, the sha256 of the tensors and of its own content; the tensors
are in NAME-DIGITS.safetensors, named after their sha256. They are written first, then the new manifest replaces the old
one, so a killed process leaves the old pair or the new one. Everything is verified when it is read, and nothing is
unpickled.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from rdgraph.errors import FileError
from rdgraph.files import drafting, move, read_bytes, read_text, write_text

#: Digits of the sha256 in the name of a file of numbers.
DIGITS = 16
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, eq=False)
class Bundle:
    """The content of a bundle: words as JSON data, numbers as tensors by name."""

    words: dict[str, Any]
    numbers: dict[str, Tensor]


def save_bundle(manifest: Path, kind: str, words: Mapping[str, Any], numbers: Mapping[str, Tensor]) -> None:
    """Write words and numbers under the name of the manifest, NAME.json, replacing an older bundle.

    `kind` names the format, with its version. A full disk or a folder that cannot be written raises a FileError and
    leaves the old bundle unchanged.
    """
    from safetensors.torch import save

    content = save({name: value.detach().cpu().contiguous().clone() for name, value in numbers.items()})
    digest = hashlib.sha256(content).hexdigest()
    part = _part(manifest, digest)
    with drafting(part) as draft:
        draft.write_bytes(content)
        move(draft, part, durable=True)
    body = {"format": kind, "words": dict(words), "numbers": digest}
    text = json.dumps(body | {"sha256": _digest(body)}, indent=2)
    write_text(manifest, text + "\n", durable=True)
    for old in manifest.parent.glob(f"{manifest.stem}-*.safetensors"):
        if old != part and _is_part(manifest, old):
            with suppress(OSError):  # a file that cannot be removed is harmless
                old.unlink()


def load_bundle(manifest: Path, kind: str, what: str) -> Bundle:
    """Read a bundle of a kind; `what` names it in errors, such as "a saved network".

    A file that is missing, damaged, of another kind or of another bundle raises a FileError.
    """
    body = _read_manifest(manifest, kind, what)
    part = _part(manifest, body["numbers"])
    content = read_bytes(part, f"the numbers of {what}")
    if hashlib.sha256(content).hexdigest() != body["numbers"]:
        raise FileError(f"the numbers of {what} in {part} were changed; save it again")
    return Bundle(body["words"], _read_numbers(content, part, what))


def _read_manifest(manifest: Path, kind: str, what: str) -> dict[str, Any]:
    text = read_text(manifest, what)
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise FileError(f"{manifest} is not valid JSON ({problem}); save {what} again") from None
    if not isinstance(body, dict) or body.get("format") != kind:
        got = f"the format {body['format']!r}" if isinstance(body, dict) and "format" in body else "a file without one"
        raise FileError(f"expected {what} of the format {kind!r} in {manifest}, got {got}; save it again")
    claimed = body.pop("sha256", None)
    numbers = body.get("numbers")
    is_whole = set(body) == {"format", "words", "numbers"} and isinstance(body["words"], dict)
    if not (is_whole and claimed == _digest(body) and isinstance(numbers, str) and _SHA256.fullmatch(numbers)):
        raise FileError(f"{manifest} was changed; save {what} again")
    return body


def _read_numbers(content: bytes, part: Path, what: str) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return load(content)
    except (SafetensorError, ValueError, KeyError, TypeError, RuntimeError) as problem:
        raise FileError(
            f"expected the numbers of {what} in {part}, got a file that is no safetensors ({problem}); save it again"
        ) from None


def _digest(body: Mapping[str, Any]) -> str:
    """The sha256 of JSON data, independent of order and spacing in the file."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _part(manifest: Path, digest: str) -> Path:
    return manifest.with_name(f"{manifest.stem}-{digest[:DIGITS]}.safetensors")


def _is_part(manifest: Path, path: Path) -> bool:
    digits = path.stem.removeprefix(f"{manifest.stem}-")
    return re.fullmatch(rf"[0-9a-f]{{{DIGITS}}}", digits) is not None and path.is_file() and not path.is_symlink()
