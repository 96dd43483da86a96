"""run_pages.py BUILD [PAGE…]: runs every command and snippet of README.md and docs/*.md, or of PAGE alone.

Each page has a folder laid out as its reader has it: the source tree with a build in it. A command runs
as it is shown, with the options of TINY put in place of the same ones or behind it. The C++ is one
program, docs_snippets, written by write_cpp.py. Ends with 1 if something fails, prints something other
than the page says, or if more than MOST_NOT_RUN snippets are not run.
"""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List, Set, Tuple

import translution
import translution.convert

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
import readers_files
from pages import Page, PageError, Snippet, read_pages
from prestart import Prestart

ROOT = Path(__file__).resolve().parents[2]
MOST_NOT_RUN = 10
SECONDS = 120  # that a command may take

# What makes a command small: the first pattern that its text has.
TINY = [
    (r"translution reproduce .*--dry-run", ""),
    (r"translution reproduce .*--one-step", "--dry-run"),
    (r"translution reproduce ", "--rows 2 --steps 1 --batch 2 --train-limit 8 --eval-limit 8 --warmup 0"),
    (r"translution train .*--help", ""),
    (r"translution launch ", "--hybrid-layers 1 --steps 1 --batch 8 --eval-limit 8"),
    (r"translution train .*--hold-out ", "--hold-out 8 --hybrid-layers 1 --steps 1 --batch 2 --eval-limit 8"),
    (r"translution train ", "--hybrid-layers 1 --steps 1 --batch 2 --eval-limit 8"),
    (r"translution generate ", "--tokens 4"),
    (r"translution bench op .*--points ", "--points 30 --dim 24 --heads 3 --dim-head 8 --batch 2 --repeats 1"),
    (r"translution bench op .*--grid 512", "--grid 64 --dim 24 --heads 3 --dim-head 8 --batch 2 --repeats 1"),
    (r"translution bench op\b", "--dim 24 --heads 3 --dim-head 8 --batch 2 --repeats 1"),
    (r"translution bench step ", "--hybrid-layers 1 --batch 2 --repeats 1"),
    (r"translution bench generate ", "--model gpt-tiny-32 --repeats 1"),
    (r"translution\.bench_step", "--method alpha_translution --batch 2 --repeats 1 --rounds 1"),
    (r"translution\.bench_points", "--batch 1 --points 20 --dim 16 --neighbours 4 --rounds 1"),
    (r"scripts/rank-speed ", "--model vit-2x24x3x48/42 --batch 8 --steps 1 --repeats 1"),
    (r"scripts/serve-latency ", "--model vit-2x24x2x48/42 --repeats 3"),
    (r"examples/python/video", "--steps 2"),
    (r"scripts/figures measure", "--only gated_position --repeats 1"),
    (r"build/benchmarks/bench_bf16", "--quick"),
    (r"build/benchmarks/", "--benchmark_list_tests"),
]


# Commands that other tests run, wherever they are shown.
ELSEWHERE = [(r"^scripts/fetch-", "fetch_scripts")]  # they need a network


class Failure(Exception):
    """A snippet does not do what its page says."""


def tiny(command: str) -> str:
    options = next((more for pattern, more in TINY if re.search(pattern, command)), "")
    for option in re.findall(r"--[\w-]+(?: [^-]\S*)?", options):
        name = option.split()[0]
        command, found = re.subn(rf"{name}(?=\s|$)( [^-]\S*)?", option, command)
        command += "" if found else f" {option}"
    return command


def expect_output(snippet: Snippet, printed: str) -> None:
    """Raises Failure unless `printed` contains the lines that the page shows, in this order. White space
    is ignored; a line "…" matches anything."""
    rest = " ".join(printed.split())
    for part in re.split(r"^\s*…\s*$", "\n".join(snippet.output), flags=re.M):
        shown = " ".join(part.split())
        if shown not in rest:
            raise Failure(f"does not print\n{part.strip()}\nbut:\n{printed}")
        rest = rest[rest.index(shown) + len(shown):]


def printed_remarks(text: str) -> List[str]:
    """The expected outputs in remarks: print(…)  # this."""
    return re.findall(r"^print\(.*\)\s+# (.+)$", text, re.M)


def environment_of(build: Path) -> Dict[str, str]:
    """The environment of all commands, but for the paths of a page's folder."""
    return {**{k: v for k, v in os.environ.items() if not k.startswith("TRANSLUTION_")},
            "PYTHONDONTWRITEBYTECODE": "1",
            "TRANSLUTION_LIBRARY": str(build / "libtranslution.so"),  # of a build outside of the tree
            "OMP_WAIT_POLICY": "passive"}  # beside other tests


class Sandbox:
    """The folder of one page; `program` is what its commands call, in this environment."""

    def __init__(self, folder: Path, build: Path, program: Path, environment: Dict[str, str]) -> None:
        self.folder, self.program = folder, program
        self.python: Dict = {}  # names that the page's Python has made
        for path in ROOT.iterdir():
            if path.name in ("README.md", "configs", "docs", "results"):  # that commands write
                (shutil.copytree if path.is_dir() else shutil.copy)(path, folder / path.name)
            elif not path.name.startswith(".") and path.name != "build" and path.resolve() != build:
                (folder / path.name).symlink_to(path)
        (folder / "build").mkdir()
        (folder / "build" / "translution").symlink_to(program)
        for path in [build / "benchmarks", *build.glob("libtranslution*.so*")]:
            (folder / "build" / path.name).symlink_to(path)
        tools = folder / "env" / "bin"  # an environment into which the package is installed
        tools.mkdir(parents=True)
        for name in ("python", "python3"):
            (tools / name).write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
            (tools / name).chmod(0o755)
        self.environment = {**environment, "PATH": f"{folder / 'build'}:{tools}:{os.environ['PATH']}",
                            "PYTHONPATH": str(folder / "python")}

    def run_command(self, snippet: Snippet) -> None:
        command = tiny(snippet.text).replace("/usr/bin/python3", sys.executable)
        result = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=self.folder,
                                env=self.environment, stdin=subprocess.DEVNULL, timeout=SECONDS,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                errors="replace")  # a text of one step's learning is any bytes
        if result.returncode != 0:
            raise Failure(f"ends with {result.returncode}: {command}\n{result.stdout}{result.stderr}")
        expect_output(snippet, result.stdout)

    def run_python(self, snippet: Snippet) -> None:
        printed, before = io.StringIO(), os.getcwd()
        os.chdir(self.folder)
        try:
            with contextlib.redirect_stdout(printed):
                exec(snippet.notes.get("run before", ""), self.python)
                exec(compile(snippet.text, snippet.place, "exec"), self.python)
        except Exception as error:
            raise Failure(f"{type(error).__name__}: {error}") from error
        finally:
            os.chdir(before)
        snippet.output = snippet.output or printed_remarks(snippet.text)
        expect_output(snippet, printed.getvalue())

    def prepare(self, snippet: Snippet) -> None:
        for name in filter(None, map(str.strip, snippet.notes.get("the reader has", "").split(","))):
            readers_files.make(name, self.folder, self.program)


class Names:
    """The names that a code span may use: options and commands of the program, make targets, scripts."""

    def __init__(self, program: Path) -> None:
        def output(*arguments: str) -> str:
            return subprocess.run([program, *arguments], check=True, capture_output=True,
                                  text=True).stdout
        manual = output("manual").replace("\\-", "-")
        self.options = set(re.findall(r"--[a-z0-9][a-z0-9-]*", manual))
        commands = output("--help").split("\n\nOptions:\n", 1)[0]
        self.verbs = re.findall(r"^  (\w+)", commands, re.M)
        self.targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))

    def complaint(self, span: str) -> str:
        """The error; empty if there is none."""
        words = span.split()
        if words[0] in ("cmake", "pip", "python", "python3", "apt-get"):
            return ""
        unknown = [o for o in re.findall(r"(?<!\S)--[a-z][a-z-]*", span) if o not in self.options]
        if unknown:
            return f"the program has no option {unknown[0]}"
        if words[0] in ("translution", "build/translution") and len(words) > 1 and \
                re.fullmatch("[a-z]+", words[1]) and words[1] not in self.verbs:
            return f"the program has no command {words[1]}"
        if words[0] == "make" and words[1:] and words[1] not in self.targets:
            return f"the Makefile has no target {words[1]}"
        attribute = re.match(r"translution\.([a-z_]+)\b", span)
        if attribute and not hasattr(translution, attribute.group(1)):
            return f"the Python package has no {attribute.group(1)}"
        script = re.match(r"scripts/[\w.-]+", span)
        if script and not (ROOT / script.group()).exists():
            return f"{script.group()} is not there"
        return ""


class Report:
    def __init__(self, tests: Set[str]) -> None:
        self.tests = tests
        self.run: Dict[str, int] = {}
        self.elsewhere: Dict[str, int] = {}
        self.not_run: Dict[Tuple[str, str], None] = {}  # place and reason, once for a block
        self.names = 0
        self.failures: List[str] = []

    def fail(self, place: str, why: str) -> None:
        self.failures.append(f"{place}: {why}")
        print(f"{place}: {why}", flush=True)

    def left_to_others(self, snippet: Snippet) -> bool:
        """True if another test runs the snippet, or none does."""
        if "not run" in snippet.notes:
            self.not_run[snippet.place, snippet.notes["not run"]] = None
            return True
        known = (test for pattern, test in ELSEWHERE if re.search(pattern, snippet.text))
        test = snippet.notes.get("run by", next(known, None))
        if test is None:
            return False
        if test not in self.tests:
            self.fail(snippet.place, f"is said to be run by '{test}', which ctest does not know")
        self.elsewhere[test] = self.elsewhere.get(test, 0) + 1
        return True

    def close(self) -> int:
        kinds = {"sh": "commands", "python": "Python snippets", "cpp": "C++ snippets"}
        print("run:", ", ".join(f"{self.run.get(k, 0)} {name}" for k, name in kinds.items()))
        print("run by other tests:", ", ".join(f"{n} by {t}" for t, n in sorted(self.elsewhere.items())))
        print(f"names of options, commands, targets and scripts that are there: {self.names}")
        print(f"not run: {len(self.not_run)}, at most {MOST_NOT_RUN}")
        for place, reason in self.not_run:
            print(f"  {place}: {reason}")
        if len(self.not_run) > MOST_NOT_RUN:
            self.failures.append("too many snippets are not run")
        print(f"failed: {len(self.failures)}")
        return 1 if self.failures else 0


def key_of(snippet: Snippet) -> str:
    """A key that is equal for equivalent commands without side effects, which run once for all pages."""
    if not re.search(r"translution (bench|info) |\.bench_step|build/benchmarks/|scripts/figures ",
                     snippet.text):
        return snippet.place + snippet.text
    options = re.findall(r"--[\w-]+(?: [^-]\S*)?", tiny(snippet.text))
    program = snippet.text.split(" --", 1)[0].replace("build/translution", "translution")
    return " ".join([re.sub("OPENBLAS_CORETYPE=\\S+ ", "", program), *sorted(options)])


def run_page(page: Page, sandbox: Sandbox, report: Report, done: Set[str]) -> None:
    for snippet in page.snippets:
        if report.left_to_others(snippet) or snippet.language == "cpp":
            continue
        if snippet.language == "cmake":
            report.fail(snippet.place, "CMake is not run here; name the test that does: run by")
            continue
        start = time.time()
        try:
            sandbox.prepare(snippet)
            if snippet.language == "python":
                sandbox.run_python(snippet)
            elif key_of(snippet) not in done:
                sandbox.run_command(snippet)
                done.add(key_of(snippet))
        except (Failure, KeyError, subprocess.SubprocessError) as error:
            report.fail(snippet.place, str(error))
        report.run[snippet.language] = report.run.get(snippet.language, 0) + 1
        print(f"{snippet.place}  {time.time() - start:.1f} s  "
              f"{tiny(snippet.text) if snippet.language == 'sh' else snippet.language}", flush=True)


def run_cpp(program: Path, pages: List[Page], report: Report) -> None:
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run([program], cwd=folder, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, timeout=SECONDS)
    if result.returncode != 0:
        report.fail(program.name, f"ends with {result.returncode}: {result.stderr}")
    parts = re.split(r"^== (.*)\n", result.stdout, flags=re.M)
    printed = dict(zip(parts[1::2], parts[2::2]))
    for snippet in (s for page in pages for s in page.snippets if s.language == "cpp"):
        if {"not run", "run by"} & set(snippet.notes):
            continue
        report.run["cpp"] = report.run.get("cpp", 0) + 1
        try:
            if snippet.place not in printed:
                raise Failure(f"is not in {program.name}; build it again")
            expect_output(snippet, printed[snippet.place])
        except Failure as error:
            report.fail(snippet.place, str(error))


def check_files(pages: List[Page], report: Report) -> None:
    for snippet in (s for page in pages for s in page.snippets if "same as" in s.notes):
        path = snippet.notes["same as"]
        if (ROOT / path).read_text().rstrip() != snippet.text.rstrip():
            report.fail(snippet.place, f"differs from {path}; copy one into the other")


def check_names(pages: List[Page], names: Names, report: Report) -> None:
    for page in pages:
        for line, span in page.names:
            complaint = names.complaint(span)
            if complaint:
                report.fail(f"{page.name}:{line}", f"{complaint}: `{span}`")
            report.names += 1


def tests_of(build: Path) -> Set[str]:
    listed = subprocess.run(["ctest", "-N"], cwd=build, check=True, capture_output=True, text=True)
    return set(re.findall(r"Test +#\d+: (\S+)", listed.stdout))


def main(build: Path, only: List[str]) -> int:
    names = Names(build / "translution")
    try:
        pages = [page for page in read_pages(ROOT, names.verbs) if not only or page.name in only]
    except PageError as error:
        print(error)
        return 1
    report = Report(tests_of(build))
    check_names(pages, names, report)
    check_files(pages, report)
    run_cpp(build / "tests" / "docs_snippets", pages, report)
    done: Set[str] = set()
    tests = build / "tests"
    with Prestart(build / "translution", tests / "libprestart.so", environment_of(build)) as prestart:
        for page in pages:
            with tempfile.TemporaryDirectory(prefix="page-", dir=build) as folder:
                sandbox = Sandbox(Path(folder), build, tests / "prestarted", prestart.environment)
                run_page(page, sandbox, report, done)
    return report.close()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
