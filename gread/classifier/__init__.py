"""The scikit-learn classifiers: `estimators`, `inputs` they take, `sample` they learn from, `prediction` and
storage."""
