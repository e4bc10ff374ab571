"""Cosines and sines in one pass, against NumPy in higher precision."""

import numpy as np
import pytest

from pairloom.features.waves import FAR, cosines_and_sines

TOLERANCE = {"f4": 1.5e-7, "f8": 3e-15}


def waves(angles: np.ndarray, block: int, offset: np.ndarray | None = None) -> np.ndarray:
    Z = np.empty((len(angles), 2 * angles.shape[1]), angles.dtype)
    cosines_and_sines(angles.copy(), angles[0, :0] if offset is None else offset, block, Z)
    return Z


def expected(angles: np.ndarray, block: int) -> np.ndarray:
    parts = angles.astype(np.longdouble).reshape(len(angles), -1, 1, block)
    both = np.concatenate([np.cos(parts), np.sin(parts)], axis=2)
    return (both.reshape(len(angles), -1) / np.sqrt(angles.shape[1])).astype(float)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("reach", [1e-3, 3.0, 100.0, 300.0])
@pytest.mark.parametrize("block", [60, 12])
def test_values_are_right_to_the_last_digits(dtype, reach, block):
    angles = np.random.default_rng(0).uniform(-reach, reach, size=(50, 60)).astype(dtype)
    angles[0, :5] = 0.0, np.pi / 4, -np.pi / 4, np.pi / 2, -np.pi
    Z = waves(angles, block)
    np.testing.assert_allclose(Z * np.sqrt(60), expected(angles, block) * np.sqrt(60), atol=TOLERANCE[dtype], rtol=0)
    np.testing.assert_allclose(np.square(Z.astype(float)).sum(axis=1), 1.0, atol=3 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_far_angles_are_right_too(dtype):
    angles = np.array([[1.0, 10.0 * FAR[dtype == "f8"], -3e7, 1e12]], dtype)
    np.testing.assert_allclose(waves(angles, 4), expected(angles, 4), atol=TOLERANCE[dtype], rtol=0)


def test_offsets_are_subtracted_first():
    angles, offset = np.linspace(-3, 3, 24).reshape(2, 12), np.linspace(0, 1, 12)
    np.testing.assert_array_equal(waves(angles, 12, offset), waves(angles - offset, 12))


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_row_does_not_depend_on_the_others(dtype):
    angles = np.random.default_rng(1).normal(size=(20, 37)).astype(dtype)
    angles[3] *= 1e9
    together = waves(angles, 37)
    for i in range(20):
        np.testing.assert_array_equal(waves(angles[i : i + 1], 37)[0], together[i])
