"""What training needs beside the sparse product: dropout by counters, attention on edges, Adam for ensembles."""
