"""No question about one equation dH/dt = f(H) is answered for a system that is more than that."""

from __future__ import annotations

import pytest

import rdgraph as rd
from rdgraph.errors import NotApplicable
from tests.rdgraph.systems.test_text_arguments import CALLS

#: Questions that are asked of several fields too, or that run a system: their own tests say what they answer.
MADE_FOR_ALL = {
    "analyse", "choose_method", "conserved", "critical_ratio", "dispersion", "existence", "fit", "identify",
    "invariant_box", "lipschitz_global", "lipschitz_local", "lower", "one_sided", "parse", "preflight", "response",
    "steady_states", "step_limit", "symbol", "turing", "turing_threshold",
}  # fmt: skip

#: Systems each of which would be answered if what makes it more than one equation were passed over.
BEYOND = {
    "has the fields u, v": "u' = -alpha*L@u + beta*(A@u - A@A@u); v' = -alpha*L@v",
    "has the fields u, w": "u' = -alpha*L@u + beta*u*(1 - u); w' = 0*w",
    "is of second order in H": "H'' = -alpha*L@H + beta*(A@H - A@A@H)",
    "depends on the time t": "-alpha*L@H + 0*t*H",
    "is driven by the noise xi": "-alpha*L@H + beta*xi",
    "has the further operators B": "-alpha*L@H + beta*B@H where B symmetric",
}


@pytest.mark.parametrize("reason", BEYOND)
@pytest.mark.parametrize("name", sorted(set(CALLS) - MADE_FOR_ALL - {"equivalent"}))
def test_questions_about_one_equation_refuse_the_others(name: str, reason: str) -> None:
    for given in (BEYOND[reason], rd.parse(BEYOND[reason])):
        with pytest.raises(NotApplicable, match=reason):
            CALLS[name](given)


@pytest.mark.parametrize("reason", BEYOND)
def test_equivalence_sees_what_makes_it_more_than_one_equation(reason: str) -> None:
    text, plain = BEYOND[reason], "-alpha*L@H"
    assert rd.equivalent(text, text)
    is_nothing = reason == "depends on the time t"  # 0*t*H
    assert bool(rd.equivalent(text, plain)) == bool(rd.equivalent(plain, text)) == is_nothing


@pytest.mark.parametrize(
    "reason", ["depends on the time t", "is driven by the noise xi", "has the further operators B"]
)
def test_no_step_is_known_where_the_modes_are_not(reason: str) -> None:
    found = rd.step_limit(BEYOND[reason])
    assert found.value is None
    assert any(word in found.reason for word in ("time t", "noise", "operator B"))


#: Answers that name the fields.
NAMING = {
    "analyse",
    "critical_ratio",
    "dispersion",
    "existence",
    "lower",
    "parse",
    "preflight",
    "steady_states",
    "turing",
}


@pytest.mark.parametrize("name", sorted(set(CALLS) - NAMING - {"turing_threshold"}))
@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("u' = -alpha*L@u + beta*(A@u - A@A@u)", "-alpha*L@H + beta*(A@H - A@A@H)"),
        ("u' = -alpha*L@u + beta*u*(1 - u)", "-alpha*L@H + beta*H*(1 - H)"),
        ("a' = -alpha*L@a + a0", "-alpha*L@H + H0"),
        ("u' = -Du*L@u + g(u) where g = -H**3, Du channel", "-Du*L@H + g(H) where g = -H**3, Du channel"),
    ],
)
def test_one_equation_is_answered_whatever_its_field_is_called(name: str, text: str, plain: str) -> None:
    def answer(given: str) -> object:
        try:
            return CALLS[name](given)
        except rd.errors.RdgraphError as problem:
            return type(problem), str(problem)

    assert answer(text) == answer(plain)


@pytest.mark.parametrize(
    ("text", "plain"), [("u' = -L@u + u - u**3", "-L@H + H - H**3"), ("a' = a**2 - L@a", "H**2 - L@H")]
)
def test_existence_does_not_depend_on_the_name_of_the_field(text: str, plain: str) -> None:
    """Its reason names the field."""
    named, single = rd.existence(text), rd.existence(plain)
    assert (named.outcome, named.status, named.starts) == (single.outcome, single.status, single.starts)
    assert len(named.blow_ups) == len(single.blow_ups)


def test_patterns_do_not_depend_on_the_name_of_the_field() -> None:
    values = {"alpha": 0.5, "beta": 1.0}
    named, plain = (rd.dispersion(text, values) for text in ("u' = -alpha*L@u + beta*u*(1 - u)", "F"))
    assert named.symbol == plain.symbol
    assert named.unstable == plain.unstable
    assert [list(x.values.values()) for x in rd.steady_states("u' = -alpha*L@u + beta*u*(1 - u)", values)] == [
        list(x.values.values()) for x in rd.steady_states("F", values)
    ]
