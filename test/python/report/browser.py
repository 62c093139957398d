"""Pages in headless Chromium: load one, run a script in it, give back what the script found."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def run_in_browser(page: str, script: str) -> Any:
    """What `script`, the body of a function, returns in the page, as JSON; also fails on errors of the page itself.

    Where Chromium is missing the test is skipped, except in CI (SMARTMEM_REQUIRE_CHROMIUM).
    """
    if CHROMIUM is None:
        if os.environ.get("SMARTMEM_REQUIRE_CHROMIUM"):
            pytest.fail("Chromium is missing: make system-packages")
        pytest.skip("needs Chromium: make system-packages")
    catch = "<script>window.problems = []; addEventListener('error', e => problems.push(e.message));</script>"
    drive = (
        "<script>let found; try { found = (() => {"
        + script
        + "})(); } catch (error) { found = {error: String(error)}; }"
        "const out = document.createElement('pre'); out.id = 'found';"
        "out.textContent = JSON.stringify({found, problems}); document.body.append(out);</script>"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_text(page.replace("<style>", catch + "<style>", 1).replace("</body>", drive + "</body>"))
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
        done = subprocess.run(
            [*command, "--window-size=1400,900", "--dump-dom", path.as_uri()],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    match = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert match is not None, done.stdout[-2000:]
    content = json.loads(html.unescape(match[1]))
    assert content["problems"] == []
    assert not (isinstance(content["found"], dict) and "error" in content["found"]), content["found"]
    return content["found"]
