// SPDX-License-Identifier: Apache-2.0
// Runs one test of a configuration.
//
// The plan of a test is a view of the configuration's: the pipeline's processors, a file receiver
// an input, and an exporter that keeps what it is given. What the run says of its inputs is copied
// without the name of the folder, which differs each time. Memory: the pipeline's, and a copy of
// the verdicts.
#include "cli/commands/test_run.h"

#include "cli/component_list.h"
#include "pipeline/component/component.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/verdict.h"
#include "pipeline/plan/plan.h"
#include "pipeline/runtime/run_report.h"
#include "pipeline/runtime/service.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { COLLECTOR_MAGIC = 0x74657374, VERDICTS_FIRST = 16 };

// -- the exporter -------------------------------------------------------------------------------

struct collector_config {
    struct test_run *run;
};

struct collector {
    uint32_t magic;
    struct test_run *run;
    uint32_t capacity;
};

static enum status collector_start(void *instance, const void *config,
                                   const struct component_context *context, struct error *error) {
    struct collector *self = instance;
    (void)context;
    (void)error;
    self->magic = COLLECTOR_MAGIC;
    self->run = ((const struct collector_config *)config)->run;
    return STATUS_OK;
}

static void collector_stop(void *instance) {
    (void)instance; // everything is the caller's
}

static const struct found_entity *entities_copy(struct arena *arena,
                                                const struct verdict *verdict) {
    struct found_entity *copy = arena_zero(arena, verdict->entity_count, sizeof *copy);
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        const struct entity *entity = &verdict->entities[i];
        copy[i] =
            (struct found_entity){entity->kind, arena_text(arena, entity->name), entity->role};
    }
    return copy;
}

static struct found_verdict verdict_copy(struct arena *arena, const struct verdict *verdict) {
    assert(verdict->pattern != NULL);
    struct slice job = verdict->job == STRING_NONE ? SLICE("") : intern_slice(verdict->job);
    return (struct found_verdict){.id = arena_text(arena, slice_of(verdict->id)),
                                  .pattern = verdict->pattern,
                                  .kind = verdict->kind,
                                  .headline = arena_text(arena, verdict->headline),
                                  .job = arena_text(arena, job),
                                  .severity = verdict->severity,
                                  .state = verdict->state,
                                  .confidence = verdict->confidence,
                                  .root = verdict_is_root(verdict),
                                  .entities = entities_copy(arena, verdict),
                                  .entity_count = verdict->entity_count};
}

// Its place among the first `count`, or a new one behind all.
static struct found_verdict *place_of(struct collector *self, uint32_t count, const char *id) {
    struct test_run *run = self->run;
    assert(count <= run->verdict_count);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(run->verdicts[i].id, id) == 0)
            return &run->verdicts[i];
    if (run->verdict_count == self->capacity) {
        uint32_t capacity = self->capacity == 0 ? VERDICTS_FIRST : 2 * self->capacity;
        run->verdicts = arena_enlarge(run->arena, run->verdicts, run->verdict_count, capacity,
                                      sizeof *run->verdicts);
        self->capacity = capacity;
    }
    return &run->verdicts[run->verdict_count++];
}

// Over inputs that end there is one evaluation, so what came before is nearly always nothing.
static void collector_encode(void *instance, const struct batch *batch, struct buffer *out) {
    struct collector *self = instance;
    assert(self->magic == COLLECTOR_MAGIC);
    (void)out;
    uint32_t before = self->run->verdict_count;
    for (uint32_t i = 0; i < batch->verdicts.count; i++) {
        const struct verdict *verdict = &batch->verdicts.items[i];
        *place_of(self, before, verdict->id) = verdict_copy(self->run->arena, verdict);
    }
}

static const struct component_type COLLECTOR = {
    .name = "test",
    .summary = "Keeps verdicts for culprit test.",
    .kind = COMPONENT_EXPORTER,
    .config_size = sizeof(struct collector_config),
    .instance_size = sizeof(struct collector),
    .needs = FACT_VERDICTS,
    .start = collector_start,
    .stop = collector_stop,
    .exporter = {.encode = collector_encode},
};

// -- the receiver -------------------------------------------------------------------------------

// Elsewhere a receiver that finds nothing is no failure while another finds something; each input
// of a test must be there.
static enum status list_strictly(void *instance, struct source_list *sources, struct error *error) {
    const struct component_type *file =
        component_find(component_list(), COMPONENT_RECEIVER, SLICE("file"));
    assert(file != NULL && file->receiver.list != NULL);
    enum status status = file->receiver.list(instance, sources, error);
    if (status == STATUS_NOT_FOUND)
        status = error->status = STATUS_BAD_DATA;
    return status;
}

static const struct component_type *strict_type(struct arena *arena,
                                                const struct component_type *file) {
    assert(file->kind == COMPONENT_RECEIVER && file->receiver.list != NULL);
    struct component_type *type = arena_take(arena, sizeof *type);
    *type = *file;
    type->receiver.list = list_strictly;
    return type;
}

// -- the texts ----------------------------------------------------------------------------------

static enum status folders_make(char *path, size_t from, struct error *error) {
    for (char *slash = strchr(path + from, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
        int os_error = errno;
        *slash = '/';
        if (!made)
            return error_set_os(error, STATUS_CANNOT_CREATE, os_error,
                                "cannot create the folder of %s", path);
    }
    return STATUS_OK;
}

static enum status text_write(const char *path, const struct plan_test_input *input,
                              struct error *error) {
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor < 0)
        return error_set_os(error, STATUS_CANNOT_CREATE, errno, "cannot create %s", path);
    size_t size = strlen(input->text);
    // Without its newline the last line would be one that broke off.
    struct iovec parts[] = {{(char *)(uintptr_t)input->text, size},
                            {(char *)(uintptr_t) "\n", size == 0 || input->text[size - 1] != '\n'}};
    size_t whole = size + parts[1].iov_len;
    errno = ENOSPC; // when less was written
    struct timespec time = {.tv_sec = (time_t)(input->written_ns / 1000000000),
                            .tv_nsec = (long)(input->written_ns % 1000000000)};
    bool good = writev(descriptor, parts, 2) == (ssize_t)whole &&
                futimens(descriptor, (struct timespec[]){time, time}) == 0;
    int os_error = errno;
    close(descriptor);
    return good ? STATUS_OK : error_set_os(error, STATUS_IO, os_error, "cannot write %s", path);
}

// Where the texts of a test are; `path` NULL: there are none.
struct folder {
    char *path;
    char **files;
    uint32_t count;
};

static void folder_remove(struct folder *folder) {
    if (folder->path == NULL)
        return;
    size_t size = strlen(folder->path);
    assert(size > 0);
    for (uint32_t i = 0; i < folder->count; i++) {
        assert(strncmp(folder->files[i], folder->path, size) == 0); // nothing else is removed
        unlink(folder->files[i]);
        for (char *slash = strrchr(folder->files[i], '/');
             slash != NULL && (size_t)(slash - folder->files[i]) > size;
             slash = strrchr(folder->files[i], '/')) {
            *slash = '\0';
            rmdir(folder->files[i]); // fails while another text is in it
        }
    }
    rmdir(folder->path);
}

static enum status folder_make(struct folder *folder, struct arena *arena, struct error *error) {
    const char *parent = getenv("TMPDIR");
    folder->path = arena_format(arena, "%s/culprit-input-XXXXXX",
                                parent == NULL || parent[0] == '\0' ? "/tmp" : parent);
    if (mkdtemp(folder->path) != NULL)
        return STATUS_OK;
    error_set_os(error, STATUS_CANNOT_CREATE, errno, "cannot create the folder %s", folder->path);
    folder->path = NULL;
    return STATUS_CANNOT_CREATE;
}

static const struct text_list *include_of(const struct plan_component *component) {
    const struct component_type *type = component->type;
    for (size_t i = 0; i < type->option_count; i++)
        if (strcmp(type->options[i].name, "include") == 0)
            return (const void *)((const char *)component->config + type->options[i].offset);
    assert(false && "no file receiver");
    return NULL;
}

// Sets `include` of a copy of the component to the one path.
static void include_set(struct arena *arena, struct plan_component *component, const char *path) {
    const struct component_type *type = component->type;
    char *config = arena_zero(arena, 1, type->config_size);
    memcpy(config, component->config, type->config_size);
    component->config = config;
    const char **items = arena_zero(arena, 1, sizeof *items);
    items[0] = path;
    *(struct text_list *)(uintptr_t)include_of(component) = (struct text_list){items, 1};
}

static enum status input_place(struct folder *folder, const struct plan_test_input *input,
                               struct plan_component *component, struct arena *arena,
                               struct error *error) {
    *component = input->component;
    component->type = strict_type(arena, component->type);
    if (input->text == NULL)
        return STATUS_OK;
    enum status status = STATUS_OK;
    assert(*input->name != '/');
    if (folder->path == NULL)
        status = folder_make(folder, arena, error);
    if (status != STATUS_OK)
        return status;
    char *path = arena_format(arena, "%s/%s", folder->path, input->name);
    folder->files[folder->count++] = arena_text(arena, slice_of(path));
    include_set(arena, component, path);
    status = folders_make(path, strlen(folder->path) + 1, error);
    return status == STATUS_OK ? text_write(path, input, error) : status;
}

// -- what is said of the inputs -----------------------------------------------------------------

// The text without the folder wherever that is named.
static const char *without_folder(struct arena *arena, const struct folder *folder,
                                  const char *text) {
    char *copy = arena_text(arena, slice_of(text));
    if (folder->path == NULL)
        return copy;
    size_t size = strlen(folder->path);
    for (char *at = strstr(copy, folder->path); at != NULL; at = strstr(at, folder->path)) {
        size_t cut = size + (at[size] == '/');
        memmove(at, at + cut, strlen(at + cut) + 1);
    }
    return copy;
}

static const char *refusal_text(struct arena *arena, const struct report_refusal *refusal) {
    const char *reason = refusal->fault.detail[0] != '\0'
                             ? refusal->fault.detail
                             : decode_category_name(refusal->fault.category);
    bool field = refusal->fault.field[0] != '\0';
    return arena_format(arena, "%.*s:%llu: %s%s%s", (int)refusal->path.size, refusal->path.data,
                        (unsigned long long)refusal->position, refusal->fault.field,
                        field ? ": " : "", reason);
}

static uint32_t shown(uint32_t count) {
    return count < TEST_SHOWN_MAX ? count : TEST_SHOWN_MAX;
}

static bool is_text(const struct folder *folder, struct slice path) {
    for (uint32_t i = 0; i < folder->count; i++)
        if (slice_equal(slice_of(folder->files[i]), path))
            return true;
    return false;
}

// Whether an input names this file, not a directory or pattern that holds it.
static bool is_named(const struct plan *view, struct slice path) {
    for (uint32_t i = 0; i < view->pipelines[0].receiver_count; i++) {
        const struct text_list *list =
            include_of(&view->components[view->pipelines[0].receivers[i]]);
        for (uint32_t j = 0; j < list->count; j++)
            if (slice_equal(slice_of(list->items[j]), path))
                return true;
    }
    return false;
}

// An input is missing, a file that is named was not read, a text was not read to its end, or
// nothing was. In a directory there may be other files, and the last line of a recording may have
// broken off.
static bool any_unread(const struct report *report, const struct plan *view,
                       const struct folder *folder) {
    bool any = report->missing_count > 0, read = false;
    for (uint32_t i = 0; i < report->source_count; i++) {
        const struct report_source *source = &report->sources[i];
        read = read || !source->figures.unread;
        any = any || (source->figures.unread && is_named(view, source->path)) ||
              (source->figures.torn && is_text(folder, source->path));
    }
    return any || !read;
}

static void report_copy(struct test_run *run, struct service *service, const struct plan *view,
                        const struct folder *folder) {
    struct report report;
    service_report(service, &report);
    run->refused = report.refused;
    run->accepted = report.accepted;
    run->unread = any_unread(&report, view, folder);
    run->refusals = arena_zero(run->arena, TEST_SHOWN_MAX, sizeof *run->refusals);
    run->notes = arena_zero(run->arena, TEST_SHOWN_MAX, sizeof *run->notes);
    run->refusal_count = shown(report.refusal_count);
    run->note_count = shown(report.note_count);
    for (uint32_t i = 0; i < run->refusal_count; i++)
        run->refusals[i] =
            without_folder(run->arena, folder, refusal_text(run->arena, &report.refusals[i]));
    for (uint32_t i = 0; i < run->note_count; i++)
        run->notes[i] = without_folder(run->arena, folder, report.notes[i]);
    report_release(&report);
}

// -- the run ------------------------------------------------------------------------------------

// What `plan` holds, with room for the inputs and the exporter behind it. None is in use yet.
static void view_make(struct plan *view, const struct plan *plan, const struct plan_test *test,
                      const struct collector_config *config, struct arena *arena) {
    assert(test->pipeline < plan->pipeline_count && test->input_count > 0);
    uint32_t first = plan->component_count;
    uint32_t *receivers = arena_zero(arena, test->input_count, sizeof *receivers);
    uint32_t *exporters = arena_zero(arena, 1, sizeof *exporters);
    struct plan_pipeline *pipeline = arena_zero(arena, 1, sizeof *pipeline);
    *view = *plan;
    view->component_count = first + test->input_count + 1;
    view->components = arena_zero(arena, view->component_count, sizeof *view->components);
    memcpy(view->components, plan->components, first * sizeof *view->components);
    for (uint32_t i = 0; i < first; i++)
        view->components[i].used = false;
    for (uint32_t i = 0; i < test->input_count; i++)
        receivers[i] = first + i;
    exporters[0] = view->component_count - 1;
    view->components[exporters[0]] = (struct plan_component){
        .type = &COLLECTOR, .id = "test", .config = config, .where = test->where, .used = true};
    *pipeline = plan->pipelines[test->pipeline];
    pipeline->receivers = receivers;
    pipeline->receiver_count = test->input_count;
    pipeline->exporters = exporters;
    pipeline->exporter_count = 1;
    for (uint32_t i = 0; i < pipeline->processor_count; i++)
        view->components[pipeline->processors[i]].used = true;
    view->pipelines = pipeline;
    view->pipeline_count = 1;
}

static enum status service_once(struct test_run *run, const struct plan *view,
                                const struct folder *folder, struct error *error) {
    struct service *service = NULL;
    enum status status = service_start(&service, view, true, NULL, error);
    if (status == STATUS_OK)
        status = service_run_once(service, error);
    if (status == STATUS_OK)
        report_copy(run, service, view, folder);
    service_free(service);
    return status;
}

enum status test_run(struct test_run *run, const struct plan *plan, const struct plan_test *test,
                     struct error *error) {
    struct arena *arena = run->arena;
    *run = (struct test_run){.arena = arena};
    struct collector_config config = {run};
    struct plan view;
    struct folder folder = {.files = arena_zero(arena, test->input_count, sizeof *folder.files)};
    view_make(&view, plan, test, &config, arena);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < test->input_count && status == STATUS_OK; i++)
        status = input_place(&folder, &test->inputs[i], &view.components[plan->component_count + i],
                             arena, error);
    if (status == STATUS_OK)
        status = service_once(run, &view, &folder, error);
    if (status != STATUS_OK)
        snprintf(error->message, sizeof error->message, "%s",
                 without_folder(arena, &folder, error->message));
    folder_remove(&folder);
    return status;
}
