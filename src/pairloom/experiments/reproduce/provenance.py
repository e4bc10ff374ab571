"""Where results come from: the commit, the versions, the machine."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pairloom

PACKAGES = ("numpy", "numba", "scikit-learn", "scipy", "lightgbm")


def versions() -> str:
    """Of Python and of all that computes."""
    found = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def machine() -> str:
    """The processor, and how many there are."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else cpu


def commit() -> str:
    """Of the checkout that this package is run from, with a mark if it was changed since; else the release."""
    try:
        _git("ls-files", "--error-unmatch", "__init__.py")  # not the repository around an installed package
        head = _git("rev-parse", "HEAD")
        changed = _git("status", "--porcelain", "--", ".")
    except (OSError, subprocess.CalledProcessError):
        return f"pairloom {pairloom.__version__}"
    return f"{head[:12]}{' with changes' if changed else ''}"


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=Path(pairloom.__file__).parent, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
