"""Samplers of equations larger than the enumerated ones: random, TPE or evolution.

The last two are Optuna samplers, which learn from the results of earlier equations; optuna is imported when one is
created. A sample is a term, or none, for each slot of an equation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gread.discovery.term_grammar import Line, Term, TermGrammar
from gread.tuning.ask_tell import import_optuna, open_storage, quiet
from rdgraph.errors import InvalidArgument, MissingDependency, UnknownName

SAMPLERS = RANDOM, TPE, EVOLUTION = ("random", "tpe", "evolution")
#: The name of the study in its storage.
STUDY = "discover"
#: The name of an empty slot.
NONE = ""
#: The number of equations in a generation.
POPULATION = 32


class LineSampler(Protocol):
    """Draws equations, and receives their validation accuracies."""

    def ask(self) -> tuple[int, Line]:
        """The next equation with its number."""

    def tell(self, number: int, value: float | None) -> None:
        """Report the validation accuracy of a drawn equation; None if there is none."""


class RandomLines:
    """Equations of `least` to `most` terms, all equally likely; each depends only on the seed and its number.

    >>> from gread.discovery.term_grammar import find_terms
    >>> first, again = (RandomLines(find_terms("small"), 3, 4, seed=0).ask() for _ in range(2))
    >>> first == again, first[1].size in (3, 4)
    (True, True)
    """

    def __init__(self, grammar: TermGrammar, least: int, most: int, seed: int, begin: int = 0) -> None:
        self.grammar, self.least, self.most, self.seed, self.number = grammar, least, most, seed, begin

    def ask(self) -> tuple[int, Line]:
        rng, terms = np.random.default_rng([self.seed, self.number]), self.grammar.terms
        size = int(rng.integers(self.least, self.most + 1))
        order = [terms[k] for k in rng.permutation(len(terms))]
        line = self.grammar.line(_different(order)[:size])
        self.number += 1
        return self.number - 1, line

    def tell(self, number: int, value: float | None) -> None:
        """Ignore the result: random draws do not depend on it."""


class StudiedLines:
    """Equations drawn by an Optuna sampler, stored in a journal; those without a result are returned again.

    Args:
        grammar: The terms.
        most: The most terms of an equation.
        sampler: tpe or evolution.
        seed: The random seed; a draw depends on it, its number and the results reported before.
        journal: The journal file; None keeps the trials in memory.

    Raises:
        MissingDependency: Without optuna.
        UnknownName: For another sampler.

    >>> from gread.discovery.term_grammar import find_terms
    >>> sampler = StudiedLines(find_terms("small"), 4, "tpe", seed=0)
    >>> number, line = sampler.ask()
    >>> sampler.tell(number, 0.5)
    >>> number, 1 <= line.size <= 4
    (0, True)
    """

    def __init__(self, grammar: TermGrammar, most: int, sampler: str, seed: int, journal: Path | None = None) -> None:
        if sampler not in (TPE, EVOLUTION):
            raise UnknownName("sampler", sampler, SAMPLERS)
        optuna = _optuna()
        self.grammar, self.most, self.seed, self._sampler = grammar, most, seed, sampler
        self._terms = {str(term): term for term in grammar.terms}
        with quiet():
            self._study = optuna.create_study(
                study_name=STUDY, storage=open_storage(journal), direction="maximize", load_if_exists=True
            )
        self._waiting = [t.number for t in self._study.get_trials(deepcopy=False) if not t.state.is_finished()]

    def ask(self) -> tuple[int, Line]:
        optuna = _optuna()
        with quiet():
            if self._waiting:
                number = self._waiting.pop(0)
                trial = optuna.trial.Trial(self._study, self._study.get_trials(deepcopy=False)[number]._trial_id)
            else:
                self._study.sampler = self._make_sampler(len(self._study.get_trials(deepcopy=False)))
                trial = self._study.ask()
            names = [NONE, *self._terms]
            drawn = [trial.suggest_categorical(f"term_{k}", names) for k in range(self.most)]
        chosen = _different([self._terms[name] for name in drawn if name != NONE])
        return trial.number, self.grammar.line(chosen or self.grammar.terms[:1])

    def tell(self, number: int, value: float | None) -> None:
        with quiet():
            state = None if value is not None else _optuna().trial.TrialState.FAIL
            self._study.tell(number, value, state=state, skip_if_finished=True)

    def _make_sampler(self, number: int) -> Any:
        """The sampler of one draw."""
        optuna = _optuna()
        draw_seed = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])
        if self._sampler == TPE:
            return optuna.samplers.TPESampler(seed=draw_seed, constant_liar=True)
        return optuna.samplers.NSGAIISampler(seed=draw_seed, population_size=POPULATION)


def _optuna() -> Any:
    try:
        return import_optuna()
    except MissingDependency:
        raise MissingDependency(
            "drawing equations by tpe or evolution needs optuna: pip install 'rdgraph[search]', choose the sampler "
            "random, or lower the budget to the number of enumerated equations"
        ) from None


def make_line_sampler(
    name: str, grammar: TermGrammar, least: int, most: int, seed: int, journal: Path | None, begin: int
) -> LineSampler:
    """The sampler of that name, for equations of `least` to `most` terms; `begin` is the number of the first draw.

    Raises:
        InvalidArgument: If no equation is larger than the enumerated ones.
        UnknownName: For an unknown sampler.
    """
    if name not in SAMPLERS:
        raise UnknownName("sampler", name, SAMPLERS)
    if least > most:
        raise InvalidArgument(
            f"expected names for more than {least - 1} coefficients, to draw larger equations, got "
            f"{len(grammar.names)} in {grammar.name}; add names, or lower the budget"
        )
    if name == RANDOM:
        return RandomLines(grammar, least, most, seed, begin)
    return StudiedLines(grammar, most, name, seed, journal)


def _different(terms: list[Term]) -> list[Term]:
    """The terms with different bodies, the first of each."""
    return list({term.body: term for term in reversed(terms)}.values())[::-1]
