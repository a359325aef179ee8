"""The explorer: one page without a network, on which an equation is turned, watched and judged."""
