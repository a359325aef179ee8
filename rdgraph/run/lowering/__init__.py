"""From the normal form to torch: `product_plan` the products, `torch_source` the source, `vector_field` what runs."""
