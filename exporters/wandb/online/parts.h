// SPDX-License-Identifier: Apache-2.0
// What the files behind online.h share: runs as the server has them, and how far each has come.
#pragma once

#include "base/hash/digest.h"
#include "exporters/wandb/members.h"
#include "exporters/wandb/online/artifact.h"
#include "exporters/wandb/options.h"
#include "exporters/wandb/record.h"

enum { WANDB_LEFT_OUT_MAX = 256 };

// Where a record stands in the run: numbers of its own and those that the server's rows get.
struct wandb_place_in_run {
    uint64_t rows;    // before it, of the incarnation, also those that were skipped
    uint64_t skipped; // of them: rows that the server had
};

// A table or page that could not be uploaded: its row does not name it.
struct wandb_left_out {
    uint64_t sequence;
    char *key;
};

struct wandb_run {
    char *id; // as records name it
    // As the server names them; NULL until it was asked.
    char *entity, *project, *name;
    char *server_id;
    uint64_t incarnation, start_ns;
    int64_t line_base, step_base; // of row 0
    double runtime_base;          // seconds that it had run before
    double known_until;           // Unix seconds: older rows are the server's already; 0: none are
    char *start;                  // of a job, that it stands for; NULL: unknown
    bool joined;                  // others began it: it is neither renamed nor finished
    bool refused;                 // nothing more is sent to it
    uint64_t refused_until;       // records up to there are reported as refused
    uint64_t refused_records;
    bool asked_again; // since it refused a post
    bool moved;       // the configuration leads to another place than before
    bool begun;       // the server was told in this process
    bool finished;
    uint64_t begun_sequence; // RUN record that was carried out
    // All records up to there are: done; sent alerts; uploaded artifacts; uploaded files; posted.
    uint64_t done, alerts_done, artifacts_done, files_done, stream_done;
    uint32_t alert_tries;            // of the one at hand
    struct wandb_place_in_run place; // behind `stream_done`
    uint64_t dropped;                // rows up to there that were too long
    uint64_t told_ns;                // time of the last record up to there
    bool tail_is_due;                // the summary and what follows it, after those rows
    struct wandb_values summary;
    struct buffer old_config; // what the server had
    struct buffer visualize;  // of the RUN record
    struct buffer settings;   // of the last one that had some: members of the config
    char *tag;                // that it has of us; NULL: none
    bool config_is_stale;     // a chart lost its table
    struct wandb_left_out left_out[WANDB_LEFT_OUT_MAX];
    uint32_t left_out_count;
    bool posted;          // something was, in this process
    uint64_t posted_ns;   // the last post, or the run's beginning; clock_monotonic_ns
    uint64_t interval_ns; // until the next: post_interval, longer when the server's limits say so
    bool stop_told;
};

struct wandb_online {
    const struct wandb_config *config;
    const char *site;
    char place[DIGEST_ID_SIZE]; // which server and project the configuration leads to
    struct wandb_client client;
    struct wandb_run **runs;
    uint32_t run_count, run_max;
    uint64_t done;                  // records up to this sequence, of all runs
    uint64_t reported;              // of those that were refused
    struct error refusal;           // why the last one was
    struct wandb_artifact artifact; // under way
    // Files that fail: how often the one at hand did.
    uint64_t file_sequence;
    uint32_t file_tries;
    bool file_renewed;              // a new address was asked for
    struct buffer body, line, text; // scratch
};

// The records of one run from `first` to `last`, with at most one RUN, at the front, and at most
// one FINISH, at the end.
struct wandb_segment {
    struct slice records; // others stand in between
    uint64_t first, last;
    uint64_t first_time_ns, first_row; // of its first record, and its first row
    struct wandb_record begin;         // when `begins`
    bool begins, finishes;
    struct wandb_record end; // when `finishes`
};

// Steps through those records of a segment that were not posted, and tells where each stands.
struct wandb_cursor {
    struct wandb_record record;
    uint64_t step; // of a row; of another record the number of rows before it
    bool is_row;
    bool is_known; // a row that the server has, or an alert of before that: it is left out
    struct wandb_place_in_run place, behind; // of the record
    struct slice at;                         // what follows
};
struct wandb_cursor wandb_cursor_begin(const struct wandb_run *run,
                                       const struct wandb_segment *segment);
bool wandb_cursor_next(const struct wandb_run *run, const struct wandb_segment *segment,
                       struct wandb_cursor *cursor);

// -- online.c
struct wandb_run *wandb_online_add_run(struct wandb_online *online, struct slice id);
// -- state.c
void wandb_place_id(const struct wandb_config *config, char id[DIGEST_ID_SIZE]);
// -- run.c
struct wandb_run *wandb_run_new(struct slice id);
void wandb_run_free(struct wandb_run *run);
// Nothing more is sent to this run: says why, and that its records are dropped. `last`: of the
// records that are at hand.
void wandb_run_refuse(struct wandb_online *online, struct wandb_run *run, uint64_t last,
                      const struct error *why);
// Asks the server for the run and tells it that it begins or goes on. DONE with `refused` set: it
// is not ours to write to.
enum wandb_answer wandb_run_begin(struct wandb_online *online, struct wandb_run *run,
                                  const struct wandb_segment *segment, struct error *error);
// -- config.c
// The run's config as the server shall have it, into `out`.
void wandb_config_append(const struct wandb_online *online, const struct wandb_run *run,
                         struct buffer *out);
bool wandb_run_leaves_out(const struct wandb_run *run, uint64_t sequence);
// Remembers that the record's file is not there, and says so.
void wandb_run_leave_out(struct wandb_online *online, struct wandb_run *run,
                         const struct wandb_record *record, const struct error *why);
// -- alerts.c, upload.c, files.c, stream.c: each does its part of a segment
enum wandb_answer wandb_run_alerts(struct wandb_online *online, struct wandb_run *run,
                                   const struct wandb_segment *segment, struct error *error);
enum wandb_answer wandb_run_artifacts(struct wandb_online *online, struct wandb_run *run,
                                      const struct wandb_segment *segment, struct error *error);
enum wandb_answer wandb_run_files(struct wandb_online *online, struct wandb_run *run,
                                  const struct wandb_segment *segment, struct error *error);
enum wandb_answer wandb_run_stream(struct wandb_online *online, struct wandb_run *run,
                                   const struct wandb_segment *segment, struct error *error);
// Between uploads: a heartbeat of each run that one is due for. What becomes of it does not matter.
void wandb_keep_alive(struct wandb_online *online);
enum wandb_answer wandb_run_heartbeat(struct wandb_online *online, struct wandb_run *run,
                                      struct error *error);
