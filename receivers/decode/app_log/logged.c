// SPDX-License-Identifier: Apache-2.0
// One pass over what stands in front of an exception, word by word.
#include "receivers/decode/app_log/logged.h"

#include "base/text/cut.h"
#include "receivers/decode/app_log/rank_words.h"
#include "receivers/decode/line/level.h"

#include <ctype.h>
#include <strings.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

static bool is_letter(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool logged_has_level(struct slice text) {
    static const struct slice levels[] = {
        {"ERROR", 5}, {"WARNING", 7}, {"CRITICAL", 8}, {"WARN", 4}};
    for (size_t i = 0; i < COUNT(levels); i++) {
        struct slice behind;
        if (!text_find(text, levels[i], &behind))
            continue;
        const char *at = behind.data - levels[i].size;
        bool begins = at == text.data || !is_letter(at[-1]);
        if (begins && (behind.size == 0 || !is_letter(behind.data[0])))
            return true;
    }
    return false;
}

bool logged_goes_on(struct slice text) {
    static const struct slice words[] = {
        {"skipping", 8}, {"skipped", 7},  {"ignoring", 8},    {"ignored", 7},
        {"retrying", 8}, {"retry in", 8}, {"continuing", 10}, {"falling back", 12},
    };
    return words_any(text, words, COUNT(words));
}

// -- levels ---------------------------------------------------------------------------------------

static size_t word_size(struct slice text) {
    size_t size = 0;
    while (size < text.size && is_letter(text.data[size]))
        size++;
    return size;
}

static bool is_word(struct slice word, const char *const *words) {
    for (; *words != NULL; words++)
        if (strlen(*words) == word.size && strncasecmp(*words, word.data, word.size) == 0)
            return true;
    return false;
}

// A level in capitals, in brackets, or in front of the line with a colon behind it.
static bool is_set_off(struct slice line, size_t at, size_t size) {
    struct slice word = {line.data + at, size};
    bool is_upper = true;
    for (size_t i = 0; i < word.size; i++)
        is_upper = is_upper && word.data[i] >= 'A' && word.data[i] <= 'Z';
    char before = at == 0 ? ' ' : line.data[at - 1];
    char behind = at + size < line.size ? line.data[at + size] : ' ';
    return is_upper || (memchr("[<|=(", before, 5) != NULL && before != ' ') ||
           (at == 0 && behind == ':');
}

// "E1120 10:10:18.123456 12345 trainer.cc:88] ", as glog writes.
static enum frame_level glog_level(struct slice text) {
    struct slice digits = text_from(text, 1);
    uint64_t day;
    if (text.size < 6 || memchr("IWEF", text.data[0], 4) == NULL ||
        !text_take_number(&digits, 4, 4, &day) || !text_begins(digits, SLICE(" ")))
        return LEVEL_NOT_SAID;
    return text.data[0] == 'E' || text.data[0] == 'F' ? LEVEL_ERROR : LEVEL_BELOW_ERROR;
}

// The first level that stands in a head.
static enum frame_level level_of(struct slice head) {
    for (size_t at = 0; at < head.size; at++) {
        if (at > 0 && isalnum((unsigned char)head.data[at - 1]))
            continue;
        struct slice rest = text_from(head, at);
        size_t size = word_size(rest);
        struct slice word = {rest.data, size};
        enum frame_level level = size == 1 ? glog_level(rest) : LEVEL_NOT_SAID;
        if (level != LEVEL_NOT_SAID)
            return level;
        level = size > 1 && is_set_off(head, at, size) ? level_of_word(word) : LEVEL_NOT_SAID;
        if (level != LEVEL_NOT_SAID)
            return level;
    }
    return LEVEL_NOT_SAID;
}

// -- heads without a level ------------------------------------------------------------------------

static bool has_date(struct slice head) {
    int digits = 0, colons = 0;
    for (size_t i = 0; i < head.size; i++) {
        digits += text_is_digit(head.data[i]);
        colons += i > 0 && head.data[i] == ':' && text_is_digit(head.data[i - 1]);
    }
    return digits >= 6 && colons >= 2;
}

// A word that names who speaks: "trainer:" behind a date, "worker_3:", "rank 3".
static bool is_name(struct slice rest, size_t size, bool dated) {
    static const char *const numbered[] = {"rank", "worker", "process", "node", "trainer", NULL};
    struct slice word = {rest.data, size};
    char behind = size < rest.size ? rest.data[size] : ' ';
    bool has_digit = false;
    for (size_t i = 0; i < size; i++)
        has_digit = has_digit || text_is_digit(word.data[i]);
    if (is_word((struct slice){word.data, word_size(word)}, numbered) &&
        (has_digit || (size + 1 < rest.size && text_is_digit(rest.data[size + 1]))))
        return true;
    return behind == ':' && (dated || has_digit);
}

// Whether the head is made of times, brackets and names alone.
static bool is_bare(struct slice head) {
    enum { BRACKET_MAX = 80 };
    bool dated = has_date(head);
    while (head.size > 0) {
        if (head.data[0] == '[' || head.data[0] == '(') {
            struct slice inside = text_until(head, head.data[0] == '[' ? ']' : ')');
            if (inside.size == head.size || inside.size > BRACKET_MAX)
                return false;
            head = text_from(head, inside.size + 1);
            continue;
        }
        size_t size = 0;
        while (size < head.size && (isalnum((unsigned char)head.data[size]) ||
                                    (size > 0 && memchr("_-.", head.data[size], 3) != NULL)))
            size++;
        bool is_time = size > 0 && text_is_digit(head.data[0]);
        if (size > 0 && !is_time && !is_name(head, size, dated))
            return false;
        head = text_from(head, size > 0 ? size : 1);
    }
    return true;
}

// Takes "with", "due to" and marks off the end.
static struct slice without_joint(struct slice front) {
    static const struct slice joints[] = {
        {" with", 5}, {" due to", 7}, {" because of", 11}, {" by", 3}, {" on", 3}};
    for (bool again = true; again;) {
        again = false;
        while (front.size > 0 && memchr(" :-|\t", front.data[front.size - 1], 5) != NULL)
            front.size--;
        for (size_t i = 0; i < COUNT(joints); i++)
            if (front.size >= joints[i].size && memcmp(front.data + front.size - joints[i].size,
                                                       joints[i].data, joints[i].size) == 0) {
                front.size -= joints[i].size;
                again = true;
            }
    }
    return front;
}

static bool ends_with(struct slice text, struct slice end) {
    return text.size >= end.size &&
           memcmp(text.data + text.size - end.size, end.data, end.size) == 0;
}

static bool has_word(struct slice text, const char *const *words) {
    for (size_t at = 0; at < text.size; at++) {
        size_t size = word_size(text_from(text, at));
        if (size > 0 && is_word((struct slice){text.data + at, size}, words))
            return true;
        at += size;
    }
    return false;
}

// "Uncaught exception: ", "training failed: ", "step 501 crashed with ": what failed is a process,
// or its work, and not something that it tried.
static bool says_end(struct slice front) {
    static const struct slice always[] = {
        {"ncaught exception", 17}, {"nhandled exception", 18}, {"nhandled error", 14},
        {"atal error", 10},        {"atal exception", 14},
    };
    static const struct slice ends[] = {
        {" failed", 7}, {" crashed", 8}, {" died", 5}, {" aborted", 8}, {" terminated", 11}};
    static const char *const who[] = {"training",   "train",     "run",     "job",   "worker",
                                      "rank",       "process",   "trainer", "main",  "step",
                                      "epoch",      "iteration", "task",    "trial", "script",
                                      "experiment", "program",   NULL};
    bool says = false;
    front = without_joint(front);
    for (size_t i = 0; i < COUNT(always); i++)
        if (ends_with(front, always[i]))
            return true;
    for (size_t i = 0; i < COUNT(ends); i++)
        says = says || ends_with(front, ends[i]);
    return says && has_word(front, who);
}

// -- the whole ------------------------------------------------------------------------------------

// What is tried again: unless the line says that this was the last time.
bool logged_is_tried_again(struct slice line) {
    static const struct slice again[] = {
        {"retry", 5},          {"Retry", 5},         {"attempt ", 8},         {"Attempt ", 8},
        {"try again", 9},      {"trying again", 12}, {"recovered", 9},        {"recovering", 10},
        {"non-fatal", 9},      {"nonfatal", 8},      {"not fatal", 9},        {"fallback", 8},
        {"using default", 13}, {"handled ", 8},      {"will be ignored", 15},
    };
    static const struct slice last[] = {
        {"giving up", 9},      {"gave up", 7},          {"exhausted", 9}, {"not retry", 9},
        {"no retry", 8},       {"no more retries", 15}, {"exceeded", 8},  {"last attempt", 12},
        {"without retry", 13}, {"nhandled", 8},
    };
    return logged_goes_on(line) ||
           (words_any(line, again, COUNT(again)) && !words_any(line, last, COUNT(last)));
}

bool logged_raised(struct slice line, enum frame_level level, struct raised *raised,
                   struct slice *front) {
    if (level == LEVEL_BELOW_ERROR || !traceback_raised_within(line, raised, front))
        return false;
    enum frame_level said = level_of(*front);
    if (said != LEVEL_NOT_SAID)
        level = said;
    bool counts =
        level == LEVEL_ERROR || (level == LEVEL_NOT_SAID && (is_bare(*front) || says_end(*front)));
    return counts && !logged_is_tried_again(line);
}
