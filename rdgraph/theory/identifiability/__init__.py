"""What a right-hand side reveals of its coefficients: entries, readings, ranks and gauges."""
