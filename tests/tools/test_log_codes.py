#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does docs/log_codes.md list the codes of all log messages, and no others?

A code is a text "C1234" in the source. Each has a row for every file that says it, with the level
where the call names it. Two files may share a code only where the page gives each a row.
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
CELL = r" *([^|]*?) *\|"
ROW = re.compile(r"^\| *`(C\d{4})` *\|" + CELL * 4 + "$", re.M)
LEVELS = {"debug", "info", "warn", "error"}


def in_sources():
    """{(code, file): levels that calls name}"""
    found = {}
    for folder in FOLDERS:
        for path in glob.glob(os.path.join(ROOT, folder, "**", "*.[ch]"), recursive=True):
            with open(path, encoding="utf-8") as file:
                text = re.sub(r"//.*", "", file.read())
            name = os.path.relpath(path, ROOT)
            for code in CODE.findall(text):
                found.setdefault((code, name), set())
            for level, code in CALL.findall(text):
                found[code, name].add(level.lower())
    return found


def main():
    checks = Checks()
    sources = in_sources()
    with open(os.path.join(ROOT, "docs", "log_codes.md"), encoding="utf-8") as file:
        rows = ROW.findall(file.read())
    page = {}
    for code, level, meaning, remedy, origin in rows:
        name = origin.strip("`")
        checks.check((code, name) not in page, "%s of %s is listed twice" % (code, name))
        page[code, name] = set(level.split(", "))
        checks.check(set(level.split(", ")) <= LEVELS, "%s: no such level: %s" % (code, level))
        checks.check(meaning and remedy, "%s: the row lacks a meaning or what to do" % code)
    checks.check(len(sources) > 50, "only %d codes were found in the source" % len(sources))
    for code, name in sorted(sources):
        if checks.check((code, name) in page,
                        "%s of %s is not in docs/log_codes.md, or is used for two things"
                        % (code, name)):
            checks.check(sources[code, name] <= page[code, name], "%s of %s: the source says %s"
                         % (code, name, ", ".join(sorted(sources[code, name]))))
    for code, name in sorted(page):
        checks.check((code, name) in sources, "%s is not in %s any more" % (code, name))
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
