#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart, the kustomize tree and the examples for Kubernetes, as far as they go without helm.

    run_chart.py BINARY

The kustomize tree was made from this chart; values.yaml and its schema say the same; templates name
only values and helpers that are there; each configuration in a ConfigMap is right, and fits the pod
that reads it. run_chart_live.py goes on with helm and a real API server.
"""
import copy
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

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import Checks  # noqa: E402
from process import environment, run  # noqa: E402

try:
    import yaml
    import manifests as m
except ImportError:
    yaml = None
try:
    import jsonschema
except ImportError:
    jsonschema = None

PATIENCE_S = 60
# What a build may be without, or not have yet.
OPTIONAL = {"receiver kafka", "exporter kafka", "receiver kmsg", "receiver kubernetes",
            "receiver journald", "receiver sysfs", "receiver prometheus_scrape", "receiver nccl_ras",
            "exporter http"}
ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.S)
OPENS = ("if", "range", "with", "define", "block")


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def validated(checks, binary, folder, what, texts):
    """What `culprit validate` says of configurations that are joined, where it is not to run."""
    paths = [write(os.path.join(folder, "config", "%d.yaml" % number), text)
             for number, text in enumerate(texts)]
    done = run(binary, "validate", "--no-environment",
               *(part for path in paths for part in ("--config", path)), folder=folder)
    absent = {" ".join(found) for found in re.findall(r"there is no (\w+) '(\w+)'", done.errors())}
    absent |= {"%s %s" % (kind, name) for name, kind in
               re.findall(r": (\w+) is an? \w+, not an? (\w+);", done.errors())}
    if absent and absent <= OPTIONAL:
        checks.skip("%s: this build has no %s" % (what, ", ".join(sorted(absent))))
        return
    checks.check(done.code == 0, lambda: "%s: validate: %d: %s" % (what, done.code, done.errors()))


def checked_objects(checks, binary, folder, what, objects):
    """Each pod and the configuration in it."""
    maps = {one["metadata"]["name"]: one["data"] for one in m.kinds(objects, "ConfigMap")}
    for name, data in maps.items():
        validated(checks, binary, folder, "%s: ConfigMap %s" % (what, name), data.values())
    pods = [one for one in objects if m.pod_of(one)]
    for one in pods:
        template = m.pod_of(one)
        where = "%s: %s %s" % (what, one["kind"], one["metadata"]["name"])
        volumes = {each["name"]: each for each in template["spec"]["volumes"]}
        config = [each["configMap"]["name"] for each in volumes.values() if "configMap" in each]
        if not checks.check(len(config) == 1 and config[0] in maps, "%s: ConfigMaps %s" % (where, config)):
            continue
        checks.equal(m.pod_faults(template, maps[config[0]],
                                  one["spec"].get("volumeClaimTemplates", [])), [], where)
    return pods


class Suite:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.checks = Checks()

    # -- one truth --------------------------------------------------------------------------------

    def one_truth(self):
        render = m.render_kustomize()
        self.checks.equal(m.text_of(m.TREE, "MADE_FROM"), "# chart: %s\n" % render.chart_digest(),
                          "the kustomize tree was made from another chart: run "
                          "packaging/kubernetes/render_kustomize")
        self.checks.equal(m.text_of(m.CHART, "files", "sidecar.yaml"),
                          m.text_of(m.ROOT, "examples", "sidecar.yaml"), "the sidecar's configuration")
        chart = yaml.safe_load(m.text_of(m.CHART, "Chart.yaml"))
        version = re.search(r"^project\(culprit.*?VERSION (\S+?)[\s)]",
                            m.text_of(m.ROOT, "CMakeLists.txt"), re.M | re.S).group(1)
        self.checks.equal((chart["version"], chart["appVersion"]), (version, version),
                          "versions in Chart.yaml")
        for path in glob.glob(os.path.join(m.EXAMPLES, "*", "kustomization.yaml")):
            for image in yaml.safe_load(m.text_of(path)).get("images", []):
                self.checks.equal(image["newTag"], version, path + ": the image")

    # -- values -----------------------------------------------------------------------------------

    def walk(self, values, schema, path):
        """Each value stands in the schema and the other way round, down to where maps are free."""
        known = schema.get("properties")
        if known is None or not isinstance(values, dict):
            return
        self.checks.check(schema.get("additionalProperties") is False,
                          "values.schema.json takes anything under " + path)
        for name in sorted((set(known) | set(values)) - {"global"}):
            if self.checks.check(name in known and name in values, "%s.%s is missing in %s" % (
                    path, name, "values.yaml" if name in known else "values.schema.json")):
                self.walk(values[name], known[name], path + "." + name)

    def values(self):
        values = yaml.load(m.text_of(m.CHART, "values.yaml"), m.NoRepeats)
        schema = json.loads(m.text_of(m.CHART, "values.schema.json"))
        self.walk(values, dict(schema, properties={key: part for key, part in schema["properties"].items()
                                                   if key != "global"}), "")
        if jsonschema is None:
            self.checks.skip("jsonschema is not installed: values.yaml was not checked by its schema")
            return
        jsonschema.Draft7Validator.check_schema(schema)
        validator = jsonschema.Draft7Validator(schema)
        self.checks.equal([error.message for error in validator.iter_errors(values)], [], "values.yaml")
        for path, wrong in (("gateway.replicas", 0), ("gateway.replica", 1), ("kafka.saslMechanism", "GSSAPI"),
                            ("kafka.brokers", ["kafka"]), ("sidecar.startDelay", "5"),
                            ("sidecar.namespaces", ["a", "a"]), ("image.digest", "sha256:0"),
                            ("networkPolicy.ingestFrom", [{"pods": {}}]), ("podMonitor.interval", "15")):
            bad = copy.deepcopy(values)
            *outer, last = path.split(".")
            part = bad
            for name in outer:
                part = part[name]
            part[last] = wrong
            self.checks.check(not validator.is_valid(bad), "the schema takes %s: %s" % (path, wrong))

    # -- templates --------------------------------------------------------------------------------

    def templates(self):
        values = yaml.safe_load(m.text_of(m.CHART, "values.yaml"))
        texts = {os.path.basename(path): m.text_of(path)
                 for path in sorted(glob.glob(os.path.join(m.CHART, "templates", "*")))}
        self.checks.check(len(texts) >= 9, "templates: %s" % sorted(texts))
        defined = {name for text in texts.values()
                   for name in re.findall(r'\{\{-? define "([\w.]+)"', text)}
        for file, text in texts.items():
            actions = [re.sub(r"/\*.*?\*/", "", each, flags=re.S) for each in ACTION.findall(text)]
            words = [each.split()[0] for each in actions if each.split()]
            self.checks.equal(sum(word in OPENS for word in words), words.count("end"),
                              file + ": what is opened and what is ended")
            for action in actions:
                self.checks.equal((action.count("("), action.count('"') % 2), (action.count(")"), 0),
                                  "%s: brackets and quotes of %s" % (file, action))
            text = "\n".join(actions)
            for name in re.findall(r'include "([\w.]+)"', text):
                self.checks.check(name in defined, "%s: there is no template %s" % (file, name))
            for path in re.findall(r"\$?\.Values((?:\.\w+)+)", text):
                part = values
                for name in path.strip(".").split("."):
                    part = part.get(name) if isinstance(part, dict) else None
                self.checks.check(part is not None, "%s: there is no value %s" % (file, path))
        self.every_value(values, "", "\n".join(texts.values()))

    def every_value(self, values, path, text):
        """None is there for nothing."""
        for name, value in values.items():
            if isinstance(value, dict) and value and not re.search(
                    r"(toYaml|deepCopy) (\$?\.Values)?\S*%s\.%s\b" % (re.escape(path), name), text):
                self.every_value(value, path + "." + name, text)
            else:
                self.checks.check(re.search(r"\.%s\b" % name, text), "nothing reads %s.%s" % (path, name))

    # -- manifests --------------------------------------------------------------------------------

    def tree(self):
        for way in ("http", "kafka"):
            objects = m.objects_of(m.text_of(m.TREE, way, "culprit.yaml"))
            pods = checked_objects(self.checks, self.binary, self.folder, way, objects)
            self.checks.equal(sorted(one["kind"] for one in pods), ["DaemonSet", "StatefulSet"],
                              way + ": what has pods")
            self.checks.equal(m.kinds(objects, "Secret"), [], way + ": Secrets in the repository")
            self.job(way)
            self.monitored(way, objects)

    def job(self, way):
        """The example: a Job whose pods the patch changes as kubectl would."""
        objects = m.objects_of(m.text_of(m.EXAMPLES, "train", "train.yaml"))
        patch = m.objects_of(m.text_of(m.TREE, "sidecar", "job", "pod.yaml"))[0]
        job = m.kinds(objects, "Job")[0]
        pod, added = job["spec"]["template"], patch["spec"]["template"]
        pod["metadata"] = added["metadata"]
        pod["spec"]["initContainers"] = added["spec"]["initContainers"]
        pod["spec"]["volumes"] += added["spec"]["volumes"]
        objects += m.objects_of(m.text_of(m.TREE, "sidecar", way, "sidecar.yaml"))
        checked_objects(self.checks, self.binary, self.folder, "job-" + way, objects)
        container = m.culprit_of(pod["spec"])
        self.checks.equal([name for name in container if name.endswith("Probe")], ["livenessProbe"],
                          "probes of the sidecar: the trainer waits for others")
        self.checks.equal(container["restartPolicy"], "Always", "restartPolicy of the sidecar")
        missing = [one["name"] for one in added["spec"]["volumes"]
                   for source in ("configMap", "secret") if not one.get(source, {"optional": True}).get("optional")]
        self.checks.equal(missing, [], "volumes that hold up the pod while they are missing")
        if shutil.which("kubectl") is None:
            self.checks.skip("kubectl is not installed: kustomize was not run")
            return
        done = run("kubectl", "kustomize", os.path.join(m.EXAMPLES, "job-" + way), HOME=self.folder)
        self.checks.equal(done.code, 0, "kubectl kustomize: " + done.errors())
        built = m.kinds(m.objects_of(done.text()), "Job")
        self.checks.equal(sorted_lists(built[0]["spec"]) if built else None, sorted_lists(job["spec"]),
                          "the Job that kustomize makes")

    def other_kinds(self):
        """JSON patches: their pod is that of Jobs, but for the label with the job's name."""
        wanted = m.objects_of(m.text_of(m.TREE, "sidecar", "job", "pod.yaml"))[0]["spec"]["template"]["spec"]
        for kind, (_, path, label) in m.render_kustomize().KINDS.items():
            steps = yaml.load(m.text_of(m.TREE, "sidecar", kind, "pod.yaml"), m.NoRepeats)
            self.checks.equal({one["op"] for one in steps}, {"add"}, kind)
            self.checks.equal([one["path"][len(path):] for one in steps],
                              ["/spec/initContainers"] + ["/spec/volumes/-"] * (len(steps) - 1), kind)
            text = json.dumps(steps[0]["value"])
            self.checks.check(label in text, "%s: no label %s" % (kind, label))
            text = text.replace(label, "batch.kubernetes.io/job-name")
            self.checks.equal((json.loads(text), [one["value"] for one in steps[1:]]),
                              (wanted["initContainers"], wanted["volumes"]), kind + ": the pod")

    def monitored(self, way, objects):
        """Annotations and names of ports lead to where the configuration shows metrics."""
        for one in objects:
            pod = m.pod_of(one)
            if pod is None:
                continue
            ports = {each["name"]: each["containerPort"] for each in m.culprit_of(pod["spec"])["ports"]}
            self.checks.equal(int(pod["metadata"]["annotations"]["prometheus.io/port"]), ports["metrics"],
                              "%s: the annotated port of %s" % (way, one["metadata"]["name"]))
        for policy in m.kinds(objects, "NetworkPolicy"):
            ports = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
            self.checks.check(ports <= {"events", "metrics"} and "metrics" in ports,
                              "%s: %s lets in %s" % (way, policy["metadata"]["name"], ports))

    # -- the page ---------------------------------------------------------------------------------

    def rank_map(self):
        """What the page tells a rank to write is read as a rank map."""
        page = m.text_of(m.EXAMPLES, "README.md")
        snippet = re.search(r"```python\n(.*?)```", page, re.S).group(1)
        place = os.path.join(self.folder, "rank_map")
        write(os.path.join(place, "torch.py"), "class cuda:\n    def get_device_properties(_):\n"
              "        return type('', (), {'uuid': 'ab'})\n")
        self.checks.check("/telemetry/" in snippet, "the page's snippet")
        snippet = snippet.replace("/telemetry/", place + "/")
        for rank in ("0", "1"):
            done = run(sys.executable, "-c", snippet, folder=place, RANK=rank, LOCAL_RANK=rank,
                       NODE_NAME="node7", POD_NAME="train-0", PYTHONPATH=place)
            self.checks.equal(done.code, 0, "the page's snippet: " + done.errors())
        done = run(self.binary, "analyze", "--stats", "-", os.path.join(place, "rank_map.jsonl"))
        self.checks.check(re.search(r'"rank_map": 2\b', done.text()), "the rank map: " + done.text())

    # -- the start --------------------------------------------------------------------------------

    def start(self):
        """Kubernetes sees the container running, whatever becomes of culprit; SIGTERM ends it at once
        before that."""
        pod = m.objects_of(m.text_of(m.TREE, "sidecar", "job", "pod.yaml"))[0]["spec"]["template"]["spec"]
        args = m.culprit_of(pod)["args"]
        self.checks.equal(args[:3], ["run", "--start-delay", "5s"], "arguments of the sidecar")
        broken = write(os.path.join(self.folder, "broken", "sidecar.yaml"), "receivers: {fiel: {}}\n")
        args = [broken if word.startswith("/etc/") else word for word in args]
        started = time.monotonic()
        done = run(self.binary, *args, folder=self.folder)
        self.checks.equal(done.code, 78, "a culprit that cannot start: " + done.errors())
        self.checks.check(time.monotonic() - started >= 5, "it ends before Kubernetes sees it running")
        args[2] = "15m"
        for number in (signal.SIGTERM, signal.SIGINT):
            process = self.waiting(args)
            process.send_signal(signal.SIGHUP)  # read what is configured: it has not yet been read
            process.send_signal(number)
            self.checks.equal(process.wait(PATIENCE_S), 0, "signal %d before the start" % number)
        for wrong, said in (("5", "5s"), ("16m", "at most 15m"), ("-1s", "-1s")):
            done = run(self.binary, "run", "--start-delay", wrong, "--config", broken)
            self.checks.check(done.code == 64 and said in done.errors(), "--start-delay %s: %d: %s"
                              % (wrong, done.code, done.errors()))
        done = run(self.binary, "run", "--dry-run", "--start-delay", "15m", "--config", broken)
        self.checks.equal(done.code, 78, "--dry-run does not wait")

    def waiting(self, args):
        """culprit, once it waits for the delay to pass. (While it waits for signals the kernel does not
        show them as blocked.)"""
        process = subprocess.Popen([self.binary, *args], env=environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        limit = time.monotonic() + PATIENCE_S
        while "sigtimedwait" not in m.text_of("/proc/%d/wchan" % process.pid):
            if process.poll() is not None or time.monotonic() > limit:
                self.checks.check(False, "it does not wait for a signal: %s" % process.poll())
                break
            time.sleep(0.01)
        return process

    def all(self):
        if yaml is None:
            self.checks.skip("PyYAML is not installed: nothing was read")
            return
        for part in (self.one_truth, self.values, self.templates, self.tree, self.other_kinds,
                     self.rank_map, self.start):
            part()


def sorted_lists(value):
    """Lists of named things in the order of their names, as no order is meant."""
    if isinstance(value, dict):
        return {key: sorted_lists(each) for key, each in value.items()}
    if isinstance(value, list):
        made = [sorted_lists(each) for each in value]
        named = all(isinstance(each, dict) and "name" in each for each in made)
        return sorted(made, key=lambda each: each["name"]) if named else made
    return value


def main(binary):
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(os.path.abspath(binary), folder)
        suite.all()
        return suite.checks.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
