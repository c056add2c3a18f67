# SPDX-License-Identifier: Apache-2.0
"""What is to hold over a soak (bench/soak), judged from looks at the process."""
from collections import namedtuple

# at_s: since the beginning; alive_s: since the process was started; behind: events that were sent
# before the look before this one and are not accepted; open: accepted, but not through the
# pipelines; late_s: age of the newest sample that was evaluated; calm: nothing that holds the
# pipeline up was done lately.
Look = namedtuple("Look", "at_s alive_s rss held descriptors threads store behind open late_s calm")

MIB = 1 << 20
WARM_SHARE = 0.25           # of the time, before anything is compared
JUDGED_FROM_S = 600         # a shorter run is warming up all the time
LOOKS_LATE = 3              # one after the other
# What may be more at the end than it was at first: a share, and an amount. A leak of 1 % a minute is
# beyond them in twenty minutes.
BOUNDS = {"rss": (0.05, 2 * MIB), "held": (0.05, 1.5 * MIB), "store": (0.10, 8 * MIB),
          "descriptors": (0.0, 6), "threads": (0.0, 0)}
UNITS = {"rss": MIB, "held": MIB, "store": MIB}
# What is compared: a leak raises both, and a peak that is shorter than a tenth of the time neither.
COMPARED = (("median", 0.5), ("90th percentile", 0.9))


def windows(looks, whole_s, warm_start_s):
    """The looks of the first third behind the warm-up, and of the last third."""
    warm_s = whole_s * WARM_SHARE
    third_s = (whole_s - warm_s) / 3
    warm = [look for look in looks if look.alive_s >= warm_start_s]
    return ([look for look in warm if warm_s <= look.at_s < warm_s + third_s],
            [look for look in warm if look.at_s >= whole_s - third_s])


def most(looks, name):
    return max(getattr(look, name) for look in looks)


def share_of(looks, name, share):
    """The value that this share of the looks is not above."""
    ordered = sorted(getattr(look, name) for look in looks)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def grown(first, last):
    """What is held for longer than it should be: lines, one a figure."""
    found = []
    for name, (part, amount) in BOUNDS.items():
        unit = UNITS.get(name, 1)
        for what, share in COMPARED:
            before, after = share_of(first, name, share), share_of(last, name, share)
            if after > before * (1 + part) + amount:
                found.append("%s grew from %.1f to %.1f%s (%s): at most %.0f %% and %g more are "
                             "allowed" % (name, before / unit, after / unit,
                                          " MiB" if unit == MIB else "", what, part * 100,
                                          amount / unit))
                break
    return found


def lagging(looks, late_max_s):
    """Looks, one after the other, at which the pipeline was behind though nothing held it up."""
    row = []
    for look in looks:
        if look.calm and (look.behind > 0 or look.late_s > late_max_s):
            row.append(look)
            if len(row) == LOOKS_LATE:
                return ["it lags from %.0f s on: %d events behind, the newest evaluated sample is "
                        "%.1f s old (at most %.1f s)" % (row[0].at_s, row[-1].behind,
                                                         row[-1].late_s, late_max_s)]
        else:
            row = []
    return []


def lost(sent, taken):
    """Samples that were sent of each job, against what was taken of it."""
    return ["job soak-%d: %d samples were sent, %d taken" % (job, sent[job], taken.get(job, 0))
            for job in sorted(sent) if taken.get(job, 0) != sent[job]]


def judged(looks, whole_s, warm_start_s, late_max_s):
    """What is wrong; nothing when all holds."""
    if whole_s < JUDGED_FROM_S:
        return lagging(looks, late_max_s)
    first, last = windows(looks, whole_s, warm_start_s)
    if not first or not last:
        return ["too few looks at a warm process: give it more time, or fewer kills"]
    return grown(first, last) + lagging(looks, late_max_s)


def summary(looks, whole_s, warm_start_s):
    first, last = windows(looks, whole_s, warm_start_s)
    calm = [look for look in looks if look.calm] or looks
    lines = []
    for name in BOUNDS:
        unit = UNITS.get(name, 1)
        if first and last:
            lines.append("%-12s %s%s" % (name, ", ".join(
                "%s %.1f to %.1f" % (what, before / unit, after / unit) for what, before, after in
                [(what, share_of(first, name, share), share_of(last, name, share))
                 for what, share in COMPARED] + [("most", most(first, name), most(last, name))]),
                " MiB" if unit == MIB else ""))
    lines.append("%-12s %8.1f s at most, %.1f s while nothing held it up"
                 % ("late", most(looks, "late_s"), most(calm, "late_s")))
    lines.append("%-12s %8d events at most, %d while nothing held it up"
                 % ("behind", most(looks, "behind"), most(calm, "behind")))
    return lines
