// SPDX-License-Identifier: Apache-2.0
// One walk over the lines, with the next place that a needle has ahead of it. Where lines of
// interest stand close together, searching only costs: then the next lines are offered as they are.
#include "receivers/decode/log/search.h"

#include "base/text/cut.h"
#include "receivers/decode/forms/needles.h"

#include <assert.h>

enum {
    LONG_LINE = 8 << 10, // bytes; such lines are looked at, whatever they hold
    FEW_LINES = 64,      // so few lines passed over are not worth the search
    STRIKES_MAX = 8,     // … so often in a row
    PLAIN_LINES = 512,   // that so many are offered
    DATED_MAX = 32,      // lines with a clock that are asked for their time
};

// Where a line begins, and what lies before it.
struct line_place {
    size_t at;
    uint64_t lines, blank;
};

struct walk {
    struct slice text; // whole lines
    struct line_place here;
    struct line_place last[SEARCH_CONTEXT]; // the lines before, in a ring
    const struct forms *forms;
    struct needle_walk needle;
    size_t hit, colour; // the next of them at or behind `here`; SIZE_MAX: there is none
    bool certain;
};

static struct slice line_at(struct slice text, size_t at) {
    const char *end = memchr(text.data + at, '\n', text.size - at);
    assert(end != NULL);
    return (struct slice){text.data + at, (size_t)(end - text.data) - at};
}

static struct slice without_return(struct slice line) {
    while (line.size > 0 && line.data[line.size - 1] == '\r')
        line.size--;
    return line;
}

static void find_hit(struct walk *walk) {
    size_t from = walk->here.at;
    if (walk->needle.at < from)
        walk->needle = (struct needle_walk){.at = from};
    do {
        if (!forms_search(walk->forms, walk->text, &walk->needle, &walk->hit, &walk->certain))
            walk->hit = SIZE_MAX;
    } while (walk->hit < from);
}

static void find_colour(struct walk *walk) {
    size_t from = walk->here.at;
    const char *at = memchr(walk->text.data + from, '\x1b', walk->text.size - from);
    walk->colour = at == NULL ? SIZE_MAX : (size_t)(at - walk->text.data);
}

// Programs print other things in braces, too: "{'loss': 0.3}".
static bool is_object(struct slice line) {
    text_skip_blanks(&line);
    if (!text_skip_char(&line, '{'))
        return false;
    text_skip_blanks(&line);
    return line.size > 0 && line.data[0] != '\'';
}

// An object that only a log of Docker's or the journal has: its first key.
static bool is_envelope(struct slice line) {
    static const struct slice keys[] = {
        {"log\"", 4}, {"_", 1}, {"MESSAGE\"", 8}, {"PRIORITY\"", 9}, {"SYSLOG_", 7}};
    text_skip_blanks(&line);
    if (!text_skip_char(&line, '{'))
        return false;
    text_skip_blanks(&line);
    bool found = false;
    if (text_skip_char(&line, '"'))
        for (size_t i = 0; i < sizeof keys / sizeof *keys && !found; i++)
            found = text_begins(line, keys[i]);
    return found;
}

// "12: text"
static bool is_numbered(struct slice line) {
    uint64_t number;
    text_skip_blanks(&line);
    return line.size > 0 && text_is_digit(line.data[0]) && text_take_number(&line, 1, 8, &number) &&
           text_begins(line, SLICE(": "));
}

static bool is_certain(const struct walk *walk, struct slice line,
                       const struct search_judge *judge) {
    return (walk->hit <= walk->here.at + line.size && walk->certain) ||
           (judge->objects && is_object(line) && !is_envelope(line)) ||
           (judge->numbers && is_numbered(line));
}

// Whether the line is to be judged.
static bool is_candidate(struct walk *walk, struct slice line, const struct search_judge *judge) {
    if (walk->hit < walk->here.at)
        find_hit(walk);
    if (walk->colour < walk->here.at)
        find_colour(walk);
    size_t end = walk->here.at + line.size;
    return walk->hit <= end || walk->colour < end || line.size >= LONG_LINE ||
           (is_object(line) && !is_envelope(line)) || (judge->numbers && is_numbered(line));
}

static void pass_line(struct walk *walk, struct slice line) {
    walk->last[walk->here.lines % SEARCH_CONTEXT] = walk->here;
    bool blank = line.size == 0 ||
                 ((unsigned char)line.data[0] <= ' ' && text_trim(without_return(line)).size == 0);
    walk->here.at += line.size + 1;
    walk->here.lines++;
    walk->here.blank += blank;
}

// The first line of interest, or the end of the text.
static bool find_line(struct walk *walk, const struct search_judge *judge) {
    while (walk->here.at < walk->text.size) {
        struct slice line = line_at(walk->text, walk->here.at);
        if (is_candidate(walk, line, judge) &&
            (is_certain(walk, line, judge) ||
             judge->is_of_interest(judge->context, without_return(line))))
            return true;
        pass_line(walk, line);
    }
    return false;
}

// -- times ----------------------------------------------------------------------------------------

// "10:11:12", of which the first colon stands here.
static bool is_clock(struct slice text, size_t colon) {
    const char *at = text.data + colon;
    return colon >= 2 && text.size - colon >= 6 && text_is_digit(at[-2]) && text_is_digit(at[-1]) &&
           text_is_digit(at[1]) && text_is_digit(at[2]) && at[3] == ':' && text_is_digit(at[4]) &&
           text_is_digit(at[5]);
}

static size_t line_begin(struct slice text, size_t at) {
    const char *end = at == 0 ? NULL : memrchr(text.data, '\n', at);
    return end == NULL ? 0 : (size_t)(end - text.data) + 1;
}

// The last line of the text that has a time: where it begins; SIZE_MAX: none is found.
static size_t find_dated(struct slice text, const struct search_judge *judge) {
    size_t end = text.size;
    for (int asked = 0; asked < DATED_MAX;) {
        const char *colon = end == 0 ? NULL : memrchr(text.data, ':', end);
        if (colon == NULL)
            return SIZE_MAX;
        end = (size_t)(colon - text.data);
        if (!is_clock(text, end))
            continue;
        size_t begin = line_begin(text, end);
        if (judge->has_time(judge->context, without_return(line_at(text, begin))))
            return begin;
        end = begin;
        asked++;
    }
    return SIZE_MAX;
}

// What lies in front of a line.
static struct line_place place_of(struct slice text, size_t at) {
    struct walk walk = {.text = text};
    while (walk.here.at < at)
        pass_line(&walk, line_at(text, walk.here.at));
    return walk.here;
}

// -- the interface --------------------------------------------------------------------------------

static struct line_run run_between(struct line_place from, struct line_place to, uint64_t offered) {
    return (struct line_run){.bytes = to.at - from.at,
                             .lines = to.lines - from.lines,
                             .blank = to.blank - from.blank,
                             .offered = offered};
}

// Passes over all in front of `to`, but for the last line that has a time, where no line between
// `to` and `end` has one.
static void pass_over(struct slice text, struct line_place to, size_t end, uint64_t offered,
                      const struct search_judge *judge, struct line_run runs[LINE_RUNS]) {
    const struct line_place start = {0};
    struct slice before = {text.data, to.at}, context = {text.data + to.at, end - to.at};
    size_t dated = SIZE_MAX;
    if (to.at > 0 && find_dated(context, judge) == SIZE_MAX)
        dated = find_dated(before, judge);
    if (dated == SIZE_MAX) {
        runs[0] = run_between(start, to, offered);
        return;
    }
    struct line_place from = place_of(text, dated);
    runs[0] = run_between(start, from, 1);
    from = place_of(text, dated + line_at(text, dated).size + 1);
    runs[1] = run_between(from, to, offered);
}

// How many lines are to be offered as they are.
static uint64_t count_strikes(struct search *search, uint64_t passed) {
    search->strikes = passed < FEW_LINES ? search->strikes + 1 : 0;
    if (search->strikes < STRIKES_MAX)
        return 0;
    search->strikes = STRIKES_MAX / 2;
    return PLAIN_LINES;
}

void search_lines(struct search *search, const struct forms *forms, struct slice text,
                  const struct search_judge *judge, struct line_run runs[LINE_RUNS]) {
    const char *end = text.size == 0 ? NULL : memrchr(text.data, '\n', text.size);
    memset(runs, 0, LINE_RUNS * sizeof *runs);
    if (end == NULL) {
        runs[0].offered = 1;
        return;
    }
    text.size = (size_t)(end - text.data) + 1;
    struct walk walk = {.text = text, .forms = forms};
    find_hit(&walk);
    find_colour(&walk);
    bool found = find_line(&walk, judge);
    struct line_place here = walk.here, to = {0};
    if (here.lines > SEARCH_CONTEXT)
        to = walk.last[here.lines % SEARCH_CONTEXT];
    uint64_t offered = here.lines - to.lines;
    if (found)
        offered += 1 + SEARCH_CONTEXT + count_strikes(search, to.lines);
    pass_over(text, to, here.at, offered, judge, runs);
}
