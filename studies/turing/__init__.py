"""Turing patterns on graphs, predicted and simulated."""
