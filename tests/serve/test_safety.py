"""Requests that are wrong, slow, many or from elsewhere."""

import json
import os
import random
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from served import Served

SEED = 20261118


def raw(port, data, seconds=30.0):
    """What the server sends for these bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
            return b"".join(parts)
        except (ConnectionError, socket.timeout):
            return b""


def is_well(served):
    assert served.process.poll() is None, served.process.communicate()[1]
    return served.ask("/api/runs").status == 200


def valid_requests(served):
    image = served.ask("/api/sample").json["image"]
    body = json.dumps({"image": image, "place": [3, 4]}).encode()
    head = "{} {} HTTP/1.1\r\nHost: localhost:8765\r\nContent-Length: {}\r\n\r\n"
    made = [head.format("GET", path, 0).encode() for path in ("/", "/api/runs", "/api/log?run=1", "/main.js")]
    made += [head.format("POST", path, len(body)).encode() + body
             for path in ("/predict?run=0", "/api/map?run=1&known=3", "/api/picture")]
    return made


def damaged(choose, request):
    data = bytearray(request)
    for _ in range(choose.randint(1, 8)):
        at = choose.randrange(len(data))
        kind = choose.randrange(4)
        if kind == 0:
            data[at] = choose.randrange(256)
        elif kind == 1:
            del data[at:at + choose.randint(1, 40)]
        elif kind == 2:
            data[at:at] = bytes(choose.randrange(256) for _ in range(choose.randint(1, 40)))
        else:
            data[at:at] = choose.choice([b"\r\n", b"%00", b"../", b"\0", b"{", b"[" * 99, b"Content-Length: -1\r\n",
                                         b"Transfer-Encoding: chunked\r\n", b"Range: bytes=0-,1-\r\n"])
        if not data:
            return b"\n"
    return bytes(data)


def test_ten_thousand_damaged_requests_leave_it_well(served):
    choose = random.Random(SEED)
    requests = valid_requests(served)
    cases = [damaged(choose, choose.choice(requests)) for _ in range(10000)]
    refusals = []

    def send(part):
        for case in part:
            try:
                answer = raw(served.port, case, 0.5)
            except OSError:
                continue
            refusals.append(answer.startswith(b"HTTP/1.1 4"))
    senders = [threading.Thread(target=send, args=(cases[i::16],)) for i in range(16)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert is_well(served)
    assert sum(refusals) > 1000  # the server did answer


@pytest.mark.parametrize("request_bytes, status", [
    (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
    (b"GET / HTTP/1.1\r\n\r\n", 403),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n", 403),
    (b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
    (b"GET /%2e%2e/%2fetc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
    (b"OPTIONS / HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
    (b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\nx", 413),
    (b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", 400),
    (b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=a\r\n"
     b"Content-Length: 1\r\n\r\nx", 400),
    (b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
], ids=lambda value: str(value)[:60])
def test_what_is_refused_says_so(served, request_bytes, status):
    answer = raw(served.port, request_bytes)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:200]
    assert "error" in json.loads(body), body
    assert b"Access-Control-Allow" not in head
    assert is_well(served)


def test_every_answer_has_the_policy(served):
    for path in ("/", "/main.js", "/api/runs", "/nothing"):
        headers = served.ask(path).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in headers


def test_ranges_are_ignored(served):
    ranges = b"bytes=" + b"0-999," * 1000 + b"0-9"
    answer = raw(served.port, b"GET /main.js HTTP/1.1\r\nHost: localhost\r\nRange: " + ranges + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ") and len(answer) < 20000


def test_a_body_without_end_is_cut_off(served):
    with socket.create_connection(("127.0.0.1", served.port), timeout=10) as connection:
        connection.sendall(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        sent = 0
        try:
            while sent < 64 << 20:
                connection.sendall(b"10000\r\n" + b"a" * 65536 + b"\r\n")
                sent += 65536
        except OSError:
            pass
    assert sent < 32 << 20
    assert is_well(served)


def connections_of(process):
    """Local and remote address of each TCP socket, as the kernel writes them."""
    links = {os.readlink(path) for path in Path(f"/proc/{process}/fd").iterdir()}
    rows = [line.split() for kind in ("tcp", "tcp6") for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]]
    return [(row[1], row[2]) for row in rows if f"socket:[{row[9]}]" in links]


def test_it_listens_on_this_machine_alone_and_calls_nobody(served):
    served.ask("/predict", json.dumps({"image": {"rows": 1, "cols": 1, "pixels": [9]}}).encode())
    found = connections_of(served.process.pid)
    assert ("0100007F:%04X" % served.port, "00000000:0000") in found
    assert all(local.startswith("0100007F:") and remote.startswith(("0100007F:", "00000000:")) for local, remote in found)


def test_open_opens_the_address(both, tmp_path):
    opener = tmp_path / "xdg-open"
    opener.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/part && mv {tmp_path}/part {tmp_path}/opened\n')
    opener.chmod(0o755)
    page = Served(both[0], "--open", path=f"{tmp_path}:{os.environ['PATH']}")
    try:
        end = time.time() + 30
        while not (tmp_path / "opened").exists():
            assert time.time() < end
            time.sleep(0.02)
        assert (tmp_path / "opened").read_text().strip() == page.url
    finally:
        page.close()


def test_slow_and_dead_clients_hold_nobody_up(served):
    dead = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(100)]
    for connection in dead[::2]:
        connection.sendall(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
    try:
        start = time.time()
        assert is_well(served)
        assert time.time() - start < 4  # dead ones are cut off after 5 s
    finally:
        for connection in dead:
            connection.close()


def test_slow_clients_are_cut_off(served):
    with socket.create_connection(("127.0.0.1", served.port), timeout=15) as connection:
        start = time.time()
        try:
            for letter in b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 1000:
                connection.sendall(bytes([letter]))
                time.sleep(0.1)
        except OSError:
            pass
        assert time.time() - start < 12


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_within_a_second_whatever_goes_on(both, number):
    page = Served(*both)
    image = page.ask("/api/sample").json["image"]
    page.ask("/api/map?run=1", json.dumps({"image": image}).encode())
    held = socket.create_connection(("127.0.0.1", page.port))
    held.sendall(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
    time.sleep(0.3)
    assert page.stop(number) == (0, "")
    held.close()
