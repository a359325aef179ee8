"""`EquationSettings`: a network around an equation, in a batch with networks around other equations."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields
from functools import cached_property

import sympy as sp

from gread.settings.gread_settings import GreadSettings, exponential_terms, step_count
from rdgraph.language.tree import Call, Kind
from rdgraph.systems.equation_terms import terms_of_system
from rdgraph.systems.system import System
from rdgraph.vocabulary.functions import FUNCTIONS
from rdgraph.vocabulary.methods import FIXED
from rdgraph.vocabulary.normalisations import find_normalisation

#: The assumed size of a coefficient in estimates of the length of a flow: the sigmoid of zero.
RECKONED = 0.5
#: Equations with at most one step more than this share a batch.
FEW_STEPS = 7


@dataclass(frozen=True, kw_only=True)
class EquationSettings(GreadSettings):
    """The settings of GREAD, with room for the coefficients of other equations.

    Args:
        slots: The most coefficients of an equation of the batch.

    >>> first, second = (
    ...     EquationSettings(reaction=text, adjacency="original", method="exact", slots=2)
    ...     for text in ("-alpha*L@H + gamma*H0", "-alpha*A@H + gamma*L@H0")
    ... )
    >>> first.shape == second.shape
    True
    """

    slots: int = 0

    @property
    def shape(self) -> Hashable:
        """What equations of a batch share: fixed settings, integration, and whether coefficients vary by channel."""
        apart = (*self.free, *self.mixed, "reaction")
        settings = tuple((f.name, getattr(self, f.name)) for f in fields(self) if f.name not in apart)
        return "equations", settings, self.integration, self.is_wide

    @cached_property
    def integration(self) -> tuple[str, ...]:
        """How H(T) is computed: by a polynomial of A applied to H0, one applied to f(H0), or by steps of a method.

        All members of a batch take as many steps as the longest, so an equation with a thousand steps gets a separate
        batch.
        """
        if not self.is_polynomial:
            most = 1 << max(FEW_STEPS, self.steps - 1).bit_length()
            return "steps", self.method, f"up to {most}"
        if self.is_forced:
            return ("increment",)
        return ("filter", "source") if self.system.structure.source else ("filter",)

    @property
    def steps(self) -> int:
        """The number of steps of a method with fixed steps."""
        return step_count(self.method, self.time, self.step)

    @cached_property
    def is_forced(self) -> bool:
        """Whether the equation has terms other than polynomials of A applied to H and H0."""
        return self.system.structure.constant != 0 or self.system.structure.coupled != 0

    @property
    def is_wide(self) -> bool:
        """Whether some coefficient has one value for each channel."""
        return Kind.CHANNEL in self.system.coefficients.values()

    @cached_property
    def effort(self) -> int:
        """The approximate number of products with A; for a polynomial, what its initial coefficients need."""
        if self.method in FIXED or not self.is_polynomial:
            return super().effort
        return exponential_terms(self.time * _size(self.system))


def shares_batches(settings: GreadSettings) -> bool:
    """Whether the network of an equation, whose method is known, can share a batch with those of other equations.

    This requires one block, one equation of first order on a normalised A that does not follow the state, scalar or
    channel coefficients, functions without parameters, and a flow that is a polynomial of A or has fixed steps.

    >>> texts = ("BS", "-alpha*L@H + beta*tanh(H)", "-alpha*L@H + M*H0", "H'' = -alpha*L@H")
    >>> [shares_batches(GreadSettings(reaction=text, method="euler", step=0.5)) for text in texts]
    [True, True, False, False]
    """
    system = settings.system
    if type(settings) not in (GreadSettings, EquationSettings) or settings.is_stacked:
        return False
    if not system.is_single or settings.adjacency == "live":
        return False
    normalisation = settings.normalisation if settings.adjacency == "original" else "row"
    record = find_normalisation(normalisation)
    if record.has_degrees or record.norm is None:
        return False
    excluded = {Kind.MATRIX, Kind.NODE} & set(system.letters.values())
    called = {call.function for call in system.expression.atoms(Call)}
    return not excluded and called <= set(FUNCTIONS) and (settings.is_polynomial or settings.method in FIXED)


def _size(system: System) -> float:
    """sum |p_k| over the powers of A, for the initial coefficients."""
    total = 0.0
    for value in system.structure.generator.values():
        for term in sp.Add.make_args(sp.expand(value)):
            total += abs(float(term.subs(dict.fromkeys(term.free_symbols, sp.Float(RECKONED)))))
    return total


def coefficient_count(system: System) -> int:
    """The number of coefficients of an equation; its terms are read too, so that an unsupported one raises here."""
    terms_of_system(system)
    return len(system.coefficients)
