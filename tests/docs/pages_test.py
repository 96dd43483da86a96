"""The test of the pages can fail: what pages.py finds in a page, and what run_pages.py refuses."""

import sys
import unittest

import run_pages
from pages import PageError, Snippet, read_page, split_commands
from write_cpp import program

FENCE = "```"
VERBS = ["bench", "info", "train"]


def snippets(text):
    return read_page("page.md", text, VERBS).snippets


def block(language, *lines):
    return "\n".join([FENCE + language, *lines, FENCE]) + "\n"


class Pages(unittest.TestCase):
    def test_commands_of_blocks_and_text(self):
        found = snippets(block("sh", "translution list  # all", "one \\", "  two") +
                         "Try `info --model vit-a/12 --cls`, `train --config` or `bench op --batch N`.\n")
        self.assertEqual([s.text for s in found],
                         ["translution list", "one two", "translution info --model vit-a/12 --cls"])
        self.assertEqual([s.line for s in found], [1, 1, 6])

    def test_notes_belong_to_what_is_below_or_behind_them(self):
        found = snippets("<!-- not run: slow -->\n\n" + block("sh", "make run") +
                         "<!-- run by: python --> `pip install ./python` `pip install x`\n")
        self.assertEqual([s.notes for s in found], [{"not run": "slow"}, {"run by": "python"}, {}])

    def test_columns_of_tables_are_code(self):
        found = snippets("<!-- run before, C++: int x; -->\n\n| | C++ | Python |\n|---|---|---|\n"
                         "| a | `f(x)` (`nn/a.h`) | `f(x)`, `g(x)` |\n| b | `int y = 1;` | – |\n")
        self.assertEqual(found[0].text, '#include "translution/nn/a.h"\nf(x);\nint y = 1;\n')
        self.assertEqual(found[1].text, "f(x); g(x)\n\n")
        self.assertIn("{ int x;\n{ f(x);\n{ int y = 1;\n}}", program(found[:1]))

    def test_what_says_nothing_is_refused(self):
        for text in ("<!-- not run: -->\n" + block("sh", "make"), block("", "make"), "```sh\nmake\n"):
            with self.assertRaises(PageError):
                snippets(text)

    def test_remarks_and_continued_lines(self):
        self.assertEqual(split_commands("a --x '#1'  # why\n# all\nb \\\n  c"), ["a --x '#1'", "b c"])


class Run(unittest.TestCase):
    def test_sizes_replace_what_is_there(self):
        self.assertEqual(run_pages.tiny("translution generate runs/a --tokens 64 --seed 1"),
                         "translution generate runs/a --tokens 4 --seed 1")
        self.assertEqual(run_pages.tiny("translution generate runs/a"),
                         "translution generate runs/a --tokens 4")

    def test_output_in_any_layout_but_in_order(self):
        shown = Snippet("page.md", 1, "sh", "", output=["a  1", "…", "b 2"])
        run_pages.expect_output(shown, "a 1\nand more\n  b 2\n")
        for printed in ("b 2\na 1", "a 1\nb 3"):
            with self.assertRaises(run_pages.Failure):
                run_pages.expect_output(shown, printed)

    def test_too_many_or_unknown(self):
        report = run_pages.Report({"installed"})
        for line in range(run_pages.MOST_NOT_RUN):
            report.left_to_others(Snippet("page.md", line, "sh", "x", {"not run": "slow"}))
        self.assertEqual(report.close(), 0)
        report.left_to_others(Snippet("page.md", 99, "sh", "x", {"not run": "slow"}))
        self.assertEqual(report.close(), 1)
        report = run_pages.Report({"installed"})
        report.left_to_others(Snippet("page.md", 1, "sh", "x", {"run by": "nobody"}))
        self.assertEqual(report.close(), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
