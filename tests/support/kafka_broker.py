# SPDX-License-Identifier: Apache-2.0
"""One real Kafka broker for tests: Apache Kafka 3.9.1 in KRaft mode, alone, on free ports.

Its jars are fetched once through Maven into the cache of the tests. Used from a suite, or
by hand: `kafka_broker.py FOLDER` runs one until it is interrupted and prints its address.
"""
import glob
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import cache
from ports import free_port

VERSION = "3.9.1"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>culprit.tests</groupId><artifactId>kafka</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>%s</version>
  </dependency></dependencies>
</project>
""" % VERSION
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=500
num.partitions={partitions}
"""
PATIENCE_S = 60
PARTITIONS = 2  # of every topic


def missing_programs():
    return [name for name in ("java", "mvn", "kcat") if shutil.which(name) is None]


def unavailable():
    """Why no broker can be run here; fetches its jars. Empty: it can."""
    missing = missing_programs()
    if missing:
        return "not installed: %s (tools/install_dependencies test)" % ", ".join(missing)
    try:
        fetch_jars()
    except RuntimeError as failure:
        return str(failure)
    return ""


def fetch_jars():
    """The folder with the jars; raises RuntimeError with Maven's last words."""
    return os.path.join(cache.made_once("kafka-" + VERSION, fill), "lib")


def fill(folder):
    with tempfile.TemporaryDirectory() as scratch:
        with open(os.path.join(scratch, "pom.xml"), "w", encoding="utf-8") as file:
            file.write(POM)
        log = os.path.join(scratch, "log")
        jars = os.path.join(folder, "lib")
        with open(log, "wb") as file:
            try:
                done = subprocess.run(
                    ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=" + jars,
                     "-DincludeScope=runtime"], cwd=scratch, stdin=subprocess.DEVNULL, stdout=file,
                    stderr=file, timeout=600, check=False)
            except subprocess.TimeoutExpired as error:
                raise RuntimeError("Kafka could not be fetched in time") from error
        if done.returncode != 0 or not glob.glob(os.path.join(jars, "kafka_2.13-*.jar")):
            with open(log, encoding="utf-8", errors="replace") as file:
                raise RuntimeError("Maven could not fetch Kafka: " + file.read()[-500:])


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


class Broker:
    """Started by start(), again after stop(); its data stay until the folder is removed."""

    def __init__(self, folder):
        self.folder = folder
        self.jars = fetch_jars()
        self.port = free_port()
        self.address = "127.0.0.1:%d" % self.port
        self.process = None
        self.properties = os.path.join(folder, "server.properties")
        os.makedirs(folder, exist_ok=True)
        with open(self.properties, "w", encoding="ascii") as file:
            file.write(PROPERTIES.format(port=self.port, controller=free_port(), folder=folder,
                                         partitions=PARTITIONS))
        self.java("kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c",
                  self.properties)

    def command(self, *arguments):
        return ["java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
                "-cp", os.path.join(self.jars, "*"), *arguments]

    def java(self, *arguments):
        done = subprocess.run(self.command(*arguments), cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=PATIENCE_S, check=False)
        if done.returncode != 0:
            raise RuntimeError("%s failed: %s" % (arguments[0], done.stderr[-500:]))
        return done.stdout.decode()

    def start(self):
        self.log = open(os.path.join(self.folder, "broker.log"), "ab")
        self.process = subprocess.Popen(self.command("kafka.Kafka", self.properties),
                                        cwd=self.folder, stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log)
        limit = time.monotonic() + PATIENCE_S
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > limit:
                raise RuntimeError("the broker did not start; see %s" % self.log.name)
            time.sleep(0.1)

    def answers(self):
        done = subprocess.run(["kcat", "-b", self.address, "-L", "-m", "2"],
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return done.returncode == 0

    def stop(self, kill=False):
        if self.process is None:
            return
        self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None
        self.log.close()

    def create_topic(self, topic):
        """With PARTITIONS partitions. Asking for it makes it."""
        limit = time.monotonic() + PATIENCE_S
        while time.monotonic() < limit:
            done = subprocess.run(["kcat", "-b", self.address, "-L", "-m", "5", "-t", topic, "-X",
                                   "allow.auto.create.topics=true"],
                                  stdin=subprocess.DEVNULL, capture_output=True, check=False)
            if b"with %d partitions" % PARTITIONS in done.stdout:
                return
            time.sleep(0.1)
        raise RuntimeError("the topic %s was not made" % topic)

    def ask(self, key, version, body):
        """The answer to a request, from its correlation id on."""
        body = struct.pack(">hhi", key, version, 7) + text("tests") + body
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as wire:
            wire.sendall(struct.pack(">i", len(body)) + body)
            reader = wire.makefile("rb")
            return reader.read(struct.unpack(">i", reader.read(4))[0])

    def create_topic_of(self, topic, partitions):
        """With so many partitions, by CreateTopics v2."""
        answer = self.ask(19, 2, struct.pack(">i", 1) + text(topic) + struct.pack(
            ">ihii", partitions, 1, 0, 0) + struct.pack(">ib", PATIENCE_S * 1000, 0))
        error, = struct.unpack_from(">h", answer, 4 + 4 + 4 + 2 + len(topic))
        if error != 0:
            raise RuntimeError("the topic %s was not made: error %d" % (topic, error))

    def committed(self, group, topic, partitions=PARTITIONS):
        """{partition: (offset, metadata)} of what the group has committed, by OffsetFetch v1."""
        answer = self.ask(9, 1, text(group) + struct.pack(">i", 1) + text(topic) + struct.pack(
            ">i%di" % partitions, partitions, *range(partitions)))
        at = 4 + 4 + 2 + len(topic) + 4         # correlation, topics, name, partitions
        found = {}
        for _ in range(partitions):
            number, offset, size = struct.unpack_from(">iqh", answer, at)
            at += 14
            metadata = answer[at:at + max(size, 0)].decode()
            at += max(size, 0) + 2              # the error code
            if offset >= 0:
                found[number] = (offset, metadata)
        return found


def main(folder):
    broker = Broker(os.path.abspath(folder))
    broker.start()
    print(broker.address, flush=True)
    try:
        broker.process.wait()
    except KeyboardInterrupt:
        broker.stop()


if __name__ == "__main__":
    main(sys.argv[1])
