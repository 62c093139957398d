"""Hooks of `mkdocs build`: links from docs/ into the rest of the checkout become plain text, if their files exist."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_OUTSIDE = re.compile(r"\[(?P<text>[^\]]*)\]\(\.\./(?P<path>[^)#\s]+)[^)]*\)")
_LOG = logging.getLogger("mkdocs.hooks.smartmem")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page without links that lead out of the site; a missing file is a warning, which `strict` makes an error."""

    def plain(match: re.Match[str]) -> str:
        if not (ROOT / match["path"]).exists():
            _LOG.warning("%s links to ../%s, which does not exist", page.file.src_path, match["path"])
        return match["text"]

    return _OUTSIDE.sub(plain, markdown)
