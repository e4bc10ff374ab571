"""The tests of the reproduction share the settings of the other tests: nothing in them is random."""

from tests.conftest import data_folder

__all__ = ["data_folder"]
