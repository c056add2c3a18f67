// SPDX-License-Identifier: Apache-2.0
// Carries out the records of each run, and remembers how far each has come.
//
// Records of a run are taken in segments from one RUN to the next or to FINISH. A segment is done
// in the order that W&B wants: the run, artifacts, files, then rows and summary. Each part
// remembers how far it came, so that after a failure the same records go on where it broke off.
// Records are stepped through a few times for each run; nothing is copied.
#include "exporters/wandb/online/online.h"

#include "exporters/wandb/online/parts.h"
#include "exporters/wandb/record.h"
#include "pipeline/component/component.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

#include <assert.h>
#include <inttypes.h>

enum { RUNS_SPARE = 8, BODY_MAX = 64 << 20, LINE_BUFFER_MAX = 32 << 20 };

// -- records --------------------------------------------------------------------------------------

static bool is_row(const struct wandb_record *record) {
    return record->kind == WANDB_ROW || record->kind == WANDB_TABLE || record->kind == WANDB_HTML;
}

static bool belongs_to(const struct wandb_run *run, const struct wandb_record *record) {
    return slice_equal(record->run, slice_of(run->id));
}

struct wandb_cursor wandb_cursor_begin(const struct wandb_run *run,
                                       const struct wandb_segment *segment) {
    return (struct wandb_cursor){.at = segment->records, .behind = run->place};
}

bool wandb_cursor_next(const struct wandb_run *run, const struct wandb_segment *segment,
                       struct wandb_cursor *cursor) {
    assert(cursor->behind.skipped <= cursor->behind.rows);
    const struct wandb_record *record = &cursor->record;
    do
        if (!wandb_record_read(&cursor->at, &cursor->record) || record->sequence > segment->last)
            return false;
    while (record->sequence <= run->stream_done || record->sequence < segment->first ||
           !belongs_to(run, record));
    cursor->place = cursor->behind;
    cursor->is_row = is_row(record);
    cursor->is_known = (cursor->is_row || record->kind == WANDB_ALERT) && run->known_until > 0 &&
                       (double)record->time_ns / 1e9 <= run->known_until;
    uint64_t rows = cursor->is_row ? record->row : cursor->place.rows;
    int64_t step = run->step_base + (int64_t)(rows - cursor->place.skipped);
    cursor->step = step < 0 ? 0 : (uint64_t)step;
    if (cursor->is_row)
        cursor->behind = (struct wandb_place_in_run){
            .rows = record->row + 1, .skipped = cursor->place.skipped + cursor->is_known};
    return true;
}

// The next records of the run that are not done; false when there are none.
static bool segment_find(const struct wandb_run *run, struct slice records,
                         struct wandb_segment *segment) {
    struct wandb_record record;
    bool has_row = false;
    *segment = (struct wandb_segment){.records = records};
    for (struct slice at = records; wandb_record_read(&at, &record);) {
        if (record.sequence <= run->done || !belongs_to(run, &record))
            continue;
        if (segment->first == 0) {
            segment->first = record.sequence;
            segment->first_time_ns = record.time_ns;
            segment->begins = record.kind == WANDB_RUN;
            if (segment->begins)
                segment->begin = record;
        } else if (record.kind == WANDB_RUN) {
            break;
        }
        if (!has_row && is_row(&record)) {
            segment->first_row = record.row;
            has_row = true;
        }
        segment->last = record.sequence;
        if (record.kind == WANDB_FINISH) {
            segment->finishes = true;
            segment->end = record;
            break;
        }
    }
    assert(segment->first <= segment->last);
    return segment->first != 0;
}

// -- runs -----------------------------------------------------------------------------------------

static struct wandb_run *run_find(const struct wandb_online *online, struct slice id) {
    for (uint32_t i = 0; i < online->run_count; i++)
        if (slice_equal(slice_of(online->runs[i]->id), id))
            return online->runs[i];
    return NULL;
}

static void run_remove(struct wandb_online *online, uint32_t index) {
    assert(index < online->run_count);
    wandb_run_free(online->runs[index]);
    memmove(&online->runs[index], &online->runs[index + 1],
            (online->run_count - index - 1) * sizeof *online->runs);
    online->run_count--;
}

// When there are too many, the one that was silent longest is no longer kept alive.
static void run_make_room(struct wandb_online *online) {
    uint32_t oldest = 0;
    if (online->run_count < online->run_max)
        return;
    for (uint32_t i = 1; i < online->run_count; i++)
        if (online->runs[i]->posted_ns < online->runs[oldest]->posted_ns)
            oldest = i;
    log_write(LOG_WARN, (struct log_site){"C3407", online->site},
              "more than %u runs are open; run %s is no longer kept alive", online->run_max,
              online->runs[oldest]->id);
    run_remove(online, oldest);
}

struct wandb_run *wandb_online_add_run(struct wandb_online *online, struct slice id) {
    assert(online->run_count <= online->run_max && run_find(online, id) == NULL);
    run_make_room(online);
    struct wandb_run *run = wandb_run_new(id);
    run->interval_ns = (uint64_t)online->config->post_interval.ns;
    online->runs[online->run_count++] = run;
    return run;
}

// What comes for a run that nothing is sent to any more.
static void segment_drop(struct wandb_online *online, struct wandb_run *run,
                         const struct wandb_segment *segment) {
    assert(run->refused);
    struct wandb_record record;
    for (struct slice at = segment->records; wandb_record_read(&at, &record);)
        run->refused_records += record.sequence > run->done && record.sequence <= segment->last &&
                                belongs_to(run, &record);
    run->done = segment->last;
    run->finished = segment->finishes;
    if (run->finished)
        log_write(LOG_ERROR, (struct log_site){"C3409", online->site},
                  "%" PRIu64 " records of run %s were dropped", run->refused_records, run->id);
}

static enum wandb_answer segment_try(struct wandb_online *online, struct wandb_run *run,
                                     const struct wandb_segment *segment, struct error *error) {
    assert(segment->first > run->done && segment->first <= segment->last);
    enum wandb_answer answer = WANDB_DONE;
    bool begins = segment->begins && run->begun_sequence != segment->first;
    if (run->finished) {
        run->refused = false;
        run->begun = run->finished = false;
        run->incarnation = run->start_ns = 0;
        run->place = (struct wandb_place_in_run){0};
    }
    if (!run->refused && (!run->begun || begins))
        answer = wandb_run_begin(online, run, segment, error);
    if (answer != WANDB_DONE || run->refused)
        return answer;
    answer = wandb_run_alerts(online, run, segment, error);
    if (answer == WANDB_DONE)
        answer = wandb_run_artifacts(online, run, segment, error);
    if (answer == WANDB_DONE)
        answer = wandb_run_files(online, run, segment, error);
    // A chart whose table is not there is taken out of the config.
    if (answer == WANDB_DONE && run->config_is_stale)
        answer = wandb_run_begin(online, run, NULL, error);
    if (answer == WANDB_DONE)
        answer = wandb_run_stream(online, run, segment, error);
    return answer;
}

// Whether the last answer blames the run, and not the key or the server.
static bool blames_run(const struct wandb_online *online, const struct wandb_run *run,
                       enum wandb_answer answer) {
    static const short statuses[] = {400, 404, 409, 410, 413, 422, 501};
    if (answer != WANDB_REFUSED || !run->begun)
        return false;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        if (online->client.http.reply->status == statuses[i])
            return true;
    return false;
}

static enum wandb_answer segment_do(struct wandb_online *online, struct wandb_run *run,
                                    const struct wandb_segment *segment, struct error *error) {
    enum wandb_answer answer = segment_try(online, run, segment, error);
    // It may have been deleted: then asking shows it.
    if (blames_run(online, run, answer) && !run->asked_again) {
        run->asked_again = true;
        run->begun = false;
        answer = segment_try(online, run, segment, error);
    }
    if (blames_run(online, run, answer)) {
        wandb_run_refuse(online, run, segment->last, error);
        answer = WANDB_DONE;
    }
    if (answer != WANDB_DONE)
        return answer;
    run->asked_again = false;
    if (run->refused) {
        segment_drop(online, run, segment);
        return WANDB_DONE;
    }
    run->done = segment->last;
    assert(run->stream_done >= run->done && !run->tail_is_due);
    run->finished = segment->finishes;
    return WANDB_DONE;
}

static enum wandb_answer records_do(struct wandb_online *online, struct slice records,
                                    struct error *error) {
    struct wandb_record record;
    for (struct slice at = records; wandb_record_read(&at, &record);) {
        if (record.sequence <= online->done)
            continue;
        struct wandb_run *run = run_find(online, record.run);
        if (run == NULL)
            run = wandb_online_add_run(online, record.run);
        if (record.sequence <= run->done)
            continue;
        // All that is at hand of this run; its other records are passed over then.
        struct wandb_segment segment;
        if (run->done < online->done)
            run->done = online->done;
        while (segment_find(run, records, &segment)) {
            enum wandb_answer answer = segment_do(online, run, &segment, error);
            if (answer != WANDB_DONE)
                return answer;
        }
    }
    return WANDB_DONE;
}

// The same records do not come again: runs that ended need not be known any more.
static void all_done(struct wandb_online *online, struct slice records) {
    struct wandb_record record;
    struct slice at = records;
    while (wandb_record_read(&at, &record))
        if (record.sequence > online->done)
            online->done = record.sequence;
    if (at.size > 0)
        log_write(LOG_ERROR, (struct log_site){"C3408", online->site},
                  "%zu bytes of queued records are damaged and left out", at.size);
}

// The first records at hand that were refused and not reported yet: what is before them was taken.
// False when there are none.
static bool find_refused(struct wandb_online *online, struct slice records,
                         struct send_outcome *outcome) {
    struct wandb_record record;
    struct slice at = records, before = records;
    assert(outcome->refused == 0);
    for (; wandb_record_read(&at, &record); before = at) {
        const struct wandb_run *run = run_find(online, record.run);
        bool is_refused = run != NULL && run->refused && record.sequence <= run->refused_until &&
                          record.sequence > online->reported;
        if (!is_refused && outcome->refused > 0)
            break;
        if (!is_refused)
            continue;
        if (outcome->refused == 0)
            outcome->taken = (size_t)(before.data - records.data);
        outcome->refused += (size_t)(at.data - before.data);
        online->reported = record.sequence;
    }
    return outcome->refused > 0;
}

static void runs_forget(struct wandb_online *online) {
    for (uint32_t i = online->run_count; i-- > 0;)
        if (online->runs[i]->finished)
            run_remove(online, i);
}

static enum wandb_answer heartbeats_do(struct wandb_online *online, struct error *error) {
    uint64_t interval = (uint64_t)online->config->heartbeat_interval.ns;
    for (uint32_t i = 0; i < online->run_count; i++) {
        struct wandb_run *run = online->runs[i];
        if (clock_monotonic_ns() - run->posted_ns < interval)
            continue;
        enum wandb_answer answer = WANDB_DONE;
        if (run->refused)
            continue;
        if (!run->begun)
            answer = wandb_run_begin(online, run, NULL, error);
        if (answer == WANDB_DONE && !run->refused)
            answer = wandb_run_heartbeat(online, run, error);
        // It is asked for when something of it comes, or with the next one.
        if (blames_run(online, run, answer)) {
            run->begun = false;
            run->posted_ns = clock_monotonic_ns();
            answer = WANDB_DONE;
        }
        if (answer != WANDB_DONE)
            return answer;
    }
    return WANDB_DONE;
}

// -- the sink -------------------------------------------------------------------------------------

enum status wandb_online_open(struct wandb_online **out, const struct wandb_config *config,
                              const char *site, struct error *error) {
    struct wandb_online *online = memory_zero(1, sizeof *online);
    enum status status = wandb_http_open(&online->client.http, config, site, error);
    if (status != STATUS_OK) {
        memory_give(online);
        return status;
    }
    online->config = config;
    online->site = site;
    wandb_place_id(config, online->place);
    online->run_max = (uint32_t)config->max_runs + RUNS_SPARE;
    online->runs = memory_zero(online->run_max, sizeof *online->runs);
    online->artifact.copy = -1;
    buffer_init(&online->body, BODY_MAX);
    buffer_init(&online->line, LINE_BUFFER_MAX);
    buffer_init(&online->text, LINE_BUFFER_MAX);
    *out = online;
    return STATUS_OK;
}

void wandb_online_close(struct wandb_online *online) {
    if (online == NULL)
        return;
    while (online->run_count > 0)
        run_remove(online, online->run_count - 1);
    memory_give(online->runs);
    wandb_artifact_release(&online->artifact);
    buffer_release(&online->body);
    assert(online->artifact.sequence == 0);
    buffer_release(&online->line);
    buffer_release(&online->text);
    wandb_http_close(&online->client.http);
    memory_give(online);
}

enum status wandb_online_send(struct wandb_online *online, struct slice records, bool last,
                              struct send_outcome *outcome, struct error *error) {
    uint64_t now = clock_monotonic_ns();
    struct wandb_client *client = &online->client;
    *outcome = (struct send_outcome){0};
    if (client->wait_until_ns > now) {
        outcome->retry_after_ns = client->wait_until_ns - now;
        return error_set(error, STATUS_IO, "the server asked for a pause of %.1f s more",
                         (double)outcome->retry_after_ns / 1e9);
    }
    enum wandb_answer answer = records_do(online, records, error);
    if (answer == WANDB_DONE) {
        all_done(online, records);
        if (find_refused(online, records, outcome))
            return error_set(error, STATUS_IO, "%s", online->refusal.message);
        runs_forget(online);
        if (!last)
            answer = heartbeats_do(online, error);
    }
    if (answer == WANDB_DONE)
        return STATUS_OK;
    now = clock_monotonic_ns();
    outcome->sink_dead = answer == WANDB_REFUSED;
    if (client->wait_until_ns > now)
        outcome->retry_after_ns = client->wait_until_ns - now;
    return error->status == STATUS_OK ? STATUS_IO : error->status;
}

struct send_pace wandb_online_pace(const struct wandb_online *online) {
    struct send_pace pace = {0, UINT64_MAX};
    uint64_t heartbeat = (uint64_t)online->config->heartbeat_interval.ns;
    for (uint32_t i = 0; i < online->run_count; i++) {
        const struct wandb_run *run = online->runs[i];
        if (run->refused)
            continue;
        if (run->posted_ns + heartbeat < pace.again_ns)
            pace.again_ns = run->posted_ns + heartbeat;
        if (run->posted && run->posted_ns + run->interval_ns > pace.not_before_ns)
            pace.not_before_ns = run->posted_ns + run->interval_ns;
    }
    if (pace.again_ns < pace.not_before_ns)
        pace.again_ns = pace.not_before_ns;
    assert(pace.not_before_ns <= pace.again_ns);
    return pace;
}
