// SPDX-License-Identifier: Apache-2.0
// Decodes records that are the same as the ones before them, but for a few values.
//
// Runs are compared block by block; the values between them are read into a copy of the
// template's. A field is found to change when a general decode shows another value than the
// template has, and changes from then on. Control flow is the same for each record of a source that
// fits, which is what makes it fast. A template survives single records of another layout; one that
// fails often is learnt anew, after a wait that doubles each time, so that a source without order
// costs no more than the general way. Memory: the text of the runs, at most TEMPLATE_TEXT_MAX.
#include "receivers/decode/telemetry/template.h"

#include "base/simd.h"
#include "receivers/decode/json/text.h"
#include "receivers/decode/telemetry/walk.h"

#include <assert.h>
#include <stddef.h>

enum { DELAY_MAX = 255, SCORE_MAX = 32, SCORE_MISS = 8 };

#define NAME_FIELDS                                                                                \
    (FIELD_BIT(FIELD_SESSION_ID) | FIELD_BIT(FIELD_EVENT_TYPE) | FIELD_BIT(FIELD_COLLECTOR) |      \
     FIELD_BIT(FIELD_HOST) | FIELD_BIT(FIELD_JOB_ID))

#define NUMBER(member, min)                                                                        \
    { CLASS_NUMBER, 0, 0, (uint16_t)offsetof(struct telemetry, member), 0, min }
#define RANK(member, min)                                                                          \
    { CLASS_RANK, 0, 0, (uint16_t)offsetof(struct telemetry, member), 0, min }
#define COUNTER(member, counter, nullable, min)                                                    \
    { CLASS_NUMBER, nullable, 0, (uint16_t)offsetof(struct telemetry, member), counter, min }
#define NAME(member, memo)                                                                         \
    { CLASS_NAME, 0, memo, (uint16_t)offsetof(struct telemetry, member), 0, 0 }

const struct value_rule telemetry_value_rules[FIELD_COUNT] = {
    [FIELD_SCHEMA_VERSION] = {CLASS_NEVER, 0, 0, 0, 0, 0},
    [FIELD_SESSION_ID] = NAME(session, NAME_SESSION),
    [FIELD_TIMESTAMP_NS] = NUMBER(timestamp_ns, 0),
    [FIELD_EVENT_TYPE] = NAME(event_type, NAME_EVENT_TYPE),
    [FIELD_COLLECTOR] = NAME(collector, NAME_COLLECTOR),
    [FIELD_SAMPLING_INTERVAL_MS] = NUMBER(sampling_interval_ms, 0),
    [FIELD_PID] = NUMBER(pid, -1),
    [FIELD_HOST] = NAME(host, NAME_HOST),
    [FIELD_DEVICE_ID] = NUMBER(device_id, INT64_MIN),
    [FIELD_ALLOCATED] = COUNTER(allocated_bytes, COUNTER_ALLOCATED, 4, 0),
    [FIELD_RESERVED] = COUNTER(reserved_bytes, COUNTER_RESERVED, 4, 0),
    [FIELD_ACTIVE] = COUNTER(active_bytes, COUNTER_ACTIVE, 1, 0),
    [FIELD_INACTIVE] = COUNTER(inactive_bytes, COUNTER_INACTIVE, 1, 0),
    [FIELD_CHANGE] = COUNTER(change_bytes, COUNTER_CHANGE, 4, INT64_MIN),
    [FIELD_DEVICE_USED] = COUNTER(device_used_bytes, COUNTER_DEVICE_USED, 4, 0),
    [FIELD_DEVICE_FREE] = COUNTER(device_free_bytes, COUNTER_DEVICE_FREE, 1, 0),
    [FIELD_DEVICE_TOTAL] = COUNTER(device_total_bytes, COUNTER_DEVICE_TOTAL, 1, 0),
    [FIELD_CONTEXT] = {CLASS_CONTEXT, 0, 0, 0, 0, 0},
    [FIELD_METADATA] = {CLASS_METADATA, 0, 0, 0, 0, 0},
    [FIELD_JOB_ID] = NAME(job, NAME_JOB),
    [FIELD_RANK] = RANK(rank, 0),
    [FIELD_LOCAL_RANK] = RANK(local_rank, 0),
    [FIELD_WORLD_SIZE] = RANK(world_size, 1),
};

static inline const char *stands_at(const struct replay *replay, enum telemetry_field field) {
    const struct template_place *place = &replay->state->template.places[field];
    return replay->run_starts[place->run] + place->offset;
}

// Texts that did not change point into this record now.
static void point_texts(const struct replay *replay) {
    const struct telemetry_template *template = &replay->state->template;
    struct telemetry *telemetry = replay->telemetry;
    if ((template->changing & FIELD_BIT(FIELD_CONTEXT)) == 0 && telemetry->context.data != NULL)
        telemetry->context.data = stands_at(replay, FIELD_CONTEXT) + 1;
    if ((template->changing & FIELD_BIT(FIELD_METADATA)) == 0)
        telemetry->metadata.data = stands_at(replay, FIELD_METADATA);
    if ((template->seen & FIELD_BIT(FIELD_LOCAL_RANK)) == 0)
        telemetry->local_rank = telemetry->rank;
}

// What holds between fields; each by itself was looked at when it was read.
static bool is_consistent(const struct replay *replay) {
    struct telemetry_state *state = replay->state;
    const struct telemetry *telemetry = replay->telemetry;
    bool has_total = (telemetry->null_counters & COUNTER_DEVICE_TOTAL) == 0;
    bool within = (telemetry->device_used_bytes <= telemetry->device_total_bytes) &
                  (telemetry->device_free_bytes <= telemetry->device_total_bytes);
    bool ranks =
        (telemetry->rank < telemetry->world_size) & (telemetry->local_rank < telemetry->world_size);
    if (!ranks || (has_total && !within))
        return false;
    uint32_t present = COUNTERS_ALL & ~telemetry->null_counters;
    if (replay->metadata_read) {
        struct decode_fault ignored;
        return metadata_check_capabilities(&state->metadata, present, &state->capabilities,
                                           replay->arena, &ignored) == DECODE_OK;
    }
    uint32_t supported = state->template.supported;
    if (state->template.inferred)
        supported = metadata_infer_supported(present);
    return (present & ~supported) == 0;
}

// Those that memory was asked for are no longer compared with the last ones, but remembered.
static string_id take_expected(const struct replay *replay, uint8_t memo) {
    assert((replay->expected & 1u << memo) != 0);
    struct slice text = token_slice(&replay->names[memo]);
    string_id id = intern_expected(&text, replay->hashes[memo]);
    if (id == STRING_REFUSED)
        return id;
    struct known_name *known = &replay->state->names[memo];
    bool lasting = !intern_is_later(id) && !intern_is_later(known->id) && known->id != STRING_NONE;
    replay->state->next_names[memo] = lasting ? intern_follow(known->text, text) : NULL;
    *known = (struct known_name){text, id};
    return id;
}

static bool take_names(const struct replay *replay) {
    struct telemetry_state *state = replay->state;
    struct decode_fault ignored;
    uint32_t names = state->template.changing & state->template.seen & NAME_FIELDS;
    for (; names != 0; names &= names - 1) {
        const struct value_rule *rule = &telemetry_value_rules[__builtin_ctz(names)];
        string_id id;
        if ((replay->known & 1u << rule->name) != 0)
            continue;
        if ((replay->expected & 1u << rule->name) != 0) {
            id = take_expected(replay, rule->name);
            if (id == STRING_REFUSED)
                return false;
        } else {
            struct slice text = token_decode(&replay->names[rule->name], replay->arena);
            if (telemetry_name(state, rule->name, text, SLICE(""), &id, &ignored) != DECODE_OK)
                return false;
        }
        memcpy((char *)replay->telemetry + rule->offset, &id, sizeof id);
    }
    return true;
}

static bool read_phase(const struct replay *replay) {
    struct telemetry_state *state = replay->state;
    struct telemetry *telemetry = replay->telemetry;
    const struct telemetry *learnt = &state->template.values;
    struct decode_fault ignored;
    if (telemetry->event_type == learnt->event_type && learnt->type != TELEMETRY_PHASE_ENTER &&
        learnt->type != TELEMETRY_PHASE_EXIT)
        return true;
    if (!replay->metadata_read) {
        struct json_fault json;
        const char *at = telemetry->metadata.data;
        if (metadata_scan(at, at + telemetry->metadata.size, &state->capabilities, &state->metadata,
                          &json) == NULL)
            return false;
    }
    return telemetry_read_phase(telemetry, intern_slice(telemetry->event_type), &state->metadata,
                                replay->arena, &ignored) == DECODE_OK;
}

static bool walk(struct replay *replay) {
#ifdef __x86_64__
    switch (simd_level()) {
    case SIMD_AVX512:
        return telemetry_walk_avx512(replay);
    case SIMD_AVX2:
        return telemetry_walk_avx2(replay);
    default:
        break;
    }
#endif
    return telemetry_walk_baseline(replay);
}

bool telemetry_template_decode(struct telemetry_state *state, struct slice record,
                               struct arena *arena, struct telemetry *telemetry) {
    struct telemetry_template *template = &state->template;
    if (!template->ready || record.size < WALK_RECORD_MIN)
        return false;
    struct replay replay;
    replay.state = state;
    replay.arena = arena;
    replay.telemetry = telemetry;
    replay.begin = record.data;
    replay.end = record.data + record.size;
    replay.metadata_read = false;
    replay.expected = 0;
    replay.known = 0;
    bool fits = walk(&replay);
    if (fits)
        point_texts(&replay);
    fits = fits && is_consistent(&replay) && take_names(&replay) && read_phase(&replay);
    if (fits && template->score < SCORE_MAX && ++template->score == SCORE_MAX)
        template->delay = 0;
    return fits;
}

// The value of a field as it stands in the record, quotes included.
static struct slice written_value(const struct telemetry_state *state, enum telemetry_field field) {
    const struct token *token = &state->tokens[field];
    if (field == FIELD_METADATA)
        return state->metadata.text;
    if (token->kind != TOKEN_STRING)
        return token_slice(token);
    return (struct slice){token->text - 1, token->size + 2};
}

static uint32_t find_changes(const struct telemetry_state *state) {
    const struct telemetry_template *template = &state->template;
    uint32_t changing = template->changing;
    for (uint32_t left = template->seen & state->seen & ~changing; left != 0; left &= left - 1) {
        unsigned field = (unsigned)__builtin_ctz(left);
        const struct template_place *place = &template->places[field];
        const char *text = template->text + template->runs[place->run].start + place->offset;
        if (!slice_equal(written_value(state, field), (struct slice){text, place->size}))
            changing |= FIELD_BIT(field);
    }
    return changing;
}

// The fields in the order in which they stand; false when a key came twice.
static bool list_fields(const struct telemetry_state *state, uint8_t order[FIELD_COUNT],
                        unsigned *count) {
    const char *last = NULL;
    unsigned field = FIELD_START;
    *count = 0;
    for (uint32_t left = state->seen; left != 0; left &= ~FIELD_BIT(field)) {
        field = state->next_field[field];
        const char *text = written_value(state, field).data;
        if ((left & FIELD_BIT(field)) == 0 || (last != NULL && text <= last))
            return false;
        last = text;
        order[(*count)++] = (uint8_t)field;
    }
    return true;
}

static struct template_run run_before(unsigned field) {
    struct template_run run = {.field = (uint8_t)field, .offset = RUN_NO_OFFSET};
    if (field == FIELD_UNKNOWN)
        return run;
    const struct value_rule *rule = &telemetry_value_rules[field];
    run.is_number = rule->class == CLASS_NUMBER || rule->class == CLASS_RANK;
    if (rule->class == CLASS_NUMBER && rule->min <= 0)
        run.offset = rule->offset;
    return run;
}

// Appends a run of text that stays; false when there is no room.
static bool add_run(struct telemetry_template *template, const char *text, const char *end,
                    unsigned field, size_t *used) {
    assert(text != NULL && end >= text);
    size_t size = (size_t)(end - text);
    if (*used + size > TEMPLATE_TEXT_MAX)
        return false;
    memcpy(template->text + *used, text, size);
    struct template_run *run = &template->runs[template->run_count++];
    *run = run_before(field);
    run->start = (uint16_t)*used;
    run->size = (uint16_t)size;
    *used += size;
    return true;
}

static bool cut_record(struct telemetry_state *state, struct slice record) {
    assert(state->seen != 0);
    struct telemetry_template *template = &state->template;
    uint8_t order[FIELD_COUNT];
    unsigned count;
    size_t used = 0;
    const char *run = record.data;
    if (!list_fields(state, order, &count))
        return false;
    template->run_count = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned field = order[i];
        struct slice value = written_value(state, field);
        size_t offset = (size_t)(value.data - run);
        if ((template->changing & FIELD_BIT(field)) != 0) {
            if (!add_run(template, run, value.data, field, &used))
                return false;
            run = value.data + value.size;
        } else {
            if (offset + value.size > TEMPLATE_TEXT_MAX)
                return false;
            template->places[field] = (struct template_place){template->run_count, (uint16_t)offset,
                                                              (uint16_t)value.size};
        }
    }
    return add_run(template, run, record.data + record.size, FIELD_UNKNOWN, &used);
}

// Forgets in the copy what a changing field will say again.
static void clear_changing(struct telemetry_template *template) {
    for (uint32_t left = template->changing & template->seen; left != 0; left &= left - 1)
        template->values.null_counters &= ~telemetry_value_rules[__builtin_ctz(left)].counter;
    template->values.scope = NULL;
}

static bool learn(struct telemetry_state *state, struct slice record,
                  const struct telemetry *telemetry) {
    struct telemetry_template *template = &state->template;
    const struct token *session = &state->tokens[FIELD_SESSION_ID];
    template->session_from_metadata =
        (state->seen & FIELD_BIT(FIELD_SESSION_ID)) == 0 || session->kind == TOKEN_NULL;
    bool metadata_changes = (template->changing & FIELD_BIT(FIELD_METADATA)) != 0;
    if (template->session_from_metadata && metadata_changes && telemetry->session != STRING_NONE)
        return false;
    template->seen = state->seen;
    template->inferred = (state->metadata.seen & METADATA_CAPABILITIES) == 0;
    template->supported = state->metadata.supported;
    template->values = *telemetry;
    template->score = 0;
    clear_changing(template);
    return cut_record(state, record);
}

// True when learning has to wait: the template is kept in spite of a miss, or given up and the next
// one is not due yet.
static bool must_wait(struct telemetry_template *template) {
    if (template->ready) {
        template->score -= SCORE_MISS;
        if (template->score >= 0)
            return true;
        template->countdown = template->delay;
        template->delay = template->delay * 2 + 1 > DELAY_MAX ? DELAY_MAX : template->delay * 2 + 1;
        template->ready = false;
    }
    if (template->countdown == 0)
        return false;
    template->countdown--;
    return true;
}

void telemetry_template_learn(struct telemetry_state *state, struct slice record,
                              const struct telemetry *telemetry) {
    struct telemetry_template *template = &state->template;
    uint32_t changing = find_changes(state);
    // More fields that change, in the same layout: that can happen once a field only.
    bool grown = template->ready && changing != template->changing && state->seen == template->seen;
    if (!grown && must_wait(template))
        return;
    template->changing = changing;
    // A text with escapes lies decoded in one batch's arena: it has to be read each time.
    if (state->tokens[FIELD_CONTEXT].kind == TOKEN_STRING && state->tokens[FIELD_CONTEXT].escaped)
        template->changing |= FIELD_BIT(FIELD_CONTEXT);
    template->ready = learn(state, record, telemetry);
    if (!template->ready) {
        template->seen = 0;
        template->countdown = DELAY_MAX;
    }
}
