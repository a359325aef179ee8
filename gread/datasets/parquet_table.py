"""`ParquetTable`: a parquet file whose columns are read one by one, and in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from gread.datasets.preparation import ERROR, FeatureChoices, is_missing
from rdgraph.errors import FileError, MissingDependency

#: Rows that are looked at together; where ids are looked up, a table of all of them is made for each block.
BATCH, LOOKED_UP = 1 << 16, 1 << 18
#: What helps where numbers are missing among the features.
FILL = "leave it out, fill it, or take the mean of the column (missing='mean', --missing mean)"


class IdTexts(Sequence[str]):
    """Ids as texts that are made when they are asked for; `ids` is an arrow array.

    >>> import pyarrow as pa
    >>> texts = IdTexts(pa.array([7, 30]))
    >>> list(texts), texts[-1], texts[:1]
    (['7', '30'], '30', ('7',))
    """

    def __init__(self, ids: Any) -> None:
        self._ids = ids

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, which: int) -> str: ...

    @overload
    def __getitem__(self, which: slice) -> Sequence[str]: ...

    def __getitem__(self, which: int | slice) -> str | Sequence[str]:
        found = self._ids[which]
        return tuple(map(str, found.to_pylist())) if isinstance(which, slice) else str(found.as_py())

    def __iter__(self) -> Iterator[str]:
        return (text for start in range(0, len(self), BATCH) for text in self[start : start + BATCH])

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))


class ParquetTable:
    """A parquet file whose columns are read one by one."""

    def __init__(self, path: Path, needed: Sequence[str]) -> None:
        try:
            from pyarrow import ArrowException, parquet
        except ImportError:
            raise MissingDependency(
                "expected the package pyarrow for parquet files, got none; pip install 'rdgraph[gread]'"
            ) from None
        self.path = path
        try:
            self.file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
        except OSError as problem:
            raise FileError(f"expected a file that can be read, got {path}: {problem}; check its name") from None
        except ArrowException as problem:
            raise FileError(f"expected a parquet file in {path}, got {problem}; save it again") from None
        self.names: list[str] = self.file.schema_arrow.names
        self.rows = int(self.file.metadata.num_rows)
        for name in needed:
            if name not in self.names:
                raise FileError(f"expected a column {name!r} in {path}, got {', '.join(self.names)}")

    def column(self, name: str) -> Any:
        return self.file.read(columns=[name], use_threads=False)[name]

    def undivided(self, name: str) -> Any:
        """A column as one arrow array, of the values themselves where it keeps each of them once."""
        found = self.column(name).combine_chunks()
        return found.dictionary_decode() if hasattr(found, "dictionary_decode") else found

    def is_category(self, name: str, choices: FeatureChoices) -> bool:
        """Whether a column is one of words."""
        kind = str(self.file.schema_arrow.field(name).type)
        is_text = kind in ("string", "large_string", "string_view") or kind.startswith("dictionary<values=string")
        return name in choices.categories or (is_text and choices.finds_categories)

    def words(self, name: str, choices: FeatureChoices) -> list[str | None]:
        """A column of categories, None where one is missing."""
        found = self.column(name).to_pylist()
        read = [None if value is None or is_missing(str(value)) else str(value) for value in found]
        if choices.missing == ERROR and None in read:
            raise FileError(
                f"expected a category in row {read.index(None)}, column {name!r} of {self.path}, got an empty cell; "
                "leave the column out, fill it, or let it be none of them (missing='mean', --missing mean)"
            )
        return read

    def batches(self, name: str, rows: int = BATCH) -> Iterator[Any]:
        """A column as arrow arrays of so many rows; what they took is not kept for later ones."""
        from pyarrow import default_memory_pool

        for batch in self.file.iter_batches(rows, columns=[name], use_threads=False):
            yield batch.column(0)
        default_memory_pool().release_unused()

    def number_blocks(self, name: str, may_miss: bool = False, remedy: str = FILL) -> Iterator[np.ndarray]:
        """A column of numbers in blocks, none of them missing, or nan where they may."""
        kind = self.file.schema_arrow.field(name).type
        for part in self.batches(name):
            is_whole = may_miss or not part.null_count
            values = np.asarray(part.to_numpy(zero_copy_only=False)) if is_whole else np.array([None])
            if values.dtype.kind not in "biuf":
                got = "empty cells" if part.null_count else str(kind)
                raise FileError(f"expected numbers in column {name!r} of {self.path}, got {got}; {remedy}")
            yield values

    def numbers(self, name: str, may_miss: bool = False) -> np.ndarray:
        """The same as one array."""
        found, done = None, 0
        for values in self.number_blocks(name, may_miss):
            if found is None or (found.dtype.kind != "f" and values.dtype.kind == "f"):
                wider = np.empty(self.rows, dtype=values.dtype)
                wider[:done] = 0 if found is None else found[:done]
                found = wider
            found[done : done + len(values)] = values
            done += len(values)
        return np.empty(0) if found is None else found
