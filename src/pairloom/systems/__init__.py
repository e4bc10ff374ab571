"""The systems of the literature, each a scikit-learn estimator."""

from pairloom.systems.exact_auc import ExactAUC
from pairloom.systems.fourier_sgd import FourierSGD
from pairloom.systems.fpogd import FPOGD
from pairloom.systems.solam import SOLAM
from pairloom.systems.spam import SPAM

__all__ = ["FPOGD", "SOLAM", "SPAM", "ExactAUC", "FourierSGD"]
