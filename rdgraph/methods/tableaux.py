"""The tableaux of the registered methods by name, for everything that asks about stability and gains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rdgraph.errors import NotApplicable, UnknownName
from rdgraph.methods.registry import records
from rdgraph.methods.runge_kutta import Tableau


class Tableaux(Mapping[str, Tableau]):
    """The tableaux by name.

    >>> methods["rk4"].stability
    z**4/24 + z**3/6 + z**2/2 + z + 1
    """

    def __getitem__(self, name: str) -> Tableau:
        found = records[name].tableau
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name, record in records.items() if record.tableau is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


methods = Tableaux()


def tableau(name: str | Tableau) -> Tableau:
    """A method by name, or one's own tableau as it is; unknown names get the closest one offered."""
    if isinstance(name, Tableau):
        return name
    if name in records and records[name].step_function is not None:
        raise NotApplicable(
            f"expected a method with a tableau, got {name}, a step function without one; it has no gains"
        )
    if name not in methods:
        raise UnknownName("method", name, methods)
    return methods[name]
