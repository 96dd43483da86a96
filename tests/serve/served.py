"""The program's page as a background process, and small runs to show on it."""

import json
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import urllib.error
import urllib.request
import zlib
from pathlib import Path

PROGRAM = os.environ.get("TRANSLUTION_PROGRAM", "build/translution")
CANVAS, PATCH, SIDE = 42, 14, 28  # pixels
PLACES = CANVAS - SIDE + 1        # of a digit, in a row
SMALL = (f"--data digits:256 --canvas {CANVAS} --model vit-2x48x3x96/{PATCH} --batch 16 --eval-limit 32 "
         "--lr 2e-3 --threads 1").split()


class Runs:
    """A directory of runs, trained when they are first asked for."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="serve-test-"))

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, name, method, *more):
        return subprocess.Popen([PROGRAM, "train", *SMALL, "--method", method, *more, "--out", self.folder / name],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def trained(self, method):
        path = self.folder / method
        if not path.exists():
            process = self.start(method, method, "--steps", "24")
            _, errors = process.communicate(timeout=300)
            assert process.returncode == 0, errors
        return str(path)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class Served:
    """translution serve RUN…, on any free port."""

    def __init__(self, *runs, path=os.environ["PATH"]):
        self.process = subprocess.Popen([PROGRAM, "serve", *runs, "--port", "0"], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env={**os.environ, "PATH": path})
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http://127.0.0.1:"), self.process.communicate()[1]
        self.port = int(self.url.rsplit(":", 1)[1].strip("/"))

    def ask(self, path, body=None, headers=None):
        request = urllib.request.Request(self.url + path.lstrip("/"), data=body, headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return Answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.headers, error.read())

    def resident(self):
        """Bytes of memory."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def stop(self, number=signal.SIGINT):
        """Exit code and what was printed as errors. It takes less than a second, on a busy machine still less than the
        five that a slow client has."""
        self.process.send_signal(number)
        errors = self.process.communicate(timeout=4.5)[1]
        return self.process.returncode, errors

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def png(pixels):
    """Rows of grey values as the bytes of a PNG file."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, 0, 0, 0, 0)
    raw = zlib.compress(b"".join(b"\0" + bytes(row) for row in pixels))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", raw) + chunk(b"IEND", b"")


def canvas_with(image, row, col):
    """The image of an answer on the black canvas, as rows of values."""
    canvas = [[0] * CANVAS for _ in range(CANVAS)]
    for r in range(image["rows"]):
        start = r * image["cols"]
        canvas[row + r][col:col + image["cols"]] = image["pixels"][start:start + image["cols"]]
    return canvas
