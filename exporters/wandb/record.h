// SPDX-License-Identifier: Apache-2.0
// What is to be said to W&B, as records: one after another, they are a run.
//
// Encoding makes them on the pipeline's thread, where they get their numbers; they wait in the
// sender's blocks and in the store; a sink (exporters/wandb/online/online.h,
// exporters/wandb/offline/offline.h) carries them out, and may be given the same ones again. A
// record that comes again has the same bytes, row numbers and ids, so doing it twice does no harm.
#pragma once

#include "base/buffer.h"

enum wandb_record_kind {
    WANDB_RUN = 1,  // a run begins, or goes on; before anything else of it
    WANDB_ROW,      // a history row of plain values
    WANDB_TABLE,    // a history row that holds one table, and the table
    WANDB_HTML,     // a history row that holds one page, and the page
    WANDB_SUMMARY,  // values of the summary; later ones win, also over those of rows
    WANDB_ARTIFACT, // a file or a directory of this machine
    WANDB_FINISH,   // the run is complete; nothing of it follows, unless a RUN begins it again
    WANDB_ALERT,    // for W&B to send to people
    WANDB_KIND_MAX = WANDB_ALERT,
};

enum { WANDB_CLIENT_ID_SIZE = 128, WANDB_RUN_ID_MAX = 128 };

// Texts are UTF-8. Slices belong to the writer, or point into the bytes that were read. Order and
// sizes of the fields are those in which records wait in the store.
enum { WANDB_RECORD_TEXTS = 11 };

struct wandb_record {
    uint64_t sequence; // of this exporter, from 1, ascending
    uint64_t time_ns;  // Unix; RUN: when it began, else the time of what is said
    // ROW, TABLE, HTML: which row of the run, from 0, counted since its incarnation began. RUN: how
    // many there were before it.
    uint64_t row;
    uint64_t columns, rows; // TABLE
    // RUN: which counting of rows this is, 0: none. A run of that name which the server knows with
    // the same number is ours, and its rows are where we left them; with another, or with none,
    // ours are appended to its rows.
    uint64_t incarnation;
    int32_t exit_code; // FINISH
    uint16_t kind;     // enum wandb_record_kind
    // RUN, 0 or 1. With an incarnation that the server does not know: rows whose time is not after
    // the last row of the server are left out, since they come from inputs that are read again. Of
    // a RUN with a key only when the server's rows are of the same start.
    uint16_t skips_known;
    union {
        struct {
            struct slice run; // id of the run: 1 to WANDB_RUN_ID_MAX bytes of [A-Za-z0-9._-]
            // ROW, SUMMARY: `"key":value,…`, JSON members without braces; NaN and infinities stand
            // bare. RUN: the members of config._wandb.visualize, or empty.
            struct slice members;
            // TABLE, HTML: under which key; ARTIFACT: its name; RUN: which start of a job it stands
            // for, as plain text. With that it does not write into runs that others began. ALERT:
            // its title.
            struct slice key;
            // TABLE, HTML: bytes of the run file; ARTIFACT: path of the file or directory, or those
            // of several with a zero byte between them. ALERT: its text. RUN: members of the
            // config,
            // `"key":value,…`; empty: as they were.
            struct slice file;
            struct slice type;          // ARTIFACT; ALERT: INFO, WARN or ERROR; RUN: a tag of it
            struct slice artifact_file; // TABLE: bytes of the one file of its artifact
            // TABLE, ARTIFACT: random, [a-z0-9], WANDB_CLIENT_ID_SIZE bytes; RUN: empty if not set.
            struct slice client_id, group, sequence_client_id;
            struct slice display_name, job_type; // RUN; empty: not set
        };
        struct slice texts[WANDB_RECORD_TEXTS];
    };
};
enum { WANDB_RECORD_NUMBERS = offsetof(struct wandb_record, texts) };
_Static_assert(WANDB_RECORD_NUMBERS == 56 &&
                   sizeof(struct wandb_record) ==
                       WANDB_RECORD_NUMBERS + WANDB_RECORD_TEXTS * sizeof(struct slice),
               "as records of other versions wait in the store");

void wandb_record_write(const struct wandb_record *record, struct buffer *out);
// Takes one record off the front of `bytes`; false when none is there whole, or it is damaged.
bool wandb_record_read(struct slice *bytes, struct wandb_record *record);

// Puts the numbers into records as they are made. `sequence` and `row` are the owner's, who keeps
// them with the checkpoint.
struct wandb_writer {
    struct buffer *out;
    uint64_t *sequence;
    uint64_t *row; // of the run
    struct slice run;
    uint64_t time_ns; // of what is said now
    // NULL: rows have the time that is given. Else the time of the run's last row: each row is
    // later than the one before, so that the last one on the server tells which of them it has.
    uint64_t *row_time_ns;
    uint64_t table_time_ns; // tables and pages are no later, so that no row before them is missed
};
enum { WANDB_ROW_STEP_NS = 1000 }; // a double of Unix seconds tells such times apart

// Fills `sequence`, `run`, `time_ns` (unless it is set), `row` for records that are rows, and the
// client ids where they are needed; then writes it. Returns the row's number, else 0.
uint64_t wandb_say(struct wandb_writer *writer, struct wandb_record *record);
// A ROW or SUMMARY of these members.
void wandb_say_members(struct wandb_writer *writer, enum wandb_record_kind kind,
                       const struct buffer *members);
// Random [a-z0-9], as W&B's ids are.
void wandb_random_text(char *text, size_t size);
