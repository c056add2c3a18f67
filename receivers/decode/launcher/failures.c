// SPDX-License-Identifier: Apache-2.0
// The rank that a prefix names is the launcher's place, not the worker's, so that it is never
// taken. Facts about the wording: NVIDIA's nvidia-resiliency-ext, fault_tolerance/launcher.py.
#include "receivers/decode/launcher/failures.h"

#include "base/text/cut.h"
#include "pipeline/model/event.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/launcher/summary.h"
#include "receivers/decode/line/reading.h"

enum { SEVERAL_MAX = 64 << 10 }; // of a longer line only the first failure is read

static const struct slice PHRASE = {": ProcessFailure(local_rank=", 28};

// "… [node7] [workload:12(4) infra:1(0)] launcher.py:3659 …" of ft_launcher.
static struct slice host_of_prefix(struct slice message) {
    struct slice behind, host = {NULL, 0};
    if (!text_find(message, SLICE("] [workload:"), &behind))
        return host;
    struct slice before = {message.data, (size_t)(behind.data - message.data) - 12};
    const char *open = memrchr(before.data, '[', before.size);
    if (open == NULL)
        return host;
    host = text_from(before, (size_t)(open - before.data) + 1);
    return host.size > 0 && memchr(host.data, ' ', host.size) == NULL ? host
                                                                      : (struct slice){NULL, 0};
}

// The number that stands before ": ProcessFailure(…", a rank of the job.
static int32_t rank_before(struct slice text) {
    uint64_t rank;
    size_t from = text.size;
    while (from > 0 && text_is_digit(text.data[from - 1]))
        from--;
    return text_number(text_from(text, from), 9, &rank) && rank <= RANK_MAX ? (int32_t)rank
                                                                            : RANK_NONE;
}

// "{12: ProcessFailure(local_rank=4, pid=811, exitcode=-6, error_file='<N/A>'), 13: …}"
static enum read_result read_failures(const struct frame *frame, struct slice message,
                                      struct reading *reading) {
    int64_t local, pid, code;
    struct slice rest;
    if (!text_find(message, PHRASE, &rest))
        return READ_NOT;
    struct slice before = {message.data, (size_t)(rest.data - message.data) - PHRASE.size};
    if (!launcher_number(&rest, &local) || local < 0 || local > RANK_MAX ||
        !text_skip(&rest, SLICE(", pid=")) || !launcher_number(&rest, &pid) || pid < 0 ||
        !text_skip(&rest, SLICE(", exitcode=")) || !launcher_number(&rest, &code) ||
        !text_skip(&rest, SLICE(", ")))
        return READ_NOT;
    reading_begin(reading, OBSERVATION_LAUNCHER_FAILED);
    reading->no_rank = true;
    // The message may be the rest of one with several.
    reading->host = host_of_prefix(frame->message);
    reading->rank = rank_before(before);
    reading_number(reading, FACT_LOCAL_RANK, local);
    reading_number(reading, FACT_PID, pid);
    launcher_set_exit(code, reading);
    struct slice behind, file;
    if (text_skip(&rest, SLICE("error_file='")) && text_find(rest, SLICE("'"), &behind)) {
        file = text_until(rest, '\'');
        if (!slice_equal(file, SLICE("<N/A>")))
            reading_text(reading, FACT_ERROR_FILE, file);
    }
    if (message.size <= SEVERAL_MAX && text_find(rest, SLICE("ProcessFailure("), &behind))
        reading->rest = text_from(rest, text_until(rest, ')').size);
    return READ_EVENT;
}

const struct line_reader READER_FAILURES = {.name = "failures", .read = read_failures};
