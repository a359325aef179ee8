"""Systems of several fields that cannot be read: the right column, what was expected, what came, and the remedy."""

from __future__ import annotations

import time

import pytest

import rdgraph as rd
from rdgraph.errors import AssumptionError, InvalidArgument, LanguageError
from rdgraph.language.reader import MAX_LENGTH
from rdgraph.systems.equation import Equation
from rdgraph.systems.equation_text import MAX_EQUATIONS, MAX_NAME
from rdgraph.systems.system import System

FREE, LEFT, NOISE = "a free name for a field", "a field with ' before the =", "white noise as a factor of a term"


@pytest.mark.parametrize(
    ("text", "column", "expected", "got", "remedy"),
    [
        # fields without an equation, equations without a field
        ("u' = -L@u; v' = w", 17, "a field that has an equation", "'w'", "where w scalar, or give w' = ..."),
        ("u' = u*H", 8, "a field that has an equation", "'H'", "give H' = ..."),
        ("u' = k*u", 6, "or a coefficient", "'k'", "where k scalar"),
        ("u' = -L@u; w", 12, LEFT, "w", "write u' for the derivative"),
        ("u' = -L@u; = w", 12, LEFT, "nothing", "write u'"),
        ("u' = -L@u; v = w", 12, LEFT, "v", "write u'"),
        ("-L@H; u' = u", 1, LEFT, "-L@H", "a right-hand side alone is that of H'"),
        ("BS; u' = u", 1, LEFT, "BS", "write u'"),
        ("u' = BS", 6, "a field that has an equation", "'BS'", "give BS'"),
        (";u' = -u", 1, LEFT, "nothing", "write u'"),
        ("u' = -u;; v' = u", 9, LEFT, "nothing", "write u'"),
        (";", 1, "an equation", "nothing", "write the right-hand side"),
        ("u' =", 5, "an equation", "nothing", "write the right-hand side"),
        ("u' = -u; v' = ", 14, "an equation", "nothing", "write the right-hand side"),
        ("u' = 1", 6, "a field: an expression in u", "a scalar", "beta*u"),
        ("u' =  sin(t); v' = 2", 7, "a field: an expression in u", "a scalar", "A@u"),
        ("u' = -u; v' = L", 15, "a field: an expression in v", "an operator", "A@v"),
        ("u' = W; v' = u", 6, "a field: an expression in u", "a matrix", "A@u"),
        ("u' == u", 4, "a character of the language", "'='", "the right-hand side only, or u' = ..."),
        ("u' = v = u; v' = u", 8, "a character of the language", "'='", "with ; between them"),
        ("u' = -L@u, v' = u", 10, "a character of the language", "','", "separate equations by ;"),
        # two equations for one field, orders
        ("u' = -L@u; u' = u", 12, "one equation for u", "a second one", "drop one"),
        ("u' = -L@u; u'' = u", 12, "one equation for u", "of order 2 and one of order 1", "drop one"),
        ("u'' = v; v' = u\ndu/dt = v", 18, "one equation for u", "of order 1 and one of order 2", "another field"),
        ("u''' = u", 4, "a first or a second derivative", "u'''", "add a field for the others"),
        ("u' = u; v'''' = u", 12, "a first or a second derivative", "v''''", "w' ="),
        # velocities
        ("u' = -u; v' = u'", 15, "u' is one where u has an equation of second order", "u'", "give u'' = ..."),
        ("-H'", 2, "H' is one where H has an equation of second order", "H'", "the right-hand side of H'"),
        ("u' = v'; v' = u", 6, "v' is one where v has an equation of second order", "v'", "give v'' = ..."),
        ("u'' = -u''", 8, "derivatives below the second", "u''", "write u'' = ... on the left"),
        ("u'' = -u'''", 8, "derivatives below the second", "u'''", "on the left"),
        ("u' = u0' + u", 6, "u0' is one where", "u0'", ""),
        ("u'' = w' - u", 7, "w' is one where w has an equation of second order", "w'", "give w''"),
        # primes in odd places
        ("u' = 'u", 6, "' after the name of a field", "' alone", "write u'"),
        ("u' = u '", 8, "' after the name of a field", "' alone", "write u'"),
        ("u' = (u)'", 9, "' after the name of a field", "' alone", "write u'"),
        ("u' = 2'", 7, "' after the name of a field", "' alone", "write u'"),
        ("u'' = u'v", 9, "an operator after u'", "'v' right after it", "write * between factors"),
        ("u'' = u'2", 9, "an operator after u'", "'2' right after it", "write *"),
        ("u'' = u'_", 9, "an operator after u'", "'_' right after it", "write *"),
        ("u' = g'(u) where g_ = H", 6, "a known function", '''"g'"''', "known functions"),
        ("u'' = u'(2)", 7, "a known function", '''"u'"''', "is not a function; write u'*"),
        ("u' ' = u", 1, LEFT, "u' '", "write u'"),
        ("u' = tanh'(u)", 6, "a known function", '''"tanh'"''', "did you mean tanh?"),
        ("'u' = u", 1, LEFT, "'u'", "write u'"),
        # names of fields
        ("L' = H", 1, FREE, "'L', reserved for a letter of the language", "call it u, v or w"),
        ("u' = u; A' = A", 9, FREE, "'A', reserved for", "u, v or w"),
        ("W' = W", 1, FREE, "'W', reserved for", "u, v or w"),
        ("H0' = H", 1, FREE, "'H0', reserved for", "u, v or w"),
        ("dt/dt = t", 2, FREE, "'t', reserved for", "u, v or w"),
        ("xi' = xi", 1, FREE, "'xi', reserved for", "u, v or w"),
        ("tanh' = tanh", 1, FREE, "'tanh', reserved for an elementwise function", "u, v or w"),
        ("lam' = lam", 1, FREE, "reserved for an eigenvalue of L", "u, v or w"),
        ("T' = T", 1, FREE, "reserved for the end time", "u, v or w"),
        ("where' = u", 1, FREE, "reserved for the word before declarations", "u, v or w"),
        ("if' = u", 1, FREE, "'if', reserved for Python", "u, v or w"),
        ("lambda' = u", 1, FREE, "'lambda', reserved for Python", "u, v or w"),
        ("u' = -u; u0' = u", 10, FREE, "'u0', reserved for the start of u", "u, v or w"),
        ("u10' = -u10", 1, FREE, "'u10', reserved for the start of u1", "u, v or w"),
        ("_u' = _u", 1, FREE, "'_u'", "u, v or w"),
        ("\u00fc' = 1", 1, FREE, "'\u00fc'", "u, v or w"),
        ("u' = -u; \u03b1' = u", 10, FREE, "'\u03b1'", "u, v or w"),
        ("u' = -\u03b1*u", 7, "plain ASCII text", "GREEK SMALL LETTER ALPHA", "write alpha"),
        ("u' = -u; v' = u\u2032", 16, "plain ASCII text", "PRIME", "ASCII"),
        ("u\u2019 = u", 1, LEFT, "u\u2019", "write u'"),
        ("u' = u\uff1b v' = u", 7, "plain ASCII text", "FULLWIDTH SEMICOLON", ""),
        # declarations
        ("u' = -L@u where u scalar", 17, "'u' as a field or as a coefficient", "both", "another name"),
        ("u' = -L@u where  u0 node", 18, "'u0' as a field or as a coefficient", "both", "another name"),
        ("u' = u; v' = B@u where u symmetric", 24, "'u' as a field or as a coefficient", "both", "another name"),
        ("u' = B@u where B scalar, B signed", 26, "'B' as an operator or as a coefficient", "both", "declare it once"),
        ("u' = k*u where k node; v' = k*u where k channel", 39, "one kind for k", "node and channel", "drop one"),
        ("u' = B@u where B symmetric antisymmetric", 16, "symmetric or antisymmetric", "both", "drop one of them"),
        ("u' = B@u where B stochastic; v' = u where B signed", 43, "stochastic or signed", "both", "drop one of them"),
        ("u' = B@u where B", 15, "declarations after 'where'", "B", "commas"),
        ("u' = B@u where B symmetric dense", 15, "declarations after 'where'", "B symmetric dense", "commas"),
        ("u' = t*u where t scalar", 16, "a free name", "'t', reserved for a letter of the language", "call it t_1"),
        ("u' = -u where xi channel", 15, "a free name", "'xi', reserved for", "call it xi_1"),
        ("u' = A@u where A symmetric", 16, "a free name", "'A', reserved for a letter of the language", "call it A_1"),
        ("u' = -u where a b c", 14, "declarations after 'where'", "a b c", "commas"),
        # declared functions
        ("u' = f(u); v' = g(v) where f = g(H), g = f(H)", 32, "without a cycle", "f, which calls g", "declare g"),
        ("u' = g(u) where g = 1 + g(H)", 25, "without a cycle", "g, which calls itself", "write the function out"),
        ("u' = f(u) where f = g(H); v' = g(v) where g = H", 21, "without a cycle", "declared after it", "before f"),
        ("u' = g(u) where g = u**2", 21, "a function of H alone", "the field u", "write H for the argument"),
        ("u' = g(u) where g = 2*u0", 23, "a function of H alone", "the field u0", "write H for the argument"),
        ("u'' = g(u) where g = H*u'", 24, "a function of H alone", "the field u'", "write H for the argument"),
        ("a' = -a; b' = g(b) where g = a*H", 30, "a function of H alone", "the field a", "call the function of a"),
        ("u' = g(u) where g = t*H", 21, "a function of H alone", "the letter t", "use H"),
        ("u' = g(u) where g = xi*H", 21, "a function of H alone", "the letter xi", "use H"),
        ("u' = g(u) where g = B@H, B signed", 21, "a function of H alone", "an operator", "use H"),
        ("u' = v(u); v' = u where v = H", 25, "a free name", "'v', a letter of the equation", "v_1"),
        ("u' = g(u) where g = H; v' = g(v) where g = H", 40, "a free name", "'g', declared twice", "g_1"),
        # noise
        ("u' = -L@u + xi*xi", 13, NOISE, "xi*xi", "write the noise last"),
        ("u' = -L@u + tanh(xi)", 18, NOISE, "tanh(xi)", "write the noise last"),
        ("u' = -L@u; v' = u + A@xi", 23, NOISE, "A@xi", "write the noise last"),
        ("u' = -L@u + u/xi", 15, NOISE, "u/xi", "write the noise last"),
        ("u' = xi**2", 6, NOISE, "xi**2", "write the noise last"),
        ("u' = -L@u + (u + xi)*2", 18, NOISE, "u + xi", "write the noise last"),
        ("u' = -L@(u + xi)", 14, NOISE, "L@(u + xi)", "write the noise last"),
        ("u' = -u + xi@W", 11, NOISE, "xi@W", "write the noise last"),
        # time
        ("u' = u**t", 9, "a whole number as exponent", "t", ""),
        ("u' = A**t@u", 9, "a whole number as exponent", "t", ""),
        ("u' = t@u", 7, "operator @ field", "scalar @ field", ""),
        ("u' = u(t)", 6, "a known function", "'u'", "u is not a function"),
    ],
)  # fmt: skip
def test_refusals_point_at_the_place(text: str, column: int, expected: str, got: str, remedy: str) -> None:
    with pytest.raises(LanguageError) as caught:
        rd.parse(text)
    error = caught.value
    assert error.text == text
    assert expected in error.expected
    assert got in error.got
    assert remedy in error.remedy
    assert error.column == column, str(error)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("u' = -u where u<0", "expected coefficients and numbers in 'u<0', got a field: u"),
        ("u' = -u; v' = u where v0 real", "expected a coefficient in 'v0 real'"),
        ("u' = t*u where t<1", "expected coefficients and numbers in 't<1', got the time t"),
        ("u' = t*u where t positive", "expected a coefficient in 't positive', got 't'"),
        ("u' = -u + xi where 0 < xi", "got the noise xi"),
        ("u' = alpha@u where alpha symmetric, alpha<0", "in 'alpha<0', got an operator: alpha"),
        ("u' = -beta*u where beta<0; v' = u where beta>0", "one sign for beta, got negative and positive"),
        ("u' = -a*u where a<b; v' = -b*v where b<a", "contradict|no values"),
    ],
)
def test_assumptions_that_cannot_hold(text: str, words: str) -> None:
    with pytest.raises(AssumptionError, match=words):
        rd.parse(text)


def test_operators_said_in_words() -> None:
    with pytest.raises(LanguageError, match="one of operator, symmetric, antisymmetric, stochastic, signed"):
        rd.parse("B@H where B signed", operators={"B": "dense"})
    with pytest.raises(LanguageError, match="symmetric or antisymmetric"):
        rd.parse("B@H", operators={"B": ["symmetric", "antisymmetric"]})
    with pytest.raises(LanguageError, match="nothing"):
        rd.parse("B@H", operators={"B": ""})


def test_equations_check_themselves() -> None:
    tree = rd.parse("-H").expression
    for order in (0, 3):
        with pytest.raises(InvalidArgument, match=f"order {order}"):
            Equation("H", order, tree)
    with pytest.raises(InvalidArgument, match="one equation for each field"):
        System(())
    with pytest.raises(InvalidArgument, match="one equation for each field"):
        System((Equation("H", 1, tree), Equation("H", 2, tree)))


# ---------------------------------------------------------------------- sizes
def chain(count: int) -> str:
    """As many equations, each with all fields in it."""
    names = [f"x{a}{b}" for a in "abcdefgh" for b in "123456789"][:count]
    return "; ".join(f"{name}' = -L@{name} + a*({' + '.join(names)})" for name in names)


def test_as_many_equations_as_allowed() -> None:
    start = time.process_time()
    system = rd.parse(chain(MAX_EQUATIONS) + ";")
    assert len(system.fields) == MAX_EQUATIONS
    assert rd.parse(str(system)) == system
    assert system.symbol().shape == (MAX_EQUATIONS, MAX_EQUATIONS)
    assert time.process_time() - start < 10
    with pytest.raises(LanguageError, match=f"at most {MAX_EQUATIONS} equations"):
        rd.parse(chain(MAX_EQUATIONS + 1))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\n" * 400_000, "an equation"),
        ("u' = -u" + "\n" * 400_000 + "v' = u", f"at most {MAX_LENGTH} characters"),
        ("u' = -u" + " \n" * 200_000 + "v'", f"at most {MAX_LENGTH} characters"),
        ("\na" * 200_000, "plain|at most|expression"),
        ("\nd" * 200_000 + "u/dt", "at most"),
        (";" * 1_000_000, f"at most {MAX_EQUATIONS} equations"),
        ("u' = -u;" * 1_000_000, f"at most {MAX_EQUATIONS} equations"),
        ("u' = -u\n" * 1_000_000, f"at most {MAX_EQUATIONS} equations"),
        ("a" * 1_000_000 + "' = 1", f"a name of at most {MAX_NAME} characters"),
        ("u" + "'" * 1_000_000 + " = u", "a first or a second derivative"),
        ("u' = " + "'" * 1_000_000, f"at most {MAX_LENGTH} characters"),
        ("u' = " + "u'" * 1_000_000, f"at most {MAX_LENGTH} characters"),
        ("u' = -u where " + "k scalar," * 1_000_000, "after 'where'"),
        ("u' = -u where " + "g" * 3000 + "(" * 900, "declarations after"),
        ("u' = " + "(" * 100 + "u" + ")" * 100, "nested brackets"),
        ("u' = " + "u" + "+u" * 3000, "at most"),
        ("u' = -u" + " where" * 100_000, "after 'where'"),
        ("d" * 1_000_000 + "/dt = 1", f"a name of at most {MAX_NAME} characters"),
        (["u' = -u"] * 1_000_000, f"at most {MAX_EQUATIONS} equations"),
    ],
    ids=lambda value: None if isinstance(value, str) and len(value) < 60 else "text",
)
def test_large_texts_are_refused_at_once(text: str, words: str) -> None:
    start = time.process_time()
    with pytest.raises(LanguageError, match=words):
        rd.parse(text)
    assert time.process_time() - start < 3


def test_declarations_of_many_lines_must_fit_when_they_are_printed() -> None:
    def declared(lines: int) -> str:
        names = [f"long_name_of_a_coefficient_{i}" for i in range(50)]
        parts = []
        for line in range(lines):
            own = [f"{name}_{line}" for name in names]
            parts.append(f"u{line + 1}' = u{line + 1}*({' + '.join(own)}) where {', '.join(f'{n} node' for n in own)}")
        return "; ".join(parts)

    system = rd.parse(declared(1))
    assert rd.parse(str(system)) == system
    with pytest.raises(LanguageError, match=f"at most {MAX_LENGTH} characters of declarations when printed"):
        rd.parse(declared(3))
