// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/line/level.h"

#include "base/text/cut.h"

#include <strings.h>

static bool is_any(struct slice word, const char *const *words) {
    for (; *words != NULL; words++)
        if (strlen(*words) == word.size && strncasecmp(*words, word.data, word.size) == 0)
            return true;
    return false;
}

enum frame_level level_of_word(struct slice word) {
    static const char *const errors[] = {"error", "err",    "critical",  "crit",
                                         "fatal", "severe", "alert",     "emerg",
                                         "panic", "dpanic", "emergency", NULL};
    static const char *const others[] = {"info",    "information", "informational", "warning",
                                         "warn",    "debug",       "notice",        "trace",
                                         "verbose", "success",     "default",       NULL};
    // OTLP has four of each: "ERROR2".
    if (word.size > 1 && word.data[word.size - 1] >= '2' && word.data[word.size - 1] <= '4')
        word.size--;
    return is_any(word, errors)   ? LEVEL_ERROR
           : is_any(word, others) ? LEVEL_BELOW_ERROR
                                  : LEVEL_NOT_SAID;
}

enum frame_level level_of_text(struct slice text, enum form_scale scale) {
    uint64_t number;
    text = text_trim(text);
    if (!text_number(text, 3, &number))
        return level_of_word(text);
    bool is_error = false;
    switch (scale) {
    case SCALE_NONE:
        return LEVEL_NOT_SAID;
    case SCALE_SYSLOG:
        is_error = number <= 3;
        break;
    case SCALE_OTLP:
        if (number == 0) // not said
            return LEVEL_NOT_SAID;
        is_error = number >= 17;
        break;
    case SCALE_PINO:
        is_error = number >= 50;
        break;
    case SCALE_PYTHON:
        is_error = number >= 40;
        break;
    }
    return is_error ? LEVEL_ERROR : LEVEL_BELOW_ERROR;
}
