"""The scikit-learn classifier: `estimator`, what it is given, what it learns from, what it says, its storage."""
