// SPDX-License-Identifier: Apache-2.0
// Posts the rows and the summary of a segment to the run's file_stream.
//
// In posts of at most 10 MiB, each row at its own line number, so that a post that comes twice
// changes nothing. The last post has the whole summary and, at the end of the run, `complete`.
// Costs one pass over the rows, and one over the summary a segment.
#include "exporters/wandb/online/parts.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "exporters/wandb/record.h"
#include "exporters/wandb/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

// Longest row or summary that a server takes: 10 MiB less 100 KiB.
enum { LINE_MAX_BYTES = 10383360, POST_MAX_BYTES = 10 << 20, MEDIA_PATH_MAX = 64 * 1024 };

// -- one row --------------------------------------------------------------------------------------

static double runtime_at(const struct wandb_run *run, uint64_t time_ns) {
    uint64_t since = time_ns > run->start_ns ? time_ns - run->start_ns : 0;
    return run->runtime_base + (double)since / 1e9;
}

static void number_set(struct wandb_online *online, struct wandb_run *run, const char *key,
                       double number) {
    buffer_reset(&online->text);
    wandb_append_number(&online->text, number);
    wandb_values_set(&run->summary, slice_of(key), buffer_slice(&online->text));
}

static void summary_note_row(struct wandb_online *online, struct wandb_run *run,
                             const struct wandb_record *record, uint64_t step) {
    number_set(online, run, "\"_step\"", (double)step);
    number_set(online, run, "\"_timestamp\"", (double)record->time_ns / 1e9);
    number_set(online, run, "\"_runtime\"", (double)(uint64_t)runtime_at(run, record->time_ns));
}

// The members of the row that a TABLE or HTML record is: none when its file is not there.
static void media_members_append(struct wandb_online *online, const struct wandb_run *run,
                                 const struct wandb_record *record, uint64_t step,
                                 struct buffer *out) {
    if (wandb_run_leaves_out(run, record->sequence))
        return;
    struct buffer path;
    char sha256[MEDIA_SHA256_SIZE];
    buffer_init(&path, MEDIA_PATH_MAX);
    struct slice file = media_run_file(record, step, &online->text, &path, sha256);
    json_append_string(out, record->key);
    buffer_append_char(out, ':');
    media_append_value(out, record, buffer_slice(&path), sha256, file.size);
    buffer_release(&path);
}

// The row's line into `online->line`; its members are in the summary then.
static void row_build(struct wandb_online *online, struct wandb_run *run,
                      const struct wandb_record *record, uint64_t step) {
    struct buffer *line = &online->line;
    buffer_reset(line);
    buffer_append_char(line, '{');
    if (record->kind == WANDB_ROW)
        buffer_append(line, record->members);
    else
        media_members_append(online, run, record, step, line);
    struct slice members = {line->data + 1, line->size - 1};
    if (!wandb_values_apply(&run->summary, members, false))
        log_write(LOG_WARN, (struct log_site){"C3405", online->site},
                  "the summary of run %s has more than %d MiB; further keys are left out of it",
                  run->id, WANDB_VALUES_BYTES_MAX >> 20);
    summary_note_row(online, run, record, step);
    if (members.size > 0)
        buffer_append_char(line, ',');
    buffer_append_format(line, "\"_step\":%" PRIu64 ",\"_timestamp\":", step);
    wandb_append_number(line, (double)record->time_ns / 1e9);
    buffer_append_text(line, ",\"_runtime\":");
    wandb_append_number(line, runtime_at(run, record->time_ns));
    buffer_append_char(line, '}');
}

// -- one post -------------------------------------------------------------------------------------

// What a post is made of, and how far the run has come when it has arrived.
struct post {
    struct wandb_place_in_run place;
    uint64_t dropped, covers; // records up to this sequence
    uint64_t time_ns;         // of the last record
    int64_t offset;           // line of its first row
    uint32_t rows;
    bool whole;        // nothing of the segment follows
    bool has_summary;  // something of it changed
    bool tail_is_left; // the summary and what follows it did not fit in
};

// Adds the row unless the post is full; false then.
static bool row_add(struct wandb_online *online, struct wandb_run *run, struct post *post,
                    const struct wandb_cursor *cursor) {
    assert(cursor->is_row && !cursor->is_known);
    struct buffer *body = &online->body;
    const struct wandb_record *record = &cursor->record;
    uint64_t step = cursor->step;
    row_build(online, run, record, step);
    if (online->line.failed || online->line.size > LINE_MAX_BYTES) {
        log_write(LOG_WARN, (struct log_site){"C3405", online->site},
                  "row %" PRIu64 " of run %s has more than %d bytes and is left out", step, run->id,
                  LINE_MAX_BYTES);
        post->dropped++;
        return true;
    }
    if (post->rows > 0 && body->size + online->line.size > POST_MAX_BYTES)
        return false;
    int64_t line = run->line_base + (int64_t)(record->row - cursor->place.skipped - post->dropped);
    if (post->rows == 0) {
        post->offset = line;
        buffer_append_format(
            body, "{\"files\":{\"wandb-history.jsonl\":{\"offset\":%" PRId64 ",\"content\":[",
            line);
    }
    if (post->rows++ > 0)
        buffer_append_char(body, ',');
    json_append_string(body, buffer_slice(&online->line));
    return true;
}

static void rows_add(struct wandb_online *online, struct wandb_run *run,
                     const struct wandb_segment *segment, struct post *post) {
    struct wandb_cursor cursor = wandb_cursor_begin(run, segment);
    const struct wandb_record *record = &cursor.record;
    while (wandb_cursor_next(run, segment, &cursor)) {
        bool is_new = cursor.is_row && !cursor.is_known;
        if (is_new && !row_add(online, run, post, &cursor))
            return;
        if (record->kind == WANDB_SUMMARY)
            wandb_values_apply(&run->summary, record->members, true);
        post->has_summary = post->has_summary || is_new || record->kind == WANDB_SUMMARY;
        post->place = cursor.behind;
        post->covers = record->sequence;
        post->time_ns = record->time_ns;
    }
    post->whole = true;
    post->covers = segment->last;
}

// After many rows it goes alone.
static void summary_add(struct wandb_online *online, struct wandb_run *run, struct post *post) {
    assert(post->whole);
    struct buffer *body = &online->body, *line = &online->line;
    buffer_reset(&online->text);
    buffer_append_format(&online->text, "{\"runtime\":%" PRIu64 "}",
                         (uint64_t)runtime_at(run, post->time_ns));
    wandb_values_set(&run->summary, SLICE("\"_wandb\""), buffer_slice(&online->text));
    buffer_reset(line);
    wandb_values_append(&run->summary, line);
    if (line->failed || line->size > LINE_MAX_BYTES) {
        log_write(LOG_WARN, (struct log_site){"C3405", online->site},
                  "the summary of run %s has more than %d bytes and is not sent", run->id,
                  LINE_MAX_BYTES);
        return;
    }
    if (post->rows > 0 && body->size + line->size > POST_MAX_BYTES) {
        post->tail_is_left = true;
        return;
    }
    buffer_append_text(body, post->rows > 0 ? "," : "{\"files\":{");
    buffer_append_text(body, "\"wandb-summary.json\":{\"offset\":0,\"content\":[");
    json_append_string(body, buffer_slice(line));
    buffer_append_text(body, "]}");
}

static void uploaded_add(struct wandb_online *online, const struct wandb_run *run,
                         const struct wandb_segment *segment, const struct post *post) {
    struct wandb_cursor cursor = wandb_cursor_begin(run, segment);
    const struct wandb_record *record = &cursor.record;
    struct buffer *body = &online->body, path;
    char sha256[MEDIA_SHA256_SIZE];
    bool some = false;
    buffer_init(&path, MEDIA_PATH_MAX);
    while (wandb_cursor_next(run, segment, &cursor) && record->sequence <= post->covers) {
        if ((record->kind != WANDB_TABLE && record->kind != WANDB_HTML) || cursor.is_known ||
            wandb_run_leaves_out(run, record->sequence))
            continue;
        media_run_file(record, cursor.step, &online->text, &path, sha256);
        buffer_append_text(body, some             ? ","
                                 : body->size > 0 ? ",\"uploaded\":["
                                                  : "{\"uploaded\":[");
        json_append_string(body, buffer_slice(&path));
        some = true;
    }
    if (some)
        buffer_append_char(body, ']');
    buffer_release(&path);
}

static struct post post_build(struct wandb_online *online, struct wandb_run *run,
                              const struct wandb_segment *segment) {
    struct buffer *body = &online->body;
    struct post post = {.place = run->place,
                        .dropped = run->dropped,
                        .covers = run->stream_done,
                        .time_ns = run->told_ns};
    buffer_reset(body);
    rows_add(online, run, segment, &post);
    if (post.rows > 0)
        buffer_append_text(body, "]}");
    uint64_t known = post.place.skipped - run->place.skipped;
    if (known > 0)
        log_write(LOG_INFO, (struct log_site){"C3410", online->site},
                  "the server has %" PRIu64 " rows of run %s already; they are not sent again",
                  known, run->id);
    size_t before = body->size;
    if (post.whole && (post.has_summary || segment->finishes || run->tail_is_due))
        summary_add(online, run, &post);
    if (post.rows > 0 || body->size > before)
        buffer_append_char(body, '}');
    uploaded_add(online, run, segment, &post);
    if (post.whole && segment->finishes && !post.tail_is_left && !run->joined)
        buffer_append_format(body, "%s\"complete\":true,\"exitcode\":%" PRId32,
                             body->size > 0 ? "," : "{", segment->end.exit_code);
    if (body->size > 0)
        buffer_append_char(body, '}');
    assert(post.covers >= run->stream_done && post.covers <= segment->last);
    return post;
}

// -- sending --------------------------------------------------------------------------------------

// A header of the last reply; negative when it is no number from 0 on.
static double header_number(const struct wandb_online *online, const char *name) {
    struct slice value = http_client_header(online->client.http.server, name);
    double number = wandb_number_or(value, -1);
    return number >= 0 ? number : -1;
}

// The server spreads what may come until its quota is fresh again.
static void note_limits(const struct wandb_online *online, struct wandb_run *run) {
    static const double stretch_max_s = 300;
    double remaining = header_number(online, "RateLimit-Remaining");
    double apart = header_number(online, "RateLimit-Reset");
    run->interval_ns = (uint64_t)online->config->post_interval.ns;
    if (remaining < 0 || apart < 0)
        return;
    if (remaining > 1)
        apart /= remaining;
    if (apart > stretch_max_s)
        apart = stretch_max_s;
    if ((uint64_t)(apart * 1e9) > run->interval_ns)
        run->interval_ns = (uint64_t)(apart * 1e9);
    assert(run->interval_ns >= (uint64_t)online->config->post_interval.ns);
}

static void note_stop(const struct wandb_online *online, struct wandb_run *run,
                      const struct http_reply *reply) {
    if (run->stop_told || reply->body.size == 0)
        return;
    json_t *answer = json_loadb(reply->body.data, reply->body.size, 0, NULL);
    if (json_is_true(json_object_get(answer, "stopped"))) {
        run->stop_told = true;
        log_write(
            LOG_INFO, (struct log_site){"C3402", online->site},
            "run %s was stopped in W&B; culprit continues, since only the job can stop itself",
            run->id);
    }
    json_decref(answer);
}

static enum wandb_answer post_send(struct wandb_online *online, struct wandb_run *run,
                                   struct slice body, struct error *error) {
    assert(run->begun && run->entity != NULL && run->project != NULL && run->name != NULL);
    struct buffer path;
    const char *parts[] = {run->entity, run->project, run->name};
    buffer_init(&path, 16 * 1024);
    buffer_append_text(&path, "/files");
    for (unsigned i = 0; i < 3; i++) {
        buffer_append_char(&path, '/');
        http_client_escape(online->client.http.server, &path, parts[i]);
    }
    buffer_append(&path, SLICE("/file_stream\0"));
    enum http_class class = HTTP_DEAD;
    if (path.failed)
        error_set(error, STATUS_CONFIG, "the name of the run or project is too long");
    else
        class = wandb_http_post(&online->client.http, path.data, body, error);
    buffer_release(&path);
    enum wandb_answer answer = wandb_client_judge(&online->client, "file_stream", class, error);
    // An answer that cannot be read counts as good: what was posted has arrived.
    if (answer == WANDB_DONE) {
        run->posted = true;
        run->posted_ns = clock_monotonic_ns();
        note_limits(online, run);
        note_stop(online, run, online->client.http.reply);
    }
    return answer;
}

enum wandb_answer wandb_run_heartbeat(struct wandb_online *online, struct wandb_run *run,
                                      struct error *error) {
    return post_send(online, run, SLICE("{}"), error);
}

void wandb_keep_alive(struct wandb_online *online) {
    uint64_t interval = (uint64_t)online->config->heartbeat_interval.ns;
    for (uint32_t i = 0; i < online->run_count; i++) {
        struct wandb_run *run = online->runs[i];
        uint64_t now = clock_monotonic_ns();
        struct error error = {0};
        if (!run->begun || run->finished || now - run->posted_ns < interval)
            continue;
        // Tried once an interval, whatever comes of it.
        if (wandb_run_heartbeat(online, run, &error) != WANDB_DONE)
            run->posted_ns = now;
    }
}

// Such a run has nothing to show: it is not complete.
static bool all_refused(const struct post *post) {
    assert(post->place.rows >= post->place.skipped);
    uint64_t rows = post->place.rows - post->place.skipped;
    return rows > 0 && post->dropped == rows;
}

enum wandb_answer wandb_run_stream(struct wandb_online *online, struct wandb_run *run,
                                   const struct wandb_segment *segment, struct error *error) {
    assert(run->begun && segment->first <= segment->last);
    while (run->stream_done < segment->last || run->tail_is_due) {
        struct post post = post_build(online, run, segment);
        if (online->body.failed) {
            error_set(error, STATUS_LIMIT, "a post for run %s is too large", run->id);
            return WANDB_REFUSED;
        }
        if (post.whole && segment->finishes && all_refused(&post)) {
            error_set(error, STATUS_LIMIT, "every row of it is longer than W&B takes");
            wandb_run_refuse(online, run, segment->last, error);
            return WANDB_DONE;
        }
        if (online->body.size > 0) {
            enum wandb_answer answer = post_send(online, run, buffer_slice(&online->body), error);
            if (answer != WANDB_DONE)
                return answer;
        }
        run->place = post.place;
        run->dropped = post.dropped;
        run->stream_done = post.covers;
        run->told_ns = post.time_ns;
        run->tail_is_due = post.tail_is_left;
    }
    return WANDB_DONE;
}
