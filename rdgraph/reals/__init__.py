"""Answers about real numbers: `judge` for what is polynomial, `enclosure` for what is not, `budget` the effort
spent."""
