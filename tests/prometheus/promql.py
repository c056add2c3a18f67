# SPDX-License-Identifier: Apache-2.0
"""Which metrics and labels does a PromQL expression name?

Enough of the language for the queries of our own dashboards and rules: what it cannot place, it
says.
"""
import re

TOKEN = re.compile(r"""\s*(?:
      (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<range>\[[^\]]*\])
    | (?P<name>[A-Za-z_:][\w:]*)
    | (?P<number>[0-9][\w.]*)
    | (?P<sign>=~|!~|!=|==|<=|>=|[-+*/%^=<>(){},])
    )""", re.X)
WORDS = {"and", "or", "unless", "bool", "offset", "inf", "nan"}
LISTS = {"by", "without", "on", "ignoring", "group_left", "group_right"}


class Names:
    """`matched`: metric -> labels that its matchers name; `listed`: labels of by, on and so on."""

    def __init__(self, expression):
        self.matched, self.listed = {}, set()
        self.tokens, at = [], 0
        expression = expression.rstrip()
        while at < len(expression):
            match = TOKEN.match(expression, at)
            if match is None:
                raise ValueError("no PromQL that is known here: %.40r" % expression[at:])
            self.tokens.append((match.lastgroup, match.group(match.lastgroup)))
            at = match.end()
        while self.tokens:
            self.take()

    def next_is(self, sign):
        return bool(self.tokens) and self.tokens[0] == ("sign", sign)

    def names_until(self, sign):
        names = []
        while not self.next_is(sign):
            kind, text = self.tokens.pop(0)
            if kind == "name":
                names.append(text)
        self.tokens.pop(0)
        return names

    def take(self):
        kind, text = self.tokens.pop(0)
        if kind != "name" or text.lower() in WORDS:
            return
        if text in LISTS:
            if self.next_is("("):
                self.listed.update(self.names_until(")"))
        elif self.next_is("{"):
            self.matched.setdefault(text, set()).update(self.names_until("}"))
        elif not self.next_is("(") and not (self.tokens and self.tokens[0][1] in LISTS):
            self.matched.setdefault(text, set())
