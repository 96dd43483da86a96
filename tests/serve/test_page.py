"""The page in a real browser: what it says after what a person does."""

import json
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


def settle(page, panels=PANEL):
    """Waits until all that the panels show is about the input as it is now."""
    # The page draws in the first frame after a change, and then marks the panels whose answers are to come.
    script = """const [panels, done] = arguments, busy = (panel) => document.querySelector(panel)?.ariaBusy !== 'false';
                requestAnimationFrame(() => requestAnimationFrame(() => done(!panels.some(busy))))"""
    page.wait(lambda: page.run_later(script, panels), "answers to the newest input")


@pytest.fixture
def page(chromium, served):
    """The page with its first image and both predictions."""
    chromium.log("browser"), chromium.requested()  # what came before is another test's
    chromium.open(served.url)
    settle(chromium)
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


def input_of(page):
    """The image and its place, as the body of a request."""
    return page.run("return import('/state.js').then(({state}) => JSON.stringify({image: state.image, place: state.place}))"
                    ).encode()


def expect_place(page, row, col):
    page.wait(lambda: place_of(page) == (row, col), f"the place {row}, {col}")


def percent(share):
    return f"{100 * share:.0f} %" if share > 0.0995 else f"{100 * share:.1f} %"


def expect_predictions(page, served):
    """Each panel says what the server predicts for the image at its place."""
    settle(page)
    for result, panel in zip(served.ask("/predict", input_of(page)).json["results"], PANEL):
        best = result["classes"][0]
        page.wait_for(f"{panel} .verdict", f"{best['class']}  {percent(best['probability'])}")


def test_load(page, served):
    assert page.text(f"{PANEL[0]} .name") == "self_attention"
    assert "alpha_translution, vit-2x48x3x96/14" in page.text(f"{PANEL[1]} .facts")
    expect_predictions(page, served)
    for panel in PANEL:
        page.wait(lambda: re.search("right|wrong", page.text(f"{panel} .verdict")), "a verdict")
        page.wait_for(f"{panel} .map-text", f"of {PLACES * PLACES} places")
    page.wait_for("#curves", "finished: step 24 of 24, ")
    assert page.text("#trouble") == ""
    shoot(page, "load")


@pytest.mark.parametrize("kind", ["mouse", "touch"])
def test_drag(page, served, kind):
    row, col = place_of(page)
    page.keys("ArrowUp", "ArrowUp", "ArrowLeft")
    expect_place(page, row - 2, col - 1)
    page.pointer("#canvas", (0, 0), (20, 10), (41, 33), kind=kind)
    unit = 348 / 42
    expect_place(page, row - 2 + round(33 / unit), col - 1 + round(41 / unit))
    expect_predictions(page, served)
    page.pointer("#canvas", (0, 0), (170, 170), kind=kind)
    expect_place(page, PLACES - 1, PLACES - 1)
    settle(page)
    shoot(page, "drag")


def test_a_click_on_the_map_moves_the_digit(page, served):
    page.pointer(f"{PANEL[0]} .map", (0, 0), (0, 0))
    expect_place(page, PLACES // 2, PLACES // 2)
    page.pointer(f"{PANEL[1]} .map", (-107, 100), (-107, 100))
    expect_place(page, PLACES - 1, 0)
    expect_predictions(page, served)


def test_keys(page, served):
    row, col = place_of(page)
    page.keys("ArrowLeft", "ArrowUp", "ArrowUp")
    expect_place(page, row - 2, col - 1)
    page.keys("7")
    page.wait(lambda: page.run("return document.getElementById('label').value") == "7", "a seven")
    page.keys("+")
    page.wait_for("#place", "31×31 pixels")
    expect_predictions(page, served)
    page.choose("#scale", "0.5")
    page.wait_for("#place", "14×14 pixels")
    page.wait_for(f"{PANEL[0]} .map-text", f"of {(PLACES + 14) ** 2} places")
    expect_predictions(page, served)


def test_another_shows_the_next_sample(page, served):
    first = input_of(page)
    page.click("#another")
    page.wait(lambda: input_of(page) != first, "another image")
    expect_predictions(page, served)


def test_draw(page, served):
    page.click("#clear")
    page.wait(lambda: page.run("return document.getElementById('label').value") == "", "an unknown label")
    page.pointer("#canvas", (-60, -80), (60, -80), (0, 90))
    page.wait(lambda: sum(value > 0 for value in json.loads(input_of(page))["image"]["pixels"]) > 30, "ink")
    expect_predictions(page, served)
    for panel in PANEL:
        assert not re.search("right|wrong", page.text(f"{panel} .verdict"))
    page.choose("#label", "7")
    page.wait_for(f"{PANEL[0]} .map-text", "right at ")
    page.wait(lambda: re.search("right|wrong", page.text(f"{PANEL[0]} .verdict")), "a verdict")
    settle(page)
    shoot(page, "draw")
    page.click("#draw")
    before = place_of(page)
    page.keys("ArrowLeft")
    expect_place(page, before[0], before[1] - 1)


def signed(number):
    text = f"{number:.2f}".replace("-", "−")
    return f"+{text}" if float(f"{number:.2f}") > 0 else text


def test_click_a_patch(page, served):
    page.pointer("#canvas", (0, 0), (0, 0))
    page.wait_for("#place", "patch 2,2")
    page.wait_for(f"{PANEL[0]} .pair-text", "patch 2,2: what it attends to")
    page.pointer(f"{PANEL[1]} .attention", (-80, -80), (-80, -80))
    page.wait_for(f"{PANEL[1]} .pair-text", "patch 2,2 → patch 1,1")
    settle(page)
    maps = served.ask("/api/attention?run=1&query=4", input_of(page)).json
    weight, shared, relative = (sum(head[0] for head in maps[kind][0]) / 3 for kind in ("weights", "shared", "relative"))
    part = abs(relative) / (abs(relative) + abs(shared))
    page.wait_for(f"{PANEL[1]} .pair-text",
                  f"attention {percent(weight)}; score {signed(shared)} shared, {signed(relative)} relative: "
                  f"the relative part is {percent(part)}")
    assert "relative" not in page.text(f"{PANEL[0]} .pair-text")
    shoot(page, "patch")
    page.keys("Escape")
    page.wait_for(f"{PANEL[0]} .pair-text", "class token")


def test_offsets(page, served):
    assert "One set of matrices for all offsets" in page.wait_for(f"{PANEL[0]} .offset-text", "offsets")
    page.wait_for(f"{PANEL[1]} .offset-text", "point at one")
    page.pointer(f"{PANEL[1]} .norms figure:first-child canvas", (0, 0), (23, -23), press=False)
    page.wait_for(f"{PANEL[1]} .offset-text", "offset −1,+1: 4 pairs of patches")
    norms = [table["values"][1 * 5 + 3] for table in served.ask("/api/offsets?run=1").json["tables"][:3]]
    page.wait_for(f"{PANEL[1]} .offset-text", "norm of query {:.2f}, key {:.2f}, value {:.2f}".format(*norms))
    shoot(page, "offsets")


def test_patches_and_offsets_by_keys(page):
    page.keys("p", "k", "k", "o")  # patch 1,1 and its second partner
    page.wait_for(f"{PANEL[1]} .pair-text", "patch 1,1 → patch 1,2: attention ")
    page.wait_for(f"{PANEL[1]} .offset-text", "offset 0,−1: 6 pairs of patches")
    page.keys("Escape")
    page.wait_for(f"{PANEL[1]} .offset-text", "point at one")
    page.wait_for(f"{PANEL[1]} .pair-text", "class token")


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
    light = page.run(background)
    try:
        page.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        page.wait(lambda: page.run(background) != light, "a dark page")
        settle(page)
        shoot(page, "dark")
    finally:
        page.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    page.wait(lambda: page.run(background) == light, "a light page")


def test_a_picture_that_is_none_is_reported(page):
    page.run("""const file = new File(['no picture'], 'a.png'), files = new DataTransfer();
                files.items.add(file);
                const input = document.getElementById('file');
                input.files = files.files; input.dispatchEvent(new Event('change'))""")
    page.wait_for("#trouble", "image: ")
    page.wait(lambda: any("status of 400" in entry["message"] for entry in page.log("browser")), "the browser's own remark")


def test_all_of_it_fits_a_phone(page):
    try:
        page.devtools("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=True)
        page.wait(lambda: page.run("return document.documentElement.scrollWidth") <= 400, "a narrow page")
        settle(page)
        shoot(page, "phone")
    finally:
        page.devtools("Emulation.clearDeviceMetricsOverride")


def test_live_curve_of_a_training(chromium, runs, both):
    training = runs.start("live", "alpha_translution", "--steps", "100000", "--log-every", "5", "--save-every", "200")
    page = None

    def step():
        return int(re.search(r"step ([\d,]+) of 100,000", chromium.text("#curves li")).group(1).replace(",", ""))
    try:
        chromium.wait(lambda: (runs.folder / "live" / "config.toml").exists(), "the run")
        page = Served(str(runs.folder / "live"), both[0])
        chromium.open(page.url)
        chromium.wait(lambda: re.search(r"training: step .*loss [\d.]+.*samples/s, .* left", chromium.text("#curves li")),
                      "a line about the training")
        first = step()
        chromium.wait(lambda: step() > first, "further steps")
        chromium.wait(lambda: chromium.run("return document.querySelectorAll('#curves path.line').length") >= 2, "curves")
        chromium.wait_for(f"{PANEL[0]} .verdict", "%")  # its first checkpoint came
        shoot(chromium, "live")
    finally:
        training.terminate()
        training.communicate()
        if page:
            chromium.open("about:blank")
            page.close()
