"""Search for equations: `term_grammar` enumerates, `behaviours` and `line_safety` select, `discovering` trains them."""
