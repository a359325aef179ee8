"""The claims as Coq theorems: generated files, their check by coqc, and the record of what was checked."""
