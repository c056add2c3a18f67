#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian package: made from a release build, looked at, installed, run, removed and purged.

    run_package.py BINARY [--clean-root]

Builds preset `release` when it is not there (BINARY, which is under sanitizers, is not packaged),
then the package, twice. Checked are its control fields, files and modes, lintian, the manual pages,
completion, the unit, the bill of materials and the Containerfile. Then it is installed on a machine
made of this one (machine.py), where systemd starts the service with its whole sandbox.

With --clean-root all that is left out and this is done: the Containerfile's steps are run in roots
that debootstrap makes (clean_root.py), the image is started as a container would be, and the
package that came of it is installed, used and purged in a root that held nothing but Debian. Needs
root, the network, debootstrap, 3 GB in build/ and some minutes; caches nothing.
"""
import glob
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
from checks import Checks  # noqa: E402
import clean_root  # noqa: E402
from containerfile import containerfile_faults  # noqa: E402
import sbom  # noqa: E402
from installed import CONFFILES, Installed  # noqa: E402
from machine import Machine, Unable  # noqa: E402

RELEASE = os.path.join(ROOT, "build", "release")
EXPOSURE_MAX = 1.2  # of 10, as systemd-analyze security counts
PATIENCE_S = 60
BUILD_PATIENCE_S = 800
PROGRAMS = {"usr/bin/culprit", "usr/share/doc/culprit/examples/slurm/culprit-epilog",
            "usr/share/doc/culprit/examples/torchrun/torchrun-culprit"}
FILES = {"etc/culprit/culprit.yaml", "etc/default/culprit", "lib/systemd/system/culprit.service",
         "usr/bin/culprit", "usr/share/bash-completion/completions/culprit",
         "usr/share/fish/vendor_completions.d/culprit.fish",
         "usr/share/zsh/vendor-completions/_culprit", "usr/share/man/man1/culprit.1.gz",
         "usr/share/man/man5/culprit.yaml.5.gz", "usr/share/doc/culprit/README.md",
         "usr/share/doc/culprit/changelog.gz", "usr/share/doc/culprit/copyright",
         "usr/share/doc/culprit/culprit.cdx.json", "usr/share/doc/culprit/docs/packages.md"}
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s:]+)(?:#[^)]*)?\)")


def said(*command, folder=None, data=None, **more):
    return subprocess.run(command, cwd=folder, input=data, capture_output=True, text=True,
                          errors="replace", timeout=PATIENCE_S, check=False,
                          env={**os.environ, "LC_ALL": "C", **more})


def members(path):
    """[(name, date, owner, group, size, hash)] of an ar archive. The mode, of no use in a package,
    is the one field that the umask reaches."""
    found = []
    with open(path, "rb") as file:
        assert file.read(8) == b"!<arch>\n", path
        while header := file.read(60):
            size = int(header[48:58])
            found.append((*header[:40].split(), size,
                          hashlib.sha256(file.read(size + size % 2)).hexdigest()))
    return found


class Suite:
    def __init__(self, folder):
        self.folder = folder
        self.checks = Checks()
        self.tree = os.path.join(folder, "tree")

    def same(self, done, wanted, what):
        """A command ended with this code."""
        return self.checks.check(done.returncode == wanted, lambda: "%s: exit code %d, not %d: %s" % (
            what, done.returncode, wanted, (done.stdout + done.stderr)[-600:]))

    # -- making it ------------------------------------------------------------------------------

    def build(self):
        done = subprocess.run([os.path.join(ROOT, "tools", "build"), "release"],
                              capture_output=True, text=True, errors="replace",
                              timeout=BUILD_PATIENCE_S, check=False)
        return self.same(done, 0, "tools/build release")

    def pack(self, name, umask):
        place = os.path.join(self.folder, name)
        done = said("sh", "-c", "umask %s && exec cpack -G DEB -B '%s'" % (umask, place),
                    folder=RELEASE)
        self.same(done, 0, "cpack")
        found = glob.glob(place + "/*.deb")
        self.checks.check(len(found) == 1, lambda: "cpack made %r" % found)
        return found[0] if found else None

    def make(self):
        if not self.build():
            return False
        self.deb = self.pack("first", "022")
        again = self.pack("second", "077")
        if self.deb is None or again is None:
            return False
        self.checks.equal(members(again), members(self.deb), "made again, with another umask")
        done = said("dpkg-deb", "-R", self.deb, self.tree)
        return self.same(done, 0, "dpkg-deb -R")

    # -- what is in it --------------------------------------------------------------------------

    def field(self, name):
        return said("dpkg-deb", "-f", self.deb, name).stdout.strip()

    def control(self):
        check = self.checks
        with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
            version = re.search(r"project\(culprit VERSION (\S+)", file.read()).group(1)
        architecture = said("dpkg", "--print-architecture").stdout.strip()
        self.version = version
        check.equal(os.path.basename(self.deb), "culprit_%s_%s.deb" % (version, architecture),
                    "the package's name")
        check.equal(self.field("Version"), version, "its version")
        program = said(os.path.join(self.tree, "usr/bin/culprit"), "version").stdout
        check.check(program.startswith("culprit %s (" % version), "the program says " + program)
        depends = {part.split()[0] for part in self.field("Depends").split(",")}
        check.equal(depends, {"libc6", "libfyaml0", "libjansson4", "liblz4-1", "libnettle8", "zlib1g"},
                    "Depends")
        late = {package for _, package, _ in sbom.late_libraries(ROOT)}
        offered = {part.strip() for name in ("Recommends", "Suggests")
                   for part in self.field(name).split(",")}
        check.equal(offered, late, "Recommends and Suggests, against what the sources load")
        recommended = {part.strip() for part in self.field("Recommends").split(",")}
        check.equal(recommended, {"libmicrohttpd12", "libsqlite3-0"}, "Recommends")
        with open(os.path.join(self.tree, "DEBIAN/conffiles"), encoding="utf-8") as file:
            check.equal(file.read().split(), CONFFILES, "conffiles")
        for script in ("postinst", "prerm", "postrm"):
            self.same(said("sh", "-n", os.path.join(self.tree, "DEBIAN", script)), 0, script)

    def contents(self):
        archive = subprocess.run(["dpkg-deb", "--fsys-tarfile", self.deb], capture_output=True,
                                 timeout=PATIENCE_S, check=True).stdout
        path = os.path.join(self.folder, "data.tar")
        with open(path, "wb") as file:
            file.write(archive)
        names = set()
        with tarfile.open(path) as members:
            for member in members:
                name = member.name[2:]
                wanted = 0o755 if member.isdir() or name in PROGRAMS else 0o644
                self.checks.equal((oct(member.mode), member.uid, member.gid),
                                  (oct(wanted), 0, 0), "mode and owner of " + name)
                self.checks.check(member.isdir() or member.isfile(), name + " is no file")
                if not member.isdir():
                    names.add(name)
        self.checks.equal(FILES - names, set(), "files that are missing")
        for name in names - FILES:
            self.checks.check(name.startswith("usr/share/doc/culprit/"), name + " was not expected")
        self.checks.check(PROGRAMS <= names, "the examples' programs are missing")
        sections = said("readelf", "-S", os.path.join(self.tree, "usr/bin/culprit")).stdout
        self.checks.check(".debug_info" not in sections, "the program is not stripped")

    def pages(self):
        """Links between the pages lead somewhere in the package too."""
        top = os.path.join(self.tree, "usr/share/doc/culprit")
        count = 0
        for path in glob.glob(top + "/**/*.md", recursive=True):
            with open(path, encoding="utf-8") as file:
                for target in LINK.findall(file.read()):
                    count += 1
                    self.checks.check(
                        os.path.exists(os.path.join(os.path.dirname(path), target)),
                        "%s: the link %s leads nowhere" % (os.path.relpath(path, top), target))
        self.checks.check(count > 50, "only %d links were found" % count)

    def lintian(self):
        done = said("lintian", "--fail-on", "error,warning", "--tag-display-limit", "0", self.deb)
        self.same(done, 0, "lintian")
        self.checks.equal(re.findall(r"^[EW]: .*$", done.stdout, re.M), [], "lintian's tags")

    # -- manual pages and completion ------------------------------------------------------------

    def manuals(self):
        names = {"culprit": "usr/share/man/man1/culprit.1.gz",
                 "culprit.yaml": "usr/share/man/man5/culprit.yaml.5.gz"}
        texts = {}
        for name, path in names.items():
            with gzip.open(os.path.join(self.tree, path), "rt", encoding="utf-8") as file:
                text = file.read()
            plain = os.path.join(self.folder, os.path.basename(path)[:-3])
            with open(plain, "w", encoding="utf-8") as file:
                file.write(text)
            done = said("mandoc", "-T", "lint", "-W", "all", plain)
            # Source lines may be as long as the sentences of the options are.
            faults = [line for line in (done.stdout + done.stderr).splitlines()
                      if "input text line longer than 80 bytes" not in line]
            self.checks.equal(faults, [], "mandoc -T lint of " + name)
            done = said("groff", "-ww", "-man", "-K", "utf8", "-T", "utf8", plain)
            self.checks.equal((done.returncode, done.stderr), (0, ""), "groff -ww of " + name)
            shown = said("mandoc", "-T", "utf8", "-O", "width=200", plain).stdout
            texts[name] = re.sub(r".\x08", "", shown)
        self.manual_of_commands(texts["culprit"])
        self.manual_of_options(texts["culprit.yaml"])

    def program(self, *arguments):
        return said(os.path.join(self.tree, "usr/bin/culprit"), *arguments).stdout

    def manual_of_commands(self, text):
        words = " ".join(text.split())
        commands = re.findall(r"^  (\S+(?: \S+)?)  +\S", self.program("help").split("Exit codes")[0],
                              re.M)
        self.checks.check(len(commands) >= 13, lambda: "only %r were found" % commands)
        for command in commands:
            page = self.program("help", *command.split())
            self.checks.check("culprit " + command in words, "culprit(1) lacks " + command)
            for option in re.findall(r"^ +(?:-., )?(--[a-z-]+)", page, re.M):
                self.checks.check(option == "--help" or option in words,
                                  "culprit(1) lacks %s of %s" % (option, command))
            description = " ".join(page.split("\n\n")[1].split())
            self.checks.check(description in words,
                              "culprit(1) lacks the description of " + command)
        for code in re.findall(r"^  (\d+)  ", self.program("help"), re.M):
            self.checks.check(re.search(r"^ +%s +\S" % code, text, re.M),
                              "culprit(1) lacks the exit code " + code)

    def manual_of_options(self, text):
        """Every option of every component, with its default, its range and what it does."""
        words = " ".join(text.split())
        names = [line.split()[1] for line in self.program("components").splitlines()[1:]]
        rows = [line for name in sorted(set(names))
                for line in self.program("components", name, "--markdown").splitlines()
                if line.startswith("| `")]
        self.checks.check(len(rows) > 150, "only %d options were found" % len(rows))
        for row in rows:
            cells = [cell.strip().replace("\\|", "|").replace("`", "")
                     for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
            name, kind, default, values, does = cells
            head = "%s (%s%s)" % (name, kind, {"": "", "required": ", required"}.get(
                default, ", default " + default))
            entry = " ".join(("%s %s." % (head, does)).split())
            if values:
                entry += " Takes %s." % values
            self.checks.check(entry in words, "culprit.yaml(5) lacks: " + entry)

    def search_path(self):
        """The scripts ask the program itself."""
        return os.path.join(self.tree, "usr/bin") + ":" + os.environ["PATH"]

    def completed(self, *words):
        """What bash offers for the last of these words."""
        script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _culprit; ' \
                 'printf "%s\\n" "${COMPREPLY[@]}"'
        path = os.path.join(self.tree, "usr/share/bash-completion/completions/culprit")
        done = said("bash", "-c", script, "bash", path, "culprit", *words, folder=self.tree,
                    PATH=self.search_path())
        self.checks.equal(done.stderr, "", "bash completes %r" % (words,))
        return set(done.stdout.split())

    def completion(self):
        equal = self.checks.equal
        equal(self.completed("an"), {"analyze"}, "bash: a command")
        equal(self.completed("config", ""), {"print", "schema", "--help"}, "bash: config")
        equal(self.completed("config", "print", "--c"), {"--config"}, "bash: config print")
        equal(self.completed("analyze", "--out"), {"--output"}, "bash: an option")
        equal(self.completed("analyze", "--output", "t"), {"text", "timeline"}, "bash: its values")
        equal(self.completed("analyze", "-o", "t"), {"text", "timeline"}, "bash: -o")
        equal(self.completed("analyze", "--fail-on", "=", "e"), {"error"}, "bash: --name=value")
        equal(self.completed("analyze", "etc/d"), {"etc/default"}, "bash: a file")
        equal(self.completed("analyze", "--pipeline", ""), set(), "bash: what only the user knows")
        equal(self.completed("components", "first_c"), {"first_cause"}, "bash: a component")
        equal(self.completed("components", "kaf"), {"kafka"}, "bash: one name, two components")
        equal(self.completed("completion", ""), {"bash", "zsh", "fish"}, "bash: shells")
        equal(self.completed("manual", ""), {"culprit", "culprit.yaml"}, "bash: manual pages")
        equal(self.completed("store", "check", "us"), {"usr"}, "bash: a folder")
        self.completion_zsh()
        self.completion_fish()

    def completion_fish(self):
        path = os.path.join(self.tree, "usr/share/fish/vendor_completions.d/culprit.fish")
        wanted = {"culprit an": {"analyze"}, "culprit config ": {"print", "schema", "--help"},
                  "culprit analyze --out": {"--output"}, "culprit config print --c": {"--config"},
                  "culprit analyze -o ti": {"timeline"}, "culprit components first_c": {"first_cause"},
                  "culprit analyze etc/d": {"etc/default/"}, "culprit validate --format=j":
                  {"--format=json"}}
        for line, words in wanted.items():
            done = said("fish", "-N", "-c", "source $argv[1]; complete -C $argv[2]", path, line,
                        folder=self.tree, HOME=self.folder, PATH=self.search_path())
            found = {each.split("\t")[0] for each in done.stdout.splitlines()}
            self.checks.equal((found, done.stderr), (words, ""), "fish completes " + line)

    def completion_zsh(self):
        path = os.path.join(self.tree, "usr/share/zsh/vendor-completions/_culprit")
        self.same(said("zsh", "-n", path), 0, "zsh -n")
        wanted = {"culprit an": ["analyze"], "culprit config p": ["print"],
                  "culprit analyze --out": ["--output"], "culprit config print --conf": ["--config"],
                  "culprit analyze -o ti": ["timeline"], "culprit components first_c": ["first_cause"],
                  "culprit analyze --fail-on=crit": ["--fail-on=critical"],
                  "culprit analyze --html=etc/d": ["--html=etc/default/"]}
        for line, words in wanted.items():
            done = said("zsh", "-f", os.path.join(HERE, "complete.zsh"), os.path.dirname(path), line,
                        folder=self.tree, HOME=self.folder, TERM="dumb",
                        PATH=self.search_path())
            self.checks.equal(done.stdout.split(), ["culprit", *line.split()[1:-1], *words],
                              "zsh completes %s (%s)" % (line, done.stderr[-300:]))

    # -- the unit, the bill of materials, the image -----------------------------------------------

    def unit(self):
        path = os.path.join(self.tree, "lib/systemd/system/culprit.service")
        done = said("systemd-analyze", "security", "--offline=true", "--no-pager", path)
        figure = re.search(r"Overall exposure level for culprit.service: ([\d.]+)", done.stdout)
        self.checks.check(figure and float(figure.group(1)) <= EXPOSURE_MAX,
                          lambda: "exposure: %s" % (figure and figure.group(0) or done.stderr))

    def configuration(self):
        """What it says of its own config: it is right, and listens on the loopback address only."""
        path = os.path.join(self.tree, "etc/culprit/culprit.yaml")
        with open(os.path.join(self.tree, "lib/systemd/system/culprit.service"),
                  encoding="utf-8") as file:
            start = re.search(r"^ExecStart=(.*)$", file.read(), re.M).group(1)
        self.checks.equal(start, "/usr/bin/culprit run --config /etc/culprit/culprit.yaml",
                          "ExecStart")
        binary = os.path.join(self.tree, "usr/bin/culprit")
        self.same(said(binary, "validate", "--config", path), 0, "culprit validate")
        printed = said(binary, "config", "print", "--config", path).stdout
        endpoints = re.findall(r"^ +endpoint: \"?([^\s\"]+)", printed, re.M)
        self.checks.equal(sorted(endpoints), ["127.0.0.1:13133", "127.0.0.1:4318", "127.0.0.1:8888",
                                              "127.0.0.1:9464"], "where it listens")

    def materials(self):
        path = os.path.join(self.tree, "usr/share/doc/culprit/culprit.cdx.json")
        with open(path, encoding="utf-8") as file:
            bom = json.load(file)
        sbom.check(self.checks, bom, os.path.join(self.tree, "usr/bin/culprit"), self.version, ROOT)
        try:
            found = sbom.schema_faults(path)
        except sbom.Unreachable as error:
            self.checks.skip("the real CycloneDX schema: %s" % error)
        else:
            self.checks.equal(found, "", "the bill of materials, by the real schema")

    def image(self):
        path = os.path.join(ROOT, "packaging", "Containerfile")
        with open(path, encoding="utf-8") as file:
            found, commands, unknown = containerfile_faults(file.read(), ROOT, self.tree)
        if unknown:
            self.checks.skip("apt has no lists here, so these packages may not exist: %s" %
                             ", ".join(unknown))
        self.checks.equal(found, [], "packaging/Containerfile")
        self.checks.check(commands > 5, "only %d commands were looked at" % commands)

    def image_runs(self):
        """Its files, made of this machine's libraries, are enough to run it. (--clean-root runs every
        step of the Containerfile.)"""
        try:
            clean_root.unable("unshare", "ip", "curl")
        except Unable as reason:
            self.checks.skip("the files of the image were not run: %s" % reason)
            return
        image = clean_root.local_image(self.deb, os.path.join(self.folder, "image"))
        clean_root.check_image(self.checks, image)
        clean_root.check_container(self.checks, image, image.folder)

    # -- installed --------------------------------------------------------------------------------

    def installed(self):
        try:
            machine = Machine(self.folder)
        except Unable as reason:
            self.checks.skip("installing it: %s" % reason)
            return
        try:
            Installed(self.checks, machine, self.deb).everything()
        finally:
            machine.stop()


def in_clean_root():
    checks = Checks()
    place = os.path.join(ROOT, "build")
    os.makedirs(place, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="clean-root-", dir=place) as folder:
        try:
            clean_root.everything(checks, folder)
        except clean_root.Failed as error:
            checks.check(False, str(error))
        except Unable as reason:
            checks.skip("the clean root: %s" % reason)
    return checks.finish()


def main():
    if "--clean-root" in sys.argv[2:]:
        return in_clean_root()
    with tempfile.TemporaryDirectory(prefix="culprit-package-") as folder:
        suite = Suite(folder)
        missing = [name for name in ("dpkg-deb", "lintian", "mandoc", "groff", "systemd-analyze",
                                     "fish", "zsh", "cpack") if shutil.which(name) is None]
        if missing:
            suite.checks.skip("the package: there is no " + ", ".join(missing))
        elif suite.make():
            for part in (suite.control, suite.contents, suite.pages, suite.lintian, suite.manuals,
                         suite.completion, suite.unit, suite.configuration, suite.materials,
                         suite.image, suite.image_runs, suite.installed):
                started = time.monotonic()
                part()
                print("%s: %.1f s" % (part.__name__, time.monotonic() - started), flush=True)
        return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main())
