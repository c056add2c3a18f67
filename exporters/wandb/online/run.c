// SPDX-License-Identifier: Apache-2.0
// Begins a run on the server, or continues it behind the rows that it has.
//
// It is asked first. A run that carries our incarnation in its config is gone on with from where
// its rows began; else ours are appended behind the rows that are there. Then the run is made, or
// opened again, with its names and config.
#include "exporters/wandb/online/parts.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "exporters/wandb/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CONFIG_MAX = 16 << 20 };

struct wandb_run *wandb_run_new(struct slice id) {
    assert(id.size > 0 && id.size <= WANDB_RUN_ID_MAX);
    struct wandb_run *run = memory_zero(1, sizeof *run);
    run->id = memory_copy_text(id.data, id.size);
    buffer_init(&run->old_config, CONFIG_MAX);
    buffer_init(&run->visualize, CONFIG_MAX);
    buffer_init(&run->settings, CONFIG_MAX);
    run->posted_ns = clock_monotonic_ns();
    return run;
}

void wandb_run_free(struct wandb_run *run) {
    assert(run->left_out_count <= WANDB_LEFT_OUT_MAX);
    memory_give(run->id);
    memory_give(run->entity);
    memory_give(run->project);
    memory_give(run->name);
    memory_give(run->server_id);
    memory_give(run->start);
    memory_give(run->tag);
    wandb_values_release(&run->summary);
    buffer_release(&run->old_config);
    buffer_release(&run->visualize);
    buffer_release(&run->settings);
    for (uint32_t i = 0; i < run->left_out_count; i++)
        memory_give(run->left_out[i].key);
    memory_give(run);
}

// -- what it has ----------------------------------------------------------------------------------

// What the server said of the run; texts live as long as `data`.
struct known_run {
    json_t *data;
    bool there;
    const char *id;
    int64_t lines;
    struct slice last_row, summary, config, ours; // insides of objects; `ours`: config.culprit
    bool is_ours, is_running;
    json_t *tail;
};

// Project, entity and run as the server named them, else as they are given.
static void put_names(struct wandb_query *query, const struct wandb_online *online,
                      const struct wandb_run *run, const char *const keys[3]) {
    const struct wandb_config *config = online->config;
    wandb_query_text(query, keys[0], run->project != NULL ? run->project : config->project);
    wandb_query_text(query, keys[1], run->entity != NULL ? run->entity : config->entity);
    wandb_query_text(query, keys[2], run->name != NULL ? run->name : run->id);
}

static enum wandb_answer ask_for_run(struct wandb_online *online, const struct wandb_run *run,
                                     json_t **data, struct error *error) {
    static const char document[] =
        "query($p:String,$e:String,$n:String!){model(name:$p,entityName:$e){"
        "bucket(name:$n,missingOk:true){id name state tags historyLineCount historyTail "
        "summaryMetrics "
        "config}}}";
    struct wandb_query query;
    wandb_query_begin(&query, "looking for the run", document);
    put_names(&query, online, run, (const char *const[]){"p", "e", "n"});
    return wandb_query_send(&online->client, &query, data, error);
}

static struct slice inside_of(const char *text) {
    return text == NULL ? (struct slice){"", 0} : wandb_object_inside(slice_of(text));
}

static void known_read(struct known_run *known) {
    const json_t *bucket = wandb_json_at(known->data, "model", "bucket", NULL);
    known->there = json_is_object(bucket);
    known->id = wandb_json_text(bucket, "id", NULL);
    known->lines = json_integer_value(json_object_get(bucket, "historyLineCount"));
    known->summary = inside_of(wandb_json_text(bucket, "summaryMetrics", NULL));
    known->config = inside_of(wandb_json_text(bucket, "config", NULL));
    struct slice ours = wandb_member_find(known->config, "culprit");
    const char *state = wandb_json_text(bucket, "state", NULL);
    known->is_ours = ours.size > 0;
    known->is_running = state != NULL && strcmp(state, "running") == 0;
    known->ours = wandb_object_inside(wandb_member_find(wandb_object_inside(ours), "value"));
    const char *tail = wandb_json_text(bucket, "historyTail", NULL);
    if (tail != NULL)
        known->tail = json_loads(tail, 0, NULL);
    size_t rows = json_array_size(known->tail);
    known->last_row =
        inside_of(rows == 0 ? NULL : json_string_value(json_array_get(known->tail, rows - 1)));
}

static void known_release(struct known_run *known) {
    json_decref(known->tail);
    json_decref(known->data);
}

static void replace_text(char **place, const char *text) {
    char *copy = text == NULL ? NULL : memory_copy_text(text, strlen(text));
    memory_give(*place);
    *place = copy;
}

// Anybody may have written these numbers: what cannot be is 0.
static double count_or_zero(struct slice members, const char *key) {
    double number = wandb_member_number_or(members, key, 0);
    return number > 0 && number < 1e15 ? number : 0;
}

// -- where our rows go ----------------------------------------------------------------------------

static void base_set_behind(struct wandb_run *run, const struct known_run *known,
                            bool skips_known) {
    double step = wandb_member_number_or(known->last_row, "_step", -1);
    run->line_base = known->lines;
    run->step_base = step >= 0 && step < 1e15 ? (int64_t)step + 1 : known->lines;
    run->runtime_base =
        count_or_zero(wandb_object_inside(wandb_member_find(known->summary, "_wandb")), "runtime");
    run->known_until = skips_known ? wandb_member_number_or(known->last_row, "_timestamp", 0) : 0;
}

// Whether the server's rows are of the start that the RUN names, or it names none.
static bool is_same_start(const struct known_run *known, struct slice start) {
    struct slice theirs = wandb_member_find(known->ours, "start");
    return start.size == 0 || (theirs.size == start.size + 2 &&
                               slice_equal((struct slice){theirs.data + 1, start.size}, start));
}

// False when the server does not know our incarnation.
static bool base_set_same(struct wandb_run *run, const struct known_run *known) {
    char text[24];
    snprintf(text, sizeof text, "\"%" PRIu64 "\"", run->incarnation);
    struct slice theirs = wandb_member_find(known->ours, "incarnation");
    if (run->incarnation == 0 || !slice_equal(theirs, slice_of(text)))
        return false;
    run->line_base = (int64_t)count_or_zero(known->ours, "history_base");
    run->step_base = (int64_t)count_or_zero(known->ours, "step_base");
    run->runtime_base = count_or_zero(known->ours, "runtime_base");
    run->known_until = count_or_zero(known->ours, "known_until");
    return true;
}

static void run_place(struct wandb_run *run, const struct wandb_record *begin,
                      const struct known_run *known) {
    assert(begin->sequence == 0 || begin->kind == WANDB_RUN);
    run->incarnation = begin->incarnation;
    run->start_ns = begin->time_ns;
    run->place = (struct wandb_place_in_run){.rows = begin->row};
    run->dropped = 0;
    if (!base_set_same(run, known)) {
        base_set_behind(run, known, begin->skips_known && is_same_start(known, begin->key));
        run->line_base -= (int64_t)begin->row;
        run->step_base -= (int64_t)begin->row;
    } else if (run->line_base + (int64_t)begin->row > known->lines) {
        run->line_base = known->lines - (int64_t)begin->row; // some were left out before
    }
    assert(run->place.skipped == 0 && run->dropped == 0);
    wandb_values_release(&run->summary);
    wandb_values_apply(&run->summary, known->summary, false);
}

// A run of before the last start, whose RUN record was carried out then.
static void run_place_again(struct wandb_online *online, struct wandb_run *run,
                            const struct known_run *known) {
    wandb_values_release(&run->summary);
    wandb_values_apply(&run->summary, known->summary, false);
    int64_t lines = (int64_t)(run->place.rows - run->place.skipped - run->dropped);
    if (run->moved) {
        base_set_behind(run, known, false);
        run->line_base -= lines;
        run->step_base -= (int64_t)(run->place.rows - run->place.skipped);
        return;
    }
    if (run->line_base + lines <= known->lines)
        return;
    log_write(LOG_WARN, (struct log_site){"C3406", online->site},
              "the server has %" PRId64 " rows of run %s where %" PRId64
              " were delivered; the run continues after them",
              known->lines, run->id, run->line_base + lines);
    run->line_base = known->lines - lines;
}

// -- telling it -----------------------------------------------------------------------------------

enum { TAGS_MAX = 256 };

static bool is_given(const struct text_list *tags, const char *tag) {
    for (uint32_t i = 0; i < tags->count; i++)
        if (strcmp(tags->items[i], tag) == 0)
            return true;
    return false;
}

static bool is_severity(const char *tag) {
    static const char *const tags[] = {"culprit-info", "culprit-warning", "culprit-error",
                                       "culprit-critical"};
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++)
        if (strcmp(tag, tags[i]) == 0)
            return true;
    return false;
}

// Those that are configured, the run's severity, and what else users gave it.
static void tags_append(struct wandb_query *query, const struct text_list *given,
                        struct slice severity, const json_t *old) {
    json_key(&query->json, "tags");
    if (given->count == 0 && severity.size == 0) {
        json_put_null(&query->json);
        return;
    }
    json_array_open(&query->json);
    for (uint32_t i = 0; i < given->count; i++)
        json_text(&query->json, given->items[i]);
    if (severity.size > 0)
        json_slice(&query->json, severity);
    for (size_t i = 0; i < json_array_size(old) && i < TAGS_MAX; i++) {
        const char *tag = json_string_value(json_array_get(old, i));
        if (tag != NULL && !is_given(given, tag) && !is_severity(tag))
            json_text(&query->json, tag);
    }
    json_array_close(&query->json);
}

static bool run_take_names(struct wandb_run *run, const json_t *data) {
    const json_t *bucket = wandb_json_at(data, "upsertBucket", "bucket", NULL);
    const char *name = wandb_json_text(bucket, "name", NULL);
    const char *project = wandb_json_text(bucket, "project", "name", NULL);
    const char *entity = wandb_json_text(bucket, "project", "entity", "name", NULL);
    if (name == NULL || project == NULL || entity == NULL)
        return false;
    replace_text(&run->name, name);
    replace_text(&run->project, project);
    replace_text(&run->entity, entity);
    replace_text(&run->server_id, wandb_json_text(bucket, "id", NULL));
    return true;
}

// The tags that the server has.
struct old_tags {
    const json_t *list; // NULL: none
};

// `begin` NULL: names stay as they are, and so does the config unless `with_config`. `tags` NULL:
// they stay as they are.
static enum wandb_answer tell(struct wandb_online *online, struct wandb_run *run,
                              const struct wandb_record *begin, const struct old_tags *tags,
                              bool with_config, struct error *error) {
    static const char document[] =
        "mutation($input:UpsertBucketInput!){upsertBucket(input:$input){"
        "bucket{id name project{name entity{name}}} inserted}}";
    static const struct wandb_record nothing;
    const struct wandb_record *said = begin == NULL ? &nothing : begin;
    struct wandb_query query;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    wandb_query_begin(&query, "making the run", document);
    query.conflict_passes = true;
    wandb_query_text(&query, "id", run->server_id);
    put_names(&query, online, run, (const char *const[]){"modelName", "entityName", "name"});
    if (run->joined)
        begin = said = &nothing;
    wandb_query_slice(&query, "groupName", said->group);
    wandb_query_slice(&query, "displayName", said->display_name);
    wandb_query_slice(&query, "jobType", said->job_type);
    if (begin != NULL && begin != &nothing) {
        wandb_query_text(&query, "notes", online->config->notes);
        wandb_query_text(&query, "host", host);
        if (tags != NULL)
            tags_append(&query, &online->config->tags, begin->type, tags->list);
    }
    buffer_reset(&online->text);
    if (with_config)
        wandb_config_append(online, run, &online->text);
    wandb_query_slice(&query, "config", buffer_slice(&online->text));
    json_t *data;
    enum wandb_answer answer = wandb_query_send(&online->client, &query, &data, error);
    if (answer == WANDB_DONE && !run_take_names(run, data)) {
        error_set(error, STATUS_IO, "making the run: the answer names no run");
        answer = WANDB_REFUSED;
    }
    json_decref(data);
    return answer;
}

void wandb_run_refuse(struct wandb_online *online, struct wandb_run *run, uint64_t last,
                      const struct error *why) {
    assert(!run->refused);
    run->refused = true;
    run->refused_until = last;
    online->refusal = *why;
    log_write(LOG_ERROR, (struct log_site){"C3409", online->site},
              "nothing more is written to run %s: %s", run->id, why->message);
}

enum { RENAMES_MAX = 64, NAME_MAX_BYTES = 128 };

// ID-2, ID-3, …: whoever begins the run again finds the first that was not deleted.
static bool run_rename(struct wandb_online *online, struct wandb_run *run, unsigned tries) {
    char name[WANDB_RUN_ID_MAX + 16];
    unsigned long number = 2;
    size_t size = strlen(run->id);
    const char *old = run->name != NULL ? run->name : run->id;
    if (strncmp(old, run->id, size) == 0 && old[size] == '-')
        number = strtoul(old + size + 1, NULL, 10) + 1;
    snprintf(name, sizeof name, "%s-%lu", run->id, number);
    if (tries >= RENAMES_MAX || strlen(name) > NAME_MAX_BYTES)
        return false;
    log_write(LOG_WARN, (struct log_site){"C3411", online->site},
              "run %s was deleted in W&B; the run continues as %s, without what was in it", old,
              name);
    replace_text(&run->name, name);
    replace_text(&run->server_id, NULL);
    // Rows that it had are gone; files and artifacts of those that follow go to the new one.
    run->moved = true;
    run->artifacts_done = run->files_done = run->stream_done;
    return true;
}

// A run of that id that others began is left alone, unless it is to be joined.
static bool may_write(struct wandb_online *online, struct wandb_run *run,
                      const struct known_run *known, struct error *error) {
    if (!known->there || known->is_ours)
        return true;
    if (!online->config->join_run) {
        error_set(error, STATUS_IO,
                  "it exists and was not begun by culprit; give another run_id, or set join_run");
        return false;
    }
    if (known->is_running) {
        error_set(error, STATUS_IO,
                  "join_run: it is running, and W&B takes rows of a run from one writer only");
        return false;
    }
    run->joined = true;
    return true;
}

static enum wandb_answer begin_with(struct wandb_online *online, struct wandb_run *run,
                                    const struct wandb_segment *segment,
                                    const struct known_run *known, struct error *error) {
    assert(segment == NULL || !segment->begins || segment->begin.kind == WANDB_RUN);
    // What was posted of this segment stays posted.
    bool is_partly_done = segment != NULL && run->stream_done >= segment->first;
    bool begins = segment != NULL && segment->begins && !is_partly_done;
    const struct wandb_record *names = segment != NULL && segment->begins ? &segment->begin : NULL;
    bool was_ours = run->incarnation != 0 && begins &&
                    segment->begin.incarnation == run->incarnation && run->place.rows > 0;
    bool was_placed = run->incarnation != 0 || run->place.rows > 0 || run->start_ns != 0;
    // Without a RUN record its first row is the first that the server gets. It ended before: what
    // was said then of the last moments may come again.
    struct wandb_record none = {.skips_known = true,
                                .time_ns = segment != NULL ? segment->first_time_ns : 0,
                                .row = segment != NULL ? segment->first_row : 0};
    bool is_live =
        begins ? segment->begin.key.size > 0 : !was_placed && online->config->content == WANDB_LIVE;
    if (is_live && !may_write(online, run, known, error)) {
        wandb_run_refuse(online, run, segment != NULL ? segment->last : 0, error);
        return WANDB_DONE;
    }
    run->joined =
        run->joined || slice_equal(wandb_member_find(known->ours, "joined"), SLICE("true"));
    if (begins && segment->begin.key.size > 0) {
        memory_give(run->start);
        run->start = memory_copy_text(segment->begin.key.data, segment->begin.key.size);
    }
    replace_text(&run->server_id, known->there ? known->id : NULL);
    buffer_reset(&run->old_config);
    buffer_append(&run->old_config, known->config);
    if (begins && !was_ours)
        run_place(run, &segment->begin, known);
    else if (was_placed)
        run_place_again(online, run, known);
    else
        run_place(run, &none, known);
    run->moved = false;
    const struct old_tags tags = {wandb_json_at(known->data, "model", "bucket", "tags", NULL)};
    return tell(online, run, names, &tags, names != NULL || !known->there, error);
}

static enum wandb_answer ask_and_begin(struct wandb_online *online, struct wandb_run *run,
                                       const struct wandb_segment *segment, struct error *error) {
    struct known_run known = {0};
    enum wandb_answer answer = ask_for_run(online, run, &known.data, error);
    if (answer == WANDB_DONE) {
        known_read(&known);
        answer = begin_with(online, run, segment, &known, error);
    }
    known_release(&known);
    return answer;
}

// Tags are asked for again before they change, since users may have given it others.
static enum wandb_answer tell_again(struct wandb_online *online, struct wandb_run *run,
                                    const struct wandb_record *begin, struct error *error) {
    json_t *data = NULL;
    enum wandb_answer answer = WANDB_DONE;
    bool has_other_tag =
        begin != NULL && !slice_equal(begin->type, slice_of(run->tag == NULL ? "" : run->tag));
    if (has_other_tag && !run->joined)
        answer = ask_for_run(online, run, &data, error);
    const struct old_tags tags = {wandb_json_at(data, "model", "bucket", "tags", NULL)};
    if (answer == WANDB_DONE)
        answer = tell(online, run, begin, data != NULL ? &tags : NULL, true, error);
    json_decref(data);
    return answer;
}

static void note_tag(struct wandb_run *run, struct slice tag) {
    memory_give(run->tag);
    run->tag = tag.size == 0 ? NULL : memory_copy_text(tag.data, tag.size);
}

enum wandb_answer wandb_run_begin(struct wandb_online *online, struct wandb_run *run,
                                  const struct wandb_segment *segment, struct error *error) {
    const struct wandb_record *begin = segment != NULL && segment->begins ? &segment->begin : NULL;
    enum wandb_answer answer;
    if (begin != NULL) {
        buffer_reset(&run->visualize);
        buffer_append(&run->visualize, begin->members);
    }
    if (begin != NULL && begin->file.size > 0) {
        buffer_reset(&run->settings);
        buffer_append(&run->settings, begin->file);
    }
    // It only has other names, charts or settings now.
    if (run->begun && (begin == NULL || begin->incarnation == run->incarnation))
        answer = tell_again(online, run, begin, error);
    else
        answer = ask_and_begin(online, run, segment, error);
    for (unsigned tries = 0; answer == WANDB_GONE; tries++) {
        if (!run_rename(online, run, tries)) {
            wandb_run_refuse(online, run, segment != NULL ? segment->last : 0, error);
            return WANDB_DONE;
        }
        run->begun = false;
        answer = ask_and_begin(online, run, segment, error);
    }
    if (answer != WANDB_DONE || run->refused)
        return answer;
    assert(run->name != NULL && run->project != NULL && run->entity != NULL);
    if (begin != NULL) {
        run->begun_sequence = begin->sequence;
        note_tag(run, begin->type);
    }
    if (!run->begun)
        log_write(LOG_INFO, (struct log_site){"C3401", online->site}, "run %s/%s/%s", run->entity,
                  run->project, run->name);
    run->begun = true;
    run->config_is_stale = false;
    return answer;
}
