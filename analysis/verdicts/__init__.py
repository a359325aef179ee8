"""Verdicts: asymptotics of modes, proven statements, and whether a system oversmooths."""
