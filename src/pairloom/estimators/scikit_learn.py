"""The base classes of scikit-learn with types: mypy does not check arguments of classes with untyped bases."""

MYPY = False

if MYPY:  # other type checkers have their own types for scikit-learn
    from typing import Any

    from sklearn.utils import Tags

    class BaseEstimator:
        """The typed methods of an estimator; all others have the type Any."""

        def __getattr__(self, name: str) -> Any: ...
        def __repr__(self, N_CHAR_MAX: int = 700) -> str: ...
        def __sklearn_tags__(self) -> Tags: ...

    class ClassifierMixin:
        """A mixin without typed methods."""

    class RegressorMixin:
        """A mixin without typed methods."""

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "RegressorMixin"]
