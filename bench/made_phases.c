// SPDX-License-Identifier: Apache-2.0
#include "bench/made_phases.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

static const uint64_t START_NS = UINT64_C(1760000000000000000);
static const uint64_t STEP_NS = 200000000;
enum { SLOW_FROM = 40 };

static const struct {
    const char *action, *name, *path;
    uint64_t at_us;
} BOUNDARIES[] = {
    {"enter", "step", "\"epoch\",\"step\"", 0},
    {"enter", "data", "\"epoch\",\"step\",\"data\"", 10},
    {"exit", "data", "\"epoch\",\"step\",\"data\"", 10000},
    {"enter", "forward", "\"epoch\",\"step\",\"forward\"", 10010},
    {"exit", "forward", "\"epoch\",\"step\",\"forward\"", 70000},
    {"enter", "backward", "\"epoch\",\"step\",\"backward\"", 100000},
    {"exit", "backward", "\"epoch\",\"step\",\"backward\"", 190000},
    {"exit", "step", "\"epoch\",\"step\"", 195000},
};
enum { BOUNDARY_COUNT = sizeof BOUNDARIES / sizeof *BOUNDARIES, FORWARD_EXIT = 4 };

size_t made_phase_line(const struct made_phases *job, uint64_t number, char *out) {
    uint64_t rank = number % job->ranks, at = number / job->ranks % BOUNDARY_COUNT,
             step = number / job->ranks / BOUNDARY_COUNT;
    bool slow = at == FORWARD_EXIT && rank == 1 && step >= SLOW_FROM;
    uint64_t time_ns =
        START_NS + step * STEP_NS + (BOUNDARIES[at].at_us + (slow ? 25000 : 0)) * 1000 + rank;
    int size = snprintf(
        out, MADE_PHASE_LINE_MAX,
        "{\"schema_version\":3,\"session_id\":\"run7-r%05" PRIu64 "\",\"timestamp_ns\":%" PRIu64
        ",\"event_type\":\"phase_%s\",\"collector\":\"stormlog.cuda_tracker\","
        "\"sampling_interval_ms\":100,\"pid\":%" PRIu64 ",\"host\":\"node-%04" PRIu64
        "\",\"job_id\":\"job-1\",\"rank\":%" PRIu64 ",\"local_rank\":%" PRIu64
        ",\"world_size\":%" PRIu32 ",\"device_id\":%" PRIu64
        ",\"allocator_allocated_bytes\":4096,\"allocator_reserved_bytes\":4096,"
        "\"allocator_active_bytes\":null,\"allocator_inactive_bytes\":null,"
        "\"allocator_change_bytes\":0,\"device_used_bytes\":4096,\"device_free_bytes\":null,"
        "\"device_total_bytes\":null,\"context\":null,\"metadata\":{\"phase_scope\":{"
        "\"action\":\"%s\",\"name\":\"%s\",\"path\":[%s],\"scope_id\":\"%s\",\"sequence\":%" PRIu64
        ",\"thread_id\":1,\"thread_name\":\"MainThread\"}}}\n",
        rank, time_ns, BOUNDARIES[at].action, 4000 + rank % 8, rank / 8, rank, rank % 8, job->ranks,
        rank % 8, BOUNDARIES[at].action, BOUNDARIES[at].name, BOUNDARIES[at].path,
        BOUNDARIES[at].name, step * BOUNDARY_COUNT + at);
    assert(size > 0 && size < MADE_PHASE_LINE_MAX);
    return (size_t)size;
}
