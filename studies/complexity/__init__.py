"""What an evaluation of a reaction costs: products counted, seconds measured, beside the statements of the appendix."""
