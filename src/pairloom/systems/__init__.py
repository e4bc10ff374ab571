"""Published systems for AUC on a stream, each a scikit-learn estimator."""

from pairloom.systems.adadsg import AdaDSG
from pairloom.systems.adaoam import AdaOAM
from pairloom.systems.allpairs import AllPairs
from pairloom.systems.exact_auc import ExactAUC
from pairloom.systems.fourier_sgd import FourierSGD
from pairloom.systems.fpogd import FPOGD
from pairloom.systems.koil import KOIL
from pairloom.systems.oam import OAM
from pairloom.systems.ogd import OGD
from pairloom.systems.olp import OLP
from pairloom.systems.opauc import OPAUC
from pairloom.systems.opera import OPERA
from pairloom.systems.projectronpp import ProjectronPP
from pairloom.systems.solam import SOLAM
from pairloom.systems.spam import SPAM
from pairloom.systems.sparse_kernel_auc import SparseKernelAUC

__all__ = [
    "FPOGD",
    "KOIL",
    "OAM",
    "OGD",
    "OLP",
    "OPAUC",
    "OPERA",
    "SOLAM",
    "SPAM",
    "AdaDSG",
    "AdaOAM",
    "AllPairs",
    "ExactAUC",
    "FourierSGD",
    "ProjectronPP",
    "SparseKernelAUC",
]
