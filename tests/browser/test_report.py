"""The report in a real browser: nothing on the console, figures drawn, the explorer reacts, small and wide windows."""

import shutil
from pathlib import Path

import pytest

from compactproofs.reports.collect import collect, report_work
from compactproofs.reports.page import page
from compactproofs.strategies.registry import strategy
from models import mostly_right
from rendered import faults_of_figures, faults_of_width

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("needs Chromium (Debian package chromium)", allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright, from the [dev] extra")

pytestmark = pytest.mark.long

STRATEGIES = ["brute-force", "cubic", "subcubic/max_diff_exact/svd/envelope", "threshold-cubic"]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    work, store = report_work(strategies=[strategy(name) for name in STRATEGIES]), tmp_path_factory.mktemp("store")
    return [collect(mostly_right(seed, v=6, noise=0.5), Path(f"/somewhere/model {seed}.safetensors"), store, work) for seed in range(4)]


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


def opened(browser, tmp_path, models, **context):
    path = tmp_path / "report.html"
    path.write_text(page(models), encoding="utf-8")
    problems = []
    tab = browser.new_context(**context).new_page()
    tab.on("console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.goto(path.as_uri())
    return tab, problems


def scroll_through(tab):
    """Figures are drawn when they come near the window."""
    tab.evaluate("document.querySelectorAll('[data-figure]').forEach((e) => e.scrollIntoView())")
    for name in tab.evaluate("[...document.querySelectorAll('[data-figure]')].map((e) => e.dataset.figure)"):
        tab.locator(f"[data-figure='{name}']").scroll_into_view_if_needed()
        tab.wait_for_selector(f"[data-figure='{name}'] .main-svg")


@pytest.mark.parametrize(
    "context",
    [
        {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
        {"viewport": {"width": 1400, "height": 1000}, "color_scheme": "light"},
    ],
    ids=["phone, dark", "desk, light"],
)
def test_one_model(browser, tmp_path, results, context):
    tab, problems = opened(browser, tmp_path, results[:1], **context)
    scroll_through(tab)
    assert problems == []
    assert faults_of_figures(tab) == []
    assert faults_of_width(tab) == []
    assert "theorem" in tab.locator("nav").inner_text().lower()
    tab.screenshot(path=tmp_path / "page.png", full_page=True)
    assert (tmp_path / "page.png").stat().st_size > 20_000


def test_the_explorer_reacts(browser, tmp_path, results):
    tab, problems = opened(browser, tmp_path, results[:1], viewport={"width": 1400, "height": 1000})
    tab.locator("#map").scroll_into_view_if_needed()
    before = tab.locator("#details").inner_text()
    assert "proven" in before and "room for harm" in before
    assert tab.locator("#corrected").inner_text() == ""
    tab.locator("#label").fill("3")
    tab.keyboard.press("Tab")
    tab.locator("#query").fill("1")
    tab.keyboard.press("Tab")
    after = tab.locator("#details").inner_text()
    assert "label 3 and query 1" in after and after != before
    tab.locator("#strategy").select_option(index=3)
    assert tab.locator("#details").inner_text() != ""
    tab.locator("#query").fill("5")  # above the label: brought back to it, and said so
    tab.keyboard.press("Tab")
    assert tab.locator("#query").input_value() == "3"
    assert "no sequence of label 3 ends in 5" in tab.locator("#corrected").inner_text()
    box = tab.locator("#map .nsewdrag").bounding_box()
    tab.mouse.click(box["x"] + 0.08 * box["width"], box["y"] + 0.08 * box["height"])  # the cell of the largest label and query 0
    assert "label 5 and query 0" in tab.locator("#details").inner_text()
    assert problems == []


def test_the_ledger_is_shown_block_by_block(browser, tmp_path, results):
    tab, problems = opened(browser, tmp_path, results[:1], viewport={"width": 1400, "height": 1000})
    tab.locator("#block").focus()
    first = tab.locator("#block-details").inner_text()
    assert "label" in first and "of all sequences" in first
    tab.keyboard.press("End")  # the last of the list, by keyboard alone
    last = tab.locator("#block-details").inner_text()
    assert last != first and "shown harmless" in last and "undefined" not in first + last
    assert tab.locator("#blocks path.point").count() == sum(len(b["queries"]) for b in results[0].ledger["blocks"]) + 1
    assert problems == []


def test_everything_can_be_reached_with_the_keyboard(browser, tmp_path, results):
    tab, _ = opened(browser, tmp_path, results[:1])
    reached = set()
    for _ in range(500):
        if {"skip", "strategy", "label", "query", "scroll"} <= reached:
            break
        tab.keyboard.press("Tab")
        reached.add(tab.evaluate("document.activeElement.id || document.activeElement.className || document.activeElement.tagName"))
    assert {"skip", "strategy", "label", "query", "scroll"} <= reached


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("number", [2, 4])
def test_many_models(browser, tmp_path, results, width, number):
    tab, problems = opened(browser, tmp_path, results[:number], viewport={"width": width, "height": 900})
    scroll_through(tab)
    assert faults_of_figures(tab) == []
    assert faults_of_width(tab) == []
    assert problems == [] and tab.locator("tr:target").count() == 0
    tab.locator("#worst a").first.click()
    assert tab.locator("tr:target").count() == 1, "the link does not lead to the model"
    if number == 2:
        return
    assert problems == [] and "R²" in tab.locator("#ratio").inner_text() + tab.content()
    assert "normalised best subcubic bound" in tab.locator("#distribution").inner_text()
