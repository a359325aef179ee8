"""Records by name: functions of the language, learned functions, methods of integration, normalisations of graphs.

learned:      learned, forget_learned, LearnedFunction, LearnedValues
methods:      Tableau, make_tableau
registration: unregister_function, unregister_method, unregister_normalisation
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from rdgraph.language.reader import forget_learned as forget_learned
    from rdgraph.language.reader import learned as learned
    from rdgraph.theory.equality.function_registration import unregister_function as unregister_function
    from rdgraph.vocabulary.learned_functions import LearnedFunction as LearnedFunction
    from rdgraph.vocabulary.learned_functions import LearnedValues as LearnedValues
    from rdgraph.vocabulary.methods import Tableau as Tableau
    from rdgraph.vocabulary.methods import make_tableau as make_tableau
    from rdgraph.vocabulary.methods import unregister_method as unregister_method
    from rdgraph.vocabulary.normalisations import unregister_normalisation as unregister_normalisation

__all__, __getattr__, __dir__ = lazy_door(__name__)
