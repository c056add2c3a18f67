// SPDX-License-Identifier: Apache-2.0
// How Slurm writes jobs and steps: "123", "123.0", "123.batch", "123_4.extern", "123+1.0".
#pragma once

#include "base/text/cut.h"
#include "receivers/decode/line/reading.h"

// How much of the front is such a name; a point behind it is not part of it.
static inline size_t slurm_step_size(struct slice text) {
    size_t size = 0;
    while (size < text.size &&
           (text_is_digit(text.data[size]) || (text.data[size] >= 'a' && text.data[size] <= 'z') ||
            memchr("_+.", text.data[size], 3) != NULL))
        size++;
    while (size > 0 && text.data[size - 1] == '.')
        size--;
    return size;
}

static inline bool slurm_is_step(struct slice text) {
    return text.size > 0 && text_is_digit(text.data[0]) && slurm_step_size(text) == text.size;
}

static inline void slurm_step_facts(struct reading *reading, struct slice id) {
    struct slice job = text_until(id, '.');
    if (job.size > 0)
        reading_text(reading, FACT_JOB, job);
    if (job.size + 1 < id.size)
        reading_text(reading, FACT_STEP, text_from(id, job.size + 1));
}
