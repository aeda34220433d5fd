"""Makes the pictures of the approval desk in `docs/images`: `make screenshot`.

One is taken after a double click on Approve, the other after somebody else pressed Reject on
a page from before: they show what a person then reads.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Literal

from browser import find
from playwright.sync_api import Page, sync_playwright

from tests.services.running import running


ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "images"
BUTTON = "{}: Refund $249, Tomás Ortega"


def main() -> None:
    """Start the service, click, and take the pictures."""
    PICTURES.mkdir(exist_ok=True)
    args = ["--no-sandbox"] if os.geteuid() == 0 else []
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder), "--slow", "0.6") as service,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=find(), args=args)
        user = browser.new_context(viewport={"width": 800, "height": 640}, device_scale_factor=1.5)
        anns, bens = user.new_page(), user.new_page()
        anns.goto(f"{service.url}/?as=ann")
        bens.goto(f"{service.url}/?as=ben")
        press(anns, BUTTON.format("Approve"), "status", "approval_desk.png", clicks=2)
        press(bens, BUTTON.format("Reject"), "alert", "approval_desk_late.png")
        browser.close()


def press(
    page: Page, button: str, role: Literal["alert", "status"], picture: str, clicks: int = 1
) -> None:
    """Press a button, and take the picture of what the page then says."""
    page.get_by_role("button", name=button).click(click_count=clicks, delay=120)
    page.get_by_role(role).wait_for()
    page.screenshot(path=PICTURES / picture, full_page=True)
    print(f"· docs/images/{picture}")


if __name__ == "__main__":
    main()
