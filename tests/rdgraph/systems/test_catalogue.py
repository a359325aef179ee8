"""The catalogue: data with sources, readable entries, the relations between them."""

from __future__ import annotations

import pytest

import rdgraph as rd

NAMES = {
    "diffusion", "F", "AC", "Z", "BS", "ST", "FB", "FB*", "FB-released", "FB*-released", "GRAND-l", "GRAND++", "CGNN",
    "CGNN-authors", "GRAFF", "ACMP", "APPNP", "SGC", "Nagumo",
}  # fmt: skip


def test_names_and_sources() -> None:
    assert set(rd.catalogue) == NAMES
    for entry in rd.catalogue.entries.values():
        assert entry.source
        assert entry.title
        assert rd.catalogue[entry.name].name == entry.name
        assert rd.parse(str(rd.catalogue[entry.name])) == rd.catalogue[entry.name]


def test_lookup() -> None:
    assert rd.parse("blurring-sharpening") == rd.catalogue["bs"]
    assert rd.parse("BS", assume="beta<0").assumptions.sign("beta") == "negative"
    assert rd.parse("BS", {"beta": "channel"}).coefficients["beta"] == "channel"
    with pytest.raises(rd.UnknownName, match="did you mean 'GRAND"):
        rd.catalogue["GRAND-2"]


def test_the_released_filter_banks_are_not_the_printed_ones() -> None:
    assert not rd.equivalent("FB", "FB-released")
    assert rd.equivalent("FB-released", "-alpha*L@H + beta*(2*H - L@H)")
    assert rd.equivalent("FB*-released", "-alpha*L@H + beta*(3*H - L@H)")
    assert [c.kind for c in rd.classify(rd.parse("FB", assume="beta > alpha"))] == ["high-pass"]
    assert [c.kind for c in rd.classify(rd.catalogue["FB-released"])] == ["low-pass"]
