"""Open pages in a browser."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next((found for name in NAMES if (found := shutil.which(name))), None)


def opened(page: Path, script: str, width: int, folder: Path) -> dict:
    """Open a page in a browser of some width, and return the result of a script; fail on console errors."""
    if BROWSER is None:
        pytest.skip("no Chromium found (chromium, chromium-browser or google-chrome): `make browser` installs Debian's")
    copy = folder / "copy.html"
    tail = f"<script>document.body.dataset.answer = JSON.stringify((() => {{{script}}})())</script></body>"
    copy.write_text(page.read_text(encoding="utf-8").replace("</body>", tail), encoding="utf-8")
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr",
        "--v=0", f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900", "--dump-dom", copy.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr, done.stderr
    assert "Uncaught" not in done.stderr, done.stderr
    answer = re.search(r'data-answer="([^"]*)"', done.stdout)
    assert answer, done.stdout[-2000:]
    return json.loads(answer[1].replace("&quot;", '"').replace("&amp;", "&"))
