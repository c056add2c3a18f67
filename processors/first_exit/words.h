// SPDX-License-Identifier: Apache-2.0
// What is told of an end, in words that follow on whose it is: "left with exit code 1". Texts lie
// in the arena, or live longer; `max`: characters of what an exception says.
#pragma once

#include "processors/first_exit/decide.h"

// In a headline, of whom is blamed.
const char *exit_candidate_words(const struct exit_decision *decision,
                                 const struct exit_candidate *candidate, size_t max,
                                 struct arena *arena);
// Whether the words of one say all that the words of the other say of one end: how, and why.
bool exit_note_covers(const struct exit_note *note, const struct exit_note *other);
// In a piece of evidence.
const char *exit_note_words(const struct exit_note *note, size_t max, struct arena *arena);

struct exit_advice {
    const char *action; // of the schema's list
    const char *words;  // with {who} and {node}
};
struct exit_advice exit_advice(const struct exit_decision *decision, struct arena *arena);
