"""The systems of the literature, each a scikit-learn estimator."""

from pairloom.systems.fpogd import FPOGD
from pairloom.systems.spam import SPAM

__all__ = ["FPOGD", "SPAM"]
