# SPDX-License-Identifier: Apache-2.0
"""Made-up clusters: nodes with GPUs, a pod on each, and the ranks of one training job."""
import random
import uuid

SECOND = 1_000_000_000
MINUTE = 60 * SECOND
ADDRESSES = ["0000:1b:00", "0000:29:00", "0000:45:00", "0000:4e:00",
             "0000:9b:00", "0000:ab:00", "0000:c5:00", "0000:d3:00"]
NIC_ADDRESSES = ["0000:1e:00", "0000:2c:00", "0000:48:00", "0000:52:00",
                 "0000:9e:00", "0000:ae:00", "0000:c8:00", "0000:d6:00"]
DOMAINS = ["cluster.example.com", "eu-west-1.compute.internal", "hpc.example.org"]
SIZES = [(2, 4), (2, 8), (3, 4), (3, 8), (4, 4), (4, 8), (6, 4), (8, 2), (8, 4), (8, 8)]


class Gpu:
    def __init__(self, node, index, identity):
        self.node, self.index = node, index
        self.address = ADDRESSES[index]
        self.port = self.address[:5] + "%02x:01.0" % (int(self.address[5:7], 16) - 1)
        self.uuid = "GPU-" + identity

        self.nic = NIC_ADDRESSES[index]

    @property
    def name(self):
        """As verdicts name it."""
        return self.node.name + "/" + self.address


class Node:
    def __init__(self, name, number, job):
        self.name, self.number = name, number
        self.ip = "10.40.%d.%d" % (number // 200, 10 + number % 200)
        self.pod = "%s-worker-%d" % (job, number)
        self.boot_seconds = 0
        self.gpus, self.ranks = [], []


class Rank:
    def __init__(self, number, local, gpu, pid):
        self.number, self.local, self.gpu, self.pid = number, local, gpu, pid
        self.node = gpu.node


class Cluster:
    namespace = "train"

    def __init__(self, seed, size=None):
        """`size`: (nodes, GPUs of each); one of SIZES otherwise."""
        dice = random.Random(seed)
        self.job = dice.choice(["llama-70b", "moe-8x22b", "vit-huge", "gpt-13b"]) + "-%04x" % \
            dice.randrange(1 << 16)
        self.domain = dice.choice(DOMAINS)
        self.model = dice.choice(["NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB",
                                  "NVIDIA H200"])
        self.uuids = dice
        nodes, gpus = dice.choice(SIZES) if size is None else size
        first = dice.randrange(1, 80)
        shape = dice.choice(["gpu-node-%02d", "node%d", "ip-10-40-3-%d", "nid%06d", "dgx-h%03d"])
        self.nodes = [Node(shape % (first + i), i, self.job) for i in range(nodes)]
        self.ranks = []
        for node in self.nodes:
            node.boot_seconds = dice.randrange(20_000, 9_000_000)
            node.gpus = [Gpu(node, i, self.uuid()) for i in range(gpus)]
            for gpu in node.gpus:
                number = len(self.ranks)
                self.ranks.append(Rank(number, gpu.index, gpu, 40_000 + dice.randrange(900) * 10
                                       + gpu.index))
                node.ranks.append(self.ranks[-1])
        # Not of the job: where other people's pods run.
        self.others = [Node("login-%d" % i, 100 + i, "other") for i in range(2)]
        self.has_rank_map = dice.random() < 0.8
        self.has_kubernetes = dice.random() < 0.8
        self.has_telemetry = dice.random() < 0.8 or not self.has_rank_map

    def uuid(self):
        return str(uuid.UUID(int=self.uuids.getrandbits(128), version=4))

    @property
    def gpus(self):
        return [gpu for node in self.nodes for gpu in node.gpus]
