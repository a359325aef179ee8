"""States of trained networks over the time of the equation, in one map for all times."""
