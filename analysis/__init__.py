"""analysis: measurements of systems and trajectories on graphs, predictions next to them, and figures.

measures: Measure, register_measure, measure_all, dirichlet_energy
spectra:  spectrum, spectral_density, empirical_gains
gains:    gain_at, response_curves, response_figure
verdicts: oversmoothing
phases:   phase_diagram, phase_figure, reaction_diagram, reaction_figure
figures:  save_figure
modules:  measures, spectra, phases, verdicts

Further names are in the modules: `analysis.measures.mad`, `analysis.spectra.spectral_gap`. Every name is loaded when it
is first used. A system is given as a `System`, a name of the catalogue, or a line of text.
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from analysis import measures as measures
    from analysis import phases as phases
    from analysis import spectra as spectra
    from analysis import verdicts as verdicts
    from analysis.figure_files import save_figure as save_figure
    from analysis.gain_curves import gain_at as gain_at
    from analysis.gain_curves import response_curves as response_curves
    from analysis.gain_curves import response_figure as response_figure
    from analysis.measures.energies import dirichlet_energy as dirichlet_energy
    from analysis.measures.measure_records import Measure as Measure
    from analysis.measures.measure_records import measure_all as measure_all
    from analysis.measures.measure_records import register_measure as register_measure
    from analysis.phases.diagram import phase_diagram as phase_diagram
    from analysis.phases.picture import phase_figure as phase_figure
    from analysis.phases.reaction_grid import reaction_diagram as reaction_diagram
    from analysis.phases.reaction_grid import reaction_figure as reaction_figure
    from analysis.spectra.density import spectral_density as spectral_density
    from analysis.spectra.eigenvalues import spectrum as spectrum
    from analysis.spectra.mode_gains import empirical_gains as empirical_gains
    from analysis.verdicts.verdict import oversmoothing as oversmoothing

__all__, __getattr__, __dir__ = lazy_door(__name__)
