"""Methods of integration as data: `tableaux` with their stability, for the symbolic half and the running one."""
