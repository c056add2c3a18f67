// SPDX-License-Identifier: Apache-2.0
// Which events are signs of a failure, and how each is said.
#include "processors/unexplained/signs.h"

#include "base/hash/hash.h"
#include "base/sort.h"
#include "base/table/keyed_rows.h"
#include "base/table/table.h"
#include "base/text/cut.h"
#include "pipeline/model/node_event.h"
#include "processors/cluster/row_text.h"
#include "processors/cluster/xid_text.h"

#include <stdio.h>

KEYED_ROW_CHECK(struct sign, key);

const struct row_type SIGN_ROWS = KEYED_ROW_TYPE(
    struct sign, key, 16, offsetof(struct sign, key.job), offsetof(struct sign, key.node),
    offsetof(struct sign, key.source), offsetof(struct sign, source));

// -- the table ------------------------------------------------------------------------------------

#define OF_NODE SIGN_OF_NODE
#define ENDS    SIGN_ENDS
#define FOLLOWS SIGN_FOLLOWS
#define REPORT  SIGN_REPORT
#define STATE   SIGN_STATE
#define BESIDE  SIGN_BESIDE

// By enum observation_kind; without words it is no sign.
static const struct sign_kind {
    uint32_t flags; // enum sign_flag
    const char *words;
} KINDS[OBSERVATION_KIND_COUNT] = {
#define SIGN(constant, flags, words) [OBSERVATION_##constant] = {flags, words},
#include "processors/unexplained/sign_kinds.h"
};

const uint8_t SIGN_KINDS[] = {
#define SIGN(constant, flags, words) OBSERVATION_##constant,
#include "processors/unexplained/sign_kinds.h"
    OBSERVATION_PROGRESS, // no sign: it shows what was survived
    OBSERVATION_NONE};

static bool text_is(const struct observation *observation, enum fact_key key, const char *wanted) {
    struct slice text;
    return observation_text(observation, key, &text) && slice_equal(text, slice_of(wanted));
}

bool sign_is_end(const struct observation *observation) {
    return observation->kind == OBSERVATION_NFS_STALL || observation->kind == OBSERVATION_GPU_HANG
               ? text_is(observation, FACT_STATE, "end")
               : observation->kind == OBSERVATION_HEALTH_EVENT &&
                     observation_is(observation, FACT_HEALTHY, false);
}

// What a kind is a sign of only now and then.
static bool is_failure(const struct event *event) {
    const struct observation *observation = event->observation;
    int64_t code = -1, local_rank;
    struct slice meeting;
    if (sign_is_end(observation))
        return false;
    switch (observation->kind) {
    case OBSERVATION_MACHINE_CHECK: // "events logged" stands before corrected ones, too
        return !observation_is(observation, FACT_CORRECTED, true) ||
               text_is(observation, FACT_SEVERITY, "fatal") ||
               text_is(observation, FACT_SEVERITY, "recoverable");
    case OBSERVATION_MEMORY_ERROR:
        return !observation_is(observation, FACT_CORRECTED, false);
    case OBSERVATION_STORE_LOST: // agents say it at the end of each job: one of them leaves first
        return event->rank >= 0 || observation_number(observation, FACT_LOCAL_RANK, &local_rank);
    case OBSERVATION_NODE_CONDITION:
        return observation_is(observation, FACT_BAD, false);
    case OBSERVATION_EXCEPTION: // who logged it says that it was skipped, or is tried again
        return !text_is(observation, FACT_STATE, "goes_on");
    case OBSERVATION_JOB_CONDITION: // not one that was suspended: it waits for its turn
        return !text_is(observation, FACT_CONDITION, "Suspended");
    case OBSERVATION_HEALTH_EVENT:
        return observation_is(observation, FACT_FATAL, false);
    case OBSERVATION_JOB_LAYOUT: // no failure: what it looks for may be why
        return observation_text(observation, FACT_MEETING, &meeting) && meeting.size > 0;
    case OBSERVATION_CONTAINER_TERMINATED:
        return !observation_number(observation, FACT_EXIT_CODE, &code) || code != 0;
    default:
        return true;
    }
}

// -- words ----------------------------------------------------------------------------------------

// What has no room is not written: it would be shortened away.
enum { WRITING_MAX = 1024 };

struct writing {
    const struct observation *observation;
    size_t size;
    bool lacks;    // a fact was not said
    bool has_line; // the message itself was written: what stands in it is not said again
    char text[WRITING_MAX];
};

static void put(struct writing *writing, const char *text, size_t size) {
    size_t room = WRITING_MAX - writing->size;
    size = size < room ? size : room;
    if (size > 0)
        memcpy(writing->text + writing->size, text, size);
    writing->size += size;
}

static void put_number(struct writing *writing, int64_t number) {
    char digits[24];
    int size = snprintf(digits, sizeof digits, "%lld", (long long)number);
    put(writing, digits, (size_t)size);
}

// Of several lines the first.
static void put_line(struct writing *writing, struct slice text) {
    text = text_trim(text_until(text_trim(text), '\n'));
    put(writing, text.data, text.size);
}

// Those that stand in the words.
static const enum fact_key SAID[] = {FACT_PID,       FACT_PROCESS,        FACT_LIBRARY,
                                     FACT_EXCEPTION, FACT_MESSAGE,        FACT_SIGNAL,
                                     FACT_EXIT_CODE, FACT_REASON,         FACT_STATUS,
                                     FACT_CONDITION, FACT_CONTAINER,      FACT_JOB,
                                     FACT_ERROR,     FACT_PEER,           FACT_JOINED,
                                     FACT_EXPECTED,  FACT_LAST_EXCEPTION, FACT_LAST_MESSAGE,
                                     FACT_MEETING};

static enum fact_key key_named(const char *name, size_t size) {
    for (size_t i = 0; i < sizeof SAID / sizeof *SAID; i++) {
        const char *known = fact_name(SAID[i]);
        if (strncmp(known, name, size) == 0 && known[size] == '\0')
            return SAID[i];
    }
    return FACT_KEY_COUNT;
}

static bool stands_already(const struct writing *writing, struct slice text) {
    return writing->has_line && memmem(writing->text, writing->size, text.data, text.size) != NULL;
}

static void put_fact(struct writing *writing, const char *name, size_t size) {
    const struct observation *observation = writing->observation;
    if (size == 1 && *name == '*') {
        struct slice text = observation->text;
        writing->lacks = writing->lacks || text.size == 0;
        writing->has_line = true;
        put_line(writing, text);
        return;
    }
    enum fact_key key = key_named(name, size);
    assert(key != FACT_KEY_COUNT); // it stands in our own table, and has to stand in SAID
    struct slice text = SLICE("");
    int64_t number;
    bool is_text = fact_type(key) == FACT_TEXT && observation_text(observation, key, &text);
    if (is_text && text.size > 0 && !stands_already(writing, text))
        put_line(writing, text);
    else if (fact_type(key) == FACT_NUMBER && observation_number(observation, key, &number))
        put_number(writing, number);
    else
        writing->lacks = true;
}

// Up to the end of the words, or the bracket that closes this part. -> what is behind it.
static const char *put_words(struct writing *writing, const char *words);

// A bracket and those that stand in for it: "[…]|[…]". -> what is behind them.
static const char *put_choice(struct writing *writing, const char *words) {
    bool done = false, lacked = writing->lacks;
    for (;;) {
        size_t before = writing->size;
        writing->lacks = false;
        words = put_words(writing, words + 1);
        assert(*words == ']');
        if (writing->lacks || done)
            writing->size = before;
        done = done || !writing->lacks;
        words++;
        if (words[0] != '|' || words[1] != '[') {
            writing->lacks = lacked;
            return words;
        }
        words++;
    }
}

static const char *put_words(struct writing *writing, const char *words) {
    while (*words != '\0' && *words != ']') {
        if (*words == '[') {
            words = put_choice(writing, words);
            continue;
        }
        if (*words == '{') {
            size_t size = strcspn(words + 1, "}");
            put_fact(writing, words + 1, size);
            words += size + 2;
            continue;
        }
        size_t plain = strcspn(words, "[]{");
        put(writing, words, plain);
        words += plain;
    }
    return words;
}

static const char *file_name(string_id path) {
    struct slice text = intern_slice(path);
    const char *slash = text.size == 0 ? NULL : memrchr(text.data, '/', text.size);
    return slice_equal(text, SLICE("-")) ? "standard input" : slash == NULL ? text.data : slash + 1;
}

// Who says it: "rank 3 on gpu-a", "local rank 1 on gpu-a", "pod train/x-0", "gpu-a", "train.log".
static void put_who(struct writing *writing, const struct sign *sign, struct arena *arena) {
    const struct observation *observation = writing->observation;
    int64_t number;
    struct slice pod;
    size_t before = writing->size;
    if (sign->key.rank >= 0) {
        put(writing, "rank ", 5);
        put_number(writing, sign->key.rank);
    } else if (observation_text(observation, FACT_POD, &pod) && pod.size > 0) {
        put(writing, "pod ", 4);
        put(writing, pod.data, pod.size);
    } else if (observation_number(observation, FACT_LOCAL_RANK, &number)) {
        put(writing, "local rank ", 11);
        put_number(writing, number);
    } else if (observation_number(observation, FACT_TASK, &number)) {
        put(writing, "task ", 5);
        put_number(writing, number);
    } else if ((sign->flags & SIGN_OF_NODE) == 0 &&
               observation_number(observation, FACT_PID, &number)) {
        put(writing, "process ", 8);
        put_number(writing, number);
    }
    bool named = writing->size > before;
    if (named && sign->key.node == STRING_NONE)
        return;
    if (named)
        put(writing, " on ", 4);
    const char *place = sign->key.node == STRING_NONE ? file_name(sign->source)
                                                      : node_spoken(sign->key.node, arena);
    put(writing, place, strlen(place));
}

// -- keeping --------------------------------------------------------------------------------------

// Which of several states of a machine it is.
static uint64_t hash_state(uint64_t hash, const struct observation *observation) {
    static const enum fact_key names[] = {FACT_GPU_UUID, FACT_DEVICE, FACT_REASON, FACT_SERVER};
    int64_t port = -1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct slice text = SLICE("");
        observation_text(observation, names[i], &text);
        hash = hash_more(hash_more(hash, text.data, text.size), "", 1);
    }
    const struct fact *gpu = observation_fact(observation, FACT_GPU);
    if (gpu != NULL)
        hash = hash_more(hash, &gpu->address, sizeof gpu->address);
    observation_number(observation, FACT_PORT, &port);
    return hash_more(hash, &port, sizeof port);
}

uint64_t sign_who(const struct observation *observation) {
    static const enum fact_key names[] = {FACT_POD, FACT_CONTAINER, FACT_CONDITION, FACT_JOB};
    static const enum fact_key numbers[] = {FACT_PID, FACT_LOCAL_RANK};
    uint64_t hash = HASH_START;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct slice text = SLICE("");
        observation_text(observation, names[i], &text);
        hash = hash_more(hash_more(hash, text.data, text.size), "", 1);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int64_t number = -1;
        observation_number(observation, numbers[i], &number);
        hash = hash_more(hash, &number, sizeof number);
    }
    // Of conditions the type is all.
    bool is_state = (KINDS[observation->kind].flags & SIGN_STATE) != 0;
    return is_state && observation->kind != OBSERVATION_NODE_CONDITION
               ? hash_state(hash, observation)
               : hash;
}

static bool has_no_time(const struct event *event) {
    return event->timeless && event->time_of != TIME_OF_LINE_BEFORE;
}

static uint32_t time_flags(const struct event *event) {
    if (!event->timeless)
        return 0;
    if (event->time_of == TIME_OF_LINE_BEFORE)
        return SIGN_AFTER;
    return SIGN_TIMELESS | (event->time_of == TIME_OF_RECEIPT ? SIGN_OF_RECEIPT : 0);
}

enum time_of sign_time_of(const struct sign *sign) {
    if ((sign->flags & SIGN_AFTER) != 0)
        return TIME_OF_LINE_BEFORE;
    if ((sign->flags & SIGN_TIMELESS) == 0)
        return TIME_OF_EVENT;
    return (sign->flags & SIGN_OF_RECEIPT) != 0 ? TIME_OF_RECEIPT : TIME_OF_FILE;
}

static struct sign_key key_of(const struct event *event) {
    uint64_t who = sign_who(event->observation);
    return (struct sign_key){
        .job = event->job,
        .node = event->node,
        .source = event->node == STRING_NONE && event->rank < 0 ? event->source : STRING_NONE,
        .stretch = has_no_time(event) ? 0 : 1 + (uint32_t)(event->time_ns / SIGN_STRETCH_NS),
        .who_high = (uint32_t)(who >> 32),
        .who_low = (uint32_t)who,
        .rank = event->rank,
        .kind = (uint32_t)event->observation->kind,
    };
}

// An exception is the same in a traceback and in an error file, of which one knows the module of
// its type. Of anything else it is the words.
static uint64_t hash_said(const struct sign_kind *kind, const struct observation *observation,
                          struct slice words) {
    struct slice type, message = SLICE("");
    if ((kind->flags & SIGN_REPORT) != 0 || !observation_text(observation, FACT_EXCEPTION, &type))
        return hash_slice(words);
    const char *dot = type.size == 0 ? NULL : memrchr(type.data, '.', type.size);
    if (dot != NULL)
        type = text_from(type, (size_t)(dot - type.data) + 1);
    observation_text(observation, FACT_MESSAGE, &message);
    message = text_trim(text_until(text_trim(message), '\n'));
    return hash_more(hash_more(hash_slice(type), "", 1), message.data, message.size);
}

// Who it is, as far as it is no part of the key.
static void set_process(struct sign *sign, const struct event *event) {
    int64_t local_rank = -1;
    sign->pid = -1;
    observation_number(event->observation, FACT_LOCAL_RANK, &local_rank);
    sign->local_rank = local_rank > RANK_MAX ? -1 : (int32_t)local_rank;
    if (observation_number(event->observation, FACT_PID, &sign->pid) &&
        (sign->flags & SIGN_OF_NODE) != 0 && event->node != STRING_NONE)
        sign->flags |= SIGN_PROCESS;
}

// SIGHUP, SIGINT, SIGTERM
static bool asks_to_end(const struct observation *observation) {
    int64_t signal = -1;
    observation_number(observation, FACT_SIGNAL, &signal);
    return signal == 1 || signal == 2 || signal == 15;
}

static void fill(struct sign *sign, const struct sign_kind *kind, const struct event *event,
                 struct arena *arena) {
    sign->time_ns = event->time_ns;
    sign->source = event->source;
    sign->position = event->position;
    sign->flags = kind->flags | time_flags(event);
    if (observation_is(event->observation, FACT_VICTIM, false))
        sign->flags |= SIGN_FOLLOWS;
    if (asks_to_end(event->observation))
        sign->flags |= SIGN_TOLD;
    set_process(sign, event);
    struct writing writing;
    writing.observation = event->observation;
    writing.size = 0;
    writing.lacks = writing.has_line = false;
    put_who(&writing, sign, arena);
    put(&writing, ": ", 2);
    size_t before = writing.size;
    put_words(&writing, kind->words);
    if (writing.size == before) {
        const char *name = observation_name(event->observation->kind);
        put(&writing, name, strlen(name));
    }
    struct slice words = {writing.text + before, writing.size - before};
    sign->said = hash_said(kind, event->observation, words);
    row_text_say(sign->text, SIGN_TEXT_MAX, (struct slice){writing.text, writing.size});
}

static void take_observation(struct keyed_rows *signs, struct row_bound *bound,
                             const struct event *event, uint32_t flags, struct arena *scratch) {
    const struct sign_kind *kind = &KINDS[event->observation->kind];
    if (kind->words == NULL || !is_failure(event))
        return;
    struct sign_key key = key_of(event);
    bool is_new;
    struct sign *sign =
        row_bound_get(signs, bound, &key, offsetof(struct sign, time_ns), &is_new, scratch);
    if (event->time_ns > sign->last_ns)
        sign->last_ns = event->time_ns;
    if ((is_new || event->source == sign->source) && event->position > sign->last_position)
        sign->last_position = event->position;
    if (!is_new && event->time_ns > sign->time_ns && (sign->flags & SIGN_TIMELESS) == 0)
        return; // the first counts
    struct sign told = *sign;
    fill(&told, kind, event, scratch);
    told.flags |= flags;
    // Of two of one time the lesser, whichever came first.
    if (is_new || sign_compare(&told, sign) < 0)
        *sign = told;
}

void sign_take(struct keyed_rows *signs, struct row_bound *bound, const struct event *event,
               struct arena *scratch) {
    if (event->kind == EVENT_OBSERVATION)
        take_observation(signs, bound, event, 0, scratch);
    if (event->kind != EVENT_APP_LINE || event->line->kind != APP_TIMEOUT)
        return;
    // The watchdog's own word on a collective that timed out.
    const struct observation said = {.kind = OBSERVATION_COLLECTIVE_TIMEOUT,
                                     .text = event->line->text};
    struct event same = *event;
    same.observation = &said;
    same.rank = event->rank >= 0 ? event->rank : event->line->rank;
    take_observation(signs, bound, &same, SIGN_APP_LINE, scratch);
}

bool sign_is_words(const struct sign *sign) {
    switch ((enum observation_kind)sign->key.kind) {
    case OBSERVATION_NCCL_NET_ERROR:
    case OBSERVATION_NCCL_PORT_ERROR:
    case OBSERVATION_NCCL_PEER_CLOSED:
    case OBSERVATION_NCCL_ERROR:
    case OBSERVATION_PEER_CLOSED:
    case OBSERVATION_COLLECTIVE_TIMEOUT:
    case OBSERVATION_STORE_LOST:
    case OBSERVATION_RENDEZVOUS_TIMEOUT:
    case OBSERVATION_EXCEPTION:
    case OBSERVATION_CUDA_OOM:
    case OBSERVATION_CUDA_ERROR:
    case OBSERVATION_WORKER_KILLED:
        return true;
    default:
        return false;
    }
}

const char *sign_uid(const struct sign *sign, struct arena *arena) {
    const char *rank = sign->key.rank < 0 ? "" : arena_number(arena, sign->key.rank);
    const char *when = (sign->flags & (SIGN_TIMELESS | SIGN_AFTER)) != 0
                           ? file_name(sign->source)
                           : arena_format(arena, "%llu", (unsigned long long)sign->time_ns);
    return arena_format(arena, "%s:%s:%s:%s:%08x%08x:%s",
                        (sign->flags & SIGN_APP_LINE) != 0 ? "sign_app" : "sign",
                        node_in_uid(sign->key.node, arena), rank,
                        observation_name((enum observation_kind)sign->key.kind), sign->key.who_high,
                        sign->key.who_low, when);
}

int sign_compare_telling(const struct sign *a, const struct sign *b) {
    return COMPARE_KEYS(COMPARE(a->flags & SIGN_BESIDE, b->flags & SIGN_BESIDE),
                        COMPARE(a->flags & SIGN_REPORT, b->flags & SIGN_REPORT),
                        COMPARE(a->flags & SIGN_FOLLOWS, b->flags & SIGN_FOLLOWS));
}

int sign_compare_process(const struct sign *a, const struct sign *b) {
    return COMPARE_KEYS(COMPARE(a->key.node, b->key.node), COMPARE(a->key.kind, b->key.kind),
                        COMPARE(a->key.who_high, b->key.who_high),
                        COMPARE(a->key.who_low, b->key.who_low));
}

int sign_compare(const struct sign *a, const struct sign *b) {
    bool ordered = ((a->flags | b->flags) & (SIGN_TIMELESS | SIGN_AFTER)) != 0;
    int order = COMPARE_KEYS(COMPARE(a->flags & SIGN_TIMELESS, b->flags & SIGN_TIMELESS),
                             COMPARE(a->time_ns, b->time_ns),
                             COMPARE(a->flags & SIGN_AFTER, b->flags & SIGN_AFTER));
    if (order == 0 && ordered) // in one file they are in order
        order = COMPARE_KEYS(slice_compare(intern_slice(a->source), intern_slice(b->source)),
                             COMPARE(a->position, b->position));
    return order != 0 ? order
                      : COMPARE_KEYS(COMPARE(a->key.kind, b->key.kind), strcmp(a->text, b->text));
}
