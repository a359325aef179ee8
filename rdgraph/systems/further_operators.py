"""`FurtherOperators`: the operators of a system besides A, each on a separate set of edges, and their facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rdgraph.errors import LanguageError
from rdgraph.language.reader import check_new_name

#: Declarations of an operator: `operator` states nothing, `stochastic` that rows sum to 1 and entries are >= 0,
#: `signed` that entries may be negative, the default unless `stochastic` is declared.
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
        """From words by name of the operator: a sequence of words, or one text with spaces."""
        facts_by_name = {}
        for name, given in words.items():
            check_new_name(name)
            given_words = tuple(given.split() if isinstance(given, str) else given)
            unknown = [word for word in given_words if word not in OPERATOR_WORDS]
            if unknown or not given_words:
                raise LanguageError(
                    f"{name} {' '.join(map(str, given_words))}", len(name) + 1,
                    expected=f"one of {', '.join(OPERATOR_WORDS)}",
                    got=repr(unknown[0]) if unknown else "nothing",
                    remedy=f"declare what is known, as in {name} antisymmetric",
                )  # fmt: skip
            for one, other in EXCLUSIVE_WORDS:
                if one in given_words and other in given_words:
                    raise LanguageError(
                        f"{name} {' '.join(given_words)}", 0, expected=f"{name} to be {one} or {other}", got="both",
                        remedy="drop one of them",
                    )  # fmt: skip
            facts = tuple(word for word in OPERATOR_WORDS if word in given_words and word != "operator")
            facts_by_name[name] = facts or ("operator",)
        return cls(tuple(sorted(facts_by_name.items())))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.entries)

    def facts(self, name: str) -> tuple[str, ...]:
        """The facts declared of an operator."""
        return dict(self.entries)[name]

    def about(self, letters: Iterable[str]) -> FurtherOperators:
        """The declared operators among the given names."""
        wanted = set(letters)
        return FurtherOperators(tuple(entry for entry in self.entries if entry[0] in wanted))

    def joined(self, other: FurtherOperators) -> FurtherOperators:
        """The operators of both declarations; where both declare an operator, `other` counts."""
        return FurtherOperators(tuple(sorted({**dict(self.entries), **dict(other.entries)}.items())))

    def texts(self) -> list[str]:
        """The declarations of the operators, as written after `where`."""
        return [f"{name} {' '.join(words)}" for name, words in self.entries]
