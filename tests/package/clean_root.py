# SPDX-License-Identifier: Apache-2.0
"""Does it all work where there is nothing but Debian?

Roots are made by debootstrap. In copies of one the steps of packaging/Containerfile are run as they
stand, the build too; what comes of it is started as a container would be: another user, a read-only
root, no capabilities, a network of its own. In another copy apt installs the package with what it
recommends and purges it, without systemd first, then with it (installed.py).
"""
import errno
import fnmatch
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from containerfile import instructions
from installed import JOB, POST, ROOT, Installed, wait_for
from machine import Machine, Unable
import sbom

PATIENCE_S = 1500
SIZE_MAX = 80 << 20  # of what the image holds
VARIABLES = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C",
             "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
# Started by unshare: $1 root, the rest a command.
CHROOT = 'mount --make-rprivate / && mount -t proc proc "$1/proc" && exec chroot "$@"'
# $1 root, $2 user:group, $3 the volume's folder within, $4 that of the volume here; a command.
CONTAINER = r"""
set -eu
root=$1 inside=$3 volume=$4
mount --make-rprivate /
ip link set lo up
mount --bind "$root" "$root"
mount --bind "$volume" "$root$inside"
mount -t proc proc "$root/proc"
mount -o remount,bind,ro "$root"
exec "$PYTHON" -c "$ENTER" "$@"
"""
# The root may hold no program but the one to run, so nothing of it is used to get there.
ENTER = r"""
import ctypes, os, sys
root, owner, inside = sys.argv[1:4]
user, group = map(int, owner.split(":"))
prctl = ctypes.CDLL(None, use_errno=True).prctl
with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as file:
    last = int(file.read())
os.chroot(root)
os.chdir(inside)
for capability in range(last + 1):
    if prctl(24, capability, 0, 0, 0) != 0:  # PR_CAPBSET_DROP
        sys.exit("capability %d stays" % capability)
os.setgroups([])
os.setresgid(group, group, group)
os.setresuid(user, user, user)
if prctl(38, 1, 0, 0, 0) != 0:  # PR_SET_NO_NEW_PRIVS
    sys.exit("no_new_privs cannot be set")
os.execve(sys.argv[5], sys.argv[5:], {"PATH": os.environ["PATH"]})
"""
# Changed by installing anything.
KEPT_BY_APT = re.compile(r"/(var/(lib/(dpkg|apt)|cache|log)|proc)(/|$)|/etc/ld\.so\.cache$")


class Failed(Exception):
    """What follows makes no sense."""


def ran(command, what, folder=None):
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", timeout=PATIENCE_S, check=False)
    if done.returncode != 0:
        raise Failed("%s: exit code %d: %s" % (what, done.returncode,
                                               (done.stdout + done.stderr)[-1500:]))
    return done.stdout


def within(root, *command):
    """Runs a command in a root, with this machine's network -> what it prints."""
    return ran(["unshare", "--mount", "--pid", "--fork", "--kill-child", "env", "-i",
                *("%s=%s" % pair for pair in VARIABLES.items()),
                "sh", "-c", CHROOT, "chroot", root, *command], " ".join(command)[:120])


def mirror():
    """What apt gets Debian from here: (release, address), the address None when it is unknown."""
    with open("/etc/os-release", encoding="utf-8") as file:
        values = dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line)
    if values.get("ID") != "debian":
        raise Unable("this is no Debian, whose packages could be taken")
    release = values["VERSION_CODENAME"]
    lines = subprocess.run(["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)"],
                           capture_output=True, text=True, check=False).stdout.splitlines()
    found = [line.split()[1] for line in lines if line.split()[0] == release]
    return release, found[0] if found else None


def unable(*programs):
    """Raises Unable where roots cannot be made and entered."""
    if os.geteuid() != 0:
        raise Unable("only root can make one")
    for program in programs:
        if shutil.which(program) is None:
            raise Unable("there is no " + program)


def bootstrap(place):
    unable("debootstrap", "unshare", "ip", "curl")
    release, address = mirror()
    command = ["debootstrap", "--variant=minbase", release, place]
    ran(command + ([address] if address else []), "debootstrap")


def copied(root, place):
    ran(["cp", "-a", root, place], "cp -a")
    return place


def paths(root):
    found = set()
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            found.add(os.path.join(folder, name)[len(root):])
    return found


def source_without(patterns):
    """For copytree: leaves out what .containerignore names."""
    def ignored(folder, names):
        inside = os.path.relpath(folder, ROOT)
        left = set()
        for name in names:
            path = os.path.normpath(os.path.join(inside, name))
            for pattern in patterns:
                if fnmatch.fnmatch(path if "**/" not in pattern else name,
                                   pattern.replace("**/", "").strip("/")):
                    left.add(name)
        return left
    return ignored


class Image:
    """The stages of a Containerfile, each a root: what `podman build` would make."""

    def __init__(self, base, folder):
        self.base, self.folder = base, folder
        self.stages = {}
        self.root, self.place, self.settings = None, "/", {}

    def make(self, text):
        for _, word, rest in instructions(text):
            if word == "FROM":
                self.stage(rest.split())
            elif word == "WORKDIR":
                self.place = rest
                os.makedirs(self.root + rest, exist_ok=True)
                self.settings[word] = rest
            elif word == "COPY":
                self.copy(rest.split())
            elif word == "RUN":
                within(self.root, "sh", "-c", 'cd "$0" && ' + rest, self.place)
            else:
                self.settings[word] = rest

    def stage(self, words):
        self.root = os.path.join(self.folder, "stage%d" % len(self.stages))
        if words[0] == "scratch":
            os.mkdir(self.root)
        else:
            copied(self.base, self.root)
        self.stages[words[2] if len(words) == 3 else ""] = self.root
        self.place, self.settings = "/", {}

    def copy(self, words):
        if words[0].startswith("--from="):
            stage, owner = self.stages[words[0][len("--from="):]], None
            if words[1].startswith("--chown="):
                owner = words.pop(1)[len("--chown="):]
            source, target = stage + words[1], self.root + words[2]
            if not os.path.isdir(source):
                raise Failed("COPY: the stage before has no folder " + words[1])
            there = os.path.isdir(target)
            # What a folder holds; owners become root, or those that are named.
            ran(["cp", "-a", "--no-preserve=ownership", "-T", source, target], "COPY")
            if owner and not there:
                ran(["chown", "-R", owner, target], "COPY --chown")
            return
        if words != [".", "."]:
            raise Failed("COPY %s is not known to this test" % " ".join(words))
        with open(os.path.join(ROOT, ".containerignore"), encoding="utf-8") as file:
            patterns = [line for line in file.read().split("\n") if line]
        shutil.copytree(ROOT, self.root + self.place, symlinks=True, dirs_exist_ok=True,
                        ignore=source_without(patterns))


def local_image(deb, folder):
    """The last stage, from the package and the libraries of this machine."""
    made = {name: os.path.join(folder, "made", name) for name in ("image", "state")}
    os.makedirs(os.path.dirname(made["image"]))
    ran([sys.executable, "-B", os.path.join(ROOT, "packaging", "make_image_root"), deb, ROOT,
         made["image"], made["state"]], "make_image_root")
    image = Image(os.path.join(folder, "made"), folder)
    image.stages["build"] = os.path.join(folder, "made")
    with open(os.path.join(ROOT, "packaging", "Containerfile"), encoding="utf-8") as file:
        image.make("FROM scratch" + file.read().partition("FROM scratch")[2])
    return image


class Container:
    """The image as it would run with --read-only, --cap-drop=all and one volume."""

    def __init__(self, image, folder):
        self.image, self.volume = image, os.path.join(folder, "volume")
        self.log_path = os.path.join(folder, "container.log")
        inside = image.settings["VOLUME"]
        # A new volume gets what the image has there, owner and mode too.
        shutil.copytree(image.root + inside, self.volume)
        kept = os.stat(image.root + inside)
        os.chown(self.volume, kept.st_uid, kept.st_gid)
        os.chmod(self.volume, kept.st_mode)
        self.inside = inside

    def start(self, command):
        # No --kill-child: the process that is forked is the container's first one.
        with open(self.log_path, "ab") as log:
            self.outer = subprocess.Popen(
                ["unshare", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "env", "-i",
                 "PATH=" + VARIABLES["PATH"], "PYTHON=" + sys.executable, "ENTER=" + ENTER, "sh", "-c", CONTAINER, "container", self.image.root,
                 self.image.settings["USER"], self.inside, self.volume, *command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def first(self):
        with open("/proc/%d/task/%d/children" % (self.outer.pid, self.outer.pid),
                  encoding="ascii") as file:
            return int(file.read().split()[0])

    def ready(self):
        try:
            return '"ok"' in self.run("curl", "-sS", "http://127.0.0.1:13133/readyz").stdout
        except (OSError, IndexError):  # unshare has not made it yet, or it is gone
            return False

    def run(self, *command):
        return subprocess.run(["nsenter", "--target", str(self.first()), "--net", *command],
                              capture_output=True, text=True, errors="replace", timeout=60,
                              check=False)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()[-1500:]


def check_image(checks, image):
    """It holds each library that a configuration may load, no compiler, little else."""
    found = paths(image.root)
    names = {os.path.basename(path) for path in found}
    for soname, package, _ in sbom.late_libraries(ROOT):
        checks.check(soname in names, "the image lacks %s of %s" % (soname, package))
    checks.check("/etc/ssl/certs/ca-certificates.crt" in found, "the image trusts no authority")
    programs = {path for path in found if re.match(r"/(usr/)?s?bin/", path)}
    checks.equal(programs, {"/usr/bin/culprit"}, "programs in the image")
    for path in ("/package", "/source", "/image", "/state"):
        checks.check(path not in found, "the image holds " + path)
    check_packages(checks, image.root)
    size = int(ran(["du", "-sxb", image.root], "du").split()[0])
    print("the image holds %.0f MiB" % (size / 2**20))
    checks.check(size < SIZE_MAX, "the image holds %d bytes" % size)


def check_packages(checks, root):
    """The packages that the image lists are those of its bill of materials, and more of the kind that
    holds no library; each comes with its licence."""
    listed = {}
    for path in glob.glob(root + "/var/lib/dpkg/status.d/*"):
        with open(path, encoding="utf-8") as file:
            fields = dict(re.findall(r"^(Package|Version): (.*)$", file.read(), re.M))
        listed[fields["Package"]] = fields["Version"]
        checks.check(os.path.exists("%s/usr/share/doc/%s/copyright" % (root, fields["Package"])),
                     "no licence of " + fields["Package"])
    with open(root + "/usr/share/doc/culprit/culprit.cdx.json", encoding="utf-8") as file:
        billed = {one["name"]: one["version"] for one in json.load(file)["components"]}
    more = {name: version for name, version in listed.items() if name not in billed}
    checks.equal(sorted(more), ["base-files", "ca-certificates", "tzdata"], "packages beyond the bill")
    checks.equal({**billed, **more}, listed, "packages of the image, and of its bill of materials")


def check_container(checks, image, folder):
    container = Container(image, folder)
    command = json.loads(image.settings["ENTRYPOINT"]) + json.loads(image.settings["CMD"])
    before = paths(image.root)
    container.start(command)
    try:
        wait_for(lambda: container.outer.poll() is not None or container.ready())
        if container.outer.poll() is not None:
            raise Failed("the container ended: " + container.log())
        checks.check(container.ready(), lambda: "the container is not ready: " + container.log())
        with open("/proc/%d/status" % container.first(), encoding="ascii") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        capabilities = int(status["CapEff"], 16) | int(status["CapBnd"], 16)
        checks.equal((status["Name"], status["Uid"].split()[0], status["Gid"].split()[0],
                      status["Groups"].strip(), capabilities),
                     ("culprit", "65532", "65532", "", 0), "the container's first process")
        try:
            os.close(os.open("/proc/%d/root/etc/x" % container.first(), os.O_CREAT | os.O_WRONLY))
            written = "done"
        except OSError as error:
            written = errno.errorcode[error.errno]
        checks.equal(written, "EROFS", "writing to its root")
        checks.equal(container.run("sh", "-c", POST, JOB).stdout, "200", "posting events")
        os.kill(container.first(), getattr(signal, image.settings["STOPSIGNAL"]))
        checks.equal(container.outer.wait(60), 0, "its exit code: " + container.log())
    finally:
        if container.outer.poll() is None:
            os.killpg(container.outer.pid, signal.SIGKILL)
    with open(os.path.join(container.volume, "verdicts.jsonl"), encoding="utf-8") as file:
        verdicts = [json.loads(line) for line in file]
    checks.check([each for each in verdicts if each.get("kind") == "leak"],
                 lambda: "no leak among %r" % verdicts)
    checks.equal(paths(image.root) - before, set(), "what it wrote outside its volume")


def check_apt(checks, root, deb):
    """apt brings what the package depends on and recommends; a purge leaves nothing."""
    before = paths(root)
    shutil.copy(deb, root + "/tmp/culprit.deb")
    within(root, "apt-get", "install", "-y", "--install-recommends", "/tmp/culprit.deb")
    for package in ("libmicrohttpd12", "libsqlite3-0", "libfyaml0"):
        checks.check(glob.glob(root + "/var/lib/dpkg/info/%s*.list" % package),
                     "apt did not bring " + package)
    checks.check(within(root, "culprit", "version").startswith("culprit "), "culprit version")
    within(root, "culprit", "validate", "--config", "/etc/culprit/culprit.yaml")
    within(root, "apt-get", "purge", "-y", "--autoremove", "culprit")
    os.remove(root + "/tmp/culprit.deb")
    left = [path for path in sorted(paths(root) - before)
            if "culprit" in path or not KEPT_BY_APT.match(path)]
    checks.equal(left, [], "what a purge leaves behind in a clean root")


def check_service(checks, root, deb, folder):
    """The same life as on this machine, where apt had to bring everything."""
    within(root, "apt-get", "install", "-y", "--no-install-recommends", "systemd", "curl", "man-db",
           "libmicrohttpd12", "libsqlite3-0", *depends(deb))
    machine = Machine(folder, root)
    try:
        Installed(checks, machine, deb).everything()
    finally:
        machine.stop()


def depends(deb):
    text = ran(["dpkg-deb", "-f", deb, "Depends"], "dpkg-deb -f")
    return [part.split()[0] for part in text.split(",")]


def everything(checks, folder):
    started = time.monotonic()

    def say(what):
        print("%s: done after %.0f s" % (what, time.monotonic() - started), flush=True)

    base = os.path.join(folder, "base")
    bootstrap(base)
    say("debootstrap")
    image = Image(base, folder)
    with open(os.path.join(ROOT, "packaging", "Containerfile"), encoding="utf-8") as file:
        image.make(file.read())
    say("the Containerfile's steps")
    check_image(checks, image)
    check_container(checks, image, folder)
    say("the container")
    deb, = glob.glob(image.stages["build"] + "/package/culprit_*.deb")
    within(base, "apt-get", "update")
    check_apt(checks, base, deb)
    say("apt")
    check_service(checks, base, deb, folder)
    say("the service")
