"""The systems of the literature, each a scikit-learn estimator."""

from pairloom.systems.fpogd import FPOGD

__all__ = ["FPOGD"]
