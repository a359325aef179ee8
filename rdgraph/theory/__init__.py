"""What is proved of a system: filters, Lipschitz constants, existence, boxes, steps, closed flows, conservation.

filters:      symbol, response, growth_rate, fastest_frequency
regularity:   lipschitz_local, one_sided
flows:        reaction_flow, euler_map, choose_method, MethodChoice
conservation: conserved, energy_law
equality:     Equivalence, Derivation, derivation, read_expression
coefficients: identify
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from rdgraph.language.formula_reader import read_expression as read_expression
    from rdgraph.theory.conservation import conserved as conserved
    from rdgraph.theory.conservation import energy_law as energy_law
    from rdgraph.theory.equality.derivations import Derivation as Derivation
    from rdgraph.theory.equality.derivations import derivation as derivation
    from rdgraph.theory.equality.derivations import euler_map as euler_map
    from rdgraph.theory.equality.equality_proof import Equivalence as Equivalence
    from rdgraph.theory.filters import fastest_frequency as fastest_frequency
    from rdgraph.theory.filters import growth_rate as growth_rate
    from rdgraph.theory.filters import response as response
    from rdgraph.theory.filters import symbol as symbol
    from rdgraph.theory.identifiability.question import identify as identify
    from rdgraph.theory.lipschitz import lipschitz_local as lipschitz_local
    from rdgraph.theory.lipschitz import one_sided as one_sided
    from rdgraph.theory.method_choice import MethodChoice as MethodChoice
    from rdgraph.theory.method_choice import choose_method as choose_method
    from rdgraph.theory.reaction_flows import reaction_flow as reaction_flow

__all__, __getattr__, __dir__ = lazy_door(__name__)
