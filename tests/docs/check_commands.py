#!/usr/bin/env python3
"""Fails unless every command in results/ plans the training that its row describes.

check_commands.py PROGRAM runs the command of each row and each step with --dry-run, which needs no data.
It compares the plan with the results: names of trainings (a name contains a hash of all options), parameters,
steps, and images or tokens seen. It also compares the paper's figures with those built into the program.
"""

import functools
import json
import pathlib
import shlex
import subprocess
import sys

TOKENS = 160  # per sample of text


@functools.lru_cache(maxsize=None)
def output(program, *arguments):
    return subprocess.run([program, *arguments], check=True, text=True, stdout=subprocess.PIPE).stdout


def cells_of(text, first):
    """The cells after `first` in the line of a printed table that begins with `first`."""
    for line in text.splitlines():
        cells = line.split()
        if cells[: len(first)] == first:
            return cells[len(first) :]
    sys.exit(f"'{' '.join(first)}' not found in the plan:\n{text}")


def number(cell):
    return int(cell.replace(",", ""))


def expect(ours, expected, what):
    if ours != expected:
        sys.exit(f"{what}: expected {expected}, got {ours} in results/")


def plan_of(program, command):
    words = shlex.split(command)
    expect(words[0], "translution", command)
    return output(program, *words[1:], "--dry-run", "--threads", "1")


def check_row(program, row):
    plan = plan_of(program, row["command"])
    for run in row["runs"]:
        parameters, steps, batch = (number(cell) for cell in cells_of(plan, [run["name"]])[:3])
        expect(row["parameters"], parameters, f"parameters of {run['name']}")
        expect(run["steps"], steps, f"steps of {run['name']}")
        tokens = TOKENS if row["model"].startswith("gpt") else 1
        expect(run["seen"], run["step"] * batch * tokens, f"seen by {run['name']}")


def check_step(program, step):
    plan = plan_of(program, step["command"])
    cells = cells_of(plan, [str(step["number"]), step["model"], step["method"]])
    for name, cell in zip(("parameters", "batch", "parts"), cells):
        expect(step[name], number(cell), f"{name} of {step['command']}")


def check_paper(program, results):
    paper = json.loads(output(program, "info", "--paper-table", results["table"], "--json"))
    for row in results["rows"]:
        theirs = paper[row["number"] - 1]
        expect(row["model"], theirs["model"], f"{results['table']} row {row['number']}")
        for figure in row["figures"]:
            expect(figure["paper"], theirs["results"].get(figure["name"]), figure["name"])


def main(program):
    for path in sorted(pathlib.Path("results").glob("*.json")):
        results = json.loads(path.read_text())
        check_paper(program, results)
        for row in results["rows"]:
            check_row(program, row)
        for step in results["steps"]:
            check_step(program, step)


main(sys.argv[1])
