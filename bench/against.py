# SPDX-License-Identifier: Apache-2.0
"""The binary of an earlier state, built in a folder of its own, to run in turn with today's."""
import os
import re
import shutil
import subprocess
import time

from progress import say

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..")
NONE = "none"
# Seconds for the programs of the earlier state in all, and for one of them: that many times as long
# as today's takes.
ALL_S, LEAST_S, TIMES = 300, 20, 5
# What is run of an earlier build; one that it has not is left out.
PROGRAMS = ("culprit", "culprit_generate", "bench_flight", "bench_kinds", "bench_spans",
            "bench_stages", "http_load", "kafka_consume")
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


def is_built(folder):
    """To its end, by build()."""
    return os.path.exists(os.path.join(folder, "built"))


def found(ref):
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
    if not is_built(folder):
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
    # Each program is optimised as a whole, so those that are not run are not built. The first
    # build configures; then it is known which there are.
    for wanted in (PROGRAMS[:1], PROGRAMS):
        programs = [name for name in wanted if name in (targets(folder) or wanted)]
        done = subprocess.run([os.path.join(folder, "tools", "build"), "bench", *programs],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            raise SystemExit("bench: %s could not be built (see above)" % commit)
    with open(os.path.join(folder, "built"), "w", encoding="ascii"):
        pass


def targets(folder):
    """The programs that its build knows, once it is configured."""
    done = subprocess.run(["ninja", "-C", os.path.join(folder, "build", "bench"), "-t", "targets",
                           "all"], capture_output=True, text=True, check=False)
    return {line.split(":")[0] for line in done.stdout.splitlines()}


# -- the live pipeline ----------------------------------------------------------------------------

LIVE_TURNS, LIVE_EVALUATIONS, LIVE_STARTS = 2, 60, 5


def live_in_turn(module, own, earlier, options, patience):
    """How many times as fast today's is, by key of the table; `module` is live.py."""
    def rate(connections, events, ack):
        return lambda live: module.Rates(live).run(connections, 64, events, ack)["events_per_s"]
    found = {}
    for ack, events in (("accepted", options.live_events), ("stored", options.live_events // 2)):
        for connections in (1, 8):
            rates = patience.run("HTTP, %s, %d" % (ack, connections), lambda: turns(
                own, earlier, rate(connections, events, ack)))
            if rates is not None:
                found["http_%s_%d" % (ack, connections)] = round(max(rates[0]) / max(rates[1]), 3)
    rates = patience.run("backlog", lambda: turns(own, earlier,
                                                  lambda live: module.Backlog(live).rate()))
    if rates is not None:
        found["backlog"] = round(max(rates[0]) / max(rates[1]), 3)
    for key, count, measure in (
            ("latency", 1, lambda live: module.Latency(live).run(
                "http", 10000, False, LIVE_EVALUATIONS)["p99_ms"]),
            ("start", LIVE_TURNS, lambda live: module.Rest(live).start(LIVE_STARTS)["median_ms"])):
        times = patience.run(key, lambda: turns(own, earlier, measure, count))
        if times is not None:
            found[key] = quotient(times)
    return found


def turns(own, earlier, measure, count=LIVE_TURNS):
    pairs = [(measure(own), measure(earlier)) for _ in range(count)]
    return [list(figures) for figures in zip(*pairs)]


def quotient(times):
    """Of the earlier one's median time and today's."""
    own, earlier = (sorted(figures)[len(figures) // 2] for figures in times)
    return round(earlier / own, 3)


# -- what takes too long --------------------------------------------------------------------------


def limit_s(own_s):
    """For a program of the earlier state, when today's takes own_s."""
    return max(LEAST_S, TIMES * own_s)


def reason_of(error):
    """Its first words, for a page that others read: without folders of this machine."""
    return re.sub(r"(?<![\w.])/(?:[^\s:/]+/)+", "", str(error))[:200].partition("; ")[0]


class Patience:
    """With the programs of the earlier state: what fails, or is not over in time, is left out with
    its reason, and when all of their time is over so is what comes behind."""

    def __init__(self, seconds=ALL_S):
        self.seconds, self.left_s, self.left_out = seconds, float(seconds), []

    def run(self, what, measure):
        """What measure() gives; None when it is left out."""
        if self.left_s <= 0:
            self.leave_out(what, "the comparison took over %d s" % self.seconds)
            return None
        begun = time.monotonic()
        try:
            return measure()
        except subprocess.TimeoutExpired as error:
            self.leave_out(what, "it took over %d s" % error.timeout)
        except (OSError, subprocess.CalledProcessError, SystemExit, ValueError) as error:
            self.leave_out(what, reason_of(error))
        finally:
            self.left_s -= time.monotonic() - begun
        return None

    def leave_out(self, what, why):
        what = os.path.basename(what)
        say("left out of the comparison: %s: %s" % (what, why))
        self.left_out.append("%s (%s)" % (what, why))
