"""The settings and words of a study: texts and verdicts with {places}, in the file NAME.toml next to its module."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any

#: A statement, its answer, and the evidence.
Verdict = tuple[str, str, str]


@dataclass(frozen=True)
class WordSheet:
    """The file NAME.toml of a folder of studies: settings, texts with {places}, and verdicts of two texts each.

    Args:
        folder: of the study, such as "grid".
        name: of the file, "study" where the folder has one study.
    """

    folder: str
    name: str = "study"

    @cached_property
    def entries(self) -> dict[str, Any]:
        path = resources.files("studies").joinpath(self.folder, f"{self.name}.toml")
        return tomllib.loads(path.read_text(encoding="utf-8"))

    def settings(self, small: bool) -> dict[str, Any]:
        """The settings of a mode, in the order of the file; `small` names those that differ in the small mode."""
        return {**self.entries["settings"], **(self.entries["small"] if small else {})}

    def text(self, name: str, /, **values: object) -> str:
        """A text of the sheet, its places filled.

        >>> WordSheet("paper", "depth").text("nothing deep")
        'No depth of Table 23 is in this run.'
        """
        return str(self.entries["texts"][name]).format_map(values)

    def verdict(self, name: str, answer: str, /, **values: object) -> Verdict:
        """A verdict of the sheet: its statement and its evidence, their places filled.

        >>> WordSheet("paper", "sensitivity").verdict("best time", "undecided", listed="T = 1 +0.50 (p 0.2)")[:2]
        ('On Chameleon GREAD-BS has the highest mean accuracy at T = 1.9 (Figure 3).', 'undecided')
        """
        words = self.entries["verdicts"][name]
        return words["statement"].format_map(values), answer, words["evidence"].format_map(values)
