from pathlib import Path


def write(folder: Path) -> Path:
    return folder / "index.html"
