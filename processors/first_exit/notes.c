// SPDX-License-Identifier: Apache-2.0
// Keeps what is told of ends: rows of about 500 bytes for notes, 60 for places.
#include "processors/first_exit/notes.h"

#include "base/table/keyed_rows.h"
#include "base/table/table.h"
#include "base/text/cut.h"
#include "pipeline/model/telemetry_event.h"
#include "processors/cluster/xid_text.h"

KEYED_ROW_CHECK(struct exit_note, key);
KEYED_ROW_CHECK(struct exit_place, key);

const struct row_type EXIT_NOTE_ROWS =
    KEYED_ROW_TYPE(struct exit_note, key, 16, offsetof(struct exit_note, key.source),
                   offsetof(struct exit_note, job), offsetof(struct exit_note, node),
                   offsetof(struct exit_note, unit));
const struct row_type EXIT_PLACE_ROWS =
    KEYED_ROW_TYPE(struct exit_place, key, 64, offsetof(struct exit_place, key.node),
                   offsetof(struct exit_place, job), offsetof(struct exit_place, unit));

// -- places ---------------------------------------------------------------------------------------

struct telling {
    const struct event *event;
    struct exit_place_key key;
    int32_t local_rank;
    string_id job, unit;
};

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t hash_telling(const struct telling *telling) {
    const struct exit_place_key *key = &telling->key;
    uint64_t hash = mix(1, (uint64_t)key->node << 32 | telling->job);
    hash = mix(hash, (uint64_t)key->pid_high << 32 | key->pid_low);
    hash = mix(hash, (uint64_t)(uint32_t)key->rank << 32 | (uint32_t)telling->local_rank);
    return mix(hash, telling->unit);
}

// The earliest time counts, and what any of the tellers says.
static void keep_place(struct exit_notes *notes, const struct telling *telling,
                       struct arena *scratch) {
    uint64_t hash = hash_telling(telling), time_ns = telling->event->time_ns;
    struct recent_place *recent = &notes->recent[hash % RECENT_PLACES];
    if (recent->hash == hash && recent->time_ns <= time_ns)
        return;
    bool is_new = keyed_rows_find(&notes->places, &telling->key) == NULL;
    struct exit_place *place = row_bound_take(&notes->places, &notes->place_bound, &telling->key,
                                              offsetof(struct exit_place, time_ns), scratch);
    if (is_new)
        place->local_rank = -1;
    if (is_new || time_ns < place->time_ns)
        place->time_ns = time_ns;
    *recent = (struct recent_place){hash, place->time_ns};
    if (telling->local_rank >= 0)
        place->local_rank = telling->local_rank;
    if (telling->job != STRING_NONE)
        place->job = telling->job;
    if (telling->unit != STRING_NONE)
        place->unit = telling->unit;
}

static struct exit_place_key place_key(string_id node, int64_t pid, int32_t rank) {
    return (struct exit_place_key){node, (uint32_t)((uint64_t)pid >> 32), (uint32_t)pid, rank};
}

static string_id unit_of(struct slice namespace, struct slice name, struct arena *scratch) {
    if (name.size == 0)
        return STRING_NONE;
    if (namespace.size == 0)
        return intern(name);
    char *both = arena_take(scratch, namespace.size + name.size + 1);
    memcpy(both, namespace.data, namespace.size);
    both[namespace.size] = '/';
    memcpy(both + namespace.size + 1, name.data, name.size);
    return intern((struct slice){both, namespace.size + name.size + 1});
}

static void take_place(struct exit_notes *notes, const struct event *event, struct arena *scratch) {
    const struct rank_place *said = event->place;
    struct telling telling = {.event = event,
                              .key = place_key(said->node != STRING_NONE ? said->node : event->node,
                                               said->pid, said->rank),
                              .local_rank = said->local_rank,
                              .job = event->job,
                              .unit = unit_of(said->namespace, said->pod, scratch)};
    keep_place(notes, &telling, scratch);
}

static void take_telemetry(struct exit_notes *notes, const struct event *event,
                           struct arena *scratch) {
    const struct telemetry *said = event->telemetry;
    if (said->rank < 0 || event->node == STRING_NONE || said->pid <= 0)
        return;
    struct telling telling = {.event = event,
                              .key = place_key(event->node, said->pid, said->rank),
                              .local_rank = said->local_rank,
                              .job = event->job};
    keep_place(notes, &telling, scratch);
}

// -- notes ----------------------------------------------------------------------------------------

enum telling_kind {
    TELLS_NOTHING,
    TELLS_END,       // of a process, by itself or of another's accord as the line says
    TELLS_OF_VICTIM, // a peer was lost: whoever says so is no cause, unless it says so itself
};

const uint8_t EXIT_NOTE_KINDS[] = {
    // ends
    OBSERVATION_OOM_KILL, OBSERVATION_SEGFAULT, OBSERVATION_TRAP, OBSERVATION_EXCEPTION,
    OBSERVATION_CUDA_OOM, OBSERVATION_CUDA_ERROR, OBSERVATION_WORKER_KILLED, OBSERVATION_KILLED,
    OBSERVATION_ABORT, OBSERVATION_ERROR_FILE, OBSERVATION_LAUNCHER_FAILED,
    OBSERVATION_LAUNCHER_SIGNAL, OBSERVATION_LAUNCHER_SUMMARY, OBSERVATION_LAUNCHER_TOLD_TO_STOP,
    OBSERVATION_SLURM_CANCELLED, OBSERVATION_SLURM_OOM, OBSERVATION_SLURM_TASK_EXIT,
    OBSERVATION_SLURM_NODE_FAILURE, OBSERVATION_CONTAINER_TERMINATED,
    // what only a victim says
    OBSERVATION_WATCHDOG_END, OBSERVATION_WATCHDOG_TERMINATED, OBSERVATION_NCCL_NET_ERROR,
    OBSERVATION_NCCL_PEER_CLOSED, OBSERVATION_NCCL_ERROR, OBSERVATION_PEER_CLOSED,
    OBSERVATION_COLLECTIVE_TIMEOUT, OBSERVATION_STORE_LOST, OBSERVATION_RENDEZVOUS_TIMEOUT,
    OBSERVATION_NONE};

static enum telling_kind kind_tells(enum observation_kind kind) {
    enum telling_kind tells = TELLS_END;
    for (const uint8_t *known = EXIT_NOTE_KINDS; *known != OBSERVATION_NONE; known++) {
        if (*known == OBSERVATION_WATCHDOG_END)
            tells = TELLS_OF_VICTIM;
        if (*known == kind)
            return tells;
    }
    return TELLS_NOTHING;
}

// As much as has room, whole characters, without the ends of lines.
static uint16_t put_text(char *to, size_t room, struct slice text) {
    struct slice cut = text_cut_at(text, room);
    cut = cut.size <= room ? cut : text_cut_at(text, room / 4);
    for (size_t i = 0; i < cut.size; i++)
        to[i] = (unsigned char)cut.data[i] < ' ' ? ' ' : cut.data[i];
    return (uint16_t)cut.size;
}

static int32_t number_of(const struct observation *observation, enum fact_key key) {
    int64_t number = -1;
    observation_number(observation, key, &number);
    return number < -1 || number > INT32_MAX ? -1 : (int32_t)number;
}

// An exception of which two are told: what began it, and what ended the process.
static void put_words(struct exit_note *note, const struct observation *observation,
                      struct arena *scratch) {
    struct slice type = SLICE(""), text = SLICE(""), last_type = SLICE(""), last = SLICE("");
    observation_text(observation, FACT_EXCEPTION, &type);
    if (!observation_text(observation, FACT_MESSAGE, &text))
        observation_text(observation, FACT_ERROR, &text);
    observation_text(observation, FACT_LAST_EXCEPTION, &last_type);
    observation_text(observation, FACT_LAST_MESSAGE, &last);
    note->type_size = put_text(note->type, NOTE_TYPE_MAX, type);
    if (last_type.size == 0) {
        note->text_size = put_text(note->text, NOTE_TEXT_MAX, text);
        return;
    }
    text = text_cut_at(text, NOTE_TEXT_MAX / 3);
    const char *both = arena_format(scratch, "%.*s; then %.*s: %.*s", (int)text.size, text.data,
                                    (int)text_cut_at(last_type, NOTE_TYPE_MAX).size, last_type.data,
                                    (int)text_cut_at(last, NOTE_TEXT_MAX).size, last.data);
    note->text_size = put_text(note->text, NOTE_TEXT_MAX, slice_of(both));
}

static int32_t attempt_of(const struct exit_note *note, const struct observation *observation) {
    struct slice rest;
    uint64_t attempt;
    int32_t said = number_of(observation, FACT_ATTEMPT);
    if (said >= 0 || note->key.source == STRING_REFUSED)
        return said;
    if (text_find(intern_slice(note->key.source), SLICE("/attempt_"), &rest) &&
        text_take_number(&rest, 1, 6, &attempt))
        return (int32_t)attempt;
    return -1;
}

static void fill_note(struct exit_note *note, const struct event *event, bool victim,
                      struct arena *scratch) {
    const struct observation *observation = event->observation;
    struct slice reason = SLICE(""), unit = SLICE("");
    note->time_ns = event->time_ns;
    note->slack_ns = observation->time_slack_ns;
    note->job = event->job;
    note->node = event->node;
    note->rank = event->rank;
    note->pid = -1;
    observation_number(observation, FACT_PID, &note->pid);
    note->local_rank = number_of(observation, FACT_LOCAL_RANK);
    note->task = number_of(observation, FACT_TASK);
    note->signal = number_of(observation, FACT_SIGNAL);
    note->exit_code = number_of(observation, FACT_EXIT_CODE);
    note->attempt = attempt_of(note, observation);
    note->flags = (event->timeless ? NOTE_TIMELESS : 0) | (victim ? NOTE_VICTIM : 0) |
                  (observation_is(observation, FACT_FIRST, false) ? NOTE_SUMMARY_FIRST : 0);
    if (!observation_text(observation, FACT_REASON, &reason))
        observation_text(observation, FACT_LIBRARY, &reason);
    note->reason_size = put_text(note->reason, NOTE_REASON_MAX, reason);
    if (observation_text(observation, FACT_POD, &unit))
        note->unit = intern(unit);
    put_words(note, observation, scratch);
}

static void take_observation(struct exit_notes *notes, const struct event *event,
                             struct arena *scratch) {
    const struct observation *observation = event->observation;
    enum telling_kind tells = kind_tells(observation->kind);
    if (tells == TELLS_NOTHING)
        return;
    struct exit_note_key key = {event->source, (uint32_t)(event->position >> 32),
                                (uint32_t)event->position, observation->kind};
    struct exit_note *note = row_bound_take(&notes->notes, &notes->note_bound, &key,
                                            offsetof(struct exit_note, time_ns), scratch);
    fill_note(note, event, observation_is(observation, FACT_VICTIM, tells == TELLS_OF_VICTIM),
              scratch);
}

void exit_notes_take(struct exit_notes *notes, const struct event *event, struct arena *scratch) {
    if (event->kind == EVENT_OBSERVATION)
        take_observation(notes, event, scratch);
    else if (event->kind == EVENT_RANK_MAP)
        take_place(notes, event, scratch);
    else if (event->kind == EVENT_TELEMETRY)
        take_telemetry(notes, event, scratch);
}
