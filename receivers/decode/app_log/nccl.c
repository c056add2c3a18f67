// SPDX-License-Identifier: Apache-2.0
// The numbers of a failed transfer are looked for by the words in front of them, which changed with
// NCCL's versions; their order did not matter to any. A warning that a narrow terminal wrapped is
// gathered as long as what a transfer says last has not come. Linear in the text.
#include "receivers/decode/app_log/nccl.h"

#include "base/text/cut.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/event.h"
#include "receivers/decode/line/reading.h"

#include <assert.h>

enum { PIECES_MAX = 6, DEVICE_NAME_MAX = 64, LAST_WORDS_MAX = 1024 };

// -- who writes ---------------------------------------------------------------------------------

static bool take_last_number(struct slice *text, uint64_t *number) {
    size_t size = 0;
    while (size < text->size && text_is_digit(text->data[text->size - 1 - size]))
        size++;
    struct slice digits = {text->data + text->size - size, size};
    if (size == 0 || !text_number(digits, 10, number))
        return false;
    text->size -= size;
    return true;
}

static bool is_host_char(char c) {
    return text_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_';
}

// "node-07:41207:41390" at the end of the text, NCCL's host, process and thread.
static void read_process(struct slice text, struct reading *reading) {
    uint64_t thread, pid;
    if (!take_last_number(&text, &thread) || text.size == 0 || text.data[--text.size] != ':' ||
        !take_last_number(&text, &pid) || text.size == 0 || text.data[--text.size] != ':')
        return;
    size_t size = 0;
    while (size < text.size && is_host_char(text.data[text.size - 1 - size]))
        size++;
    if (size > 0)
        reading->host = (struct slice){text.data + text.size - size, size};
    reading_number(reading, FACT_PID, (int64_t)pid);
}

// "[3]", the process's GPU, with what stands in front of it; the last one in the text.
static void read_head(struct slice head, struct reading *reading) {
    while (head.size > 0) {
        const char *at = memrchr(head.data, '[', head.size);
        if (at == NULL)
            return;
        struct slice front = {head.data, (size_t)(at - head.data)};
        struct slice number = text_from(head, front.size + 1);
        int64_t device;
        if (words_take_signed(&number, &device) && text_begins(number, SLICE("] "))) {
            if (device >= 0 && device < 4096)
                reading_number(reading, FACT_CUDA_DEVICE, device);
            read_process(text_trim(front), reading);
            return;
        }
        head = front;
    }
}

// -- what they say ------------------------------------------------------------------------------

// "12", "IBV_WC_RETRY_EXC_ERR(12)": only with a byte behind it is it whole.
static int64_t status_of(struct slice text) {
    enum { NAME_MAX_SIZE = 40 };
    int64_t status;
    if (text.size > 0 && !text_is_digit(text.data[0])) {
        struct slice name = text_until_any(text, "( ,");
        if (name.size > NAME_MAX_SIZE)
            return -1;
        text = text_from(text, name.size);
        if (!text_skip_char(&text, '('))
            return -1;
    }
    bool whole = words_take_signed(&text, &status) && text.size > 0;
    return whole && status >= 0 && status < 256 ? status : -1;
}

// "mlx5_3" behind `phrase`; at the end of the text only when it looks whole.
static void read_card(struct slice text, struct slice phrase, struct reading *reading) {
    struct slice card;
    if (!text_find(text, phrase, &card))
        return;
    struct slice name = text_until_any(card, " ,:)\r\n");
    bool last = name.size == card.size;
    if (name.size == 0 || name.size > DEVICE_NAME_MAX)
        return;
    if (last && (!text_is_digit(name.data[name.size - 1]) || slice_equal(name, SLICE("mlx5")) ||
                 slice_equal(name, SLICE("mlx4"))))
        return;
    reading_text(reading, FACT_DEVICE, name);
}

// "Got completion from peer 10.20.0.5<50117> with error 12, …", in all its wordings. False: neither
// peer nor status is whole.
static bool read_completion(struct slice text, struct reading *reading) {
    static const struct slice names[] = {{"with error ", 11}, {"status=", 7}};
    struct slice behind, peer = {NULL, 0};
    int64_t status = -1;
    if (text_find(text, SLICE("from peer "), &behind))
        peer = words_peer(behind);
    for (size_t i = 0; i < sizeof names / sizeof *names && status < 0; i++)
        if (text_find(text, names[i], &behind))
            status = status_of(behind);
    if (peer.data != NULL)
        reading_text(reading, FACT_PEER, peer);
    if (status >= 0)
        reading_number(reading, FACT_WC_STATUS, status);
    read_card(text, SLICE(" hca "), reading);
    return peer.data != NULL || status >= 0;
}

static bool has(struct slice text, struct slice phrase) {
    struct slice behind;
    return text_find(text, phrase, &behind);
}

// The text between the first two quotes; data NULL: they are not there.
static struct slice quoted(struct slice text) {
    struct slice behind;
    if (!text_find(text, SLICE("'"), &behind))
        return (struct slice){NULL, 0};
    struct slice inside = text_until(behind, '\'');
    return inside.size < behind.size ? inside : (struct slice){NULL, 0};
}

// -- warnings -----------------------------------------------------------------------------------

static bool is_completion(struct slice text) {
    return has(text, SLICE("Got completion"));
}

// The last of what such a warning says in every version.
static bool is_whole_completion(struct slice text) {
    struct slice behind;
    int64_t number;
    if (!text_find(text, SLICE("vendor err"), &behind) &&
        !text_find(text, SLICE("vendor_err"), &behind))
        return false;
    return (text_skip_char(&behind, ' ') || text_skip_char(&behind, '=')) &&
           words_take_signed(&behind, &number);
}

static enum read_result completion(struct slice text, struct slice head, bool cut,
                                   struct reading *reading) {
    reading_begin(reading, OBSERVATION_NCCL_NET_ERROR);
    if (!read_completion(text, reading))
        return reading_refuse(reading, DECODE_TRUNCATED,
                              "a warning of NCCL that breaks off before the peer and the error");
    if (cut)
        reading_yes_no(reading, FACT_TRUNCATED, true);
    read_head(head, reading);
    return READ_EVENT;
}

// "NET/IB : mlx5_3:1 Got non-fatal async event: port error(10)": what stands between the colons.
static void read_port(struct slice text, struct reading *reading) {
    struct slice place = text_trim(text);
    uint64_t port;
    struct slice name = text_until_any(place, ": ");
    struct slice number = text_from(place, name.size);
    if (name.size == 0 || name.size > DEVICE_NAME_MAX || !text_skip_char(&number, ':'))
        return;
    reading_text(reading, FACT_DEVICE, name);
    if (text_take_number(&number, 1, 4, &port) && number.size > 0)
        reading_number(reading, FACT_PORT, (int64_t)port);
}

static enum read_result async_event(struct slice text, struct slice event, struct slice head,
                                    struct reading *reading) {
    struct slice place;
    bool port = text_begins(event, SLICE("port error"));
    if (!port && has(text, SLICE("non-fatal")))
        return READ_OTHER;
    reading_begin(reading, port ? OBSERVATION_NCCL_PORT_ERROR : OBSERVATION_NCCL_NET_ERROR);
    if (port)
        reading_yes_no(reading, FACT_VICTIM, false);
    reading_text(reading, FACT_ERROR, text_trim(text_until(event, '(')));
    if (text_find(text, SLICE("NET/IB"), &place)) {
        text_skip_blanks(&place);
        text_skip_char(&place, ':');
        read_port(place, reading);
    }
    read_head(head, reading);
    return READ_EVENT;
}

static enum read_result closed(struct slice peer, struct slice head, struct reading *reading) {
    reading_begin(reading, OBSERVATION_NCCL_PEER_CLOSED);
    reading_yes_no(reading, FACT_VICTIM, true);
    if (peer.data != NULL)
        reading_text(reading, FACT_PEER, peer);
    read_head(head, reading);
    return READ_EVENT;
}

static enum read_result cuda_failure(struct slice text, struct slice head,
                                     struct reading *reading) {
    struct slice error = quoted(text), code = text;
    int64_t number;
    reading_begin(reading, slice_equal(error, SLICE("out of memory")) ? OBSERVATION_CUDA_OOM
                                                                      : OBSERVATION_CUDA_ERROR);
    if (error.data != NULL)
        reading_text(reading, FACT_ERROR, error);
    if (words_take_signed(&code, &number) && code.size > 0)
        reading_text(reading, FACT_CODE, (struct slice){text.data, text.size - code.size});
    if (!slice_equal(error, SLICE("driver shutting down")))
        reading_yes_no(reading, FACT_VICTIM, false);
    read_head(head, reading);
    return READ_EVENT;
}

// "Call to recv from 10.0.0.5<41234> failed : Connection reset by peer", "Call to connect returned
// Connection refused".
static enum read_result call_failed(struct slice call, struct slice head, struct reading *reading) {
    static const struct slice before[] = {{" from ", 6}, {" to ", 4}};
    struct slice peer = {NULL, 0}, behind;
    if (!has(call, SLICE("Connection reset")) && !has(call, SLICE("Connection refused")) &&
        !has(call, SLICE("Broken pipe")) && !has(call, SLICE("Connection timed out")))
        return READ_NOT;
    for (size_t i = 0; i < sizeof before / sizeof *before && peer.data == NULL; i++)
        if (text_find(call, before[i], &behind) && has(text_until(behind, ' '), SLICE("<")))
            peer = words_peer(behind);
    return closed(peer, head, reading);
}

static enum read_result read_warning(struct slice text, struct slice head,
                                     struct reading *reading) {
    struct slice behind;
    if (text_find(text, SLICE("Cuda failure "), &behind))
        return cuda_failure(behind, head, reading);
    if (text_find(text, SLICE("onnection closed by remote peer "), &behind))
        return closed(words_peer(behind), head, reading);
    if (text_find(text, SLICE("Call to "), &behind))
        return call_failed(behind, head, reading);
    if (text_find(text, SLICE("async event: "), &behind) ||
        text_find(text, SLICE("async event : "), &behind) ||
        text_find(text, SLICE("async fatal event: "), &behind))
        return async_event(text, behind, head, reading);
    if (text_find(text, SLICE("async fatal event on "), &behind) &&
        text_find(behind, SLICE(": "), &behind))
        return async_event(text, behind, head, reading);
    return READ_NOT; // rows know more of them
}

// -- warnings that a terminal wrapped -----------------------------------------------------------

// Words that may stand first in a further piece of a warning.
static bool is_piece(struct slice message) {
    static const struct slice words[] = {
        {"from ", 5},  {"peer ", 5},     {"with ", 5},  {"error ", 6}, {"status=", 7},
        {"opcode", 6}, {"len", 3},       {"vendor", 6}, {"err ", 4},   {"localGid", 8},
        {"(", 1},      {"remoteGid", 9}, {"hca ", 4},
    };
    if (message.size > 0 && (message.data[0] == ' ' || text_is_digit(message.data[0])))
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (text_begins(message, words[i]))
            return true;
    return false;
}

static enum block_step warning_more(struct slice so_far, uint32_t count, const struct frame *frame,
                                    struct slice message) {
    (void)so_far;
    if (!is_piece(message) || frame->rank != RANK_NONE || has(message, SLICE(" NCCL ")))
        return BLOCK_OVER;
    return is_whole_completion(message) || count + 1 >= PIECES_MAX ? BLOCK_LAST : BLOCK_TAKE;
}

// On one line: an end of a line, and the blanks beside it, become one blank.
static struct slice unwrap(struct slice text, struct arena *arena) {
    char *line = arena_take(arena, text.size + 1);
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i] == '\n' ? ' ' : text.data[i];
        if (c != ' ' || size == 0 || line[size - 1] != ' ')
            line[size++] = c;
    }
    return (struct slice){line, size};
}

static enum read_result warning_finish(struct slice text, bool cut, const struct frame *frame,
                                       struct reading *reading) {
    struct slice line = unwrap(text, reading->arena), tail;
    (void)frame;
    if (!text_find(line, SLICE("NCCL WARN "), &tail))
        return READ_OTHER;
    struct slice head = {line.data, line.size - tail.size};
    enum read_result result = completion(tail, head, cut || !is_whole_completion(tail), reading);
    if (result == READ_EVENT && reading->rank == RANK_NONE)
        reading->rank = words_rank(head);
    return result;
}

static const struct line_reader WARNING = {
    .name = "nccl_warning", .more = warning_more, .finish = warning_finish};

enum read_result nccl_warning(struct said *said, struct reading *reading) {
    struct slice rest;
    said_close(said, SLICE(""), &rest);
    enum read_result result;
    if (!is_completion(said->tail)) {
        result = read_warning(said->tail, said->head, reading);
    } else if (is_whole_completion(said->tail) || rest.size > 0) {
        result = completion(said->tail, said->head, false, reading);
    } else {
        reading->block = &WARNING;
        return READ_BEGIN;
    }
    if (result == READ_EVENT)
        reading->rank = words_rank(said->head);
    if (result != READ_REFUSED)
        reading->rest = rest;
    return result;
}

// -- errors as PyTorch shows them ---------------------------------------------------------------

static bool is_code(struct slice message) {
    struct slice word = text_until_any(message, ": ");
    return text_skip(&message, SLICE("nccl")) && message.size > 0 && *message.data >= 'A' &&
           *message.data <= 'Z' && word.size < DEVICE_NAME_MAX;
}

static struct slice last_line(struct slice text) {
    const char *at = text.size == 0 ? NULL : memrchr(text.data, '\n', text.size);
    return at == NULL ? text : text_from(text, (size_t)(at - text.data) + 1);
}

// Whether it can be NCCL's last words: where it had none, other lines follow.
static bool is_last_words(struct slice message) {
    static const struct slice words[] = {
        {"NET/", 4},      {"fail", 4},     {"rror", 4},      {"closed", 6},  {"refused", 7},
        {"nvalid", 6},    {"mismatch", 8}, {"unhandled", 9}, {"peer", 4},    {"truncated", 9},
        {"timed out", 9}, {"ocket", 5},    {"abort", 5},     {"out of ", 7}, {"not ", 4},
    };
    struct slice start = message;
    if (start.size > LAST_WORDS_MAX)
        start.size = LAST_WORDS_MAX;
    if (text_begins(start, SLICE("[")) || text_begins(start, SLICE("Exception raised from")) ||
        text_begins(start, SLICE("frame #")))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has(start, words[i]))
            return true;
    return false;
}

static enum block_step error_more(struct slice so_far, uint32_t count, const struct frame *frame,
                                  struct slice message) {
    struct slice before = last_line(so_far);
    (void)frame;
    words_skip_rank(&before);
    words_skip_rank(&message);
    if (count == 1)
        return is_code(message) ? BLOCK_TAKE : BLOCK_OVER;
    if (text_begins(before, SLICE("Last error:")))
        return is_last_words(message) ? BLOCK_LAST : BLOCK_OVER;
    return text_begins(message, SLICE("Last error:")) ? BLOCK_TAKE : BLOCK_OVER;
}

static void read_code(struct slice line, struct reading *reading) {
    words_skip_rank(&line);
    struct slice code = text_until_any(line, ": ");
    if (is_code(line) && code.size < line.size)
        reading_text(reading, FACT_CODE, code);
}

// "remote process exited or there was a network error" of the first line.
static void read_reason(struct slice line, struct reading *reading) {
    struct slice reason, behind;
    if (!text_find(line, SLICE("NCCL error"), &reason) ||
        !text_find(reason, SLICE(", NCCL version"), &behind))
        return;
    reason.size -= behind.size + sizeof ", NCCL version" - 1;
    // Directly, or behind the place in the source.
    if (text_skip(&reason, SLICE(": ")) || text_find(reason, SLICE(", "), &reason))
        reading_text(reading, FACT_REASON, reason);
}

static enum read_result error_finish(struct slice text, bool cut, const struct frame *frame,
                                     struct reading *reading) {
    struct slice lines = text, behind;
    struct slice first = text_take_line(&lines);
    size_t head = first.size < SAID_HEAD_MAX ? first.size : SAID_HEAD_MAX;
    if (text_find(first, SLICE("NCCL error"), &behind))
        head = first.size - behind.size;
    struct said said = {.frame = frame, .message = first, .head = {first.data, head}};
    reading_begin(reading, OBSERVATION_NCCL_ERROR);
    said_writer(&said, reading);
    read_reason(first, reading);
    words_blame(frame->forms, text, reading);
    if (cut)
        reading_yes_no(reading, FACT_TRUNCATED, true);
    struct slice line = text_take_line(&lines);
    read_code(line, reading);
    text_take_line(&lines); // "Last error:"
    words_skip_rank(&lines);
    lines = text_trim(text_until(lines, '\n')); // whole also where the block ends with the input
    if (lines.size == 0)
        return READ_EVENT;
    reading_text(reading, FACT_ERROR, lines);
    if (is_completion(lines))
        read_completion(lines, reading);
    else if (text_find(lines, SLICE("onnection closed by remote peer "), &behind) &&
             words_peer(behind).data != NULL)
        reading_text(reading, FACT_PEER, words_peer(behind));
    else if (has(lines, SLICE("Cuda failure")) && quoted(lines).data != NULL)
        reading_text(reading, FACT_ERROR, quoted(lines));
    return READ_EVENT;
}

static const struct line_reader ERROR = {
    .name = "nccl_error", .unmarked = true, .more = error_more, .finish = error_finish};

enum read_result nccl_error_begin(struct reading *reading) {
    reading->block = &ERROR;
    return READ_BEGIN;
}

enum read_result nccl_error(struct said *said, struct reading *reading) {
    if (!text_begins(said->tail, SLICE(": ")) && !text_begins(said->tail, SLICE(" in: ")))
        return READ_NOT;
    struct slice near = said->tail;
    enum { VERSION_WITHIN = 256 };
    if (near.size > VERSION_WITHIN)
        near.size = VERSION_WITHIN;
    return has(near, SLICE(", NCCL version")) ? nccl_error_begin(reading) : READ_NOT;
}
