"""README.md, CONTRIBUTING.md and docs/*.md as data: every command and snippet, with the notes about it.

Comments right above a block or table, or right before a code span:

    <!-- the reader has: data/mnist, runs/alpha -->    files that are made first (readers_files.py)
    <!-- run before: images = torch.rand(1, 84) -->    code of the same language that the page leaves out
    <!-- run before, C++: const int n = 1; -->         the same for one column of a table
    <!-- output -->                                    this block is what the snippet before it prints
    <!-- same as: examples/cpp/some.cpp -->            the block is that file, to the letter
    <!-- run by: installed -->                         the test of ctest that runs it
    <!-- not run: takes an hour -->                    nothing runs it
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Tuple

LANGUAGES = {"sh": "sh", "bash": "sh", "console": "sh", "python": "python", "cpp": "cpp",
             "cmake": "cmake"}
NO_CODE = ("bibtex", "math", "text")
NOTES = ("the reader has", "run before", "run before, C++", "run before, Python", "output", "same as",
         "run by", "not run")
COLUMNS = {"C++": "cpp", "Python": "python"}

_COMMENT = re.compile(r"<!--\s*(.*?)\s*-->", re.S)
_SPAN = re.compile(r"<!--.*?-->|`([^`]+)`", re.S)
_PROGRAM = re.compile(r"(build/[\w/]*\w|scripts/[\w-]+|env/bin/\w+|/usr/bin/python3|"
                      r"translution|apt-get|c\+\+|cmake|ctest|make|mkdocs|pip|python3?|taskset)$")
# A word for what the reader puts there: DIR, N, tokens:DIR; or an ellipsis.
_PLACEHOLDER = re.compile(r"…|(?<![\w=$-])[A-Z]+(?![\w=])")


class PageError(Exception):
    """The source of a page says something that makes no sense."""


@dataclass
class Snippet:
    page: str
    line: int
    language: str
    text: str
    notes: Dict[str, str] = field(default_factory=dict)
    output: List[str] = field(default_factory=list)  # lines; "…" stands for any number of them
    cells: bool = False  # a column of a table: each line is a cell

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass
class Page:
    name: str
    snippets: List[Snippet]  # commands, blocks and cells, from top to bottom
    names: List[Tuple[int, str]]  # line and text of code spans that are no whole command


def read_notes(comments: List[str], place: str) -> Dict[str, str]:
    """The notes among the comments above a snippet."""
    notes = {}
    for comment in comments:
        name, _, value = comment.partition(":")
        if name not in NOTES:
            continue
        if name != "output" and not value.strip():
            raise PageError(f"{place}: '{name}' says nothing")
        notes[name] = "\n".join(filter(None, [notes.get(name), value.strip()]))
    return notes


def _comments_above(lines: List[str], index: int) -> List[str]:
    comments = []
    while index > 0:
        found = _COMMENT.fullmatch(lines[index - 1].strip())
        if lines[index - 1].strip() and not found:
            break
        if found:
            comments.insert(0, found.group(1))
        index -= 1
    return comments


def split_commands(text: str) -> List[str]:
    """The commands of a block: one a line, longer with a backslash at its end; without remarks."""
    joined = re.sub(r"\\\n\s*", "", text)
    without = (re.sub(r"(^|\s)# .*$", "", line).strip() for line in joined.splitlines())
    return [line for line in without if line]


def _console(page: str, line: int, text: str, notes: Dict[str, str]) -> List[Snippet]:
    snippets: List[Snippet] = []
    for row in text.splitlines():
        if row.startswith("$ "):
            snippets.append(Snippet(page, line, "sh", row[2:], notes))
        elif snippets:
            snippets[-1].output.append(row)
    return snippets


def _of_block(page: str, line: int, word: str, text: str, notes: Dict[str, str]) -> List[Snippet]:
    if word == "console":
        return _console(page, line, text, notes)
    if LANGUAGES[word] == "sh":
        return [Snippet(page, line, "sh", command, notes) for command in split_commands(text)]
    return [Snippet(page, line, LANGUAGES[word], text, notes)]


def _take_blocks(page: str, lines: List[str], generated: List[bool]) -> List[Snippet]:
    """The snippets of all fenced blocks, which are emptied."""
    snippets: List[Snippet] = []
    start = None
    for i, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = i
            continue
        place, word = f"{page}:{start + 1}", lines[start][3:].strip()
        text = "\n".join(lines[start + 1:i])
        notes = read_notes(_comments_above(lines, start), place)
        if generated[start]:
            notes = {"run by": "tables_are_results"}
        if "output" in notes:
            snippets[-1].output = text.splitlines()
        elif word in LANGUAGES:
            snippets += _of_block(page, start + 1, word, text, notes)
        elif word not in NO_CODE:
            raise PageError(f"{place}: a block of '{word}'; expected one of "
                            f"{', '.join([*LANGUAGES, *NO_CODE])}")
        lines[start:i + 1] = ["(block)"] * (i + 1 - start)  # so that notes above it end there
        start = None
    if start is not None:
        raise PageError(f"{page}:{start + 1}: the block has no end")
    return snippets


def cells(row: str) -> List[str]:
    """The cells of a line of a table; a bar inside of code does not end one."""
    parts = re.split(r"\|(?=(?:[^`]*`[^`]*`)*[^`]*$)", row.strip().strip("|"))
    return [part.strip() for part in parts]


def _take_tables(page: str, lines: List[str]) -> List[Snippet]:
    """The code under "C++" and "Python" in tables; these cells are emptied."""
    snippets = []
    for i, line in enumerate(lines):
        if not line.startswith("|") or (i > 0 and lines[i - 1].startswith("|")):
            continue
        columns = {c: COLUMNS[head] for c, head in enumerate(cells(line)) if head in COLUMNS}
        if not columns:
            continue
        notes = read_notes(_comments_above(lines, i), f"{page}:{i + 1}")
        for column, language in columns.items():
            head = cells(line)[column]
            snippets.append(Snippet(page, i + 1, language, "", {
                **{k: v for k, v in notes.items() if not k.startswith("run before")},
                "run before": notes.get(f"run before, {head}", "")}, cells=True))
            j = i + 2
            while j < len(lines) and lines[j].startswith("|"):
                cell = cells(lines[j])[column]
                snippets[-1].text += f"{cell_code(cell, language)}\n"
                j += 1
        while i + 2 < j:
            j -= 1
            lines[j] = "|".join("" if c in columns else cell for c, cell in enumerate(cells(lines[j])))
    return snippets


def cell_code(cell: str, language: str) -> str:
    """The code of a cell on one line; in C++ headers that are named there become includes."""
    code = []
    for span in re.findall(r"`([^`]+)`", cell):
        if re.fullmatch(r"[\w/]+\.h", span):
            code.insert(0, f'#include "translution/{span}"\n')
        elif not span.startswith("translution "):
            code.append(span if language == "python" or span.endswith(";") or "#" in span
                        else span + ";")
    separator = "; " if language == "python" else " "
    return "".join(c for c in code if c.startswith("#")) + separator.join(
        c for c in code if not c.startswith("#"))


def whole_command(span: str, verbs: List[str]) -> str:
    """The command that a code span is; empty where it only names one, or is something else."""
    words = [word for word in span.split() if not re.match(r"[A-Z_]+=", word)]
    if _PLACEHOLDER.search(re.sub(r"\b[A-Z_]+=\S*", "", span)) or len(words) < 1:
        return ""
    if words[0] in verbs and len(words) > 2 and any(word.startswith("--") for word in words):
        return "translution " + span
    if re.match(r"build/(benchmarks|tests)/\w", words[0]):
        return span
    if not _PROGRAM.match(words[0]) or re.fullmatch(r"translution (bench|data) \w+|python3? -m \S+", span):
        return ""
    of_program = words[0].split("/")[-1] == "translution"
    return span if len(words) > (2 if of_program or words[0] == "make" else 1) else ""


def _take_spans(page: str, text: str, verbs: List[str]) -> Tuple[List[Snippet], List[Tuple[int, str]]]:
    snippets, names, comments, end = [], [], [], 0
    for found in _SPAN.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        if text[end:found.start()].strip():
            comments = []
        end = found.end()
        if found.group(1) is None:
            comments.append(_COMMENT.match(found.group(0)).group(1))
            continue
        span = " ".join(found.group(1).split())
        command = whole_command(span, verbs)
        if command:
            notes = read_notes(comments, f"{page}:{line}")
            snippets.append(Snippet(page, line, "sh", command, notes))
        else:
            names.append((line, span))
        comments = []
    return snippets, names


def read_page(name: str, text: str, verbs: List[str]) -> Page:
    """`verbs` are the commands of the program, by which `info --model …` is known to be one."""
    lines = text.splitlines()
    inside, generated = False, []
    for line in lines:
        inside = (inside or re.match(r"<!-- (results|summary) ", line) is not None) \
            and line != "<!-- end of results -->"
        generated.append(inside)
    snippets = _take_blocks(name, lines, generated)
    snippets += [column for column in _take_tables(name, lines) if column.text.strip()]
    of_spans, names = _take_spans(name, "\n".join(lines), verbs)
    return Page(name, sorted(snippets + of_spans, key=lambda s: s.line), names)


def read_pages(root: Path, verbs: List[str] = ()) -> List[Page]:
    paths = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))]
    return [read_page(str(path.relative_to(root)), path.read_text(), list(verbs)) for path in paths]
