"""Turing patterns on graphs: predicted unstable modes beside simulated ones."""
