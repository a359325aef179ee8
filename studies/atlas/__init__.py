"""The regimes of a system over two coefficients, predicted and measured, with a picture of each."""
