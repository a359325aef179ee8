"""A search for rectangles: upper faces at zeros of the speeds, a common radius, sizes at which damping wins.

Every rectangle that is returned was proved face by face; an end that was not found is infinite.
"""

from __future__ import annotations

import sympy as sp

from rdgraph.algebra.normal_form import TIME, State
from rdgraph.decisions.budget import limited, remaining
from rdgraph.decisions.closed_zeros import zeros
from rdgraph.decisions.domain import NEGATIVE, POSITIVE
from rdgraph.errors import Undecided
from rdgraph.syntax.answer_symbols import R
from rdgraph.theory.several_fields.node_speeds import Call, starts_of, states_of
from rdgraph.theory.several_fields.rectangle_faces import Bounds, Interval, RectangleFaces

#: Seconds spent on one face or rectangle.
FACE_SECONDS = 0.8


def found_rectangle(faces: RectangleFaces, lower: sp.Expr) -> Bounds | None:
    """A rectangle that is kept, as small as it was found; `lower` is 0 where densities stay non-negative, else -oo."""
    fields = faces.speeds.system.fields
    for side in dict.fromkeys((lower if lower == 0 else -R, -R)):
        common = dict.fromkeys(fields, (side, R))
        if _is_kept(faces, common):
            return common
    if lower == 0:
        bounds: dict[str, Interval] = dict.fromkeys(fields, (sp.S.Zero, sp.oo))
        changed = True
        while changed:
            changed = False
            for name in (n for n in fields if bounds[n][1] == sp.oo):
                tried = ((e, {**bounds, name: (sp.S.Zero, e)}) for e in _ends(faces, name))
                end = next((e for e, smaller in tried if _holds(faces, smaller, name)), None)
                if end is not None:
                    bounds[name], changed = (sp.S.Zero, end), True
        if all(end != sp.oo for _, end in bounds.values()) or (sized := _damped(faces)) is None:
            return bounds if faces.is_lipschitz(bounds) else None
        return sized
    return _damped(faces)


def _is_kept(faces: RectangleFaces, bounds: Bounds) -> bool:
    try:
        return limited(min(FACE_SECONDS, remaining()), faces.keep, bounds)
    except Undecided:
        return False


def _holds(faces: RectangleFaces, bounds: Bounds, name: str) -> bool:
    try:
        return limited(min(FACE_SECONDS, remaining()), faces.hold, bounds, name, 1)
    except Undecided:
        return False


def _ends(faces: RectangleFaces, name: str) -> list[sp.Expr]:
    """Positive zeros of a field's speed on states equal in all nodes, the other fields zero; then any radius."""
    system, state = faces.speeds.system, State(name)
    others = {x: sp.S.Zero for n, x in states_of(system).items() if n != name}
    uniform = faces.speeds.speeds[name].xreplace({c.letter: _uniform(faces, c) for c in faces.speeds.calls})
    uniform = uniform.xreplace(others)
    if uniform.has(TIME, *starts_of(system).values()):
        return [R]
    found = [z for z in zeros(sp.expand(uniform), state) if faces.domain.sign(z) is POSITIVE and not z.has(state)]
    return [*found, R]


def _uniform(faces: RectangleFaces, call: Call) -> sp.Expr:
    """What a call makes of a state that is equal in all nodes, with the largest row sums."""
    if "L" in call.word:
        return sp.S.Zero
    return call.inner if faces.collecting.highest is None else faces.collecting.highest ** len(call.word) * call.inner


# ---------------------------------------------------------------------- damping
def _damped(faces: RectangleFaces) -> Bounds | None:
    """|u_i| <= B_i large enough for the damping of every field, one field after the other in terms of the rest."""
    sizes = {name: sp.Dummy(name, positive=True) for name in faces.speeds.system.fields}
    speeds = {name: _outward(faces, name, sizes) for name in sizes}
    if any(value is None for value in speeds.values()):
        return None
    left: dict[str, sp.Expr] = {name: value for name, value in speeds.items() if value is not None}
    solved: dict[sp.Symbol, sp.Expr] = {}
    while left:
        step = next((x for name in left if (x := _solved(faces, left[name], sizes[name])) is not None), None)
        if step is None:
            return None
        letter, value = step
        solved = {x: sp.expand(v.xreplace({letter: value})) for x, v in solved.items()} | {letter: value}
        left = {n: sp.expand(v.xreplace({letter: value})) for n, v in left.items() if sizes[n] != letter}
    bounds = {name: (-solved[x], solved[x]) for name, x in sizes.items()}
    if any(not end.is_finite and not end.free_symbols for _, end in bounds.values()):
        return None
    tidy = {name: (-sp.factor(end), sp.factor(end)) for name, (_, end) in bounds.items()}
    return tidy if _is_kept(faces, tidy) else None


def _outward(faces: RectangleFaces, name: str, sizes: dict[str, sp.Symbol]) -> sp.Expr | None:
    """A bound of the outward speed at |u| = B: odd powers of u that damp keep their sign, all else counts in full."""
    system, own = faces.speeds.system, State(name)
    letters = {call.letter: call for call in faces.speeds.calls}
    speed = sp.expand(faces.speeds.speeds[name])
    moving = [*states_of(system).values(), *letters]
    if not speed.is_polynomial(*moving) or speed.has(TIME, *starts_of(system).values()):
        return None
    total = sp.S.Zero
    for powers, c in sp.Poly(speed, *moving).terms():
        present = {x: k for x, k in zip(moving, powers, strict=True) if k}
        sign = faces.domain.sign(c)
        if set(present) == {own} and present[own] % 2 == 1:
            total += c * sizes[name] ** present[own]
            continue
        if sign is NEGATIVE and len(present) == 1 and _is_own_laplacian(letters.get(next(iter(present))), own):
            continue  # D - A points inwards where its field is largest
        size = c if sign is POSITIVE else -c if sign is NEGATIVE else sp.Abs(c)
        for x, k in present.items():
            largest = sizes[x.name] if isinstance(x, State) else _collected_size(faces, letters[x], sizes)
            if largest is None:
                return None
            size *= largest**k
        total += size
    return sp.expand(total)


def _is_own_laplacian(call: Call | None, own: State) -> bool:
    return call is not None and call.word == ("L",) and call.inner == own


def _collected_size(faces: RectangleFaces, call: Call, sizes: dict[str, sp.Symbol]) -> sp.Expr | None:
    inner, word = call.inner, call.word
    highest = faces.collecting.highest
    if not isinstance(inner, State) or inner.name not in sizes or set(word) != {"A"} or highest is None:
        return None
    return highest ** len(word) * sizes[inner.name]


def _solved(faces: RectangleFaces, speed: sp.Expr, letter: sp.Symbol) -> tuple[sp.Symbol, sp.Expr] | None:
    """A size at which a bound of the outward speed is not positive; other sizes may occur if the damping is linear."""
    polynomial = sp.Poly(speed, letter)
    lead, degree = polynomial.LC(), polynomial.degree()
    if degree < 1 or faces.domain.sign(lead) is not NEGATIVE:
        return None
    others = [sp.Abs(c) if not _is_signed(faces, c) else c for c in polynomial.all_coeffs()[1:]]
    if degree == 1:
        return letter, sp.expand(sp.cancel((others[0] - lead) / -lead))
    if any(x.free_symbols & _sizes(speed, letter) for x in (lead, *others)):
        return None
    large = [sp.Max(c, 0) if not _is_signed(faces, c) else c for c in others if faces.domain.sign(c) is not NEGATIVE]
    return letter, sp.expand(1 + sp.Add(*(sp.cancel(c / -lead) for c in large)))


def _is_signed(faces: RectangleFaces, coefficient: sp.Expr) -> bool:
    return coefficient == 0 or faces.domain.sign(coefficient) in (POSITIVE, NEGATIVE)


def _sizes(speed: sp.Expr, letter: sp.Symbol) -> set[sp.Symbol]:
    return {x for x in speed.free_symbols if isinstance(x, sp.Dummy) and x != letter}
