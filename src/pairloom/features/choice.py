"""From the simple spelling to a feature map, or to a kernel."""

from typing import Any, Literal

from pairloom.base.checks import check_choice
from pairloom.features.base import FeatureMap
from pairloom.features.exact import Linear
from pairloom.features.fourier import RandomFourier
from pairloom.features.identity import Identity
from pairloom.features.kernels import KERNELS, Gaussian, Kernel
from pairloom.features.scaling import Scaling

KernelName = Literal["gaussian", "laplace", "cauchy", "matern32", "matern52", "linear"]


def linear_map(features: FeatureMap | None, scale: Scaling) -> FeatureMap:
    """``features``, or the scaled input itself."""
    return chosen_map(features, Identity(scale=scale))


def feature_map(features: FeatureMap | None, kernel: str, gamma: Any, n_components: int, scale: Scaling) -> FeatureMap:
    """``features``, or the map that the other parameters describe; these make sense even where they are not used."""
    check_choice("kernel", kernel, {**KERNELS, "linear": Identity})
    described = RandomFourier(n_components, KERNELS.get(kernel, Gaussian)(gamma), scale=scale)
    return chosen_map(features, Identity(scale=scale) if kernel == "linear" else described)


def chosen_map(features: FeatureMap | None, described: FeatureMap) -> FeatureMap:
    """``features``, if there are any; ValueError unless they are a feature map."""
    if features is not None and not isinstance(features, FeatureMap):
        raise ValueError(f"features must be a feature map, such as RandomFourier(512), or None; got {features!r}")
    return described if features is None else features


def exact_kernel(kernel: str, gamma: Any) -> Kernel | Linear:
    """The kernel of this name; the linear one has no width."""
    check_choice("kernel", kernel, {**KERNELS, "linear": Linear})
    described = KERNELS.get(kernel, Gaussian)(gamma)
    return Linear() if kernel == "linear" else described
