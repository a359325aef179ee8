"""The scikit-learn classifiers: `estimators`, their inputs and the training `sample`, `prediction` and storage."""
