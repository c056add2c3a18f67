// SPDX-License-Identifier: Apache-2.0
// Whatever a checkpoint says of how far a file was written, and whatever stands in the file, what
// is left of it is its beginning, and nothing is cut that is not ours.
//
// The input is changes to the checkpoint's words, behind their count, and then what somebody
// appended to the file. It is done to a file of lines (json) and to the log of a run (W&B,
// offline). Names in those words stay as they are: they are places in the file system.
#include "base/log.h"
#include "exporters/output/output.h"
#include "exporters/wandb/offline/offline.h"
#include "exporters/wandb/record.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/temporary.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20, LINES_SIZE = 3 };

static char folder[64], command[96];
static char lines_path[128], log_path[256];
static char bytes_before[FILE_MAX], bytes_after[FILE_MAX];
static const char *const verdicts[LINES_SIZE] = {
    "{\"schema\":\"culprit.verdict.v1\",\"id\":\"a\"}\n",
    "{\"schema\":\"culprit.verdict.v1\",\"id\":\"b\"}\n", "{\"schema\":\"culprit.summary.v1\"}\n"};

static void leave(void) {
    (void)!system(command);
}

int LLVMFuzzerInitialize(int *argument_count, char ***arguments) {
    (void)argument_count;
    (void)arguments;
    log_configure((enum log_level)(LOG_ERROR + 1), LOG_CONSOLE);
    temporary_path(folder, sizeof folder, "fuzz");
    require(mkdtemp(folder) != NULL);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    snprintf(lines_path, sizeof lines_path, "%s/verdicts.jsonl", folder);
    snprintf(log_path, sizeof log_path, "%s/runs/offline-run-20260101_000000-a/run-a.wandb",
             folder);
    atexit(leave);
    return 0;
}

static size_t file_read(const char *path, char *bytes) {
    FILE *file = fopen(path, "rb");
    require(file != NULL);
    size_t size = fread(bytes, 1, FILE_MAX, file);
    fclose(file);
    return size;
}

static void file_append(const char *path, struct slice bytes) {
    FILE *file = fopen(path, "ab");
    require(file != NULL && fwrite(bytes.data, 1, bytes.size, file) == bytes.size);
    fclose(file);
}

// A number, a place and a byte each; those from `fixed` on stay.
static void change(struct buffer *words, struct fuzz_input *input, size_t fixed) {
    for (unsigned count = fuzz_byte(input) % 16; count > 0 && input->left > 1; count--) {
        size_t place = fuzz_byte(input);
        char byte = (char)fuzz_byte(input);
        if (place < fixed && place < words->size)
            words->data[place] = byte;
    }
}

// What is there now is the beginning of what was there; `changed` says that it may be cut anywhere.
static void require_beginning(const char *path, size_t before, size_t least) {
    size_t after = file_read(path, bytes_after);
    require(after <= before && after >= least);
    require(memcmp(bytes_before, bytes_after, after) == 0);
}

// -- a file of lines ------------------------------------------------------------------------------

static void lines_resume(struct fuzz_input input) {
    struct output output;
    struct output_options options = {.path = lines_path, .max_size = 1 << 20, .site = "fuzz"};
    struct error error = {0};
    struct buffer words;
    struct send_outcome outcome;
    buffer_init(&words, 4096);
    (void)unlink(lines_path);
    require(output_open(&output, &options, &error) == STATUS_OK);
    for (int i = 0; i < LINES_SIZE; i++) {
        struct request request = {.bytes = slice_of(verdicts[i])};
        outcome = (struct send_outcome){0};
        require(output_send(&output, &request, &outcome, &error) == STATUS_OK);
        if (i == 1)
            output_delivered(&output, &words);
    }
    output_close(&output);
    change(&words, &input, words.size);
    file_append(lines_path, (struct slice){input.at, input.left});
    size_t before = file_read(lines_path, bytes_before);
    enum status status = output_open(&output, &options, &error);
    if (status == STATUS_OK) {
        // A torn last line is cut already.
        status = output_resume(&output, buffer_slice(&words), &error);
        // The checksum was that of a place behind the second line: nothing before it goes.
        require_beginning(lines_path, before, strlen(verdicts[0]));
    } else {
        require_beginning(lines_path, before, before);
    }
    require(status == STATUS_OK || strlen(error.message) > 10);
    output_close(&output);
    buffer_release(&words);
}

// -- the log of a run -----------------------------------------------------------------------------

static void say(struct buffer *out, uint64_t *sequence, struct wandb_record record) {
    uint64_t row = *sequence;
    struct wandb_writer writer = {.out = out,
                                  .sequence = sequence,
                                  .row = &row,
                                  .run = SLICE("a"),
                                  .time_ns = UINT64_C(1767225600000000000)};
    wandb_say(&writer, &record);
}

static void log_resume(struct fuzz_input input) {
    static const struct wandb_record row = {.kind = WANDB_ROW, .members = {"\"x\":1", 5}};
    char directory[96];
    snprintf(directory, sizeof directory, "%s/runs", folder);
    struct wandb_config config = {.project = "p", .mode = WANDB_OFFLINE, .directory = directory};
    struct wandb_offline *offline;
    struct send_outcome outcome;
    struct error error = {0};
    struct buffer records, words;
    uint64_t sequence = 0;
    buffer_init(&records, 1 << 16);
    buffer_init(&words, 4096);
    leave();
    require(mkdir(folder, 0700) == 0);
    require(wandb_offline_open(&offline, &config, "fuzz", &error) == STATUS_OK);
    say(&records, &sequence, (struct wandb_record){.kind = WANDB_RUN, .incarnation = 3});
    say(&records, &sequence, row);
    for (int i = 0; i < 2; i++) {
        outcome = (struct send_outcome){0};
        require(wandb_offline_send(offline, buffer_slice(&records), false, &outcome, &error) ==
                STATUS_OK);
        if (i == 0)
            wandb_offline_delivered(offline, &words);
        buffer_reset(&records);
        say(&records, &sequence, row);
    }
    wandb_offline_close(offline);
    change(&words, &input, words.size - 1); // but for the run's name, which is last
    file_append(log_path, (struct slice){input.at, input.left});
    size_t before = file_read(log_path, bytes_before);
    require(wandb_offline_open(&offline, &config, "fuzz", &error) == STATUS_OK);
    enum status status = wandb_offline_resume(offline, buffer_slice(&words), &error);
    require(status == STATUS_OK || strlen(error.message) > 10);
    wandb_offline_close(offline);
    require_beginning(log_path, before, 0);
    buffer_release(&words);
    buffer_release(&records);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input input = {(const char *)data, size};
    if (size > 65536)
        return 0;
    lines_resume(input);
    log_resume(input);
    return 0;
}
