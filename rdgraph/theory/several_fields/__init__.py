"""Several fields, time, noise and further operators: what is proved beside the theory of one equation."""
