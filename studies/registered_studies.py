"""The studies by name: those of this package are found by their records, others are added by `register_study`.

A study of this package is a module with a file of the same name and the ending toml beside it, whose table `study` says
`title`, `question` and, where it needs one, the `extra` of the package. The module has `run(run)`, and perhaps
`settings(small)` and `limits(small)`; it is imported when the study is used, so that names and questions are known at
once.
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

#: Where studies of this package lie.
_FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class StudyRecord:
    """What is known of a study of this package before its module is imported.

    Args:
        name: the name of its folder, or of its module where that is not `study`, with - for _.
        module: where `run(run)` is found.
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
        """The study; its module is still not imported."""
        from studies.runs.setting_limits import no_limits
        from studies.runs.study import Study, no_settings

        def on_use(function: str, default: Callable[[Any], Any] | None = None) -> Callable[[Any], Any]:
            def call(argument: Any) -> Any:
                module = import_module(self.module)
                return (getattr(module, function) if default is None else getattr(module, function, default))(argument)

            return call

        return Study(
            self.name, self.title, self.question, on_use("run"), on_use("settings", no_settings), self.extra,
            limits=on_use("limits", no_limits),
        )  # fmt: skip


@cache
def study_records(folder: Path = _FOLDER) -> tuple[StudyRecord, ...]:
    """The studies of this package in the order of their names.

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
                    f"expected title, question and perhaps extra in the table [study] of {path}, got {', '.join(words)}"
                ) from None


#: The registered studies by name: those of this package, then those that were added, in the order of registration.
STUDIES: Records[Study] = Records("study", lambda: [record.study() for record in study_records()])


def register_study(study: Study) -> Study:
    """Add a study, so that `rdgraph study NAME` and `find_study(NAME)` know it.

    Args:
        study: the record; its name must be new.

    Returns:
        The same record.

    Raises:
        InvalidArgument: for what is no `Study`, a name that is taken, or an extra this package does not have.

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
    """Forget a study that was registered.

    Args:
        name: the name of the study.

    Raises:
        UnknownName: where no study has that name.

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
        UnknownName: where no study has that name; offers the closest one.

    Example:
        >>> import studies
        >>> studies.find_study("grid").title
        'Diffusion and blurring-sharpening on a grid'
    """
    return STUDIES.find(name)


def require_libraries(study: Study) -> None:
    """Name the first library that a study needs and that is not installed, before anything is computed."""
    if study.extra is not None:
        require(f"the study {study.name}", study.extra)
