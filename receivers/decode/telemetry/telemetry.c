// SPDX-License-Identifier: Apache-2.0
// Decodes stormlog telemetry records.
//
// A record is first scanned as a whole (record.c), because broken JSON comes before every
// other fault and the last of a repeated key counts. Then its values are checked in the reference's
// order (check.c, legacy.c). Names become numbers last, so that a refused
// record adds none. Takes one struct telemetry from the arena, decoded texts when there are
// escapes, and nothing else.
#include "receivers/decode/telemetry/telemetry.h"

#include "receivers/decode/json/fault.h"
#include "receivers/decode/telemetry/phase.h"
#include "receivers/decode/telemetry/template.h"

enum decode_category telemetry_name(struct telemetry_state *state, enum name_memo memo,
                                    struct slice text, struct slice field, string_id *id,
                                    struct decode_fault *fault) {
    struct known_name *known = &state->names[memo];
    if (known->id != STRING_NONE && slice_equal(known->text, text)) {
        *id = known->id;
        return DECODE_OK;
    }
    enum decode_category category = fault_intern(fault, field, text, id);
    if (category != DECODE_OK)
        return category;
    *known = (struct known_name){intern_slice(*id), *id};
    return DECODE_OK;
}

// "sample" in any ASCII case; U+017F, the long s, folds to s as well.
static bool is_sample(struct slice event_type) {
    static const char rest[] = "ample";
    const char *at = event_type.data;
    size_t first = event_type.size == 7 && memcmp(at, "\xc5\xbf", 2) == 0 ? 2 : 1;
    if (event_type.size != first + 5 || (first == 1 && (at[0] | 0x20) != 's'))
        return false;
    for (size_t i = 0; i < 5; i++) {
        if ((at[first + i] | 0x20) != rest[i])
            return false;
    }
    return true;
}

enum decode_category telemetry_read_phase(struct telemetry *telemetry, struct slice event_type,
                                          const struct metadata_scan *metadata, struct arena *arena,
                                          struct decode_fault *fault) {
    telemetry->scope = NULL;
    telemetry->type = TELEMETRY_OTHER;
    if (is_sample(event_type))
        telemetry->type = TELEMETRY_SAMPLE;
    else if (slice_equal(event_type, SLICE("phase_enter")))
        telemetry->type = TELEMETRY_PHASE_ENTER;
    else if (slice_equal(event_type, SLICE("phase_exit")))
        telemetry->type = TELEMETRY_PHASE_EXIT;
    bool boundary =
        telemetry->type == TELEMETRY_PHASE_ENTER || telemetry->type == TELEMETRY_PHASE_EXIT;
    if (!boundary || (metadata->seen & METADATA_SCOPE) == 0)
        return DECODE_OK;
    return phase_scope_read(&metadata->scope, telemetry->type == TELEMETRY_PHASE_ENTER, arena,
                            &telemetry->scope, fault);
}

// A record that is not like the ones before it.
static enum decode_category decode_generally(struct telemetry_state *state, struct slice record,
                                             struct arena *arena, struct telemetry *telemetry,
                                             struct decode_fault *fault) {
    enum decode_category category = telemetry_record_scan(state, record, fault);
    if (category != DECODE_OK)
        return category;
    if ((state->seen & FIELD_BIT(FIELD_SCHEMA_VERSION)) == 0)
        return telemetry_legacy(state, record, arena, telemetry, fault);
    category = telemetry_check(state, record, arena, telemetry, fault);
    if (category == DECODE_OK)
        telemetry_template_learn(state, record, telemetry);
    return category;
}

static void fill(struct event *event, const struct telemetry *telemetry) {
    event->kind = EVENT_TELEMETRY;
    event->time_ns = telemetry->timestamp_ns;
    event->job = telemetry->job;
    event->node = telemetry->host;
    event->rank = telemetry->rank;
    event->telemetry = telemetry;
}

static enum decode_category decode(void *memory, struct slice record, struct arena *arena,
                                   struct event *event, struct decode_fault *fault) {
    struct telemetry_state *state = memory;
    struct telemetry *telemetry = arena_take(arena, sizeof *telemetry);
    if (!telemetry_template_decode(state, record, arena, telemetry)) {
        enum decode_category category = decode_generally(state, record, arena, telemetry, fault);
        if (category != DECODE_OK)
            return category;
    }
    fill(event, telemetry);
    fault->category = DECODE_OK;
    return DECODE_OK;
}

// A record with schema_version has no key but those of telemetry, so that none which is taken can
// be of another kind. Old ones have hardly a key that they must have: only templates, which are
// made of the others, tell them.
static bool decode_plain(void *memory, struct slice record, struct arena *arena,
                         struct event *event) {
    static const struct slice begin = SLICE("{\"schema_version\""); // as stormlog writes it
    struct telemetry_state *state = memory;
    struct telemetry *telemetry = arena_take(arena, sizeof *telemetry);
    if (!telemetry_template_decode(state, record, arena, telemetry)) {
        struct decode_fault ignored;
        if (record.size < begin.size || memcmp(record.data, begin.data, begin.size) != 0 ||
            decode_generally(state, record, arena, telemetry, &ignored) != DECODE_OK)
            return false;
    }
    fill(event, telemetry);
    return true;
}

static bool settle_name(string_id *id, const string_id *names) {
    if (intern_is_later(*id))
        *id = names[*id - INTERN_LATER_FIRST];
    return *id != STRING_REFUSED;
}

bool telemetry_settle_names(struct event *event, const string_id *names) {
    assert(event->kind == EVENT_TELEMETRY);
    // Both were made by decode_plain in an arena, and nobody else has seen them yet.
    struct telemetry *telemetry = (struct telemetry *)(uintptr_t)event->telemetry;
    struct phase_scope *scope = (struct phase_scope *)(uintptr_t)telemetry->scope;
    string_id *ids[] = {&telemetry->event_type, &telemetry->collector, &telemetry->host,
                        &telemetry->job, &telemetry->session};
    bool all = true;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        all = settle_name(ids[i], names) && all;
    if (scope != NULL)
        all = settle_name(&scope->label, names) && settle_name(&scope->thread_name, names) && all;
    event->job = telemetry->job;
    event->node = telemetry->host;
    return all;
}

const struct decoder_type decoder_stormlog = {
    .name = "stormlog",
    .state_size = sizeof(struct telemetry_state),
    .decode = decode,
    .decode_plain = decode_plain,
};
