"""phi: the space in which the model is linear."""

from pairloom.features.base import FeatureMap
from pairloom.features.choice import exact_kernel, feature_map, linear_map
from pairloom.features.exact import Linear
from pairloom.features.forest import Forest
from pairloom.features.fourier import RandomFourier
from pairloom.features.growing import Growing
from pairloom.features.identity import Identity
from pairloom.features.kernels import KERNELS, Cauchy, Gaussian, Kernel, Laplace, Matern32, Matern52
from pairloom.features.landmarks import Landmarks
from pairloom.features.nystroem import Nystroem
from pairloom.features.orthogonal import OrthogonalFourier
from pairloom.features.whitened import Whitened

__all__ = [
    "KERNELS",
    "Cauchy",
    "FeatureMap",
    "Forest",
    "Gaussian",
    "Growing",
    "Identity",
    "Kernel",
    "Landmarks",
    "Laplace",
    "Linear",
    "Matern32",
    "Matern52",
    "Nystroem",
    "OrthogonalFourier",
    "RandomFourier",
    "Whitened",
    "exact_kernel",
    "feature_map",
    "linear_map",
]
