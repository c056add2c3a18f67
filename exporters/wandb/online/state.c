// SPDX-License-Identifier: Apache-2.0
// What must be known after a restart, so that open runs go on where they were?
//
// One JSON array a run, some 150 bytes: its names, where its rows go and how many there were. Its
// summary is the server's to remember.
#include "exporters/wandb/online/parts.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>

enum { RUN_MEMBERS = 13 };

static void uint_text(struct json_writer *json, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    json_text(json, text);
}

static void double_text(struct json_writer *json, double value) {
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    json_text(json, text);
}

static void run_append(struct json_writer *json, const struct wandb_run *run) {
    json_array_open(json);
    json_text(json, run->id);
    json_text(json, run->entity == NULL ? "" : run->entity);
    json_text(json, run->project == NULL ? "" : run->project);
    json_text(json, run->name == NULL ? "" : run->name);
    uint_text(json, run->incarnation);
    uint_text(json, run->start_ns);
    json_int(json, run->line_base);
    json_int(json, run->step_base);
    double_text(json, run->runtime_base);
    double_text(json, run->known_until);
    json_uint(json, run->place.rows);
    json_uint(json, run->place.skipped);
    json_uint(json, run->dropped);
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
    json_key(&json, "place");
    json_text(&json, online->place);
    json_key(&json, "runs");
    json_array_open(&json);
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

static double double_of(const json_t *value) {
    const char *text = json_string_value(value);
    return text == NULL ? 0 : strtod(text, NULL);
}

static char *text_of(const json_t *value) {
    return memory_copy_text(json_string_value(value), json_string_length(value));
}

static bool run_take(struct wandb_online *online, const json_t *from, bool moved) {
    if (json_array_size(from) != RUN_MEMBERS || online->run_count == online->run_max)
        return false;
    const json_t *member[RUN_MEMBERS];
    for (size_t i = 0; i < RUN_MEMBERS; i++)
        member[i] = json_array_get(from, i);
    for (unsigned i = 0; i < 4; i++)
        if (!json_is_string(member[i]))
            return false;
    struct slice id = {json_string_value(member[0]), json_string_length(member[0])};
    struct wandb_run *run = wandb_online_add_run(online, id);
    // Without names it had moved before, and the server was not asked since.
    run->moved = moved || json_string_length(member[3]) == 0;
    if (!run->moved) {
        run->entity = text_of(member[1]);
        run->project = text_of(member[2]);
        run->name = text_of(member[3]);
    }
    run->incarnation = uint_of(member[4]);
    run->start_ns = uint_of(member[5]);
    run->line_base = json_integer_value(member[6]);
    run->step_base = json_integer_value(member[7]);
    run->runtime_base = double_of(member[8]);
    run->known_until = double_of(member[9]);
    run->place.rows = (uint64_t)json_integer_value(member[10]);
    run->place.skipped = (uint64_t)json_integer_value(member[11]);
    run->dropped = (uint64_t)json_integer_value(member[12]);
    run->done = run->artifacts_done = run->files_done = run->stream_done = online->done;
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
