#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One program's log behind the prefixes that launchers, loggers and carriers put before each line:
the answer is that of the plain log, and names who wrote it.

    run_prefixes.py BINARY
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import Checks  # noqa: E402

# In a prefix R is the number of the writer, and {} the line where something stands behind it, too.
# Then the name that the answer gives to writer 3.
TIME = "2026-01-05 10:11:12,345"
PREFIXES = [
    # torch and its launchers
    ("torchrun --tee", "[defaultR]:", "process 3 of its node"),
    ("torchrun --tee, a role", "[trainerR]:", "process 3 of its node"),
    ("torchrun, template of a rank", "[R]: ", "rank 3"),
    ("torchrun, template of host and rank", "gpu-aR:R: ", "rank 3 on gpu-a3"),
    ("torchrun, template with the word rank", "rankR: ", "rank 3"),
    ("torch's hook for exceptions", "[rankR]: ", "rank 3"),
    ("torchx", "trainer/R ", "trainer/3"),
    ("torchx and torchrun", "trainer/R [default0]:", "local rank 0 on trainer/3"),
    ("NeMo-Run on Kubernetes", "[pod/train-R/w] [default0]:", "train-3"),
    ("accelerate", "[RANK R] ", "rank 3"),
    ("DeepSpeed", f"[{TIME}] [INFO] [engine.py:123:step] [Rank R] ", "rank 3"),
    ("nvidia-resiliency-ext", f"[{TIME}] [INFO] [rankmon71@gpu-a01:R] ", "rank 3"),
    ("logging with a rank", f"{TIME} [rankR] ", "rank 3"),
    # launchers of clusters
    ("pdsh", "gpu-aR: ", "gpu-a3"),
    ("pdsh, long names", "gpu-aR.cluster.example.org: ", "gpu-a3"),
    ("pdsh, addresses", "10.0.3.R: ", "10.0.3.3"),
    ("pdsh and torchrun", "gpu-aR: [default0]:", "local rank 0 on gpu-a3"),
    ("blaunch", "[gpu-aR] ", "gpu-a3"),
    ("srun --label", "R: ", "3"),
    ("srun --label, wide", " R: ", "3"),
    ("srun --label, two components", "P0 R: ", "3"),
    ("flux run --label-io", "R: ", "3"),
    ("Open MPI 4 --tag-output", "[1,R]<stderr>:", "rank 3"),
    ("Open MPI 4 --timestamp-output", "Mon Jan  5 10:11:12 2026[1,R]<stderr>:", "rank 3"),
    ("Open MPI 4 --xml", '<stderr rank="R">{}</stderr>', "rank 3"),
    ("Open MPI 4 --xml, ends of lines", '<stderr rank="R">{}&#010;</stderr>', "rank 3"),
    ("Open MPI 5 --output tag", "[1,R]<stderr>: ", "rank 3"),
    ("Open MPI 5 --output rank", "[R]<stderr>: ", "rank 3"),
    ("Open MPI 5 --output tag-detailed", "[1,R][gpu-a01:4130R]<stderr>: ", "rank 3 on gpu-a01"),
    ("Open MPI 5 --output tag-fullname", "[prterun-gpu-a01-41200@1,R]<stderr>: ", "rank 3"),
    ("Open MPI 5 --output timestamp", "[Mon Jan  5 10:11:12 2026][1,R]<stdout>: ", "rank 3"),
    ("Open MPI's own", "[gpu-aR:41301] ", "gpu-a3"),
    ("MPICH -prepend-rank", "[R] ", "rank 3"),
    ("horovodrun", "[R]<stderr>:", "rank 3"),
    ("horovodrun with times", "Mon Jan  5 10:11:12 2026[R]<stderr>:", "rank 3"),
    ("SageMaker", "[1,mpirank:R,algo-1]<stderr>", "rank 3"),
    ("xla_dist", f"{TIME} 10.0.3.R [R] ", "10.0.3.3"),
    # platforms
    ("Determined, a worker", "[rank=R] ", "rank 3"),
    ("Determined", "[2026-01-05T10:11:12.345678Z] 4f1c2d9a [rank=R] || ", "rank 3"),
    ("Ray", "(RayTrainWorker pid=4130R, ip=10.0.3.R) ", "41303"),
    ("Ray, tasks without a name", "(pid=4130R) ", "41303"),
    ("SkyPilot", "(workerR, rank=R, pid=4130R, ip=10.0.3.R) ", "41303"),
    ("vLLM", "(Worker_TPR pid=4130R) ", "41303"),
    ("vLLM, its core", "(EngineCore_DPR pid=4130R) ", "41303"),
    ("Habana", "[Rank:R] ", "rank 3"),
    # containers
    ("kubectl logs --prefix", "[pod/train-R/w] ", "train-3"),
    ("kubectl logs --prefix --timestamps", "[pod/train-R/w] 2026-01-05T10:11:12.345678901Z ",
     "train-3"),
    ("stern", "train-R w ", "train-3"),
    ("stern, all namespaces", "ml train-R w ", "train-3"),
    ("stern --timestamps", "ml train-R w 2026-01-05T10:11:12.345678901Z ", "train-3"),
    ("kail", "ml/train-R[w]: ", "train-3"),
    ("docker compose", "train-R  | ", ""),
    # no tool's: a program's own, of which no row knows
    ("a head with a rank", f"{TIME} - rank R - ", "rank 3"),
]

STEPS = 6
RAISED = ["Traceback (most recent call last):", '  File "/srv/train.py", line 12, in <module>',
          "    loss = model(x)", "           ^^^^^^^^",
          "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"]


def log(prefix):
    """Two writers count, and one of them raises."""
    lines = [(writer, f"step {step}/400 loss 2.{step}") for step in range(STEPS)
             for writer in (2, 3)]
    lines += [(3, line) for line in RAISED]
    xml = prefix.startswith("<")
    out = []
    for writer, line in lines:
        if xml:
            line = line.replace("<", "&lt;").replace(">", "&gt;")
        own = re.sub(r"R(?![A-Za-z])", str(writer), prefix)
        out.append(own.replace("{}", line) if "{}" in own else own + line)
    return "\n".join(out) + "\n"

# Consoles of two nodes in one log, of a job that was started twice. Each node has a local rank 1.
AGENT = " 7 torch/distributed/elastic/multiprocessing/api.py"
RESTARTED = """[default1]:[rank{rank}]: ValueError: could not convert string to float: '12.x'
E1127 20:52:03.040000{agent}:869] failed (exitcode: 1) local_rank: 1 (pid: {pid}) of binary: python
"""
LOST = "[default1]:[rank3]: RuntimeError: [pair.cc:534] Connection closed by peer [10.20.0.11]:1251"
SUMMARY = """[default1]:RuntimeError: Gloo connectFullMesh failed with [pair.cc:144] no error
E1127 20:53:21.740000{agent}:869] failed (exitcode: 1) local_rank: 1 (pid: {last}) of binary: py
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-27_20:53:21
  host      : {host}
  rank      : {rank} (local_rank: 1)
  exitcode  : 1 (pid: {last})
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""


def on_node(host, text):
    return "".join(f"{host}: {line}\n" for line in text.splitlines())


def restarted():
    nodes = [{"host": "gpu-a01", "rank": 1, "pid": 3897, "last": 7946},
             {"host": "gpu-a02", "rank": 3, "pid": 3898, "last": 7947}]
    steps = "".join(on_node(node["host"], f"[default1]:2026-11-27 20:51:5{step},033 step {step}/40")
                    for step in range(STEPS) for node in nodes)
    return (steps + on_node("gpu-a01", RESTARTED.format(agent=AGENT, **nodes[0])) +
            on_node("gpu-a02", LOST) +
            "".join(on_node(node["host"], SUMMARY.format(agent=AGENT, **node)) for node in nodes))


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()

    def answer(self, text):
        """The first sentence of the answer: who, and what is said of it."""
        path = os.path.join(self.folder, "train.log")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([self.binary, "analyze", "-q", path], capture_output=True, text=True,
                              check=False)
        sentence = " ".join(done.stdout.split("\n\n")[0].split())
        who, _, said = sentence.partition(" raised ")
        return who, said

    def run(self):
        _, plain = self.answer(log(""))
        self.checks.equal(plain.split(":")[0], "torch.OutOfMemoryError", "the plain log")
        for name, prefix, who in PREFIXES:
            named, said = self.answer(log(prefix))
            self.checks.equal(said, plain, name + ": what is said")
            self.checks.check(who.lower() in named.lower(), f"{name}: {who} is named, not {named}")
        named, said = self.answer(restarted())
        self.checks.equal(named, "Rank 1 on gpu-a01 ended first: it", "two starts on two nodes")
        self.checks.check(said.startswith("ValueError"), "two starts on two nodes: " + said)


def main(binary):
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(binary, folder)
        suite.run()
        sys.exit(suite.checks.finish())


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
