"""How accuracy changes with the end time and the step."""
