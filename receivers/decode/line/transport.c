// SPDX-License-Identifier: Apache-2.0
// The forms in front of a line, by its first character. Each either takes what it knows or leaves
// the text as it is.
#include "receivers/decode/line/transport.h"

#include "base/text/cut.h"
#include "base/text/find.h"
#include "base/text/log_date.h"
#include "base/text/log_time.h"
#include "pipeline/model/node_event.h"
#include "receivers/decode/line/year.h"

#include <ctype.h>

enum {
    NUMBER_DIGITS_MAX = 18,
    HOST_MAX = 255,
    WORD_MAX = 64,
    HEAD_MAX = 256, // of a kmsg record
    UNIX_DIGITS = 10,
};
static const uint64_t SECOND_NS = 1000000000;
static const uint64_t MINUTE_NS = 60 * UINT64_C(1000000000);

static bool peel_transport(struct peel *peel);

static bool take_number(struct slice *text, uint64_t *value) {
    return text_take_number(text, 1, NUMBER_DIGITS_MAX, value);
}

// Up to the next blank or the end; longer than `max`: empty.
static struct slice take_word(struct slice *text, size_t max) {
    struct slice front = {text->data, text->size < max + 1 ? text->size : max + 1};
    size_t size = text_until(front, ' ').size;
    return text_take(text, size > max ? 0 : size);
}

static bool is_kernel_form(const struct peel *peel) {
    return peel->form != FORM_PROGRAM && !peel->writer;
}

static void set_kernel(struct peel *peel) {
    peel->kernel = true;
    if (peel->frame->origin == ORIGIN_UNKNOWN)
        peel->frame->origin = ORIGIN_KERNEL;
    if (peel->tells == TELLS_NOTHING)
        peel->tells = TELLS_NO_DATE;
}

// -- times --------------------------------------------------------------------------------------

static void set_tells(struct peel *peel, enum peel_tells tells) {
    if (tells > peel->tells)
        peel->tells = tells;
}

static void set_fault(struct peel *peel, enum decode_category fault, const char *detail) {
    if (peel->tells >= TELLS_FAULT)
        return;
    peel->tells = TELLS_FAULT;
    peel->frame->time_fault = fault;
    peel->frame->time_detail = detail;
}

static void set_time(struct peel *peel, uint64_t time_ns, uint64_t slack_ns) {
    if (peel->tells == TELLS_TIME)
        return;
    peel->tells = TELLS_TIME;
    peel->frame->time_ns = time_ns;
    peel->frame->slack_ns = slack_ns;
    peel->frame->time_fault = DECODE_OK;
    peel->frame->time_detail = NULL;
}

static enum log_date_result date_unix(struct peel *peel, const struct log_date *date,
                                      uint64_t *time_ns) {
    const struct line_clock *clock = peel->clock;
    enum log_date_result result =
        log_date_unix(date, clock->zone, year_limit(clock->near_ns, clock->observed_ns), time_ns);
    if (result == LOG_DATE_OK && date->year != 0)
        peel_year(peel, *time_ns);
    return result;
}

static void set_date(struct peel *peel, const struct log_date *date, uint64_t slack_ns) {
    uint64_t time_ns;
    switch (date_unix(peel, date, &time_ns)) {
    case LOG_DATE_OK:
        if (peel->tells != TELLS_TIME)
            peel->frame->local_time = !date->has_offset;
        set_time(peel, time_ns, slack_ns);
        break;
    case LOG_DATE_NONE:
        set_fault(peel, DECODE_BAD_TIMESTAMP, "the date in front of it does not exist");
        break;
    case LOG_DATE_UNKNOWN_MONTH:
        set_fault(peel, DECODE_UNKNOWN_MONTH,
                  "the word where the month stands is no month in a language that is known: set "
                  "LC_TIME=C for what writes the log");
        break;
    case LOG_DATE_NO_YEAR:
        set_fault(peel, DECODE_MISSING_TIMESTAMP,
                  "a date without a year, and the age of the input is not known: use "
                  "`journalctl -k -o json`");
        break;
    }
}

static void set_uptime(struct peel *peel, uint64_t since_boot_ns) {
    peel->has_uptime = true;
    peel->frame->boot_us = since_boot_ns / 1000;
    set_tells(peel, TELLS_BOOT);
    set_kernel(peel);
}

// Keeps account of boots: the kernel begins at zero. What is known of the last boot is nothing that
// is known of those before it, nor of one that nobody could know of.
static void note_uptime(struct line_clock *clock, uint64_t since_boot_us, uint64_t time_ns) {
    static const uint64_t PAIR_DIFFERS_NS = UINT64_C(2000000000);
    if (since_boot_us == 0 && clock->last_us > 0) {
        clock->paired_ns = 0;
        if (clock->boots_ahead > 0)
            clock->boots_ahead--;
        else if (!clock->is_file)
            clock->boot_ns = 0;
    }
    clock->last_us = since_boot_us;
    uint64_t since_boot_ns = since_boot_us * 1000;
    if (time_ns == 0 || time_ns <= since_boot_ns || clock->paired_ns != 0)
        return;
    // That of a line is good to the second; what was said of the boot may be better.
    uint64_t boot_ns = time_ns - since_boot_ns;
    bool same =
        boot_ns < clock->boot_ns + PAIR_DIFFERS_NS && clock->boot_ns < boot_ns + PAIR_DIFFERS_NS;
    clock->paired_ns = same ? clock->boot_ns : boot_ns;
}

// … of which no line need say when it was written: its own time will do.
static bool is_whole_file(const struct line_clock *clock) {
    return clock->is_file && clock->ends;
}

void transport_settle_time(struct peel *peel) {
    struct frame *frame = peel->frame;
    struct line_clock *clock = peel->clock;
    bool wall = peel->tells == TELLS_TIME;
    if (peel->has_uptime) {
        note_uptime(clock, frame->boot_us, wall && frame->slack_ns == 0 ? frame->time_ns : 0);
        uint64_t boot_ns = clock->boots_ahead == 0 ? clock->boot_ns : 0;
        if (clock->paired_ns != 0)
            boot_ns = clock->paired_ns;
        uint64_t time_ns;
        if (peel->tells == TELLS_BOOT && boot_ns != 0 &&
            !__builtin_add_overflow(boot_ns, frame->boot_us * 1000, &time_ns) &&
            time_ns <= INT64_MAX)
            set_time(peel, time_ns, 0);
        if (wall)
            frame->boot_us = 0;
    }
    if (peel->tells == TELLS_BOOT && clock->boots_ahead > 0)
        set_fault(peel, DECODE_MISSING_TIMESTAMP,
                  "only the time since a boot before the last one, and it is not known when that "
                  "was: use `journalctl -k -o json`, which has all boots");
    else if (peel->tells == TELLS_BOOT)
        set_fault(peel, DECODE_MISSING_TIMESTAMP,
                  "only the time since boot, and it is not known when that was: set boot_time, or "
                  "use `dmesg --time-format iso` or `journalctl -k -o json`");
    else if (is_whole_file(clock))
        return;
    else if (peel->tells == TELLS_DISTANCE)
        set_fault(peel, DECODE_MISSING_TIMESTAMP,
                  "only how long after the line before it came: use `dmesg --time-format iso` or "
                  "`journalctl -k -o json`");
    else if (peel->tells == TELLS_NO_DATE ||
             (peel->tells == TELLS_NOTHING && peel->form == FORM_KERNEL))
        set_fault(peel, DECODE_MISSING_TIMESTAMP,
                  "no time in front of the kernel's text: use `dmesg --time-format iso` or "
                  "`journalctl -k -o json`");
}

// -- the kernel's own buffer ----------------------------------------------------------------------

// Facility 0 is the kernel's.
static void set_priority(struct peel *peel, uint64_t priority) {
    if (priority >> 3 != 0)
        peel->frame->origin = ORIGIN_PROGRAM;
}

bool transport_take_kmsg(struct slice *text, struct kmsg_head *head) {
    struct slice rest = {text->data, text->size < HEAD_MAX ? text->size : HEAD_MAX};
    uint64_t sequence;
    if (!take_number(&rest, &head->priority) || !text_skip_char(&rest, ',') ||
        !take_number(&rest, &sequence) || !text_skip_char(&rest, ',') ||
        !take_number(&rest, &head->usec) || !text_skip_char(&rest, ',') ||
        head->usec > (uint64_t)INT64_MAX / 1000)
        return false;
    struct slice flags = text_until(rest, ';');
    if (flags.size == rest.size)
        return false;
    head->continues = memchr(flags.data, '+', flags.size) != NULL && flags.data[0] == '+';
    text_take(text, (size_t)(flags.data - text->data) + flags.size + 1);
    return true;
}

static int hex_digit(char c) {
    if (text_is_digit(c))
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

struct slice transport_unescape(struct slice text, struct arena *arena) {
    if (text_position(text, SLICE("\\x")) == NULL)
        return text;
    char *out = arena_take(arena, text.size);
    size_t size = 0;
    for (size_t at = 0; at < text.size;) {
        int high = -1, low = -1;
        if (text.data[at] == '\\' && text.size - at >= 4 && text.data[at + 1] == 'x') {
            high = hex_digit(text.data[at + 2]);
            low = hex_digit(text.data[at + 3]);
        }
        bool escape = high >= 0 && low >= 0;
        out[size++] = escape ? (char)(high * 16 + low) : text.data[at];
        at += escape ? 4 : 1;
    }
    return (struct slice){out, size};
}

static bool take_kmsg(struct peel *peel) {
    struct kmsg_head head;
    if (!transport_take_kmsg(&peel->text, &head))
        return false;
    set_priority(peel, head.priority);
    set_uptime(peel, head.usec * 1000);
    return true;
}

// "<3>", and RFC 5424 behind it.
static bool take_word_of_header(struct slice *text, struct slice *word) {
    *word = take_word(text, HOST_MAX);
    return word->size > 0 && text_skip_char(text, ' ');
}

// "1 TIME HOST APP PROCID MSGID SD text"
static bool take_rfc5424(struct peel *peel, struct slice text) {
    struct log_date date;
    struct slice host, program, word;
    if (!text_skip(&text, SLICE("1 ")))
        return false;
    bool dated = log_date_take_iso(&text, &date);
    if ((!dated && !text_skip_char(&text, '-')) || !text_skip_char(&text, ' ') ||
        !take_word_of_header(&text, &host) || !take_word_of_header(&text, &program) ||
        !take_word_of_header(&text, &word) || !take_word_of_header(&text, &word))
        return false;
    if (dated)
        set_date(peel, &date, 0);
    else
        set_fault(peel, DECODE_MISSING_TIMESTAMP,
                  "the syslog line says that its time is not known");
    if (!slice_equal(host, SLICE("-")))
        peel->frame->host = host;
    peel->frame->program = program;
    peel->frame->origin = slice_equal(program, SLICE("kernel")) ? ORIGIN_KERNEL : ORIGIN_PROGRAM;
    peel->kernel = peel->frame->origin == ORIGIN_KERNEL;
    // Structured data may hold blanks: its end is the bracket before a blank.
    bool brackets = text_begins(text, SLICE("["));
    if (!text_find(text, brackets ? SLICE("] ") : SLICE(" "), &text))
        text = text_from(text, text.size);
    text_skip(&text, SLICE("\xef\xbb\xbf"));
    peel->text = text;
    peel_blank(peel);
    return true;
}

static bool take_priority(struct peel *peel) {
    struct slice rest = peel->text;
    uint64_t priority;
    if (!text_skip_char(&rest, '<') || !text_take_number(&rest, 1, 3, &priority) ||
        !text_skip_char(&rest, '>'))
        return false;
    if (take_rfc5424(peel, rest))
        return true;
    set_priority(peel, priority);
    peel->text = rest;
    return true;
}

static struct slice take_lower_letters(struct slice *text, size_t max) {
    size_t size = 0;
    while (size < text->size && size < max &&
           ((text->data[size] >= 'a' && text->data[size] <= 'z') ||
            (size > 0 && text_is_digit(text->data[size]))))
        size++;
    return text_take(text, size);
}

static bool is_level(struct slice word) {
    static const struct slice levels[] = {{"emerg", 5}, {"alert", 5},  {"crit", 4}, {"err", 3},
                                          {"warn", 4},  {"notice", 6}, {"info", 4}, {"debug", 5}};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        if (slice_equal(word, levels[i]))
            return true;
    return false;
}

// "kern  :err   : ", of dmesg --decode.
static bool take_level_words(struct peel *peel) {
    struct slice rest = peel->text;
    struct slice facility = take_lower_letters(&rest, 8);
    text_skip_blanks(&rest);
    if (facility.size < 3 || !text_skip_char(&rest, ':') || !is_level(take_lower_letters(&rest, 6)))
        return false;
    text_skip_blanks(&rest);
    if (!text_skip(&rest, SLICE(": ")))
        return false;
    set_kernel(peel);
    if (!slice_equal(facility, SLICE("kern")))
        peel->frame->origin = ORIGIN_PROGRAM;
    peel->text = rest;
    return true;
}

// " <    0.499999>", which says nothing more.
static void skip_delta(struct slice *text) {
    struct slice rest = *text;
    uint64_t ignored;
    text_skip_blanks(&rest);
    if (text_skip_char(&rest, '<') && log_time_seconds(&rest, &ignored) &&
        text_skip_char(&rest, '>'))
        *text = rest;
}

// -- host and program -----------------------------------------------------------------------------

// Of a word that a log library writes behind its time.
static bool is_level_word(struct slice word) {
    static const struct slice words[] = {{"INFO", 4},  {"WARN", 4},   {"WARNING", 7},
                                         {"ERROR", 5}, {"DEBUG", 5},  {"TRACE", 5},
                                         {"FATAL", 5}, {"NOTICE", 6}, {"CRITICAL", 8}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (slice_equal(word, words[i]))
            return true;
    return false;
}

enum tag_want {
    TAG_KERNEL,   // nothing but the kernel's
    TAG_NUMBERED, // or "program[12]:"
    TAG_LIKELY,   // or "program:", where the word before it looks like the name of a host
    TAG_ANY,      // or "program:"
};

// Nothing that the name of a host or an address cannot hold ("{1}[Hardware" is none).
static bool may_be_host(struct slice word) {
    for (size_t i = 0; i < word.size; i++)
        if (!isalnum((unsigned char)word.data[i]) && (word.data[i] & 0x80) == 0 &&
            memchr("._-:%", word.data[i], 5) == NULL)
            return false;
    return true;
}

static bool looks_like_host(struct slice word) {
    for (size_t i = 0; i < word.size; i++)
        if (text_is_digit(word.data[i]) || word.data[i] == '-' || word.data[i] == '.')
            return true;
    return false;
}

// "program[12] ", as relays write it whose sender wrote no colon.
static bool is_numbered_tag(struct slice tag) {
    struct slice number = text_from(tag, text_until(tag, '[').size);
    uint64_t pid;
    return number.size > 0 && number.size < tag.size && text_skip_char(&number, '[') &&
           take_number(&number, &pid) && slice_equal(number, SLICE("]")) &&
           !text_is_digit(tag.data[0]);
}

// "node kernel: ", "node program[12]: ", "node program[12] ".
static bool take_host_and_tag(struct peel *peel, struct slice *text, enum tag_want want) {
    struct slice rest = *text;
    text_skip_blanks(&rest);
    struct slice host = take_word(&rest, HOST_MAX);
    if (host.size == 0 || !text_skip_char(&rest, ' ') || host.data[host.size - 1] == ':' ||
        is_level_word(host) || !may_be_host(host))
        return false;
    struct slice tag = take_word(&rest, WORD_MAX);
    bool bare = want >= TAG_LIKELY && is_numbered_tag(tag);
    if (tag.size < 2 || (tag.data[tag.size - 1] != ':' && !bare))
        return false;
    tag.size -= !bare;
    bool kernel = slice_equal(tag, SLICE("kernel"));
    bool numbered = tag.data[tag.size - 1] == ']';
    pci_address address;
    if (!kernel && (want == TAG_KERNEL || (want == TAG_NUMBERED && !numbered) ||
                    (want == TAG_LIKELY && !numbered && !looks_like_host(host)) ||
                    text_is_digit(tag.data[0]) || pci_parse(tag, &address)))
        return false;
    peel->frame->host = host;
    peel->frame->program = text_until(tag, '[');
    peel->kernel = kernel;
    // A program passed the kernel's line on: its date is that of passing on.
    if (kernel && peel->forwarded) {
        peel->frame->origin = ORIGIN_UNKNOWN;
        peel->tells = TELLS_NOTHING;
    }
    peel->forwarded = !kernel;
    if (!kernel || peel->frame->origin == ORIGIN_UNKNOWN)
        peel->frame->origin = kernel ? ORIGIN_KERNEL : ORIGIN_PROGRAM;
    text_skip_char(&rest, ' ');
    *text = rest;
    return true;
}

// -- in brackets ----------------------------------------------------------------------------------

// "[ 1234.567890]", "[ 1234.5 <    0.4>]"; of a log that is the kernel's also "[123]".
static bool take_uptime(struct peel *peel) {
    struct slice rest = peel->text;
    uint64_t since_boot_ns, seconds;
    if (!text_skip_char(&rest, '['))
        return false;
    if (!log_time_seconds(&rest, &since_boot_ns)) {
        text_skip_blanks(&rest);
        if (peel->form != FORM_KERNEL || !text_take_number(&rest, 1, 9, &seconds))
            return false;
        since_boot_ns = seconds * SECOND_NS;
    }
    skip_delta(&rest);
    if (!text_skip_char(&rest, ']'))
        return false;
    set_uptime(peel, since_boot_ns);
    peel->text = rest;
    return true;
}

// "[Fri Jan 31 09:15:04 2026]", with a delta perhaps. Launchers write such a time, too, and no
// blank behind it.
static bool take_ctime(struct peel *peel) {
    struct slice rest = peel->text;
    struct log_date date;
    if (!text_skip_char(&rest, '[') || !log_date_take_ctime(&rest, &date))
        return false;
    skip_delta(&rest);
    if (!text_skip_char(&rest, ']') || (rest.size > 0 && rest.data[0] != ' '))
        return false;
    set_date(peel, &date, 0);
    set_kernel(peel);
    peel->text = rest;
    return true;
}

// "[<    0.499999>]"
static bool take_distance(struct peel *peel) {
    struct slice rest = peel->text;
    uint64_t ignored;
    if (!text_skip(&rest, SLICE("[<")) || !log_time_seconds(&rest, &ignored) ||
        !text_skip(&rest, SLICE(">]")))
        return false;
    set_tells(peel, TELLS_DISTANCE);
    set_kernel(peel);
    peel->text = rest;
    return true;
}

// "[Jan31 09:15]"
static bool take_minute(struct peel *peel) {
    struct slice rest = peel->text;
    struct log_date date;
    if (!text_skip_char(&rest, '[') || !log_date_take_minute(&rest, &date) ||
        !text_skip_char(&rest, ']'))
        return false;
    set_date(peel, &date, MINUTE_NS);
    set_kernel(peel);
    struct line_clock *clock = peel->clock;
    clock->anchored = date_unix(peel, &date, &clock->anchor_ns) == LOG_DATE_OK;
    clock->since_ns = 0;
    peel->text = rest;
    return true;
}

// "[  +0.499999]"
static bool take_since_minute(struct peel *peel) {
    struct slice rest = peel->text;
    uint64_t since_ns;
    if (!text_skip_char(&rest, '['))
        return false;
    text_skip_blanks(&rest);
    if (!text_skip_char(&rest, '+') || !log_time_seconds(&rest, &since_ns) ||
        !text_skip_char(&rest, ']'))
        return false;
    struct line_clock *clock = peel->clock;
    uint64_t time_ns;
    clock->anchored = clock->anchored &&
                      !__builtin_add_overflow(clock->since_ns, since_ns, &clock->since_ns) &&
                      !__builtin_add_overflow(clock->anchor_ns, clock->since_ns, &time_ns) &&
                      time_ns <= INT64_MAX;
    if (clock->anchored)
        set_time(peel, time_ns, MINUTE_NS);
    else if (!is_whole_file(clock))
        set_fault(peel, DECODE_MISSING_TIMESTAMP,
                  "only how long after the line before it came, and no line before names a minute: "
                  "use `dmesg --time-format iso` or `journalctl -k -o json`");
    set_kernel(peel);
    peel->text = rest;
    return true;
}

// "[  T123]", "[ C1]": which thread or processor wrote it.
static bool take_caller(struct peel *peel) {
    struct slice rest = peel->text;
    uint64_t number;
    if (!peel->kernel || !text_skip_char(&rest, '['))
        return false;
    text_skip_blanks(&rest);
    if ((!text_skip_char(&rest, 'T') && !text_skip_char(&rest, 'C')) ||
        !take_number(&rest, &number) || !text_skip_char(&rest, ']'))
        return false;
    peel->text = rest;
    return true;
}

static bool take_brackets(struct peel *peel) {
    if (take_caller(peel)) {
        text_skip_char(&peel->text, ' ');
        return true;
    }
    if (!is_kernel_form(peel) || (!take_uptime(peel) && !take_since_minute(peel) &&
                                  !take_distance(peel) && !take_ctime(peel) && !take_minute(peel)))
        return false;
    if (!take_host_and_tag(peel, &peel->text, TAG_NUMBERED))
        text_skip_char(&peel->text, ' '); // one blank is the transport's
    return true;
}

// -- dates in front -------------------------------------------------------------------------------

// "stderr F ", behind the time that a runtime of containers writes.
static bool take_cri(struct peel *peel, struct slice *text) {
    struct slice rest = *text;
    bool error = text_skip(&rest, SLICE("stderr "));
    if (!error && !text_skip(&rest, SLICE("stdout ")))
        return false;
    bool more = text_begins(rest, SLICE("P"));
    if (!text_skip_char(&rest, more ? 'P' : 'F'))
        return false;
    if (text_begins(rest, SLICE(":"))) // further tags
        take_word(&rest, WORD_MAX);
    if (rest.size > 0 && !text_skip_char(&rest, ' '))
        return false;
    peel->part = more ? PART_MORE : PART_WHOLE;
    peel->stream = error ? 2 : 1;
    peel_named(peel, error ? SLICE("stderr") : SLICE("stdout"), "stream");
    *text = rest;
    return true;
}

// Behind a date that a machine writes.
static void take_behind_iso(struct peel *peel, struct slice text, bool kernel_comma) {
    // Behind what a container's runtime says stands the program's own text.
    enum tag_want want = peel->frame->has_writer ? TAG_KERNEL : TAG_LIKELY;
    bool said = text_skip_char(&text, ' ') &&
                (take_cri(peel, &text) || (!kernel_comma && take_host_and_tag(peel, &text, want)));
    if (!said && kernel_comma)
        set_kernel(peel);
    peel->text = text;
}

// "2026-01-31T09:15:04.5Z": a blank instead of the T is a program's own, unless the kernel follows.
static bool take_iso(struct peel *peel) {
    struct slice rest = peel->text, behind;
    struct log_date date;
    if (!log_date_take_iso(&rest, &date) || rest.size == 0 ||
        (rest.data[0] != ' ' && rest.data[0] != '['))
        return false;
    size_t size = peel->text.size - rest.size;
    bool comma = memchr(peel->text.data, ',', size) != NULL;
    bool machine = peel->text.data[10] == 'T';
    behind = rest;
    if (!machine && peel->form != FORM_KERNEL && !take_host_and_tag(peel, &behind, TAG_KERNEL))
        return false;
    if (machine || behind.data == rest.data)
        take_behind_iso(peel, rest, comma && machine && is_kernel_form(peel));
    else
        peel->text = behind;
    set_date(peel, &date, 0);
    return true;
}

static bool take_seconds(struct slice *text, uint64_t *time_ns) {
    uint64_t seconds, fraction = 0;
    if (!text_take_number(text, UNIX_DIGITS, UNIX_DIGITS, &seconds) ||
        seconds > (uint64_t)INT64_MAX / SECOND_NS - 1)
        return false;
    if (text_skip_char(text, '.'))
        for (uint64_t unit = SECOND_NS / 10; text->size > 0 && text_is_digit(text->data[0]);
             unit /= 10) {
            fraction += unit * (uint64_t)(text->data[0] - '0');
            *text = text_from(*text, 1);
        }
    *time_ns = seconds * SECOND_NS + fraction;
    return true;
}

// Unix time in milliseconds, microseconds or nanoseconds, which the number of digits tells.
static bool read_digits(struct slice digits, uint64_t *time_ns) {
    uint64_t number, unit = digits.size == 13 ? 1000000 : digits.size == 16 ? 1000 : 1;
    return (unit > 1 || digits.size == 19) && text_number(digits, 19, &number) &&
           !__builtin_mul_overflow(number, unit, time_ns) && *time_ns <= INT64_MAX;
}

bool transport_set_time(struct peel *peel, struct slice time) {
    struct log_date date;
    uint64_t time_ns;
    struct slice rest = time;
    if (read_digits(time, &time_ns) || (take_seconds(&rest, &time_ns) && rest.size == 0)) {
        peel_year(peel, time_ns);
        set_time(peel, time_ns, 0);
        return true;
    }
    rest = time;
    if (!log_date_take_iso(&rest, &date) && !log_date_take_ctime(&rest, &date) &&
        !log_date_take_month_first(&rest, &date) && !log_date_take_syslog(&rest, &date))
        return false;
    set_date(peel, &date, 0);
    return true;
}

// "1769850904.123456 node kernel: "
static bool take_unix(struct peel *peel) {
    struct slice rest = peel->text;
    uint64_t seconds, micros;
    if (!text_take_number(&rest, UNIX_DIGITS, UNIX_DIGITS, &seconds) ||
        !text_skip_char(&rest, '.') || !text_take_number(&rest, 6, 6, &micros) ||
        seconds > (uint64_t)INT64_MAX / SECOND_NS - 1 || !text_skip_char(&rest, ' ') ||
        !take_host_and_tag(peel, &rest, TAG_ANY))
        return false;
    peel_year(peel, seconds * SECOND_NS);
    set_time(peel, seconds * SECOND_NS + micros * 1000, 0);
    peel->text = rest;
    return true;
}

// "Jan 31 09:15:04 node program: "; without host and program it is not the kernel's either.
static bool take_syslog(struct peel *peel) {
    struct slice rest = peel->text;
    struct log_date date;
    if (!log_date_take_syslog(&rest, &date) || !text_skip_char(&rest, ' '))
        return false;
    bool kernel = text_begins(rest, SLICE("kernel: ")); // of `journalctl --no-hostname`
    bool said = kernel || take_host_and_tag(peel, &rest, TAG_ANY);
    if (!said && date.month == 0)
        return false;
    set_date(peel, &date, 0);
    if (!said)
        peel->frame->origin = ORIGIN_PROGRAM;
    peel->text = rest;
    return true;
}

// "Fri 2026-01-31 09:15:04 UTC node program: ", of journalctl -o short-full. Other words for zones
// than UTC mean different things in different places: the input's zone is taken.
static bool take_full(struct peel *peel) {
    struct slice rest = peel->text;
    struct log_date date;
    struct slice day = take_word(&rest, 16);
    if (day.size < 2 || !text_skip_char(&rest, ' ') || !log_date_take_iso(&rest, &date) ||
        !text_skip_char(&rest, ' '))
        return false;
    struct slice zone = take_word(&rest, 8);
    if (zone.size == 0 || !text_skip_char(&rest, ' ') || !take_host_and_tag(peel, &rest, TAG_ANY))
        return false;
    date.has_offset = slice_equal(zone, SLICE("UTC")) || slice_equal(zone, SLICE("GMT"));
    set_date(peel, &date, 0);
    peel->text = rest;
    return true;
}

// "kernel: " with nothing before it.
static bool take_kernel_word(struct peel *peel) {
    if (!is_kernel_form(peel) || !text_skip(&peel->text, SLICE("kernel: ")))
        return false;
    set_kernel(peel);
    peel->frame->program = SLICE("kernel");
    return true;
}

// "> ", of what a mail or a comment quotes.
static bool take_quote(struct peel *peel) {
    struct slice rest = text_from(peel->text, 1);
    if (rest.size > 0 && !text_skip_char(&rest, ' '))
        return false;
    peel->text = rest;
    return true;
}

static bool is_of_path(char c) {
    return isalnum((unsigned char)c) || (c != '\0' && memchr("._-/+@", c, 6) != NULL);
}

// "/var/log/kern.log:", "kern.log:812:", of grep over several files: only in front of what a
// transport writes.
static bool take_file_name(struct peel *peel) {
    struct slice rest = peel->text;
    uint64_t line;
    size_t size = 0;
    bool is_path = false;
    while (size < rest.size && size < HOST_MAX && is_of_path(rest.data[size])) {
        is_path = is_path || rest.data[size] == '.' || rest.data[size] == '/';
        size++;
    }
    rest = text_from(rest, size);
    if (!is_path || !text_skip_char(&rest, ':'))
        return false;
    struct slice numbered = rest;
    if (take_number(&numbered, &line) && text_skip_char(&numbered, ':'))
        rest = numbered;
    struct slice whole = peel->text;
    peel->text = rest;
    if (rest.size > 0 && rest.data[0] != ' ' && peel_transport(peel))
        return true;
    peel->text = whole;
    return false;
}

// -- all ------------------------------------------------------------------------------------------

static bool peel_transport(struct peel *peel) {
    char first = peel->text.data[0];
    if (first == '[')
        return take_brackets(peel);
    if (peel->writer) // a process's own words from here on
        return false;
    if (first == '<')
        return take_priority(peel);
    if (text_is_digit(first))
        return (is_kernel_form(peel) && take_kmsg(peel)) || take_iso(peel) || take_syslog(peel) ||
               take_unix(peel);
    bool letter = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') ||
                  (unsigned char)first >= 0x80;
    return letter && ((is_kernel_form(peel) && take_level_words(peel)) || take_kernel_word(peel) ||
                      take_syslog(peel) || take_full(peel));
}

bool transport_peel(struct peel *peel) {
    char first = peel->text.data[0];
    bool is_front = !peel->writer && peel->tells == TELLS_NOTHING;
    if (first == '>' && is_front)
        return take_quote(peel);
    return peel_transport(peel) ||
           (is_front && (first == '/' || first == '.' || isalpha((unsigned char)first)) &&
            take_file_name(peel));
}

// The last "kernel: " of the text that stands behind a blank; NULL: there is none.
static const char *last_kernel(struct slice text) {
    const char *found = NULL, *at;
    while ((at = text_position(text, SLICE(" kernel: "))) != NULL) {
        found = at;
        text = text_from(text, (size_t)(at - text.data) + 1);
    }
    return found;
}

// Where the word before `at` begins.
static const char *word_before(const char *start, const char *at) {
    const char *from = at;
    while (from > start && at - from < HOST_MAX && from[-1] != ' ')
        from--;
    return from;
}

bool transport_peel_nested(struct peel *peel) {
    enum { WORDS_BACK = 5 };
    struct slice text = peel->text;
    const char *kernel = text.size == 0 ? NULL : last_kernel(text);
    if (kernel == NULL || !is_kernel_form(peel))
        return false;
    const char *host = word_before(text.data, kernel), *from = host;
    struct peel inner = *peel;
    struct frame frame = *peel->frame;
    inner.frame = &frame;
    for (int i = 0; i < WORDS_BACK && from > text.data; i++) {
        from = word_before(text.data, from - 1);
        inner.text = (struct slice){from, text.size - (size_t)(from - text.data)};
        // Inner times are the kernel's, outer ones of whoever passed the line on.
        inner.tells = TELLS_NOTHING;
        frame.origin = ORIGIN_UNKNOWN;
        if (inner.text.size > 0 && *from != ' ' && transport_peel(&inner) && inner.kernel &&
            inner.text.data > kernel) {
            *peel->frame = frame;
            inner.frame = peel->frame;
            *peel = inner;
            return true;
        }
    }
    return false;
}

// The severity that glog writes in front: "[E810 03:04:11.06 ", "E0810 03:04:11.060000 ".
static void skip_severity(struct slice *text) {
    if (text->size > 1 && memchr("EWIF", text->data[0], 4) != NULL && text_is_digit(text->data[1]))
        *text = text_from(*text, 1);
}

// "12: " of srun -l, which may be the number of a line as well: the date stands behind either.
static void skip_label(struct slice *text) {
    enum { DIGITS_MAX = 6 };
    struct slice rest = *text;
    uint64_t number;
    text_skip_blanks(&rest);
    if (text_take_number(&rest, 1, DIGITS_MAX, &number) && text_skip(&rest, SLICE(": ")))
        *text = rest;
}

// The date in front of a line of a log library.
static bool take_program_date(struct slice *text, struct log_date *date) {
    skip_label(text);
    text_skip_char(text, '[');
    struct slice number = *text;
    skip_severity(text);
    if (text->size < number.size)
        return log_date_take_glog(text, date);
    return log_date_take_iso(text, date) || log_date_take_month_first(text, date) ||
           log_date_take_month_year(text, date);
}

bool transport_read_program_time(struct slice message, const struct time_zone *zone,
                                 uint64_t observed_ns, uint64_t *time_ns) {
    struct log_date date;
    return take_program_date(&message, &date) &&
           log_date_unix(&date, zone, observed_ns, time_ns) == LOG_DATE_OK;
}

void transport_program_time(struct peel *peel) {
    struct slice text = peel->text;
    struct log_date date;
    uint64_t time_ns;
    if (peel->tells >= TELLS_FAULT || !take_program_date(&text, &date) ||
        date_unix(peel, &date, &time_ns) != LOG_DATE_OK)
        return;
    // Its zone may be another: never later than the input.
    uint64_t limit_ns = year_limit(peel->clock->near_ns, peel->clock->observed_ns);
    if (date.year == 0 && time_ns > limit_ns)
        time_ns = limit_ns;
    set_time(peel, time_ns, 0);
}

// -- when the machine booted ----------------------------------------------------------------------

// The time since boot that a line says; false: none.
static bool read_uptime(struct slice line, uint64_t *since_boot_ns) {
    struct line_clock clock = {.zone = NULL};
    struct frame frame;
    struct peel peel = {.clock = &clock,
                        .form = FORM_ANY,
                        .frame = &frame,
                        .key = HASH_START,
                        .around = HASH_START,
                        .text = line};
    frame_clear(&frame, line, 0);
    text_skip_blanks(&line);
    if (text_skip(&line, SLICE("\"time\":"))) // of dmesg --json
        return log_time_seconds(&line, since_boot_ns);
    for (int i = 0; i < 4; i++) {
        text_skip_blanks(&peel.text);
        if (peel.has_uptime || peel.text.size == 0 || !transport_peel(&peel))
            break;
    }
    *since_boot_ns = frame.boot_us * 1000;
    return peel.has_uptime;
}

// The line that ends in front of `end`, without its newline.
static struct slice line_before(const char *start, const char *end) {
    if (end > start && end[-1] == '\n')
        end--;
    const char *newline = end == start ? NULL : memrchr(start, '\n', (size_t)(end - start));
    const char *from = newline == NULL ? start : newline + 1;
    return (struct slice){from, (size_t)(end - from)};
}

// Whether the next line before `at` that says how long the machine had run says more than nothing.
static bool ran_before(const char *start, const char *at) {
    enum { LINES_BACK = 4 }; // continuations of the kernel's lines say nothing
    uint64_t since_boot_ns;
    for (int i = 0; i < LINES_BACK && at > start; i++) {
        struct slice line = line_before(start, at);
        if (read_uptime(line, &since_boot_ns))
            return since_boot_ns > 0;
        at = line.data;
    }
    return false;
}

uint32_t transport_boots_in(struct slice tail) {
    uint32_t boots = 0;
    struct slice rest = tail, behind;
    while (text_find(rest, SLICE(" 0.000000"), &behind)) {
        struct slice whole = line_before(tail.data, behind.data);
        rest = text_from(behind, text_until(behind, '\n').size);
        struct slice line = {whole.data, (size_t)(rest.data - whole.data)};
        uint64_t since_boot_ns;
        if (read_uptime(line, &since_boot_ns) && since_boot_ns == 0)
            boots += ran_before(tail.data, line.data);
    }
    return boots;
}

uint64_t transport_boot_of(struct slice tail, uint64_t observed_ns) {
    while (tail.size > 0) {
        const char *newline = memrchr(tail.data, '\n', tail.size);
        size_t from = newline == NULL ? 0 : (size_t)(newline - tail.data) + 1;
        uint64_t since_boot_ns;
        if (read_uptime((struct slice){tail.data + from, tail.size - from}, &since_boot_ns) &&
            since_boot_ns < observed_ns)
            return observed_ns - since_boot_ns;
        tail.size = from == 0 ? 0 : from - 1;
    }
    return 0;
}
