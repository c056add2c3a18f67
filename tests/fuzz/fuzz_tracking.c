// SPDX-License-Identifier: Apache-2.0
// Whatever the files of a finished tracking run hold, its export says a whole run, or why not.
//
// The input is the files' bytes, a zero byte between them: statistics, session, the attribution's
// tensors and its metadata. What is said of them must be records that can be read, with members
// that are JSON, but for the bare NaN and infinities that members may have.
#include "base/intern.h"
#include "base/log.h"
#include "exporters/wandb/members.h"
#include "exporters/wandb/record.h"
#include "exporters/wandb/tracking/tracking.h"
#include "receivers/decode/json/scan.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/temporary.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static const char *const names[] = {"stats.json", "session.json", "cuda_tensor_attribution.json",
                                    "cuda_native_debug_metadata.json"};

static const char *path_of(const char *name) {
    static char paths[4][192];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void leave(void) {
    for (int i = 0; i < 4; i++)
        (void)unlink(path_of(names[i]));
    (void)rmdir(folder);
}

int LLVMFuzzerInitialize(int *argument_count, char ***arguments) {
    (void)argument_count;
    (void)arguments;
    log_configure((enum log_level)(LOG_ERROR + 1), LOG_CONSOLE);
    temporary_path(folder, sizeof folder, "fuzz");
    require(mkdtemp(folder) != NULL);
    atexit(leave);
    return 0;
}

static void write_file(const char *name, struct slice bytes) {
    FILE *file = fopen(path_of(name), "wb");
    require(file != NULL && fwrite(bytes.data, 1, bytes.size, file) == bytes.size);
    fclose(file);
}

static void require_members(struct slice members) {
    struct token token;
    struct json_fault fault;
    char *text = memory_take(members.size + 2);
    text[0] = '{';
    memcpy(text + 1, members.data, members.size);
    text[members.size + 1] = '}';
    const char *end = text + members.size + 2;
    require(json_scan_value(text, end, 0, &token, &fault) == end);
    memory_give(text);
}

static void require_records(struct slice bytes) {
    struct wandb_record record = {.kind = WANDB_RUN};
    uint64_t sequence = 0;
    while (bytes.size > 0) {
        require(wandb_record_read(&bytes, &record) && record.sequence == ++sequence);
        require((record.kind == WANDB_RUN) == (sequence == 1));
        if (record.members.size > 0)
            require_members(record.members);
    }
    require(record.kind == WANDB_FINISH);
}

static void say(struct wandb_tracking *tracking) {
    uint64_t sequence = 0, row = 0;
    struct buffer out;
    buffer_init(&out, 1 << 30);
    struct wandb_writer writer = {.out = &out,
                                  .sequence = &sequence,
                                  .row = &row,
                                  .run = SLICE("abcd1234"),
                                  .time_ns = UINT64_C(1767225700000000000)};
    wandb_tracking_say(tracking, SLICE("<html></html>"), &writer);
    require(!out.failed);
    require_records(buffer_slice(&out));
    buffer_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input input = {(const char *)data, size};
    bool there[4];
    for (int i = 0; i < 4; i++) {
        struct slice bytes = {"", 0};
        there[i] = fuzz_piece(&input, '\0', &bytes) && bytes.size > 0;
        write_file(names[i], bytes);
    }
    struct wandb_config config = {
        .project = "p",
        .content = WANDB_TRACKING,
        .log_tables = true,
        .log_attribution = true,
        .tracking = {.command_name = "track",
                     .max_events = 16,
                     .stats_file = there[0] ? path_of(names[0]) : NULL,
                     .session_file = there[1] ? path_of(names[1]) : NULL,
                     .attribution_bundle = there[2] || there[3] ? folder : NULL}};
    struct wandb_tracking *tracking = NULL;
    struct error error = {0};
    enum status status = wandb_tracking_open(&tracking, &config, "exporter/wandb", &error);
    if (status == STATUS_OK)
        say(tracking);
    else
        require(strlen(error.message) > 10);
    wandb_tracking_close(tracking);
    intern_release();
    return 0;
}
