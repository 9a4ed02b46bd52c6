"""Debian's Chromium, driven by Playwright, at a gateway of a test. Tests are skipped, and the summary says so, without it."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import npm
import pytest

from holdfast.access import sessions

AXE_VERSION = "4.10.3"
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--headless", "--disable-dev-shm-usage"]
_WATCH = """
window.__violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.__violations.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""


def find_chromium():
    """Return the path of Chromium; skip the test without it."""
    path = os.environ.get("HOLDFAST_TEST_CHROMIUM") or "/usr/bin/chromium"
    if shutil.which(path) is None:
        pytest.skip(f"{npm.SKIP_PREFIX}: the console in a browser, because there is no Chromium (apt-get install chromium)")
    return path


@contextmanager
def open_browser():
    """Run Chromium."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.skip(f"{npm.SKIP_PREFIX}: the console in a browser, because the package playwright is not installed")
    chromium = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class Console:
    """A person at the console of a gateway: a page, and everything in it that should not have happened."""

    def __init__(self, browser, gateway, **options):
        self.gateway, self.url = gateway, f"http://127.0.0.1:{gateway.port}"
        self.context = browser.new_context(**options)
        self.context.add_init_script(_WATCH)
        self.page = self.context.new_page()
        self.foreign, self.dialogs, self.errors = [], [], []
        self.page.on("request", self._note_request)
        self.page.on("dialog", self._note_dialog)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._note_message)

    def _note_request(self, request):
        if not request.url.startswith((f"{self.url}/", "data:")):
            self.foreign.append(request.url)

    def _note_dialog(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _note_message(self, message):
        if "Content Security Policy" in message.text or "Content-Security-Policy" in message.text:
            self.errors.append(message.text)

    def sign_in(self):
        """Open a one-time link, as `holdfast ui` does."""
        self.page.goto(f"{self.url}/sign-in?code={sessions.make_code(self.gateway.gate)}")
        if self.page.url != f"{self.url}/":
            self.page.wait_for_url(f"{self.url}/")
        return self

    def open(self, path):
        """Open a page and return its status."""
        return self.page.goto(self.url + path).status

    def check_nothing_happened(self):
        """Fail if a script of a note ran, a dialog opened, another host was asked, or the browser had to stop something."""
        ran = self.page.evaluate("typeof window.__ran")
        violations = self.page.evaluate("window.__violations")
        assert (ran, violations, self.foreign, self.dialogs, self.errors) == ("undefined", [], [], [], []), self.page.url

    def find_violations(self, axe):
        """Return the rules of axe-core that the page breaks seriously, with the elements."""
        self.page.evaluate(axe)
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        return [
            (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]


def load_axe():
    """Return the source of axe-core, from npm."""
    return (Path(npm.install_package("axe-core", AXE_VERSION)) / "axe.min.js").read_text(encoding="utf-8")
