// SPDX-License-Identifier: Apache-2.0
// What culprit says of its own running, to standard error.
//
// One line a message: `console` for people, `json` for collectors (keys ts, level, code, msg,
// component, suppressed). A message that repeats within 10 s (same code, same component, same text
// but for numbers) is counted and its last text said once more, with the count, when its window
// ends: at the next message of any kind after that, at log_look, or at log_flush. Text from events
// is escaped, and a long message is cut.
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_encoding { LOG_AUTO, LOG_CONSOLE, LOG_JSON }; // AUTO: console on a terminal, else JSON

struct log_site {
    const char *code;      // "C1203": stable, listed in the docs
    const char *component; // "receiver/file/ranks", or NULL
};

void log_configure(enum log_level level, enum log_encoding encoding);
bool log_enabled(enum log_level level);
// Any thread. The message is a sentence without the component's name; never a secret.
void log_write(enum log_level level, struct log_site site, const char *format, ...)
    PRINTF_LIKE(3, 4);
// A record that is no message of culprit's own running, such as a finding: each one is written,
// however many there are. `fields` become keys of the JSON form; the console form has only the
// message. Any thread.
struct log_field {
    const char *key, *value;
};
void log_record(enum log_level level, struct log_site site, const char *message,
                const struct log_field *fields, size_t field_count);
// Says what windows that have ended kept back: called now and then by who runs for long.
void log_look(void);
// Says what was suppressed and forgets the windows: at exit and between tests.
void log_flush(void);
// Where the windows' time comes from; NULL: clock_monotonic_ns. For tests, with no other thread
// running.
void log_use_clock(uint64_t (*monotonic_ns)(void));
