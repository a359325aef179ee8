"""Folds: one rule per node type, and a node without one is refused by name."""

from __future__ import annotations

import inspect

import pytest
import sympy as sp

import rdgraph.language.factored_form as factored_form
import rdgraph.language.linear_fold as linear_fold
import rdgraph.language.normal_form as normal_form
import rdgraph.language.printer as printer
import rdgraph.language.size_limits as size_limits
import rdgraph.language.sympy_form as sympy_form
import rdgraph.language.tree as tree
import rdgraph.theory.equality.equality_proof as equality_proof
import rdgraph.theory.equality.exact_values as exact_values
from rdgraph.errors import RdgraphError
from rdgraph.language.printer import to_latex, to_text
from rdgraph.language.reader import read_expression
from rdgraph.language.tree import RULES, Fold, Node, TypeMismatch, kind_of

MODULES = (factored_form, normal_form, equality_proof, exact_values, printer, size_limits, sympy_form, tree)
FOLDS = sorted(
    {c for module in MODULES for c in vars(module).values() if inspect.isclass(c) and issubclass(c, Fold)} - {Fold},
    key=lambda c: c.__name__,
)


def leaves(cls: type) -> set[type]:
    below = cls.__subclasses__()
    return {x for c in below for x in leaves(c)} if below else {cls}


def test_every_node_type_has_a_rule() -> None:
    assert {c.__name__ for c in leaves(Node)} == set(RULES)


@pytest.mark.parametrize("fold", FOLDS, ids=lambda c: c.__name__)
def test_a_rule_that_is_misspelt_is_noticed(fold: type) -> None:
    """Every public method is a rule, or is called by name in the modules of folds."""
    sources = "".join(inspect.getsource(module) for module in (*MODULES, linear_fold))
    own = {name for name, value in vars(fold).items() if inspect.isfunction(value) and not name.startswith("_")}
    others = own - set(RULES.values()) - {"number", "other"}
    assert [name for name in others if f".{name}(" not in sources] == []


@pytest.mark.parametrize("function", [kind_of, to_text, to_latex, sympy_form.to_sympy])
def test_a_stranger_is_refused_by_name(function) -> None:
    with pytest.raises(TypeMismatch, match=r"got Symbol; build expressions with rdgraph\.parse") as caught:
        function(sp.Symbol("x"))
    assert "Name, Plus, Minus, Times, Over, Apply, Power, Negative, Call" in caught.value.expected
    assert isinstance(caught.value, RdgraphError)


def test_a_fold_calls_the_rule_of_the_node_with_what_it_was_given() -> None:
    class Count(Fold[int]):
        def name(self, node: tree.Name, wanted: str) -> int:
            return int(node.name == wanted)

        def other(self, node: sp.Basic, *given: str) -> int:
            return sum(self(part, *given) for part in node.args)

    assert Count()(read_expression("tanh(H)*H + A@H - H0/2"), "H") == 3
