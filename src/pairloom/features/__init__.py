"""Feature maps phi: the spaces in which models are linear."""

from pairloom.features.base import FeatureMap
from pairloom.features.capabilities import GrowingMap, LabelledMap, RacingMap, SparseMap
from pairloom.features.compiled_kernels import Linear
from pairloom.features.compressed import Compressed
from pairloom.features.forest import Forest
from pairloom.features.fourier import OrthogonalFourier, RandomFourier
from pairloom.features.growing import Growing
from pairloom.features.identity import Identity
from pairloom.features.kernels import KERNELS, Cauchy, Gaussian, Kernel, Laplace, Matern32, Matern52
from pairloom.features.landmarks import Landmarks
from pairloom.features.nystroem import Nystroem
from pairloom.features.whitened import Whitened

__all__ = [
    "KERNELS",
    "Cauchy",
    "Compressed",
    "FeatureMap",
    "Forest",
    "Gaussian",
    "Growing",
    "GrowingMap",
    "Identity",
    "Kernel",
    "LabelledMap",
    "Landmarks",
    "Laplace",
    "Linear",
    "Matern32",
    "Matern52",
    "Nystroem",
    "OrthogonalFourier",
    "RacingMap",
    "RandomFourier",
    "SparseMap",
    "Whitened",
]
