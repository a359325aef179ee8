"""The classifier in the manner of scikit-learn: `estimator`, its inputs, its storage."""
