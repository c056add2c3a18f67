// SPDX-License-Identifier: Apache-2.0
// Every figure is a hash of the line's number or its rank, so that no state is kept and lines can
// be made in any order.
#include "bench/made_lines.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static const uint64_t START_NS = UINT64_C(1760000000000000000);
static const uint64_t STEP_NS = 100000000;
static const uint64_t GIB = UINT64_C(1) << 30;
enum { SPIKE_EVERY = 4096, SPIKE_STEPS = 4, JOB_NAME_MAX = 24 };

static uint64_t mixed(uint64_t value) {
    value += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

static uint64_t time_ns(uint64_t step, uint64_t rank, uint64_t dice) {
    uint64_t skew_ns = mixed(rank) % 40000000;
    uint64_t jitter_ns = dice % 5000000;
    return START_NS + step * STEP_NS + skew_ns + jitter_ns;
}

static uint64_t used_bytes(const struct made_job *job, uint64_t step, uint64_t rank,
                           uint64_t dice) {
    uint64_t used = 20 * GIB + mixed(rank + 1000000) % GIB + dice % (32 << 20);
    uint64_t round = step / SPIKE_EVERY;
    uint64_t into = step % SPIKE_EVERY;
    if (round > 0 && into < SPIKE_STEPS && mixed(round) % job->ranks == rank)
        used += 8 * GIB;
    return used / 512 * 512;
}

static const char capabilities[] =
    "\"memory_capabilities\":{\"backend\":\"cuda\",\"telemetry_collector\":"
    "\"stormlog.cuda_tracker\",\"sampling_source\":\"torch.cuda\","
    "\"supports_allocator_allocated\":true,\"supports_allocator_reserved\":true,"
    "\"supports_allocator_active\":true,\"supports_allocator_inactive\":true,"
    "\"supports_device_used\":true,\"supports_device_free\":true,\"supports_device_total\":true,"
    "\"supports_native_allocator_history\":false,\"supports_fragmentation_analysis\":true,"
    "\"supports_allocator_attribution\":true,\"supports_bounded_profiling\":false},";

static void job_name(const struct made_job *job, uint64_t rank, uint64_t dice,
                     char name[JOB_NAME_MAX]) {
    if (job->jobs == 0)
        snprintf(name, JOB_NAME_MAX, "%s", mixed(dice) % 10 == 0 ? "job-2" : "job-1");
    else
        snprintf(name, JOB_NAME_MAX, "job-%05u", (unsigned)(rank / (job->ranks / job->jobs)));
}

size_t made_line(const struct made_job *job, uint64_t number, char *out) {
    assert(job->jobs <= job->ranks);
    static const char *const phases[] = {"forward", "backward", "optimizer", "data_loading"};
    uint64_t step = number / job->ranks, rank = number % job->ranks;
    uint64_t dice = mixed(number);
    uint64_t used = used_bytes(job, step, rank, dice >> 8);
    uint64_t before =
        step == 0 ? used : used_bytes(job, step - 1, rank, mixed(number - job->ranks) >> 8);
    uint64_t total = 80 * GIB;
    uint32_t world_size = job->jobs == 0 ? job->ranks : job->ranks / job->jobs;
    uint64_t own_rank = rank % world_size;
    char name[JOB_NAME_MAX];
    job_name(job, rank, dice, name);
    int size = snprintf(
        out, MADE_LINE_MAX,
        "{\"schema_version\":%d,\"session_id\":\"run7-r%05" PRIu64 "\",\"timestamp_ns\":%" PRIu64
        ",\"event_type\":\"sample\","
        "\"collector\":\"stormlog.cuda_tracker\",\"sampling_interval_ms\":100,\"pid\":%" PRIu64
        ",\"host\":\"node-%04" PRIu64 "\",\"job_id\":\"%s\",\"rank\":%" PRIu64
        ",\"local_rank\":%" PRIu64 ",\"world_size\":%" PRIu32 ",\"device_id\":%" PRIu64
        ",\"allocator_allocated_bytes\":%" PRIu64 ",\"allocator_reserved_bytes\":%" PRIu64
        ",\"allocator_active_bytes\":%" PRIu64 ",\"allocator_inactive_bytes\":%" PRIu64
        ",\"allocator_change_bytes\":%" PRId64 ",\"device_used_bytes\":%" PRIu64
        ",\"device_free_bytes\":%" PRIu64 ",\"device_total_bytes\":%" PRIu64
        ",\"context\":null,\"metadata\":{%s\"step\":%" PRIu64
        ",\"phase\":\"%s\",\"note\":\"%s\",\"loss\":%" PRIu64 ".%04" PRIu64 "}}\n",
        job->schema_version, rank, time_ns(step, rank, dice), 4000 + rank % 8, rank / 8, name,
        own_rank, own_rank % 8, world_size, own_rank % 8, used / 10 * 9, used / 20 * 19,
        used / 16 * 14, used / 32, (int64_t)(used / 10 * 9) - (int64_t)(before / 10 * 9), used,
        total - used, total, job->schema_version == 4 ? capabilities : "", step, phases[dice >> 62],
        dice % 256 == 0 ? "two\\nlines of \\\"text\\\" \\u00e9" : "steady", dice >> 32 & 7,
        dice % 10000);
    assert(size > 0 && size < MADE_LINE_MAX);
    return (size_t)size;
}
