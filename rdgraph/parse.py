"""The front door: text, sympy expression or catalogue name to `System`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import sympy as sp

from rdgraph.assumptions import SIGN_WORDS, Assumptions, read_statements
from rdgraph.errors import LanguageError, NotApplicable, RdgraphError
from rdgraph.hypotheses import Hypotheses
from rdgraph.language import MAX_LENGTH, USUAL_COEFFICIENTS, Vocabulary, check_new_name, read_expression
from rdgraph.nodes import COEFFICIENT_KINDS, Kind, Name, names_in
from rdgraph.system import System

_PREFIX = re.compile(r"\s*dH\s*/\s*dt\s*=(?!=)")
_WHERE = re.compile(r"\bwhere\b")


def parse(
    source: str | sp.Basic | System,
    coefficients: Mapping[str, str] | Iterable[str] | None = None,
    *,
    assume: Iterable[str] | str = (),
) -> System:
    """Read one line of maths into a `System`.

    `source` is a text in the language, a sympy expression, or a name of the catalogue. `coefficients` declares kinds,
    `{"k": "channel"}` or just `["k"]` for scalars; `assume` takes texts such as "beta<0", "beta real", "beta <= alpha".

    >>> parse("-alpha*L@H + beta*(A@H - A@A@H)").symbol()
    -beta*lam**2 + lam*(-alpha + beta)
    >>> parse("BS") == parse("-alpha*L@H + beta*(A@H - A@A@H)")
    True
    >>> parse("-alpha*L@H + k*H", ["k"], assume="k<0").assumptions.sign("k")
    'negative'
    """
    kinds = declared_kinds(coefficients)
    assumed = [assume] if isinstance(assume, str) else _texts(assume, "assumptions")
    if isinstance(source, System):
        return _with(source, kinds, assumed)
    if isinstance(source, sp.Basic):
        from rdgraph.matrices import from_sympy

        return _build(from_sympy(source, Vocabulary.standard(kinds)), kinds, assumed, None)
    if not isinstance(source, str):
        raise RdgraphError(
            f"expected text, a sympy expression or a System, got {type(source).__name__}; see rdgraph.parse"
        )
    return _parse_text(source, kinds, assumed)


def _texts(values: Any, what: str) -> list[str]:
    texts: list[Any] = list(values) if isinstance(values, Iterable) else [None]
    if not all(isinstance(text, str) for text in texts):
        raise RdgraphError(f"expected {what} as texts, got {values!r:.60}; write them as in ['beta<0']")
    return texts


def declared_kinds(coefficients: Mapping[str, str] | Iterable[str] | None) -> dict[str, Kind]:
    """Check declarations of coefficients and turn their words into kinds."""
    if coefficients is None:
        return {}
    if isinstance(coefficients, str):
        coefficients = [coefficients]
    if isinstance(coefficients, Mapping):
        pairs = list(coefficients.items())
    else:
        pairs = [(name, "scalar") for name in _texts(coefficients, "coefficients")]
    kinds = {}
    for name, word in pairs:
        check_new_name(name)
        if word not in COEFFICIENT_KINDS:
            raise LanguageError(
                f"{name}={word}", len(name) + 1, expected=f"a kind: {', '.join(COEFFICIENT_KINDS)}", got=repr(word),
                remedy=f"declare {name} as scalar, channel, node or matrix",
            )  # fmt: skip
        kinds[name] = Kind(word)
    return kinds


def _parse_text(text: str, kinds: dict[str, Kind], assumed: list[str]) -> System:
    from rdgraph.catalog import catalogue

    prefix = _PREFIX.match(text)
    start = prefix.end() if prefix else 0
    clause = _WHERE.search(text, start)
    body = text[start : clause.start()] if clause else text[start:]
    if clause:
        more_kinds, more_assumed = _read_clause(text, clause.end())
        kinds, assumed = {**more_kinds, **kinds}, more_assumed + assumed
    if body.strip() in catalogue:
        return _with(catalogue[body.strip()], kinds, assumed)
    try:
        expression = read_expression(body, Vocabulary.standard(kinds))
    except LanguageError as problem:
        raise LanguageError(
            text, problem.offset + start, expected=problem.expected, got=problem.got, remedy=problem.remedy
        ) from None
    return _build(expression, kinds, assumed, None)


def _read_clause(text: str, start: int) -> tuple[dict[str, Kind], list[str]]:
    kinds: dict[str, Kind] = {}
    assumed: list[str] = []
    if len(text) - start > MAX_LENGTH:
        raise LanguageError(
            text, start, expected=f"at most {MAX_LENGTH} characters after 'where'", got=f"{len(text) - start}",
            remedy="say less, or use coefficients= and assume=",
        )  # fmt: skip
    for item in text[start:].split(","):
        words = item.split()
        if len(words) == 2 and words[1] in COEFFICIENT_KINDS:
            kinds |= declared_kinds({words[0]: words[1]})
        elif (len(words) == 2 and words[1] in SIGN_WORDS) or re.search("[<>]", item):
            assumed.append(item.strip())
        else:
            raise LanguageError(
                text, start, expected="declarations after 'where', as in 'beta channel, beta < 0'",
                got=item.strip()[:40] or "nothing", remedy="separate declarations by commas",
            )  # fmt: skip
    return kinds, assumed


def _build(expression: sp.Basic, kinds: dict[str, Kind], assumed: list[str], name: str | None) -> System:
    letters = {n.name for n in names_in(expression)}
    usual = dict.fromkeys(USUAL_COEFFICIENTS, Kind.SCALAR)
    kept = {k: v for k, v in kinds.items() if k in letters and usual.get(k) is not v}
    stated = Assumptions.read(assumed, kinds)
    if stated.relations:
        Hypotheses((), tuple((n, str(k)) for n, k in kinds.items()), stated).domain.check()
    assumptions = stated.about(letters)
    return System(expression, tuple(sorted(kept.items())), assumptions, name)


def _with(system: System, kinds: dict[str, Kind], assumed: list[str]) -> System:
    """A known system under further declarations and assumptions."""
    if not kinds and not assumed:
        return system
    merged = {**dict(system.kinds), **kinds}
    renamed = {n: Name(n.name, merged[n.name]) for n in names_in(system.expression) if n.name in merged}
    expression = system.expression.xreplace(renamed)
    restated, _ = read_statements(assumed, merged)
    kept = [f"{name} {sign}" for name, sign in system.assumptions.signs if name not in restated]
    kept += map(str, system.assumptions.relations)
    return _build(expression, merged, [*kept, *assumed], system.name)


def _number(value: Any) -> sp.Basic:
    from rdgraph.matrices import number_node
    from rdgraph.spectral import exact_number

    try:
        return number_node(exact_number(value, "number"))
    except NotApplicable:
        raise RdgraphError(
            f"expected a number or a text, got {type(value).__name__}; give 2, 0.5 or '2*gamma'"
        ) from None


def substitute(system: System, values: Mapping[str, Any]) -> System:
    """The system with coefficients replaced by numbers or by texts of coefficients."""
    unknown = set(values) - set(system.coefficients)
    if unknown:
        raise RdgraphError(f"expected coefficients among {list(system.coefficients)}, got {sorted(unknown)}")
    vocabulary = Vocabulary.standard({**dict(system.kinds)})
    trees = {}
    for node in names_in(system.expression):
        if node.name in values:
            value = values[node.name]
            trees[node] = read_expression(value, vocabulary) if isinstance(value, str) else _number(value)
    expression = system.expression.xreplace(trees)
    return _build(expression, dict(system.kinds), list(system.assumptions.texts()), None)
