"""Measures of a state on a graph: energies, angles, ranks, separation of classes.

energies: laplacian_energy, normalised_energy, rayleigh
angles:   mad, kernel_distance
ranks:    effective_rank, numerical_rank
classes:  fisher_ratio
records:  find_measure, unregister_measure, make_measures
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from analysis.measures.class_separation import fisher_ratio as fisher_ratio
    from analysis.measures.distances import kernel_distance as kernel_distance
    from analysis.measures.distances import mad as mad
    from analysis.measures.energies import laplacian_energy as laplacian_energy
    from analysis.measures.energies import normalised_energy as normalised_energy
    from analysis.measures.energies import rayleigh as rayleigh
    from analysis.measures.measure_records import find_measure as find_measure
    from analysis.measures.measure_records import make_measures as make_measures
    from analysis.measures.measure_records import unregister_measure as unregister_measure
    from analysis.measures.ranks import effective_rank as effective_rank
    from analysis.measures.ranks import numerical_rank as numerical_rank

__all__, __getattr__, __dir__ = lazy_door(__name__)
