# SPDX-License-Identifier: Apache-2.0
"""Reading culprit's verdict lines in tests."""
import json
import os
import re

import schema

HERE = os.path.dirname(os.path.abspath(__file__))
SEVERITIES = ["info", "warning", "error", "critical"]
ROLES = ["culprit", "suspect", "victim"]

with open(os.path.join(HERE, "..", "..", "docs", "verdict.schema.json"), encoding="utf-8") as file:
    SCHEMA = json.load(file)


def read_lines(text):
    """The verdicts of a JSON Lines text; the last state of each id, in order of first appearance."""
    last = {}
    for line in text.split("\n"):
        if line:
            verdict = json.loads(line)
            last[verdict["id"]] = verdict
    return list(last.values())


def faults(verdict):
    """What is wrong with one verdict: against the schema, and what the schema says in words."""
    found = list(schema.faults(verdict, SCHEMA))
    if found:
        return found
    order = list(SCHEMA["properties"])
    keys = [order.index(key) for key in verdict]
    if keys != sorted(keys):
        found.append("the keys are not in the schema's order: %s" % list(verdict))
    if not verdict["id"].startswith(verdict["pattern"] + ":"):
        found.append("the id %s does not begin with the pattern" % verdict["id"])
    if int(verdict["start_time_unix_nano"]) > int(verdict["end_time_unix_nano"]):
        found.append("it ends before it starts")
    entities = [entity_order(entity) for entity in verdict["entities"]]
    if entities != sorted(entities):
        found.append("the entities are out of order: %s" % verdict["entities"])
    attributes = list(verdict.get("attributes", {}))
    if attributes != sorted(attributes, key=str.encode):
        found.append("the attributes are out of order: %s" % attributes)
    return found


def entity_order(entity):
    name = entity["name"]
    number = int(name) if re.fullmatch("[0-9]+", name) else -1
    return (ROLES.index(entity["role"]), entity["kind"], number, name)


def severity_at_least(verdict, severity):
    return SEVERITIES.index(verdict["severity"]) >= SEVERITIES.index(severity)


def named(verdict, role):
    """The ranks that have this role, as numbers."""
    return [int(entity["name"]) for entity in verdict["entities"]
            if entity["kind"] == "rank" and entity["role"] == role]
