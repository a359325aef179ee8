"""When two expressions are equal: `derivations`, `equivalence`, `counterexample`, and the `dense_oracle` for tests."""
