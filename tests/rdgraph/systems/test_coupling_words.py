"""What moves each field, in words."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings

import rdgraph as rd
from rdgraph.errors import NotApplicable
from rdgraph.language.reader import start_of
from rdgraph.reports.coupling_words import coupling_words
from rdgraph.systems.system import System
from rdgraph.testing import field_systems
from tests.property_examples import examples


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("u' = 0*u; v' = xi", {"u'": "nothing", "v'": "noise xi"}),
        ("u' = -u + (u - 2)*xi", {"u'": "linear in u (node); noise (u - 2)*xi"}),
        ("H'' = A@H - H' + H0'", {"H'": "linear in H' (node)",
                                  "H''": "linear in H (A), H' (node); linear in H0' (node)"}),
        ("u' = B@A@v - L@v + A@A@v; v' = M*u where B signed",
         {"u'": "linear in v (node, A, A@A and B@A)", "v'": "between nodes M*u"}),
        ("u' = tanh(u) + t*v; v' = a + 1", {"u'": "linear in v (node); reaction tanh(u)", "v'": "constant a + 1"}),
    ],
)  # fmt: skip
def test_words_by_hand(text: str, words: dict[str, str]) -> None:
    assert coupling_words(rd.parse(text)) == words


@settings(max_examples=examples(40), deadline=None)
@given(field_systems(linear=False))
def test_every_letter_that_acts_is_named(system: System) -> None:
    """Independent: the words name exactly the states in the normal form."""
    try:
        words = coupling_words(system)
    except NotApplicable:
        assume(False)
    assert list(words) == [f"{state}'" for state in system.fields]
    for state in system.fields:
        said = words[f"{state}'"]
        assert ("noise" in said) == (state in system.noise)
        for other in system.fields:
            for letter in (other, start_of(other)):
                acts = any(s.name == letter for s in system.normals[state].free_symbols)
                assert not acts or letter in said
