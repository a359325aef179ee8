"""What a reader sees of a report: its text without marks, scripts and pictures."""

from __future__ import annotations

import html
import re
from pathlib import Path


def visible_text(folder: Path) -> str:
    """The words of report.html below a folder."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    page = re.sub(r"<(style|script)[^>]*>.*?</\1>", " ", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", page))


def code_names(folder: Path) -> list[str]:
    """Names of the code that stand on a page where a reader expects the sign: lam for λ."""
    return re.findall(r"\blam(?:\d|_\w+)?\b", visible_text(folder))
