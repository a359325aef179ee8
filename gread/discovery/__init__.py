"""Equations that are searched for."""
