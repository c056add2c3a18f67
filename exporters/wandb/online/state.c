// SPDX-License-Identifier: Apache-2.0
// Keeps what must be known after a restart, so that open runs go on where they were.
//
// One JSON array a run, some 150 bytes: its names, where its rows go and how many there were. Its
// summary is the server's to remember.
#include "exporters/wandb/online/online.h"

#include "exporters/wandb/online/parts.h"
#include "exporters/wandb/record.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>

// A run's members behind its four names, in order. Numbers that JSON readers would round are texts.
static const struct {
    size_t offset;
    enum { NUMBER, UINT_TEXT, DOUBLE_TEXT } kind;
} members[] = {
    {offsetof(struct wandb_run, incarnation), UINT_TEXT},
    {offsetof(struct wandb_run, start_ns), UINT_TEXT},
    {offsetof(struct wandb_run, line_base), NUMBER},
    {offsetof(struct wandb_run, step_base), NUMBER},
    {offsetof(struct wandb_run, runtime_base), DOUBLE_TEXT},
    {offsetof(struct wandb_run, known_until), DOUBLE_TEXT},
    {offsetof(struct wandb_run, place.rows), NUMBER},
    {offsetof(struct wandb_run, place.skipped), NUMBER},
    {offsetof(struct wandb_run, dropped), NUMBER},
};
enum { NAMES = 4, MEMBERS = sizeof members / sizeof members[0] };

static void uint_text(struct json_writer *json, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    json_text(json, text);
}

static void run_append(struct json_writer *json, const struct wandb_run *run) {
    const char *const names[NAMES] = {run->id, run->entity, run->project, run->name};
    json_array_open(json);
    for (int i = 0; i < NAMES; i++)
        json_text(json, names[i] == NULL ? "" : names[i]);
    for (size_t i = 0; i < MEMBERS; i++) {
        const void *member = (const char *)run + members[i].offset;
        char text[40];
        if (members[i].kind == NUMBER) {
            json_int(json, *(const int64_t *)member);
        } else if (members[i].kind == UINT_TEXT) {
            uint_text(json, *(const uint64_t *)member);
        } else {
            snprintf(text, sizeof text, "%.17g", *(const double *)member);
            json_text(json, text);
        }
    }
    json_array_close(json);
}

void wandb_place_id(const struct wandb_config *config, char id[DIGEST_ID_SIZE]) {
    const char *texts[] = {config->base_url, config->entity, config->project};
    struct slice parts[3];
    for (unsigned i = 0; i < 3; i++)
        parts[i] = slice_of(texts[i] == NULL ? "" : texts[i]);
    digest_id(parts, 3, id);
}

void wandb_online_delivered(const struct wandb_online *online, struct buffer *out) {
    struct json_writer json;
    json_begin(&json, out, 0);
    json_object_open(&json);
    json_key(&json, "sequence");
    uint_text(&json, online->done);
    json_field_text(&json, "place", online->place);
    json_field_array_open(&json, "runs");
    for (uint32_t i = 0; i < online->run_count; i++)
        if ((online->runs[i]->name != NULL || online->runs[i]->moved) && !online->runs[i]->finished)
            run_append(&json, online->runs[i]);
    json_array_close(&json);
    json_object_close(&json);
}

static uint64_t uint_of(const json_t *value) {
    const char *text = json_string_value(value);
    return text == NULL ? 0 : strtoull(text, NULL, 10);
}

static bool run_take(struct wandb_online *online, const json_t *from, bool moved) {
    struct slice names[NAMES];
    if (json_array_size(from) != NAMES + MEMBERS || online->run_count == online->run_max)
        return false;
    for (size_t i = 0; i < NAMES; i++) {
        const json_t *name = json_array_get(from, i);
        if (!json_is_string(name))
            return false;
        names[i] = (struct slice){json_string_value(name), json_string_length(name)};
    }
    if (names[0].size == 0 || names[0].size > WANDB_RUN_ID_MAX)
        return false;
    struct wandb_run *run = wandb_online_add_run(online, names[0]);
    // Without names it had moved before, and the server was not asked since.
    run->moved = moved || names[3].size == 0;
    char **const kept[NAMES] = {NULL, &run->entity, &run->project, &run->name};
    for (size_t i = 1; i < NAMES && !run->moved; i++)
        *kept[i] = memory_copy_text(names[i].data, names[i].size);
    for (size_t i = 0; i < MEMBERS; i++) {
        const json_t *value = json_array_get(from, NAMES + i);
        const char *text = json_string_value(value);
        void *member = (char *)run + members[i].offset;
        if (members[i].kind == DOUBLE_TEXT)
            *(double *)member = text == NULL ? 0 : strtod(text, NULL);
        else
            *(uint64_t *)member =
                members[i].kind == UINT_TEXT ? uint_of(value) : (uint64_t)json_integer_value(value);
    }
    run->done = run->alerts_done = run->artifacts_done = run->files_done = run->stream_done =
        online->done;
    return true;
}

enum status wandb_online_resume(struct wandb_online *online, struct slice delivered,
                                struct error *error) {
    json_t *kept = json_loadb(delivered.data, delivered.size, 0, NULL);
    if (!json_is_object(kept)) {
        json_decref(kept);
        return error_set(error, STATUS_BAD_DATA,
                         "what was kept of how far delivery to W&B had come is damaged");
    }
    online->done = uint_of(json_object_get(kept, "sequence"));
    const json_t *runs = json_object_get(kept, "runs");
    const char *kept_place = json_string_value(json_object_get(kept, "place"));
    bool moved = kept_place == NULL || strcmp(kept_place, online->place) != 0;
    bool good = true;
    for (size_t i = 0; i < json_array_size(runs); i++)
        good = run_take(online, json_array_get(runs, i), moved) && good;
    json_decref(kept);
    return good ? STATUS_OK
                : error_set(error, STATUS_BAD_DATA, "what was kept of open W&B runs is damaged");
}
