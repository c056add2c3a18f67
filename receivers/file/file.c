// SPDX-License-Identifier: Apache-2.0
// The file receiver as a component: its options, and its three ways in.
//
// list and read serve inputs that end (analyze, run --once): what is there is found, then each is
// read to its end. run follows files that grow (file_tail.c). Memory: one window of max_line_size
// and two blocks at most, some 300 bytes a file that is followed.
#include "receivers/file.h"

#include "receivers/file/dump.h"
#include "receivers/file/follow/tail.h"
#include "receivers/file/receiver.h"

#include <stdio.h>

static const char *const start_choices[] = {"beginning", "end", NULL};

#define AT(field) offsetof(struct file_config, field)

static const struct option options[] = {
    {.name = "include",
     .type = OPTION_TEXT_LIST,
     .offset = AT(include),
     .required = true,
     .help = "files, directories and patterns (`*`, `?`, `[a-z]`, `{a,b}`, `**`) to read; `-` is "
             "standard input"},
    {.name = "exclude",
     .type = OPTION_TEXT_LIST,
     .offset = AT(exclude),
     .help = "patterns of paths to leave out; one without a slash is compared with every name in "
             "the path"},
    {.name = "start_at",
     .type = OPTION_CHOICE,
     .offset = AT(start_at),
     .default_value = "beginning",
     .choices = start_choices,
     .help = "where to begin in files that are there when following starts; files that appear "
             "later are read from the beginning"},
    {.name = "max_line_size",
     .type = OPTION_SIZE,
     .offset = AT(max_line_size),
     .default_value = "1MiB",
     .min = 1024,
     .max = 64.0 * 1024 * 1024,
     .help = "a longer line or record is refused and skipped"},
    {.name = "max_document_size",
     .type = OPTION_SIZE,
     .offset = AT(max_document_size),
     .default_value = "64MiB",
     .min = 1024,
     .max = 1024.0 * 1024 * 1024,
     .help = "a larger input that is one record as a whole (a dump, a scrape) is refused"},
    RECORD_OPTIONS(struct file_config, records),
    {.name = "poll_interval",
     .type = OPTION_DURATION,
     .offset = AT(poll_interval),
     .default_value = "1s",
     .min = 0.01,
     .max = 3600,
     .help = "how often to look for new files, and for changes that the system did not tell"},
    {.name = "max_sources",
     .type = OPTION_INT,
     .offset = AT(max_sources),
     .default_value = "10000",
     .min = 1,
     .max = 1000000,
     .help = "how many files are read at most; those beyond it are noted"},
};

static void check_patterns(const struct text_list *list, const char *key,
                           struct problem_list *problems) {
    for (uint32_t i = 0; i < list->count; i++) {
        struct glob_list unused;
        const char *wrong = glob_parse(slice_of(list->items[i]), problems->arena, &unused);
        if (wrong != NULL)
            problem_add(problems, key, "the pattern \"%s\" cannot be used: %s", list->items[i],
                        wrong);
    }
}

static void file_validate(const void *config, struct problem_list *problems) {
    const struct file_config *file = config;
    if (file->include.count == 0)
        problem_add(problems, "include",
                    "the list is empty; name at least one file, directory or pattern");
    check_patterns(&file->include, "include", problems);
    check_patterns(&file->exclude, "exclude", problems);
    record_options_check(&file->records, problems);
}

// Patterns that do not parse stand for nothing: their entry can still be a path that exists.
static struct glob_list *parse_patterns(struct file_receiver *receiver,
                                        const struct text_list *list) {
    struct glob_list *globs = arena_zero(&receiver->arena, list->count + 1, sizeof *globs);
    for (uint32_t i = 0; i < list->count; i++) {
        if (glob_parse(slice_of(list->items[i]), &receiver->arena, &globs[i]) != NULL)
            globs[i] = (struct glob_list){NULL, 0};
    }
    return globs;
}

static void make_finder(struct file_receiver *receiver) {
    const struct file_config *config = receiver->config;
    receiver->finder = (struct file_finder){
        .include = config->include,
        .include_globs = parse_patterns(receiver, &config->include),
        .exclude_globs = parse_patterns(receiver, &config->exclude),
        .exclude_count = config->exclude.count,
        .max_sources = (uint32_t)config->max_sources,
        .has_skip = receiver->quarantine.open,
        .skip_device = receiver->quarantine.device,
        .skip_inode = receiver->quarantine.inode,
    };
}

static enum status check_standard_input(const struct file_receiver *receiver, struct error *error) {
    const struct text_list *include = &receiver->config->include;
    for (uint32_t i = 0; !receiver->context->once && i < include->count; i++) {
        if (slice_equal(slice_of(include->items[i]), SLICE("-")))
            return error_set(error, STATUS_CONFIG,
                             "include names standard input (-), which cannot be followed; use it "
                             "with culprit analyze or culprit run --once");
    }
    return STATUS_OK;
}

static enum status file_start(void *instance, const void *config,
                              const struct component_context *context, struct error *error) {
    struct file_receiver *receiver = instance;
    receiver->config = config;
    receiver->context = context;
    arena_init(&receiver->arena, 4096);
    found_list_init(&receiver->found);
    receiver->reader.input.descriptor = -1;
    receiver->started = true;
    enum status status = check_standard_input(receiver, error);
    if (status != STATUS_OK)
        return status;
    status = record_options_open(&receiver->config->records, context, &receiver->stamp,
                                 &receiver->quarantine, error);
    if (status != STATUS_OK)
        return status;
    make_finder(receiver);
    return STATUS_OK;
}

static void file_stop(void *instance) {
    struct file_receiver *receiver = instance;
    if (!receiver->started)
        return;
    file_reader_release(&receiver->reader);
    quarantine_close(&receiver->quarantine);
    found_list_release(&receiver->found);
    arena_release(&receiver->arena);
    receiver->started = false;
}

void file_receiver_attach(struct file_receiver *receiver, struct feed *feed) {
    struct file_reader *reader = &receiver->reader;
    if (reader->sink.feed == feed)
        return;
    reader->sink.feed = feed;
    reader->input.stop_descriptor = feed_stop_descriptor(feed);
    reader->sink.quarantine = &receiver->quarantine;
    reader->sink.record_max = (size_t)receiver->config->max_line_size.bytes;
    reader->forced = format_chosen(receiver->config->records.format);
    reader->document_max = (size_t)receiver->config->max_document_size.bytes;
    feed_stamp(feed, receiver->stamp);
}

void file_receiver_say_notes(struct file_receiver *receiver, struct feed *feed) {
    struct found_list *found = &receiver->found;
    for (; receiver->notes_said < found->note_count; receiver->notes_said++) {
        const struct found_note *note = &found->notes[receiver->notes_said];
        if (note->missing)
            feed_missing(feed, note->path, note->text);
        else
            feed_note(feed, note->path, "%.*s", (int)note->text.size, note->text.data);
    }
}

// Why nothing was found, from the notes of the search, as far as a message goes.
static enum status nothing_found(const struct file_receiver *receiver, struct error *error) {
    char text[ERROR_MESSAGE_MAX];
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < receiver->found.note_count && used < sizeof text - 1; i++) {
        const struct found_note *note = &receiver->found.notes[i];
        int written =
            snprintf(text + used, sizeof text - used, "%s%.*s: %.*s", i == 0 ? "" : "; ",
                     (int)note->path.size, note->path.data, (int)note->text.size, note->text.data);
        used += written < 0 ? 0 : (size_t)written;
    }
    const char *first = receiver->config->include.items[0];
    if (used == 0)
        return error_set(error, STATUS_NOT_FOUND, "no telemetry file is in %s", first);
    return error_set(error, STATUS_NOT_FOUND, "there is nothing to read: %s", text);
}

static enum status file_list(void *instance, struct source_list *sources, struct error *error) {
    struct file_receiver *receiver = instance;
    struct found_list *found = &receiver->found;
    file_find(&receiver->finder, found);
    dump_leave_out_repeated(found);
    receiver->notes_said = 0;
    receiver->reader.done_bytes = receiver->reader.total_bytes = 0;
    for (uint32_t i = 0; i < found->count; i++) {
        source_list_add(sources, found->files[i].path);
        receiver->reader.total_bytes += found->files[i].size;
    }
    return found->count > 0 ? STATUS_OK : nothing_found(receiver, error);
}

static enum status file_read(void *instance, struct feed *feed, struct slice path,
                             struct error *error) {
    (void)error;
    struct file_receiver *receiver = instance;
    file_receiver_attach(receiver, feed);
    file_receiver_say_notes(receiver, feed);
    file_read_path(&receiver->reader, path);
    return STATUS_OK;
}

static enum status file_run(void *instance, struct feed *feed, struct error *error) {
    struct file_receiver *receiver = instance;
    file_receiver_attach(receiver, feed);
    return file_tail(receiver, feed, error);
}

static void file_guarantee(const void *config, const char *id, bool store, struct buffer *out) {
    const struct file_config *file = config;
    if (store)
        buffer_append_format(out,
                             " %s goes on at the line where it was; files that appeared meanwhile "
                             "are read from their beginning.",
                             id);
    else if (file->start_at == START_BEGINNING)
        buffer_append_format(out,
                             " After a crash or restart %s reads its files again from the "
                             "beginning (start_at: beginning), so nothing is lost while they "
                             "are there, and verdicts may be written again with the same id.",
                             id);
    else
        buffer_append_format(out,
                             " After a crash or restart %s goes on at the end of its files "
                             "(start_at: %s): what was written meanwhile is not read, and what "
                             "was known before is forgotten.",
                             id, start_choices[file->start_at]);
}

const struct component_type receiver_file = {
    .name = "file",
    .summary = "Reads telemetry files and sink directories, once or while they grow.",
    .kind = COMPONENT_RECEIVER,
    .stability = STABILITY_BETA,
    .options = options,
    .option_count = OPTION_COUNT(options),
    .config_size = sizeof(struct file_config),
    .instance_size = sizeof(struct file_receiver),
    .validate = file_validate,
    .start = file_start,
    .stop = file_stop,
    .receiver = {.each_pipeline = true,
                 .run = file_run,
                 .guarantee = file_guarantee,
                 .list = file_list,
                 .read = file_read},
};
