"""Energies in trained networks of many layers."""
