#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the checkers of tools/ see what they are there to see?"""
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = os.path.join(HERE, "..", "..", "tools")
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import schema  # noqa: E402
from checks import Checks  # noqa: E402


def tool(name):
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(TOOLS, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def includes(checks):
    fault = tool("check_includes").fault
    for file, include in (("base/log.c", "base/log.h"), ("pipeline/plan/plan.h", "config/option.h"),
                          ("processors/align/align.c", "pipeline/model/batch.h"),
                          ("processors/align/align.c", "config/option.h"),
                          ("pipeline/runtime/runner.c", "pipeline/model/batch.h"),
                          ("cli/main.c", "receivers/decode/telemetry/telemetry.h"),
                          ("receivers/decode/format.c", "receivers/decode/json/keys.h"),
                          ("exporters/wandb/live/live.h", "exporters/wandb/record.h"),
                          ("exporters/text/text.c", "exporters/report/text/parts.h"),
                          ("cli/commands/version.h", "culprit_version.h")):
        checks.equal(fault(file, include), None, "%s may include %s" % (file, include))
    for file, include in (("base/log.c", "config/option.h"), ("config/option.h", "pipeline/plan/plan.h"),
                          ("pipeline/model/batch.h", "pipeline/runtime/runner.h"),
                          ("pipeline/model/event.h", "receivers/file/file.h"),
                          ("processors/align/align.c", "pipeline/plan/plan.h"),
                          ("processors/align/align.c", "config/yaml/document.h"),
                          ("processors/align/align.c", "exporters/json/json.h"),
                          ("receivers/file/file.c", "processors/align/align.h"),
                          ("receivers/file/file.c", "receivers/http/http.h"),
                          ("receivers/decode/dcgm/dcgm.c", "receivers/decode/otlp/otlp.h"),
                          ("processors/hbm_ecc/burst.c", "processors/incident/map.h"),
                          ("processors/cluster/xid_log.c", "processors/hbm_ecc/hbm_ecc.h"),
                          ("exporters/json/json.c", "pipeline/runtime/sender.h"),
                          ("exporters/json/json.c", "cli/figures.h"), ("base/log.c", "log.h")):
        checks.check(fault(file, include), "%s must not include %s" % (file, include))


def modules(checks):
    check = tool("check_includes")
    checks.equal(check.cycles({"a/x.c": ["a/x.h", "a/y.h"], "a/x.h": [], "a/y.h": ["a/x.h"]}),
                 [["a/x", "a/y"]], "a module and its parts include one another")
    checks.equal(check.cycles({"a/x.c": ["a/y.h"], "a/y.h": ["a/z.h"], "a/x.h": [], "a/z.h": []}),
                 [], "layers")
    texts = {"a/low.h": "#pragma once\nstruct low { int x; };\nenum { LOW_MAX = 3 };\n"
                        "void low_add(struct low *low);\n#define LOW(x) (x)\n",
             "a/mid.h": "#pragma once\nstruct mid { struct low *low; };\n",
             "b/top.h": "#pragma once\nvoid top(struct low *low, int low_add);\n",
             "b/top.c": ""}
    includes = {"a/low.h": [], "a/mid.h": ["a/low.h"], "b/top.h": [], "b/top.c": ["a/mid.h"]}
    for code in ("int x = LOW_MAX;", "void f(void) { low_add(0); }", "struct low low;",
                 "int x = LOW(3);"):
        checks.equal([found[:2] for found in check.missing({**texts, "b/top.c": code}, includes)],
                     [("b/top.c", "a/low.h")], "used, and included by another: " + code)
    for code in ("struct low *f(void);", "int f(int low_add);", "// LOW_MAX", 'char *x = "LOW(1)";',
                 "int f(struct mid *mid) { return mid->LOW_MAX; }"):
        checks.equal(check.missing({**texts, "b/top.c": code}, includes), [], "not used: " + code)
    checks.equal(check.missing({**texts, "a/x.c": "struct low low;"},
                               {**includes, "a/x.c": ["a/mid.h"]}), [], "by the same folder")


def results(checks):
    def lines(cases, output="", **files):
        with tempfile.TemporaryDirectory() as folder:
            files["ctest.xml"] = "<testsuite>%s</testsuite>" % "".join(
                '<testcase name="%s" status="%s"><system-out>%s</system-out></testcase>'
                % (*case, output) for case in cases)
            for name, text in files.items():
                with open(os.path.join(folder, name.replace("__", ".")), "w",
                          encoding="ascii") as file:
                    file.write(text)
            done = subprocess.run([sys.executable, "-B", os.path.join(TOOLS, "count_results"),
                                   folder], capture_output=True, check=False)
            return done.stdout.decode().strip().split("\n"), done.returncode

    def said(cases, **files):
        text, code = lines(cases, **files)
        return text[-1], code
    fine, bad = [("base/test_x", "run")], [("base/test_x", "fail")]
    tap = "1..3\nok 1 - a\nok 2 - b\nnot ok 3 - c\n"
    checks.equal(said(fine, base__test_x__count="7 0\n"), ("7 passed, 0 failed", 0), "a suite")
    checks.equal(said(bad, base__test_x__tap=tap), ("2 passed, 1 failed", 1), "a Check program")
    checks.equal(said(bad, base__test_x__tap="ok 1 - a\n"), ("1 passed, 1 failed", 1), "a crash")
    checks.equal(said(bad), ("0 passed, 1 failed", 1), "a crash before the first check")
    checks.equal(said(fine), ("1 passed, 0 failed", 0), "a test without figures")
    checks.equal(said([]), ("0 passed, 0 failed", 1), "no tests at all")
    head, last = "== failed: base/test_x ==", "0 passed, 1 failed"
    checks.equal(lines(bad, "a\nFAILED: b\nc\nx.c:3:F:d:e:0: f\n")[0],
                 [head, "FAILED: b", "x.c:3:F:d:e:0: f", last], "what failed is said again")
    checks.equal(lines(bad, "a\nb\n")[0], [head, "a", "b", last], "the end of what says nothing")
    checks.equal(lines(fine, "FAILED: b\n")[0], ["1 passed, 0 failed"], "what passed is not")


def schemas(checks):
    rules = {"type": "object", "additionalProperties": False, "required": ["a"],
             "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9},
                            "b": {"type": "array", "maxItems": 1, "items": {"$ref": "#/$defs/t"}},
                            "c": {"enum": ["x"]}},
             "$defs": {"t": {"type": "string", "pattern": "^[0-9]+$", "maxLength": 3}}}
    for good in ({"a": 0}, {"a": 9, "b": ["12"], "c": "x"}):
        checks.equal(list(schema.faults(good, rules)), [], "%r fits" % good)
    for bad in ({}, [], {"a": True}, {"a": 10}, {"a": "1"}, {"a": 1, "d": 1}, {"a": 1, "c": "y"},
                {"a": 1, "b": ["1", "2"]}, {"a": 1, "b": ["x"]}, {"a": 1, "b": ["1234"]},
                {"a": 1, "b": [1]}):
        checks.check(list(schema.faults(bad, rules)), "%r does not fit" % bad)


def main():
    checks = Checks()
    includes(checks)
    modules(checks)
    results(checks)
    schemas(checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
