"""MathML of equations: well formed, and of the same value for a reader that shares no code with the printer."""

from __future__ import annotations

import math
import re
import unicodedata
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

import rdgraph as rd
from rdgraph.systems.system import System
from rdgraph.testing import systems
from tests.property_examples import examples

#: In a page of HTML the elements are known without one.
NAMESPACE = ""
SIGNS = {"−": "-", "⊙": "*", "·": "*", "∘": ""}


def letter(element: ElementTree.Element) -> str:
    """The name that a sign stands for: Greek letters by their names, an upright sigma for the sigmoid."""
    text = element.text or ""
    if text == "σ" and element.get("mathvariant") == "normal":
        return "sigmoid"
    if text.isascii():
        return text
    *_, size, _, name = unicodedata.name(text).split()  # GREEK SMALL LETTER BETA
    return "lam" if name == "LAMDA" else name.title() if size == "CAPITAL" else name.lower()


def parts_of(element: ElementTree.Element) -> list[str]:
    """The tokens of an element, with a product between adjacent values."""
    tag, children = element.tag.removeprefix(NAMESPACE), list(element)
    match tag:
        case "mi":
            return [letter(element)]
        case "mn":
            return [element.text or ""]
        case "mo":
            return [SIGNS.get(element.text or "", element.text or "")]
        case "mspace":
            return ["*"]
        case "mfrac":
            top, bottom = (written(child) for child in children)
            return [f"(({top})/({bottom}))"]
        case "msup":
            base, exponent = (written(child) for child in children)
            return [f"(({base})**({exponent}))"]
        case "msub":
            return ["_".join(written(child) for child in children)]
        case "msqrt":
            return [f"sqrt({written_row(children)})"]
    return [written_row(children)]


def written_row(children: list[ElementTree.Element]) -> str:
    text = "".join(part for child in children for part in parts_of(child))
    text = re.sub(r"\|([^|]*)\|", r"abs(\1)", text)
    return re.sub(r"([HU])\(0\)", r"\g<1>0", text)


def written(element: ElementTree.Element) -> str:
    return "".join(parts_of(element))


def value(text: str, letters: dict[str, float]) -> float:
    functions = {
        "tanh": math.tanh, "relu": lambda x: max(x, 0.0), "exp": math.exp, "sqrt": math.sqrt, "abs": abs,
        "sin": math.sin, "cos": math.cos, "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
        "softplus": lambda x: math.log(1 + math.exp(x)),
    }  # fmt: skip
    return float(eval(text, {"__builtins__": {}}, {**functions, **letters}))


def right_side(system: System) -> str:
    """The text behind the sign of equality of the only equation."""
    row = next(iter(ElementTree.fromstring(system.mathml())))
    return "".join(part for child in list(row)[2:] for part in parts_of(child))


def check(system: System) -> None:
    """With a number for every letter, operators included, the MathML has the value of the text."""
    letters = {name: 0.31 + 0.17 * k for k, name in enumerate(system.letters)}
    letters |= {re.sub(r"_?(\d+)$", r"_\1", re.sub(r"^D(\w)$", r"D_\1", n)): v for n, v in letters.items()}  # indices
    try:
        expected = value(system.text.replace("@", "*"), letters)
    except (OverflowError, ZeroDivisionError, ValueError):
        return
    if isinstance(expected, float) and abs(expected) < 1e100:
        assert value(right_side(system), letters) == pytest.approx(expected, rel=1e-9, abs=1e-12), system.text


@settings(max_examples=examples(200))
@given(systems())
def test_drawn_systems_mean_what_their_text_says(system: System) -> None:
    check(system)


@pytest.mark.parametrize(
    "text",
    [
        "-alpha*L@H + beta*H*(1 - H**2)", "-(H - alpha)/(1 + H**2) - -H", "2*3**2*H - (H + 1)**2*H0",
        "sqrt(abs(H))/2*sigmoid(H) - (alpha - (beta - H))", "-(-H)**3 + (alpha/2)**2*H",
    ],
)  # fmt: skip
def test_brackets_are_where_they_change_the_value(text: str) -> None:
    check(rd.parse(text))


def test_the_whole_catalogue_is_well_formed() -> None:
    for name, system in rd.catalogue.items():
        element = ElementTree.fromstring(system.mathml())
        assert element.tag == f"{NAMESPACE}math", name
        assert len(element.findall(f".//{NAMESPACE}mtr")) == (len(system.equations) if len(system.equations) > 1 else 0)


def test_letters_as_they_are_written() -> None:
    found = rd.parse("u' = -Du*L@u + beta_1*u0 + mu*u; v'' = -v' where beta_1 scalar").mathml()
    assert "<msub><mi>D</mi><mi>u</mi></msub>" in found
    assert "<msub><mi>β</mi><mn>1</mn></msub>" in found
    assert "<mi>μ</mi>" in found
    assert "<mo>¨</mo>" in found
    assert '<mi mathvariant="normal" style="font-weight:bold">u</mi><mo>(</mo><mn>0</mn><mo>)</mo>' in found


def test_declared_functions_stand_behind_the_equation() -> None:
    found = rd.parse("g(H) - H where g = H**3/(1 + H**2)").mathml()
    assert found.count('<mi mathvariant="normal">g</mi>') == 2
    assert found.index("<mfrac>") > found.rindex('<mi mathvariant="normal">g</mi>')
