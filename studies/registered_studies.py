"""The studies by name: those of this package, found by their records, and those added by `register_study`.

A study of this package is a module NAME.py with a file NAME.toml, whose table `study` has `title`, `question` and, if
needed, the `extra` of the package. The module has `run(run)`, and optionally `settings(small)` and `limits(small)`; it
is imported when the study is used.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdgraph.errors import FileError, InvalidArgument
from rdgraph.files import read_text
from rdgraph.records import Records
from studies.runs.libraries import EXTRAS, require

if TYPE_CHECKING:
    from studies.runs.study import Study

#: Folder of the studies of this package.
_FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class StudyRecord:
    """Record of a study of this package, read before its module is imported.

    Args:
        name: of its folder, or of its module if that is not `study`, with - for _.
        module: with `run(run)`.
        title: the title of its report.
        question: what it asks, in a sentence.
        extra: the extra of this package that it needs.
    """

    name: str
    module: str
    title: str
    question: str
    extra: str | None = None

    def study(self) -> Study:
        """The study; its module is imported on first use."""
        from studies.runs.study import Study, nothing

        def on_use(function: str, default: Callable[[Any], Any] | None = None) -> Callable[[Any], Any]:
            def call(argument: Any) -> Any:
                module = import_module(self.module)
                return (getattr(module, function) if default is None else getattr(module, function, default))(argument)

            return call

        return Study(
            self.name, self.title, self.question, on_use("run"), on_use("settings", nothing), self.extra,
            limits=on_use("limits", nothing),
        )  # fmt: skip


@cache
def study_records(folder: Path = _FOLDER) -> tuple[StudyRecord, ...]:
    """The studies of this package, sorted by name.

    >>> [record.title for record in study_records() if record.name == "grid"]
    ['Diffusion and blurring-sharpening on a grid']
    """
    return tuple(sorted(_records(folder), key=lambda record: record.name))


def _records(folder: Path) -> Iterator[StudyRecord]:
    for path in folder.glob("*/*.toml"):
        words = tomllib.loads(read_text(path, "a record of a study")).get("study")
        if words is not None:
            chapter, stem = path.parent.name, path.stem
            name = (chapter if stem == "study" else stem).replace("_", "-")
            try:
                yield StudyRecord(name, f"{folder.name}.{chapter}.{stem}", **words)
            except TypeError:
                raise FileError(
                    f"the table [study] of {path} has {', '.join(words)}; it needs title and question, and may have "
                    "extra"
                ) from None


#: The registered studies by name: those of this package, then the added ones in the order of registration.
STUDIES: Records[Study] = Records("study", lambda: [record.study() for record in study_records()])


def register_study(study: Study) -> Study:
    """Register a study for `rdgraph study NAME` and `find_study(NAME)`.

    Args:
        study: the record; its name must be new.

    Returns:
        The same record.

    Raises:
        InvalidArgument: if it is no `Study`, its name is taken, or the package has no such extra.

    Example:
        >>> import studies
        >>> study = studies.Study("two-and-two", "A sum", "What is 2 + 2?", lambda run: run.results([{"x": 4}]))
        >>> mine = studies.register_study(study)
        >>> studies.find_study("two-and-two").question
        'What is 2 + 2?'
        >>> studies.unregister_study("two-and-two")
    """
    from studies.runs.study import Study

    if not isinstance(study, Study):
        raise InvalidArgument(f"expected a Study, got {type(study).__name__}; make one with studies.Study(...)")
    if study.extra is not None and study.extra not in EXTRAS:
        raise InvalidArgument(f"expected an extra among {', '.join(EXTRAS)}, got {study.extra!r}")
    return STUDIES.add(study)


def unregister_study(name: str) -> None:
    """Remove a registered study.

    Args:
        name: the name of the study.

    Raises:
        UnknownName: if no study has that name.

    Example:
        See `register_study`.
    """
    STUDIES.remove(name)


def find_study(name: str) -> Study:
    """The registered study of that name.

    Args:
        name: the name of the study, as `rdgraph study` lists it.

    Returns:
        Its record; its module is not imported and nothing is computed yet.

    Raises:
        UnknownName: if no study has that name; suggests the closest one.

    Example:
        >>> import studies
        >>> studies.find_study("grid").title
        'Diffusion and blurring-sharpening on a grid'
    """
    return STUDIES.find(name)


def require_libraries(study: Study) -> None:
    """Raise MissingDependency for the first library that a study needs and that is not installed."""
    if study.extra is not None:
        require(f"the study {study.name}", study.extra)
