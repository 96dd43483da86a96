"""The page in a real browser: what it says after what a person does."""

import os
import re
from pathlib import Path

import pytest

import browser
from served import PLACES, Served

pytestmark = pytest.mark.skipif(not browser.found(), reason="needs Debian's chromium and chromium-driver")
PANEL = ["#runs article:nth-child(1)", "#runs article:nth-child(2)"]
SHOTS = os.environ.get("SERVE_SCREENSHOTS")  # a directory, to look at


@pytest.fixture(scope="module")
def chromium():
    window = browser.Browser()
    yield window
    window.close()


@pytest.fixture
def page(chromium, served):
    """The page with its first image and both predictions."""
    chromium.open(served.url)
    for panel in PANEL:
        chromium.wait_for(f"{panel} .verdict", "%")
    yield chromium
    severe = [entry for entry in chromium.log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    assert not severe, severe
    others = [url for url in chromium.requested() if not url.startswith((served.url, "data:", "chrome:"))]
    assert not others, others


def shoot(page, name):
    if SHOTS:
        Path(SHOTS).mkdir(exist_ok=True)
        page.screenshot(f"{SHOTS}/{name}.png")


def place_of(page):
    return tuple(map(int, re.match(r"row (\d+), column (\d+)", page.text("#place")).groups()))


def expect_prediction(page, served, panel, run):
    """The panel says what the server predicts for the image at its place."""
    picture = page.run("return import('/state.js').then(({state}) => JSON.stringify({image: state.image, place: state.place}))")
    best = served.ask(f"/predict?run={run}", picture.encode()).json["results"][0]["classes"][0]
    share = 100 * best["probability"]
    page.wait_for(f"{panel} .verdict", f"{best['class']}  {share:.0f} %" if share > 9.95 else f"{best['class']}  {share:.1f} %")


def test_load(page, served):
    assert page.text(f"{PANEL[0]} .name") == "self_attention"
    assert "alpha_translution, vit-2x48x3x96/14" in page.text(f"{PANEL[1]} .facts")
    for run, panel in enumerate(PANEL):
        expect_prediction(page, served, panel, run)
        assert re.search("right|wrong", page.text(f"{panel} .verdict"))
        page.wait_for(f"{panel} .map-text", f"of {PLACES * PLACES} places")
    assert "finished: step 24 of 24, " in page.text("#curves")
    assert page.text("#trouble") == ""
    shoot(page, "load")


def test_drag(page, served):
    row, col = place_of(page)
    page.keys("ArrowUp", "ArrowUp", "ArrowLeft")
    page.wait(lambda: place_of(page) == (row - 2, col - 1), "the place after the keys")
    page.pointer("#canvas", (0, 0), (20, 10), (41, 33))
    unit = 348 / 42
    dragged = (row - 2 + round(33 / unit), col - 1 + round(41 / unit))
    page.wait(lambda: place_of(page) == dragged, f"the place after the drag, {dragged}")
    for run, panel in enumerate(PANEL):
        expect_prediction(page, served, panel, run)
    page.pointer("#canvas", (0, 0), (170, 170))
    page.wait(lambda: place_of(page) == (PLACES - 1, PLACES - 1), "the corner")
    shoot(page, "drag")


def test_keys(page, served):
    row, col = place_of(page)
    page.keys("ArrowLeft", "ArrowUp", "ArrowUp")
    page.wait(lambda: place_of(page) == (row - 2, col - 1), "the place")
    page.keys("7")
    page.wait(lambda: page.run("return document.getElementById('label').value") == "7", "a seven")
    page.keys("+")
    page.wait_for("#place", "31×31 pixels")
    expect_prediction(page, served, PANEL[1], 1)


def test_draw(page, served):
    page.click("#clear")
    page.wait_for(f"{PANEL[0]} .map-text", "places")
    page.pointer("#canvas", (-60, -80), (60, -80), (0, 90))
    drawn = page.run("return import('/state.js').then(({state}) => state.image.pixels.filter((value) => value > 0).length)")
    assert drawn > 30
    assert page.run("return document.getElementById('label').value") == ""
    for run, panel in enumerate(PANEL):
        expect_prediction(page, served, panel, run)
        assert "right" not in page.text(f"{panel} .verdict")
    page.choose("#label", "7")
    page.wait_for(f"{PANEL[0]} .map-text", "right at ")
    page.wait(lambda: re.search("right|wrong", page.text(f"{PANEL[0]} .verdict")), "a verdict")
    shoot(page, "draw")
    page.click("#draw")
    before = place_of(page)
    page.keys("ArrowLeft")
    page.wait(lambda: place_of(page) == (before[0], before[1] - 1), "what is drawn moves")


def test_click_a_patch(page):
    page.pointer("#canvas", (0, 0), (0, 0))
    page.wait_for("#place", "patch 2,2")
    page.wait_for(f"{PANEL[0]} .pair-text", "patch 2,2: what it attends to")
    page.pointer(f"{PANEL[1]} .attention", (-80, -80), (-80, -80))
    assert re.search(r"patch 2,2 → patch 1,1: attention [\d.]+ %; score [−+][\d.]+ shared, [−+][\d.]+ relative: "
                     r"the relative part is [\d.]+ %", page.wait_for(f"{PANEL[1]} .pair-text", "patch 1,1"))
    assert "relative" not in page.text(f"{PANEL[0]} .pair-text")
    shoot(page, "patch")
    page.keys("Escape")
    page.wait_for(f"{PANEL[0]} .pair-text", "class token")


def test_offsets(page):
    assert "One set of matrices for all offsets" in page.wait_for(f"{PANEL[0]} .offset-text", "offsets")
    page.wait_for(f"{PANEL[1]} .offset-text", "point at one")
    page.pointer(f"{PANEL[1]} .norms figure:first-child canvas", (0, 0), (23, -23), press=False)
    text = page.wait_for(f"{PANEL[1]} .offset-text", "offset −1,+1: 4 pairs of patches")
    assert re.search(r"norm of query [\d.]+, key [\d.]+, value [\d.]+", text)
    shoot(page, "offsets")


def test_switch_layer_head_and_run(page):
    pressed = "return [...document.querySelectorAll('#runs article:nth-child(2) .thumb[aria-pressed=true]')].map((it) => it.title)"
    page.choose("#layer", "1")
    page.choose("#head", "2")
    page.wait(lambda: page.run(pressed) == ["layer 2, head 3"], "layer 2, head 3")
    page.click(f"{PANEL[1]} .thumb:first-child")
    page.wait(lambda: page.run(pressed) == ["layer 1, head 1"], "layer 1, head 1")
    page.click("#shown button:first-child")
    page.wait(lambda: page.run("return document.querySelector('#runs article').hidden"), "the run is hidden")
    page.click("#shown button:first-child")
    page.wait(lambda: not page.run("return document.querySelector('#runs article').hidden"), "the run is back")


def test_dark(page):
    background = "return getComputedStyle(document.body).backgroundColor"
    page.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    dark = page.run(background)
    page.wait_for(f"{PANEL[1]} .map-text", f"of {PLACES * PLACES} places")
    shoot(page, "dark")
    page.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    assert dark != page.run(background)


def test_a_picture_that_is_none_is_reported(page):
    page.run("""const file = new File(['no picture'], 'a.png'), files = new DataTransfer();
                files.items.add(file);
                const input = document.getElementById('file');
                input.files = files.files; input.dispatchEvent(new Event('change'))""")
    page.wait_for("#trouble", "image: ")
    page.log("browser")  # the browser itself logs the status 400


def test_all_of_it_fits_a_phone(page):
    page.devtools("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=True)
    page.wait(lambda: page.run("return document.documentElement.scrollWidth") <= 400, "a narrow page")
    page.devtools("Emulation.clearDeviceMetricsOverride")


def test_live_curve_of_a_training(chromium, runs, both):
    training = runs.start("live", "alpha_translution", "--steps", "100000", "--log-every", "5", "--save-every", "200")
    page = None
    try:
        chromium.wait(lambda: (runs.folder / "live" / "config.toml").exists(), "the run")
        page = Served(str(runs.folder / "live"), both[0])
        chromium.open(page.url)
        text = chromium.wait_for("#curves li", "training: step ")
        step = int(re.search(r"step ([\d,]+) of 100,000", text).group(1).replace(",", ""))
        assert re.search(r"loss [\d.]+.*samples/s, .* left", text)
        chromium.wait(lambda: int(re.search(r"step ([\d,]+)", chromium.text("#curves li")).group(1).replace(",", "")) > step,
                      "further steps")
        assert chromium.run("return document.querySelectorAll('#curves path.line').length") >= 2
        chromium.wait_for(f"{PANEL[0]} .verdict", "%")  # its first checkpoint came
        shoot(chromium, "live")
    finally:
        training.terminate()
        training.communicate()
        if page:
            chromium.open("about:blank")
            page.close()
