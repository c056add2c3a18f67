// SPDX-License-Identifier: Apache-2.0
// For tests: what logs, launchers and objects tell of ends, among the events of cluster.h.
#pragma once

#include "pipeline/model/observation.h"
#include "tests/processors/cluster_fixture.h"

enum { FACTS_MAX = 10, ENDS_MAX = 256 };

struct end {
    struct observation said;
    struct fact facts[FACTS_MAX];
    struct rank_place place;
};
static struct end ends[ENDS_MAX];

static inline struct event *place_of(double seconds, const char *node, int32_t rank, int64_t pid) {
    struct end *end = &ends[cluster.count];
    end->place = (struct rank_place){.rank = rank,
                                     .local_rank = rank % 2,
                                     .node = intern(slice_of(node)),
                                     .address = PCI_NONE,
                                     .pid = pid};
    struct event *event = node_event_add(&cluster, seconds, node, EVENT_RANK_MAP);
    event->place = &end->place;
    event->rank = rank;
    event->position = cluster.count;
    return event;
}

static inline void add(struct event *event, enum fact_key key, int64_t number) {
    struct end *end = &ends[event - cluster.events];
    end->facts[end->said.fact_count++] = (struct fact){.key = key, .number = number};
}

static inline void add_text(struct event *event, enum fact_key key, const char *text) {
    struct end *end = &ends[event - cluster.events];
    end->facts[end->said.fact_count++] = (struct fact){.key = key, .text = slice_of(text)};
}

static inline void add_yes_no(struct event *event, enum fact_key key, bool yes) {
    struct end *end = &ends[event - cluster.events];
    end->facts[end->said.fact_count++] = (struct fact){.key = key, .yes = yes};
}

// Facts are added in the order of enum fact_key.
static inline struct event *say(double seconds, const char *node, int32_t rank,
                                enum observation_kind kind) {
    struct end *end = &ends[cluster.count];
    end->said = (struct observation){.kind = kind, .facts = end->facts};
    struct event *event = node_event_add(&cluster, seconds, node, EVENT_OBSERVATION);
    event->observation = &end->said;
    event->rank = rank;
    event->source = intern(SLICE("agent.log"));
    event->position = cluster.count;
    return event;
}

static inline struct event *raise_in(double seconds, const char *node, int32_t rank,
                                     const char *type, const char *message, bool victim) {
    struct event *event = say(seconds, node, rank, OBSERVATION_ERROR_FILE);
    add_text(event, FACT_EXCEPTION, type);
    add_text(event, FACT_MESSAGE, message);
    add_yes_no(event, FACT_VICTIM, victim);
    ends[event - cluster.events].said.time_slack_ns = 1000000000;
    return event;
}

static inline void lose_peer(double seconds, const char *node, int32_t rank) {
    struct event *event = say(seconds, node, rank, OBSERVATION_PEER_CLOSED);
    add_text(event, FACT_EXCEPTION, "RuntimeError");
    add_yes_no(event, FACT_VICTIM, true);
}

static inline void leaves(double seconds, const char *node, int64_t pid, enum fact_key key,
                          int64_t value) {
    struct event *event = say(seconds, node, RANK_NONE, OBSERVATION_LAUNCHER_FAILED);
    add(event, FACT_PID, pid);
    add(event, key, value);
}

static inline void tell_to_end(double seconds, const char *node, int64_t pid) {
    struct event *event = say(seconds, node, RANK_NONE, OBSERVATION_LAUNCHER_SIGNAL);
    add(event, FACT_PID, pid);
    add(event, FACT_SIGNAL, 15);
    add_yes_no(event, FACT_VICTIM, true);
}

// Two ranks on each of two nodes, pids from `pid` on.
static inline void start_job(double seconds, int64_t pid) {
    for (int32_t rank = 0; rank < 4; rank++)
        place_of(seconds, rank < 2 ? "a" : "b", rank, pid + rank);
}
