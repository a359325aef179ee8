"""Training: `ensemble` many networks as one program, `trainer`, `planner`, `checkpoint`."""
