# SPDX-License-Identifier: Apache-2.0
"""Is the bill of materials true, and is it CycloneDX?

It is compared with what readelf says of the program, what the sources load and what dpkg knows; and
with the real schema, which the PyPI package cyclonedx-python-lib carries: fetched once into the cache of
the tests, checked by python3-jsonschema.

    sbom.py FOLDER BOM       prints what the schemas in FOLDER find wrong
"""
import glob
import json
import os
import re
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "support"))
import cache  # noqa: E402
import fetched  # noqa: E402

WHEEL = "cyclonedx-python-lib==8.5.0"
PATIENCE_S = 120
PYTHONS = (sys.executable, "/usr/bin/python3")
PREFIX = "cyclonedx/schema/_res/"
SCHEMAS = ("bom-1.5", "jsf-0.82", "spdx")


class Unreachable(Exception):
    """The schema could not be had."""


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, "LC_ALL": "C"}).stdout


def late_libraries(root):
    """[(soname, package, what for)]: each struct late_library, but for those of tests."""
    calls = []
    for path in glob.glob(os.path.join(root, "[a-z]*", "**", "*.c"), recursive=True):
        if path.startswith(os.path.join(root, "tests", "")):
            continue
        with open(path, encoding="utf-8") as file:
            calls += re.findall(r'struct late_library \w+ = \{\s*"(.+?)",\s*"(.+?)",\s*"(.+?)"',
                                file.read())
    return calls


def check(checks, bom, binary, version, root):
    checks.equal((bom["bomFormat"], bom["specVersion"]), ("CycloneDX", "1.5"), "the format")
    own = bom["metadata"]["component"]
    checks.equal((own["name"], own["version"]), ("culprit", version), "its subject")
    listed = {each["name"]: each for each in bom["components"]}
    checks.equal(len(listed), len(bom["components"]), "packages that are listed twice")
    references = {own["bom-ref"]} | {each["bom-ref"] for each in bom["components"]}
    checks.equal({each["ref"] for each in bom["dependencies"]}, references, "refs of dependencies")
    for each in bom["dependencies"]:
        checks.check(set(each["dependsOn"]) <= references, "%s needs what is not listed" %
                     each["ref"])
    for name, each in listed.items():
        versions = output("dpkg-query", "-W", "-f", "${Version} ", name).split()
        checks.check(each["version"] in versions, "%s is %s, not %s" % (
            name, versions, each["version"]))
        checks.check(each["purl"].startswith("pkg:deb/debian/%s@" % name.replace("+", "%2B")),
                     "%s has the purl %s" % (name, each["purl"]))
    check_linked(checks, listed, binary)
    direct = next(each["dependsOn"] for each in bom["dependencies"] if each["ref"] == own["bom-ref"])
    for soname, package, _ in late_libraries(root):
        checks.check(package in listed and listed[package]["scope"] == "optional",
                     "%s, which is loaded late, is not listed as optional" % package)
        checks.check(package in listed and listed[package]["bom-ref"] in direct,
                     "%s is not among what culprit uses" % soname)


def check_linked(checks, listed, binary):
    """What the program is linked with, by another way than ours: the dynamic linker's."""
    required = {name for name, each in listed.items() if each["scope"] == "required"}
    files = [os.path.realpath(path) for path in re.findall(r"=> (/\S+)", output("ldd", binary))]
    found = set()
    for path in files:
        said = output("dpkg", "-S", path) or output("dpkg", "-S", path.replace("/usr/lib", "/lib", 1))
        found.add(said.split(":")[0])
    checks.equal(required, found, "what the program is linked with")


def fetch():
    def fill(folder):
        fetched.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--retries", "1",
                     "--disable-pip-version-check", "-d", folder, WHEEL], WHEEL)
    try:
        folder = cache.made_once(WHEEL.replace("==", "-"), fill)
    except RuntimeError as error:
        raise Unreachable(str(error)) from error
    return glob.glob(folder + "/*.whl")[0]


def schema_faults(path):
    """What the real schema finds wrong, as text; Unreachable when it cannot be asked."""
    wheel = fetch()
    for python in PYTHONS:
        done = subprocess.run([python, "-B", __file__, wheel, path], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        if "No module named 'jsonschema'" not in done.stderr:
            return done.stdout + done.stderr
    raise Unreachable("no Python here has the module jsonschema")


def main(wheel, path):
    import warnings
    import jsonschema
    warnings.simplefilter("ignore")  # what later versions of it do otherwise
    schemas = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in SCHEMAS:
            schema = json.loads(archive.read(PREFIX + name + ".SNAPSHOT.schema.json"))
            # The files refer to one another by the names that they have in this folder.
            schemas[name + ".SNAPSHOT.schema.json"] = schema
            schemas[schema["$id"]] = schema
    root = schemas[SCHEMAS[0] + ".SNAPSHOT.schema.json"]
    base = root["$id"].rsplit("/", 1)[0] + "/"
    store = {**schemas, **{base + name: schema for name, schema in schemas.items()}}
    resolver = jsonschema.RefResolver(root["$id"], root, store=store)
    with open(path, encoding="utf-8") as file:
        bom = json.load(file)
    for fault in jsonschema.Draft7Validator(root, resolver=resolver).iter_errors(bom):
        print("%s: %.300s" % ("/".join(map(str, fault.absolute_path)), fault.message))


if __name__ == "__main__":
    main(*sys.argv[1:])
