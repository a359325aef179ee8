"""The synthetic Cora: reactions and other networks from heterophily to homophily."""
