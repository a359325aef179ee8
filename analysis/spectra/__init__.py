"""Spectra of the Laplacian: eigenvalues, densities, gains of integrators on eigenvectors, and Jacobians of flows.

spectra:   Spectrum, spectral_gap, Density
gains:     Gains, gains_figure, ResponseCurve, curve_rows
jacobians: Sensitivity, sensitivity
"""

from typing import TYPE_CHECKING

from rdgraph.lazy_door import lazy_door

if TYPE_CHECKING:
    from analysis.gain_curves import ResponseCurve as ResponseCurve
    from analysis.gain_curves import curve_rows as curve_rows
    from analysis.spectra.density import Density as Density
    from analysis.spectra.eigenvalues import Spectrum as Spectrum
    from analysis.spectra.eigenvalues import spectral_gap as spectral_gap
    from analysis.spectra.jacobians import Sensitivity as Sensitivity
    from analysis.spectra.jacobians import sensitivity as sensitivity
    from analysis.spectra.mode_gains import Gains as Gains
    from analysis.spectra.mode_gains import gains_figure as gains_figure

__all__, __getattr__, __dir__ = lazy_door(__name__)
