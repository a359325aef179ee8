"""`LineSettings`: the settings of published networks around an equation, beyond those of GREAD."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from gread.settings.gread_settings import LINKS, GreadSettings, read_equation
from gread.settings.state_region import FREE
from rdgraph.errors import InvalidArgument, NotApplicable, UnknownName
from rdgraph.systems.system import System
from rdgraph.vocabulary.normalisations import NORMALISATIONS

#: The parametrisations of the matrices of an equation.
MATRICES = ("free", "symmetric", "dominant", "orthogonal")
#: The meaning of H0 in the equation.
SOURCES = ("start", "detached", "centred")
STARTS = ("torch", "glorot", "fan_out")


@dataclass(frozen=True, kw_only=True)
class LineSettings(GreadSettings):
    """Settings of a network around an equation, with the further parts of published networks.

    Args:
        values: Fixed coefficients, which are not trained, as in "alpha=0, gamma=1".
        starts: Initial parameters of coefficients, before their link, as in "delta=-10, beta=0".
        links: The links of coefficients, as in "a=sigmoid, beta=free"; the others use auto.
        matrices: The parametrisation of matrices such as W. free: every entry a parameter. symmetric: (P + P')/2.
            dominant: the symmetric part of P without its diagonal, with t_i sum_j |W_ij| + r_i on the diagonal (GRAFF).
            orthogonal: U diag(clamp(w, 0, 1)) U' with U kept near orthogonal, initially the identity (CGNN).
        source_term: The meaning of H0 in the equation: start, H(0) itself; detached, H(0) without a gradient; centred,
            H(0) minus its mean over the trusted nodes (GRAND++).
        beside: The normalisation of further operators in the equation, all on the edges of the graph.
        augmented: Whether the second half of the channels starts at zero and is not decoded.
        encoder_relu: Whether a ReLU follows the encoder.
        encoder_start: The initialisation of the encoder: torch, glorot or fan_out, see `BatchedModel.add_linear`.
        step_dropout: Whether entries are dropped at the start and between steps, at the rate `dropout`.
        step_norm: Whether the slope of every channel is standardised over the nodes at every step.

    Raises:
        InvalidArgument: For texts that are not lists of values, and an odd number of channels with `augmented`.
        NotApplicable: For blocks: these networks have one flow.
        UnknownName: For an unknown choice, or a coefficient that is not in the equation.

    >>> str(LineSettings(reaction="-alpha*L@H + beta*H0", values="beta=0.5").system)
    '-alpha*L@H + 0.5*H0'
    """

    #: Operations between steps and initial coefficients are the same for all members.
    mixed: ClassVar[tuple[str, ...]] = ()
    #: Default initial parameters and links of coefficients.
    usual_starts: ClassVar[Mapping[str, float]] = {}
    usual_links: ClassVar[Mapping[str, str]] = {}

    states: str = FREE
    values: str = ""
    starts: str = ""
    links: str = ""
    matrices: str = "free"
    source_term: str = "start"
    beside: str = "none"
    augmented: bool = False
    encoder_relu: bool = False
    encoder_start: str = "torch"
    step_dropout: bool = False
    step_norm: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (
            ("matrices", MATRICES), ("source_term", SOURCES), ("encoder_start", STARTS),
            ("beside", tuple(NORMALISATIONS)),
        ):  # fmt: skip
            self.check_one_of(name, known)
        for name, link in read_pairs("links", self.links).items():
            if link not in LINKS:
                raise UnknownName(f"link of {name}", link, LINKS)
        read_numbers("starts", self.starts), read_numbers("values", self.values)
        if self.is_stacked:
            raise NotApplicable(
                f"{self.model} has one flow, as published: blocks, mixing, residual and norm are settings of gread; "
                "give gread its equation with reaction="
            )
        if self.augmented and (self.hidden % 2 or self.encoder_mlp):
            raise InvalidArgument(
                f"augmented needs an even number of channels and a linear encoder, got hidden={self.hidden} and "
                f"encoder_mlp={self.encoder_mlp}"
            )

    @cached_property
    def system(self) -> System:
        """The equation, with alpha and beta of the declared kinds and the fixed values inserted."""
        system = read_equation(self.reaction, self.alpha, self.beta, has_operators=True)
        values = read_numbers("values", self.values)
        for name in (*values, *read_numbers("starts", self.starts), *read_pairs("links", self.links)):
            if name not in system.coefficients:
                raise UnknownName(f"coefficient of {system.text}", name, system.coefficients)
        return system.replace(**values) if values else system

    @property
    def equation(self) -> Hashable:
        """The settings that determine the equation."""
        return super().equation, self.values, self.starts, self.links

    def link_asked(self, name: str) -> str | None:
        """The link given for a coefficient, None for auto."""
        link = read_pairs("links", self.links).get(name, self.usual_links.get(name, "auto"))
        return None if link == "auto" else link

    def start_asked(self, name: str) -> float | None:
        """The initial parameter given for a coefficient by settings or network, else None."""
        return read_numbers("starts", self.starts).get(name, self.usual_starts.get(name))


def read_pairs(setting: str, text: str) -> dict[str, str]:
    """ "a=1, b=2" by name.

    >>> read_pairs("links", "a=sigmoid, beta=free")
    {'a': 'sigmoid', 'beta': 'free'}
    """
    pairs: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        if not (name.isidentifier() and sign and value) or name in pairs:
            raise InvalidArgument(f"expected {setting} such as 'alpha=0, gamma=1', got {text!r}")
        pairs[name] = value
    return pairs


def read_numbers(setting: str, text: str) -> dict[str, float]:
    """ "a=1, b=2" as numbers by name.

    >>> read_numbers("values", "alpha=0, gamma=1")
    {'alpha': 0.0, 'gamma': 1.0}
    """
    numbers = {}
    for name, value in read_pairs(setting, text).items():
        try:
            numbers[name] = float(value)
        except ValueError:
            raise InvalidArgument(f"expected a number for {name} in {setting}, got {value!r}") from None
    return numbers
