"""The normal form that is proved, lowered and trained, and `word_rules` for relations between operators."""
