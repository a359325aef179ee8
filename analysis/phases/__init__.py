"""Phase diagrams over two coefficients: predicted, simulated, with closed-form borders."""
