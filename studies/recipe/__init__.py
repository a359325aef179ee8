"""How much of an accuracy is the equation, and how much the recipe around it: residuals, norms, matrices, tuning."""
