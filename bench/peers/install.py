# SPDX-License-Identifier: Apache-2.0
"""Sets up the programs that culprit is measured beside, each in a folder of its own.

What was set up is used again. What cannot be had raises Missing with the reason, and is left out.
"""
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
GO_NEEDED = (1, 26)
TOOLCHAIN = "golang.org/toolchain@v0.0.1-go1.26.0.linux-%s"
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
BUILDER = "go.opentelemetry.io/collector/cmd/builder@v0.160.0"
TAIL = 400  # characters of what a failed command said


class Missing(Exception):
    """Why a program is not there."""


def said(*command, **more):
    """Standard output of a command that has to succeed."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              **more)
    except OSError as error:
        raise Missing("%s: %s" % (command[0], error.strerror)) from error
    if done.returncode != 0:
        text = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        raise Missing("`%s` failed with %d: %s" % (" ".join(command), done.returncode,
                                                   text[-TAIL:]))
    return done.stdout.decode("utf-8", "replace").strip()


class Peer:
    """A program that is there: what to call, which version, and how it came here."""

    def __init__(self, program, version, how):
        self.program, self.version, self.how = program, version, how


def culprit(binary):
    preset = os.path.basename(os.path.dirname(binary))
    return Peer(binary, said(binary, "version").splitlines()[0].split()[1],
                "built here: tools/build %s%s"
                % (preset, " (optimised as it is shipped)" if preset == "bench" else ""))


def jq():
    if shutil.which("jq") is None:
        raise Missing("jq is not installed (Debian: jq)")
    return Peer("jq", said("jq", "--version"), "package jq of the system")


def python():
    return Peer(sys.executable, said(sys.executable, "--version").split()[1],
                "the python3 that runs this")


class Python:
    """A virtual environment with what requirements.txt names."""

    def __init__(self, work):
        self.folder = os.path.join(work, "python")
        self.error = None

    def module(self, name):
        if self.error:
            raise Missing(self.error)
        try:
            return self.installed(name)
        except Missing as error:
            self.error = str(error)
            raise

    def installed(self, name):
        program = os.path.join(self.folder, "bin", "python3")
        if not os.path.exists(program):
            said(sys.executable, "-m", "venv", self.folder)
        wanted = os.path.join(HERE, "requirements.txt")
        if self.version(program, name) is None:
            said(program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                 "--requirement", wanted)
        version = self.version(program, name)
        if version is None:
            raise Missing("%s: pip installed it, but it is not there" % name)
        return Peer(program, version, "pip install %s==%s, CPython %s"
                    % (name, version, said(program, "--version").split()[1]))

    @staticmethod
    def version(program, name):
        try:
            return said(program, "-c", "import %s, importlib.metadata as m; print(m.version('%s'))"
                        % (name, name))
        except Missing:
            return None


# -- the Collector ------------------------------------------------------------------------------


def go_version(program):
    """(1, 26) of "go version go1.26.8 linux/amd64"."""
    match = re.search(r"\bgo(\d+)\.(\d+)", said(program, "version",
                                               env={**os.environ, "GOTOOLCHAIN": "local"}))
    return (int(match.group(1)), int(match.group(2))) if match else (0, 0)


class Collector:
    """Built from its modules by a Go that is new enough, if need be the module proxy's."""

    def __init__(self, work):
        self.work, self.folder = work, os.path.join(work, "collector")
        self.environment = {**os.environ, "GOPATH": os.path.join(work, "go"),
                            "GOCACHE": os.path.join(work, "go-cache"), "GOTOOLCHAIN": "local",
                            "GOFLAGS": "-modcacherw", "CGO_ENABLED": "0"}

    def go(self):
        """A Go that can build it. An old one is enough to fetch a newer one as a module."""
        own = shutil.which("go")
        if own is None:
            raise Missing("there is no go (Debian: golang-go; any version will do)")
        if go_version(own) >= GO_NEEDED:
            return own
        machine = MACHINES.get(os.uname().machine)
        if machine is None:
            raise Missing("no Go toolchain is known for %s" % os.uname().machine)
        module = TOOLCHAIN % machine
        folder = os.path.join(self.work, "go", "pkg", "mod", module)
        program = os.path.join(folder, "bin", "go")
        if not os.path.exists(program):
            os.makedirs(self.folder, exist_ok=True)
            said(own, "mod", "download", module, cwd=self.work, env=self.environment)
        for part in ("bin", os.path.join("pkg", "tool")):
            for place, _, files in os.walk(os.path.join(folder, part)):
                for name in files:
                    os.chmod(os.path.join(place, name), 0o755)
        self.environment.pop("GOROOT", None)  # of the old one
        return program

    def build(self, say):
        program = os.path.join(self.folder, "collector")
        if not os.path.exists(program):
            go = self.go()
            say("building the Collector (the first time: minutes)")
            os.makedirs(self.folder, exist_ok=True)
            said(go, "run", BUILDER, "--skip-compilation", "--skip-get-modules",
                 "--config", os.path.join(HERE, "collector", "builder.yaml"), cwd=self.folder,
                 env=self.environment)
            shutil.copy(os.path.join(HERE, "collector", "go.mod"), self.folder)
            said(go, "build", "-mod=mod", "-trimpath", "-ldflags=-s -w", "-o", program + ".new",
                 ".", cwd=self.folder, env=self.environment)
            os.rename(program + ".new", program)
        go = re.search(r"go\d+\.\d+(\.\d+)?", said(self.go(), "version", program)).group(0)
        return Peer(program, said(program, "--version").split()[-1],
                    "builder and modules 0.160.0 from the Go module proxy, %s, "
                    "go build -trimpath -ldflags='-s -w'" % go)


def install(work, binary, wanted, say):
    """name -> Peer, name -> why it is not there."""
    os.makedirs(work, exist_ok=True)
    pip = Python(work)
    ways = {"culprit": lambda: culprit(binary), "jq": jq, "python": python,
            "orjson": lambda: pip.module("orjson"), "stormlog": lambda: pip.module("stormlog"),
            "collector": lambda: Collector(work).build(say)}
    there, missing = {}, {}
    for name in wanted:
        say("setting up " + name)
        try:
            there[name] = ways[name]()
        except Missing as error:
            missing[name] = str(error)
            say("left out: %s: %s" % (name, error))
    return there, missing
