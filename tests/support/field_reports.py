# SPDX-License-Identifier: Apache-2.0
"""Grades an answer of culprit to a field report: a log or evidence as people post it.

A case is a folder with `input/` and `expect.json`. In that file:

  answer       "named"        somebody or something is to be named
               "unexplained"  something broke, and the input does not tell who did it
               "stopped"      the job was told to stop from outside
               "quiet"        nothing is to be said
  who          objects {"kind": rank|node|gpu|nic|pod|process|peer|job|any, "name": …}, one of which
               must be blamed (culprit, or one of at most four suspects of a kind) or stand in the
               headline; {"all": […]} is one alternative of several names; with "who_all" all of
               them, over all roots
  not_blamed   objects of the same form, none of which may be blamed
  about        words, or lists of words of which one must stand in what a person reads of the root
  not_advised  words that may stand neither in the headline nor in the advice: one grade less
  not_about    words that may stand nowhere: wrong
  max_roots    roots at most (1)
  when         [from, to]: the root begins within
  restart      what a restart would do: "helps", "in_vain", "elsewhere", "stopped", or a list of
               those that can be defended
  or           other expectations; the best grade counts

Grades: `right`; `partly`: what happened without who, or who without what; `silent`: nothing is
said, or that nothing could be concluded; `wrong`: somebody is blamed who must not be, or a broken
job is called healthy; `false`: a warning about a quiet case.
"""
import datetime
import re

GRADES = ("right", "partly", "silent", "false", "wrong")
WORSE = {"right": "partly", "partly": "wrong"}
SUSPECTS_MAX = 4
PCI = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-7]))?$", re.I)
ENDED_FIRST = re.compile(
    r"(rank|process|node|pod|gpu) (\S+)(?: on \S+)?(?: and \d+ others)? ended first")
RESTART_OF_ACTION = {
    "restart_app": "helps", "fix_workload": "in_vain", "reset_gpu": "elsewhere",
    "drain_node": "elsewhere", "replace_hardware": "elsewhere", "check_link": "elsewhere",
    "check_cooling": "elsewhere",
}


# -- Names ----------------------------------------------------------------------------------------

def split_name(name):
    """Node, address or name within it, and whether that is a PCI address."""
    node, _, last = name.lower().rpartition("/")
    address = PCI.match(last)
    if address:
        function = "." + address[4] if address[4] and address[4] != "0" else ""
        last = "%s:%s:%s%s" % ((address[1] or "0000")[-4:], address[2], address[3], function)
    return node, last, address is not None


def is_same(name, wanted):
    if name.lower() == wanted.lower():
        return True
    (node, last, is_pci), (wanted_node, wanted_last, wanted_pci) = split_name(name), split_name(wanted)
    if is_pci or wanted_pci:
        may_be = not node or not wanted_node or node.split(".")[0] == wanted_node.split(".")[0]
        return last == wanted_last and may_be
    if last == wanted_last and (not wanted_node or node == wanted_node):
        return True
    return "/" not in name and name.lower().split(".")[0] == wanted.lower()


def is_one_of(entity, wanted):
    kind, name = entity
    return wanted.get("kind", "any") in ("any", kind) and is_same(name, str(wanted["name"]))


def named(verdict, *roles):
    return [(entity["kind"], entity["name"]) for entity in verdict.get("entities", [])
            if entity["role"] in roles]


def few_suspects(verdict):
    suspects = named(verdict, "suspect")
    return [one for one in suspects
            if sum(other[0] == one[0] for other in suspects) <= SUSPECTS_MAX]


def stands_in_headline(headline, kind, name):
    headline = headline.lower().split(" raised ")[0]  # what an exception quotes names nobody
    if kind == "rank":
        pattern = (r"(?<!local )(?<![\w-])ranks? (?:\d+(?:, | and | to |-))*%s(?![\w-])"
                   % re.escape(name))
    elif re.fullmatch(r"\d{1,4}", name):  # a bare number is somebody's behind a word that says so
        pattern = (r"(?<!local )(?<!\w)(?:process|pid|task|worker|rank|child|index)(?:es|s)?[ #=-]*"
                   r"%s(?![\w.-])" % name)
    else:
        pattern = r"(?<![\w.-])%s(?!\w|-\w)" % re.escape(name.lower().split("/")[-1])
    return re.search(pattern, headline) is not None


def is_told(verdict, wanted):
    if "all" in wanted:
        return all(is_told(verdict, one) for one in wanted["all"])
    if any(is_one_of(one, wanted) for one in named(verdict, "culprit") + few_suspects(verdict)):
        return True
    if any(is_one_of(one, wanted) for one in named(verdict, "victim")):
        return False
    return stands_in_headline(verdict.get("headline", ""), wanted.get("kind", "any"),
                              str(wanted["name"]))


def is_blamed(verdict, wanted):
    culprits = named(verdict, "culprit")
    if any(is_one_of(one, wanted) for one in culprits):
        return True
    headline = verdict.get("headline", "").lower()
    first = ENDED_FIRST.match(headline)
    if first and is_one_of((first[1], first[2]), wanted):
        return True
    if culprits or not any(is_one_of(one, wanted) for one in named(verdict, "suspect")):
        return False
    name = str(wanted["name"]).lower()
    name = "rank " + name if wanted.get("kind") == "rank" else name
    return re.search(r"\b%s\b" % re.escape(name), headline) is not None


# -- Words ----------------------------------------------------------------------------------------

def text_of(verdict):
    parts = [verdict.get("headline", ""), verdict.get("remediation", "")]
    parts += [one.get("description", "") for one in verdict.get("evidence_trail", [])]
    return " ".join(parts).lower()


def stands(word, text):
    word = word.lower()
    if re.fullmatch(r"-?\d+", word):  # -11 is no part of 2026-11-27
        return re.search(r"(?<![\w.-])%s(?!\w|\.\d)" % word, text) is not None
    return word in text


def hits(want, text):
    groups = [[group] if isinstance(group, str) else group for group in want.get("about", [])]
    return [any(stands(word, text) for word in group) for group in groups]


def is_in_time(want, verdict):
    if not want.get("when"):
        return True
    begin = int(verdict["start_time_unix_nano"]) / 1e9
    low, high = (datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()
                 for time in want["when"])
    return low <= begin <= high


# -- Grades ---------------------------------------------------------------------------------------

def roots_of(verdicts):
    loud = [one for one in verdicts if one.get("severity") in ("warning", "error", "critical")]
    roots = [one for one in loud if one.get("attributes", {}).get("culprit.root") == "true"]
    return roots or loud


def is_said_wrongly(want, roots, text):
    """Whether somebody is blamed, or something said, that must not be."""
    for root in roots:
        if any(is_blamed(root, one) for one in want.get("not_blamed", [])):
            return True
        if any(word.lower() in text_of(root) for word in want.get("not_about", [])):
            return True
        if any(one in named(root, "victim") for one in victims_wanted(want, root, roots)):
            return True
    return text.lower().startswith("healthy")


def victims_wanted(want, root, roots):
    """Who is to be named, is told of nowhere, and stands as a victim."""
    who = want.get("who", [])
    if want["answer"] == "unexplained" or any(is_told(one, each) for one in roots for each in who):
        return []
    return [one for one in named(root, "victim")
            if any("all" not in each and is_one_of(one, each) for each in who)]


def grade_unexplained(want, roots, verdicts, text):
    accepted = [one for each in want.get("who", []) for one in each.get("all", [each])]
    grave = [root for root in roots if root["severity"] in ("error", "critical")]
    if any(not any(is_one_of(one, each) for each in accepted)
           for root in grave for one in named(root, "culprit")):
        return "wrong"
    found = hits(want, text.lower() + " " + " ".join(text_of(one) for one in verdicts))
    if all(found):
        return "right"
    return "partly" if any(found) else "wrong" if grave else "silent"


def grade_root(want, root, roots):
    who = want.get("who", [])
    told = [any(is_told(each, one) for each in roots) for one in who]
    is_who = not who or (all(told) if want.get("who_all")
                         else any(is_told(root, one) for one in who))
    is_who = is_who and is_in_time(want, root)
    found = hits(want, text_of(root))
    is_beside = any(is_one_of(one, bad) for one in named(root, "suspect")
                    for bad in want.get("not_blamed", []))
    if is_who and all(found) and not is_beside:
        return "right"
    return "partly" if (who and (is_who or any(told))) or any(found) else "wrong"


def grade_named(want, roots):
    grade = min((grade_root(want, root, roots) for root in roots), key=GRADES.index)
    if grade != "right":
        return grade
    who = want.get("who", [])
    is_same_story = all(any(is_told(root, one) for one in who) or all(hits(want, text_of(root)))
                        for root in roots)
    if len(roots) > want.get("max_roots", 1) or (len(roots) > 1 and who and not is_same_story):
        return "partly"
    return grade


def grade_one(want, verdicts, text):
    roots = roots_of(verdicts)
    text = " ".join(text.split())
    if want["answer"] == "quiet":
        loud = any(one.get("severity") in ("warning", "error", "critical") for one in verdicts)
        return "false" if loud else "right"
    if is_said_wrongly(want, roots, text):
        return "wrong"
    if want["answer"] == "unexplained":
        grade = grade_unexplained(want, roots, verdicts, text)
    elif not roots:
        return "silent"
    else:
        grade = grade_named(want, roots)
    bad_advice = any(word.lower() in (root.get("headline", "") + " " +
                                      root.get("remediation", "")).lower()
                     for word in want.get("not_advised", []) for root in roots)
    return WORSE.get(grade, grade) if bad_advice else grade


def grade_restart(want, verdicts):
    """`right`, `wrong`, `undecided`, or None where nothing is expected."""
    accepted = want.get("restart")
    if not accepted:
        return None
    roots = roots_of(verdicts)
    said = None
    if roots:
        said = (roots[0].get("attributes", {}).get("culprit.restart") or
                RESTART_OF_ACTION.get(roots[0].get("action"), "unknown"))
    if said in (None, "unknown"):
        return "right" if said and isinstance(accepted, list) else "undecided"
    return "right" if said in ([accepted] if isinstance(accepted, str) else accepted) else "wrong"


def grade(want, verdicts, text):
    """The best grade over the expectations, and that of what is said of a restart."""
    grades = [(grade_one(one, verdicts, text), grade_restart({**want, **one}, verdicts))
              for one in [want] + want.get("or", [])]
    return min(grades, key=lambda one: GRADES.index(one[0]))
