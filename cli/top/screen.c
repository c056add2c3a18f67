// SPDX-License-Identifier: Apache-2.0
#include "cli/top/screen.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { FRAME_MAX = 1 << 20, COLUMNS_MAX = 1000, ROWS_MAX = 1000 };

static const char enter_sequence[] = "\033[?1049h\033[?25l\033[2J";
static const char leave_sequence[] = "\033[0m\033[?25h\033[?1049l";

// Of this process, for a handler of signals.
static struct termios before;
static volatile sig_atomic_t entered;

static bool write_all(const char *text, size_t size) {
    while (size > 0) {
        ssize_t written = write(STDOUT_FILENO, text, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        text += written;
        size -= (size_t)written;
    }
    return true;
}

// Also in a handler: what cannot be written is lost.
static void put_back(void) {
    if (!entered)
        return;
    entered = 0;
    ssize_t written = write(STDOUT_FILENO, leave_sequence, sizeof leave_sequence - 1);
    (void)written;
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

// A mistake of ours: what is said about it is to be read.
static void crash(int number) {
    put_back();
    signal(number, SIG_DFL);
    raise(number);
}

static bool is_set(const char *name) {
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0';
}

static bool is_dumb(void) {
    const char *kind = getenv("TERM");
    return kind == NULL || kind[0] == '\0' || strcmp(kind, "dumb") == 0;
}

bool screen_possible(void) {
    return isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0 && !is_dumb();
}

void screen_measure(struct screen *screen) {
    struct winsize size = {0};
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    screen->columns = size.ws_col == 0 ? 80 : size.ws_col;
    screen->rows = size.ws_row == 0 ? 24 : size.ws_row;
    if (screen->columns > COLUMNS_MAX)
        screen->columns = COLUMNS_MAX;
    if (screen->rows > ROWS_MAX)
        screen->rows = ROWS_MAX;
}

bool screen_enter(struct screen *screen) {
    static const int crashes[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    *screen = (struct screen){.colours = !is_set("NO_COLOR")};
    assert(!entered);
    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return false;
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) != 0)
        return false;
    entered = 1;
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        signal(crashes[i], crash);
    buffer_init(&screen->frame, FRAME_MAX);
    screen_measure(screen);
    if (write_all(enter_sequence, sizeof enter_sequence - 1))
        return true;
    screen_leave(screen);
    return false;
}

void screen_leave(struct screen *screen) {
    put_back();
    buffer_release(&screen->frame);
}

static const char *sequence_of(enum view_style style) {
    static const char *const sequences[] = {[STYLE_PLAIN] = "",
                                            [STYLE_TITLE] = "\033[1m",
                                            [STYLE_HEAD] = "\033[7m",
                                            [STYLE_BAD] = "\033[31m",
                                            [STYLE_WARN] = "\033[33m"};
    assert(style <= STYLE_WARN);
    return sequences[style];
}

static void put_row(struct screen *screen, struct slice text, enum view_style style) {
    bool more;
    struct slice cut = view_cut(text, screen->columns, &more);
    bool styled = screen->colours && style != STYLE_PLAIN;
    // Cleared first: behind a text of full width the cursor still stands on its last character.
    buffer_append_text(&screen->frame, "\033[K");
    buffer_append_text(&screen->frame, styled ? sequence_of(style) : "");
    buffer_append(&screen->frame, cut);
    buffer_append_text(&screen->frame, more ? "…" : "");
    buffer_append_text(&screen->frame, styled ? "\033[0m" : "");
}

bool screen_draw(struct screen *screen, const struct view *view, uint32_t from,
                 const char *footer) {
    assert(entered && from <= view->count);
    uint32_t shown = screen->rows > 1 ? screen->rows - 1 : 0;
    buffer_reset(&screen->frame);
    buffer_append_text(&screen->frame, "\033[H");
    for (uint32_t i = 0; i < shown; i++) {
        bool there = from + i < view->count;
        put_row(screen, there ? view->lines[from + i].text : (struct slice){0},
                there ? view->lines[from + i].style : STYLE_PLAIN);
        buffer_append_text(&screen->frame, "\r\n");
    }
    put_row(screen, slice_of(footer), STYLE_TITLE);
    return !screen->frame.failed && write_all(screen->frame.data, screen->frame.size);
}

// What follows an escape, up to its last byte; a lone one is nobody's key.
static int read_sequence(void) {
    char bytes[8];
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    size_t size = 0;
    while (size < sizeof bytes && poll(&input, 1, 20) > 0 &&
           read(STDIN_FILENO, bytes + size, 1) == 1) {
        size++;
        if (size > 1 && bytes[size - 1] >= '@')
            break;
    }
    if (size < 2 || (bytes[0] != '[' && bytes[0] != 'O'))
        return KEY_NONE;
    switch (bytes[1]) {
    case 'A':
        return KEY_UP;
    case 'B':
        return KEY_DOWN;
    case 'H':
        return KEY_HOME;
    case '5':
        return KEY_PAGE_UP;
    case '6':
        return KEY_PAGE_DOWN;
    default:
        return KEY_NONE;
    }
}

int screen_key(void) {
    unsigned char byte;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&input, 1, 0) <= 0)
        return KEY_NONE;
    if ((input.revents & POLLIN) == 0 || read(STDIN_FILENO, &byte, 1) != 1)
        return KEY_END_OF_INPUT;
    return byte == 0x1b ? read_sequence() : byte;
}
