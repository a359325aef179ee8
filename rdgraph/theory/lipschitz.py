"""Lipschitz and one-sided Lipschitz constants of f, over every graph of a normalisation.

symmetric: 2-norm, spectrum of L in [0, 2]. row: inf-norm, row-stochastic A. column: 1-norm, column-stochastic A.
For f = p(A) H + r(H) + source the constants are exact suprema over graphs and states:
2-norm max |p(lam) + r'|; inf-norm max |c_0 + r'| + sum_{k>=1} |c_k| with p = sum c_k A^k, reached on long cycles.
Systems of several fields are measured in the inf-norm under every normalisation (`rdgraph.theory.several_fields`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sp

from rdgraph.answers import Answer, Status, certainty, shown
from rdgraph.errors import NotApplicable, Undecided, UnknownSign
from rdgraph.language.answer_symbols import R, T, lam, public, s
from rdgraph.language.normal_form import H0, H
from rdgraph.reals.branches import is_at_least
from rdgraph.reals.budget import within_budget
from rdgraph.reals.condition_words import factored
from rdgraph.reals.domain import NEGATIVE, NONNEGATIVE, NONPOSITIVE, POSITIVE, ZERO, Domain
from rdgraph.reals.judge import BOUNDED, rest_on_enclosures, watched
from rdgraph.reals.line_extents import in_decimals
from rdgraph.reals.maxima import Candidate, interval_candidates, maximum, plus
from rdgraph.reals.regions import Split, cases, strict_sign
from rdgraph.systems.canonical.cancelled_parts import Nought
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.theory.several_fields.magnitudes import Magnitudes
from rdgraph.theory.several_fields.node_speeds import NodeSpeeds
from rdgraph.theory.several_fields.slope_sums import slope_sum
from rdgraph.theory.slope_bounds import is_kinked, slopes, sup_magnitude
from rdgraph.vocabulary.exact_numbers import exact_number
from rdgraph.vocabulary.normalisations import find_normalisation, records

# ---------------------------------------------------------------------- unboundedness
# Proofs that no Lipschitz constant exists, because slopes grow without bound.
#
# At a state equal to h in all nodes of a regular graph the Jacobian is a polynomial sum_k C_k(h) A^k. Constant vectors,
# and on bipartite graphs alternating ones, are its eigenvectors, with the values sum C_k and sum (-1)^k C_k; an
# isolated node has the slope in its own entry. Norms are at least the modulus of an eigenvalue, logarithmic norms its
# real part: where one of these grows to infinity with h there is no constant.


def is_unbounded(system: System, domain: Domain, *, one_sided: bool) -> bool:
    """Proved: the slopes have no bound, or no upper bound if `one_sided`; raises `Split` where the coefficients decide.

    >>> from rdgraph.systems.parser import parse
    >>> system = parse("-alpha*L@H + beta*H*(A@H)")
    >>> is_unbounded(system, system.domain, one_sided=True)
    True
    >>> is_unbounded(parse("tanh(A@H)"), Domain(), one_sided=False)
    False
    """
    try:
        field = NodeSpeeds.of_one(system)
    except NotApplicable:
        return False
    return any(_grows(value, domain, one_sided) for value in _eigenvalues(field))


def _eigenvalues(field: NodeSpeeds) -> Iterator[sp.Expr]:
    """Eigenvalues of Jacobians as functions of the entry H, for coefficients that are the same in all nodes."""
    masked = {x: sp.S.One for x in field.varying if x.name == "M"}
    seen = {call.letter: call.inner for call in field.calls}
    if any(is_kinked(call, seen) for call in field.speed.atoms(sp.Function)):
        return  # no Jacobian at states that are the same in all nodes
    slope_in_h = sp.diff(field.speed, H)
    slopes = [(len(c.word), sp.diff(field.speed, c.letter).xreplace(seen) * sp.diff(c.inner, H)) for c in field.calls]
    for sign in (1, -1):
        total = slope_in_h.xreplace(seen) + sum((sign**k * slope for k, slope in slopes), sp.S.Zero)
        yield sp.expand(total.xreplace(masked))
    yield sp.expand(slope_in_h.xreplace(dict.fromkeys(seen, sp.S.Zero)).xreplace(masked))


def _grows(value: sp.Expr, domain: Domain, one_sided: bool) -> bool:
    """Proved: the value, or its modulus, tends to infinity on one side."""
    if value.has(H0):
        return False
    terms = sp.Add.make_args(value)
    exponentials = [t for t in terms if _exponent(t) is not None]
    rest = [t for t in terms if t not in exponentials]
    powers = sp.Add(*(t for t in rest if t.is_polynomial(H)))
    bounded = sp.Add(*(t for t in rest if not t.is_polynomial(H)))
    if sup_magnitude(bounded, local=False).has(sp.oo):
        return False
    if exponentials:
        return _exponentials_grow(exponentials, domain, one_sided)
    polynomial = sp.Poly(powers, H) if powers.has(H) else None
    while polynomial is not None and polynomial.degree() > 0:
        sign = strict_sign(domain, polynomial.LC())
        if sign:
            return not one_sided or sign > 0 or polynomial.degree() % 2 == 1
        polynomial = polynomial - sp.Poly(polynomial.LC() * H ** polynomial.degree(), H)
    return False


def _exponent(term: sp.Expr) -> sp.Expr | None:
    """The argument of c exp(a H + b), c free of H."""
    _, rest = term.as_independent(H)
    linear = isinstance(rest, sp.exp) and rest.args[0].is_polynomial(H) and sp.degree(rest.args[0], H) == 1
    return rest.args[0] if linear else None


def _exponentials_grow(terms: list[sp.Expr], domain: Domain, one_sided: bool) -> bool:
    """Proved: the exponentials have one sign and all grow on the same side."""
    sides = {strict_sign(domain, sp.diff(_exponent(t), H)) for t in terms}
    signs = {strict_sign(domain, t.as_independent(H)[0]) for t in terms}
    return len(sides) == 1 and 0 not in sides and (signs == {1} or (signs == {-1} and not one_sided))


# ---------------------------------------------------------------------- lipschitz
#: With more coefficients of unknown sign than this, moduli stand in the formula instead of all combinations of signs.
MAX_SIGN_CHOICES = 6
#: The norm of the constants of several fields.
NORM = "inf-norm"
_INFINITE = (sp.oo, -sp.oo, sp.zoo, sp.nan)


@dataclass(frozen=True, repr=False)
class Constant(Answer):
    """A Lipschitz or one-sided constant, and its norm; without a value there is none (proved), or none was found.

    `is_sharp` says that the value is the supremum, or that there is none; every other value is an upper bound.
    """

    value: sp.Expr | None
    is_sharp: bool
    norm: str
    reason: str = ""

    @property
    def status(self) -> Status:
        """proved for the supremum, and where there is none; bounded for an upper bound; else undecided."""
        if self.is_sharp:
            return certainty(self.reason)
        return Status.UNDECIDED if self.value is None else Status.BOUNDED

    @property
    def headline(self) -> str:
        return "there is none" if self.value is None else f"{shown(self.value)} in the {self.norm}"


@reads_system
def lipschitz_global(system: System, normalisation: str = "symmetric") -> Constant:
    """The smallest K with |f(X) - f(Y)| <= K |X - Y| for all states, if there is one.

    Args:
        system: a system, or a text or name that `parse` reads.
        normalisation: of the operator A: symmetric (2-norm), row (inf-norm) or column (1-norm); for several fields any
            one, the norm being the inf-norm over all entries of all fields.

    Returns:
        The constant as a formula, its norm, and what a reader must know to use it; without a value, the status says
        whether there is none (proved) or none was found (undecided).

    Raises:
        NotApplicable: the normalisation has no norm in which |A| <= 1.

    >>> import rdgraph as rd
    >>> rd.lipschitz_global(rd.parse("-alpha*L@H + beta*(A@H - A@A@H)")).value
    2*alpha + 2*beta
    """
    return _constant(system, normalisation, local=False, one_sided=False)


@reads_system
def lipschitz_local(system: System, normalisation: str = "symmetric") -> Constant:
    """The smallest K with |f(X) - f(Y)| <= K |X - Y| for all states with entries |h| <= R.

    Args:
        system: a system, or a text or name that `parse` reads.
        normalisation: of the operator A: symmetric (2-norm), row (inf-norm) or column (1-norm); for several fields any
            one, the norm being the inf-norm over all entries of all fields.

    Returns:
        The constant as a formula, its norm, and what a reader must know to use it; without a value, the status says
        whether there is none (proved) or none was found (undecided).

    Raises:
        NotApplicable: the normalisation has no norm in which |A| <= 1.

    >>> import rdgraph as rd
    >>> rd.theory.lipschitz_local(rd.parse("-alpha*L@H + beta*H*(1 - H)")).value
    Max(2*R*beta + beta, 2*R*beta + 2*alpha - beta)
    """
    return _constant(system, normalisation, local=True, one_sided=False)


@reads_system
def one_sided(system: System, normalisation: str = "symmetric") -> Constant:
    """The smallest m such that two solutions separate at most like exp(m t): the logarithmic norm of the Jacobian.

    Args:
        system: a system, or a text or name that `parse` reads.
        normalisation: of the operator A: symmetric (2-norm), row (inf-norm) or column (1-norm); for several fields any
            one, the norm being the inf-norm over all entries of all fields.

    Returns:
        The constant as a formula, its norm, and what a reader must know to use it; without a value, the status says
        whether there is none (proved) or none was found (undecided).

    Raises:
        NotApplicable: the normalisation has no norm in which |A| <= 1.

    >>> import rdgraph as rd
    >>> rd.theory.one_sided(rd.parse("-alpha*L@H + beta*H*(1 - H**2)")).value
    beta
    """
    return _constant(system, normalisation, local=False, one_sided=True)


def check_normalisation(normalisation: str) -> None:
    if find_normalisation(normalisation).norm is None:
        bounded = ", ".join(name for name, record in records.items() if record.norm is not None)
        raise NotApplicable(
            f"expected a normalisation among {bounded}, got {normalisation!r}; "
            "without a norm in which |A| <= 1 there is no bound that holds for every graph"
        )


def _constant(system: System, normalisation: str, *, local: bool, one_sided: bool) -> Constant:
    record = find_normalisation(normalisation)
    if system.is_single:
        check_normalisation(normalisation)
    norm = record.norm_name if system.is_single else NORM

    @within_budget(lambda problem: Constant(None, False, norm, f"undecided: {problem}"))
    def answer() -> Constant:
        supremum = _of_one_field if system.is_single else _of_several_fields
        with watched() as watch:
            value, exact = supremum(system, normalisation, local, one_sided)
        if value == sp.oo:
            return Constant(None, exact, norm, _absence(system, exact, local=local, one_sided=one_sided))
        return Constant(_tidy(value), exact, norm, _remark(system, value, exact, watch.bounded))

    return answer()


def _of_several_fields(system: System, normalisation: str, local: bool, one_sided: bool) -> tuple[sp.Expr, bool]:
    """The largest sum of |slopes| over a row, or the bound term by term where the search for it ends without one."""
    try:
        constant = slope_sum(system, normalisation, is_local=local, is_one_sided=one_sided)
    except Undecided:
        constant = slope_sum(system, normalisation, is_local=local, is_one_sided=one_sided, is_sharp=False)
    return (sp.oo if constant.value.has(sp.oo) else constant.value), constant.is_exact


def _of_one_field(system: System, normalisation: str, local: bool, one_sided: bool) -> tuple[sp.Expr, bool]:
    """The constant by conditions on the coefficients, and whether it is the supremum."""

    def question(domain: Domain) -> tuple[sp.Expr, bool]:
        value, exact = raw_constant(system, normalisation, domain, local=local, one_sided=one_sided)
        if local and not exact:
            value = _at_most_global(value, system, normalisation, domain)
        infinite = value.has(*_INFINITE)
        if infinite and not exact and not local:
            exact = is_unbounded(system, domain, one_sided=one_sided)
        return (sp.oo if infinite else value), exact

    parts = cases(system.domain, question)
    is_open = any(part == sp.oo and not known for _, (part, known) in parts)
    return (sp.oo if is_open else _joined(parts)), all(exact for _, (_, exact) in parts)


def _tidy(value: sp.Expr) -> sp.Expr:
    """A constant in plain symbols, bounds as decimal numbers."""
    return in_decimals(public(value if value.has(sp.Piecewise, sp.Max) else sp.expand(value)))


def _at_most_global(value: sp.Expr, system: System, normalisation: str, domain: Domain) -> sp.Expr:
    """A bound for |h| <= R, or the one for all states where that may be smaller."""
    try:
        with watched(counts=False) as watch:
            whole, _ = raw_constant(system, normalisation, domain, local=False, one_sided=False)
    except (Split, Undecided, NotApplicable):
        return value
    if whole.has(*_INFINITE) or whole == value or is_at_least(whole, value, domain):
        return value
    if watch.bounded:
        rest_on_enclosures()
    return whole if value.has(sp.oo) or is_at_least(value, whole, domain) else sp.Min(value, whole)


def _joined(parts: list[tuple[sp.Basic, tuple[sp.Expr, bool]]]) -> sp.Expr:
    """One formula over all cases, infinite for the coefficients for which there is no constant."""
    if all(value == sp.oo for _, (value, _) in parts):
        return sp.oo
    *rest, (_, (last, _)) = sorted(parts, key=lambda part: part[1][0] == sp.oo)
    return sp.Piecewise(*((value, condition) for condition, (value, _) in rest), (last, True)) if rest else last


def raw_constant(
    system: System, normalisation: str, domain: Domain, *, local: bool, one_sided: bool
) -> tuple[sp.Expr, bool]:
    """The constant, infinite where there is none, and whether it is attained; raises `Split` for case distinctions."""
    try:
        return _value(system, normalisation, domain, local=local, one_sided=one_sided)
    except UnknownSign as problem:
        strict_sign(domain, sp.sympify(problem.expression))
        raise


def norm_bounds(system: System, normalisation: str, *, local: bool) -> Magnitudes:
    """Bounds in the norm of a normalisation, in which |A| <= 1."""
    record = find_normalisation(normalisation)
    return Magnitudes(system, record, local, record.norm or "inf")


def _value(system: System, normalisation: str, domain: Domain, *, local: bool, one_sided: bool) -> tuple[sp.Expr, bool]:
    structure = system.structure
    if structure.coupled.has(Nought):  # f has no value at some states, starts or nodes
        return sp.oo, False
    steep = slopes(structure.reaction, domain, local=local)
    candidates = _candidates(system, domain, normalisation, list(steep.candidates), one_sided)
    value = steep.restore(maximum(candidates, steep.domain(domain)))
    measure = norm_bounds(system, normalisation, local=local)
    if structure.coupled.has(H) and measure.is_spread(sp.Tuple(*structure.generator.values(), structure.reaction)):
        terms = sp.Add.make_args(system.normal)  # of one channel, where a matrix collects from all channels
        damped = [t for t in terms if one_sided and t.coeff(H) * H == t and domain.sign(t.coeff(H)).is_nonpositive]
        return measure.slope(sp.Add(*(t for t in terms if t not in damped))), False
    if structure.coupled.has(H):
        return value + measure.slope(structure.coupled), False
    return value, steep.exact and find_normalisation(normalisation).is_sharp


def _absence(system: System, exact: bool, *, local: bool, one_sided: bool) -> str:
    """Why there is no constant, or that none was found."""
    what = "one-sided constant" if one_sided else "Lipschitz constant"
    where = f"on |{'h' if system.is_single else 'u'}| <= R" if local else "for all states"
    if system.is_single and system.structure.coupled.has(Nought):
        return f"undecided: {'; '.join(system.structure.obstacles)}"
    if not exact:
        reason = f"undecided: no finite bound for a {what} {where} was found; tried exact slopes and the chain rule"
        steep = [name for name, f in system.learned.items() if f.slope is None or not f.slope.is_bounded]
        return f"{reason}; it depends on {', '.join(steep)}: declare lipschitz= for it" if steep else reason
    if not system.is_single:
        return f"no finite {what} {where}: a slope is a polynomial in the states that is not constant"
    reaction, coupled = system.structure.reaction, system.structure.coupled
    if coupled.has(H):
        return f"no finite {what} {where}: at states equal in all nodes the slopes of {public(coupled + reaction)} grow"
    return f"no finite {what} {where}: the slope {public(factored(sp.diff(reaction, H)))} is unbounded"


def _remark(system: System, value: sp.Expr, exact: bool, bounded: bool) -> str:
    """What a reader must know to use the formula."""
    names = {x.name for x in value.free_symbols}
    matrices = [name for name in sorted(names) if name.startswith("norm_")]
    spread = Magnitudes(system, find_normalisation("row"), is_local=False).spread
    parts = [] if exact else ["upper bound, not claimed to be attained"]
    parts += [BOUNDED] if bounded else []
    parts += ["|u| <= R in every field, starts included"] if value.has(R) and len(system.fields) > 1 else []
    parts += ["s is the largest row sum of A"] if value.has(s) else []
    parts += [f"s_{n} is the largest row sum of |{n}|" for n in system.operators.names if f"s_{n}" in names]
    if system.is_single:
        parts += [f"{name} is the norm of the matrix" for name in matrices]
    else:
        parts += [f"{name} is the largest column sum of |{name.removeprefix('norm_')}|" for name in matrices]
    parts += ["oo where the coefficients leave the slopes unbounded"] if value.has(sp.oo) else []
    parts += [f"{name} counts by its largest modulus" for name in sorted(spread & names)]
    parts += ["at times 0 <= t <= T"] if value.has(T) else []
    parts += ["of the drift, without noise"] if system.is_noisy else []
    return "; ".join(parts)


def _candidates(
    system: System, domain: Domain, normalisation: str, slope: list[Candidate], one_sided: bool
) -> list[Candidate]:
    generator = system.structure.generator
    record = find_normalisation(normalisation)
    if record.is_symmetric and record.spectrum is not None:
        p = sum((c * (1 - lam) ** k for k, c in generator.items()), sp.S.Zero)
        low, high = (exact_number(end, "end of the spectrum") for end in record.spectrum)
        modes = interval_candidates(sp.expand(p), lam, low, high, domain)
        sums = [Candidate(plus(g.value, r.value), g.valid + r.valid) for g in modes for r in slope]
        return sums if one_sided else sums + [Candidate(-c.value, c.valid) for c in sums]
    diagonal = [Candidate(plus(generator.get(0, sp.S.Zero), r.value), r.valid) for r in slope]
    if not one_sided:
        diagonal += [Candidate(-c.value, c.valid) for c in diagonal]
    return [Candidate(plus(c.value, rest), c.valid) for c in diagonal for rest in _absolute_sums(generator, domain)]


def _absolute_sums(generator: dict[int, sp.Expr], domain: Domain) -> list[sp.Expr]:
    """Candidates for sum_{k>=1} |c_k|: both signs for every coefficient of unknown sign."""
    choices: list[tuple[sp.Expr, ...]] = []
    for k, c in generator.items():
        if k == 0:
            continue
        sign = domain.sign(c)
        if sign in (POSITIVE, NONNEGATIVE, ZERO):
            choices.append((c,))
        elif sign in (NEGATIVE, NONPOSITIVE):
            choices.append((-c,))
        else:
            choices.append((c, -c))
    if sum(len(c) > 1 for c in choices) > MAX_SIGN_CHOICES:
        return [sp.Add(*(sp.Abs(c[0]) for c in choices))]
    return [sp.Add(*combination) for combination in itertools.product(*choices)]
