"""What training needs beside the sparse product: dropout by counters, the softmax of a row, Adam for ensembles."""
