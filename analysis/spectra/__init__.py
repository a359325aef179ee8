"""Spectra of the Laplacian: eigenvalues, densities, and the gains of integrators measured on eigenvectors."""
