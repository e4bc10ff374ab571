"""Configuration files of the paper's experiments."""

from dataclasses import dataclass

import pytest

from reproduction import config


@dataclass(frozen=True)
class Part:
    name: str
    sizes: tuple[int, ...]
    fixed: dict[str, float]


@dataclass(frozen=True)
class Settings:
    seed: int
    etas: tuple[float, ...]
    parts: tuple[Part, ...] = ()
    one: Part | None = None
    grid: tuple[tuple[int, ...], ...] = ()


FULL = """
seed = 3
etas = [0.5, 0.25]
grid = [[1, 2], [3]]

[[parts]]
name = "a"
sizes = [1, 2]
fixed = {d = 8}

[quick]
etas = [0.5]
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "FOLDER", tmp_path)
    return lambda text: (tmp_path / "toy.toml").write_text(text)


def test_values_come_as_the_dataclass_says(write):
    write(FULL)
    part = Part("a", (1, 2), {"d": 8})
    assert config.read("toy", Settings, quick=False) == Settings(3, (0.5, 0.25), (part,), grid=((1, 2), (3,)))


def test_quick_takes_the_place_of_single_keys(write):
    write(FULL)
    assert config.read("toy", Settings, quick=True).etas == (0.5,)
    assert config.read("toy", Settings, quick=True).seed == 3


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = 1\netas = []\nsede = 2", r"configs/toy\.toml: unknown sede; there are seed, etas"),
        ("seed = 1\netas = []\n[quick]\neta = 2", r"configs/toy\.toml, \[quick\]: unknown eta;"),
        ("seed = 1", r"configs/toy\.toml: missing etas"),
        ("seed = 1\netas = []\n[[parts]]\nname = 'a'\nsize = 1", r"toy\.toml, parts: unknown size; there are name"),
        ("seed = 1\netas = []\n[[parts]]\nname = 'a'", r"toy\.toml, parts: missing sizes, fixed"),
    ],
)
def test_an_error_names_the_file_and_the_key(write, text, message, quick):
    write(text)
    with pytest.raises(ValueError, match=message):
        config.read("toy", Settings, quick)
