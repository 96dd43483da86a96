"""write_cpp.py OUT: one program of all C++ in README.md and docs/*.md.

A block is a function; so is a column of a table, where each cell may use what those above it declare,
and hide it. Every function runs in turn, below a line with its place; an exception ends the program with 1.
"""

import re
import sys
from pathlib import Path
from typing import List, Tuple

from pages import Snippet, read_pages

HEAD = """// Written by tests/docs/write_cpp.py.
#include <exception>
#include <iostream>
"""
MAIN = """
int main() {{
  const struct {{ const char* place; void (*run)(); }} snippets[] = {{
{table}  }};
  for (const auto& snippet : snippets) {{
    std::cout << "== " << snippet.place << std::endl;
    try {{
      snippet.run();
    }} catch (const std::exception& error) {{
      std::cerr << snippet.place << ": " << error.what() << std::endl;
      return 1;
    }}
  }}
}}
"""


def function_name(snippet: Snippet) -> str:
    return re.sub(r"\W", "_", f"{snippet.page}_{snippet.line}")


def split_includes(text: str) -> Tuple[List[str], List[str]]:
    lines = text.splitlines()
    includes = [line for line in lines if line.startswith("#include")]
    return includes, [line for line in lines if line.strip() and not line.startswith("#include")]


def function(snippet: Snippet, body: List[str]) -> str:
    where = f'#line {snippet.line} "{snippet.page}"\n'
    if any(line.startswith("int main()") for line in body):
        text = "\n".join(body).replace("int main()", f"static void {function_name(snippet)}()")
        return f"{where}{text}\n"
    before = snippet.notes.get("run before", "")
    rows = "\n".join(body)
    if snippet.cells:  # each in a scope of its own inside of the one before it
        rows = "".join(f"{{ {line}\n" for line in body) + "}" * len(body)
    return f"{where}static void {function_name(snippet)}() {{ {before}\n{rows}\n}}\n"


def program(snippets: List[Snippet]) -> str:
    includes, functions = [], []
    for snippet in snippets:
        more, body = split_includes(snippet.text)
        includes += [line for line in more if line not in includes]
        functions.append(function(snippet, body))
    table = "".join(f'    {{"{s.place}", {function_name(s)}}},\n' for s in snippets)
    return "\n".join([HEAD, *includes, "", *functions]) + MAIN.format(table=table)


if __name__ == "__main__":
    root = Path(__file__).resolve().parents[2]
    all_cpp = [s for page in read_pages(root) for s in page.snippets
               if s.language == "cpp" and "not run" not in s.notes and "run by" not in s.notes]
    Path(sys.argv[1]).write_text(program(all_cpp))
