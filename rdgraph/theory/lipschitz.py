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
from rdgraph.language.answer_symbols import R, T, h, h0, lam, public, s
from rdgraph.language.normal_form import H
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
from rdgraph.theory.box_faces import LocalField
from rdgraph.theory.several_fields.magnitudes import Magnitudes
from rdgraph.theory.several_fields.slope_sums import SlopeSum, slope_sum
from rdgraph.theory.slope_bounds import is_kinked, slopes, sup_magnitude
from rdgraph.vocabulary.exact_numbers import exact_number
from rdgraph.vocabulary.normalisations import find_normalisation, records

# ---------------------------------------------------------------------- slope constants
# Lipschitz constants of several fields as answers: a formula, whether it is the supremum, and what it means.

NORM = "inf-norm"

#: Value (None where there is none), whether it is the supremum, the norm, and a note.
RawConstant = tuple[sp.Expr | None, bool, str, str]


def slope_constant(system: System, normalisation: str, *, is_local: bool, is_one_sided: bool) -> RawConstant:
    """The largest sum of |slopes| over a row, for all states or on |u| <= R in every field.

    >>> from rdgraph.systems.parser import parse
    >>> slope_constant(parse("u' = v - L@u; v' = -u"), "symmetric", is_local=False, is_one_sided=False)
    (s + 2, True, 'inf-norm', 's is the largest row sum of A')
    """
    find_normalisation(normalisation)

    @within_budget(lambda problem: (None, False, NORM, f"undecided: {problem}"))
    def answer() -> RawConstant:
        with watched() as watch:
            found = _best(system, normalisation, is_local=is_local, is_one_sided=is_one_sided)
        if found.value.has(sp.oo):
            return None, found.is_exact, NORM, _absence(found, is_local, is_one_sided)
        return public(found.value), found.is_exact, NORM, _remark(system, found, watch.bounded)

    return answer()


def _best(system: System, normalisation: str, *, is_local: bool, is_one_sided: bool) -> SlopeSum:
    """The supremum, or the bound term by term where the search for it ends without one."""
    try:
        return slope_sum(system, normalisation, is_local=is_local, is_one_sided=is_one_sided)
    except Undecided:
        return slope_sum(system, normalisation, is_local=is_local, is_one_sided=is_one_sided, is_sharp=False)


def _absence(found: SlopeSum, is_local: bool, is_one_sided: bool) -> str:
    what = "one-sided constant" if is_one_sided else "Lipschitz constant"
    where = "on |u| <= R" if is_local else "for all states"
    if found.is_exact:
        return f"no finite {what} {where}: a slope is a polynomial in the states that is not constant"
    return f"undecided: no finite bound for a {what} {where} was found; tried exact slopes and the chain rule"


def _remark(system: System, found: SlopeSum, bounded: bool) -> str:
    """What a reader must know to use the formula."""
    value = found.value
    parts = [] if found.is_exact else ["upper bound, not claimed to be attained"]
    parts += [BOUNDED] if bounded else []
    parts += ["|u| <= R in every field, starts included"] if value.has(R) and len(system.fields) > 1 else []
    parts += ["s is the largest row sum of A"] if value.has(s) else []
    parts += [f"s_{n} is the largest row sum of |{n}|" for n in system.operators.names if _has(value, f"s_{n}")]
    matrices = [x.name for x in value.free_symbols if x.name.startswith("norm_")]
    parts += [f"{name} is the largest column sum of |{name.removeprefix('norm_')}|" for name in sorted(matrices)]
    parts += spread_remarks(system, value)
    parts += ["at times 0 <= t <= T"] if value.has(T) else []
    parts += ["of the drift, without noise"] if system.is_noisy else []
    return "; ".join(parts)


def spread_remarks(system: System, value: sp.Expr) -> list[str]:
    """Which letters of a bound stand for the largest of several values."""
    spread = Magnitudes(system, find_normalisation("row"), is_local=False).spread
    return [f"{name} counts by its largest modulus" for name in sorted(spread) if _has(value, name)]


def _has(value: sp.Expr, name: str) -> bool:
    return any(x.name == name for x in value.free_symbols)


# ---------------------------------------------------------------------- unboundedness
# Slopes that grow without bound: proofs that no Lipschitz constant exists.
#
# At a state equal to h in all nodes of a regular graph the Jacobian is a polynomial sum_k C_k(h) A^k. Constant vectors,
# and on bipartite graphs alternating ones, are its eigenvectors, with the values sum C_k and sum (-1)^k C_k; an
# isolated node has the slope in its own entry. Norms are at least the modulus of an eigenvalue, logarithmic norms its
# real part: where one of these grows to infinity with h there is no constant.


def is_unbounded(system: System, domain: Domain, *, one_sided: bool) -> bool:
    """Proved: the slopes have no bound, from above if `one_sided`; `Split` where the coefficients decide.

    >>> from rdgraph.systems.parser import parse
    >>> system = parse("-alpha*L@H + beta*H*(A@H)")
    >>> is_unbounded(system, system.domain, one_sided=True)
    True
    >>> is_unbounded(parse("tanh(A@H)"), Domain(), one_sided=False)
    False
    """
    try:
        field = LocalField.of(system)
    except NotApplicable:
        return False
    return any(_grows(value, domain, one_sided) for value in _eigenvalues(field))


def _eigenvalues(field: LocalField) -> Iterator[sp.Expr]:
    """Eigenvalues of Jacobians as functions of the entry h, for coefficients that are the same in all nodes."""
    masked = {x: sp.S.One for x in field.varying if x.name == "M"}
    seen = {a.letter: a.inner for a in field.averages}
    if any(is_kinked(call, seen) for call in field.speed.atoms(sp.Function)):
        return  # no Jacobian at states that are the same in all nodes
    own = sp.diff(field.speed, h)
    slopes = [(a.power, sp.diff(field.speed, a.letter).xreplace(seen) * sp.diff(a.inner, h)) for a in field.averages]
    for sign in (1, -1):
        total = own.xreplace(seen) + sum((sign**k * slope for k, slope in slopes), sp.S.Zero)
        yield sp.expand(total.xreplace(masked))
    yield sp.expand(own.xreplace(dict.fromkeys(seen, sp.S.Zero)).xreplace(masked))


def _grows(value: sp.Expr, domain: Domain, one_sided: bool) -> bool:
    """Proved: the value, or its modulus, tends to infinity on one side."""
    if value.has(h0):
        return False
    terms = sp.Add.make_args(value)
    exponentials = [t for t in terms if _exponent(t) is not None]
    rest = [t for t in terms if t not in exponentials]
    powers = sp.Add(*(t for t in rest if t.is_polynomial(h)))
    bounded = sp.Add(*(t for t in rest if not t.is_polynomial(h)))
    if sup_magnitude(bounded.xreplace({h: H}), local=False).has(sp.oo):
        return False
    if exponentials:
        return _exponentials_grow(exponentials, domain, one_sided)
    polynomial = sp.Poly(powers, h) if powers.has(h) else None
    while polynomial is not None and polynomial.degree() > 0:
        sign = strict_sign(domain, polynomial.LC())
        if sign:
            return not one_sided or sign > 0 or polynomial.degree() % 2 == 1
        polynomial = polynomial - sp.Poly(polynomial.LC() * h ** polynomial.degree(), h)
    return False


def _exponent(term: sp.Expr) -> sp.Expr | None:
    """The argument of c exp(a h + b), c free of h."""
    _, rest = term.as_independent(h)
    linear = isinstance(rest, sp.exp) and rest.args[0].is_polynomial(h) and sp.degree(rest.args[0], h) == 1
    return rest.args[0] if linear else None


def _exponentials_grow(terms: list[sp.Expr], domain: Domain, one_sided: bool) -> bool:
    """Proved: exponentials of one sign that all grow on the same side."""
    sides = {strict_sign(domain, sp.diff(_exponent(t), h)) for t in terms}
    signs = {strict_sign(domain, t.as_independent(h)[0]) for t in terms}
    return len(sides) == 1 and 0 not in sides and (signs == {1} or (signs == {-1} and not one_sided))


# ---------------------------------------------------------------------- lipschitz
MAX_SIGN_CHOICES = 6


@dataclass(frozen=True, repr=False)
class Constant(Answer):
    """A Lipschitz or one-sided constant, and its norm; without a value there is none (proved), or none was found.

    `is_sharp` says that the value is the supremum itself, or that there is none; every other value is an upper bound.
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
    if not system.is_single:
        return Constant(*slope_constant(system, normalisation, is_local=local, is_one_sided=one_sided))
    check_normalisation(normalisation)
    norm = find_normalisation(normalisation).norm_name

    @within_budget(lambda problem: Constant(None, False, norm, f"undecided: {problem}"))
    def answer() -> Constant:
        def question(domain: Domain) -> tuple[sp.Expr, bool]:
            value, exact = raw_constant(system, normalisation, domain, local=local, one_sided=one_sided)
            if local and not exact:
                value = _at_most_global(value, system, normalisation, domain)
            infinite = value.has(sp.oo, -sp.oo, sp.zoo, sp.nan)
            if infinite and not exact and not local:
                exact = is_unbounded(system, domain, one_sided=one_sided)
            return (sp.oo if infinite else value), exact

        with watched() as watch:
            parts = cases(system.domain, question)
        value, exact = _joined(parts), all(exact for _, (_, exact) in parts)
        if value == sp.oo or any(part == sp.oo and not known for _, (part, known) in parts):
            return Constant(None, exact, norm, _absence_of_lipschitz(system, exact, local=local, one_sided=one_sided))
        formula = in_decimals(public(sp.expand(value) if not value.has(sp.Piecewise, sp.Max) else value))
        remark = "; ".join(
            filter(None, [_remark_of_lipschitz(value, exact, watch.bounded), *spread_remarks(system, value)])
        )
        return Constant(formula, exact, norm, remark)

    return answer()


def _at_most_global(value: sp.Expr, system: System, normalisation: str, domain: Domain) -> sp.Expr:
    """A bound for |h| <= R, or the one for all states where that may be smaller."""
    try:
        with watched(counts=False) as watch:
            whole, _ = raw_constant(system, normalisation, domain, local=False, one_sided=False)
    except (Split, Undecided, NotApplicable):
        return value
    if whole.has(sp.oo, -sp.oo, sp.zoo, sp.nan) or whole == value or is_at_least(whole, value, domain):
        return value
    if watch.bounded:
        rest_on_enclosures()
    return whole if value.has(sp.oo) or is_at_least(value, whole, domain) else sp.Min(value, whole)


def _joined(parts: list[tuple[sp.Basic, tuple[sp.Expr, bool]]]) -> sp.Expr:
    """One formula, infinite on the parts of the coefficients where there is no constant."""
    if all(value == sp.oo for _, (value, _) in parts):
        return sp.oo
    *rest, (_, (last, _)) = sorted(parts, key=lambda part: part[1][0] == sp.oo)
    return sp.Piecewise(*((value, condition) for condition, (value, _) in rest), (last, True)) if rest else last


def raw_constant(
    system: System, normalisation: str, domain: Domain, *, local: bool, one_sided: bool
) -> tuple[sp.Expr, bool]:
    """The constant, infinite where there is none, and whether it is attained; `Split` where the coefficients decide."""
    try:
        return _value(system, normalisation, domain, local=local, one_sided=one_sided)
    except UnknownSign as problem:
        strict_sign(domain, sp.sympify(problem.expression))
        raise


def own_norm(system: System, normalisation: str, *, local: bool) -> Magnitudes:
    """Bounds in the norm of a normalisation, in which |A| <= 1."""
    record = find_normalisation(normalisation)
    return Magnitudes(system, record, local, record.norm or "inf")


def _value(system: System, normalisation: str, domain: Domain, *, local: bool, one_sided: bool) -> tuple[sp.Expr, bool]:
    structure = system.structure
    if structure.coupled.has(Nought):  # it has no value at some states, starts or nodes
        return sp.oo, False
    found = slopes(structure.reaction, domain, local=local)
    candidates = _candidates(system, domain, normalisation, list(found.candidates), one_sided)
    value = found.restore(maximum(candidates, found.domain(domain)))
    measure = own_norm(system, normalisation, local=local)
    if structure.coupled.has(H) and measure.is_spread(sp.Tuple(*structure.generator.values(), structure.reaction)):
        terms = sp.Add.make_args(system.normal)  # of a channel, beside a matrix that collects from all of them
        damped = [t for t in terms if one_sided and t.coeff(H) * H == t and domain.sign(t.coeff(H)).is_nonpositive]
        return measure.slope(sp.Add(*(t for t in terms if t not in damped))), False
    if structure.coupled.has(H):
        return value + measure.slope(structure.coupled), False
    return value, found.exact and find_normalisation(normalisation).is_sharp


def _absence_of_lipschitz(system: System, exact: bool, *, local: bool, one_sided: bool) -> str:
    what = "one-sided constant" if one_sided else "Lipschitz constant"
    where = "on |h| <= R" if local else "for all states"
    if system.structure.coupled.has(Nought):
        return f"undecided: {'; '.join(system.structure.obstacles)}"
    if not exact:
        found = f"undecided: no finite bound for a {what} {where} was found; tried exact slopes and the chain rule"
        steep = [name for name, f in system.learned.items() if f.slope is None or not f.slope.is_bounded]
        return f"{found}; it depends on {', '.join(steep)}, of which lipschitz= can be declared" if steep else found
    reaction, coupled = system.structure.reaction, system.structure.coupled
    if coupled.has(H):
        return f"no finite {what} {where}: at states equal in all nodes the slopes of {public(coupled + reaction)} grow"
    return f"no finite {what} {where}: the slope {public(factored(sp.diff(reaction, H)))} is unbounded"


def _remark_of_lipschitz(value: sp.Expr, exact: bool, bounded: bool) -> str:
    """What a reader must know to use a bound."""
    parts = [] if exact else ["upper bound, not claimed to be attained"]
    parts += [BOUNDED] if bounded else []
    parts += [f"{x} is the norm of the matrix" for x in sorted(map(str, value.free_symbols)) if x.startswith("norm_")]
    if value.has(s):
        parts.append("s is the largest row sum of A")
    if value.has(sp.oo):
        parts.append("oo where the coefficients leave the slopes unbounded")
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
    """Candidates for sum_{k>=1} |c_k|: both signs for every coefficient whose sign is open."""
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
