"""What layers are made of, for all members of a batch at once: norms, jumping knowledge, small matrices, positions."""
