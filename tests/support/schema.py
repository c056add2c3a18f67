# SPDX-License-Identifier: Apache-2.0
"""Checks a JSON value against a JSON Schema, for the part of the language that our schemas use."""
import re

KNOWN = {"$schema", "$id", "$defs", "$ref", "title", "description", "type", "const", "enum",
         "properties", "required", "additionalProperties", "propertyNames", "maxProperties",
         "items", "minItems", "maxItems", "pattern", "minLength", "maxLength", "minimum", "maximum"}
TYPES = {"object": dict, "array": list, "string": str}


def type_fits(value, wanted):
    if wanted == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[wanted])


def faults(value, schema, root=None, where="$"):
    """Every way in which the value is not what the schema says, as sentences."""
    root = schema if root is None else root
    unknown = set(schema) - KNOWN
    if unknown:
        raise ValueError("the schema uses %s, which this checker does not know" % unknown)
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        yield from faults(value, root["$defs"][name], root, where)
    if "const" in schema and value != schema["const"]:
        yield "%s is %r, not %r" % (where, value, schema["const"])
    if "enum" in schema and value not in schema["enum"]:
        yield "%s is %r, not one of %r" % (where, value, schema["enum"])
    if "type" in schema and not type_fits(value, schema["type"]):
        yield "%s is %r, not of type %s" % (where, value, schema["type"])
        return
    if isinstance(value, str):
        yield from text_faults(value, schema, where)
    elif isinstance(value, dict):
        yield from object_faults(value, schema, root, where)
    elif isinstance(value, list):
        yield from array_faults(value, schema, root, where)
    elif not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield "%s is %r, out of range" % (where, value)


def text_faults(value, schema, where):
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield "%s is %r, which does not match %s" % (where, value, schema["pattern"])
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        yield "%s has %d characters" % (where, len(value))


def array_faults(value, schema, root, where):
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        yield "%s has %d items" % (where, len(value))
    for i, item in enumerate(value):
        yield from faults(item, schema.get("items", {}), root, "%s[%d]" % (where, i))


def object_faults(value, schema, root, where):
    properties = schema.get("properties", {})
    rest = schema.get("additionalProperties", True)
    for key in schema.get("required", []):
        if key not in value:
            yield "%s has no %s" % (where, key)
    if len(value) > schema.get("maxProperties", len(value)):
        yield "%s has %d keys" % (where, len(value))
    for key, item in value.items():
        yield from faults(key, schema.get("propertyNames", {}), root, where + " key")
        if key in properties:
            yield from faults(item, properties[key], root, where + "." + key)
        elif rest is False:
            yield "%s has the key %s, which is none of the schema's" % (where, key)
        elif isinstance(rest, dict):
            yield from faults(item, rest, root, where + "." + key)
