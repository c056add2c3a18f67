// SPDX-License-Identifier: Apache-2.0
// What the files of the offline sink share: run directories, their logs, and how the records of a
// log are written.
#pragma once

#include "exporters/wandb/files.h"
#include "exporters/wandb/media.h"
#include "exporters/wandb/members.h"
#include "exporters/wandb/options.h"
#include "exporters/wandb/record.h"

// -- the log (log.c): chunks in blocks, protobuf in chunks --------------------------------

enum { OFFLINE_BUFFER_MAX = 256 << 20 }; // of one record: its bytes were bounded before

enum { OFFLINE_BLOCK = 32 * 1024, OFFLINE_CHUNK_HEAD = 7, OFFLINE_FILE_HEAD = 7 };

// Appends to `out` the chunks of one record of a file that is `length` bytes long so far, 0: its
// head comes first. The same records give the same bytes, however they are spread over calls.
void offline_log_append(struct buffer *out, uint64_t length, struct slice payload);

// Protobuf: a field that holds a message is opened, filled and closed with what opening returned.
// A zero number or an empty text is what a missing field means, so neither is written.
size_t proto_open(struct buffer *out, uint32_t field);
void proto_close(struct buffer *out, size_t opened);
void proto_int(struct buffer *out, uint32_t field, int64_t value);
// What is not Unicode in `text` becomes U+FFFD: readers refuse a whole record for one such byte.
void proto_text(struct buffer *out, uint32_t field, struct slice text);

// -- records (records.c) ------------------------------------------------------------------

struct offline_run;

// Each appends a record to what is pending of the run, or leaves it out when it is too much for a
// buffer, which is logged.
void offline_write_header(struct offline_run *run);
// `record` NULL: the run goes on in a directory of its own without having been announced.
void offline_write_run(struct offline_run *run, const struct wandb_record *record, bool resumes);
// `visualize` as in RUN: one chart a member; nothing when it is empty.
void offline_write_charts(struct offline_run *run, struct slice visualize);
// Members of the config, as in RUN; nothing when there are none.
void offline_write_settings(struct offline_run *run, struct slice settings);
// A value that is OFFLINE_REMOVED takes its key out.
#define OFFLINE_REMOVED SLICE("-")
void offline_write_summary(struct offline_run *run); // of its summary
// A row with its step; `media` (may be empty) is the value of the record's key.
void offline_write_row(struct offline_run *run, const struct wandb_record *record, uint64_t step,
                       struct slice media);
void offline_write_file(struct offline_run *run, struct slice path);
// `folder`: absolute, where the files of `list` lie under their names. Sorts the list.
void offline_write_artifact(struct offline_run *run, const struct wandb_record *record,
                            struct media_list *list, const char *folder);
void offline_write_alert(struct offline_run *run, const struct wandb_record *record);
void offline_write_exit(struct offline_run *run, const struct wandb_record *record);

// -- run directories ------------------------------------------------------------------

// How far a log has come.
struct offline_position {
    uint64_t length;    // bytes of the file
    uint64_t records;   // in it
    uint64_t first_row; // which row of the run is step 0 here, once has_rows
    bool has_rows;
    bool finished;
};

struct offline_run {
    char id[WANDB_RUN_ID_MAX + 1];
    uint64_t start_ns;
    struct wandb_offline *offline;
    uint64_t name_s; // Unix seconds in the directory's name
    uint64_t incarnation;
    uint64_t used;                // a clock of calls: which was written to last
    struct offline_position kept; // on the disk
    struct offline_position now;  // with what this call has said
    uint32_t tail_crc;            // of the last bytes of `kept.length`, for the checkpoint
    bool touched;                 // by this call
    struct buffer pending;        // the last bytes of `now.length`, not in the file yet
    // `wandb sync` makes no summary out of rows: what this call has said for it, one record at its
    // end.
    struct wandb_values summary;
};

struct wandb_offline {
    const struct wandb_config *config;
    const char *site;
    char *directory;           // absolute
    struct offline_run **runs; // of the same id the later one stands behind
    uint32_t run_count, run_capacity;
    uint32_t run_max;
    uint64_t clock;
    uint64_t sequence;     // of the last record on the disk
    struct buffer scratch; // of one record
    struct buffer text;    // of one value in it
    struct buffer media;   // a row value
    struct buffer path;    // of a run file, in files/
    struct buffer page;    // an HTML page as it is stored
    // What this call has made and a failure takes away again, in the order of making.
    char **made;
    uint32_t made_count, made_capacity;
};

// -- runs (runs.c) ------------------------------------------------------------------------

void run_drop(struct wandb_offline *offline, uint32_t index);
struct offline_run *run_add(struct wandb_offline *offline, struct slice id);
struct offline_run *run_find(const struct wandb_offline *offline, struct slice id); // NULL: unknown
// Forgets runs that are complete and begun anew, and the oldest ones over the bound.
void runs_trim(struct wandb_offline *offline);
// The run that `record` is of, ready to be written to; begins it where that is due.
enum status run_touch(struct wandb_offline *offline, const struct wandb_record *record,
                      struct offline_run **touched, struct error *error) MUST_USE;
// DIRECTORY/offline-run-…-ID, what is in it, and the log in it; from memory_take.
char *run_directory(const struct wandb_offline *offline, const struct offline_run *run);
char *run_part(const struct wandb_offline *offline, const struct offline_run *run,
               const char *part);
char *run_log_path(const struct wandb_offline *offline, const struct offline_run *run);

// Sets tail_crc from what is on the disk (resume.c).
void run_mark(const struct wandb_offline *offline, struct offline_run *run);

// -- the summary (summary.c) --------------------------------------------------------------

void summary_note(struct offline_run *run, const struct wandb_record *record, uint64_t step,
                  struct slice media);
// Writes what was noted.
void summary_say(struct offline_run *run);

// -- files (files.c) ----------------------------------------------------------------------

// All fill `error` with the path; what they make is noted in offline->made.
enum status files_make_folder(struct wandb_offline *offline, const char *path,
                              struct error *error) MUST_USE;
// FOLDER/NAME with the folders in between, written and on the disk.
enum status files_write(struct wandb_offline *offline, const char *folder, struct slice name,
                        struct slice bytes, struct error *error) MUST_USE;
// The same from a file of this machine, setting its md5 and size (media_file_read's statuses).
enum status files_copy(struct wandb_offline *offline, const char *folder, struct media_file *file,
                       struct error *error) MUST_USE;
// Writes what is pending to the run's log and waits until it is on the disk.
enum status files_append(struct wandb_offline *offline, struct offline_run *run,
                         struct error *error) MUST_USE;
// Cuts the log to what was kept of it when it is longer. STATUS_NOT_FOUND when it is gone or
// shorter.
enum status files_cut(const struct wandb_offline *offline, const struct offline_run *run,
                      struct error *error) MUST_USE;
// Puts the directories of what was made on the disk and forgets the list.
enum status files_keep(struct wandb_offline *offline, struct error *error) MUST_USE;
void files_undo(struct wandb_offline *offline);
