# SPDX-License-Identifier: Apache-2.0
"""One case: a cluster, what happens to it, and what its sources come to know of that.

An incident (incidents.py) adds facts and effects; `finish` then adds what every source writes all
the time. A fact has the true time; how it is written, by which clock and under which names is the
business of sources.py.
"""
import random

from cluster import Cluster, MINUTE, SECOND

DAY_NS = 1_794_960_000 * SECOND     # 2026-11-18 00:00:00 UTC
MIB = 1 << 20
GIB = 1 << 30
DEVICE_BYTES = 80 * GIB


class Fact:
    """Something that a source writes down once."""

    __slots__ = ("time", "source", "node", "data", "telling", "shift_ns")

    def __init__(self, time, source, node, data, telling):
        self.time, self.source, self.node, self.data = time, source, node, data
        self.telling = telling      # it is evidence of the incident
        self.shift_ns = 0           # how much later than true its time is written


class Case:
    def __init__(self, kind, number, seed, size=None, length=None):
        self.kind, self.number = kind, number
        self.name = "%s-%03d" % (kind, number)
        self.key = "%s/%s" % (seed, self.name)
        self.dice = random.Random(self.key + "/incident")
        self.cluster = Cluster(self.key + "/cluster", size)
        self.length = self.dice.randrange(10, 31) * MINUTE if length is None else length
        self.start = DAY_NS + self.dice.randrange(6 * 3600, 18 * 3600) * SECOND + \
            self.dice.randrange(SECOND)
        self.end = self.start + self.length
        self.facts = []
        self.gpu_effects = {}       # gpu: [(from, change of fields)]
        self.gpu_gone = {}          # gpu: when
        self.node_gone = {}         # node: when; it says nothing any more
        self.memory_effects = {}    # rank number: [(from, bytes more at a time)]
        self.rank_end = {}          # rank number: when
        self.pod_end = {}           # node: (when, phase, status)
        self.has_kernel_log = True
        self.began = None           # when the first sign came of what is to be found
        self.dcgm_fields = self.dice.choice(["full", "full", "default"])
        self.beside = []            # other jobs in the same input, cases of their own
        self.names_job = False      # the rank map says which job it is of
        self.truth = {"class": kind, "roots": [], "consequences": [], "healthy": True}

    # -- What incidents say ------------------------------------------------------------------------

    def root(self, pattern, kinds, who, also=()):
        """A verdict that must be a root, and whom it must blame; `also` it may blame."""
        self.truth["healthy"] = False
        self.truth["roots"].append({"pattern": pattern, "kinds": kinds, "who": who,
                                    "also": list(also)})

    def consequence(self, pattern, who):
        """What follows from the root that was said last."""
        self.truth["consequences"].append({"pattern": pattern, "who": who,
                                           "of": len(self.truth["roots"]) - 1})

    def between(self, first, last):
        """A moment between two shares of the time."""
        return self.start + int(self.length * self.dice.uniform(first, last))

    def add(self, time, source, node, data, telling=True):
        self.facts.append(Fact(int(time), source, node, data, telling))

    def kernel(self, time, node, text, level=3, telling=True):
        self.add(time, "kernel", node, (level, text), telling)

    def xid(self, time, gpu, code, text, pid=None, name="python3"):
        who = "pid='<unknown>', name=<unknown>" if pid is None else "pid=%d, name=%s" % (pid, name)
        self.kernel(time, gpu.node, "NVRM: Xid (PCI:%s): %d, %s, %s" % (gpu.address, code, who,
                                                                        text))
        self.change_gpu(gpu, time, lambda fields, _: fields.update(DCGM_FI_DEV_XID_ERRORS=code))

    def change_gpu(self, gpu, time, change):
        """From `time` on `change(fields, time)` alters what a scrape of this GPU says."""
        self.gpu_effects.setdefault(gpu, []).append((int(time), change))

    def grow_memory(self, rank, time, more):
        self.memory_effects.setdefault(rank.number, []).append((int(time), more))

    def end_rank(self, rank, time):
        self.rank_end[rank.number] = min(int(time), self.rank_end.get(rank.number, self.end))

    def begins(self, time):
        """From now on it can be known, where the first fact that tells of it does not say so."""
        self.began = int(time)

    def first_sign(self):
        """`began`, else the first fact that tells of the incident or the first effect of it."""
        if self.began is not None:
            return self.began
        return min([fact.time for fact in self.facts if fact.telling] +
                   [since for effects in (*self.gpu_effects.values(),
                                          *self.memory_effects.values())
                    for since, _ in effects], default=None)

    def lose_node(self, node, time):
        self.node_gone[node] = int(time)
        for gpu in node.gpus:
            self.gpu_gone[gpu] = int(time)
        for rank in node.ranks:
            self.end_rank(rank, time)

    def kube_event(self, time, about, reason, message, component="kubelet", node=None, kind="Pod",
                   grave=True, annotations=None, telling=True):
        """`about` is (namespace, name, uid)."""
        self.add(time, "kube_event", node, {
            "about": about, "kind": kind, "reason": reason, "message": message,
            "component": component, "type": "Warning" if grave else "Normal",
            "annotations": annotations, "uid": self.cluster.uuid()}, telling)

    def kube_node(self, time, node, true=None, false=None, telling=True, verb="MODIFIED"):
        """`true` and `false` are {condition of pressure: since when it is so}."""
        self.add(time, "kube_node", node, {"true": true or {}, "false": false or {}, "verb": verb},
                 telling)

    def kube_pod(self, time, node, pod, phase="Running", status=None, verb="ADDED", telling=True):
        """`pod` is (namespace, name, uid, GPUs)."""
        self.add(time, "kube_pod", node, {"pod": pod, "phase": phase, "status": status or {},
                                          "verb": verb}, telling)

    def pod_of(self, node):
        cluster = self.cluster
        stable = random.Random(self.key + "/pod/" + node.name).getrandbits(64)
        return (cluster.namespace, node.pod,
                "%08x-0000-4000-8000-%012x" % (stable >> 32, stable & 0xffffffff),
                len(node.gpus))

    def add_job(self, other):
        """Another job, whose roots are of this case as well; each is named with its own nodes."""
        first = len(self.truth["roots"])
        self.beside.append(other)
        self.names_job = other.names_job = True
        for each, roots in ((self, self.truth["roots"]), (other, other.truth["roots"])):
            for root in roots:
                root["nodes"] = [node.name for node in each.cluster.nodes + each.cluster.others]
        self.truth["roots"] += other.truth["roots"]
        self.truth["consequences"] += [dict(one, of=first + one["of"])
                                       for one in other.truth["consequences"]]

    def close(self):
        """Adds what there always is."""
        for other in self.beside:
            other.close()
        self.began = self.first_sign()
        import background
        background.add(self)
        absent = set()
        if not self.has_kernel_log:
            absent.add("kernel")
        if not self.cluster.has_kubernetes:
            absent |= {"kube_event", "kube_node", "kube_pod"}
        self.facts = sorted((fact for fact in self.facts
                             if fact.source not in absent and self.can_say(fact)),
                            key=lambda fact: fact.time)

    def can_say(self, fact):
        """A node that is gone says nothing; what its cluster says of it is said by others."""
        return fact.source in ("kube_event", "kube_node", "kube_pod", "slurm") or \
            fact.time < self.node_gone.get(fact.node, self.end + MINUTE)
