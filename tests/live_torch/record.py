#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs real PyTorch jobs that are broken on purpose, and keeps what a collector would find of them.

    record.py PYTHON OUT [CASE…]

PYTHON is one with torch. A job is two torchrun agents of two ranks each on this machine, with gloo
over the loopback interface; where host names can be set (unshare), each agent has its own. Of each
case (cases.py) a folder is left in OUT:

    node-*/agent.stdout, agent.stderr     the console of each agent
    node-*/logs/…                         what its ranks wrote, and their error files
    node-*/rank_map.jsonl                 which process is which rank
    node-*/flight_recorder/…              dumps of the ranks that waited for a peer
    node-*/kernel.log                     what the kernel said of these processes, where it may be read
    telemetry/rank*/                      stormlog's, in cases that ask for it
    truth.json                            the truth, which is no input

A job ends by itself or at its limit. Only processes that carry the mark of this job in their
environment are ended, by their pid.
"""
import ctypes
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import cases  # noqa: E402
from ports import free_port  # noqa: E402

NODES = ("node-a", "node-b")
RANKS_PER_NODE = 2
LIMIT_S = 150               # of a job; the longest waits 30 s for torchrun to kill what is stopped
MARK = "CULPRIT_TEST_JOB"   # in the environment of each process of a job
MEMORY_LIMIT = 800 << 20
CGROUPS = (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max"))


LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def end_with_parent():
    """In an agent: SIGTERM when this program is killed, and torchrun ends its ranks."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def can(python, statement):
    try:
        return subprocess.run([python, "-c", statement], stdin=subprocess.DEVNULL,
                              capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def host_name_setter():
    """What sets a host name of its own for a process, or None where nothing may."""
    for command in (["unshare", "--uts"], ["unshare", "--user", "--map-root-user", "--uts"]):
        try:
            done = subprocess.run([*command, "hostname", NODES[0]], stdin=subprocess.DEVNULL,
                                  capture_output=True, check=False)
        except FileNotFoundError:
            return None
        if done.returncode == 0:
            return command
    return None


class MemoryGroup:
    """A control group with a memory limit; `procs` is None where this machine lets us make none."""

    def __init__(self, name):
        self.folder = self.procs = None
        for base, limit in CGROUPS:
            folder = os.path.join(base, name)
            try:
                os.mkdir(folder)
            except OSError:
                continue
            self.folder = folder
            try:
                with open(os.path.join(folder, limit), "w", encoding="ascii") as file:
                    file.write(str(MEMORY_LIMIT))
            except OSError:
                self.remove()
                continue
            self.procs = os.path.join(folder, "cgroup.procs")
            return

    def remove(self):
        for _ in range(100):  # what was killed leaves it a moment later
            try:
                os.rmdir(self.folder)
                break
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.05)
        self.folder = None


def can_limit_memory():
    group = MemoryGroup("culprit-test-" + uuid.uuid4().hex)
    able = group.procs is not None
    if group.folder:
        group.remove()
    return able


class KernelLog:
    """What the kernel says from now on; nothing where that may not be read."""

    def __init__(self):
        try:
            self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self.fd, 0, os.SEEK_END)
        except OSError:
            self.fd = None
        self.records = []

    def read(self):
        while self.fd is not None:
            try:
                record = os.read(self.fd, 8192).decode("utf-8", "replace")
            except BlockingIOError:
                return
            except OSError:  # overwritten before it was read
                continue
            self.records.append((time.time_ns(), record.split(";", 1)[1].split("\n")[0]))

    def close(self):
        self.read()
        if self.fd is not None:
            os.close(self.fd)


def marked(mark):
    """The processes that carry a mark in their environment."""
    wanted = ("%s=%s" % (MARK, mark)).encode()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/environ" % name, "rb") as file:
                    if wanted in file.read().split(b"\0"):
                        yield int(name)
            except OSError:
                pass


class Job:
    """One job of a case below `folder`; `start`, then `wait`, then `collect`. `close` in any case."""

    def __init__(self, python, case, folder, names=host_name_setter, options=()):
        self.python, self.case, self.folder = python, case, folder
        self.names = names()
        self.options = list(options)
        self.mark = uuid.uuid4().hex
        self.nodes = NODES if self.names else (os.uname().nodename,)
        self.per_node = RANKS_PER_NODE * len(NODES) // len(self.nodes)
        self.agents, self.exits = {}, {}
        self.group = None
        self.work = tempfile.mkdtemp(prefix="culprit-job-")

    def command(self, node, port):
        place = os.path.join(self.folder, node)
        script = shutil.copyfile(os.path.join(HERE, "train.py"),
                                 os.path.join(self.work, "train.py"))
        command = [] if not self.names else [
            *self.names, "sh", "-c", "hostname \"$0\" && exec \"$@\"", node]
        command += [self.python, "-m", "torch.distributed.run", "--nnodes", str(len(self.nodes)),
                    "--node-rank", str(self.nodes.index(node)), "--nproc-per-node",
                    str(self.per_node), "--master-addr", "127.0.0.1", "--master-port", str(port),
                    "--log-dir", os.path.join(place, "logs"), "--redirects", "3", "--tee", "3",
                    script, "--out", place, *self.case.options, *self.options]
        if self.case.telemetry():
            command += ["--telemetry", os.path.join(self.folder, "telemetry")]
        if self.group:
            command += ["--cgroup", self.group.procs]
        return command

    def environment(self, node):
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "OPENBLAS_CORETYPE")
                if key in os.environ}
        return {**kept, MARK: self.mark, "TMPDIR": self.work, "LANG": "C.UTF-8", "TZ": "UTC",
                "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "CUDA_VISIBLE_DEVICES": "",
                "PYTHONDONTWRITEBYTECODE": "1", "TORCH_FR_BUFFER_SIZE": "64",
                "TORCH_FR_DUMP_TEMP_FILE": os.path.join(
                    self.folder, node, "flight_recorder", "comm_lib_trace_rank_")}

    def start(self):
        if "cgroup" in self.case.needs:
            self.group = MemoryGroup("culprit-test-" + self.mark)
        self.kernel = KernelLog()
        self.limit = time.monotonic() + LIMIT_S
        port = free_port()
        for node in self.nodes:
            place = os.path.join(self.folder, node)
            os.makedirs(place, exist_ok=True)
            with open(os.path.join(place, "agent.stdout"), "wb") as out, \
                    open(os.path.join(place, "agent.stderr"), "wb") as err:
                self.agents[node] = subprocess.Popen(
                    self.command(node, port), env=self.environment(node), cwd=self.work,
                    stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
                    preexec_fn=end_with_parent)

    def is_running(self):
        self.kernel.read()
        return any(agent.poll() is None for agent in self.agents.values())

    def wait(self):
        """Whether it ended within its limit."""
        while self.is_running():
            if time.monotonic() > self.limit:
                return False
            time.sleep(0.02)
        return True

    def close(self):
        """Ends what is left; -> how many processes that were not stopped by the launcher."""
        left = 0
        for _ in range(20):  # a process that ends may just have started another
            found = list(marked(self.mark))
            if not found:
                break
            left += len(found)
            for pid in found:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            for agent in self.agents.values():
                agent.poll()
            time.sleep(0.1)
        for node, agent in self.agents.items():
            self.exits[node] = agent.wait()
        if self.group and self.group.folder:
            self.group.remove()
        shutil.rmtree(self.work, ignore_errors=True)
        return left

    def ranks(self):
        found = []
        for path in glob.glob(os.path.join(self.folder, "*", "rank_map.jsonl")):
            with open(path, encoding="utf-8") as file:
                found += [json.loads(line) for line in file]
        return sorted(found, key=lambda line: line["rank"])

    def collect(self):
        """The kernel's log and the truth; call it when the job has ended."""
        self.kernel.close()
        ranks = self.ranks()
        place_of = {line["process.pid"]: line["host.name"] for line in ranks}
        for node, agent in self.agents.items():
            place_of[agent.pid] = node
        for time_ns, text in self.kernel.records:
            nodes = [place_of[pid] for pid in map(int, re.findall(r"\d+", text[:4096]))
                     if pid in place_of]
            if nodes:
                self.write_kernel_line(nodes[0], time_ns, text)
        truth = self.truth(ranks)
        with open(os.path.join(self.folder, "truth.json"), "w", encoding="utf-8") as file:
            json.dump(truth, file, indent=1)
            file.write("\n")
        return truth

    def write_kernel_line(self, node, time_ns, text):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time_ns // 10**9))
        with open(os.path.join(self.folder, node, "kernel.log"), "a", encoding="utf-8") as file:
            file.write("%s.%06d+00:00 %s kernel: %s\n" % (
                stamp, time_ns % 10**9 // 1000, node, text))

    def truth(self, ranks):
        """In the form of golden/real_exits."""
        case, own, cause = self.case, None, None
        who = next(({"rank": line["rank"], "host": line["host.name"], "pid": line["process.pid"]}
                    for line in ranks if line["rank"] == case.rank), None)
        if who and case.ends_by_itself():
            own = {**who, "kind": case.accept["kinds"][0]}
            if case.exception:
                own.update(exception=case.exception, message=case.message)
        elif who:
            cause = {**who, "kind": case.fault}
        accept = {**case.accept, "hosts": [who["host"]] if who else []}
        return {**case.truth, "healthy": bool(accept.get("nobody")), "recovered": False,
                "own_end": own, "other_own_ends": [], "earlier_rounds": [], "cause": cause,
                "ends": [{"rank": line["rank"], "host": line["host.name"],
                          "pid": line["process.pid"]} for line in ranks],
                "exits": self.exits, "accept": accept}


def main():
    python, out = sys.argv[1:3]
    wanted = [cases.named(name) for name in sys.argv[3:]] or cases.ANALYSED
    for case in wanted:
        folder = os.path.join(os.path.abspath(out), case.name)
        os.makedirs(folder)
        job = Job(python, case, folder)
        try:
            job.start()
            in_time = job.wait()
        finally:
            left = job.close()
        truth = job.collect()
        print("%-20s exits %s%s, %d processes left" % (
            case.name, truth["exits"], "" if in_time else ", at its limit", left), flush=True)


if __name__ == "__main__":
    main()
