# SPDX-License-Identifier: Apache-2.0
"""The binary of an earlier state, built in a folder of its own, to run in turn with today's."""
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..")
NONE = "none"
NO_TAG = ("this repository has no tag, so there is no last release to compare with: name a commit "
          "or a folder that holds its build (--against REF), or take --against none")


def git(*arguments):
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def last_release():
    """The newest tag before today's commit; None when there is none."""
    return git("describe", "--tags", "--abbrev=0", "HEAD^") or None


def chosen(given):
    """What to compare with: (name, None) or (None, why there is nothing)."""
    if given == NONE:
        return None, "not asked for"
    if given:
        return given, None
    ref = last_release()
    return (ref, None) if ref else (None, NO_TAG)


def is_build(folder):
    return os.access(os.path.join(folder, "culprit"), os.X_OK)


def found(ref, say):
    """{"name", "commit", "build"}: that folder, or the one built from the ref, once."""
    if os.path.isdir(ref):
        if not is_build(ref):
            raise SystemExit("bench: %s holds no culprit; --against takes a commit or such a folder"
                             % ref)
        return {"name": os.path.basename(os.path.abspath(ref)), "commit": None,
                "build": os.path.abspath(ref)}
    commit = git("rev-parse", "--verify", "--quiet", ref + "^{commit}")
    if not commit:
        raise SystemExit("bench: --against %s: neither a commit of this repository nor a folder"
                         % ref)
    folder = os.path.join(ROOT, "build", "against", commit[:12])
    built = os.path.abspath(os.path.join(folder, "build", "bench"))
    if not is_build(built):
        say("building %s (%s) in %s" % (ref, commit[:12], os.path.relpath(folder, ROOT)))
        build(commit, folder)
    return {"name": ref, "commit": commit[:12], "build": built}


def build(commit, folder):
    if not os.path.isdir(folder):
        made = folder + ".part"
        shutil.rmtree(made, ignore_errors=True)
        os.makedirs(made)
        archive = subprocess.Popen(["git", "-C", ROOT, "archive", commit], stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", made], stdin=archive.stdout, check=True)
        archive.stdout.close()
        if archive.wait() != 0:
            raise SystemExit("bench: git archive %s failed" % commit)
        os.rename(made, folder)
    done = subprocess.run([os.path.join(folder, "tools", "build"), "bench"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise SystemExit("bench: %s could not be built (see above)" % commit)


# -- the live pipeline ----------------------------------------------------------------------------

LIVE_TURNS, LIVE_EVALUATIONS, LIVE_STARTS = 3, 100, 5


def live_in_turn(module, own, earlier, options):
    """How many times as fast today's is, by key of the table; `module` is live.py."""
    found = {}
    for ack, events in (("accepted", options.live_events), ("stored", options.live_events // 2)):
        for connections in (1, 8):
            rates = turns(own, earlier, lambda live: module.Rates(live).run(
                connections, 64, events, ack)["events_per_s"])
            found["http_%s_%d" % (ack, connections)] = round(max(rates[0]) / max(rates[1]), 3)
    found["latency"] = quotient(turns(own, earlier, lambda live: module.Latency(live).run(
        "http", 10000, False, LIVE_EVALUATIONS)["p99_ms"], 1))
    found["start"] = quotient(turns(own, earlier, lambda live: module.Rest(live).start(
        LIVE_STARTS)["median_ms"]))
    return found


def turns(own, earlier, measure, count=LIVE_TURNS):
    pairs = [(measure(own), measure(earlier)) for _ in range(count)]
    return [list(figures) for figures in zip(*pairs)]


def quotient(times):
    """Of the earlier one's median time and today's."""
    own, earlier = (sorted(figures)[len(figures) // 2] for figures in times)
    return round(earlier / own, 3)
