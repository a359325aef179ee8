"""Systems of several fields, with time, noise or further operators: what is proved beside the theory of one equation."""
