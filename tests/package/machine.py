# SPDX-License-Identifier: Apache-2.0
"""A machine to install packages on: this one's files, or those of another root, under a layer that
is thrown away, with a systemd of its own that runs units with their whole sandbox.

Namespaces keep it apart: processes, network (only the loopback), mounts, control groups. What is
written lands in a layer in memory, which can be looked at (`written`). It needs root and a kernel
that lets it mount; Machine raises Unable with the reason when that is not so.
"""
import os
import shutil
import subprocess
import time

PATIENCE_S = 60
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# $1: folder for the layers; $2: the root below them. Units there that would start with systemd are
# taken away: what is left is journald and what is asked for. So is what culprit left there before.
BOOT = r"""
set -eu
mount --make-rprivate /
mount -t tmpfs -o mode=755 layers "$1"
root=$1/root
mkdir "$root" "$1/upper" "$1/work"
mount -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" overlay "$root"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 run "$root/run"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
mount -t tmpfs -o mode=755 dev "$root/dev"
mkdir "$root/dev/shm" "$root/dev/pts"
for name in null zero full random urandom tty; do
    touch "$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
done
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
for folder in etc/systemd/system lib/systemd/system; do
    rm -rf "$root/$folder/"*.wants "$root/$folder/"*.requires
done
rm -rf "$root/lib/systemd/system-generators" "$root/usr/sbin/policy-rc.d" \
    "$root/var/lib/man-db/auto-update" "$root/etc/culprit" "$root/etc/default/culprit" \
    "$root/var/lib/culprit" "$root/var/lib/private/culprit"
mkdir -p "$root/etc/systemd/system" "$root/var/log/journal"
cat >"$root/etc/systemd/system/machine.target" <<UNIT
[Unit]
DefaultDependencies=no
Wants=systemd-journald.service systemd-journald.socket
UNIT
: >"$root/etc/fstab"
mkdir "$root/run/written"
mount --bind "$1/upper" "$root/run/written"
# No chroot: from within one the kernel makes no user namespace, which PrivateUsers= needs.
mkdir "$root/run/old"
cd "$root"
pivot_root . run/old
umount -l /run/old
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . \
    /lib/systemd/systemd --system --unit=machine.target --log-target=console --log-level=warning \
    --show-status=no
"""
NAMESPACES = ["--mount", "--pid", "--net", "--ipc", "--uts", "--cgroup"]


class Unable(Exception):
    """This machine cannot hold another one."""


def cgroup_mount():
    with open("/proc/mounts", encoding="utf-8") as file:
        for line in file:
            _, place, kind = line.split(" ")[:3]
            if kind == "cgroup2":
                return place
    raise Unable("no cgroup2 is mounted")


class Machine:
    def __init__(self, folder, root="/"):
        if os.geteuid() != 0:
            raise Unable("only root can install packages")
        for program in ("unshare", "nsenter", os.path.join(root, "lib/systemd/systemd")):
            if shutil.which(program) is None:
                raise Unable("there is no " + program)
        self.root = root
        self.folder = os.path.join(folder, "machine")
        os.mkdir(self.folder)
        self.log_path = os.path.join(folder, "machine.log")
        self.group = os.path.join(cgroup_mount(), "culprit-test-%d" % os.getpid())
        try:
            os.mkdir(self.group)
        except OSError as error:
            raise Unable("no control group can be made: %s" % error) from error
        self.outer = None
        try:
            self.boot()
        except BaseException:
            self.stop()
            raise

    def boot(self):
        script = 'echo $$ >"$3/cgroup.procs" && exec unshare %s --fork --kill-child ' \
                 'sh -c "$4" boot "$1" "$2"' % " ".join(NAMESPACES)
        with open(self.log_path, "wb") as log:
            self.outer = subprocess.Popen(
                ["sh", "-c", script, "boot", self.folder, self.root, self.group, BOOT],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self.outer.poll() is not None:
                raise Unable("it does not start: " + self.log()[-300:])
            self.inner = self.first_process()
            if self.inner and self.ready():
                return
            time.sleep(0.1)
        raise Unable("its systemd does not answer: " + self.log()[-300:])

    def first_process(self):
        path = "/proc/%d/task/%d/children" % (self.outer.pid, self.outer.pid)
        try:
            with open(path, encoding="ascii") as file:
                children = file.read().split()
            with open("/proc/%s/comm" % children[0], encoding="ascii") as file:
                return int(children[0]) if file.read().strip() == "systemd" else None
        except (OSError, IndexError):
            return None

    def ready(self):
        done = self.run("systemctl", "is-active", "machine.target")
        return done.stdout.strip() == "active"

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def run(self, *command, data=None, **more):
        """Runs a command within, with this environment added -> CompletedProcess with texts."""
        variables = {"PATH": PATH, "LC_ALL": "C", "HOME": "/root",
                     "DEBIAN_FRONTEND": "noninteractive", **more}
        return subprocess.run(
            ["nsenter", "--target", str(self.inner), *NAMESPACES, "--root", "--wd=/", "env", "-i",
             *("%s=%s" % pair for pair in variables.items()), *command],
            input=data, capture_output=True, text=True, errors="replace", timeout=120, check=False)

    def path(self, path):
        """The same file, seen from outside."""
        return "/proc/%d/root%s" % (self.inner, path)

    def written(self):
        """All paths that were written, made or removed since it was started."""
        top = self.path("/run/written")
        found = set()
        for folder, folders, files in os.walk(top):
            for name in folders + files:
                found.add(os.path.join(folder, name)[len(top):])
        return found

    def stop(self):
        if self.outer is not None:
            self.outer.kill()
            self.outer.wait()
        deadline = time.monotonic() + PATIENCE_S
        while os.path.isdir(self.group) and time.monotonic() < deadline:
            for folder, _, _ in os.walk(self.group, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    time.sleep(0.02)
