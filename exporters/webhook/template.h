// SPDX-License-Identifier: Apache-2.0
// Request bodies that a user describes: a JSON text with placeholders in its strings.
//
//     {"text": "{{headline|cut 100|slack}}", "action": "{{state|resolved=close|*=open}}"}
//
// A placeholder is {{NAME}} and, behind bars, what is done to its value: FROM=TO (a value that is
// replaced; `*` stands for all others), `cut N` (at most N characters), `slack` (& < > as Slack
// wants them). Values are escaped for JSON, so whatever they hold, the body is JSON with the
// structure that the template has. There is no condition, no loop and no nesting.
//
// Values that the user gives (`template_values`) may be secrets. A rendered body names them only
// (TEMPLATE_MARK NAME TEMPLATE_MARK); they are put in when it is sent, so they are in no queue and
// in no store.
//
// Bounds: a template has 64 KiB, TEMPLATE_PIECES_MAX placeholders, TEMPLATE_GIVEN_MAX values; a
// value from a verdict has a few KiB.
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "config/option.h"
#include "pipeline/model/verdict.h"

enum {
    TEMPLATE_SIZE_MAX = 64 << 10,
    TEMPLATE_PIECES_MAX = 256,
    TEMPLATE_ITEMS_MAX = 16, // behind the bars of one placeholder
    TEMPLATE_GIVEN_MAX = 16,
    TEMPLATE_NAME_MAX = 40,
};
// No byte of JSON: it escapes control characters in strings, and has no other ones but blanks.
static const char TEMPLATE_MARK = '\x01';

enum template_value {
    VALUE_NONE, // behind the last placeholder
    VALUE_GIVEN,
    VALUE_ACTION,
    VALUE_COMPLETENESS,
    VALUE_CONFIDENCE,
    VALUE_END,
    VALUE_EVIDENCE,
    VALUE_GPUS,
    VALUE_HEADLINE,
    VALUE_ID,
    VALUE_JOB,
    VALUE_KIND,
    VALUE_NODES,
    VALUE_PATTERN,
    VALUE_PODS,
    VALUE_RANKS,
    VALUE_REMEDIATION,
    VALUE_ROOT,
    VALUE_SEVERITY,
    VALUE_START,
    VALUE_STATE,
    VALUE_WHO,
    TEMPLATE_VALUES,
};

struct template_item {
    struct slice from, to;
    bool others; // `*`
};

// Raw JSON, and the value behind it.
struct template_piece {
    struct slice raw;
    enum template_value value;
    struct slice name; // VALUE_GIVEN
    struct template_item *items;
    uint32_t item_count;
    uint32_t cut; // characters; 0: not cut
    bool slack;
};

struct body_template {
    struct arena arena;
    struct template_piece *pieces;
    uint32_t piece_count;
};

// Where a template is wrong, and why.
struct template_fault {
    uint32_t line, column; // 1-based, in bytes; 0: of the file as a whole
    char text[320];
};

// -- template.c: from text to pieces --------------------------------------------------------------

// Why an item of `template_values` is none, or NULL: "NAME=VALUE" with a name of lower case
// letters, digits and underscores that no value of a verdict has.
const char *template_given_problem(const char *item);
// The value of `name`, or NULL.
const char *template_given(const struct text_list *given, struct slice name);
// Reads the file; false with a fault. What it made is released by template_release, also after a
// fault. Every name of `given` must occur. A made-up verdict is rendered at the end, and must give
// JSON.
bool template_read(struct body_template *template, const char *path, const struct text_list *given,
                   struct template_fault *fault) MUST_USE;
// The same for a text.
bool template_parse(struct body_template *template, struct slice text,
                    const struct text_list *given, struct template_fault *fault) MUST_USE;
void template_release(struct body_template *template);

// -- template_value.c: from a verdict to a body ---------------------------------------------------

// The value that has this name, VALUE_NONE for none.
enum template_value template_value_of(struct slice name);
// All values that this one can have, ended by NULL; NULL: any text.
const char *const *template_values_of(enum template_value value);
// All names, for a message.
void template_list_names(struct buffer *out);
// Appends one line of JSON with its newline. `text` is scratch: empty, and left so.
void template_render(const struct body_template *template, const struct verdict *verdict,
                     struct buffer *text, struct buffer *out);
// Appends a rendered line with the values that are given in their places. False when it names one
// that is not there any more.
bool template_fill(struct slice line, const struct text_list *given, struct buffer *out) MUST_USE;
// Appends a text with the three characters that mean something to Slack as it wants them:
// https://docs.slack.dev/messaging/formatting-message-text
void slack_append(struct buffer *out, struct slice text);
