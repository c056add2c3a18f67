// SPDX-License-Identifier: Apache-2.0
// All forms that are known, found by what a message says.
#pragma once

#include "receivers/decode/forms/needles.h"
#include "receivers/decode/forms/rows.h"

struct forms;
struct envelopes;

// Those that are built in; made at the first call, of any thread, and never given back.
const struct forms *forms_builtin(void);
// The same and those of more files, which go before them. `files`, `texts`: as many each; copied.
// NULL: `fault` says what is wrong; its file is one of `files`.
struct forms *forms_make(const char *const *files, const struct slice *texts, uint32_t count,
                         struct form_fault *fault);
void forms_free(struct forms *forms); // NULL is fine
uint32_t forms_count(const struct forms *forms);
const struct form *forms_at(const struct forms *forms, uint32_t i);
const struct envelopes *forms_envelopes(const struct forms *forms); // envelope.h

struct form_match {
    const struct form *form;
    const struct form_text *text;
    struct slice values[PATTERN_NAMES_MAX]; // in the message
    // The message ends within the text (of rows with `whole yes`); values are not all there.
    bool is_cut;
    struct pattern_memo memo; // of forms_find: also when it found nothing
};
// Whether a further line of a row has the text: like `text`, it may stand anywhere behind a word,
// so that prefixes which nobody knows do not hide it. How far the line is indented says nothing.
// O(line).
bool forms_find_then(const struct form_text *text, struct slice line, struct slice *values);
// The first form that the message has; false: none. O(message), whatever the rows are: a bounded
// number of candidates, pattern_steps_max() steps for all of them together. Any thread.
bool forms_find(const struct forms *forms, struct slice message, struct form_match *match);
// The same without the rows of the kernel's lines.
bool forms_find_of_programs(const struct forms *forms, struct slice message,
                            struct form_match *match);

// The next place of the text at which something stands that a line must have to be read by a row,
// or by a reader in C (literals.h); false: there is none. Begin with a walk of zeros; the places
// come in about their order (needles.h). `certain`: as form_literal says. O(text). Any thread.
bool forms_search(const struct forms *forms, struct slice text, struct needle_walk *walk,
                  size_t *place, bool *certain);

// The prefix in front of the text, behind `*end`; false: none of those that are known. Begin with
// a walk of zeros; called again, it tries those that come after the one it gave.
struct prefix_walk {
    uint32_t next;
    size_t name_at, name_end; // of the name that was looked for last; 0: none was
    enum { PREFIX_UNKNOWN, PREFIX_NO_NAME, PREFIX_NAME } begins; // the text, with a number in it
    struct pattern_memo memo;
};
bool forms_find_prefix(const struct forms *forms, struct slice text, struct prefix_walk *walk,
                       struct form_match *match, size_t *end);
