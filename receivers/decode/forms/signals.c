// SPDX-License-Identifier: Apache-2.0
// Numbers are those of Linux on x86 and ARM: signal(7).
#include "receivers/decode/forms/signals.h"

#include "base/text/cut.h"

static const struct {
    int64_t number;
    struct slice name, words;
} SIGNALS[] = {
#define SIGNAL(number, name, words)                                                                \
    {                                                                                              \
        (number), {"SIG" name, sizeof("SIG" name) - 1}, {                                          \
            words, sizeof(words) - 1                                                               \
        }                                                                                          \
    }
    SIGNAL(1, "HUP", "Hangup"),
    SIGNAL(2, "INT", "Interrupt"),
    SIGNAL(3, "QUIT", "Quit"),
    SIGNAL(4, "ILL", "Illegal instruction"),
    SIGNAL(5, "TRAP", "Trace/breakpoint trap"),
    SIGNAL(6, "ABRT", "Aborted"),
    SIGNAL(7, "BUS", "Bus error"),
    SIGNAL(8, "FPE", "Floating point exception"),
    SIGNAL(9, "KILL", "Killed"),
    SIGNAL(10, "USR1", "User defined signal 1"),
    SIGNAL(11, "SEGV", "Segmentation fault"),
    SIGNAL(12, "USR2", "User defined signal 2"),
    SIGNAL(13, "PIPE", "Broken pipe"),
    SIGNAL(14, "ALRM", "Alarm clock"),
    SIGNAL(15, "TERM", "Terminated"),
    SIGNAL(24, "XCPU", "CPU time limit exceeded"),
    SIGNAL(25, "XFSZ", "File size limit exceeded"),
#undef SIGNAL
};
enum { COUNT = sizeof SIGNALS / sizeof *SIGNALS };

// The signal in front of the text, and behind it; 0: none.
static int64_t take_signal(struct slice *text) {
    struct slice rest = *text;
    uint64_t number;
    text_skip(&rest, SLICE("Signals."));
    for (int i = 0; i < COUNT; i++)
        if (text_skip(&rest, SIGNALS[i].name) || text_skip(&rest, SIGNALS[i].words)) {
            *text = rest;
            return SIGNALS[i].number;
        }
    text_skip_char(&rest, '-');
    if (!text_take_number(&rest, 1, 2, &number) || number == 0 || number > 64 ||
        (rest.size > 0 && text_is_digit(rest.data[0])))
        return 0;
    *text = rest;
    return (int64_t)number;
}

size_t signal_size(struct slice text) {
    struct slice rest = text;
    return take_signal(&rest) == 0 ? 0 : text.size - rest.size;
}

int64_t signal_number(struct slice text) {
    return take_signal(&text);
}

bool signal_is_front(struct slice text) {
    for (int i = 0; i < COUNT; i++)
        if (text_begins(SIGNALS[i].words, text) || text_begins(SIGNALS[i].name, text))
            return true;
    return false;
}
