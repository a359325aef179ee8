"""Operators beside A: their letters, and what is known of them. Each has edges of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rdgraph.errors import LanguageError
from rdgraph.language.reader import check_new_name

#: What may be said of an operator: `operator` says nothing, `stochastic` that rows sum to 1 and entries are >= 0,
#: `signed` that entries may be negative, which is taken for granted unless `stochastic` is said.
OPERATOR_WORDS = ("operator", "symmetric", "antisymmetric", "stochastic", "signed")
EXCLUSIVE_WORDS = (("symmetric", "antisymmetric"), ("stochastic", "antisymmetric"), ("stochastic", "signed"))


@dataclass(frozen=True)
class FurtherOperators:
    """The declared operators besides A, and the facts declared of each, such as symmetric.

    >>> print(FurtherOperators.of({"B": "antisymmetric"}).texts())
    ['B antisymmetric']
    """

    entries: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, words: Mapping[str, str | Iterable[str]]) -> FurtherOperators:
        """From words by letter; several words are a sequence, or one text with spaces."""
        found = {}
        for name, given in words.items():
            check_new_name(name)
            said = tuple(given.split() if isinstance(given, str) else given)
            unknown = [word for word in said if word not in OPERATOR_WORDS]
            if unknown or not said:
                raise LanguageError(
                    f"{name} {' '.join(map(str, said))}", len(name) + 1, expected=f"one of {', '.join(OPERATOR_WORDS)}",
                    got=repr(unknown[0]) if unknown else "nothing",
                    remedy=f"say what is known, as in {name} antisymmetric",
                )  # fmt: skip
            for one, other in EXCLUSIVE_WORDS:
                if one in said and other in said:
                    raise LanguageError(
                        f"{name} {' '.join(said)}", 0, expected=f"{name} to be {one} or {other}", got="both",
                        remedy="drop one of them",
                    )  # fmt: skip
            facts = tuple(word for word in OPERATOR_WORDS if word in said and word != "operator")
            found[name] = facts or ("operator",)
        return cls(tuple(sorted(found.items())))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.entries)

    def facts(self, name: str) -> tuple[str, ...]:
        """The facts declared of an operator."""
        return dict(self.entries)[name]

    def about(self, letters: Iterable[str]) -> FurtherOperators:
        """The declared operators among the given letters."""
        wanted = set(letters)
        return FurtherOperators(tuple(entry for entry in self.entries if entry[0] in wanted))

    def joined(self, other: FurtherOperators) -> FurtherOperators:
        """The operators of both declarations; where both declare a letter, `other` counts."""
        return FurtherOperators(tuple(sorted({**dict(self.entries), **dict(other.entries)}.items())))

    def texts(self) -> list[str]:
        """The declarations of the operators, as they follow the word `where`."""
        return [f"{name} {' '.join(words)}" for name, words in self.entries]
