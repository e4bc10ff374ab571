"""Exported models in float64: every estimator, map and kernel of ``test_onnx.py``."""

import pytest

from tests import test_onnx as single
from tests.generic import forms

pytestmark = single.pytestmark


@pytest.mark.parametrize("form", sorted(forms()))
def test_every_estimator(form, tmp_path):
    single.check_form(form, "float64", tmp_path)


@pytest.mark.parametrize("features", single.MAPS, ids=str)
def test_every_map(features, tmp_path):
    single.check_map(features, "float64", tmp_path)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "cauchy", "matern32", "matern52", "linear"])
def test_every_kernel_at_kept_examples(kernel, tmp_path):
    single.check_kernel(kernel, "float64", tmp_path)


@pytest.mark.parametrize("model", single.FIVE, ids=lambda model: type(model).__name__)
def test_five_classes(model, tmp_path):
    single.check_classes(model.set_params(dtype="float64", pos_label=None), tmp_path)
