"""phi: the space in which the model is linear."""

from pairloom.features.base import FeatureMap
from pairloom.features.fourier import RandomFourier
from pairloom.features.identity import Identity
from pairloom.features.kernels import Gaussian, Kernel

__all__ = ["FeatureMap", "Gaussian", "Identity", "Kernel", "RandomFourier"]
