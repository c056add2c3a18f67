// SPDX-License-Identifier: Apache-2.0
// The file receiver as a component: its options, and its three ways in.
//
// list and read serve inputs that end (analyze, run --once): what is there is found, then each is
// read to its end. run follows files that grow (tail.c). Memory: one window of max_line_size
// and two blocks at most, some 20 KiB a file that is followed, most of it of its decoder.
#include "pipeline/component/component.h"

#include "base/memory.h"
#include "config/problem.h"
#include "receivers/decode/formats.h"
#include "receivers/decode/forms/forms.h"
#include "receivers/file/dump.h"
#include "receivers/file/find/glob.h"
#include "receivers/file/follow/tail.h"
#include "receivers/file/receiver.h"
#include "receivers/file/zone.h"
#include "receivers/records/options.h"

#include <assert.h>
#include <stdio.h>

static const char *const start_choices[] = {"beginning", "end", NULL};

static const struct option options[] = {
    OPTION(struct file_config, include, OPTION_TEXT_LIST, .required = true,
           .help =
               "files, directories and patterns (`*`, `?`, `[a-z]`, `{a,b}`, `**`) to read; `-` is "
               "standard input"),
    OPTION(struct file_config, exclude, OPTION_TEXT_LIST,
           .help =
               "patterns of paths to leave out; one without a slash is compared with every name in "
               "the path"),
    OPTION(struct file_config, start_at, OPTION_CHOICE, .default_value = "beginning",
           .choices = start_choices,
           .help =
               "where to begin in files that are there when following starts; files that appear "
               "later are read from the beginning"),
    OPTION(struct file_config, max_line_size, OPTION_SIZE, .default_value = "1MiB", .min = 1024,
           .max = 64.0 * 1024 * 1024, .help = "a longer line or record is refused and skipped"),
    OPTION(struct file_config, max_document_size, OPTION_SIZE, .default_value = "64MiB",
           .min = 1024, .max = 1024.0 * 1024 * 1024,
           .help = "a larger input that is one record as a whole (a dump, a scrape) is refused"),
    RECORD_OPTIONS(struct file_config, records),
    OPTION(struct file_config, poll_interval, OPTION_DURATION, .default_value = "1s", .min = 0.01,
           .max = 3600,
           .help =
               "how often to look for new files, and for changes that the system did not report"),
    OPTION(struct file_config, finish_after, OPTION_DURATION, .default_value = "2s", .min = 0.01,
           .max = 86400,
           .help = "lines that wait for the rest of their report (a traceback) are used without it "
                   "once the file has not changed for so long"),
    OPTION(struct file_config, max_sources, OPTION_INT, .default_value = "10000", .min = 1,
           .max = 1000000, .help = "how many files are read at most; those beyond it are noted"),
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
    assert(receiver->config->max_sources > 0 && receiver->config->max_sources <= UINT32_MAX);
    const struct file_config *config = receiver->config;
    receiver->finder = (struct file_finder){
        .include = config->include,
        .include_globs = parse_patterns(receiver, &config->include),
        .exclude_globs = parse_patterns(receiver, &config->exclude),
        .exclude_count = config->exclude.count,
        .max_sources = (uint32_t)config->max_sources,
        .skip = receiver->reader.sink.quarantine.identity,
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
    assert(receiver->magic == 0);
    receiver->magic = FILE_RECEIVER_MAGIC;
    receiver->config = config;
    receiver->context = context;
    arena_init(&receiver->arena, 4096);
    found_list_init(&receiver->found);
    receiver->reader.input.descriptor = -1;
    enum status status = check_standard_input(receiver, error);
    if (status != STATUS_OK)
        return status;
    status = record_sink_open(&receiver->reader.sink, &receiver->config->records,
                              receiver->config->max_line_size, context, error);
    if (status != STATUS_OK)
        return status;
    receiver->reader.sink.known.ends = context->once;
    if (context->threads > 1)
        receiver->reader.ahead = ahead_new(context->threads, FILE_BLOCK);
    make_finder(receiver);
    return STATUS_OK;
}

static void file_stop(void *instance) {
    struct file_receiver *receiver = instance;
    if (receiver->magic != FILE_RECEIVER_MAGIC)
        return;
    file_reader_release(&receiver->reader);
    memory_give(receiver->paths);
    receiver->paths = NULL;
    record_sink_close(&receiver->reader.sink);
    found_list_release(&receiver->found);
    arena_release(&receiver->arena);
    receiver->magic = 0;
}

void file_receiver_attach(struct file_receiver *receiver, struct feed *feed) {
    assert(feed != NULL && receiver->magic == FILE_RECEIVER_MAGIC);
    struct file_reader *reader = &receiver->reader;
    if (reader->sink.feed == feed)
        return;
    record_sink_attach(&reader->sink, feed);
    reader->input.stop_descriptor = feed_stop_descriptor(feed);
    reader->forced = format_chosen(receiver->config->records.format);
    reader->document_max = (size_t)receiver->config->max_document_size.bytes;
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

enum { NOTES_SAID = 3 }; // of those that give the reason

// Directories, and nothing in any of them.
static enum status nothing_there(const struct text_list *include, struct error *error) {
    char text[ERROR_MESSAGE_MAX];
    size_t used = 0;
    uint32_t shown = include->count <= NOTES_SAID ? include->count : NOTES_SAID - 1;
    text[0] = '\0';
    for (uint32_t i = 0; i < shown && used < sizeof text - 1; i++) {
        const char *before = i == 0 ? "" : i + 1 == include->count ? " and " : ", ";
        int written = snprintf(text + used, sizeof text - used, "%s%s", before, include->items[i]);
        used += written < 0 ? 0 : (size_t)written;
    }
    if (shown < include->count && used < sizeof text - 1)
        snprintf(text + used, sizeof text - used, " and %u more", include->count - shown);
    return error_set(error, STATUS_NOT_FOUND, "there is nothing to read: no file is in %s", text);
}

// Why nothing was found, from the notes of the search: a few of them, as they are mostly alike.
static enum status nothing_found(const struct file_receiver *receiver, struct error *error) {
    assert(receiver->found.count == 0 && receiver->config->include.count > 0);
    char text[ERROR_MESSAGE_MAX];
    size_t used = 0;
    text[0] = '\0';
    uint32_t count = receiver->found.note_count;
    uint32_t shown = count <= NOTES_SAID ? count : NOTES_SAID - 1; // the rest is more than one
    for (uint32_t i = 0; i < shown && used < sizeof text - 1; i++) {
        const struct found_note *note = &receiver->found.notes[i];
        int written =
            snprintf(text + used, sizeof text - used, "%s%.*s: %.*s", i == 0 ? "" : "; ",
                     (int)note->path.size, note->path.data, (int)note->text.size, note->text.data);
        used += written < 0 ? 0 : (size_t)written;
    }
    if (shown < count && used < sizeof text - 1)
        snprintf(text + used, sizeof text - used, "; and %u more", count - shown);
    if (used == 0)
        return nothing_there(&receiver->config->include, error);
    return error_set(error, STATUS_NOT_FOUND, "there is nothing to read: %s", text);
}

// Pipes and standard input are read when they come.
static void list_paths(struct file_receiver *receiver) {
    const struct found_list *found = &receiver->found;
    if (receiver->reader.ahead != NULL)
        ahead_files_end(receiver->reader.ahead);
    memory_give(receiver->paths);
    receiver->paths = memory_take((found->count + 1) * sizeof *receiver->paths);
    receiver->path_count = receiver->waiting_count = receiver->path_next = 0;
    receiver->begun = false;
    for (uint32_t i = 0; i < found->count; i++) {
        const struct found_file *file = &found->files[i];
        if (file->role != FOUND_STREAM && file->role != FOUND_STANDARD_INPUT)
            receiver->paths[receiver->path_count++] = (struct ahead_path){file->path, file->size};
    }
}

// Lets what comes be read ahead, when there are several.
static void begin_ahead(struct file_receiver *receiver) {
    struct file_reader *reader = &receiver->reader;
    receiver->begun = true;
    receiver->path_next = 0;
    if (reader->ahead == NULL)
        return;
    const struct ahead_file_options how = {
        .forced = reader->forced,
        .line_max = reader->sink.record_max,
        .forms = reader->sink.known.forms != NULL ? reader->sink.known.forms : forms_builtin(),
        .documents = reader->by_folder || reader->sink.known.node.size > 0,
        .stop_descriptor = reader->input.stop_descriptor};
    ahead_files_begin(reader->ahead, receiver->paths,
                      receiver->path_count > 1 ? receiver->path_count : 0, how);
}

// All others have been read: those that waited come, from the first on.
static void read_waiting(struct file_receiver *receiver) {
    assert(receiver->waiting_count <= receiver->path_count);
    receiver->reader.by_folder = true;
    file_zone_settle(&receiver->reader);
    if (receiver->reader.ahead != NULL)
        ahead_files_end(receiver->reader.ahead);
    receiver->path_count = receiver->waiting_count;
    receiver->waiting_count = 0;
    begin_ahead(receiver);
}

static enum status file_list(void *instance, struct source_list *sources, struct error *error) {
    struct file_receiver *receiver = instance;
    assert(receiver->magic == FILE_RECEIVER_MAGIC);
    struct found_list *found = &receiver->found;
    file_find(&receiver->finder, found);
    dump_leave_out_repeated(found);
    receiver->notes_said = 0;
    file_reader_begin(&receiver->reader);
    receiver->waiting = NULL;
    for (uint32_t i = 0; i < found->count; i++) {
        source_list_add(sources, found->files[i].path);
        receiver->reader.total_bytes += found->files[i].size;
    }
    list_paths(receiver);
    return found->count > 0 ? STATUS_OK : nothing_found(receiver, error);
}

static enum status file_read(void *instance, struct feed *feed, struct slice path,
                             struct error *error) {
    (void)error;
    struct file_receiver *receiver = instance;
    assert(receiver->magic == FILE_RECEIVER_MAGIC);
    file_receiver_attach(receiver, feed);
    file_receiver_say_notes(receiver, feed);
    struct file_reader *reader = &receiver->reader;
    reader->may_wait = true;
    if (!receiver->begun)
        begin_ahead(receiver);
    else if (!reader->by_folder && path.data == receiver->waiting) // asked for again
        read_waiting(receiver);
    uint32_t at = receiver->path_next;
    bool is_listed = at < receiver->path_count && slice_equal(receiver->paths[at].path, path);
    receiver->path_next += is_listed;
    if (file_read_path(reader, path))
        return STATUS_OK;
    if (receiver->waiting == NULL)
        receiver->waiting = path.data;
    if (is_listed) // nobody else looks at the front of the list any more
        receiver->paths[receiver->waiting_count++] = receiver->paths[at];
    return STATUS_AGAIN;
}

static enum status file_run(void *instance, struct feed *feed, struct error *error) {
    struct file_receiver *receiver = instance;
    assert(receiver->magic == FILE_RECEIVER_MAGIC);
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

static const struct component_alias aliases[] = {
    {"filelog", "it follows files, and tells what each record is"},
    {"tail", "it follows files, and tells what each record is"},
};

const struct component_type receiver_file = {
    .name = "file",
    .summary = "Reads telemetry files and sink directories, once or while they grow.",
    .aliases = aliases,
    .alias_count = sizeof aliases / sizeof aliases[0],
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
