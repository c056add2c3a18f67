// SPDX-License-Identifier: Apache-2.0
// Finds the lines of a log that may be of interest, many lines at once, so that all others need not
// be peeled and read one by one.
//
// A line is looked at when it holds what some reader must find in it (forms_search), when it is
// long or in colour, or an object of a kind that the log does not hold many of. One that is of
// interest is read with SEARCH_CONTEXT lines before it, which say what its writer's last line was
// and how lines are labelled, and as many behind it. Of what is passed over the last line that has
// a time is read: what follows may have none.
#pragma once

#include "pipeline/component/decoder.h"
#include "receivers/decode/forms/forms.h"

enum { SEARCH_CONTEXT = 16, SEARCH_FOUND_MAX = 8192 };

struct search {
    uint32_t strikes; // how often in a row little was passed over
};

// Asked about whole lines, without their ends.
struct search_judge {
    void *context;
    bool objects; // lines that are objects are of interest
    bool numbers; // … and those that begin with a number and a colon
    // Whether anybody would read something in the line.
    bool (*is_of_interest)(void *context, struct slice line);
    // Whether the log is full of objects like this one, which hold a line each.
    bool (*is_carrier)(void *context, struct slice line);
    // Whether it says when it was written.
    bool (*has_time)(void *context, struct slice line);
};

// As decoder_type.pass_over. O(text), and a judgement of each line that is looked at, which costs
// about as much as reading it. Text of which `found` tells its end is not looked at again.
void search_lines(struct search *search, const struct forms *forms, struct slice text,
                  const struct found_lines *found, const struct search_judge *judge,
                  struct line_run runs[LINE_RUNS]);

// Memory for what is found ahead; zeros at first.
struct search_ahead {
    struct found_line *lines;
    uint32_t count, capacity;
};
// Finds what search_lines would look at in whole lines, which follow those of the calls before from
// `begin` on, and tells their end. False: there is more than SEARCH_FOUND_MAX for these lines, or
// too much in all, and nothing is known. O(text). Any thread.
bool search_ahead(struct search_ahead *ahead, const struct forms *forms, const char *begin,
                  struct slice text);
