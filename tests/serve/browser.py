"""Chromium, driven by the WebDriver protocol: plain HTTP and JSON."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's name of an element
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--force-device-scale-factor=1"]
SECONDS, CALL_SECONDS = 30, 120  # that a page has to show something, and that one command may take
KEYS = {"ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015", "Escape": "\ue00c",
        "Shift": "\ue008"}


def found():
    return shutil.which("chromium") is not None and shutil.which("chromedriver") is not None


class Driver:
    """A chromedriver, which chooses a free port itself."""

    def __init__(self, profile):
        self.process = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True, env={**os.environ, "HOME": profile}, start_new_session=True)
        for line in self.process.stdout:
            port = re.search(r"started successfully on port (\d+)", line)
            if port:
                self.root = f"http://127.0.0.1:{port.group(1)}"
                return
        raise AssertionError(f"chromedriver ended with {self.process.wait()} and named no port")

    def call(self, method, path, values=None):
        data = json.dumps(values or {}).encode() if method == "POST" else None
        request = urllib.request.Request(self.root + path, data=data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=CALL_SECONDS) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from error

    def close(self):
        """Ends it and the browsers that it started."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


class Browser:
    def __init__(self, width=1500, height=1200):
        self.profile = tempfile.mkdtemp(prefix="serve-browser-")
        for attempt in range(3):  # a busy machine may start it too late for its driver
            self.driver = Driver(self.profile)
            try:
                self.session = self.new_session(f"{self.profile}/data-{attempt}", width, height)
                return
            except (AssertionError, OSError) as error:
                self.driver.close()
                failure = error
        raise AssertionError(f"chromium does not start: {failure}")

    def new_session(self, data, width, height):
        options = {"args": [*FLAGS, f"--user-data-dir={data}", f"--window-size={width},{height}"],
                   "binary": shutil.which("chromium")}
        capabilities = {"browserName": "chrome", "goog:chromeOptions": options,
                        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        made = self.driver.call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        return f"/session/{made['sessionId']}"

    def close(self):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.close()
            shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, path, values=None):
        return self.driver.call(method, self.session + path, values)

    def wait(self, condition, what, seconds=SECONDS):
        """The first true value of the condition."""
        end = time.time() + seconds
        while True:
            try:
                value = condition()
                if value:
                    return value
            except (AssertionError, OSError):
                pass
            assert time.time() < end, f"waited {seconds} s for {what}"
            time.sleep(0.05)

    # ------------------------------------------------------------------------------------- page
    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def run_later(self, script, *arguments):
        """What the script passes to the function that is its last argument."""
        return self.call("POST", "/execute/async", {"script": script, "args": list(arguments)})

    def devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def text(self, selector):
        return self.run("const it = document.querySelector(arguments[0]); return it ? it.textContent : ''", selector)

    def wait_for(self, selector, part, seconds=SECONDS):
        """The text of an element, as soon as it contains the part."""
        try:
            return self.wait(lambda: part in self.text(selector) and self.text(selector), "", seconds)
        except AssertionError:
            raise AssertionError(f"{selector}: expected '{part}', got '{self.text(selector)}'") from None

    def element(self, selector):
        find = {"using": "css selector", "value": selector}
        return self.wait(lambda: self.call("POST", "/element", find), selector)

    def click(self, selector):
        self.call("POST", f"/element/{self.element(selector)[ELEMENT]}/click")

    def pointer(self, selector, *ways, press=True, kind="mouse"):
        """Presses at the first way, moves on to the others, and releases: offsets from the middle in CSS pixels. Returns
        after the page has seen the last event."""
        origin = self.element(selector)
        moves = [{"type": "pointerMove", "duration": 30, "x": x, "y": y, "origin": origin} for x, y in ways]
        if press:
            moves = [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], {"type": "pointerUp", "button": 0}]
        self.run("window.lastSeen = false;"
                 "addEventListener(arguments[0], () => (window.lastSeen = true), {capture: true, once: true})",
                 "pointerup" if press else "pointermove")
        self.call("POST", "/actions", {"actions": [
            {"type": "pointer", "id": kind, "parameters": {"pointerType": kind}, "actions": moves}]})
        self.wait(lambda: self.run("return window.lastSeen"), "the pointer's last event")

    def keys(self, *keys):
        presses = [{"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": presses}]})

    def choose(self, selector, value):
        self.run("const it = document.querySelector(arguments[0]); it.value = arguments[1];"
                 "it.dispatchEvent(new Event('input')); it.dispatchEvent(new Event('change'))", selector, value)

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", "/screenshot")))

    # ------------------------------------------------------------------------------------- logs
    def log(self, kind):
        return self.call("POST", "/se/log", {"type": kind})

    def requested(self):
        """Addresses that were asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [message["params"]["request"]["url"] for message in messages
                if message["method"] == "Network.requestWillBeSent"]
