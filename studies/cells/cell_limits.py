"""What the settings that studies of trainings share may be."""

from __future__ import annotations

from studies.cells.nine_sets import BORROWS, REACTIONS, SETS
from studies.runs.setting_limits import Limit

#: A number of which there is at least one, and one that is 0 where the published one is meant.
COUNT, PUBLISHED = Limit(least=1), Limit(least=0)
#: Lists of data sets and reactions with published settings, and the same where there may be none.
NAMED_SETS = Limit(known=(*SETS, *BORROWS), what="data set with published settings")
NAMED_REACTIONS = Limit(known=REACTIONS, what="reaction of the paper")
ANY_SETS = Limit(known=NAMED_SETS.known, what=NAMED_SETS.what, some=False)
ANY_REACTIONS = Limit(known=REACTIONS, what=NAMED_REACTIONS.what, some=False)
#: Names of networks, which are looked up where they are used; there may be none.
ANY_MODELS = Limit(some=False)


def cell_limits(**more: Limit) -> dict[str, Limit]:
    """The limits of sets, reactions, splits, seeds, epochs and channels, and further or other ones.

    >>> sorted(cell_limits(times=Limit(above=0.0)))
    ['epochs', 'hidden', 'reactions', 'seeds', 'sets', 'splits', 'times']
    """
    shared = {"sets": NAMED_SETS, "reactions": NAMED_REACTIONS, "splits": COUNT, "seeds": COUNT}
    return {**shared, "epochs": PUBLISHED, "hidden": PUBLISHED, **more}
