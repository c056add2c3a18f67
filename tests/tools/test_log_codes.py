#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the log codes of the source are documented, and no others.

A code is a text "C1234" in the source. Those of a component stand on its page under "Log codes",
all others in docs/log_codes.md, with the level where the call names it. A code in two components
has a row on the page of each.
"""
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402

FOLDERS = ["base", "config", "pipeline", "receivers", "processors", "exporters", "extensions", "cli"]
CODE = re.compile(r'"(C[1-9]\d{3})"')
CALL = re.compile(r'\(\s*(?:\w+,\s*)?LOG_(DEBUG|INFO|WARN|ERROR),[^;"]*"(C[1-9]\d{3})"')
ROW = re.compile(r"^\| *`(C\d{4})` *\|" + r" *([^|]*?) *\|" * 3 + "$", re.M)
MADE = re.compile(r"<!-- log_codes -->.*<!-- /log_codes -->", re.S)
LEVELS = {"debug", "info", "warn", "error"}
OWN = os.path.join("docs", "log_codes.md")


def page_of(path):
    """The page that has the codes of a source file."""
    page = os.path.join(*os.path.relpath(path, ROOT).split(os.sep)[:2], "README.md")
    return page if os.path.exists(os.path.join(ROOT, page)) else OWN


def in_sources():
    """{(code, page): levels that calls name}"""
    found = {}
    for folder in FOLDERS:
        for path in glob.glob(os.path.join(ROOT, folder, "**", "*.[ch]"), recursive=True):
            with open(path, encoding="utf-8") as file:
                text = re.sub(r"//.*", "", file.read())
            for code in CODE.findall(text):
                found.setdefault((code, page_of(path)), set())
            for level, code in CALL.findall(text):
                found[code, page_of(path)].add(level.lower())
    return found


def main():
    checks = Checks()
    sources, rows = in_sources(), {}
    pages = glob.glob(os.path.join(ROOT, "*", "*", "README.md")) + [os.path.join(ROOT, OWN)]
    for path in pages:
        page = os.path.relpath(path, ROOT)
        with open(path, encoding="utf-8") as file:
            text = MADE.sub("", file.read())
        for code, level, meaning, remedy in ROW.findall(text):
            checks.check((code, page) not in rows, "%s: %s has two rows" % (page, code))
            rows[code, page] = set(level.split(", "))
            checks.check(rows[code, page] <= LEVELS, "%s: no such level: %s" % (code, level))
            checks.check(meaning and remedy, "%s: the row lacks a meaning or what to do" % code)
    checks.check(len(sources) > 50, "only %d codes were found in the source" % len(sources))
    for code, page in sorted(sources):
        if checks.check((code, page) in rows, "%s has no row for %s" % (page, code)):
            checks.check(sources[code, page] <= rows[code, page], "%s: %s: the source says %s"
                         % (page, code, ", ".join(sorted(sources[code, page]))))
    for code, page in sorted(rows):
        checks.check((code, page) in sources, "%s: %s is not in the source any more" % (page, code))
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
