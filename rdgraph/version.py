"""The version of rdgraph: the one place where it is written; the build reads it here."""

__version__ = "0.1.0"
