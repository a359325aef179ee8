"""Equations nobody wrote: `term_grammar` what is tried, `behaviours` and `line_safety` what is left, `discovering`."""
