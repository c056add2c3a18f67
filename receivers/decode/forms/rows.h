// SPDX-License-Identifier: Apache-2.0
// Files of rows: what logs say, as data (docs/forms.md).
//
//     family openmpi Open MPI, PRRTE
//
//     form ompi_signal
//       text   process rank {rank} on node {host} exited on signal {signal}
//       kind   launcher_failed
//       role   report
//       sample process rank 1 on node gpu-a01 exited on signal 9 (Killed).
//       gives  host=gpu-a01 rank=1 signal=9
//       not    mpirun noticed that the job aborted
//
// `apart yes` lets other lines stand between those of `then`, up to FORM_APART_MAX in a row; else
// the first line that says nothing of them ends the row.
//
//     prefix prrte_tag
//       text   [{_:int},{rank}]<{stdout|stderr|stddiag}>:
//       sample [1,2]<stderr>: KeyError: 'x'
//       gives  rank=2 message=KeyError: 'x'
//
//     envelope stern_json
//       needs     podName nodeName
//       message   message
//       time      timestamp
//       host      nodeName
//       sample    {"message":"KeyError: 'x'","nodeName":"gpu-a01","podName":"t-0"}
//       gives     host=gpu-a01 pod=t-0 message=KeyError: 'x'
//
// A form is what a message says, a prefix what stands in front of one, an envelope where the parts
// of a JSON object stand that holds one, a meaning whose end an exception tells of (meanings.h).
// A row begins in the first column, its fields behind blanks. '#' begins a line that says nothing.
// Of forms that match one message the first in the order of files and rows is taken. A user's row
// with the name of a built-in one stands in its place.
#pragma once

#include "pipeline/model/observation.h"
#include "receivers/decode/forms/pattern.h"

enum {
    FORM_TEXTS_MAX = 8,
    FORM_THEN_MAX = 8,
    FORM_APART_MAX = 24, // lines in a row that say nothing of the row, where `apart` lets them
    FORM_SETS_MAX = 8,
    FORM_WHENS_MAX = 4,
    FORM_SAMPLES_MAX = 16,
    FORM_WORDS_MAX = 64,      // of a meaning
    FORM_MEANINGS_MAX = 256,  // rows of users, too: each may be tried on each exception
    FORM_MORE_MAX = 64,       // lines of a sample behind its first
    FORM_PATHS_MAX = 64,      // of an envelope
    FORM_PATH_SIZE_MAX = 120, // bytes
    FORM_LISTS_MAX = 3,       // of an envelope, one in another
    FORMS_MAX = 4096,         // rows of users, of all files together
    FORM_PREFIXES_MAX = 256,  // prefixes among them: each may be tried on each line
    FORMS_PATHS_MAX = 2048,   // paths of all files
    FORMS_SIZE_MAX = 4 << 20, // bytes of a file
};

// Where a part of a text goes.
enum form_target {
    TARGET_FACT,
    TARGET_RANK,
    TARGET_HOST,
    TARGET_EXIT_CODE,
    // Of prefixes.
    TARGET_LOCAL_RANK,
    TARGET_TASK,
    TARGET_CUDA_DEVICE,
    TARGET_PID,
    TARGET_POD,
    TARGET_NAMESPACE,
    TARGET_CONTAINER,
    TARGET_ADDRESS,
    TARGET_PROGRAM,
    TARGET_WRITER, // whoever that is
    TARGET_TIME,
    TARGET_LEVEL,
    // Of envelopes.
    TARGET_MESSAGE,
    TARGET_STREAM,
    TARGET_PART,      // "P", true: the line goes on in the next record
    TARGET_PATH,      // of the file that the line was read from
    TARGET_TRANSPORT, // of the journal: whether it is the kernel's line
    TARGET_ARRIVED,   // when somebody read the line, for lines that say no time
    TARGET_NEEDS,     // must be there
    TARGET_LIST,      // an array of which each item is a record
    // What an exception left that was logged: its traceback; else its type, and what it says.
    TARGET_TRACE,
    TARGET_RAISED,
    TARGET_REASON,
};

// What numbers mean that stand for levels.
enum form_scale { SCALE_NONE, SCALE_SYSLOG, SCALE_OTLP, SCALE_PINO, SCALE_PYTHON };

// Where a part of an envelope stands: keys with a dot between two.
struct form_path {
    enum form_target target;
    struct slice path;
};

// What a meaning is looked for in.
enum meaning_scope {
    MEANING_EXCEPTION = 1, // an exception of a program
    MEANING_ABORT,         // what a library says as it ends its process: a watchdog, NCCL, C++
};
// A text of a meaning, and what has it: `begins`, at its beginning; of a type, also `ends`:
// anywhere in its last name, none of both: it is the last name.
struct form_word {
    enum { WORD_OF_TYPE, WORD_OF_MESSAGE, WORD_OF_PLACE, WORD_OF_COUNT } of;
    bool begins, ends;
    struct slice text;
    uint64_t letters; // a bit for each that it has
};

struct form_name {
    enum form_target target;
    enum fact_key fact; // of TARGET_FACT
};

struct form_text {
    struct pattern pattern;
    struct form_name names[PATTERN_NAMES_MAX]; // as pattern.names
    // Of a further line: what the block is, where it has this line. OBSERVATION_NONE: the row's.
    enum observation_kind becomes;
};

struct form_set {
    enum fact_key fact;
    int64_t number; // or 0, 1
    struct slice text;
};

// `when signal=9 victim=yes`: what is set where the message said something else.
struct form_when {
    struct form_set said, set;
};

struct form_sample {
    struct slice lines; // joined by newlines
    struct slice gives;
    bool is_not; // … and does not match
    uint32_t line, more_count;
};

struct form {
    struct slice name;
    const char *file;
    struct slice family;
    uint32_t line;
    enum observation_kind kind;
    struct slice role;  // data NULL: none
    bool says_role;     // … of a meaning: that nothing is known
    struct slice cause; // data NULL: none
    // The prefix is that of who tells, not of whom it is told; is_here: but both are on one host;
    // is_agent: it is no rank that tells, and tells of itself.
    bool is_report, is_here, is_agent;
    bool is_none;  // what it reads is no event
    bool is_whole; // a line that ends within the text breaks off, and is refused
    bool is_owner; // it says whose the traceback is that comes below, and is no event by itself
    // It is read in lines of the kernel only: programs may write the same words of other matters.
    bool is_kernel;
    uint32_t uptime_s; // … and only once the machine is up so long
    // Other lines may stand between its own.
    bool is_apart;
    bool is_builtin;
    bool is_prefix, is_envelope, is_meaning;
    enum form_scale scale; // of an envelope: of its levels
    bool is_utc;           // its times are UTC where they say no zone
    bool has_blank;        // the blank behind a tag of syslog stands in front of the message
    // A prefix that other text may look like: it counts once three lines of a log had it, with two
    // different values.
    bool needs_again;
    // … made of names alone: it counts only while nearly all lines of a log have it
    // (line/prefix.h).
    bool is_names;
    // Of a prefix that has an end, too: the line is what stands in front of it. data NULL: none.
    struct slice until;
    bool is_xml; // … and some of its characters are written as XML does
    struct form_text *texts, *then;
    struct form_set sets[FORM_SETS_MAX];
    struct form_when whens[FORM_WHENS_MAX];
    struct form_sample *samples;
    enum meaning_scope scope; // of a meaning; 0: of any
    struct form_word *words;
    uint32_t word_count;
    struct form_path *paths; // of an envelope; of one target the first that is there counts
    uint32_t path_count;
    uint32_t text_count, then_count, set_count, when_count, sample_count;
};

struct form_fault {
    const char *file;
    uint32_t line, column; // from 1
    char words[1024];
};

struct form_rows {
    struct arena *arena;
    struct form **forms; // prefixes and envelopes among them
    uint32_t count, capacity, prefix_count, meaning_count;
    uint32_t paths; // of all envelopes
    bool failed;
    struct form_fault fault; // the first
};

// A bit for each byte that the text has, four bytes to a bit.
uint64_t meaning_letters(struct slice text);
void form_rows_begin(struct form_rows *rows, struct arena *arena);
// Adds those of a file; `file` and `text` live as long as the rows. False: `fault` says why, and
// nothing more is to be added. Those that are built in come last.
bool form_rows_add(struct form_rows *rows, const char *file, struct slice text, bool is_builtin);
// Roles that a row may have, from knowledge of ends: NULL ends the list.
extern const char *const FORM_ROLES[];
