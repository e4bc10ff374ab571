"""The tests themselves: nothing in them is random, and reasons for skipping name what is missing and what to do."""

import re
from pathlib import Path

from hypothesis import settings

from pairloom.base.randomness import fresh_seed

FOLDERS = (Path(__file__).parent, Path(__file__).parent.parent / "reproduction" / "tests")
FILES = sorted(path for folder in FOLDERS for path in folder.glob("*.py"))
OWN = (Path(__file__), Path(__file__).parent / "conftest.py")

RANDOM = re.compile(
    r"default_rng\(\)|RandomState\(\)|SeedSequence\(\)|\bimport random\b|\bRandom\(\)|use_true_random=True"
    r"|urandom|\bsecrets\b|\buuid|max_examples"
)


def test_no_file_draws_without_a_seed():
    found = [(path.name, hit) for path in FILES if path not in OWN for hit in RANDOM.findall(path.read_text())]
    assert found == []


def test_properties_are_tried_on_the_same_examples_in_every_run():
    fixed = settings.get_profile("fixed")
    assert fixed.derandomize
    assert fixed.database is None
    assert fixed.deadline is None
    assert settings.get_current_profile_name() in ("fixed", "soak")


def test_models_without_a_seed_take_one_from_the_name_of_the_test():
    assert [fresh_seed() for _ in range(2)] == [3994410784, 2584511136]


def test_what_is_skipped_says_why():
    """As "what is missing: what to do"."""
    found = 0
    for path in FILES:
        text = path.read_text()
        for call in re.finditer(r"pytest\.(?:mark\.skipif|skip|importorskip)\(", text):
            said = re.search(r'(?:reason=|\.skip\(\s*)"([^"]*)"', text[call.start() : call.start() + 300])
            assert said, f"{path.name}: {text[call.start() : call.end() + 60]}"
            assert ": " in said[1], f"{path.name}: {said[1]}"
            found += 1
    assert found > 5
