"""Decisions about real numbers: one judge for what is polynomial, enclosures for what is not, and a clock over both."""
