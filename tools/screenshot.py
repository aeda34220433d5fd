"""Makes the picture of the approval desk in `docs/images`: `make screenshot`.

It is taken after a double click on Approve, so that it shows what a person then reads.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from browser import find
from playwright.sync_api import sync_playwright

from tests.services.running import running


ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "approval_desk.png"


def main() -> None:
    """Start the service, click, and take the picture."""
    PICTURE.parent.mkdir(exist_ok=True)
    args = ["--no-sandbox"] if os.geteuid() == 0 else []
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder), "--slow", "0.6") as service,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=find(), args=args)
        page = browser.new_page(viewport={"width": 800, "height": 640}, device_scale_factor=1.5)
        page.goto(f"{service.url}/?as=ann")
        page.get_by_role("button", name="Approve: Refund $249").click(click_count=2, delay=120)
        page.get_by_role("status").wait_for()
        page.screenshot(path=PICTURE, full_page=True)
        browser.close()
    print(f"· {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
