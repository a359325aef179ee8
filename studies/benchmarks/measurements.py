"""What is measured on a card for the documentation: programs, what they write, and the pages that are made of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from studies.benchmarks.compared import SETS
from studies.benchmarks.search_speed import TARGETS
from studies.benchmarks.searched import OTHERS

DOCS = Path(__file__).resolve().parents[2] / "docs"
#: Studies that train, in the order of the paper's tables and figures.
STUDIES = (
    "trained-energy", "classification", "ablation", "sensitivity", "homophily", "depth", "significance", "embeddings",
    "wellposedness", "forensics",
)  # fmt: skip


#: What runs a study.
STUDY = ("studies.cli.app", "study")
#: Where a search over equations keeps its rounds, and one over settings its checkpoints, which take more room.
ROUNDS, CHECKPOINTS = ("--folder", "{out}.rounds"), ("--folder", "{checkpoints}")


@dataclass(frozen=True)
class Measurement:
    """A program of this package that goes on where it was left, and what becomes of its result.

    Args:
        name: What it is asked for by.
        words: Module and arguments; `{out}` is the place of its result, `{device}` the device, `{checkpoints}` a folder
            for what is under way.
        result: The file or folder that it writes; several may share one.
        kept: The file of the documentation that the result becomes; none for folders, whose page keeps what it needs.
        pages: Programs that write pages, once all measurements with their `kept` are done; `{out}` as above.
        alone: Whether it takes times, so that nothing else may run beside it.
        is_in_cells: Whether its result is a file of cells, each of which can be kept without the others.
        dataset: The data set whose cells of the kept file are its own, where that has those of several measurements.
    """

    name: str
    words: tuple[str, ...]
    result: str
    kept: str = ""
    pages: tuple[tuple[str, ...], ...] = ()
    alone: bool = False
    is_in_cells: bool = False
    dataset: str = ""

    def filled(self, words: tuple[str, ...], folder: Path, device: str, checkpoints: Path | None = None) -> list[str]:
        """Words with their places filled in; checkpoints are in the folder of results unless they have their own.

        >>> depth = of_study("depth")
        >>> depth.filled(depth.words, Path("measured"), "cpu")[-4:]
        ['--device', 'cpu', '--out', 'measured/depth']
        """
        own = checkpoints or folder / "checkpoints"
        return [word.format(out=folder / self.result, device=device, checkpoints=own) for word in words]


def of_study(name: str, *, alone: bool = False) -> Measurement:
    """A study, whose page is made of its run folder."""
    page = "studies.trained_energy.page" if name == "trained-energy" else "studies.runs.kept_page"
    words = (*STUDY, name, "--device", "{device}", "--out", "{out}")
    return Measurement(name, words, name, pages=((page, "{out}"),), alone=alone)


def _benchmark(module: str, *words: str, end: str = "", page: str = "", is_in_cells: bool = False) -> Measurement:
    """A program of `studies.benchmarks` that writes one file of the documentation: times, or cells."""
    made = (f"studies.benchmarks.{module}", "--device", "{device}", *words, "--out", "{out}")
    pages = ((f"studies.benchmarks.{page}",),) if page else ()
    name = module.replace("_", "-") + (f"-{end}" if end else "")
    file = f"{module}.json"
    return Measurement(name, made, file, file, pages, alone=not is_in_cells, is_in_cells=is_in_cells)


def _search_speed(name: str) -> Measurement:
    """The rate of a search on a data set; beside what its members reach alone where there is a target."""
    words = [] if name in TARGETS else ["--samples", "0"]
    return _benchmark("search_speed", "--dataset", name, *words, end=name, page="speed_page")


def _cells(module: str, end: str, *words: str, dataset: str = "") -> Measurement:
    """A part of a table of contestants, whose file is its own until it is joined with the others."""
    made = _benchmark(module, *words, end=end, page=f"{module}_page", is_in_cells=True)
    return replace(made, result=f"{made.name}.json", dataset=dataset)


def _cells_of_set(module: str, name: str, *words: str) -> Measurement:
    """The cells of a data set."""
    return _cells(module, name, "--set", name, *words, dataset=name)


def measurements() -> tuple[Measurement, ...]:
    """All of them: those that take times first."""
    return (
        _benchmark("model_speed", page="compared_page"),
        *map(_search_speed, SETS),
        *(
            _benchmark("large_graphs", "--size", size, end=size, page="speed_page")
            for size in ("products", "ten-million")
        ),
        _benchmark("printed_speed", page="speed_page"),
        of_study("runtime", alone=True),
        of_study("complexity", alone=True),
        *(of_study(name) for name in STUDIES),
        *(_cells_of_set("searched", name, *CHECKPOINTS) for name in (*SETS, *OTHERS)),
        _benchmark("distilled", page="distil_page", is_in_cells=True),
        *(_cells_of_set("discovered", name, *ROUNDS) for name in SETS),
        _cells("discovered", "transfer", "--contestant", "transfer"),
    )
