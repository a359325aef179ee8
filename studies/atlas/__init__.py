"""The regimes of a system over two coefficients: predicted beside measured, with a picture of each."""
