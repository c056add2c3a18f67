#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every configuration that is shipped, run in every way a user would.

    run_configurations.py BINARY

Those of examples/, the one of the package, and the sidecar and the gateway of the chart:
`run` starts, is told to stop and exits with 0; `run --once` reads the files there are, or says why
it reads nothing; `analyze --config` and `replay` take the processors and nothing else, on a machine
that has neither the variables nor the secrets of the one the configuration is for.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import environment, run  # noqa: E402
from running import wait_for  # noqa: E402

BROKEN = os.path.join(ROOT, "tests", "golden", "real", "sigkill-rank1")
PATIENCE_S = 60
# What the machines that the configurations are for have.
VARIABLES = {"JOB_ID": "llama-70b", "POD_NAME": "culprit-gateway-0", "KAFKA_USER": "culprit",
             "KAFKA_BROKERS": "127.0.0.1:1", "WANDB_API_KEY": "0" * 40, "NODE_NAME": "node-a",
             "PAGER_URL": "http://127.0.0.1:1/pager", "CHAT_URL": "http://127.0.0.1:1/chat"}
# What a build may be without.
OPTIONAL = {"receiver kafka", "exporter kafka"}
# Ports that are free for sure.
SETS = {"receivers.http.endpoint": "127.0.0.1:0", "exporters.prometheus.endpoint": "127.0.0.1:0",
        "extensions.health_check.endpoint": "127.0.0.1:0",
        "service.telemetry.metrics.endpoint": "127.0.0.1:0"}
# What `run --once` does when files are there: 0, or the exit code and why.
ONCE = {"gateway": (78, r"those of kafka, http have none"),
        "gateway of the chart": (78, r"those of http have none")}
WIRED = """service:
  pipelines:
    jobs: {receivers: [http], exporters: [json, log, prometheus]}
"""
# Its broker or server is away: --once would wait for it until it is told to stop, and a stop leaves
# what waits in the store.
SINK_AWAY = {"sidecar that forwards", "routing"}


def text_of(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def held_in(path):
    """The configurations in the ConfigMaps of a Kubernetes file: YAML block scalars NAME.yaml."""
    lines, found = text_of(path).split("\n"), {}
    for start, line in enumerate(lines):
        key = re.fullmatch(r"( *)([\w-]+\.yaml): \|", line)
        if key is None:
            continue
        indent, taken = len(key.group(1)) + 2, []
        for inner in lines[start + 1:]:
            if inner.strip() and len(inner) - len(inner.lstrip()) < indent:
                break
            taken.append(inner[indent:])
        found[key.group(2)] = "\n".join(taken).rstrip("\n") + "\n"
    return found


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()
        self.certificate, self.key, self.token, self.broker = (
            os.path.join(folder, name) for name in ("ca.crt", "ca.key", "token", "broker"))
        with open(self.broker, "w", encoding="ascii") as file:
            file.write("127.0.0.1:1")
        with open(self.token, "w", encoding="ascii") as file:
            file.write("not-a-secret\n")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=ca", "-keyout",
                        self.key, "-out", self.certificate], check=True, capture_output=True)

    def place(self, name, texts):
        """A folder that stands for the machine: the configurations, and what they read and write."""
        place = os.path.join(self.folder, name)
        for part in ("telemetry", "culprit", "run"):
            os.makedirs(os.path.join(place, part))
        for secret, source in (("kafka/password", self.token), ("kafka/ca.crt", self.certificate),
                               ("ingest/token", self.token), ("tls/tls.key", self.key),
                               ("tls/tls.crt", self.certificate), ("culprit/brokers", self.broker),
                               ("culprit/username", self.token), ("culprit/password", self.token),
                               ("culprit/ca.crt", self.certificate)):
            os.makedirs(os.path.join(place, "secrets", os.path.dirname(secret)), exist_ok=True)
            shutil.copy(source, os.path.join(place, "secrets", secret))
        shutil.copytree(BROKEN, os.path.join(place, "telemetry", "job"))
        shutil.copytree(os.path.join(BROKEN, "rank1"), os.path.join(place, "run", "sink"))
        paths = []
        for number, text in enumerate(texts):
            for standard, ours in (("/secrets/", "/secrets/"), ("/var/lib/culprit", "/culprit"),
                                   ("/telemetry", "/telemetry"), ("/dumps", "/dumps"),
                                   ("/var/log/", "/log/"), ("/dev/termination-log", "/culprit/end")):
                text = re.sub(r"(?<![\w/])" + re.escape(standard), place + ours, text)
            paths.append(os.path.join(place, "%d.yaml" % number))
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.write(text)
        return place, paths

    def arguments(self, paths, texts, sets):
        found = [part for path in paths for part in ("--config", path)]
        for key, value in sets.items():
            section, component = key.split(".")[:2]
            if any(re.search(r"^%s:" % section, text, re.M) and re.search(
                    r"^  %s:" % re.escape(component), text, re.M) for text in texts):
                found += ["--set", key + "=" + value]
        return found

    def configuration(self, name, texts):
        place, paths = self.place(name, texts)
        sets = dict(SETS)
        if "wandb" in name:
            sets["exporters.wandb.mode"] = "offline"
            sets["exporters.wandb.directory"] = os.path.join(place, "culprit")
        arguments = self.arguments(paths, texts, sets)
        variables = dict(VARIABLES, RUN_DIR=os.path.join(place, "run"))
        done = run(self.binary, "validate", *arguments, folder=place, **variables)
        absent = {" ".join(found) for found in
                  re.findall(r"there is no (\w+) '(\w+)'", done.errors())}
        if absent and absent <= OPTIONAL:
            self.checks.skip("%s: this build has no %s" % (name, ", ".join(sorted(absent))))
            return
        self.checks.check(done.code == 0, lambda: "%s: validate: %d: %s"
                          % (name, done.code, done.errors()))
        self.live(name, place, arguments, variables)
        if name not in SINK_AWAY:
            self.once(name, place, arguments, variables)
        self.elsewhere(name, place, paths)

    def live(self, name, place, arguments, variables):
        process = subprocess.Popen(
            [self.binary, "run", *arguments, "--set", "service.shutdown_timeout=" +
             ("5s" if name in SINK_AWAY else "2m")], cwd=place, env=environment(**variables),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=open(os.path.join(place, "log"), "wb"))
        for_runs_that_end = "wandb" in name  # content: tracking
        # From this line on a signal asks it to stop; one for runs that end says none, and ends.
        wait_for(lambda: '"C1001"' in text_of(place, "log"), process)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        code = process.wait(PATIENCE_S)
        said = text_of(place, "log")
        if for_runs_that_end:
            self.checks.check(code == 78 and "run --once" in said, "%s: run: %d: %s"
                              % (name, code, said))
            return
        self.checks.check(code == (75 if name in SINK_AWAY else 0), "%s: run: %d: %s"
                          % (name, code, said))

    def once(self, name, place, arguments, variables):
        before = self.verdicts(place)
        done = run(self.binary, "run", "--once", *arguments, folder=place, **variables)
        wanted, why = ONCE.get(name, (0, ""))
        self.checks.check(done.code == wanted and re.search(why, done.errors()), lambda:
                          "%s: run --once: %d: %s" % (name, done.code, done.errors()))
        self.checks.check("add the extension file_storage" not in done.errors(), lambda:
                          "%s: run --once asks for what is there: %s" % (name, done.errors()))
        if wanted == 0 and "wandb" not in name:
            found = done.text() + self.verdicts(place)[len(before):]
            self.checks.check("leak" in found, lambda: "%s: run --once found nothing: %s"
                              % (name, done.errors()))

    def verdicts(self, place):
        path = os.path.join(place, "culprit", "verdicts.jsonl")
        return text_of(path) if os.path.exists(path) else ""

    def elsewhere(self, name, place, paths):
        """Without a variable or a secret, as on the machine of who looks at a recording."""
        shutil.rmtree(os.path.join(place, "secrets"))
        configs = [part for path in paths for part in ("--config", path)]
        done = run(self.binary, "analyze", "--output", "verdicts", *configs, BROKEN, folder=place)
        self.checks.check(done.code == 0 and '"leak"' in done.text(), lambda:
                          "%s: analyze: %d: %s" % (name, done.code, done.errors()))
        kept = os.path.join(place, "kept.jsonl")
        with open(kept, "wb") as file:
            file.write(done.out)
        done = run(self.binary, "replay", *configs, "--input", BROKEN, "--expect", kept,
                   folder=place)
        self.checks.check(done.code == 0 and "as expected" in done.text(), lambda:
                          "%s: replay: %d: %s" % (name, done.code, done.text() + done.errors()))

    def all(self):
        examples = os.path.join(ROOT, "examples")
        found = {name[:-5]: [text_of(examples, name)] for name in sorted(os.listdir(examples))
                 if name.endswith(".yaml")}
        self.checks.check({"sidecar", "gateway", "nodes", "analyze"} <= set(found),
                          "only %s were found" % ", ".join(found))
        kubernetes = os.path.join(ROOT, "packaging", "kubernetes")
        held = held_in(os.path.join(kubernetes, "kustomize", "sidecar", "kafka", "sidecar.yaml"))
        self.checks.equal(sorted(held), ["sidecar.yaml", "values.yaml"], "the sidecar's configurations")
        found["sidecar that forwards"] = list(held.values())
        # Without what watches the API server.
        found["gateway of the chart"] = [text_of(kubernetes, "chart", "files", "gateway.yaml"), WIRED]
        found["package"] = [text_of(ROOT, "packaging", "culprit.yaml")]
        for name, texts in found.items():
            self.configuration(name, texts)
        self.nothing()
        self.tests()

    def tests(self):
        """Those that have tests pass them, where they are and without variables or secrets."""
        examples = os.path.join(ROOT, "examples")
        tested = 0
        for name in sorted(os.listdir(examples)):
            if not name.endswith(".yaml") or "\ntests:" not in text_of(examples, name):
                continue
            done = run(self.binary, "test", os.path.join(examples, name), folder=self.folder)
            self.checks.check(done.code == 0 and re.search(r"^\d+ tests?, 0 failed$", done.text(), re.M)
                              and not done.err,
                              lambda: "%s: test: %d: %s" % (name, done.code, done.text() + done.errors()))
            tested += 1
        self.checks.check(tested >= 2, "%d examples have tests" % tested)

    def nothing(self):
        """A node without any input says so, receiver by receiver."""
        text = text_of(ROOT, "examples", "nodes.yaml")
        place, paths = self.place("bare", [text])
        shutil.rmtree(os.path.join(place, "telemetry"))
        done = run(self.binary, "run", "--once", "--config", paths[0], folder=place, **VARIABLES)
        self.checks.equal(done.code, 66, "run --once without input")
        for wanted in ("no receiver found any input", "kern.log", "file/dumps"):
            self.checks.check(wanted in done.errors(), "without input: %s is not said: %s"
                              % (wanted, done.errors()))


def main(binary):
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(binary, folder)
        suite.all()
        return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
