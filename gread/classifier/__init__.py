"""The scikit-learn classifiers: `estimators`, their `inputs`, the training `sample`, `prediction` and storage."""
