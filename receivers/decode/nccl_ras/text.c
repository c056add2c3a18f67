// SPDX-License-Identifier: Apache-2.0
// The text that RAS answers with. Its tables are of no interest; what is wrong stands below, in
// sections with a heading: INCOMPLETE or DEAD for processes, "#0-0 (51c0ffee00112233) MISMATCH" for
// a communicator. A section is gathered and read line by line; two places in it are remembered:
// which operation its lines speak of, and how far a number of ranks has come. O(section).
#include "receivers/decode/nccl_ras/nccl_ras.h"

#include "base/text/cut.h"
#include "base/text/log_time.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/line/reading.h"
#include "receivers/decode/nccl_ras/who.h"

enum { DIGITS_MAX = 18, HASH_MAX = 16, LINE_MAX_SIZE = 256 };
enum { MARK_TOPIC, MARK_RANKS }; // of block_walk, each a place in the text

static enum read_result cut_off(struct reading *reading) {
    return reading_refuse(reading, DECODE_TRUNCATED, "the report of RAS breaks off in this line");
}

static struct slice left_trimmed(struct slice text) {
    text_skip_blanks(&text);
    return text;
}

// "#0-0 (51c0ffee00112233) MISMATCH": the digits between the brackets, and what follows.
static bool read_heading(struct slice line, struct slice *hash, struct slice *word) {
    uint64_t group, number;
    if (!text_skip_char(&line, '#') || !text_take_number(&line, 1, 9, &group) ||
        !text_skip_char(&line, '-') || !text_take_number(&line, 1, 9, &number) ||
        !text_skip(&line, SLICE(" (")))
        return false;
    *hash = text_until(line, ')');
    for (size_t i = 0; i < hash->size; i++)
        if (memchr("0123456789abcdef", hash->data[i], 16) == NULL)
            return false;
    if (hash->size == 0 || hash->size > HASH_MAX)
        return false;
    line = text_from(line, hash->size);
    if (!text_skip(&line, SLICE(") ")))
        return false;
    *word = text_trim(line);
    return true;
}

static bool is_process_heading(struct slice line) {
    line = text_trim(line);
    return slice_equal(line, SLICE("INCOMPLETE")) || slice_equal(line, SLICE("DEAD"));
}

// -- lines of a section ---------------------------------------------------------------------------

// "14 ranks have launched …", "2 ranks reported …".
static bool is_rank_count(struct slice line) {
    uint64_t count;
    return text_take_number(&line, 1, 9, &count) && text_begins(line, SLICE(" ranks "));
}

static bool is_topic(struct slice line) {
    return text_begins(line, SLICE("Communicator ranks have different ")) ||
           text_begins(line, SLICE("Initialization error")) ||
           text_begins(line, SLICE("Asynchronous error"));
}

// Whether the line is a word, a number and one of these.
static bool is_numbered(struct slice line, struct slice word, const struct slice *behind,
                        size_t count) {
    uint64_t number;
    if (!text_skip(&line, word) || !text_take_number(&line, 1, 9, &number))
        return false;
    for (size_t i = 0; i < count; i++)
        if (text_begins(line, behind[i]))
            return true;
    return false;
}

// Others may write in between.
static bool belongs(struct slice line) {
    static const struct slice none = {"", 0};
    static const struct slice counts[] = {{" ranks ", 7}, {" job process", 12}};
    static const struct slice processes[] = {{" on node ", 9}};
    static const struct slice ranks[] = {{" -- ", 4},
                                         {" has launched ", 14},
                                         {" has not launched ", 18},
                                         {" has status ", 12},
                                         {" reported ", 10}};
    return is_topic(line) || text_begins(line, SLICE("The missing rank")) ||
           text_begins(line, SLICE("Missing communicator data ")) ||
           text_begins(line, SLICE("[could not find information ")) ||
           is_numbered(line, none, counts, 2) ||
           is_numbered(line, SLICE("Process "), processes, 1) ||
           is_numbered(line, SLICE("Rank "), ranks, sizeof ranks / sizeof *ranks);
}

static enum read_result read_report(const struct frame *frame, struct slice message,
                                    struct reading *reading) {
    struct slice hash, word;
    (void)frame;
    (void)reading;
    if (message.size == 0 || message.size > LINE_MAX_SIZE ||
        memchr("#ID", message.data[0], 3) == NULL)
        return READ_NOT;
    return is_process_heading(message) || read_heading(message, &hash, &word) ? READ_BEGIN
                                                                              : READ_NOT;
}

static enum block_step more_report(struct slice so_far, uint32_t count, const struct frame *frame,
                                   struct slice message) {
    (void)so_far;
    (void)count;
    (void)frame;
    struct slice hash, word;
    bool is_next = is_process_heading(message) || read_heading(message, &hash, &word) ||
                   text_begins(message, SLICE("Warnings"));
    if (is_next)
        return BLOCK_OVER;
    return belongs(left_trimmed(message)) ? BLOCK_TAKE : BLOCK_PASS;
}

// -- readings -------------------------------------------------------------------------------------

struct section {
    struct slice text;
    struct slice heading;
    struct slice hash; // of the communicator; empty: it is about processes
    struct slice topic, ranks;
    bool is_dead;
    bool is_incomplete;
};

// At most LINE_MAX_SIZE of it: each line of the section looks there.
static struct slice line_at(struct slice text, size_t at) {
    struct slice line = {text.data, 0};
    if (at == 0)
        return line;
    line = text_from(text, at);
    if (line.size > LINE_MAX_SIZE)
        line.size = LINE_MAX_SIZE;
    return left_trimmed(text_until(line, '\n'));
}

static void look_at(struct section *section, struct slice text, const struct block_walk *walk) {
    struct slice word = {NULL, 0};
    *section = (struct section){.text = text, .heading = text_until(text, '\n')};
    if (read_heading(section->heading, &section->hash, &word))
        section->is_incomplete = text_begins(word, SLICE("INCOMPLETE"));
    else
        section->is_dead = text_begins(section->heading, SLICE("DEAD"));
    section->topic = line_at(text, walk->marks[MARK_TOPIC]);
    section->ranks = line_at(text, walk->marks[MARK_RANKS]);
}

static void begin(const struct section *section, struct reading *reading,
                  enum observation_kind kind) {
    reading_begin(reading, kind);
    reading->no_rank = reading->no_host = true;
    if (section->hash.size == 0)
        return;
    char *text = arena_take(reading->arena, HASH_MAX + 2);
    memcpy(text, "0x", 2);
    memcpy(text + 2, section->hash.data, section->hash.size);
    reading_text(reading, FACT_COMMUNICATOR, (struct slice){text, section->hash.size + 2});
}

// "Communicator ranks have different AllReduce operation counts": the operation; empty for
// "different collective operation counts", "different status" and errors.
static struct slice operation_of(struct slice topic) {
    struct slice none = {NULL, 0};
    if (!text_skip(&topic, SLICE("Communicator ranks have different ")))
        return none;
    struct slice word = text_until(topic, ' ');
    topic = text_from(topic, word.size);
    bool is_one =
        text_begins(topic, SLICE(" operation counts")) && !slice_equal(word, SLICE("collective"));
    return is_one ? word : none;
}

// "launched up to operation 6650", "not launched any operations"; false: neither is said.
static bool launched(struct slice line, int64_t *count) {
    uint64_t operation;
    struct slice behind;
    if (text_find(line, SLICE(" launched up to operation "), &behind)) {
        if (!text_take_number(&behind, 1, DIGITS_MAX, &operation))
            return false;
        *count = (int64_t)operation;
        return true;
    }
    *count = 0;
    return text_find(line, SLICE(" not launched any operations"), &behind);
}

static struct slice word_behind(struct slice line, struct slice phrase) {
    struct slice behind = {NULL, 0};
    if (!text_find(line, phrase, &behind))
        return behind;
    const char *dashes = memmem(behind.data, behind.size, " --", 3);
    if (dashes != NULL)
        behind.size = (size_t)(dashes - behind.data);
    return text_trim(behind);
}

// What the line, or the line above that it counts to, says of a rank.
static void set_state(struct reading *reading, const struct section *section, struct slice line) {
    int64_t count;
    bool says = launched(line, &count);
    if (!says && section->ranks.size > 0)
        says = launched(section->ranks, &count);
    struct slice operation = operation_of(section->topic);
    if (operation.size > 0)
        reading_text(reading, FACT_OP, operation);
    if (says)
        reading_number(reading, FACT_COUNT, count);
    struct slice status = word_behind(line, SLICE(" has status "));
    if (status.size == 0)
        status = word_behind(section->ranks, SLICE(" have status "));
    if (status.size > 0)
        reading_text(reading, FACT_STATUS, status);
    struct slice error = word_behind(line, SLICE(" reported "));
    if (error.size == 0)
        error = word_behind(section->ranks, SLICE(" reported "));
    if (error.size > 0)
        reading_text(reading, FACT_ERROR, error);
}

// "Rank 3 has launched up to operation 6649 -- GPU 3 managed by …", "Rank 3 -- GPU 3 managed by …".
static enum read_result read_rank(const struct section *section, struct slice line,
                                  struct reading *reading) {
    uint64_t rank;
    struct slice number = text_from(line, 5), who;
    if (!text_take_number(&number, 1, 9, &rank) || !text_find(number, SLICE(" -- "), &who))
        return cut_off(reading);
    begin(section, reading,
          section->is_incomplete ? OBSERVATION_RAS_MISSING : OBSERVATION_RAS_RANK);
    reading_number(reading, FACT_GROUP_RANK, (int64_t)rank);
    if (!section->is_incomplete)
        set_state(reading, section, line);
    return who_gpu(who, reading) == WHO_CUT ? cut_off(reading) : READ_EVENT;
}

// "Process 90012 on node 10.20.0.8 managing GPU 5".
static enum read_result read_process(const struct section *section, struct slice line,
                                     struct reading *reading) {
    begin(section, reading, OBSERVATION_RAS_MISSING);
    if (section->is_dead)
        reading_yes_no(reading, FACT_CONSIDERED_DEAD, true);
    return who_process(text_from(line, 8), reading) == WHO_CUT ? cut_off(reading) : READ_EVENT;
}

// "The missing rank: 13", "The missing ranks: 13,14".
static enum read_result read_missing(const struct section *section, struct slice line,
                                     struct reading *reading) {
    uint64_t rank;
    struct slice ranks;
    if (!text_find(line, SLICE(": "), &ranks))
        return cut_off(reading);
    ranks = text_trim(ranks);
    begin(section, reading, OBSERVATION_RAS_MISSING);
    if (text_number(ranks, 9, &rank))
        reading_number(reading, FACT_GROUP_RANK, (int64_t)rank);
    else
        reading_text(reading, FACT_TASKS, ranks);
    return ranks.size == 0 ? cut_off(reading) : READ_EVENT;
}

// The line that says how the ranks differ, and the next one when that says how far most of them
// are.
static enum read_result read_mismatch(const struct section *section, struct slice line,
                                      struct slice *rest, struct block_walk *walk,
                                      struct reading *reading) {
    int64_t count;
    struct slice operation = operation_of(line), after = *rest;
    struct slice most = left_trimmed(text_take_line(&after));
    bool whole = operation.size > 0 || text_find(line, SLICE(" status"), &operation) ||
                 text_find(line, SLICE(" operation counts"), &operation);
    if (!whole)
        return cut_off(reading);
    begin(section, reading, OBSERVATION_RAS_MISMATCH);
    operation = operation_of(line);
    if (operation.size > 0)
        reading_text(reading, FACT_OP, operation);
    if (!is_rank_count(most))
        return READ_EVENT;
    walk->marks[MARK_RANKS] = section->text.size - rest->size;
    if (launched(most, &count))
        reading_number(reading, FACT_COUNT, count);
    *rest = after;
    return READ_EVENT;
}

static enum read_result read_line(const struct section *section, struct slice line,
                                  struct slice *rest, struct block_walk *walk,
                                  struct reading *reading) {
    size_t at = (size_t)(line.data - section->text.data);
    if (text_begins(line, SLICE("Rank ")))
        return section->hash.size > 0 ? read_rank(section, line, reading) : READ_OTHER;
    if (text_begins(line, SLICE("Process ")))
        return section->hash.size == 0 ? read_process(section, line, reading) : READ_OTHER;
    if (text_begins(line, SLICE("The missing rank")))
        return section->hash.size > 0 ? read_missing(section, line, reading) : READ_OTHER;
    if (is_topic(line)) {
        walk->marks[MARK_TOPIC] = at;
        walk->marks[MARK_RANKS] = 0;
        return line.data[0] == 'C' ? read_mismatch(section, line, rest, walk, reading) : READ_OTHER;
    }
    if (is_rank_count(line))
        walk->marks[MARK_RANKS] = at;
    return READ_OTHER;
}

static enum read_result next_report(struct slice text, struct block_walk *walk, bool cut,
                                    const struct frame *frame, struct reading *reading) {
    (void)cut;
    (void)frame;
    struct section section;
    struct slice rest = text_from(text, walk->at);
    struct slice line = left_trimmed(text_take_line(&rest));
    enum read_result result = READ_OTHER;
    look_at(&section, text, walk);
    if (walk->at > 0)
        result = read_line(&section, line, &rest, walk, reading);
    walk->at = text.size - rest.size;
    return result;
}

const struct line_reader READER_RAS_REPORT = {
    .name = "ras_report", .read = read_report, .more = more_report, .next = next_report};

// -- MONITOR --------------------------------------------------------------------------------------

// "[2026-03-14 01:50:17] PEER_DEAD: Process 90012 on node …"; what stands in brackets may have been
// taken for the line's own time before.
static enum read_result read_monitor(const struct frame *frame, struct slice message,
                                     struct reading *reading) {
    (void)frame;
    struct slice text = message;
    uint64_t time_ns = 0;
    if (text_skip_char(&text, '[') &&
        (!log_time_iso(&text, &time_ns) || !text_skip(&text, SLICE("] "))))
        return READ_NOT;
    bool is_dead = text_skip(&text, SLICE("PEER_DEAD: "));
    if (!is_dead && !text_skip(&text, SLICE("PEER_NEW: ")))
        return READ_NOT;
    reading_begin(reading, is_dead ? OBSERVATION_RAS_PEER_DEAD : OBSERVATION_RAS_PEER_NEW);
    reading->no_rank = reading->no_host = true;
    reading->time_ns = time_ns;
    reading->local_time = time_ns != 0;
    if (text_skip(&text, SLICE("Process ")))
        return who_process(text, reading) == WHO_CUT ? cut_off(reading) : READ_EVENT;
    // A peer of which only the address is known: "10.20.0.8<41234>".
    struct slice address = text_until_any(text, "< \t\r");
    if (address.size == 0 || text_begins(SLICE("Process "), address))
        return cut_off(reading);
    reading->host = address;
    return READ_EVENT;
}

const struct line_reader READER_RAS_MONITOR = {.name = "ras_monitor", .read = read_monitor};
