"""Members with different equations: their fields and linear parts are those of every equation alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import sympy as sp
import torch
from torch import Tensor

import rdgraph as rd
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.graphs.operator import Operator
from rdgraph.run.lowering.coefficients import valued_letters
from rdgraph.run.solvers.linear_part import linear_part
from rdgraph.run.solvers.member_equations import CoefficientTable, MemberEquations, MemberField, Spreading
from rdgraph.run.solvers.polynomial_flow import LinearFlow
from rdgraph.run.solvers.schedules import Schedule
from rdgraph.systems.equation_terms import terms_of_system
from tests.equations import random_numbers

NODES, WIDTH, SLOTS = 7, 3, 4
LINEAR = (
    "-alpha*L@H + beta*(H0 - H)", "-(alpha + 2)*A@A@H - gamma*delta*H", "-A@L@H/(1 + alpha**2) + exp(beta)*A@H0",
    "-L@H", "-alpha*L@L@H + alpha*beta*H0 - H0/3",
)  # fmt: skip
CURVED = (
    "-alpha*L@H + beta*tanh(H) - gamma*tanh(H)", "alpha*tanh(A@H)*H0 - H", "2 - gamma*tanh(H) + beta*H*(1 - A@H)",
    "-alpha*L@H", "-tanh(beta*L@H) + delta", "sin(H)*alpha - alpha*A@sin(H)",
)  # fmt: skip


def operator(weighted: int = 0) -> Operator:
    """A of a path with loops; with weights for a number of members on request."""
    plain = rd.generators.path(NODES).operator("row", self_loops=1.0, dtype=torch.float64)
    if not weighted:
        return plain
    raw = random_numbers(weighted, plain.num_edges, seed=8).exp()
    sums = torch.zeros(weighted, NODES, dtype=torch.float64).index_add(1, plain.pattern.rows.long(), raw)
    return plain.with_stochastic_weights(raw / sums[:, plain.pattern.rows.long()])


def letters_for(texts: Sequence[str]) -> Tensor:
    return random_numbers(len(texts), SLOTS, WIDTH, seed=4).requires_grad_()


def alone(text: str, op: Operator, member: int, letters: Tensor) -> rd.run.VectorField:
    """The field of one equation, with its coefficients by slot and kinds that vary along channels."""
    names = list(valued_letters(rd.parse(text)))
    system = rd.parse(text, dict.fromkeys(names, "channel"))
    values = {name: letters[member, place] for place, name in enumerate(names)}
    return rd.lower(system, op.member((member,)) if op.batch else op, values)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("texts", [CURVED, LINEAR])
def test_the_field_of_every_member_is_that_of_its_equation(texts: tuple[str, ...], is_weighted: bool) -> None:
    op, letters = operator(len(texts) if is_weighted else 0), letters_for(texts)
    H0, H = (random_numbers(len(texts), NODES, WIDTH, seed=k).requires_grad_() for k in (1, 2))
    each = [rd.parse(text) for text in texts]
    field = MemberField(
        MemberEquations.of(each, SLOTS, is_linear=False, is_forced=False), op, letters, WIDTH
    )  # fmt: skip
    found = field.bind(H0).prepared()(None, H)
    expected = []
    for member, text in enumerate(texts):
        one = alone(text, op, member, letters)
        expected.append((one.bind(H0[member]) if one.uses_initial else one)(None, H[member]))
    torch.testing.assert_close(found, torch.stack(expected), rtol=1e-12, atol=1e-12)
    g = random_numbers(*found.shape, seed=3)
    slopes = [torch.autograd.grad((x * g).sum(), (letters, H, H0)) for x in (found, torch.stack(expected))]
    for one, other in zip(*slopes, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11)
    with pytest.raises(NotApplicable, match="linear equations"):
        field.linear_part()
    with pytest.raises(InvalidArgument, match="bound field"):
        field(None, H)


def test_the_linear_part_of_every_member_is_that_of_its_equation() -> None:
    op, letters, H0 = operator(), letters_for(LINEAR), random_numbers(len(LINEAR), NODES, WIDTH, seed=1)
    equations = MemberEquations.of([rd.parse(x) for x in LINEAR], SLOTS, is_linear=True, is_forced=False)
    field = MemberField(equations, op, letters, WIDTH)
    time = torch.full((len(LINEAR),), 0.8, dtype=torch.float64)
    found = LinearFlow(Schedule("exact"), 40)(field, H0, time)  # type: ignore[arg-type]
    for member, text in enumerate(LINEAR):
        one = alone(text, op, member, letters.detach())
        expected = rd.solve(one, H0[member], [0.0, 0.8], "exact", rtol=1e-12).final
        torch.testing.assert_close(found[member], expected, rtol=1e-8, atol=1e-8)
    assert linear_part(field).order == 2  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="flows alone"):
        field(None, H0)


def test_a_term_is_the_same_whatever_its_letters_and_sign() -> None:
    first, second = (terms_of_system(rd.parse(x)) for x in ("-L@H - beta*tanh(H)", "-L@H + gamma*tanh(H)"))
    assert first[1].term == second[1].term
    assert (first[1].sign, second[1].sign) == (-1, 1)
    with pytest.raises(NotApplicable, match="numbers or channels"):
        terms_of_system(rd.parse("-L@H + H@W"))


def test_an_operator_that_is_not_normalised_is_refused() -> None:
    equations = MemberEquations.of([rd.parse("-L@H")], 1, is_linear=True, is_forced=False)
    with pytest.raises(NotApplicable, match="normalised"):
        MemberField(equations, rd.generators.path(3).operator("none"), torch.zeros(1, 1, 1), 1)


def test_spreading_and_collecting_are_transposes() -> None:
    spreading = Spreading.of([[0, 2], [2, 1, 2]], None)
    x, y = random_numbers(4, 2, 1, seed=1).requires_grad_(), random_numbers(5, 2, 1, seed=2).requires_grad_()
    onto = torch.zeros(4, 2, 1, dtype=torch.float64)
    inner = [(spreading.spread(x) * y).sum(), (spreading.collect(y, onto) * x).sum()]
    torch.testing.assert_close(inner[0], inner[1])
    assert torch.autograd.gradcheck(spreading.spread, (x,))
    assert torch.autograd.gradcheck(lambda parts: spreading.collect(parts, onto), (y,))
    assert torch.autograd.gradgradcheck(lambda parts: spreading.collect(parts, onto) ** 2, (y,))


def test_a_table_reads_what_is_no_sum_of_letters() -> None:
    a, b = sp.symbols("a b", real=True)
    rows = [([a * b - 3 * sp.exp(a), b / 2], ("a", "b")), ([2 * a * b, sp.Integer(7)], ("b", "a"))]
    letters = random_numbers(2, 2, WIDTH, seed=6).requires_grad_()
    found = CoefficientTable.of(rows, 2).values(letters)
    (p, q), (r, s) = letters
    expected = torch.stack([torch.stack([p * q - 3 * p.exp(), q / 2]), torch.stack([2 * r * s, torch.full_like(r, 7)])])
    torch.testing.assert_close(found, expected)
