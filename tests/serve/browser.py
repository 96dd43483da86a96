"""Chromium, driven by the WebDriver protocol: plain HTTP and JSON."""

import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's name of an element
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--force-device-scale-factor=1"]
KEYS = {"ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015", "Escape": "\ue00c",
        "Shift": "\ue008"}


def found():
    return shutil.which("chromium") is not None and shutil.which("chromedriver") is not None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Browser:
    def __init__(self, width=1500, height=1200):
        self.profile = tempfile.mkdtemp(prefix="serve-browser-")
        port = free_port()
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.profile})
        self.root = f"http://127.0.0.1:{port}"
        self.session = ""
        self.wait(lambda: self.call("GET", "/status")["ready"], "chromedriver")
        options = {"args": [*FLAGS, f"--user-data-dir={self.profile}/data", f"--window-size={width},{height}"],
                   "binary": shutil.which("chromium")}
        capabilities = {"browserName": "chrome", "goog:chromeOptions": options,
                        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.session = f"/session/{made['sessionId']}"

    def close(self):
        try:
            if self.session:
                self.call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait(10)
            shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, path, values=None):
        data = json.dumps(values or {}).encode() if method == "POST" else None
        request = urllib.request.Request(self.root + path, data=data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from error

    def wait(self, condition, what, seconds=20):
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
        self.call("POST", f"{self.session}/url", {"url": url})

    def run(self, script, *arguments):
        return self.call("POST", f"{self.session}/execute/sync", {"script": script, "args": list(arguments)})

    def devtools(self, command, **parameters):
        return self.call("POST", f"{self.session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def text(self, selector):
        return self.run("const it = document.querySelector(arguments[0]); return it ? it.textContent : ''", selector)

    def wait_for(self, selector, part, seconds=20):
        """The text of an element, as soon as it contains the part."""
        try:
            return self.wait(lambda: part in self.text(selector) and self.text(selector), "", seconds)
        except AssertionError:
            raise AssertionError(f"{selector}: expected '{part}', got '{self.text(selector)}'") from None

    def element(self, selector):
        return self.call("POST", f"{self.session}/element", {"using": "css selector", "value": selector})

    def click(self, selector):
        self.call("POST", f"{self.session}/element/{self.element(selector)[ELEMENT]}/click")

    def pointer(self, selector, *ways, press=True):
        """Presses at the first way, moves on to the others, and releases: offsets from the middle in CSS pixels."""
        origin = self.element(selector)
        moves = [{"type": "pointerMove", "duration": 30, "x": x, "y": y, "origin": origin} for x, y in ways]
        if press:
            moves = [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], {"type": "pointerUp", "button": 0}]
        self.call("POST", f"{self.session}/actions", {"actions": [
            {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves}]})

    def keys(self, *keys):
        presses = [{"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]
        self.call("POST", f"{self.session}/actions", {"actions": [{"type": "key", "id": "keys", "actions": presses}]})

    def choose(self, selector, value):
        self.run("const it = document.querySelector(arguments[0]); it.value = arguments[1];"
                 "it.dispatchEvent(new Event('input')); it.dispatchEvent(new Event('change'))", selector, value)

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", f"{self.session}/screenshot")))

    # ------------------------------------------------------------------------------------- logs
    def log(self, kind):
        return self.call("POST", f"{self.session}/se/log", {"type": kind})

    def requested(self):
        """Addresses that were asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [message["params"]["request"]["url"] for message in messages
                if message["method"] == "Network.requestWillBeSent"]
