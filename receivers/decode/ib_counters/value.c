// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/ib_counters/value.h"

#include "base/text/cut.h"
#include "pipeline/component/decoder.h"

#include <stdlib.h>

enum { DIGITS_MAX = 20 };

enum read_result ib_counter_read(struct reading *reading, struct slice counter,
                                 struct slice value) {
    uint64_t number;
    value = text_trim(value);
    if (slice_equal(counter, SLICE("lifespan")))
        return READ_OTHER;
    if (value.size == 0)
        return reading_refuse(reading, DECODE_MISSING_VALUE, "the counter has no value");
    if (!text_number(value, DIGITS_MAX, &number))
        return reading_refuse(reading, DECODE_WRONG_TYPE,
                              "the value of the counter is not a whole number");
    reading_begin(reading, OBSERVATION_IB_COUNTER);
    reading->no_rank = true;
    reading_text(reading, FACT_COUNTER, counter);
    reading_number(reading, FACT_VALUE, number > INT64_MAX ? INT64_MAX : (int64_t)number);
    return READ_EVENT;
}

struct slice ib_state_word(struct slice value) {
    uint64_t number;
    value = text_trim(value);
    struct slice word = value;
    if (text_take_number(&word, 1, 3, &number) && text_skip_char(&word, ':'))
        value = text_trim(word);
    return value.size == 0 ? (struct slice){NULL, 0} : value;
}
