"""Numbers in sentences: no minus before a zero."""

from __future__ import annotations

import re

from tests.paths import ROOT

#: A sign that is always written, without the z that takes it from a zero: "+.2f" gives "-0.00" for -0.001.
SIGNED = re.compile(r"\{[^{}]*:\+\.\d[fg]\}")


def test_signed_numbers_have_no_negative_zero() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for package in ("rdgraph", "analysis", "gread", "studies")
        for path in sorted((ROOT / package).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if SIGNED.search(line)
    ]
    assert not found
    assert f"{-0.001:+z.2f}" == "+0.00"
