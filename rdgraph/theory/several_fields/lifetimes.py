"""Do solutions of several fields exist for all time? What is proved on every graph, from which starts.

In this order: f is affine; every |f_i| grows at most linearly; large states are damped, sum u_i f_i <= c (1 + |u|^2);
densities stay non-negative and a weighted sum of all fields grows at most linearly; a bounded rectangle is kept.
Coefficients may depend on t continuously. With noise, xi, the equation is Ito's, and Lipschitz drift and factors are
asked for. Blow-up is shown on states in which one field is alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import sympy as sp

from rdgraph.errors import NotApplicable, Undecided
from rdgraph.language.answer_symbols import h, h0, public
from rdgraph.language.normal_form import TIME, Act, Mix, State
from rdgraph.language.tree import Kind
from rdgraph.reals.branches import is_defined
from rdgraph.reals.budget import limited
from rdgraph.reals.condition_words import factored
from rdgraph.reals.domain import NEGATIVE, POSITIVE, Domain
from rdgraph.systems.canonical.cancelled_parts import with_cancelled
from rdgraph.systems.system import System
from rdgraph.theory.blowup import BlowUp, fate
from rdgraph.theory.several_fields.magnitudes import Magnitudes
from rdgraph.theory.several_fields.node_speeds import NodeSpeeds, has_gap, normal_forms, starts_of, states_of, timely
from rdgraph.theory.several_fields.positivity import positivity
from rdgraph.theory.several_fields.rectangles import rectangle
from rdgraph.vocabulary.normalisations import find_normalisation

# ---------------------------------------------------------------------- mass control
# Mass control: positive weights w with sum_i w_i f_i <= c (1 + sum_i u_i) for densities.
#
# Terms that grow faster than linearly are collected over the fields: what one field gains another one loses, as u**2*v
# or u*(A@v) in u and v. Where densities stay non-negative, every field is then at most of the size of the sum, which
# grows at most exponentially.

#: Coefficients of a term by the field in whose equation it stands.
Shares = dict[str, sp.Expr]


def mass_control(system: System, normalisation: str = "row") -> str | None:
    """Why a weighted sum of densities grows at most linearly, at every node; None where no weights were found.

    >>> from rdgraph.systems.parser import parse
    >>> mass_control(parse("u' = a - u + u**2*v - L@u; v' = b - u**2*v - L@v"))
    'the sum u + v gains at most linearly'
    """
    try:
        speeds = NodeSpeeds.of(system, normalisation)
    except NotApplicable:
        return None
    shares = _fast_terms(system, speeds)
    if shares is None:
        return None
    domain = system.domain
    weights = _weights(system.fields, shares, domain)
    for choice in (dict.fromkeys(system.fields, sp.S.One), weights):
        totals = [sp.Add(*(choice[name] * c for name, c in row.items())) for row in shares.values()]
        if all(domain.sign(sp.simplify(total)).is_nonpositive for total in totals):
            text = " + ".join(name if w == 1 else f"{public(w)}*{name}" for name, w in choice.items())
            return f"the sum {text} gains at most linearly"
    return None


def _fast_terms(system: System, speeds: NodeSpeeds) -> Mapping[sp.Expr, Shares] | None:
    """Terms of higher order as monomials in quantities >= 0, with their coefficients; None where there are others."""
    measure = Magnitudes(system, find_normalisation("row"), is_local=False)
    back = {call.letter: Act(map(sp.Symbol, call.word), call.inner) for call in speeds.calls}
    moving = {*states_of(system).values(), *starts_of(system).values(), *back}
    found: dict[sp.Expr, Shares] = {}
    for name, speed in speeds.speeds.items():
        for term in sp.Add.make_args(sp.expand(speed)):
            if measure.order(term.xreplace(back)) <= 1:
                continue
            coefficient, core = term.as_independent(*moving, as_Add=False)
            if term.has(Mix, TIME) or not _is_nonnegative(core, system, back) or speeds.varying & term.free_symbols:
                return None
            row = found.setdefault(core, {})
            row[name] = row.get(name, sp.S.Zero) + coefficient
    return found


def _is_nonnegative(core: sp.Expr, system: System, back: Mapping[sp.Symbol, sp.Expr]) -> bool:
    """Whether a product is non-negative for densities: powers of states, and of what A collects of such products."""
    for factor in sp.Mul.make_args(core):
        base, exponent = factor.as_base_exp()
        if not (exponent.is_Integer and exponent > 0):
            return False
        if base in back:
            act = back[base]
            if any(w.name != "A" for w in act.word) or not _is_nonnegative(act.inner, system, back):
                return False
        elif not isinstance(base, State):
            return False
    return True


def _weights(fields: tuple[str, ...], shares: Mapping[sp.Expr, Shares], domain: Domain) -> dict[str, sp.Expr]:
    """Weights for which gains and losses of terms that stand in two equations cancel, 1 where nothing is asked."""
    weights: dict[str, sp.Expr] = {fields[0]: sp.S.One}
    pairs = [row for row in shares.values() if len(row) == 2]
    for _ in fields:
        for row in pairs:
            (one, p), (two, q) = row.items()
            if {domain.sign(p), domain.sign(q)} != {POSITIVE, NEGATIVE}:
                continue
            if one in weights and two not in weights:
                weights[two] = sp.cancel(-weights[one] * p / q)
            elif two in weights and one not in weights:
                weights[one] = sp.cancel(-weights[two] * q / p)
    return {name: weights.get(name, sp.S.One) for name in fields}


# ---------------------------------------------------------------------- lifetimes
#: Seconds of the search for a blow-up and for a rectangle.
SEARCH_SECONDS = 2.0


@dataclass(frozen=True)
class Lifetime:
    """global, local or None, with the reason; `starts` is what the starts must satisfy, empty for all of them."""

    value: str | None
    reason: str
    starts: str = ""
    blow_ups: tuple[BlowUp, ...] = ()


def lifetime(system: System) -> Lifetime:
    """Whether every solution lives for all time, or every one from certain starts.

    >>> from rdgraph.systems.parser import parse
    >>> found = lifetime(parse("u' = -beta*u*(A@v); v' = beta*u*(A@v) - gamma*v"))
    >>> found.value, found.starts
    ('global', 'u, v >= 0')
    """
    trouble = _singularity(system.normals, timely(system.domain))
    if system.is_noisy:
        return _of_noise(system, trouble)
    if trouble is None and (reason := _from_everywhere(system)):
        return Lifetime("global", reason)
    tried = [trouble] if trouble else ["no bound of the growth holds for all states"]
    kinds = ("row", "none") if "L" in system.letters else ("row",)  # L is I - A, or D - A
    densities = [positivity(system, kind) for kind in kinds]
    if all(found.value and found.is_closed for found in densities):
        sums = [mass_control(system, kind) for kind in kinds]
        if (mass := sums[0]) is not None and None not in sums:
            return Lifetime(
                "global", f"{mass}: non-negative solutions stay bounded on finite times", _nonnegative(system)
            )
        tried.append("no weighted sum of the fields is seen to grow at most linearly")
    kept = rectangle(system, "row")
    if kept.is_bounded:
        graph = f"row normalisation{f', {kept.assumes}' if kept.assumes else ''}"
        return Lifetime("global", "a run that starts in a bounded rectangle stays there", f"{kept.inside} ({graph})")
    tried.append("no bounded rectangle that is kept was found")
    return _blown_up(system, trouble, tried)


def _nonnegative(system: System) -> str:
    return f"{', '.join(system.fields)} >= 0"


# ---------------------------------------------------------------------- where f is defined
def _singularity(normals: Mapping[str, sp.Expr], domain: Domain) -> str | None:
    """A root, a quotient or a logarithm that is not proved to be smooth for all states and times."""
    for normal in normals.values():
        plain = normal.xreplace({a: sp.Dummy("z", real=True) for a in normal.atoms(Act, Mix)})
        parts = [plain, *(atom.inner.xreplace({a: sp.Dummy("z", real=True) for a in atom.inner.atoms(Act, Mix)})
                          for atom in normal.atoms(Act, Mix))]  # fmt: skip
        if any(has_gap(part) or not is_defined(part, domain, smooth=True) for part in parts):
            return f"{public(normal)} is not proved to be defined and Lipschitz for all states"
    return None


# ---------------------------------------------------------------------- every start
def _from_everywhere(system: System) -> str | None:
    if system.coupling.is_linear:
        timed = "" if system.is_autonomous else ", with coefficients that are continuous in t"
        return f"the vector field is affine{timed}"
    measure = Magnitudes(system, find_normalisation("row"), is_local=False)
    orders = {name: measure.order(normal) for name, normal in system.normals.items()}
    if all(order <= 1 for order in orders.values()):
        return "at most linear growth: solutions grow at most exponentially, on every graph"
    if all(_is_damped(system, normal_forms(system, kind), measure) for kind in ("row", "none")):
        return "large states are damped or grow at most linearly, sum u_i f_i(u) <= c (1 + |u|^2): on every graph"
    return None


def _is_damped(system: System, normals: Mapping[str, sp.Expr], measure: Magnitudes) -> bool:
    """Proved: terms that grow faster than linearly are polynomials in single entries that damp |state|^2."""
    total, states = sp.S.Zero, list(states_of(system).values())
    for name, normal in normals.items():
        for term in sp.Add.make_args(normal):
            if measure.order(term) <= 1:
                continue
            if term.has(Act, Mix, *starts_of(system).values()) or not term.is_polynomial(*states):
                return False
            total += State(name) * term
    return timely(system.domain).proves(sp.Le(sp.expand(total), 0, evaluate=False)) is True


# ---------------------------------------------------------------------- noise
def _of_noise(system: System, trouble: str | None) -> Lifetime:
    """Ito's theorem: drift and factors of noise that are Lipschitz for all states give one solution for all time."""
    measure = Magnitudes(system, find_normalisation("row"), is_local=False)
    factors = {name: with_cancelled(tree, system.algebra, lambda: system.domain) for name, tree in system.noise.items()}
    bent = [name for name, normal in system.normals.items() if measure.slope(normal).has(sp.oo)]
    rough = [name for name, factor in factors.items() if measure.slope(factor).has(sp.oo)]
    trouble = trouble or _singularity(factors, timely(system.domain))
    if trouble is None and not bent and not rough:
        reason = "Ito equation with Lipschitz drift and factors of noise: one strong solution for all time"
        return Lifetime("global", reason)
    parts = [trouble] if trouble else []
    parts += [f"the drift of {', '.join(bent)} is not seen to be Lipschitz for all states"] if bent else []
    parts += [f"the factor of xi in {', '.join(rough)} is not seen to be Lipschitz for all states"] if rough else []
    return Lifetime(None, f"Ito equation: {'; '.join(parts)}; the theorem asks for both")


# ---------------------------------------------------------------------- blow-up
def _blown_up(system: System, trouble: str | None, tried: list[str]) -> Lifetime:
    """A field that is alone, the others being zero and staying so, follows a scalar equation that may blow up."""
    reasons = list(tried)
    try:
        found = None if trouble else limited(SEARCH_SECONDS, _blow_up_alone, system)
    except (Undecided, NotApplicable) as problem:
        reasons.append(str(problem))
        found = None
    return found or Lifetime(None, "; ".join(reasons))


def _blow_up_alone(system: System) -> Lifetime | None:
    for name, rate, states in _alone(system):
        found = fate(rate, system.domain)
        if found.blow_ups:
            equation = f"{name} = h with h' = {public(factored(rate))}"
            return Lifetime("local", f"{states}, {equation} reaches infinity", blow_ups=found.blow_ups)
    return None


def _alone(system: System) -> Iterator[tuple[str, sp.Expr, str]]:
    """Fields that can be alone on states equal in all nodes of a graph with A@1 = 1, with their scalar equations."""
    kinds = {kind for name, kind in system.letters.items() if name != "M"}
    if not system.is_autonomous or system.operators.names or kinds & {Kind.NODE, Kind.MATRIX} or "M" in system.letters:
        return
    uniform = {name: _constant_states(normal) for name, normal in system.normals.items()}
    for name in system.fields:
        others = {State(n): sp.S.Zero for n in system.fields if n != name}
        others |= {x: sp.S.Zero for n, x in starts_of(system).items() if n != name}
        letters = {State(name): h, starts_of(system)[name]: h0}
        alone = {n: sp.expand(f.xreplace(others).xreplace(letters)) for n, f in uniform.items()}
        if all(value == 0 for n, value in alone.items() if n != name) and not alone[name].has(TIME):
            others_zero = "".join(f", {n} = 0" for n in system.fields if n != name)
            yield name, alone[name], f"on states equal in all nodes (A@1 = 1){others_zero}"


def _constant_states(expression: sp.Expr) -> sp.Expr:
    return expression.replace(lambda e: isinstance(e, Act), lambda e: _constant_states(e.inner))
