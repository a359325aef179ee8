"""One form for expressions that are equal: `function_field`, `function_identities`; what cancels in normal forms."""
