// SPDX-License-Identifier: Apache-2.0
// One walk over the lines, with the next place that a needle has ahead of it. What the bytes of a
// line say by themselves can be found ahead, on another thread; then the walk goes from one such
// line to the next. Where lines of interest stand close together, searching only costs: then the
// next lines are offered as they are.
#include "receivers/decode/log/search.h"

#include "base/memory.h"
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
    const struct forms *forms;
    struct needle_walk needle;
    size_t hit, colour; // the next of them at or behind `here`; SIZE_MAX: there is none
    bool certain;       // of the hit
    bool only_object;   // the line at hand is looked at for nothing but being an object
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

// What the bytes of the line at hand say, whatever is known of its log.
static enum found_kind look_at(struct walk *walk, struct slice line, bool numbers) {
    size_t end = walk->here.at + line.size;
    bool hit = false;
    if (walk->hit < walk->here.at)
        find_hit(walk);
    if (walk->colour < walk->here.at)
        find_colour(walk);
    for (; walk->hit <= end; find_hit(walk), hit = true)
        if (walk->certain)
            return FOUND_CERTAIN;
    bool maybe = hit || walk->colour < end || line.size >= LONG_LINE;
    walk->only_object = !maybe && is_object(line) && !is_envelope(line);
    maybe = maybe || walk->only_object;
    if (numbers && is_numbered(line))
        return maybe ? FOUND_MAYBE_NUMBER : FOUND_NUMBERED;
    return maybe ? FOUND_MAYBE : FOUND_NOTHING;
}

// Of what was found ahead it is not known why.
static bool is_only_object(struct slice line, const struct forms *forms) {
    struct needle_walk walk = {0};
    size_t place;
    bool certain;
    return is_object(line) && !is_envelope(line) && line.size < LONG_LINE &&
           memchr(line.data, '\x1b', line.size) == NULL &&
           !forms_search(forms, line, &walk, &place, &certain);
}

static bool is_of_carrier(struct slice line, const struct search_judge *judge) {
    return judge->is_carrier != NULL && judge->is_carrier(judge->context, line);
}

static bool is_wanted(struct slice line, enum found_kind kind, const struct search_judge *judge) {
    bool numbered = kind == FOUND_NUMBERED || kind == FOUND_MAYBE_NUMBER;
    if (kind == FOUND_CERTAIN || (judge->numbers && numbered))
        return true;
    return (kind == FOUND_MAYBE || kind == FOUND_MAYBE_NUMBER) &&
           ((judge->objects && is_object(line) && !is_envelope(line)) ||
            judge->is_of_interest(judge->context, without_return(line)));
}

static bool is_blank(struct slice line) {
    return line.size == 0 ||
           ((unsigned char)line.data[0] <= ' ' && text_trim(without_return(line)).size == 0);
}

static void pass_line(struct walk *walk, struct slice line) {
    walk->here.at += line.size + 1;
    walk->here.lines++;
    walk->here.blank += is_blank(line);
}

static void begin_walk(struct walk *walk, const struct forms *forms, struct slice text) {
    *walk = (struct walk){.text = text, .forms = forms};
    find_hit(walk);
    find_colour(walk);
}

// The first line of interest, or the end of the text.
static bool find_line(struct walk *walk, const struct search_judge *judge) {
    while (walk->here.at < walk->text.size) {
        struct slice line = line_at(walk->text, walk->here.at);
        enum found_kind kind = look_at(walk, line, judge->numbers);
        bool is_passed = walk->only_object && is_of_carrier(line, judge);
        if (!is_passed && is_wanted(line, kind, judge))
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

// What lies in front of the line `count` lines before this place, or at `at`, which is nearer.
static struct line_place place_before(struct slice text, struct line_place place, uint64_t count,
                                      size_t at) {
    for (; count > 0 && place.at > at; count--) {
        size_t begin = line_begin(text, place.at - 1);
        place.lines--;
        place.blank -= is_blank((struct slice){text.data + begin, place.at - 1 - begin});
        place.at = begin;
    }
    return place;
}

// -- what was found ahead -------------------------------------------------------------------------

// The first of the lines at or behind this place.
static uint32_t first_found(const struct found_lines *found, const char *place) {
    uint32_t low = 0, high = found->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (found->text.data + found->lines[middle].at < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Whether it tells all of the text from some line of it on, to its end. A text may begin within a
// line that was cut.
static bool is_told(const struct found_lines *found, struct slice text, const struct forms *forms) {
    const char *end = text.data + text.size;
    if (found == NULL || found->count == 0 || found->forms != forms || end <= found->text.data ||
        end > found->text.data + found->text.size ||
        (text.data > found->text.data && text.data[-1] != '\n'))
        return false;
    uint32_t last = first_found(found, end);
    return last < found->count && found->text.data + found->lines[last].at == end;
}

// Whether a line of interest stands in front of what was found.
static bool find_before(struct walk *walk, const struct found_lines *found,
                        const struct search_judge *judge) {
    struct slice text = walk->text;
    if (found->text.data <= text.data)
        return false;
    begin_walk(walk, walk->forms,
               (struct slice){text.data, (size_t)(found->text.data - text.data)});
    bool is_found = find_line(walk, judge);
    walk->text = text;
    return is_found;
}

// The same as find_line, from one line that was found to the next.
static bool find_told(struct walk *walk, const struct found_lines *found,
                      const struct search_judge *judge) {
    const struct slice text = walk->text;
    const char *begin = text.data + walk->here.at;
    uint32_t next = first_found(found, begin);
    // Where the walk begins lies behind a line that was found: that is near.
    struct walk from = {.text = found->text};
    if (next > 0)
        from.here = (struct line_place){found->lines[next - 1].at, found->lines[next - 1].lines,
                                        found->lines[next - 1].blank};
    while (found->text.data + from.here.at < begin)
        pass_line(&from, line_at(found->text, from.here.at));
    const struct line_place start = walk->here;
    for (; next < found->count && walk->here.at < text.size; next++) {
        const struct found_line *line = &found->lines[next];
        walk->here = (struct line_place){.at = start.at + (line->at - from.here.at),
                                         .lines = start.lines + (line->lines - from.here.lines),
                                         .blank = start.blank + (line->blank - from.here.blank)};
        if (walk->here.at >= text.size)
            continue;
        struct slice whole = line_at(text, walk->here.at);
        bool is_passed = line->kind == FOUND_MAYBE && is_of_carrier(whole, judge) &&
                         is_only_object(whole, found->forms);
        if (!is_passed && is_wanted(whole, line->kind, judge))
            return true;
    }
    return false;
}

static void add_found(struct search_ahead *ahead, size_t at, const struct line_place *place,
                      enum found_kind kind) {
    ahead->lines = memory_room(ahead->lines, &ahead->capacity, ahead->count, sizeof *ahead->lines);
    ahead->lines[ahead->count++] = (struct found_line){.at = (uint32_t)at,
                                                       .lines = (uint32_t)place->lines,
                                                       .blank = (uint32_t)place->blank,
                                                       .kind = kind};
}

bool search_ahead(struct search_ahead *ahead, const struct forms *forms, const char *begin,
                  struct slice text) {
    const size_t from = (size_t)(text.data - begin);
    const uint32_t most = ahead->count + SEARCH_FOUND_MAX;
    struct walk walk;
    assert(text.size > 0 && text.data[text.size - 1] == '\n' && from + text.size <= UINT32_MAX);
    begin_walk(&walk, forms, text);
    if (ahead->count > 0) {
        walk.here.lines = ahead->lines[ahead->count - 1].lines;
        walk.here.blank = ahead->lines[ahead->count - 1].blank;
    }
    while (walk.here.at < text.size) {
        struct slice line = line_at(text, walk.here.at);
        enum found_kind kind = look_at(&walk, line, true);
        if (kind != FOUND_NOTHING && ahead->count == most)
            return false;
        if (kind != FOUND_NOTHING)
            add_found(ahead, from + walk.here.at, &walk.here, kind);
        pass_line(&walk, line);
    }
    add_found(ahead, from + walk.here.at, &walk.here, FOUND_NOTHING);
    return true;
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
    struct walk from = {.text = text, .here = place_before(text, to, UINT64_MAX, dated)};
    runs[0] = run_between(start, from.here, 1);
    pass_line(&from, line_at(text, dated));
    runs[1] = run_between(from.here, to, offered);
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
                  const struct found_lines *found, const struct search_judge *judge,
                  struct line_run runs[LINE_RUNS]) {
    const char *end = text.size == 0 ? NULL : memrchr(text.data, '\n', text.size);
    memset(runs, 0, LINE_RUNS * sizeof *runs);
    if (end == NULL) {
        runs[0].offered = 1;
        return;
    }
    text.size = (size_t)(end - text.data) + 1;
    struct walk walk = {.text = text, .forms = forms};
    bool is_found;
    if (is_told(found, text, forms)) {
        is_found = find_before(&walk, found, judge) || find_told(&walk, found, judge);
    } else {
        begin_walk(&walk, forms, text);
        is_found = find_line(&walk, judge);
    }
    struct line_place here = walk.here, to = {0};
    if (here.lines > SEARCH_CONTEXT)
        to = place_before(text, here, SEARCH_CONTEXT, 0);
    uint64_t offered = here.lines - to.lines;
    if (is_found)
        offered += 1 + SEARCH_CONTEXT + count_strikes(search, to.lines);
    pass_over(text, to, here.at, offered, judge, runs);
}
