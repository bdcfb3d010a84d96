"""The documentation in a real browser: pages fit the window, formulas are drawn, tables have headers, nothing is missing, search finds."""

import os
import shutil
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("needs Chromium (Debian package chromium)", allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright, from the [dev] extra")
pytest.importorskip("mkdocs", reason="needs mkdocs, from the [dev] extra")

pytestmark = pytest.mark.long

PROJECT = Path(__file__).parents[2]
PATIENCE = 120_000
"""Milliseconds; the index is built in the browser."""
LOOK = r"""() => {
  const width = document.documentElement.clientWidth;
  const own = (e) => [...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data).join("");
  const text = [...document.querySelectorAll("article p, article li, article td")].map(own).join("\n");
  const heads = (t) => [...t.querySelectorAll("thead th")].map((h) => h.textContent.trim());
  const isCut = (e) => e.scrollWidth > e.clientWidth + 1;
  return {
    "wider than the window": Math.max(0, document.documentElement.scrollWidth - width),
    "formulas not drawn": (text.match(/\\[(\[][^\n]{0,40}|\$[^$\n]{1,60}\$/g) || []).concat(
      [...document.querySelectorAll("math")].map((m) => m.textContent).filter((m) => m.includes("&") || m.includes("\\")),
    ),
    "empty header rows": [...document.querySelectorAll("article table")].filter((t) => heads(t).length && !heads(t).join("")).length,
    "images not loaded": [...document.querySelectorAll("article img")].filter((i) => i.complete && !i.naturalWidth).map((i) => i.src),
    "tables cut off": width < 1000 ? 0 : [...document.querySelectorAll(".md-typeset__scrollwrap")].filter(isCut).length,
  };
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Every page, built."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=PROJECT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, check=True)
    return folder


@pytest.mark.parametrize("width", [1400, 390])
def test_every_page(site, width):
    pages = [page for page in sorted(site.rglob("*.html")) if page.name != "404.html"]
    assert len(pages) > 50
    wrong = {}
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_context(viewport={"width": width, "height": 900}).new_page()
        for page in pages:
            tab.goto(page.as_uri())
            found = {what: value for what, value in tab.evaluate(LOOK).items() if value}
            if found:
                wrong[str(page.relative_to(site))] = found
        browser.close()
    assert not wrong, "\n".join(f"{page}: {found}" for page, found in wrong.items())


class Quiet(SimpleHTTPRequestHandler):
    """Tells nobody what is asked for."""

    def log_message(self, *args):
        pass


@pytest.fixture
def address(site):
    """Search asks for its index, which a browser does not read from a file."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(("words", "page"), [("how softmax is treated", "explanation/softmax/"), ("Marabou", "explanation/compared-with/")])
def test_search_finds_a_page_and_leads_there(address, words, page):
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
        tab.set_default_timeout(PATIENCE)
        tab.goto(address)
        tab.locator("[data-md-component=search-query]").press_sequentially(words)
        found = tab.locator(f".md-search-result__link[href*='{page}']").first
        found.wait_for()
        found.click()
        tab.wait_for_url(f"{address}{page}**")
        assert tab.locator("h1").count() == 1
        browser.close()
