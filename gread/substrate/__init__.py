"""What layers are made of, for all members of a batch at once: attention on edges, norms, jumping knowledge."""
