#!/usr/bin/env python3
"""Asks a small run's page from 200 clients for SECONDS (30), and fails unless each request gets an answer or a 503,
and memory stays flat."""

import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter

from served import Runs, Served

CLIENTS, SECONDS = 200, float(os.environ.get("SECONDS", 30))
MOST_GROWTH = 64 << 20  # bytes, after the first third of the time


def client(url, number, body, end, outcomes):
    path = ["predict?run=0", "api/map?run=1", "api/attention?run=1&query=3", "api/runs", "main.js"][number % 5]
    data = body if path.split("?")[0] in ("predict", "api/map", "api/attention") else None
    while time.time() < end:
        try:
            with urllib.request.urlopen(urllib.request.Request(url + path, data=data), timeout=30) as response:
                response.read()
                outcomes[response.status] += 1
        except urllib.error.HTTPError as error:
            error.read()
            outcomes[error.code] += 1
        except OSError as error:
            outcomes[str(error)] += 1


def main():
    runs = Runs()
    page = Served(runs.trained("self_attention"), runs.trained("alpha_translution"))
    try:
        image = page.ask("/api/sample").json["image"]
        body = json.dumps({"image": image, "place": [3, 5]}).encode()
        outcomes = [Counter() for _ in range(CLIENTS)]
        end = time.time() + SECONDS
        clients = [threading.Thread(target=client, args=(page.url, i, body, end, outcomes[i])) for i in range(CLIENTS)]
        for one in clients:
            one.start()
        time.sleep(SECONDS / 3)
        before = page.resident()
        for one in clients:
            one.join()
        growth = page.resident() - before
        total = sum(outcomes, Counter())
        silent = sum(1 for outcome in outcomes if outcome[200] + outcome[503] == 0)
        print(f"  {CLIENTS} clients: {total[200]:,} answers, {total[503]:,} times 503, "
              f"{sum(total.values()) - total[200] - total[503]} others; memory grew by {growth / 2**20:.1f} MiB")
        stopped = page.stop()
        if set(total) - {200, 503} or silent or growth > MOST_GROWTH or stopped != (0, ""):
            sys.exit(f"  others: {dict(total)}, clients without an answer: {silent}, end: {stopped}")
    finally:
        page.close()
        runs.close()


main()
