// SPDX-License-Identifier: Apache-2.0
// Shows how a running culprit does: on a terminal the whole screen, again and again; else one plain
// table.
//
// Signals are taken through a signalfd, so that they also end a wait for an answer. When culprit
// goes away the last answer stays on the screen with a note, and it is looked for until it is back:
// at its socket, or, where that was found, wherever the only one of this user is.
#include "base/clock.h"
#include "base/memory.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/top/client.h"
#include "cli/top/screen.h"
#include "cli/top/view.h"
#include "config/option.h"
#include "pipeline/runtime/control/place.h"

#include <assert.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

struct top_options {
    const char *socket;
    const char *interval;
    bool once;
    bool json;
};

static const struct argument rows[] = {
    ARGUMENT("once", struct top_options, once, ARGUMENT_FLAG,
             .help = "print one table and end, as happens without a terminal; the rates in it are "
                     "of one interval"),
    ARGUMENT("json", struct top_options, json, ARGUMENT_FLAG,
             .help = "print what culprit answers, one JSON object, and end"),
    ARGUMENT("interval", struct top_options, interval, ARGUMENT_TEXT, .value_name = "TIME",
             .help = "how often it looks, 100ms to 1h (default: 1s)"),
    ARGUMENT("socket", struct top_options, socket, ARGUMENT_TEXT, .value_name = "PATH",
             .help = "the control socket of that culprit (default: $CULPRIT_SOCKET, else that of "
                     "the only culprit of this user)"),
};

enum { ANSWER_MAX = 16 << 20, ARENA_BLOCK = 64 << 10, FOOTER_MAX = 256 };
static const uint64_t TIMEOUT_NS = UINT64_C(3000000000);

struct top {
    const char *given; // socket; NULL: found
    char path[CONTROL_PATH_MAX];
    uint64_t interval_ns;
    int signals; // descriptor
    json_t *now, *before;
    uint64_t now_ns;
    double seconds; // between the two
    bool away;      // it did not answer the last time
    // On the screen:
    enum view_kind kind;
    uint32_t from;
    struct screen screen;
    struct arena arena;
};

// -- answers --------------------------------------------------------------------------------------

// Asks once more; what was there before stays for the rates.
static enum status look(struct top *top, struct error *error) {
    struct buffer body;
    buffer_init(&body, ANSWER_MAX);
    enum status status = client_get(top->path, "/status", TIMEOUT_NS, top->signals, &body, error);
    json_t *answer =
        status == STATUS_OK ? json_loadb(body.data, body.size, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (status == STATUS_OK && !json_is_object(answer))
        status = error_set(error, STATUS_IO, "what listens at %s is no culprit", top->path);
    if (status == STATUS_OK) {
        uint64_t now_ns = clock_monotonic_ns();
        json_decref(top->before);
        top->before = top->away ? NULL : top->now;
        if (top->away)
            json_decref(top->now);
        top->seconds = (double)(now_ns - top->now_ns) / 1e9;
        top->now_ns = now_ns;
        top->now = json_incref(answer);
        top->away = false;
    }
    json_decref(answer);
    buffer_release(&body);
    return status;
}

static void top_release(struct top *top) {
    json_decref(top->now);
    json_decref(top->before);
    arena_release(&top->arena);
    if (top->signals >= 0)
        close(top->signals);
}

static int open_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGWINCH);
    sigaddset(&set, SIGTSTP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

// -- one table ------------------------------------------------------------------------------------

static enum status print_json(struct top *top, struct buffer *out, struct error *error) {
    return client_get(top->path, "/status", TIMEOUT_NS, top->signals, out, error);
}

static enum status print_table(struct top *top, struct buffer *out, struct error *error) {
    struct pollfd waits = {.fd = top->signals, .events = POLLIN};
    enum status status = look(top, error);
    if (status == STATUS_OK && poll(&waits, 1, (int)(top->interval_ns / 1000000)) > 0)
        status = error_set(error, STATUS_STOPPED, "interrupted");
    if (status == STATUS_OK)
        status = look(top, error);
    if (status != STATUS_OK)
        return status;
    struct view_answers answers = {top->now, top->before, top->seconds};
    struct view view = view_make(VIEW_ALL, &answers, 0, &top->arena);
    for (uint32_t i = 0; i < view.count; i++) {
        buffer_append(out, view.lines[i].text);
        buffer_append_char(out, '\n');
    }
    return STATUS_OK;
}

// -- the screen -----------------------------------------------------------------------------------

// What happened while it waited.
enum turn { TURN_LOOK, TURN_DRAW, TURN_END };

static enum turn take_signals(struct top *top) {
    struct signalfd_siginfo info;
    enum turn turn = TURN_DRAW;
    while (read(top->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGWINCH) {
            screen_measure(&top->screen);
        } else if (info.ssi_signo == SIGTSTP) {
            screen_leave(&top->screen);
            raise(SIGSTOP);
            if (!screen_enter(&top->screen))
                return TURN_END;
        } else {
            turn = TURN_END;
        }
    }
    return turn;
}

static void choose_view(struct top *top, enum view_kind kind) {
    top->kind = kind;
    top->from = 0;
}

static void scroll(struct top *top, int64_t lines) {
    int64_t to = (int64_t)top->from + lines;
    top->from = to < 0 ? 0 : (uint32_t)to;
}

static enum turn take_key(struct top *top, int key) {
    int64_t page = top->screen.rows > 2 ? top->screen.rows - 2 : 1;
    switch (key) {
    case 'q':
    case 'Q':
    case KEY_END_OF_INPUT:
        return TURN_END;
    case 'a':
        choose_view(top, VIEW_ALL);
        break;
    case 'p':
        choose_view(top, VIEW_PIPELINES);
        break;
    case 'j':
        choose_view(top, VIEW_JOBS);
        break;
    case 'i':
        choose_view(top, VIEW_INCIDENTS);
        break;
    case KEY_UP:
        scroll(top, -1);
        break;
    case KEY_DOWN:
        scroll(top, 1);
        break;
    case KEY_PAGE_UP:
        scroll(top, -page);
        break;
    case KEY_PAGE_DOWN:
    case ' ':
        scroll(top, page);
        break;
    case KEY_HOME:
        top->from = 0;
        break;
    default:
        break;
    }
    return TURN_DRAW;
}

static enum turn take_keys(struct top *top) {
    enum turn turn = TURN_DRAW;
    for (int key; turn == TURN_DRAW && (key = screen_key()) != KEY_NONE;)
        turn = take_key(top, key);
    return turn;
}

static enum turn wait_until(struct top *top, uint64_t until_ns) {
    struct pollfd polled[] = {{.fd = top->signals, .events = POLLIN},
                              {.fd = STDIN_FILENO, .events = POLLIN}};
    uint64_t now = clock_monotonic_ns();
    int wait_ms = now >= until_ns ? 0 : (int)((until_ns - now) / 1000000 + 1);
    if (poll(polled, 2, wait_ms) <= 0)
        return TURN_LOOK;
    enum turn turn = TURN_DRAW;
    if (polled[0].revents != 0)
        turn = take_signals(top);
    if (turn == TURN_DRAW && polled[1].revents != 0)
        turn = take_keys(top);
    return turn;
}

static bool draw(struct top *top, const struct error *error) {
    arena_reset(&top->arena);
    struct view_answers answers = {top->now, top->before, top->seconds};
    struct view view = view_make(top->kind, &answers, top->screen.columns, &top->arena);
    uint32_t shown = top->screen.rows > 1 ? top->screen.rows - 1 : 1;
    uint32_t last = view.count > shown ? view.count - shown : 0;
    if (top->from > last)
        top->from = last;
    char footer[FOOTER_MAX];
    uint32_t below = view.count - top->from > shown ? view.count - top->from - shown : 0;
    if (top->away)
        snprintf(footer, sizeof footer, "%.200s; waiting (q ends)", error->message);
    else
        snprintf(footer, sizeof footer, "q quit  a all  p pipelines  j jobs  i incidents%s",
                 below > 0       ? "  arrows: more below"
                 : top->from > 0 ? "  arrows: more above"
                                 : "");
    return screen_draw(&top->screen, &view, top->from, footer);
}

// It is gone, or does not answer. Another process has another socket.
static void look_elsewhere(struct top *top) {
    struct error error;
    char path[CONTROL_PATH_MAX];
    if (top->given == NULL && client_choose(NULL, path, &error) == STATUS_OK)
        memcpy(top->path, path, strlen(path) + 1);
}

static void show(struct top *top) {
    struct error error = {0};
    uint64_t next_ns = clock_monotonic_ns() + top->interval_ns;
    bool goes_on = draw(top, &error);
    while (goes_on) {
        enum turn turn = wait_until(top, next_ns);
        if (turn == TURN_LOOK) {
            if (top->away)
                look_elsewhere(top);
            enum status status = look(top, &error);
            top->away = status != STATUS_OK && status != STATUS_STOPPED;
            if (status == STATUS_STOPPED)
                turn = take_signals(top);
            next_ns = clock_monotonic_ns() + top->interval_ns;
        }
        goes_on = turn != TURN_END && draw(top, &error);
    }
}

// -- the command ----------------------------------------------------------------------------------

static enum status read_interval(const char *text, uint64_t *interval_ns, struct error *error) {
    struct duration interval = {.ns = 1000000000};
    char why[160];
    if (text != NULL && !option_parse_duration(text, &interval, why))
        return error_set(error, STATUS_USAGE, "--interval: %s", why);
    if (interval.ns < 100000000 || interval.ns > INT64_C(3600000000000))
        return error_set(error, STATUS_USAGE, "--interval is from 100ms to 1h, not \"%s\"", text);
    *interval_ns = (uint64_t)interval.ns;
    return STATUS_OK;
}

static enum status top_show(struct top *top, const struct top_options *options, struct buffer *out,
                            struct error *error) {
    if (options->json)
        return print_json(top, out, error);
    if (options->once || !screen_possible())
        return print_table(top, out, error);
    enum status status = look(top, error);
    if (status != STATUS_OK)
        return status;
    if (!screen_enter(&top->screen))
        return error_set(error, STATUS_OS, "the terminal cannot be used; --once prints a table");
    show(top);
    screen_leave(&top->screen);
    return STATUS_OK;
}

static int top_run(struct invocation *invocation) {
    const struct top_options *options = invocation->options;
    struct top top = {.given = options->socket, .signals = -1};
    struct error error = {0};
    enum status status = read_interval(options->interval, &top.interval_ns, &error);
    if (status == STATUS_OK)
        status = client_choose(options->socket, top.path, &error);
    if (status != STATUS_OK)
        return invocation_fail(invocation, &error);
    arena_init(&top.arena, ARENA_BLOCK);
    top.signals = open_signals();
    status = top_show(&top, options, invocation->out, &error);
    top_release(&top);
    return status == STATUS_OK || status == STATUS_STOPPED ? 0
                                                           : invocation_fail(invocation, &error);
}

const struct command command_top = {
    .name = "top",
    .summary = "shows how a running culprit does: rates, lag, ranks, incidents",
    .description =
        "Shows, once a second, what a running culprit does: events a second and how far behind "
        "each pipeline is, the incidents that are open, the ranks of each job, receivers, and "
        "what "
        "waits in exporters. Keys: q quits, p shows pipelines with their stages, j jobs, i "
        "incidents, a all; arrows scroll. Only the user that culprit runs as, and root, may look; "
        "of several culprits --socket chooses one.",
    COMMAND_OPTIONS(rows, struct top_options),
    .examples =
        "  culprit top\n"
        "  culprit top --once\n"
        "  culprit top --json | jq '.pipelines[].incidents'\n"
        "  kubectl exec POD -c culprit -- culprit top --once\n",
    .exit_codes =
        "  0   ended by q or a signal; or the table was printed\n"
        "  64  the command line is wrong, or several culprits run here\n"
        "  66  no culprit runs here\n"
        "  74  culprit does not answer\n"
        "  77  only another user may look\n",
    .run = top_run,
};
