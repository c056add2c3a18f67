// SPDX-License-Identifier: Apache-2.0
// `culprit store check` and `culprit store dump`.
//
// Both commands read it by store_inspect, also while another culprit uses it.
#include "extensions/file_storage/store.h"
#include "base/text/display.h"
#include "base/text/human.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "config/option.h"
#include "pipeline/component/storage.h"

struct store_flags {
    const char *space;
    const char *name;
    bool bytes;
};

struct store_reader {
    struct invocation *invocation;
    const struct store_flags *flags;
    int space; // only this one; -1: all
    uint64_t blobs, size;
    uint32_t complaints;
};

static const char *directory_of(const struct invocation *invocation) {
    return invocation->operands.count == 0 ? NULL : invocation->operands.items[0];
}

static void complain(void *context, const char *sentence) {
    struct store_reader *reader = context;
    reader->complaints++;
    buffer_append_format(reader->invocation->err,
                         "culprit %s: ", reader->invocation->command->name);
    display_append(reader->invocation->err, slice_of(sentence), 0);
    buffer_append_char(reader->invocation->err, '\n');
    invocation_say(reader->invocation);
}

// -- check --------------------------------------------------------------------------------------

static bool count_blob(void *context, enum storage_space space, const char *name, uint64_t number,
                       struct slice bytes) {
    (void)space, (void)name, (void)number;
    struct store_reader *reader = context;
    reader->blobs++;
    reader->size += bytes.size;
    return true;
}

static int check_run(struct invocation *invocation) {
    const char *directory = directory_of(invocation);
    if (directory == NULL)
        return invocation_misused(invocation, "name the store's DIRECTORY");
    struct error error = {0};
    struct store_reader reader = {.invocation = invocation};
    if (store_inspect(directory, count_blob, complain, &reader, &error) != STATUS_OK)
        return invocation_fail(invocation, &error);
    char size[HUMAN_MAX];
    human_bytes((int64_t)reader.size, size);
    display_append(invocation->out, slice_of(directory), 0);
    buffer_append_format(invocation->out, ": %llu blobs, %s; %s\n",
                         (unsigned long long)reader.blobs, size,
                         reader.complaints == 0 ? "whole" : "damaged");
    return reader.complaints == 0 ? 0 : 1;
}

const struct command command_store_check = {
    .name = "store check",
    .summary = "whether a store is whole",
    .operands = "DIRECTORY",
    .operand_max = 1,
    .description =
        "Reads every page and blob of the store of a file_storage extension and "
        "compares checksums. Changes nothing; culprit may run meanwhile, and repairs a "
        "damaged store itself when it starts.",
    .examples = "  culprit store check /var/lib/culprit\n",
    .exit_codes =
        "  0   whole\n  1   damaged; what is wrong is on standard error\n"
        "  64  the command line is wrong\n"
        "  66  there is no store\n"
        "  74  reading or writing failed\n"
        "  77  no permission to read it\n",
    .run = check_run,
};

// -- dump ---------------------------------------------------------------------------------------

static bool print_blob(void *context, enum storage_space space, const char *name, uint64_t number,
                       struct slice bytes) {
    struct store_reader *reader = context;
    if (reader->space >= 0 && reader->space != (int)space)
        return true;
    if (reader->flags->name != NULL && strcmp(name, reader->flags->name) != 0)
        return true;
    struct buffer *out = reader->invocation->out;
    buffer_append_format(out, "%s\t", storage_space_name(space));
    display_append(out, slice_of(name), 0);
    buffer_append_format(out, "\t%llu\t%zu", (unsigned long long)number, bytes.size);
    if (reader->flags->bytes) {
        buffer_append_char(out, '\t');
        for (size_t i = 0; i < bytes.size; i++)
            buffer_append_format(out, "%02x", (unsigned char)bytes.data[i]);
    }
    buffer_append_char(out, '\n');
    reader->blobs++;
    return !out->failed;
}

static int space_of(const char *name) {
    for (int space = 0; space < STORAGE_SPACE_COUNT; space++)
        if (strcmp(storage_space_name((enum storage_space)space), name) == 0)
            return space;
    return -1;
}

static int dump_run(struct invocation *invocation) {
    const struct store_flags *flags = invocation->options;
    const char *directory = directory_of(invocation);
    if (directory == NULL)
        return invocation_misused(invocation, "name the store's DIRECTORY");
    int wanted = flags->space == NULL ? -1 : space_of(flags->space);
    if (flags->space != NULL && wanted < 0)
        return invocation_misused(invocation,
                                  "\"%s\" is no space of a store; they are meta, state, strings, "
                                  "queue, journal and repeats",
                                  flags->space);
    struct error error = {0};
    struct store_reader reader = {.invocation = invocation, .flags = flags, .space = wanted};
    if (store_inspect(directory, print_blob, complain, &reader, &error) != STATUS_OK)
        return invocation_fail(invocation, &error);
    return reader.complaints == 0 ? 0 : 1;
}

static const struct argument dump_rows[] = {
    {.name = "space",
     .type = ARGUMENT_TEXT,
     .offset = offsetof(struct store_flags, space),
     .value_name = "SPACE",
     .help = "only this one: meta, state, strings, queue, journal or repeats"},
    {.name = "name",
     .type = ARGUMENT_TEXT,
     .offset = offsetof(struct store_flags, name),
     .value_name = "NAME",
     .help = "only blobs of this name"},
    {.name = "bytes",
     .type = ARGUMENT_FLAG,
     .offset = offsetof(struct store_flags, bytes),
     .help = "with what is in each blob, in hexadecimal"},
};

const struct command command_store_dump = {
    .name = "store dump",
    .summary = "what is in a store",
    .operands = "DIRECTORY",
    .operand_max = 1,
    .description =
        "Prints a line for each blob: space, name, number and bytes, with tabs between "
        "them. Changes nothing; culprit may run meanwhile.",
    .rows = dump_rows,
    .row_count = OPTION_COUNT(dump_rows),
    .options_size = sizeof(struct store_flags),
    .examples = "  culprit store dump /var/lib/culprit --space queue\n",
    .exit_codes =
        "  0   printed\n  1   damaged; what could be read was printed\n"
        "  64  the command line is wrong\n"
        "  66  there is no store\n"
        "  74  reading or writing failed\n"
        "  77  no permission to read it\n",
    .run = dump_run,
};
