"""When two expressions are equal: `derivations`, `equivalence`, `counterexample`; beside them the `dense_oracle`."""
