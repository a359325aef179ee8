"""`Estimator`: what scikit-learn asks of an estimator, without asking for scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, Self

from rdgraph.errors import NotApplicable, UnknownName


class Estimator:
    """Arguments by name; a subclass keeps those of its `__init__` under their own names and sets `networks_` in fit."""

    features: Any

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return {p.name: p.default for p in parameters}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments by name."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **values: Any) -> Self:
        """Change arguments; an unknown name is an error."""
        known = self._defaults()
        for name, value in values.items():
            if name not in known:
                raise UnknownName(f"argument of {type(self).__name__}", name, known)
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = []
        for name, default in self._defaults().items():
            value = getattr(self, name)
            if hasattr(value, "shape") and value.shape:
                changed.append(f"{name}=<{' x '.join(map(str, value.shape))}>")
            elif type(value) is not type(default) or value != default:
                changed.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier", target_tags=TargetTags(required=True), transformer_tags=None,
            regressor_tags=None, classifier_tags=ClassifierTags(),
            input_tags=InputTags(one_d_array=self.features is not None, sparse=True),
        )  # fmt: skip

    def __sklearn_is_fitted__(self) -> bool:
        return "networks_" in vars(self)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise not_fitted_error()("expected a fitted classifier, got one without data; call fit first")


def not_fitted_error() -> type[Exception]:
    """Scikit-learn's where it is installed, else ours."""
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return NotApplicable
    return NotFittedError  # type: ignore[no-any-return]
