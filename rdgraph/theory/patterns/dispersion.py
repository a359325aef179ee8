"""Dispersion relations: how fast a mode of the graph with eigenvalue lam grows at a steady state.

A deviation from a constant steady state along an eigenvector of L evolves by the matrix P(lam); its growth is the
largest real part of the eigenvalues of P(lam), its frequency the imaginary part that belongs to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sympy as sp

from rdgraph.answers import Answer, Status
from rdgraph.errors import InvalidArgument, NotApplicable
from rdgraph.language.answer_symbols import lam, public
from rdgraph.reals.budget import within_budget
from rdgraph.systems.parser import reads_system
from rdgraph.systems.system import System
from rdgraph.theory.patterns.bands import Band
from rdgraph.theory.patterns.joint_dispersion import JointDispersion, joint_dispersion, plain
from rdgraph.theory.patterns.kinetics import Kinetics, system_kinetics
from rdgraph.theory.patterns.linearisation import Bands, Linearisation
from rdgraph.theory.patterns.mode_spectra import (
    Fastest,
    ModeSpectrum,
    RangeBound,
    check_degrees,
    fastest_mode,
    growth_over,
    mode_spectrum,
    range_box,
)
from rdgraph.theory.patterns.states import SteadyState
from rdgraph.theory.patterns.steady_states import state_at
from rdgraph.vocabulary.exact_numbers import exact_number
from rdgraph.wording import html_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: The end of the spectrum of normalised operators.
END = sp.Integer(2)

STABLE, MARGINAL, TURING, WAVE, TURING_WAVE = "stable", "marginal", "turing", "wave", "turing-wave"
HOPF, TURING_HOPF, UNSTABLE, LONG_WAVE, ANTI = "hopf", "turing-hopf", "unstable at 0", "long-wave", "anti-diffusion"
DIRECTED = "directed"

MEANINGS = {
    STABLE: "every mode decays",
    MARGINAL: "no mode grows, and one decays by less than 1e-6 or not at all",
    DIRECTED: "no mode with a real lam grows, but modes of this directed graph with complex lam do",
    TURING: "decays without transport and where all nodes agree; a stationary band grows",
    WAVE: "decays without transport and where all nodes agree; an oscillating band grows",
    TURING_WAVE: "decays where all nodes agree; a stationary and an oscillating band grow",
    HOPF: "an even number of eigenvalues grows where all nodes agree: oscillations at onset",
    TURING_HOPF: "oscillates with growing amplitude where all nodes agree; a stationary mode grows as well",
    UNSTABLE: "an odd number of eigenvalues grows where all nodes agree",
    LONG_WAVE: "the constant mode neither grows nor decays, and a band next to lam = 0 grows",
    Status.UNDECIDED: "enclosures of the growth contain zero",
    ANTI: "decays where all nodes agree; transport alone makes modes grow",
}

#: Imaginary parts below this fraction of the eigenvalue count as rounding.
TOLERANCE = 1e-9
#: Modes that decay at least this fast count as decaying.
MARGIN = sp.Rational(1, 10**6)


class Modes(NamedTuple):
    """The modes of a graph: eigenvalues of L in their order, the growth of each, and the indices of those that grow."""

    eigenvalues: np.ndarray
    growth: np.ndarray
    unstable: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Dispersion(Answer):
    """The dispersion relation at one steady state, with numbers as coefficients.

    `unstable` are the intervals of lam in [0, to] where a mode grows. With the spectrum of a graph, `modes` are the
    modes of that graph. `state` is None where the system is linear: all states have the same relation.
    """

    fields: tuple[str, ...]
    linearisation: Linearisation
    transport: Linearisation
    state: SteadyState | None
    to: sp.Expr
    growing: Bands
    assumes: str
    spectrum: ModeSpectrum | None = None

    @property
    def value(self) -> str | None:
        """The kind of instability, in one of the words of `MEANINGS`; None if undecided."""
        return None if self.kind == Status.UNDECIDED else self.kind

    @property
    def status(self) -> Status:
        """proved; bounded where growing bands are enclosed; measured where modes of a directed graph decide."""
        if self.kind == Status.UNDECIDED:
            return Status.UNDECIDED
        if self.kind == DIRECTED:
            return Status.MEASURED
        return Status.PROVED if self.how == "exact" else Status.BOUNDED

    @property
    def reason(self) -> str:
        """The meaning of the kind of instability."""
        return MEANINGS[self.kind]

    @property
    def unstable(self) -> tuple[Band, ...]:
        """The intervals of lam in [0, to] on which a mode grows."""
        return self.growing.bands

    @property
    def how(self) -> str:
        """How these are known: exact, or enclosed by interval arithmetic."""
        return self.growing.how

    @property
    def symbol(self) -> sp.ImmutableMatrix:
        """P(lam), in plain symbols."""
        return public(self.linearisation.exact_matrix)

    def growth(self, eigenvalue: Any) -> Any:
        """The largest real part of the eigenvalues of P at lam, a number or an array, real or complex."""
        return plain(self.linearisation.eigenvalues(eigenvalue)[..., 0].real)

    def frequency(self, eigenvalue: Any) -> Any:
        """The imaginary part of the eigenvalue that grows fastest, as a frequency >= 0 in radians per time."""
        return plain(np.abs(self.linearisation.eigenvalues(eigenvalue)[..., 0].imag))

    @cached_property
    def fastest(self) -> Fastest | None:
        """The lam in [0, to] that grows fastest, with its growth; None where nothing grows."""
        return fastest_mode(self.linearisation, self.unstable, self.to)

    @cached_property
    def bound(self) -> RangeBound | None:
        """The largest growth for complex lam in a box around the numerical range of a directed L.

        None without a directed matrix, and where time ran out. It bounds the growth on the graph from above, and unlike
        eigenvalues it is robust to small changes of L.
        """
        if self.spectrum is None or self.spectrum.matrix is None or self.spectrum.is_symmetric:
            return None
        box = range_box(self.spectrum.matrix)
        return _or_none(growth_over)(self.linearisation, box)

    @cached_property
    def sign_at_zero(self) -> int | None:
        """Whether the constant mode grows (1), stays (0) or decays (-1); None if undecided."""
        return self.linearisation.sign_at(sp.S.Zero)

    @cached_property
    def kind(self) -> str:
        """The kind of instability of the steady state, in one of the words of `MEANINGS`.

        It is for all real lam of the range; for a given directed graph the complex modes count too.
        """
        kind = self._kind_of_decay() if self.outcome == STABLE else self.outcome
        is_complex = self.spectrum is not None and not self.spectrum.is_real
        return DIRECTED if kind in (STABLE, MARGINAL) and is_complex and self.modes.unstable else kind

    @cached_property
    def outcome(self) -> str:
        """The kind of instability for real modes, where modes that do not grow count as decaying."""
        at_zero = self.sign_at_zero
        if at_zero == 1:
            return self._kind_beyond_zero()
        if at_zero is None or (not self.unstable and not self.growing.is_sure):
            return Status.UNDECIDED
        if not self.unstable:
            return STABLE if at_zero == -1 else MARGINAL
        if at_zero == 0:
            return LONG_WAVE
        alone = self.transport.bands(self.to)
        if alone.bands or not alone.is_sure:
            return ANTI if alone.bands else Status.UNDECIDED
        oscillates = {self._oscillates(fastest_mode(self.linearisation, (band,), self.to)) for band in self.unstable}
        return TURING_WAVE if len(oscillates) == 2 else WAVE if True in oscillates else TURING

    def _kind_of_decay(self) -> str:
        """stable if all modes decay by some margin, else marginal."""
        slow = self.linearisation.shifted(-MARGIN).bands(self.to)
        return MARGINAL if slow.bands else STABLE if slow.is_sure else Status.UNDECIDED

    def _kind_beyond_zero(self) -> str:
        """The kind if the constant mode grows: by the parity of its growing eigenvalues, and by stationary bands."""
        parity = self.linearisation.parity_at(sp.S.Zero)
        leading = self.linearisation.eigenvalues(0.0)[0]
        turns = abs(leading.imag) > TOLERANCE * abs(leading)
        if parity == -1 or (parity is None and not turns):
            return UNSTABLE
        stationary = turns and self.linearisation.has_odd_growth(self.to) and not self.transport.bands(self.to).bands
        return TURING_HOPF if stationary else HOPF

    def _oscillates(self, mode: Fastest | None) -> bool:
        return mode is not None and mode.frequency > TOLERANCE * max(mode.growth, 1.0)

    @cached_property
    def modes(self) -> Modes:
        """The modes of the given operator.

        Raises InvalidArgument where there is none.
        """
        if self.spectrum is None:
            raise InvalidArgument("expected a dispersion relation of a graph, got none; give operator=...")
        growth = self.growth(self.spectrum.eigenvalues)
        return Modes(self.spectrum.eigenvalues, growth, self.spectrum.growing(growth))

    def plot(self, *others: Dispersion) -> Figure:
        """A matplotlib figure: growth and frequency over lam, growing bands shaded, the modes of a graph as rings.

        Other relations, such as those at the other steady states, are drawn next to it. `figure.savefig` writes it.
        """
        return dispersion_figure([self, *others])

    def __str__(self) -> str:
        return "\n".join(f"{head}: {cell}" for head, cell in self._rows())

    def __repr__(self) -> str:
        return f"Dispersion of {', '.join(self.fields)}\n{self}"

    def _repr_html_(self) -> str:
        return html_table(f"dispersion relation of {', '.join(self.fields)}", self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        rows = [("kind", f"{self.kind} ({MEANINGS[self.kind]})")]
        rows += [("steady state", str(self.state) if self.state else "any: the system is linear")]
        rows += [("P(lam)", str(self.symbol.tolist()))]
        rows += [(f"growing lam in [0, {self.to}]", f"{' and '.join(map(str, self.unstable)) or 'none'} ({self.how})")]
        rows += [("fastest", str(self.fastest) if self.fastest else "none grows")]
        if self.spectrum is not None:
            count = len(self.modes.unstable)
            rows += [("modes", f"{count} of {len(self.modes.growth)} grow; {self.spectrum.source}")]
        if self.spectrum is not None and not self.spectrum.is_real and self.bound is not None:
            rows += [("bound", str(self.bound))]
        return [*rows, ("assumes", self.assumes)]

    def to_dict(self) -> dict[str, Any]:
        """The answer as texts and numbers."""
        fastest = self.fastest
        return {
            "fields": list(self.fields),
            "symbol": [[str(entry) for entry in row] for row in self.symbol.tolist()],
            "state": None if self.state is None else self.state.to_dict(),
            "kind": str(self.kind),
            "status": str(self.status),
            "unstable": [[str(band.lower), str(band.upper)] for band in self.unstable],
            "how": self.how,
            "fastest": None if fastest is None else fastest._asdict(),
            "modes": None if self.spectrum is None else list(self.modes.unstable),
            "bound": None if self.bound is None else self.bound.value,
            "assumes": self.assumes,
        }


_or_none = within_budget(lambda problem: None)


@reads_system
@within_budget()
def dispersion(
    system: System,
    values: Mapping[str, Any] | None = None,
    state: int | Mapping[str, Any] = 0,
    operator: Any = None,
    *,
    to: Any = END,
    operators: Mapping[str, Any] | None = None,
    norms: Mapping[str, Any] | None = None,
) -> Dispersion | JointDispersion:
    """The dispersion relation of a system at a steady state that is equal in all nodes.

    With operators in addition to A the matrix P(lam, B) is exact at joint eigenvalues where they commute; where they do
    not, the growth is bounded, and on a graph it is that of the generator.

    Args:
        system: one or several fields; white noise is left out.
        values: a number for every coefficient; decimals are taken as exact.
        state: which of `steady_states(system, values)`, or the values of the fields. Ignored for linear systems.
        operator: an `Operator`, a matrix L or its eigenvalues, for the modes of one graph.
        to: the end of the range of lam, 2 for normalised operators; with L = D - A twice the largest degree holds all.
        operators: matrices of the further operators, by letter, on the graph of `operator`.
        norms: bounds of their norms, by letter, for a bound of the growth without a graph.

    Returns:
        The matrix P(lam), its growth and frequency, the growing lam, and the kind of instability; a `JointDispersion`
        for systems with operators in addition to A.

    Raises:
        InvalidArgument: values are missing or not numbers, or there is no such state.
        NotApplicable: there is no constant steady state, or no linearisation at it.
        Undecided: time ran out.

    >>> import rdgraph as rd
    >>> s = rd.parse("u' = a - u + u**2*v - Du*L@u; v' = b - u**2*v - Dv*L@v")
    >>> answer = rd.dispersion(s, {"a": 0.1, "b": 0.9, "Du": 0.05, "Dv": 1})
    >>> answer.kind, [str(band) for band in answer.unstable]
    ('turing', ['(1.4792, 2]'])
    >>> rd.dispersion("u' = -L@u + c*B@u where B antisymmetric", {"c": 3}).bound.value
    0.0
    """
    if any(name in system.letters for name in system.operators.names):
        return joint_dispersion(system, values, state, operator, operators, norms, _end(to))
    if operators or norms:
        raise InvalidArgument(
            f"{system.text} has no operators but A; drop {', '.join({**(operators or {}), **(norms or {})})}"
        )
    kinetics = system_kinetics(system).at(values)
    check_degrees(kinetics, operator)
    spectrum = None if operator is None else mode_spectrum(operator)
    return dispersion_of(kinetics, state, spectrum, to)


def dispersion_of(
    kinetics: Kinetics,
    state: int | Mapping[str, Any] | SteadyState = 0,
    spectrum: ModeSpectrum | None = None,
    to: Any = END,
) -> Dispersion:
    """The dispersion relation of kinetics with numbers as coefficients."""
    end = _end(to)
    steady = _steady(kinetics, state)
    assumes = kinetics.modes_assume if steady is None else steady.assumes
    needs_constants = assumes == kinetics.assumes and assumes != kinetics.modes_assume
    if spectrum is not None and spectrum.keeps_constants is False and needs_constants:
        raise NotApplicable(f"this operator does not keep states constant, since L@1 is not 0; expected {assumes}")
    whole = Linearisation.at(kinetics, steady)
    moved = sp.ImmutableMatrix((whole.matrix - whole.matrix.subs(lam, 0)).applyfunc(lambda x: sp.cancel(x / lam)))
    transport = Linearisation(moved, steady)
    is_complex = spectrum is not None and not spectrum.is_real
    graphs = assumes if is_complex else kinetics.on_real_modes(assumes)
    return Dispersion(kinetics.fields, whole, transport, steady, end, whole.bands(end), graphs, spectrum)


def _end(to: Any) -> sp.Expr:
    end = sp.oo if to in (sp.oo, float("inf")) else exact_number(to, "end of the range")
    if not (end == sp.oo or end.is_Rational) or end <= 0:
        raise InvalidArgument(f"expected a positive number as end of the range of lam, got {to}")
    return end


def _steady(kinetics: Kinetics, state: int | Mapping[str, Any] | SteadyState) -> SteadyState | None:
    if isinstance(state, SteadyState):
        return state
    return None if kinetics.is_linear else state_at(kinetics, state)


# ---------------------------------------------------------------------- figure

POINTS = 401
#: Blue, vermilion, green and grey of Okabe and Ito's palette.
CURVE, BAND, MODE, OTHER = "#0072B2", "#D55E00", "#009E73", "0.6"
#: How far an unbounded range is drawn, as a multiple of the last band, and how far without bands.
BEYOND, WITHOUT_BANDS = 1.5, 2.0
#: The margin around what is drawn, as a part of its size.
EDGE = 0.02
#: The longest text of a steady state in a title.
WIDTH = 44


def dispersion_figure(relations: Sequence[Dispersion]) -> Figure:
    """A column for each relation: the growth above, the frequency below; other eigenvalues of P(lam) are thin lines.

    Raises InvalidArgument where there is nothing to draw.
    """
    from matplotlib.figure import Figure

    if not relations:
        raise InvalidArgument("expected at least one dispersion relation to draw, got none")
    count = len(relations)
    figure = Figure(figsize=(4.2 * count + 0.8, 5.4), layout="constrained")
    panels = figure.subplots(2, count, squeeze=False, sharex="col", sharey="row", height_ratios=[3, 2])
    for (above, below), relation in zip(panels.T, relations, strict=True):
        _draw(above, below, relation)
    panels[0, 0].set_ylabel("growth rate")
    panels[1, 0].set_ylabel("frequency")
    panels[1, 0].set_ylim(*_frequency_range(relations))
    listed = [zip(*panel.get_legend_handles_labels(), strict=True) for panel in panels.flat]
    entries = {label: handle for pairs in listed for handle, label in pairs}
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=len(entries), frameon=False)
    names = dict.fromkeys(", ".join(relation.fields) for relation in relations)
    figure.suptitle(f"Dispersion relation of {' and of '.join(names)}", fontsize=11)
    return figure


def _draw(above: Axes, below: Axes, relation: Dispersion) -> None:
    end = drawn_end(relation)
    grid = np.linspace(0.0, end, POINTS)
    values = relation.linearisation.eigenvalues(grid)
    if values.shape[1] > 1:
        above.plot(grid, values[:, 1:].real, color=OTHER, lw=0.8, label="_others")
    above.plot(grid, values[:, 0].real, color=CURVE, lw=2, label="fastest growing eigenvalue of P(λ)")
    below.plot(grid, np.abs(values[:, 0].imag), color=CURVE, lw=2)
    above.axhline(0, color="0.3", lw=0.8)
    for band in relation.unstable:
        low, high = float(band.lower), end if band.upper == sp.oo else float(band.upper)
        for panel in (above, below):
            panel.axvspan(low, high, color=BAND, alpha=0.15, lw=0, label="growing λ" if panel is above else None)
    if relation.fastest is not None:
        above.plot([relation.fastest.lam], [relation.fastest.growth], "v", color=BAND, ms=7, label="fastest λ")
    if relation.spectrum is not None:
        places = relation.spectrum.eigenvalues
        modes = relation.linearisation.eigenvalues(places)[:, 0]
        label = "modes of the graph" if relation.spectrum.is_real else "modes of the graph, at the real part of λ"
        above.plot(places.real, modes.real, "o", color=MODE, ms=4, mfc="none", label=label)
        below.plot(places.real, np.abs(modes.imag), "o", color=MODE, ms=4, mfc="none")
    above.set_title(f"{_title(relation)}\n{relation.kind}", fontsize=9)
    below.set_xlabel("λ, eigenvalue of L")
    below.set_xlim(-EDGE * end, (1 + EDGE) * end)


def _frequency_range(relations: Sequence[Dispersion]) -> tuple[float, float]:
    """The range from just below zero to just above the largest frequency, or to 1 where nothing oscillates."""
    largest = max(float(row["frequency"]) for row in dispersion_curves(relations))
    top = largest if largest > TOLERANCE else 1.0
    return -2 * EDGE * top, (1 + 4 * EDGE) * top


def drawn_end(relation: Dispersion) -> float:
    """The largest lam that is drawn, which includes all modes of a graph and a bounded range."""
    largest = 0.0 if relation.spectrum is None else relation.spectrum.largest
    if relation.to.is_finite:
        return max(float(relation.to), largest)
    ends = [float(x) for band in relation.unstable for x in (band.lower, band.upper) if x.is_finite]
    return max([largest, *(BEYOND * x for x in ends)]) or WITHOUT_BANDS


def _title(relation: Dispersion) -> str:
    if relation.state is None:
        return "any state: the system is linear"
    text = ", ".join(f"{name} = {float(value):.4g}" for name, value in relation.state.values.items())
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."


def dispersion_curves(relations: Sequence[Dispersion]) -> list[dict[str, Any]]:
    """The numbers of the figure: one row for each lam of the curves and for each mode of a graph."""
    rows = []
    for index, relation in enumerate(relations):
        curve = np.linspace(0.0, drawn_end(relation), POINTS)
        places = [("curve", curve)]
        if relation.spectrum is not None:
            places.append(("mode", relation.spectrum.eigenvalues))
        for part, lams in places:
            leading = relation.linearisation.eigenvalues(lams)[:, 0]
            rows += [
                {"state": index, "part": part, "lam": float(x.real), "lam_imaginary": float(np.imag(x)),
                 "growth": float(value.real), "frequency": float(abs(value.imag))}
                for x, value in zip(lams, leading, strict=True)
            ]  # fmt: skip
    return rows
