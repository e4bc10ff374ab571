"""From the simple spelling to a feature map, or to a kernel."""

from typing import Any

from pairloom.checks import check_choice
from pairloom.features.base import FeatureMap
from pairloom.features.exact import Linear
from pairloom.features.fourier import RandomFourier
from pairloom.features.identity import Identity
from pairloom.features.kernels import KERNELS, Kernel
from pairloom.features.scaling import Scaling


def linear_map(features: FeatureMap | None, scale: Scaling) -> FeatureMap:
    """``features``, or the scaled input itself."""
    return feature_map(features, "linear", None, 0, scale)


def feature_map(features: FeatureMap | None, kernel: str, gamma: Any, n_components: int, scale: Scaling) -> FeatureMap:
    """``features``, or the map that the other parameters describe."""
    if features is not None:
        if not isinstance(features, FeatureMap):
            raise ValueError(f"features must be a feature map, such as RandomFourier(512); got {features!r}")
        return features
    check_choice("kernel", kernel, {**KERNELS, "linear": Identity})
    if kernel == "linear":
        return Identity(scale=scale)
    return RandomFourier(n_components, KERNELS[kernel](gamma), scale=scale)


def exact_kernel(kernel: str, gamma: Any) -> Kernel | Linear:
    """The kernel of this name; the linear one has no width."""
    check_choice("kernel", kernel, {**KERNELS, "linear": Linear})
    return Linear() if kernel == "linear" else KERNELS[kernel](gamma)
