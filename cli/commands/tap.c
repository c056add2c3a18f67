// SPDX-License-Identifier: Apache-2.0
// Prints what flows past one point of a pipeline of a running culprit.
//
// Lines go out as they come. A reader of ours that is slow makes this process wait, and culprit,
// which never does, says how much it passed over.
#include "base/clock.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/top/client.h"
#include "pipeline/runtime/control/place.h"

#include <jansson.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

struct tap_options {
    const char *socket;
    const char *limit, *rate, *every;
    const char *job, *rank;
    struct word_list kinds;
};

static const struct argument rows[] = {
    ARGUMENT("limit", struct tap_options, limit, ARGUMENT_TEXT, .letter = 'n', .value_name = "N",
             .help = "end after so many records"),
    ARGUMENT("rate", struct tap_options, rate, ARGUMENT_TEXT, .value_name = "N",
             .help = "at most so many records a second, 1 to 10000 (default: 100)"),
    ARGUMENT("every", struct tap_options, every, ARGUMENT_TEXT, .value_name = "N",
             .help = "only one of N records"),
    ARGUMENT("kind", struct tap_options, kinds, ARGUMENT_LIST, .value_name = "KIND",
             .help = "only events of this kind (xid, telemetry, oom_kill …), or \"verdict\". Given "
                     "again: these, too"),
    ARGUMENT("job", struct tap_options, job, ARGUMENT_TEXT, .value_name = "NAME",
             .help = "only what is of this job"),
    ARGUMENT("rank", struct tap_options, rank, ARGUMENT_TEXT, .value_name = "N",
             .help = "only what is of this rank"),
    ARGUMENT("socket", struct tap_options, socket, ARGUMENT_TEXT, .value_name = "PATH",
             .help = "the control socket of that culprit (default: $CULPRIT_SOCKET, else that of "
                     "the only culprit of this user)"),
};

enum { TARGET_MAX = 3500 };
// A culprit that reloads its configuration is there again within this time.
static const uint64_t RELOAD_NS = UINT64_C(10000000000), RETRY_NS = UINT64_C(100000000);

struct printer {
    struct invocation *invocation;
    uint64_t count; // records, without what says that some were left out
    bool gone;      // nobody reads what is printed
};

static bool print_line(void *context, struct slice line) {
    struct printer *printer = context;
    static const struct slice left_out = {"{\"left_out\":", 12};
    bool record = line.size < left_out.size || memcmp(line.data, left_out.data, left_out.size) != 0;
    buffer_append(printer->invocation->out, line);
    buffer_append_char(printer->invocation->out, '\n');
    printer->count += record;
    return !printer->invocation->out->failed && !printer->gone;
}

// Nothing more is there for now: what was printed is to be seen.
static void print_now(void *context) {
    struct printer *printer = context;
    if (!buffer_finish(printer->invocation->out))
        printer->gone = true;
}

// "verdicts:xid_correlation": the pipeline, and a stage of it.
static void make_target(struct buffer *target, const struct tap_options *options, const char *point,
                        uint64_t limit) {
    const char *colon = strchr(point, ':');
    struct slice name = {point, colon == NULL ? strlen(point) : (size_t)(colon - point)};
    struct buffer kinds;
    buffer_init(&kinds, TARGET_MAX);
    buffer_append_text(target, "/tap?");
    client_append_query(target, "pipeline", name);
    if (colon != NULL)
        client_append_query(target, "stage", slice_of(colon + 1));
    for (uint32_t i = 0; i < options->kinds.count; i++)
        buffer_append_format(&kinds, "%s%s", i == 0 ? "" : ",", options->kinds.items[i]);
    if (kinds.size > 0)
        client_append_query(target, "kind", buffer_slice(&kinds));
    target->failed = target->failed || kinds.failed;
    buffer_release(&kinds);
    const struct {
        const char *name, *value;
    } rest[] = {{"job", options->job},
                {"rank", options->rank},
                {"every", options->every},
                {"rate", options->rate}};
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++)
        if (rest[i].value != NULL)
            client_append_query(target, rest[i].name, slice_of(rest[i].value));
    if (limit > 0)
        buffer_append_format(target, "&limit=%llu", (unsigned long long)limit);
    buffer_append_char(target, '\0');
}

static enum status tap_once(const struct tap_options *options, const char *path, const char *point,
                            uint64_t limit, struct client_stream *stream, struct error *error) {
    struct buffer target;
    buffer_init(&target, TARGET_MAX);
    make_target(&target, options, point, limit);
    enum status status = target.failed
                             ? error_set(error, STATUS_USAGE, "what is asked for is too long")
                             : client_stream(path, target.data, stream, error);
    buffer_release(&target);
    return status;
}

// Goes on behind a reload, until nobody has been there for RELOAD_NS.
static enum status tap_all(const struct tap_options *options, const char *path, const char *point,
                           uint64_t limit, struct client_stream *stream, struct error *error) {
    const struct printer *printer = stream->context;
    uint64_t until_ns = 0;
    for (;;) {
        uint64_t before = printer->count;
        enum status status =
            tap_once(options, path, point, limit == 0 ? 0 : limit - before, stream, error);
        bool reloads = status == STATUS_OK && strcmp(stream->why, "reloaded") == 0;
        bool absent = (status == STATUS_NOT_FOUND || status == STATUS_AGAIN) && until_ns > 0;
        if (reloads)
            until_ns = clock_monotonic_ns() + RELOAD_NS;
        if ((!reloads && !absent) || clock_monotonic_ns() >= until_ns ||
            (limit > 0 && printer->count >= limit))
            return status;
        clock_sleep_ns(RETRY_NS);
    }
}

// The number that is typed, 0 when there is none. Its bounds are the server's.
static enum status read_number(const char *option, const char *text, uint64_t *number,
                               struct error *error) {
    *number = 0;
    const char *at = text == NULL ? "0" : text;
    do {
        if (*at < '0' || *at > '9' || *number > UINT32_MAX)
            return error_set(error, STATUS_USAGE, "--%s is \"%s\"; it must be a number%s", option,
                             text, *at >= '0' && *at <= '9' ? " below 4294967296" : "");
        *number = *number * 10 + (uint64_t)(*at - '0');
    } while (*++at != '\0');
    return STATUS_OK;
}

// What can be told without asking anybody.
static enum status check_words(const struct tap_options *options, const char *point,
                               uint64_t *limit, struct error *error) {
    uint64_t ignored;
    if (point[strlen(point) - (point[0] != '\0')] == ':')
        return error_set(error, STATUS_USAGE,
                         "no stage is named behind the colon of \"%s\"; :out shows verdicts",
                         point);
    enum status status = read_number("limit", options->limit, limit, error);
    if (status == STATUS_OK && options->limit != NULL && *limit == 0)
        status = error_set(error, STATUS_USAGE, "--limit must be at least 1");
    if (status == STATUS_OK)
        status = read_number("rate", options->rate, &ignored, error);
    if (status == STATUS_OK)
        status = read_number("every", options->every, &ignored, error);
    return status == STATUS_OK ? read_number("rank", options->rank, &ignored, error) : status;
}

// For shells: the points of what runs here. Nothing when it cannot be asked quickly.
static void point_words(struct buffer *out) {
    static const uint64_t quickly_ns = UINT64_C(500000000);
    enum { ANSWER_MAX = 16 << 20 };
    char path[CONTROL_PATH_MAX];
    struct error error;
    struct buffer body;
    buffer_init(&body, ANSWER_MAX);
    json_t *answer = NULL;
    if (client_choose(NULL, path, &error) == STATUS_OK &&
        client_get(path, "/status", quickly_ns, -1, &body, &error) == STATUS_OK)
        answer = json_loadb(body.data, body.size, 0, NULL);
    size_t i, j;
    const json_t *pipeline, *stage;
    json_array_foreach(json_object_get(answer, "pipelines"), i, pipeline) {
        const char *name = json_string_value(json_object_get(pipeline, "name"));
        if (name == NULL)
            continue;
        buffer_append_format(out, "%s\twhat enters\n%s:out\tits verdicts\n", name, name);
        json_array_foreach(json_object_get(pipeline, "stages"), j, stage) {
            const char *id = json_string_value(json_object_get(stage, "id"));
            if (id != NULL)
                buffer_append_format(out, "%s:%s\tbehind that processor\n", name, id);
        }
    }
    json_decref(answer);
    buffer_release(&body);
}

static int tap_run(struct invocation *invocation) {
    const struct tap_options *options = invocation->options;
    char path[CONTROL_PATH_MAX];
    struct error error = {0};
    uint64_t limit = 0;
    if (invocation->operands.count == 0)
        return invocation_misused(invocation, "no PIPELINE is named; culprit top lists them");
    enum status status = check_words(options, invocation->operands.items[0], &limit, &error);
    if (status == STATUS_OK)
        status = client_choose(options->socket, path, &error);
    if (status != STATUS_OK)
        return invocation_fail(invocation, &error);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct printer printer = {.invocation = invocation};
    struct client_stream stream = {.take = print_line,
                                   .idle = print_now,
                                   .context = &printer,
                                   .output = STDOUT_FILENO,
                                   .interrupt = signalfd(-1, &set, SFD_CLOEXEC)};
    status = tap_all(options, path, invocation->operands.items[0], limit, &stream, &error);
    if (stream.interrupt >= 0)
        close(stream.interrupt);
    return status == STATUS_OK || status == STATUS_STOPPED ? 0
                                                           : invocation_fail(invocation, &error);
}

const struct command command_tap = {
    .name = "tap",
    .summary = "shows what flows past a point of a pipeline that runs",
    .operands = "PIPELINE[:STAGE]",
    .operand_max = 1,
    .operand_words = point_words,
    .description =
        "Prints events and verdicts of a running culprit, one JSON object a line, as they pass: "
        "those that enter PIPELINE; behind STAGE, the id of a processor, the events that it looks "
        "at and the verdicts that it adds; and with PIPELINE:out the verdicts that exporters get. "
        "It is a sample: at most --rate records a second, and none that this reader is too slow "
        "for. A line {\"left_out\":N} says how many were passed over. The pipeline never waits. "
        "Only the user that culprit runs as, and root, may look.",
    COMMAND_OPTIONS(rows, struct tap_options),
    .examples =
        "  culprit tap verdicts --limit 10\n"
        "  culprit tap verdicts:xid_correlation --kind xid\n"
        "  culprit tap verdicts:out | jq .verdict.headline\n",
    .exit_codes =
        "  0   the limit was reached, culprit stopped, or a signal ended it\n"
        "  64  the command line is wrong, or several culprits run here\n"
        "  66  no culprit runs here, or it has no such pipeline or stage\n"
        "  74  culprit went away, or does not answer\n"
        "  75  four others watch the pipeline, or it is busy\n"
        "  77  only another user may look\n",
    .run = tap_run,
};
