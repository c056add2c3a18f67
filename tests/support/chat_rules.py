# SPDX-License-Identifier: Apache-2.0
"""What Slack, PagerDuty and Teams want of a message, as functions that list what is wrong.

Sources: docs.slack.dev (reference/block-kit: blocks, composition objects; messaging/formatting),
github.com/PagerDuty/api-schema (events-v2) and developer.pagerduty.com (events-api-v2, PD-CEF),
learn.microsoft.com (adaptive-cards/schema-explorer; connectors/teams, limit of 28 KB). A field that
they do not name is wrong here, too.
"""
import json
import re
import urllib.parse


class Rules:
    def __init__(self):
        self.found = []

    def must(self, condition, what):
        if not condition:
            self.found.append(what)
        return condition

    def fields(self, where, value, required, optional=()):
        if not self.must(isinstance(value, dict), where + " is no object"):
            return False
        missing, unknown = set(required) - set(value), set(value) - set(required) - set(optional)
        return self.must(not missing and not unknown, "%s: missing %s, unknown %s"
                         % (where, sorted(missing), sorted(unknown)))

    def text(self, where, value, least, most):
        if self.must(isinstance(value, str), where + " is no text"):
            self.must(least <= len(value) <= most, "%s has %d characters" % (where, len(value)))
            self.must(not re.search("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", value),
                      where + " has control characters")

    def url(self, where, value):
        parts = urllib.parse.urlsplit(value)
        self.must(parts.scheme in ("http", "https") and parts.netloc and " " not in value,
                  "%s is no URL: %s" % (where, value))


def document(body):
    """The JSON, which no key of an object has twice."""
    def once(pairs):
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("a key is there twice")
        return dict(pairs)
    return json.loads(body, object_pairs_hook=once)


# -- Slack ---------------------------------------------------------------------------------------

def slack_text(rules, where, value, most, kinds=("plain_text", "mrkdwn")):
    if not rules.fields(where, value, ("type", "text"), ("emoji", "verbatim")):
        return
    rules.must(value["type"] in kinds, where + ": the type " + str(value["type"]))
    rules.must("emoji" not in value or value["type"] == "plain_text", where + ": emoji")
    rules.must("verbatim" not in value or value["type"] == "mrkdwn", where + ": verbatim")
    rules.text(where, value["text"], 1, most)
    if value["type"] == "mrkdwn":
        slack_formatted(rules, where, value["text"])


def slack_formatted(rules, where, text):
    """Where Slack reads its own markup: no call and no link that we did not write."""
    rules.must("<" not in text and ">" not in text, where + " holds < or >")
    rules.must(not re.search("&(?!amp;|lt;|gt;)", text), where + " holds a bare &")


def slack_block(rules, where, block):
    kind = block.get("type")
    if kind == "header" and rules.fields(where, block, ("type", "text")):
        slack_text(rules, where, block["text"], 150, ("plain_text",))
    elif kind == "section" and rules.fields(where, block, ("type", "text"), ("fields",)):
        slack_text(rules, where, block["text"], 3000)
        rules.must(1 <= len(block.get("fields", [0])) <= 10, where + ": number of fields")
        for one in block.get("fields", []):
            slack_text(rules, where + " field", one, 2000)
    elif kind == "context" and rules.fields(where, block, ("type", "elements")):
        rules.must(1 <= len(block["elements"]) <= 10, where + ": number of elements")
        for one in block["elements"]:
            slack_text(rules, where + " element", one, 3000)
    else:
        rules.must(kind in ("header", "section", "context"), where + ": the type " + str(kind))


def slack(body):
    rules, message = Rules(), document(body)
    if rules.fields("the message", message, ("text",), ("blocks",)):
        rules.text("text", message["text"], 1, 40000)
        slack_formatted(rules, "text", message["text"])
        rules.must(1 <= len(message["blocks"]) <= 50, "number of blocks")
        for number, block in enumerate(message["blocks"]):
            slack_block(rules, "block %d" % number, block)
    return rules.found


# -- PagerDuty -----------------------------------------------------------------------------------

def pagerduty(body):
    rules, event = Rules(), document(body)
    rules.must(len(body) <= 512 * 1024, "it has more than 512 KiB")
    if not rules.fields("the event", event, ("routing_key", "event_action", "dedup_key", "payload"),
                        ("client", "client_url", "links", "images")):
        return rules.found
    rules.must(re.fullmatch("[0-9a-zA-Z]{32}", event["routing_key"]),
               "Length of 'routing_key' is incorrect (should be 32 characters)")
    rules.must(event["event_action"] in ("trigger", "acknowledge", "resolve"), "event_action")
    rules.text("dedup_key", event["dedup_key"], 1, 255)
    for link in event.get("links", []):
        if rules.fields("a link", link, ("href",), ("text",)):
            rules.url("a link", link["href"])
    payload = event["payload"]
    if rules.fields("payload", payload, ("summary", "source", "severity"),
                    ("timestamp", "component", "group", "class", "custom_details")):
        for name, most in (("summary", 1024), ("source", 1024), ("component", 1024),
                           ("group", 1024), ("class", 1024)):
            rules.text(name, payload.get(name, "-"), 1, most)
        rules.must(payload["severity"] in ("critical", "error", "warning", "info"), "severity")
        rules.must(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)",
                                payload.get("timestamp", "")), "timestamp")
        rules.must(isinstance(payload.get("custom_details", {}), dict), "custom_details")
    return rules.found


# -- Teams ---------------------------------------------------------------------------------------

COLORS = {"Default", "Dark", "Light", "Accent", "Good", "Warning", "Attention"}
CARD = ("$schema", "type", "version")
RUN = {"size": {"Default", "Small", "Medium", "Large", "ExtraLarge"}, "color": COLORS,
       "weight": {"Default", "Lighter", "Bolder"}, "fontType": {"Default", "Monospace"},
       "isSubtle": {True, False}}


def teams_run(rules, where, run):
    if not rules.fields(where, run, ("type", "text"), RUN):
        return
    rules.must(run["type"] == "TextRun", where + ": the type " + str(run["type"]))
    rules.text(where, run["text"], 1, 5000)
    for name, values in RUN.items():
        rules.must(name not in run or run[name] in values, "%s: %s" % (where, name))


def teams(body):
    rules, message = Rules(), document(body)
    rules.must(len(body) <= 28 * 1024, "it has more than 28 KiB: %d" % len(body))
    if not rules.fields("the message", message, ("type", "attachments")):
        return rules.found
    rules.must(message["type"] == "message" and len(message["attachments"]) == 1, "the envelope")
    attachment = message["attachments"][0]
    if not rules.fields("attachment", attachment, ("contentType", "content"), ("contentUrl",)):
        return rules.found
    rules.must(attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
               and attachment.get("contentUrl") is None, "the kind of attachment")
    card = attachment["content"]
    if not rules.fields("the card", card, CARD + ("body",), ("fallbackText", "msteams", "actions")):
        return rules.found
    rules.must((card["type"], card["version"]) == ("AdaptiveCard", "1.4"), "the kind of card")
    rules.must(re.fullmatch("[a-z_:, ]+", card["fallbackText"]), "Markdown in the fallbackText")
    for number, block in enumerate(card["body"]):
        where = "block %d" % number
        if rules.fields(where, block, ("type", "inlines")):
            # Text of a TextBlock would be Markdown.
            rules.must(block["type"] == "RichTextBlock" and block["inlines"], where)
            for run in block["inlines"]:
                teams_run(rules, where, run)
    return rules.found
