#!/usr/bin/env python3
"""site-screenshots.py SITE [OUT]: checks the documentation site in Chromium at 1300, 800 and 400 pixels.

SITE is the output of `cargo xtask site`. Fails if a page is wider than the window, so that a reader has to scroll sideways. Wide tables and code
blocks scroll on their own. With OUT, writes screenshots of the landing page, a guide and a rule page, in the light and the dark theme. Needs
Chromium.
"""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

WIDTHS = (1300, 800, 400)
PICTURES = ("index.html", "guides/validate.html", "reference/rules/bundle-lints.html")
# toc.html is a frame for browsers without JavaScript, and print.html contains all pages.
OMITTED = ("print.html", "toc.html")
# The width of the content and of the window, and elements that are cut off although nothing around them scrolls.
WIDER = """JSON.stringify([document.scrollingElement.scrollWidth, window.innerWidth,
  [...document.querySelectorAll('main *')].filter(one => one.getBoundingClientRect().right > window.innerWidth + 1
    && !one.closest('pre, .table-wrapper, .content-scrolls')).slice(0, 3).map(one => one.outerHTML.slice(0, 120))])"""


class Browser:
    """Chromium, controlled through its debugging pipe."""

    def __init__(self, profile):
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if not program:
            sys.exit("error: Chromium is not installed")
        ours, theirs = os.pipe(), os.pipe()
        # The browser reads from descriptor 3 and writes to descriptor 4.
        script = 'exec "$@" 3<&%d 4>&%d' % (ours[0], theirs[1])
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
        self.process = subprocess.Popen(
            ["bash", "-c", script, "browser", program, *flags, "--remote-debugging-pipe"],
            pass_fds=(ours[0], theirs[1]),
            stderr=subprocess.DEVNULL,
        )
        os.close(ours[0])
        os.close(theirs[1])
        self.to, self.answers = ours[1], os.fdopen(theirs[0], "rb", buffering=0)
        self.number, self.rest, self.session = 0, b"", None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def message(self):
        while b"\0" not in self.rest:
            read = self.answers.read(65536)
            if not read:
                sys.exit("error: Chromium ended")
            self.rest += read
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        while (answer := self.message()).get("id") != self.number:
            pass
        if "error" in answer:
            sys.exit(f"error: {method}: {answer['error']}")
        return answer["result"]

    def open(self, address):
        self.call("Page.navigate", url=address)
        while self.message().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, script):
        return self.call("Runtime.evaluate", expression=script)["result"].get("value")

    def width(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def picture(self, file):
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        self.call("Browser.close")
        self.process.wait()


def main():
    site = pathlib.Path(sys.argv[1]).resolve()
    out = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
    if out:
        out.mkdir(parents=True, exist_ok=True)
    pages = sorted(page for page in site.rglob("*.html") if page.name not in OMITTED)
    wide = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(profile)
        for width in WIDTHS:
            browser.width(width)
            for page in pages:
                browser.open(page.as_uri())
                content, window, elements = json.loads(browser.evaluate(WIDER))
                if content > window or elements:
                    wide.append(f"{page.relative_to(site)}: {content} of {window} pixels: {elements}")
        if out:
            for scheme in ("light", "dark"):
                feature = {"name": "prefers-color-scheme", "value": scheme}
                browser.call("Emulation.setEmulatedMedia", features=[feature])
                for width in WIDTHS:
                    browser.width(width)
                    for name in PICTURES:
                        browser.open((site / name).as_uri())
                        browser.picture(out / f"{name.replace('/', '-')[:-5]}-{width}-{scheme}.png")
        browser.close()
    print(f"{len(pages)} pages at {', '.join(map(str, WIDTHS))} pixels: {len(wide)} wider than the window")
    if wide:
        sys.exit("\n".join(wide))


main()
