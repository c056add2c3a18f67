// SPDX-License-Identifier: Apache-2.0
// Keeps what is told of ends: rows of about 1,000 bytes for notes, 72 for places.
#include "processors/first_exit/notes.h"

#include "base/hash/hash.h"
#include "base/sort.h"
#include "base/table/keyed_rows.h"
#include "base/table/table.h"
#include "base/text/cut.h"
#include "pipeline/model/telemetry_event.h"
#include "processors/cluster/compare.h"
#include "processors/cluster/row_text.h"
#include "processors/cluster/xid_text.h"

KEYED_ROW_CHECK(struct exit_note, key);
KEYED_ROW_CHECK(struct exit_place, key);

const struct row_type EXIT_NOTE_ROWS =
    KEYED_ROW_TYPE(struct exit_note, key, 16, offsetof(struct exit_note, key.source),
                   offsetof(struct exit_note, job), offsetof(struct exit_note, node),
                   offsetof(struct exit_note, unit));
const struct row_type EXIT_PLACE_ROWS =
    KEYED_ROW_TYPE(struct exit_place, key, 64, offsetof(struct exit_place, key.node),
                   offsetof(struct exit_place, key.job), offsetof(struct exit_place, unit),
                   offsetof(struct exit_place, uuid));

// -- places ---------------------------------------------------------------------------------------

struct telling {
    const struct event *event;
    struct exit_place_key key;
    int32_t local_rank;
    string_id unit, uuid;
    uint64_t gpu; // or PCI_NONE
};

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t hash_telling(const struct telling *telling) {
    const struct exit_place_key *key = &telling->key;
    uint64_t hash = mix(1, (uint64_t)key->node << 32 | key->job);
    hash = mix(hash, (uint64_t)key->pid_high << 32 | key->pid_low);
    hash = mix(hash, (uint64_t)(uint32_t)key->rank << 32 | (uint32_t)telling->local_rank);
    return mix(mix(hash, (uint64_t)telling->unit << 32 | telling->uuid), telling->gpu);
}

// The newest word on a fact counts; of two of one time the greater, whichever came first. `order`:
// of what is said and what is known, 0 where nothing is.
static bool is_news(struct exit_place *place, enum place_fact fact, uint64_t time_ns, int order) {
    assert(fact < PLACE_FACTS);
    if (time_ns < place->said_ns[fact] || (time_ns == place->said_ns[fact] && order <= 0))
        return false;
    place->said_ns[fact] = time_ns;
    return true;
}

static void take_name(struct exit_place *place, enum place_fact fact, uint64_t time_ns,
                      string_id said, string_id *known) {
    if (said != STRING_NONE &&
        is_news(place, fact, time_ns,
                *known == STRING_NONE ? 1
                                      : slice_compare(intern_slice(said), intern_slice(*known))))
        *known = said;
}

// The earliest time counts; one that nobody wrote is 0, not the age of a file. Most telemetry says
// what is known, so its word is of the time at which it first said so.
static void keep_place(struct exit_notes *notes, const struct telling *telling,
                       struct arena *scratch) {
    uint64_t hash = hash_telling(telling);
    uint64_t time_ns = telling->event->timeless ? 0 : telling->event->time_ns;
    struct recent_place *recent = &notes->recent[hash % RECENT_PLACES];
    if (telling->event->kind == EVENT_TELEMETRY && recent->hash == hash &&
        recent->time_ns <= time_ns)
        return;
    bool is_new = keyed_rows_find(&notes->places, &telling->key) == NULL;
    struct exit_place *place = row_bound_take(&notes->places, &notes->place_bound, &telling->key,
                                              offsetof(struct exit_place, time_ns), scratch);
    if (is_new) {
        place->local_rank = -1;
        place->gpu = PCI_NONE;
    }
    if (place->time_ns == 0 || (time_ns != 0 && time_ns < place->time_ns))
        place->time_ns = time_ns;
    if (telling->event->kind == EVENT_TELEMETRY)
        *recent = (struct recent_place){hash, place->time_ns};
    if (telling->local_rank >= 0 &&
        is_news(place, PLACE_LOCAL_RANK, time_ns, telling->local_rank - place->local_rank))
        place->local_rank = telling->local_rank;
    take_name(place, PLACE_UNIT, time_ns, telling->unit, &place->unit);
    take_name(place, PLACE_UUID, time_ns, telling->uuid, &place->uuid);
    bool is_greater = place->gpu == PCI_NONE || telling->gpu > place->gpu;
    if (telling->gpu != PCI_NONE && is_news(place, PLACE_GPU, time_ns, is_greater))
        place->gpu = telling->gpu;
}

static struct exit_place_key place_key(string_id node, string_id job, int64_t pid, int32_t rank) {
    return (struct exit_place_key){node, job, (uint32_t)((uint64_t)pid >> 32), (uint32_t)pid, rank};
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
                                               event->job, said->pid, said->rank),
                              .local_rank = said->local_rank,
                              .unit = unit_of(said->namespace, said->pod, scratch),
                              .gpu = pci_device(said->address)};
    if (said->uuid.size > 0)
        telling.uuid = intern(said->uuid);
    if (telling.uuid == STRING_REFUSED)
        telling.uuid = STRING_NONE;
    keep_place(notes, &telling, scratch);
}

static void take_telemetry(struct exit_notes *notes, const struct event *event,
                           struct arena *scratch) {
    const struct telemetry *said = event->telemetry;
    if (said->rank < 0 || event->node == STRING_NONE || said->pid <= 0)
        return;
    struct telling telling = {.event = event,
                              .key = place_key(event->node, event->job, said->pid, said->rank),
                              .local_rank = said->local_rank,
                              .gpu = PCI_NONE};
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
    OBSERVATION_SLURM_NODE_FAILURE, OBSERVATION_SLURM_STATE, OBSERVATION_NODE_LOST,
    OBSERVATION_JOB_STOPPED, OBSERVATION_LAUNCH_FAILED, OBSERVATION_CONTAINER_TERMINATED,
    OBSERVATION_POD_DISRUPTION, OBSERVATION_NODE_CONDITION, OBSERVATION_PEER_LOST,
    // on how many nodes a job runs
    OBSERVATION_JOB_LAYOUT,
    // what only a victim says
    OBSERVATION_WATCHDOG_END, OBSERVATION_WATCHDOG_TERMINATED, OBSERVATION_NCCL_NET_ERROR,
    OBSERVATION_NCCL_PEER_CLOSED, OBSERVATION_NCCL_ERROR, OBSERVATION_PEER_CLOSED,
    OBSERVATION_COLLECTIVE_TIMEOUT, OBSERVATION_STORE_LOST, OBSERVATION_RENDEZVOUS_TIMEOUT,
    // who went on
    OBSERVATION_PROGRESS, OBSERVATION_NONE};

static enum telling_kind kind_tells(enum observation_kind kind) {
    enum telling_kind tells = TELLS_END;
    for (const uint8_t *known = EXIT_NOTE_KINDS; *known != OBSERVATION_NONE; known++) {
        if (*known == OBSERVATION_WATCHDOG_END)
            tells = TELLS_OF_VICTIM;
        if (*known == OBSERVATION_PROGRESS)
            tells = TELLS_NOTHING;
        if (*known == kind)
            return tells;
    }
    return TELLS_NOTHING;
}

// As much as has room, shortened, without the ends of lines.
static uint16_t put_text(char *to, size_t room, struct slice text) {
    uint16_t size = row_text_copy(to, room, text);
    for (size_t i = 0; i < size; i++)
        to[i] = (unsigned char)to[i] < ' ' ? ' ' : to[i];
    return size;
}

// Those that have room whole: the list ends at a comma.
static uint16_t put_hosts(char *to, size_t room, struct slice hosts) {
    size_t size = hosts.size;
    while (size > room || (size > 0 && size < hosts.size && hosts.data[size] != ','))
        size--;
    if (size > 0)
        memcpy(to, hosts.data, size);
    return (uint16_t)size;
}

static int32_t number_of(const struct observation *observation, enum fact_key key) {
    int64_t number = -1;
    observation_number(observation, key, &number);
    return number < -1 || number > INT32_MAX ? -1 : (int32_t)number;
}

// What is said, with the decisive part: of an error of NCCL its last one, behind general words.
static bool find_words(const struct observation *observation, struct slice *text) {
    if (observation->kind == OBSERVATION_NCCL_ERROR &&
        observation_text(observation, FACT_ERROR, text))
        return true;
    return observation_text(observation, FACT_MESSAGE, text) ||
           observation_text(observation, FACT_ERROR, text);
}

// A call into a library of the fabric that failed: its error says little without its name.
static bool is_call(const struct observation *observation, struct slice *call) {
    return observation->kind == OBSERVATION_NCCL_ERROR &&
           observation_fact(observation, FACT_ERROR) != NULL &&
           observation_text(observation, FACT_OP, call) && text_begins(*call, SLICE("ibv_"));
}

// An exception of which two are told: what began it, and what ended the process.
static void put_words(struct exit_note *note, const struct observation *observation,
                      struct arena *scratch) {
    struct slice type = SLICE(""), text = SLICE(""), last_type = SLICE(""), last = SLICE("");
    observation_text(observation, FACT_EXCEPTION, &type);
    note->text_size = 0;
    bool found = find_words(observation, &text);
    if (found && is_call(observation, &last))
        text = slice_of(
            arena_format(scratch, "%s: %s", arena_text(scratch, last), arena_text(scratch, text)));
    if (!found && observation_text(observation, FACT_HOSTS, &text))
        note->text_size = put_hosts(note->text, NOTE_TEXT_MAX, text);
    last = (struct slice){"", 0};
    observation_text(observation, FACT_LAST_EXCEPTION, &last_type);
    observation_text(observation, FACT_LAST_MESSAGE, &last);
    note->type_size = put_text(note->type, NOTE_TYPE_MAX, type);
    if (note->text_size > 0)
        return;
    if (last_type.size == 0) {
        note->text_size = put_text(note->text, NOTE_TEXT_MAX, text);
        return;
    }
    const char *both = arena_format(
        scratch, "%s; then %s: %s", text_shown(text, NOTE_TEXT_MAX / 3, scratch),
        text_shown(last_type, NOTE_TYPE_MAX, scratch), text_shown(last, NOTE_TEXT_MAX, scratch));
    note->text_size = put_text(note->text, NOTE_TEXT_MAX, slice_of(both));
}

// What a launcher tells of an end by its code alone, with what the process wrote last.
static void put_last_line(struct exit_note *note, const struct observation *observation) {
    struct slice last;
    bool is_launchers = observation->kind == OBSERVATION_LAUNCHER_FAILED ||
                        observation->kind == OBSERVATION_SLURM_TASK_EXIT;
    if (!is_launchers || note->type_size > 0 || note->text_size > 0 ||
        !observation_text(observation, FACT_LAST_MESSAGE, &last))
        return;
    note->text_size = put_text(note->text, NOTE_TEXT_MAX, last);
    note->flags |= NOTE_WROTE_LAST;
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

// "8-15", "3,5-7", "12". What has no room is left out.
static uint32_t read_tasks(struct slice text, struct task_range *ranges) {
    uint32_t count = 0;
    uint64_t first, last;
    while (count < NOTE_RANGES_MAX && text_take_number(&text, 1, 9, &first)) {
        last = first;
        if (text_skip_char(&text, '-') && !text_take_number(&text, 1, 9, &last))
            break;
        if (last >= first)
            ranges[count++] = (struct task_range){(int32_t)first, (int32_t)last};
        if (!text_skip_char(&text, ','))
            break;
    }
    return count;
}

// Who, beside its pid and rank.
static void fill_unit(struct exit_note *note, const struct observation *observation) {
    struct slice text = SLICE("");
    if (observation_text(observation, FACT_POD, &text))
        note->unit = intern(text);
    if (note->unit == STRING_REFUSED)
        note->unit = STRING_NONE;
    if (observation_text(observation, FACT_UNIT_UID, &text))
        note->unit_uid = pod_uid_key(text);
    if (observation_text(observation, FACT_CONTAINER_ID, &text))
        note->container = hash_slice(text) | 1;
    note->range_count = 0;
    if (observation_text(observation, FACT_TASKS, &text))
        note->range_count = read_tasks(text, note->ranges);
}

// What stands in `reason` of each kind.
static struct slice reason_of(const struct observation *observation) {
    struct slice reason = SLICE("");
    if (observation->kind == OBSERVATION_SLURM_STATE)
        observation_text(observation, FACT_STATE, &reason);
    else if (observation->kind == OBSERVATION_NODE_CONDITION)
        observation_text(observation, FACT_STATUS, &reason);
    else if (observation->kind == OBSERVATION_JOB_STOPPED)
        observation_text(observation, FACT_CAUSE, &reason);
    else if (!observation_text(observation, FACT_REASON, &reason))
        observation_text(observation, FACT_LIBRARY, &reason);
    return reason;
}

// Who tells of it is another, and a victim; the line is all that is known of the end.
static void tell_of_peer(struct exit_note *note, const struct observation *observation) {
    if (note->type_size == 0 && note->text_size == 0)
        note->text_size = put_text(note->text, NOTE_TEXT_MAX, observation->text);
    note->rank = number_of(observation, FACT_PEER_RANK);
    note->node = STRING_NONE;
    note->pid = note->local_rank = -1;
    note->flags &= ~(uint32_t)NOTE_VICTIM;
}

// On one node, as its launcher says, or as the place shows where its ranks meet.
static bool is_of_one_node(const struct observation *observation) {
    struct slice meeting;
    int32_t nodes = number_of(observation, FACT_NODES);
    if (nodes >= 0 || !observation_text(observation, FACT_MEETING, &meeting))
        return nodes == 1;
    text_skip(&meeting, SLICE("tcp://"));
    return text_begins(meeting, SLICE("localhost")) || text_begins(meeting, SLICE("127."));
}

static void fill_note(struct exit_note *note, const struct event *event, bool victim,
                      struct arena *scratch) {
    const struct observation *observation = event->observation;
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
    uint32_t time_of = event->timeless ? (uint32_t)event->time_of << NOTE_TIME_OF_SHIFT : 0;
    note->flags = (event->timeless ? NOTE_TIMELESS : 0) | time_of | (victim ? NOTE_VICTIM : 0) |
                  (observation_is(observation, FACT_FIRST, false) ? NOTE_SUMMARY_FIRST : 0);
    note->reason_size = put_text(note->reason, NOTE_REASON_MAX, reason_of(observation));
    fill_unit(note, observation);
    put_words(note, observation, scratch);
    put_last_line(note, observation);
    if (observation->kind == OBSERVATION_PEER_LOST)
        tell_of_peer(note, observation);
    if (observation->kind == OBSERVATION_JOB_LAYOUT && is_of_one_node(observation))
        note->flags |= NOTE_ONE_NODE;
}

// -- the cluster ----------------------------------------------------------------------------------

// Of conditions of a node only that it is not ready tells of its loss; of peers those that have a
// number.
static bool is_of_interest(const struct observation *observation) {
    struct slice condition, state;
    // Whoever logged it says that it was skipped, or is tried again.
    if (observation->kind == OBSERVATION_EXCEPTION)
        return !observation_text(observation, FACT_STATE, &state) ||
               !slice_equal(state, SLICE("goes_on"));
    if (observation->kind == OBSERVATION_PEER_LOST)
        return number_of(observation, FACT_PEER_RANK) >= 0;
    return observation->kind != OBSERVATION_NODE_CONDITION ||
           (observation_text(observation, FACT_CONDITION, &condition) &&
            slice_equal(condition, SLICE("Ready")) && observation_is(observation, FACT_BAD, false));
}

static uint64_t hash_fact(uint64_t hash, const struct observation *observation, enum fact_key key) {
    struct slice text = SLICE("");
    observation_text(observation, key, &text);
    return hash_more(hash_more(hash, text.data, text.size), "", 1);
}

// An object says the same each time it is seen: how often does not matter, nor where it stood.
static struct exit_note_key key_of(const struct event *event) {
    const struct observation *observation = event->observation;
    uint64_t position = event->position;
    string_id source = event->source;
    int64_t restarts = -1;
    switch (observation->kind) {
    case OBSERVATION_CONTAINER_TERMINATED:
    case OBSERVATION_POD_DISRUPTION:
        position = hash_fact(HASH_START, observation, FACT_UNIT_UID);
        position = hash_fact(position, observation, FACT_POD);
        position = hash_fact(position, observation, FACT_CONTAINER);
        observation_number(observation, FACT_RESTARTS, &restarts);
        position = hash_more(position, &restarts, sizeof restarts);
        source = STRING_NONE;
        if (observation->kind == OBSERVATION_POD_DISRUPTION)
            position = hash_fact(position, observation, FACT_REASON);
        break;
    case OBSERVATION_NODE_CONDITION:
        position = hash_slice(intern_slice(event->node));
        position = hash_more(position, &event->time_ns, sizeof event->time_ns);
        source = STRING_NONE;
        break;
    default:
        break;
    }
    return (struct exit_note_key){source, (uint32_t)(position >> 32), (uint32_t)position,
                                  observation->kind, 0};
}

static uint64_t hash_text(uint64_t hash, struct slice text) {
    return hash_more(hash_more(hash, text.data, text.size), "", 1);
}

// One line may tell of several ends. The time that a line has from its input may be another when
// the line is read again.
static uint32_t what_of(const struct exit_note *note) {
    const int64_t numbers[] = {note->pid,
                               note->rank,
                               note->local_rank,
                               note->task,
                               note->signal,
                               note->exit_code,
                               note->attempt,
                               note->flags & ~(uint32_t)NOTE_TIME_OF,
                               (int64_t)note->slack_ns,
                               (int64_t)note->container,
                               note_is(note, NOTE_TIMELESS) ? 0 : (int64_t)note->time_ns};
    uint64_t hash = HASH_START;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        hash = hash_more(hash, &(int64_t){numbers[i]}, sizeof *numbers);
    hash = hash_more(hash, note->ranges, note->range_count * sizeof *note->ranges);
    hash = hash_more(hash, &note->unit_uid, sizeof note->unit_uid);
    hash = hash_text(hash, intern_slice(note->job));
    hash = hash_text(hash, intern_slice(note->node));
    hash = hash_text(hash, intern_slice(note->unit));
    hash = hash_text(hash, note_type(note));
    hash = hash_text(hash, note_text(note));
    return hash_folded(hash_text(hash, note_reason(note)));
}

static int compare_sources(string_id a, string_id b) {
    if (a == STRING_REFUSED || b == STRING_REFUSED)
        return COMPARE(a, b);
    return compare_strings(a, b);
}

static int compare_ranges(const struct exit_note *a, const struct exit_note *b) {
    int order = COMPARE(a->range_count, b->range_count);
    for (uint32_t i = 0; i < a->range_count && order == 0; i++)
        order = COMPARE_KEYS(COMPARE(a->ranges[i].first, b->ranges[i].first),
                             COMPARE(a->ranges[i].last, b->ranges[i].last));
    return order;
}

int exit_notes_compare(const struct exit_note *a, const struct exit_note *b) {
    int order = COMPARE(a->time_ns, b->time_ns);
    if (order == 0)
        order = compare_strings(a->node, b->node);
    if (order == 0)
        order = COMPARE_KEYS(COMPARE(a->rank, b->rank), COMPARE(a->local_rank, b->local_rank),
                             COMPARE(a->pid, b->pid), COMPARE(a->key.kind, b->key.kind));
    if (order == 0)
        order = COMPARE_KEYS(slice_compare(note_type(a), note_type(b)),
                             slice_compare(note_text(a), note_text(b)));
    if (order == 0)
        order = COMPARE_KEYS(COMPARE(note_position(a), note_position(b)),
                             compare_sources(a->key.source, b->key.source),
                             COMPARE(a->task, b->task), COMPARE(a->signal, b->signal),
                             COMPARE(a->exit_code, b->exit_code), COMPARE(a->attempt, b->attempt));
    if (order != 0)
        return order;
    return COMPARE_KEYS(COMPARE(a->flags, b->flags), COMPARE(a->slack_ns, b->slack_ns),
                        slice_compare(note_reason(a), note_reason(b)), compare_ranges(a, b),
                        compare_strings(a->unit, b->unit), compare_strings(a->job, b->job),
                        COMPARE(a->container, b->container),
                        memcmp(&a->unit_uid, &b->unit_uid, sizeof a->unit_uid));
}

// Of what is told again and again: of an object the first time counts, of a line without a time
// when it was read last; of two that were told at one time, the lesser.
static bool is_known(const struct exit_note *known, const struct exit_note *told) {
    if (known->key.source != STRING_NONE && known->time_ns != told->time_ns)
        return known->time_ns > told->time_ns;
    return exit_notes_compare(known, told) <= 0;
}

static void keep_note(struct exit_notes *notes, struct exit_note *told, struct arena *scratch) {
    if (told->key.source != STRING_NONE)
        told->key.what = what_of(told);
    const struct exit_note *known = keyed_rows_find(&notes->notes, &told->key);
    if (known != NULL && is_known(known, told))
        return;
    struct exit_note *note = row_bound_take(&notes->notes, &notes->note_bound, &told->key,
                                            offsetof(struct exit_note, time_ns), scratch);
    told->head = note->head;
    *note = *told;
}

// Who waited too long says for whom.
static bool names_missing(const struct observation *observation, bool victim) {
    bool waited = observation->kind == OBSERVATION_EXCEPTION ||
                  observation->kind == OBSERVATION_COLLECTIVE_TIMEOUT;
    return victim && waited && number_of(observation, FACT_PEER_RANK) >= 0;
}

static void take_observation(struct exit_notes *notes, const struct event *event,
                             struct arena *scratch) {
    const struct observation *observation = event->observation;
    enum telling_kind tells = kind_tells(observation->kind);
    if (tells == TELLS_NOTHING || !is_of_interest(observation))
        return;
    bool victim = observation_is(observation, FACT_VICTIM, tells == TELLS_OF_VICTIM);
    struct exit_note told = {.key = key_of(event)};
    fill_note(&told, event, victim, scratch);
    keep_note(notes, &told, scratch);
    if (!names_missing(observation, victim))
        return;
    told.key.kind = OBSERVATION_PEER_LOST;
    told.type_size = told.text_size = 0;
    told.reason_size =
        put_text(told.reason, NOTE_REASON_MAX, SLICE("did not come to the barrier in time"));
    tell_of_peer(&told, observation);
    keep_note(notes, &told, scratch);
}

// Events about pods of which no object needs to be there: that their node is not ready, that the
// scheduler wanted their place for another.
static void take_pod_event(struct exit_notes *notes, const struct event *event,
                           struct arena *scratch) {
    const struct kubernetes_object *object = event->kubernetes;
    bool is_lost = slice_equal(object->reason, SLICE("NodeNotReady"));
    if (object->kind != KUBERNETES_EVENT || !slice_equal(object->object_kind, SLICE("Pod")) ||
        (!is_lost && !slice_equal(object->reason, SLICE("Preempted"))))
        return;
    string_id unit = unit_of(object->object_namespace, object->object_name, scratch);
    enum observation_kind kind = is_lost ? OBSERVATION_NODE_CONDITION : OBSERVATION_POD_DISRUPTION;
    if (unit == STRING_NONE || unit == STRING_REFUSED)
        return;
    uint64_t position = hash_slice(intern_slice(unit));
    position = hash_more(position, &event->time_ns, sizeof event->time_ns);
    struct exit_note_key key = {STRING_NONE, (uint32_t)(position >> 32), (uint32_t)position, kind,
                                0};
    if (keyed_rows_find(&notes->notes, &key) != NULL)
        return;
    struct exit_note *note = row_bound_take(&notes->notes, &notes->note_bound, &key,
                                            offsetof(struct exit_note, time_ns), scratch);
    note->time_ns = event->time_ns;
    note->slack_ns = object->whole_seconds ? UINT64_C(1000000000) : 0;
    note->unit = unit;
    note->pid = -1;
    note->rank = RANK_NONE;
    note->local_rank = note->task = note->signal = note->exit_code = note->attempt = -1;
    note->reason_size = put_text(note->reason, NOTE_REASON_MAX, object->reason);
}

void exit_notes_take(struct exit_notes *notes, const struct event *event, struct arena *scratch) {
    gpu_names_take(&notes->gpus, event, scratch);
    switch (event->kind) {
    case EVENT_OBSERVATION:
        progress_log_take(&notes->progress, event, scratch);
        take_observation(notes, event, scratch);
        break;
    case EVENT_RANK_MAP:
        take_place(notes, event, scratch);
        break;
    case EVENT_TELEMETRY:
        take_telemetry(notes, event, scratch);
        break;
    case EVENT_KUBERNETES:
        pod_map_take(&notes->pods, event, scratch);
        take_pod_event(notes, event, scratch);
        break;
    case EVENT_KERNEL:
        xid_log_take(&notes->xids, event, NULL, scratch);
        break;
    default:
        break;
    }
}
