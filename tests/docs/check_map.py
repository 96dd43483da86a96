#!/usr/bin/env python3
"""Fails unless docs/ARCHITECTURE.md matches the source tree.

docs/ARCHITECTURE.md names every file of translution/, apps/translution/, scripts/ and python/translution/ in the
part about its folder, and no others. Paths in all pages exist. Code names in PAGES_OF_CODE exist in the sources. docs/api.md names every argument of the Python layer.
"""

import ast
import fnmatch
import os
import pathlib
import re
import sys

MAP = "docs/ARCHITECTURE.md"
ROOT_PAGES = ("README.md", "CONTRIBUTING.md")
PAGES_OF_CODE = (MAP, "docs/adding_an_op.md", "docs/api.md", "CONTRIBUTING.md")
SOURCES = ("translution", "apps", "python", "tests", "scripts", "cmake", "benchmarks", "examples")
STYLES = {"snake_case", "CamelCase", "kCamel"}
ENDINGS = ("h", "cpp", "py", "css", "json", "cmake", "sh", "txt", "toml", "md", "js")
complaints = []


def in_backticks(text):
    return re.findall(r"`([^`\n]+)`", text)


def patterns_of(word):
    """`a.h/.cpp` as a.h and a.cpp, `cmd_<verb>.cpp` as cmd_*.cpp."""
    stem, slash, ending = word.partition("/.")
    first = re.sub(r"<\w+>", "*", stem)
    return [first, first.rsplit(".", 1)[0] + "." + ending] if slash else [first]


def parts_of_the_map(text):
    """Folders with the words in backticks that stand for their files."""
    # A folder of the library: its heading, and the first column of the table or the line behind it.
    for match in re.finditer(r"^\*\*`([\w/]+)/`\*\*(.*?)(?=^\*\*`|^Around|\Z)", text, re.M | re.S):
        folder, body = match.groups()
        rows = re.findall(r"^\| (.*?) \|", body, re.M)
        words = in_backticks(" ".join(rows) if rows else body)
        yield folder if folder.startswith(("apps", "python")) else "translution/" + folder, words
    for folder in ("apps/translution", "scripts", "translution"):
        row = re.search(rf"^\| `{folder}/` \|(.*)\|$", text, re.M)
        yield folder, in_backticks(row.group(1) if row else "")


def check_folder(folder, words):
    files = {path.name for path in pathlib.Path(folder).iterdir() if path.is_file()}
    here = [word.removeprefix(folder + "/") for word in words if " " not in word]
    patterns = [pattern for word in here for pattern in patterns_of(word)]
    for pattern in patterns:
        # A word without a dot may be a name of code or a command, unless files here have none.
        if ("." in pattern or folder == "scripts") and not fnmatch.filter(files, pattern):
            complaints.append(f"{MAP}: {folder}/ has no {pattern}")
    for name in sorted(files):
        if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            complaints.append(f"{MAP} does not name {folder}/{name}")


def check_map():
    text = pathlib.Path(MAP).read_text()
    parts = dict(parts_of_the_map(text))
    folders = {str(path.parent) for top in SOURCES[:2] for path in pathlib.Path(top).rglob("*") if path.is_file()}
    for folder in sorted(folders - set(parts)):
        complaints.append(f"{MAP} has no part about {folder}/")
    for folder, words in parts.items():
        check_folder(folder, words)


def check_paths():
    """`ops/check.h` and the like, from the root or from translution/."""
    pattern = re.compile(rf"(?:\w[\w-]*/)+[\w-]+\.(?:{'|'.join(ENDINGS)})")
    for page in [*map(pathlib.Path, ROOT_PAGES), *sorted(pathlib.Path("docs").glob("*.md"))]:
        for word in in_backticks(re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)):
            if not pattern.fullmatch(word) or word.startswith(("data/", "out/", "torch/")):
                continue
            if not any(pathlib.Path(root, word).exists() for root in (".", "translution", "docs")):
                complaints.append(f"{page} names {word}, which is not there")


def check_code():
    paths = [path for top in SOURCES for path in pathlib.Path(top).rglob("*") if path.is_file()]
    texts = [path.read_text(errors="ignore") for path in paths if path.suffix[1:] in ENDINGS or not path.suffix]
    names = {name for text in texts for name in re.findall(r"\w+(?:::\w+)+|\w+", text)}
    names |= {part for name in names for part in name.split("::")} | {path.stem for path in paths}
    for page in PAGES_OF_CODE:
        text = re.sub(r"^```.*?^```", "", pathlib.Path(page).read_text(), flags=re.M | re.S)
        for word in in_backticks(text):
            if re.fullmatch(r"[A-Za-z]\w+(::\w+)*", word) and word not in names | STYLES:
                complaints.append(f"{page} names {word}, which is not in the sources")


def check_api():
    layer = next(
        node
        for node in ast.parse(pathlib.Path("python/translution/_signatures.py").read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == "AttentionArguments"
    )
    start = next(node for node in layer.body if getattr(node, "name", "") == "__init__")
    page = in_backticks(pathlib.Path("docs/api.md").read_text())
    for argument in start.args.args[1:] + start.args.kwonlyargs:
        if argument.arg not in page:
            complaints.append(f"docs/api.md does not name {argument.arg}, an argument of Attention")


os.chdir(pathlib.Path(__file__).parents[2])
check_map()
check_paths()
check_code()
check_api()
if complaints:
    sys.exit("\n".join(complaints))
