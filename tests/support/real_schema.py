# SPDX-License-Identifier: Apache-2.0
"""Verdict lines against their JSON Schema by python3-jsonschema, which knows the whole language.

    real_schema.py SCHEMA.json < VERDICTS.jsonl

Prints what is wrong, one line a fault. Debian installs the module for its own Python only, so that
faults() runs this file with that one.
"""
import json
import subprocess
import sys

PYTHONS = (sys.executable, "/usr/bin/python3")


def faults(path, lines):
    """What is wrong with the lines, as text; None when no Python here has the module."""
    for python in PYTHONS:
        try:
            done = subprocess.run([python, "-B", __file__, path], input="\n".join(lines),
                                  capture_output=True, text=True, timeout=300, check=False)
        except OSError:
            continue
        if done.returncode == 0:
            return done.stdout
    return None


def main():
    import jsonschema
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    checker = validator(schema)
    for number, line in enumerate(sys.stdin, 1):
        if line.strip():
            for error in checker.iter_errors(json.loads(line)):
                print("line %d: %s" % (number, error.message))


if __name__ == "__main__":
    main()
