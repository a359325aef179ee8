"""What a network has to be better than: answers from the training labels, with the graph or without it."""
