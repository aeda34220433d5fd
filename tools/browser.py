"""Finds a Chromium for the browser tests, and installs one where there is none.

`REMIT_CHROMIUM` names one to use. Otherwise it is the system's own, or Playwright's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

PACKAGES = ("chromium", "fonts-dejavu-core")
"""Debian's browser, and letters for it to show."""


def main() -> None:
    """Have a Chromium, or end with what to do."""
    if find() is None and "REMIT_CHROMIUM" not in os.environ:
        print("· installing Chromium", flush=True)
        install()
    found = find()
    if found is None:
        sys.exit(
            "There is no Chromium, or none where REMIT_CHROMIUM says, and none could be"
            " installed; the browser tests need one. Install it with your system's packages."
        )
    print(f"· browser: {found}", flush=True)


def find() -> str | None:
    """The path of a Chromium; None if there is none."""
    named = os.environ.get("REMIT_CHROMIUM")
    if named:
        return named if Path(named).exists() else None
    for name in NAMES:
        if found := shutil.which(name):
            return found
    return _playwrights()


def install() -> None:
    """Install the system's Chromium where that takes no password, else Playwright's own."""
    debian = shutil.which("apt-get")
    if debian and os.geteuid() == 0:
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (("update",), ("install", "-y", "--no-install-recommends", *PACKAGES)):
            subprocess.run([debian, "-qq", *words], check=False, env=environment)
    if find() is None:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)


def _playwrights() -> str | None:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if path and Path(path).exists() else None


if __name__ == "__main__":
    main()
