# SPDX-License-Identifier: Apache-2.0
"""What is in manifests: their objects, pods, and the configurations of culprit."""
import importlib.machinery
import importlib.util
import os
import re

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
PACKAGING = os.path.join(ROOT, "packaging", "kubernetes")
CHART, TREE = os.path.join(PACKAGING, "chart"), os.path.join(PACKAGING, "kustomize")
EXAMPLES = os.path.join(ROOT, "examples", "kubernetes")
PROBES = {"startupProbe": "/startupz", "livenessProbe": "/livez", "readinessProbe": "/readyz"}


def text_of(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def module_of(name, path):
    """A program that is also a module."""
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def render_kustomize():
    return module_of("render_kustomize", os.path.join(PACKAGING, "render_kustomize"))


class NoRepeats(yaml.SafeLoader):
    """Refuses a key that stands twice in one mapping; the API server would, too."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        repeated = [key for key in keys if keys.count(key) > 1]
        if repeated:
            raise yaml.YAMLError("%s stands twice: %s" % (repeated[0], node.start_mark))
        return super().construct_mapping(node, deep)


def objects_of(text):
    return [one for one in yaml.load_all(text, NoRepeats) if one is not None]


def kinds(objects, kind):
    return [one for one in objects if one["kind"] == kind]


def pod_of(one):
    """The template of the pods that an object makes, or None."""
    spec = one.get("spec") or {}
    return spec.get("template") if one["kind"] in ("Job", "StatefulSet", "DaemonSet") else None


def culprit_of(pod):
    return next(one for one in pod.get("initContainers", []) + pod.get("containers", [])
                if one["name"] == "culprit")


def config_files(container):
    """Names of the configurations that its arguments name, below the folder where they lie."""
    args = container["args"]
    paths = [args[i + 1] for i, word in enumerate(args) if word == "--config"]
    return {os.path.dirname(path) for path in paths}, [os.path.basename(path) for path in paths]


def joined(texts):
    """What culprit makes of several configurations: maps are joined, else the last one wins."""
    def join(a, b):
        if not (isinstance(a, dict) and isinstance(b, dict)):
            return b
        return {**a, **{key: join(a[key], b[key]) if key in a else b[key] for key in b}}
    made = {}
    for text in texts:
        made = join(made, yaml.load(text, NoRepeats) or {})
    return made


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


def endpoints(config):
    """Ports that it listens on."""
    found = set()
    for section in ("receivers", "extensions"):
        for one in (config.get(section) or {}).values():
            found.add((one or {}).get("endpoint"))
    found.add(config["service"].get("telemetry", {}).get("metrics", {}).get("endpoint"))
    found.add(((config.get("exporters") or {}).get("prometheus") or {}).get("endpoint"))
    return {int(each.rpartition(":")[2]) for each in found if each and "://" not in each
            and not each.startswith("127.")}


def pod_faults(template, configs, claims=()):
    """What does not fit together between a pod and the configuration in it: [sentence].
    `configs`: file -> text of the ConfigMap."""
    pod, faults = template["spec"], []
    container = culprit_of(pod)
    folders, names = config_files(container)
    if folders != {"/etc/culprit"} or set(names) != set(configs):
        faults.append("its arguments name %s, the ConfigMap has %s" % (names, sorted(configs)))
        return faults
    config = joined([configs[name] for name in names])
    volumes = {one["name"] for one in pod["volumes"]} | {one["metadata"]["name"] for one in claims}
    mounts = {one["mountPath"]: one for one in container["volumeMounts"]}
    for path, mount in mounts.items():
        if mount["name"] not in volumes:
            faults.append("there is no volume %s for %s" % (mount["name"], path))
    unused = volumes - {mount["name"] for one in pod.get("initContainers", []) + pod["containers"]
                        for mount in one.get("volumeMounts", [])}
    if unused:
        faults.append("nothing mounts %s" % sorted(unused))
    ports = {one["containerPort"] for one in container["ports"]}
    if endpoints(config) != ports:
        faults.append("it listens on %s, its ports are %s" % (sorted(endpoints(config)), sorted(ports)))
    known = {one["name"] for one in container.get("env", [])}
    text = "\n".join(strings(config))
    for name in re.findall(r"\$\{env:(\w+)\}", text):
        if name not in known:
            faults.append("the variable %s is not set" % name)
    for path in set(re.findall(r"/(?:secrets|host)/[\w./-]+", text)) | set(re.findall(r"/var/lib/culprit\b", text)):
        if not any(path == mount or path.startswith(mount + "/") for mount in mounts):
            faults.append("nothing is mounted for " + path)
    for path, mount in mounts.items():
        writes = path == "/var/lib/culprit"
        if bool(mount.get("readOnly")) == writes:
            faults.append("%s: readOnly is %s" % (path, mount.get("readOnly")))
    for probe in [name for name in container if name.endswith("Probe")]:
        wanted = {"path": PROBES[probe], "port": "health"}
        if container[probe]["httpGet"] != wanted:
            faults.append("%s asks %s" % (probe, container[probe]["httpGet"]))
    for place in written(config):
        if not place.startswith("/var/lib/culprit/") and place != "/dev/termination-log":
            faults.append("it writes to %s, which is on no volume" % place)
    return faults + security_faults(container)


def written(config):
    """Paths that it writes to, with the defaults of variables."""
    places = [one["path"] for one in (config.get("exporters") or {}).values() if one and "path" in one]
    places += [one["directory"] for one in (config.get("extensions") or {}).values()
               if one and "directory" in one]
    return [re.sub(r"\$\{env:\w+:-([^}]*)\}", r"\1", place) for place in places]


def security_faults(container):
    security, faults = container["securityContext"], []
    if not security.get("readOnlyRootFilesystem"):
        faults.append("its root can be written")
    if security.get("privileged"):
        if "/dev/kmsg" not in [one["mountPath"] for one in container["volumeMounts"]]:
            faults.append("it is privileged without need")
    elif security.get("capabilities", {}).get("drop") != ["ALL"] or \
            security.get("allowPrivilegeEscalation") is not False:
        faults.append("it keeps capabilities: %s" % security)
    if security.get("runAsUser") != 65532 and not (
            security.get("privileged") or security["capabilities"].get("add") == ["SYSLOG"]):
        faults.append("it runs as %s" % security.get("runAsUser"))
    return faults
