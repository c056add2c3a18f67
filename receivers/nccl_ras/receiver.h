// SPDX-License-Identifier: Apache-2.0
// Inside the nccl_ras receiver: its options, its targets, and a connection to one.
//
// One thread and one poll for all connections. A target has two: one that asks and is closed by the
// server behind its answer, and one that follows what the server tells by itself (MONITOR).
#pragma once

#include "base/buffer.h"
#include "base/http/endpoint.h"
#include "config/option.h"
#include "pipeline/component/feed.h"
#include "receivers/records/options.h"
#include "receivers/records/polling.h"
#include "receivers/records/sink.h"

#include <assert.h>
#include <poll.h>

struct addrinfo;

enum ras_ask { RAS_ASK_FIRST, RAS_ASK_ALL };

struct ras_config {
    struct text_list endpoints;
    int ask; // enum ras_ask
    struct duration interval, timeout, pause;
    bool follow;
    struct byte_size max_reply_size;
    struct record_config records; // only job_id and the quarantine are options
};

enum { RAS_TARGETS_MAX = 256, RAS_LINE_MAX = 1024, RAS_OBJECT_MAX = 65536 };
enum { RAS_SHOWN_MAX = 65536, RAS_REASON_MAX = 192, RAS_COMMAND_MAX = 48 };

// -- connections ----------------------------------------------------------------------------------

enum ras_phase {
    RAS_CLOSED,
    RAS_CONNECTING,
    RAS_HELLO,     // CLIENT PROTOCOL was sent
    RAS_TIMEOUT,   // TIMEOUT was
    RAS_FORMAT,    // SET FORMAT was
    RAS_MONITOR,   // MONITOR was
    RAS_STATUS,    // VERBOSE STATUS was: everything up to the end is the answer
    RAS_FOLLOWING, // objects come as things happen
};

enum ras_outcome {
    RAS_GOING,
    RAS_ANSWERED, // the answer is in `in`; the connection is closed
    RAS_TOLD,     // following: there is something new in `in`
    RAS_ABSENT,   // nobody listens there: no job runs; closed
    RAS_FAILED,   // `reason` says why; closed
    RAS_OLD,      // following: the server cannot (NCCL before 2.29); closed
};

struct ras_connection {
    enum ras_phase phase;
    bool follows;
    bool json;      // it answers in JSON
    bool in_answer; // when it failed, an answer had begun
    int descriptor;
    struct addrinfo *addresses, *next; // of the endpoint; those not tried yet
    uint64_t deadline_ns;              // clock_monotonic_ns; UINT64_MAX: none
    uint64_t timeout_ns;               // that RAS waits for the others
    char out[RAS_COMMAND_MAX];         // what is being sent
    size_t out_size, out_sent;
    struct buffer in;
    char reason[RAS_REASON_MAX];
};

// `max`: of an answer.
void ras_connection_init(struct ras_connection *connection, bool follows, size_t max);
void ras_connection_release(struct ras_connection *connection);
// Begins; it is closed. RAS_GOING, RAS_ABSENT or RAS_FAILED. Looks the name up, which may block as
// long as the system's resolver does.
enum ras_outcome ras_connection_open(struct ras_connection *connection,
                                     const struct endpoint *endpoint, uint64_t timeout_ns,
                                     uint64_t now_ns);
// What poll is to wait for; events 0 and descriptor -1 when it is closed.
struct pollfd ras_connection_wants(const struct ras_connection *connection);
// After poll, with what it found; also when the time is over.
enum ras_outcome ras_connection_look(struct ras_connection *connection, short found,
                                     uint64_t now_ns);
void ras_connection_close(struct ras_connection *connection);

// -- the receiver ---------------------------------------------------------------------------------

enum ras_presence { RAS_UNKNOWN, RAS_NOBODY, RAS_RUNS };

struct ras_target {
    const char *name; // of the options
    char source_name[ENDPOINT_SHOWN_MAX + 16];
    struct endpoint endpoint;
    struct polled polled;
    struct source *source;
    struct source_position position;
    struct ras_connection asking, following;
    enum ras_presence presence;
    bool old;          // it does not push what happens
    bool silent;       // a process of the job does not answer: it is to be asked again
    uint64_t asked_ns; // clock_monotonic_ns
    struct metric *running, *silences;
};

struct ras_receiver {
    const struct ras_config *config;
    const struct component_context *context;
    bool started;
    struct record_sink sink;
    struct ras_target *targets;
    uint32_t target_count;
    struct buffer record;
    uint64_t round_ns;  // when the next one begins, clock_monotonic_ns
    uint32_t under_way; // connections that ask
    uint32_t candidate; // RAS_ASK_FIRST: who is asked next when this one has no answer
    bool in_round;
    bool first_done;
};

// Asks, follows and offers until the feed is stopping.
void ras_run(struct ras_receiver *receiver, struct feed *feed);
