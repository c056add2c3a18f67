// SPDX-License-Identifier: Apache-2.0
// First bars, which have no words around their numbers; then words that count, from left to right.
//
// C and not rows: a row is found by six letters in a row, and "step " or "| 3/9 [" has none that
// most lines of a log do not have; and a row gives an event for each line.
#include "receivers/decode/log/progress.h"

#include "base/text/cut.h"
#include "base/text/find.h"

#include <stdio.h>

enum { NUMBER_DIGITS_MAX = 15, SEPARATORS_MAX = 16, EPOCH_DIGITS_MAX = 12 };

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static bool has(struct slice text, const char *word) {
    return text_position(text, slice_of(word)) != NULL;
}

// -- the newest state of a line -------------------------------------------------------------------

struct slice progress_state(struct slice text) {
    text = text_trim(text);
    const char *at = text.size == 0 ? NULL : memrchr(text.data, '\r', text.size);
    return at == NULL ? text : text_from(text, (size_t)(at - text.data) + 1);
}

// Behind what colours and moves on a terminal: "\x1b[31m".
static size_t skip_escape(struct slice text, size_t at) {
    at++;
    if (at < text.size && text.data[at] == '[')
        for (at++; at < text.size && !is_letter(text.data[at]);)
            at++;
    return at + 1;
}

static struct slice clean(struct slice text, char room[PROGRESS_TEXT_MAX]) {
    size_t size = 0;
    for (size_t at = 0; at < text.size && size < PROGRESS_TEXT_MAX;) {
        char c = text.data[at];
        if (c == '\x1b') {
            at = skip_escape(text, at);
            continue;
        }
        if ((unsigned char)c >= ' ' || c == '\t')
            room[size++] = c;
        at++;
    }
    return (struct slice){room, size};
}

// -- numbers --------------------------------------------------------------------------------------

// "4120", "50,000", "4119.0"; false, and the text as it was, for anything else.
static bool take_count(struct slice *text, int64_t *count) {
    struct slice rest = *text, part;
    uint64_t number, more;
    if (!text_take_number(&rest, 1, NUMBER_DIGITS_MAX, &number))
        return false;
    for (part = rest;
         number < UINT64_C(1000000000000) && text_skip_char(&part, ',') &&
         text_take_number(&part, 3, 3, &more) && (part.size == 0 || !text_is_digit(part.data[0]));
         rest = part)
        number = number * 1000 + more;
    if (text_skip(&rest, SLICE(".0")) && rest.size > 0 && text_is_digit(rest.data[0]))
        return false;
    *count = (int64_t)number;
    *text = rest;
    return true;
}

// "4.12k", as bars shorten numbers; digits that they leave out are zeros.
static bool take_scaled(struct slice *text, int64_t *count) {
    static const char units[] = "kMG";
    struct slice rest = *text;
    uint64_t number, tenths = 0;
    int64_t scale = 1000, tenth = 1;
    if (!text_take_number(&rest, 1, 6, &number))
        return false;
    if (text_skip_char(&rest, '.')) {
        struct slice before = rest;
        if (!text_take_number(&rest, 1, 3, &tenths))
            return false;
        for (size_t i = rest.size; i < before.size; i++)
            tenth *= 10;
    }
    const char *unit = rest.size == 0 ? NULL : memchr(units, rest.data[0], sizeof units - 1);
    if (unit == NULL)
        return take_count(text, count);
    for (const char *at = units; at < unit; at++)
        scale *= 1000;
    *count = (int64_t)number * scale + (int64_t)tenths * (scale / tenth);
    *text = text_from(rest, 1);
    return true;
}

// "/ 5004", "of 5004".
static bool take_total(struct slice *text, int64_t *total) {
    struct slice rest = *text;
    text_skip_blanks(&rest);
    if (!text_skip_char(&rest, '/') && !text_skip(&rest, SLICE("of ")))
        return false;
    text_skip_blanks(&rest);
    if (!take_count(&rest, total))
        return false;
    *text = rest;
    return true;
}

// What stands behind a number must not make another thing of it: "12%", "5s", "3rd".
static bool ends_number(struct slice rest) {
    return rest.size == 0 || !(is_letter(rest.data[0]) || rest.data[0] == '%' ||
                               rest.data[0] == '_' || text_is_digit(rest.data[0]));
}

// "003" as "3", "0.3368" as it is.
static bool take_epoch(struct slice *text, struct progress *progress) {
    struct slice rest = *text;
    uint64_t whole, part;
    if (!text_take_number(&rest, 1, 6, &whole))
        return false;
    struct slice behind = rest;
    if (text_skip_char(&behind, '.') && text_take_number(&behind, 1, 18, &part)) {
        struct slice shown = {rest.data, (size_t)(behind.data - rest.data)};
        shown.size = shown.size > 5 ? 5 : shown.size;
        snprintf(progress->epoch, sizeof progress->epoch, "%u%.*s", (unsigned)whole,
                 (int)shown.size, shown.data);
        rest = behind;
    } else {
        snprintf(progress->epoch, sizeof progress->epoch, "%u", (unsigned)whole);
    }
    if (!ends_number(rest)) {
        progress->epoch[0] = '\0';
        return false;
    }
    *text = rest;
    return true;
}

// -- what is no training --------------------------------------------------------------------------

// Whether the word stands there in either case, not within another one.
static bool has_word(struct slice text, const char *word) {
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= text.size; i++)
        if ((i == 0 || !is_letter(text.data[i - 1])) && strncasecmp(text.data + i, word, size) == 0)
            return true;
    return false;
}

static bool is_evaluation(struct slice before) {
    static const char *const WORDS[] = {"valid",   "eval",   "sanity", "predict",
                                        "testing", "(test)", "infer"};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (has_word(before, WORDS[i]))
            return true;
    return false;
}

// A bar that says of what it is, and it is not of training.
static bool is_other_bar(struct slice before) {
    static const char *const OURS[] = {"train", "epoch", "step", "iter", "episode"};
    static const char *const OTHERS[] = {
        "load",   "download", "fetch",  "map",     "token",  "filter",  "test", "generat", "skip",
        "captur", "compil",   "upload", "convert", "saving", "dataset", "cach", "resolv",  "shard"};
    for (size_t i = 0; i < sizeof OURS / sizeof *OURS; i++)
        if (has_word(before, OURS[i]))
            return false;
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
        if (has_word(before, OTHERS[i]))
            return true;
    return false;
}

// Of a fault, which names the step at which it came.
static bool tells_fault(struct slice text) {
    static const char *const WORDS[] = {"ERROR",  "FATAL",     "CRITICAL",
                                        "Error:", "Exception", "ailed"};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (has(text, WORDS[i]))
            return true;
    return false;
}

// -- bars -----------------------------------------------------------------------------------------

// "120/1000 [", "3/? [".
static bool take_of(struct slice *text, struct progress *progress) {
    struct slice rest = *text;
    text_skip_blanks(&rest);
    if (!take_scaled(&rest, &progress->step) || !text_skip_char(&rest, '/'))
        return false;
    progress->total = -1;
    if (!text_skip_char(&rest, '?') && !take_scaled(&rest, &progress->total))
        return false;
    *text = rest;
    return true;
}

// "…| 120/1000 [01:05<07:58, 1.84it/s]": the last of them.
static bool find_tqdm(struct slice text, struct progress *progress, struct slice *before,
                      struct slice *behind) {
    bool found = false;
    for (size_t at = 0; at + 4 < text.size; at++) {
        struct slice rest = text_from(text, at + 1);
        struct progress read = {.step = -1};
        if (text.data[at] != '|' || !take_of(&rest, &read) || !text_skip(&rest, SLICE(" [")))
            continue;
        struct slice head = {text.data, at};
        head.size = text_until(head, '|').size;
        found = true;
        progress->step = read.step;
        progress->total = read.total;
        *before = head;
        *behind = rest;
    }
    return found;
}

// "120/1000 [==>...] - ETA: 7:58", "1000/1000 - 545s - loss: 2.3", "120/1000 ━━ 7:58".
static bool find_keras(struct slice text, struct progress *progress, struct slice *behind) {
    struct slice rest = text;
    if (!take_of(&rest, progress) || !text_skip_char(&rest, ' ') || progress->total < 0)
        return false;
    *behind = rest;
    if (text_begins(rest, SLICE("[=")) || text_begins(rest, SLICE("[>")) ||
        text_begins(rest, SLICE("[.")) || text_begins(rest, SLICE("\xe2\x94")))
        return true;
    uint64_t seconds;
    return text_skip(&rest, SLICE("- ")) && text_take_number(&rest, 1, 9, &seconds) &&
           text_skip_char(&rest, 's');
}

// "12% ━─────────── 120/1000 1.8it/s 1:05<7:58"
static bool find_lines(struct slice text, struct progress *progress, struct slice *before,
                       struct slice *behind) {
    struct slice rest;
    if (!text_find(text, SLICE("% \xe2\x94"), &rest))
        return false;
    *before = (struct slice){text.data, (size_t)(rest.data - text.data) - 4};
    while (rest.size > 0 && (unsigned char)rest.data[0] >= 0x80)
        rest = text_from(rest, 1);
    *behind = rest;
    return take_of(behind, progress);
}

// "120it [01:05,  1.84it/s]": a bar that does not know its end.
static bool find_endless(struct slice text, struct progress *progress, struct slice *before,
                         struct slice *behind) {
    struct slice rest;
    if (!text_find(text, SLICE("it ["), &rest) || rest.size == 0 || !text_is_digit(rest.data[0]))
        return false;
    size_t end = (size_t)(rest.data - text.data) - 4, begin = end;
    while (begin > 0 && text_is_digit(text.data[begin - 1]))
        begin--;
    if (begin > 0 && !is_blank(text.data[begin - 1]) && text.data[begin - 1] != ':')
        return false;
    struct slice digits = {text.data + begin, end - begin};
    *before = (struct slice){text.data, begin};
    *behind = rest;
    return take_count(&digits, &progress->step);
}

// "Progress on:train 4.12kit/50.0kit rate:2.0it/s"
static bool find_logged(struct slice text, struct progress *progress, struct slice *behind) {
    struct slice rest;
    if (!text_find(text, SLICE("Progress on:train "), &rest) ||
        !take_scaled(&rest, &progress->step) || !text_skip(&rest, SLICE("it/")) ||
        !take_scaled(&rest, &progress->total))
        return false;
    *behind = rest;
    return true;
}

// What the words in front of a bar say: "Epoch 3:", "Episode [1/20]:", "1|120|Loss: 1.2:" of
// torchtune, "      3/100      2.31G" of Ultralytics.
static void read_heading(struct slice text, struct progress *progress) {
    static const char *const WORDS[] = {"epoch", "episode"};
    struct slice rest = text;
    int64_t number;
    text_skip_blanks(&rest);
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        for (size_t at = 0; at + strlen(WORDS[i]) < text.size; at++) {
            struct slice word = text_from(text, at);
            if (strncasecmp(word.data, WORDS[i], strlen(WORDS[i])) != 0)
                continue;
            word = text_from(word, strlen(WORDS[i]));
            while (word.size > 0 && memchr(" :[=\t", word.data[0], 5) != NULL)
                word = text_from(word, 1);
            if (take_epoch(&word, progress))
                return;
        }
    if (take_epoch(&rest, progress) && !(text_skip_char(&rest, '/') && take_count(&rest, &number) &&
                                         rest.size > 0 && is_blank(rest.data[0])))
        progress->epoch[0] = '\0';
}

// "1|120|Loss: 1.234:  12%|": epoch and step stand in front, the bar counts within the epoch.
static bool read_torchtune(struct slice text, struct progress *progress) {
    struct slice rest = text;
    struct progress read = {.step = -1};
    int64_t step;
    text_skip_blanks(&rest);
    if (!take_epoch(&rest, &read) || !text_skip_char(&rest, '|') || !take_count(&rest, &step) ||
        !text_skip(&rest, SLICE("|Loss")))
        return false;
    memcpy(progress->epoch, read.epoch, sizeof read.epoch);
    progress->step = step;
    progress->total = -1;
    return true;
}

// Leaves numbers of what is none behind.
static bool find_bar(struct slice text, struct progress *progress, struct slice *before,
                     struct slice *behind) {
    return find_tqdm(text, progress, before, behind) ||
           find_lines(text, progress, before, behind) || find_keras(text, progress, behind) ||
           find_endless(text, progress, before, behind) || find_logged(text, progress, behind);
}

static bool read_bar(struct slice text, struct progress *progress) {
    struct slice before = {text.data, 0}, behind = {NULL, 0};
    struct progress found = *progress;
    if (!find_bar(text, &found, &before, &behind))
        return false;
    *progress = found;
    struct slice rate = text_until(behind, ']');
    progress->is_bar = true;
    if (is_evaluation(before) || is_other_bar(before) || has(rate, "B/s") ||
        has(rate, "examples/s")) {
        progress->step = -1;
        return true;
    }
    if (read_torchtune(text, progress))
        return true;
    read_heading(before, progress);
    progress->of_epoch = progress->epoch[0] != '\0' && !has(behind, "global_step=");
    return true;
}

// -- words that count -----------------------------------------------------------------------------

enum counter { COUNTER_EPOCH, COUNTER_BATCH, COUNTER_ITERATION, COUNTER_STEP, COUNTER_GLOBAL };

// Longer ones first, where one begins with another.
static const struct {
    struct slice word;
    enum counter counter;
} COUNTERS[] = {{{"iteration", 9}, COUNTER_ITERATION}, {{"iter", 4}, COUNTER_ITERATION},
                {{"global_step", 11}, COUNTER_GLOBAL}, {{"global step", 11}, COUNTER_GLOBAL},
                {{"num_updates", 11}, COUNTER_GLOBAL}, {{"steps", 5}, COUNTER_STEP},
                {{"step", 4}, COUNTER_STEP},           {{"epoch_num", 9}, COUNTER_EPOCH},
                {{"epoch", 5}, COUNTER_EPOCH},         {{"batch", 5}, COUNTER_BATCH},
                {{"train", 5}, COUNTER_EPOCH}};

enum { COUNTER_COUNT = sizeof COUNTERS / sizeof *COUNTERS };

// In front of a counter may stand the head of a line, other fields, and few words: what a sentence
// says of a step is no counter.
static bool may_stand_behind(struct slice before) {
    static const char *const WORDS[] = {"INFO",     "DEBUG",     "NOTICE", "info",     "completed",
                                        "training", "train",     "global", "finished", "Beginning",
                                        "Training", "Completed", "Train",  "Global"};
    size_t end = before.size;
    if (end > 0 && before.data[end - 1] == '-')
        return false; // an option of a command
    if (end > 1 && before.data[end - 1] == '/' && is_letter(before.data[end - 2]))
        return false; // "0.5 s/step", a path
    while (end > 0 && (is_blank(before.data[end - 1]) || before.data[end - 1] == '"' ||
                       before.data[end - 1] == '\''))
        end--;
    if (end == 0 || !is_letter(before.data[end - 1]))
        return end == 0 || before.data[end - 1] != '(';
    size_t begin = end;
    while (begin > 0 && is_letter(before.data[begin - 1]))
        begin--;
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (slice_equal((struct slice){before.data + begin, end - begin}, slice_of(WORDS[i])))
            return true;
    return false;
}

static bool begins_word(struct slice text, size_t at) {
    return at == 0 || !(is_letter(text.data[at - 1]) || text_is_digit(text.data[at - 1]) ||
                        text.data[at - 1] == '_');
}

// Between a counter's name and its number. `bracket`: whether a list begins there.
static bool skip_separators(struct slice *text, bool *bracket) {
    struct slice rest = *text;
    text_skip(&rest, SLICE("(train)"));
    size_t count = 0;
    *bracket = false;
    while (rest.size > 0 && count < SEPARATORS_MAX &&
           memchr(" \t:=[#`'\"", rest.data[0], 9) != NULL) {
        *bracket = *bracket || rest.data[0] == '[';
        rest = text_from(rest, 1);
        count++;
    }
    if (count == 0)
        return false;
    *text = rest;
    return true;
}

// Behind an epoch: "] [ 120/5004", ":    120 / 5004".
static void take_batch(struct slice *text, struct progress *progress) {
    struct slice rest = *text;
    int64_t step, total;
    bool parted = false;
    while (rest.size > 0 && memchr(" \t:][", rest.data[0], 5) != NULL) {
        parted = parted || rest.data[0] == '[' || rest.data[0] == ':';
        rest = text_from(rest, 1);
    }
    if (!parted || !take_count(&rest, &step) || !take_total(&rest, &total))
        return;
    progress->step = step;
    progress->total = total;
    progress->of_epoch = true;
    *text = rest;
}

// "[3, 120]": of an epoch, and in it.
static bool take_pair(struct slice *text, struct progress *progress) {
    struct slice rest = *text;
    int64_t step;
    if (!take_epoch(&rest, progress) || !text_skip(&rest, SLICE(", ")) ||
        !take_count(&rest, &step) || rest.size == 0 ||
        (rest.data[0] != ']' && rest.data[0] != ')')) {
        progress->epoch[0] = '\0';
        return false;
    }
    progress->step = step;
    progress->of_epoch = true;
    *text = rest;
    return true;
}

struct counting {
    struct progress *progress;
    enum counter best; // of whose step is known
    bool known;
};

static bool read_epoch(struct counting *counting, struct slice word, struct slice *text) {
    struct slice rest = *text;
    int64_t epochs;
    if (counting->progress->epoch[0] != '\0' || !take_epoch(&rest, counting->progress))
        return false;
    if (slice_equal(word, SLICE("train"))) {
        struct slice list = rest;
        text_skip_blanks(&list);
        if (list.size == 0 || list.data[0] != '[') {
            counting->progress->epoch[0] = '\0';
            return false;
        }
    }
    take_total(&rest, &epochs);
    if (!counting->known) {
        take_batch(&rest, counting->progress);
        counting->known = counting->progress->step >= 0;
        counting->best = COUNTER_BATCH;
    }
    *text = rest;
    return true;
}

static bool read_step(struct counting *counting, enum counter counter, bool is_plural,
                      struct slice *text) {
    struct progress *progress = counting->progress;
    struct slice rest = *text;
    int64_t step, total = -1;
    if (!take_count(&rest, &step) || !ends_number(rest))
        return false;
    if (is_plural && !text_begins(rest, SLICE(" loss")))
        return false;
    take_total(&rest, &total);
    *text = rest;
    if (counting->known && counter <= counting->best)
        return true;
    progress->step = step;
    progress->total =
        total >= 0 || counter == COUNTER_STEP || progress->of_epoch ? total : progress->total;
    progress->of_epoch = counter == COUNTER_BATCH && progress->epoch[0] != '\0';
    counting->known = true;
    counting->best = counter;
    return true;
}

// "step 12.0": with a blank alone in front of it, a job's step as Slurm names it.
static bool is_step_of_job(struct slice text, size_t name) {
    struct slice number = text_from(text, name);
    text_skip_blanks(&number);
    uint64_t job;
    return number.data != text.data + name &&
           text_take_number(&number, 1, NUMBER_DIGITS_MAX, &job) && text_skip_char(&number, '.') &&
           number.size > 0 && text_is_digit(number.data[0]);
}

// Reads the counter whose name begins the text. -> whether there was one; `text` is behind it.
static bool read_counter(struct counting *counting, struct slice *text) {
    for (size_t i = 0; i < COUNTER_COUNT; i++) {
        struct slice word = COUNTERS[i].word, rest = *text;
        bool bracket;
        if (rest.size <= word.size || (rest.data[0] | 0x20) != word.data[0] ||
            memcmp(rest.data + 1, word.data + 1, word.size - 1) != 0)
            continue;
        rest = text_from(rest, word.size);
        enum counter counter = COUNTERS[i].counter;
        if (counter == COUNTER_BATCH && rest.data[0] != '=' && counting->progress->epoch[0] == '\0')
            continue;
        bool is_plural = slice_equal(word, SLICE("steps"));
        if ((is_plural && text->data[0] != 's') || !skip_separators(&rest, &bracket) ||
            (counter == COUNTER_STEP && is_step_of_job(*text, word.size)))
            continue;
        bool read = (counter == COUNTER_STEP && bracket && take_pair(&rest, counting->progress)) ||
                    (counter == COUNTER_EPOCH ? read_epoch(counting, word, &rest)
                                              : read_step(counting, counter, is_plural, &rest));
        if (!read)
            continue;
        counting->known = counting->known || counting->progress->step >= 0;
        *text = rest;
        return true;
    }
    return false;
}

// "DLL 2026-01-05 10:11:12.345678 - (3, 120) loss : 2.3"
static bool read_dllogger(struct slice text, struct progress *progress) {
    struct slice rest;
    return text_begins(text, SLICE("DLL ")) && text_find(text, SLICE(" - ("), &rest) &&
           take_pair(&rest, progress);
}

// Of a document that is printed in several lines: what its numbers are of stands elsewhere.
static bool is_member(struct slice text) {
    text_skip_blanks(&text);
    return text.size > 0 && (text.data[0] == '"' || text.data[0] == '\'');
}

static bool read_words(struct slice text, struct progress *progress) {
    struct counting counting = {.progress = progress};
    bool found = read_dllogger(text, progress);
    if (is_member(text))
        return false;
    for (size_t at = 0; at < text.size && !found;) {
        static const char firsts[] = "igsnebtIGSNEBT";
        struct slice rest = text_from(text, at), before = {text.data, at};
        bool any = memchr(firsts, text.data[at], sizeof firsts - 1) != NULL &&
                   begins_word(text, at) && may_stand_behind(before) &&
                   read_counter(&counting, &rest);
        if (any && is_evaluation(before))
            return false;
        at = any ? text.size - rest.size : at + 1;
    }
    if (progress->step < 0 && progress->epoch[0] == '\0')
        return false;
    return !has(text, "'eval_") && !has(text, "\"eval_") && !has(text, "(val)") &&
           !has(text, "(test)") && !tells_fault(text);
}

// -------------------------------------------------------------------------------------------------

bool progress_read(struct slice text, struct progress *progress) {
    char room[PROGRESS_TEXT_MAX];
    struct slice state = clean(progress_state(text), room);
    *progress = (struct progress){.step = -1, .total = -1};
    return read_bar(state, progress) ? progress->step >= 0 : read_words(state, progress);
}

// "0.34" and "12" in thousandths.
static int64_t epoch_of(const struct progress *progress) {
    struct slice rest = slice_of(progress->epoch);
    uint64_t whole = 0, part = 0;
    int64_t scale = 1000;
    if (!text_take_number(&rest, 1, 9, &whole))
        return -1;
    if (!text_skip_char(&rest, '.') || rest.size > 3)
        rest.size = rest.size > 3 ? 3 : 0;
    for (size_t i = 0; i < rest.size; i++)
        scale /= 10;
    if (rest.size > 0)
        text_take_number(&rest, 1, 3, &part);
    return (int64_t)whole * 1000 + (int64_t)part * scale;
}

bool progress_is_further(const struct progress *before, const struct progress *now) {
    int64_t was = epoch_of(before), is = epoch_of(now);
    bool comparable = was >= 0 && is >= 0 && (before->of_epoch || now->of_epoch || now->step < 0);
    if (comparable && was != is)
        return is > was;
    return now->step >= 0 ? now->step > before->step : is > was;
}
