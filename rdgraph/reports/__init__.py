"""Answers brought together: `summary` of one system, `preflight_report` of one run."""
