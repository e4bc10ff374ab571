"""The custom parts of CONTRIBUTING.md: the code on that page, executed."""

import os
import re
import tempfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace

PAGE = Path(__file__).parent.parent / "CONTRIBUTING.md"


@cache
def recipes():
    """Return all names that the page defines; it saves and loads models in a temporary folder."""
    space = {"__name__": "contributing"}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
                exec(compile(block, PAGE.name, "exec"), space)
        finally:
            os.chdir(before)
    return SimpleNamespace(**space)
