# SPDX-License-Identifier: Apache-2.0
"""What can be said of a Containerfile without building it.

Its instructions are known and have their arguments, stages are named before they are used, files of
the repository and of the package that it names exist, Debian has the packages, and its build
commands are those of the project: presets that are there, scripts that are there, and the options
that the test of the package gives to cpack. The shell reads each command.
"""
import glob
import json
import os
import re
import subprocess

KNOWN = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT",
         "CMD", "LABEL", "ENV", "ARG"}
BASES = ("docker.io/library/debian:12-slim", "scratch")  # the first to build in, the last to run
OWN_USER = "65532:65532"


def instructions(text):
    """[(line, WORD, rest)]: comments left out, continued lines joined."""
    found, held, start = [], "", 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("#") or not (line.strip() or held):
            continue
        start = start if held else number
        held += line.rstrip("\\").strip() + " "
        if not line.endswith("\\"):
            word, _, rest = held.strip().partition(" ")
            found.append((start, word, rest.strip()))
            held = ""
    if held:
        found.append((start, "UNFINISHED", held))
    return found


class Reader:
    def __init__(self, root, tree):
        self.root, self.tree = root, tree
        self.faults, self.stages, self.commands = [], [], 0
        self.unknown = []  # packages of which nobody here can say whether they exist
        self.made = set()  # folders that the stage with the build makes
        self.last = {}     # of the stage that is read: word -> rest

    def fault(self, line, text):
        self.faults.append("line %d: %s" % (line, text))

    def instruction(self, line, word, rest):
        if word not in KNOWN:
            return self.fault(line, "there is no instruction " + word)
        if not rest:
            return self.fault(line, word + " has no arguments")
        if word == "FROM":
            self.last = {}
            match = re.fullmatch(r"(\S+)(?: AS (\w+))?", rest)
            base = BASES[min(len(self.stages), 1)]
            if match is None or match.group(1) != base:
                return self.fault(line, "FROM %s: not %s" % (rest, base))
            self.stages.append(match.group(2))
        elif not self.stages:
            return self.fault(line, word + " stands before FROM")
        self.last[word] = rest
        if word == "COPY":
            self.copy(line, rest.split())
        elif word == "RUN":
            self.run(line, rest)
        elif word in ("ENTRYPOINT", "CMD"):
            self.json(line, word, rest)
        return None

    def copy(self, line, words):
        if words[0].startswith("--from="):
            if words[0][len("--from="):] not in self.stages[:-1]:
                self.fault(line, "no stage before is called " + words[0])
            words = [word for word in words[1:] if not word.startswith("--chown=")]
            for source in words[:-1]:
                if source.rstrip("/") not in self.made:
                    self.fault(line, "nothing makes " + source)
        else:
            for source in words[:-1]:
                if not glob.glob(os.path.join(self.root, source)):
                    self.fault(line, "there is no %s in the repository" % source)

    def run(self, line, command):
        done = subprocess.run(["sh", "-n"], input=command, text=True, capture_output=True,
                              check=False)
        if done.returncode != 0:
            self.fault(line, done.stderr)
        for part in command.split("&&"):
            self.commands += 1
            self.command(line, part.split())

    def command(self, line, words):
        if words[0].startswith(("tools/", "packaging/")):
            if not os.access(os.path.join(self.root, words[0]), os.X_OK):
                self.fault(line, "there is no program " + words[0])
            if words[0] == "packaging/make_image_root":
                self.made |= set(words[3:])
        elif words[:2] == ["apt-get", "install"]:
            self.packages(line, [word for word in words[2:] if not word.startswith("-")])
        elif words[0] == "cmake":
            self.preset(line, words)
        elif words[0] == "cpack":
            if words[1:4] != ["-G", "DEB", "-B"]:
                self.fault(line, "cpack is called otherwise than in the test")
            self.made.add(words[4])
        elif words[0] not in ("apt-get", "git", "cd", "rm", "install"):
            self.fault(line, "%s is not looked at by this test" % words[0])

    def packages(self, line, names):
        names = [name for name in names if not name.startswith("/")]
        known = set()
        for command in (["apt-cache", "show", "--no-all-versions"], ["dpkg", "-s"]):
            done = subprocess.run(command + names, capture_output=True, text=True, check=False)
            known |= set(re.findall(r"^Package: (\S+)$", done.stdout, re.M))
        for name in sorted(set(names) - known):
            if glob.glob("/var/lib/apt/lists/*_Packages*"):
                self.fault(line, "Debian has no package " + name)
            else:
                self.unknown.append(name)

    def preset(self, line, words):
        with open(os.path.join(self.root, "CMakePresets.json"), encoding="utf-8") as file:
            presets = json.load(file)
        kind = "buildPresets" if "--build" in words else "configurePresets"
        name = words[words.index("--preset") + 1]
        if name not in [preset["name"] for preset in presets[kind]]:
            self.fault(line, "there is no preset " + name)

    def json(self, line, word, rest):
        try:
            words = json.loads(rest)
        except ValueError:
            return self.fault(line, word + " is no JSON list")
        for path in [each for each in words if each.startswith("/")]:
            if not os.path.exists(self.tree + path):
                self.fault(line, "the package has no " + path)
        return None

    def end(self):
        if self.last.get("USER") != OWN_USER:
            self.fault(0, "the image does not run as " + OWN_USER)
        words = json.loads(self.last["ENTRYPOINT"]) + json.loads(self.last["CMD"])
        with open(self.tree + "/lib/systemd/system/culprit.service", encoding="utf-8") as file:
            if "ExecStart=%s\n" % " ".join(words) not in file.read():
                self.fault(0, "it starts otherwise than the service: " + " ".join(words))


def containerfile_faults(text, root, tree):
    """(what is wrong, how many commands were looked at, packages that apt here knows nothing of).
    `tree`: the package, unpacked."""
    reader = Reader(root, tree)
    for line, word, rest in instructions(text):
        reader.instruction(line, word, rest)
    if not reader.faults:
        reader.end()
    return reader.faults, reader.commands, reader.unknown
