"""analysis: measurements of systems and trajectories on graphs, predictions beside them, and figures.

measures:  Measure, register_measure, unregister_measure, find_measure, make_measures, measure_all, dirichlet_energy,
           laplacian_energy, normalised_energy, rayleigh, mad, kernel_distance, effective_rank, numerical_rank,
           fisher_ratio
spectra:   spectrum, Spectrum, spectral_gap, spectral_density, Density, empirical_gains, Gains, gains_figure
responses: gain_at, response_curves, ResponseCurve, response_figure, curve_rows
verdicts:  oversmoothing, OversmoothingVerdict, EnergyFate, EnergyStatement
phases:    phase_diagram, PhaseDiagram, phase_figure, stability_borders, roughness_borders, Border,
           reaction_diagram, ReactionDiagram, reaction_figure
figures:   save_figure

Every name is loaded when it is first asked for. A system is given as a `System`, a name of the catalogue, or a line of
text.
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from analysis.figure_files import save_figure
    from analysis.gain_curves import ResponseCurve, curve_rows, gain_at, response_curves, response_figure
    from analysis.measures.class_separation import fisher_ratio
    from analysis.measures.distances import kernel_distance, mad
    from analysis.measures.energies import dirichlet_energy, laplacian_energy, normalised_energy, rayleigh
    from analysis.measures.measure_records import (
        Measure,
        find_measure,
        make_measures,
        measure_all,
        register_measure,
        unregister_measure,
    )
    from analysis.measures.ranks import effective_rank, numerical_rank
    from analysis.phases.diagram import Border, PhaseDiagram, phase_diagram, roughness_borders, stability_borders
    from analysis.phases.picture import phase_figure
    from analysis.phases.reaction_grid import ReactionDiagram, reaction_diagram, reaction_figure
    from analysis.spectra.density import Density, spectral_density
    from analysis.spectra.eigenvalues import Spectrum, spectral_gap, spectrum
    from analysis.spectra.mode_gains import Gains, empirical_gains, gains_figure
    from analysis.verdicts.energy_fates import EnergyFate
    from analysis.verdicts.statements import EnergyStatement
    from analysis.verdicts.verdict import OversmoothingVerdict, oversmoothing

__all__ = [
    "Border",
    "Density",
    "EnergyFate",
    "EnergyStatement",
    "Gains",
    "Measure",
    "OversmoothingVerdict",
    "PhaseDiagram",
    "ReactionDiagram",
    "ResponseCurve",
    "Spectrum",
    "curve_rows",
    "dirichlet_energy",
    "effective_rank",
    "empirical_gains",
    "find_measure",
    "fisher_ratio",
    "gain_at",
    "gains_figure",
    "kernel_distance",
    "laplacian_energy",
    "mad",
    "make_measures",
    "measure_all",
    "normalised_energy",
    "numerical_rank",
    "oversmoothing",
    "phase_diagram",
    "phase_figure",
    "rayleigh",
    "reaction_diagram",
    "reaction_figure",
    "register_measure",
    "response_curves",
    "response_figure",
    "roughness_borders",
    "save_figure",
    "spectral_density",
    "spectral_gap",
    "spectrum",
    "stability_borders",
    "unregister_measure",
]

#: Where every name comes from; it is loaded when it is first asked for.
_ON_USE = {
    "Border": "analysis.phases.diagram",
    "Density": "analysis.spectra.density",
    "EnergyFate": "analysis.verdicts.energy_fates",
    "EnergyStatement": "analysis.verdicts.statements",
    "Gains": "analysis.spectra.mode_gains",
    "Measure": "analysis.measures.measure_records",
    "OversmoothingVerdict": "analysis.verdicts.verdict",
    "PhaseDiagram": "analysis.phases.diagram",
    "ResponseCurve": "analysis.gain_curves",
    "Spectrum": "analysis.spectra.eigenvalues",
    "curve_rows": "analysis.gain_curves",
    "dirichlet_energy": "analysis.measures.energies",
    "effective_rank": "analysis.measures.ranks",
    "empirical_gains": "analysis.spectra.mode_gains",
    "find_measure": "analysis.measures.measure_records",
    "fisher_ratio": "analysis.measures.class_separation",
    "gain_at": "analysis.gain_curves",
    "gains_figure": "analysis.spectra.mode_gains",
    "kernel_distance": "analysis.measures.distances",
    "laplacian_energy": "analysis.measures.energies",
    "mad": "analysis.measures.distances",
    "make_measures": "analysis.measures.measure_records",
    "measure_all": "analysis.measures.measure_records",
    "normalised_energy": "analysis.measures.energies",
    "numerical_rank": "analysis.measures.ranks",
    "oversmoothing": "analysis.verdicts.verdict",
    "phase_diagram": "analysis.phases.diagram",
    "phase_figure": "analysis.phases.picture",
    "reaction_diagram": "analysis.phases.reaction_grid",
    "reaction_figure": "analysis.phases.reaction_grid",
    "ReactionDiagram": "analysis.phases.reaction_grid",
    "rayleigh": "analysis.measures.energies",
    "register_measure": "analysis.measures.measure_records",
    "response_curves": "analysis.gain_curves",
    "response_figure": "analysis.gain_curves",
    "roughness_borders": "analysis.phases.diagram",
    "save_figure": "analysis.figure_files",
    "spectral_density": "analysis.spectra.density",
    "spectral_gap": "analysis.spectra.eigenvalues",
    "spectrum": "analysis.spectra.eigenvalues",
    "stability_borders": "analysis.phases.diagram",
    "unregister_measure": "analysis.measures.measure_records",
}

__getattr__, __dir__ = lazy_door(__name__, _ON_USE)
