#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does docs/metrics.md name the metrics that the source has, and no others?

    test_metrics_page.py [--write]

A family is a text "culprit_…" or "process_…" in the source that stands with its help and its type.
Each has a row in one of the page's two tables, with the same type and the same words. With --write
the rows are put right; what labels a new one has is then for its author to fill in.
"""
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402

PAGE = os.path.join(ROOT, "docs", "metrics.md")
FOLDERS = ["base", "config", "pipeline", "receivers", "processors", "exporters", "extensions", "cli"]
NAME = r'"((?:culprit|process)_[a-z0-9_]+)"'
TEXT = r'(?:"(?:[^"\\]|\\.)*"\s*)+'
FAMILY = re.compile(r'(?:\b(COUNTER|GAUGE)\(\s*)?' + NAME + r',\s*(?:EXPOSITION_(\w+),\s*)?(?:\.help\s*=\s*)?(' + TEXT
                    + r')[,)]\s*(?:\.type\s*=\s*)?(?:(?:METRIC|EXPOSITION)_(\w+))?')
LABEL = re.compile(r'\s*(?:"\w*"|NULL)\}')
BLOCK = re.compile(r"(<!-- metrics (\w+) -->\n)(.*?)(<!-- /metrics -->)", re.S)
HEAD = "| metric | type | labels | what it says |\n|---|---|---|---|\n"
UNKNOWN = "?"
# Whose texts look like names of families and are keys of something else.
OTHER = (os.path.join("exporters", "wandb"), os.path.join("receivers", "decode"),
         os.path.join("pipeline", "plan", "tests.c"))


def source_families():
    """name -> (type, help, file); and the names that stand alone, with their files."""
    families, alone = {}, {}
    for folder in FOLDERS:
        for file in sorted(glob.glob(os.path.join(ROOT, folder, "**", "*.[ch]"), recursive=True)):
            with open(file, encoding="utf-8") as source:
                text = re.sub(r"^\s*//.*$", "", source.read(), flags=re.M)
            where = os.path.relpath(file, ROOT)
            for match in FAMILY.finditer(text):
                macro, name, before, words, after = match.groups()
                before = before or macro
                if not before and LABEL.match(text, match.end()):  # a row whose type the name says
                    before = "counter" if name.endswith("_total") else "gauge"
                if not (before or after):
                    continue
                said = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', words)).replace('\\"', '"')
                families.setdefault(name, []).append(((before or after).lower(), said, where))
            for name in re.findall(NAME, text):
                alone.setdefault(name, where)
    return families, {name: where for name, where in alone.items()
                      if name not in families and not where.startswith(OTHER)}


def table_of(name):
    shown = ("culprit_verdict", "culprit_rank_", "culprit_span_", "culprit_training_job")
    return "verdicts" if name.startswith(shown) else "self"


def rows_of(text):
    """name -> (type, labels, help) of a table's rows."""
    rows = {}
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[0].startswith("`"):
            rows[cells[0].strip("`")] = (cells[1], cells[2], cells[3])
    return rows


def page_rows():
    """name -> (type, labels, help) of the whole page."""
    with open(PAGE, encoding="utf-8") as file:
        return {name: row for block in BLOCK.finditer(file.read())
                for name, row in rows_of(block.group(3)).items()}


def write(families):
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()

    def table(match):
        opening, which, old, closing = match.groups()
        rows = rows_of(old)
        lines = ""
        for name in sorted(families):
            if table_of(name) == which:
                kind, said, _ = families[name][0]
                labels = rows.get(name, (None, UNKNOWN, None))[1]
                lines += "| `%s` | %s | %s | %s |\n" % (name, kind, labels, said)
        return opening + HEAD + lines + closing

    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(BLOCK.sub(table, text))


def main():
    families, alone = source_families()
    if "--write" in sys.argv[1:]:
        write(families)
    checks = Checks()
    checks.check(len(families) > 40, "only %d families were found in the source" % len(families))
    for name, where in sorted(alone.items()):
        checks.check(False, "%s: %s stands without help and type; write it as a struct "
                     "metric_family, so that it is found" % (where, name))
    page = page_rows()
    for name, found in sorted(families.items()):
        kind, said, where = found[0]
        for other in found[1:]:
            checks.equal(other[:2], found[0][:2], "%s in %s and %s" % (name, where, other[2]))
        checks.check(said.endswith("."), "%s: the help of %s is no sentence" % (where, name))
        checks.check(kind != "counter" or name.endswith("_total"),
                     "%s: the counter %s does not end in _total" % (where, name))
        if checks.check(name in page, "docs/metrics.md lacks %s of %s; run this with --write"
                        % (name, where)):
            checks.equal(page[name][0], kind, "docs/metrics.md: the type of " + name)
            checks.equal(page[name][2], said, "docs/metrics.md: the words for " + name)
            checks.check(page[name][1] != UNKNOWN,
                         "docs/metrics.md: say which labels %s has, or -" % name)
    for name in sorted(set(page) - set(families)):
        checks.check(False, "docs/metrics.md has %s, which no source has" % name)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
