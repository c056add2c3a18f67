// SPDX-License-Identifier: Apache-2.0
// Facts about the wordings: PyTorch, c10/cuda/CUDACachingAllocator.cpp (1.x to 2.9),
// c10/cuda/CUDAException.cpp. A size without its unit, or one that the end of the text touches, is
// not claimed. O(message) for each fact.
#include "receivers/decode/app_log/cuda.h"

#include "base/text/cut.h"
#include "pipeline/model/observation.h"

// -- sizes ----------------------------------------------------------------------------------------

static const struct {
    struct slice name;
    int64_t bytes;
} UNITS[] = {
    {{"bytes", 5}, 1},
    {{"KiB", 3}, INT64_C(1) << 10},
    {{"MiB", 3}, INT64_C(1) << 20},
    {{"GiB", 3}, INT64_C(1) << 30},
    {{"TiB", 3}, INT64_C(1) << 40},
};

// "2.50 GiB" at the front, with something behind it.
static bool take_size(struct slice text, int64_t *bytes) {
    uint64_t whole, part = 0, scale = 1;
    if (!text_take_number(&text, 1, 9, &whole))
        return false;
    struct slice digits = text;
    if (text_skip_char(&digits, '.') && text_take_number(&digits, 1, 6, &part)) {
        for (size_t i = 1; i < text.size - digits.size; i++)
            scale *= 10;
        text = digits;
    }
    if (!text_skip_char(&text, ' '))
        return false;
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++) {
        if (!text_skip(&text, UNITS[i].name))
            continue;
        double unit = (double)UNITS[i].bytes;
        *bytes =
            (int64_t)whole * UNITS[i].bytes + (int64_t)((double)part / (double)scale * unit + 0.5);
        return text.size > 0;
    }
    return false;
}

// The two words before `phrase`, and what follows them: where "2.50 GiB<phrase>" begins.
static bool before_phrase(struct slice text, struct slice phrase, struct slice *size) {
    struct slice behind;
    if (!text_find(text, phrase, &behind))
        return false;
    size_t end = (size_t)(behind.data - text.data) - phrase.size, from = end;
    for (unsigned blanks = 0; from > 0; from--) {
        blanks += text.data[from - 1] == ' ';
        if (blanks == 2)
            break;
    }
    *size = text_from(text, from);
    text_skip_char(size, '(');
    return true;
}

static const struct {
    struct slice phrase;
    bool behind; // the size stands behind the phrase, else in front of it
    enum fact_key key;
} SIZES[] = {
    {{"Tried to allocate ", 18}, true, FACT_TRIED_BYTES},
    {{"total capacity of ", 18}, true, FACT_TOTAL_BYTES},
    {{"total capacty of ", 17}, true, FACT_TOTAL_BYTES},
    {{" total capacity;", 16}, false, FACT_TOTAL_BYTES},
    {{" of which ", 10}, true, FACT_FREE_BYTES},
    {{" free;", 6}, false, FACT_FREE_BYTES},
    {{"Of the allocated memory ", 24}, true, FACT_ALLOCATED_BYTES},
    {{" already allocated;", 19}, false, FACT_ALLOCATED_BYTES},
    {{" is reserved by PyTorch but unallocated", 39}, false, FACT_RESERVED_UNALLOCATED_BYTES},
};

// A whole number between two texts.
static bool number_between(struct slice text, struct slice before, const char *ends,
                           int64_t *number) {
    uint64_t value;
    struct slice rest;
    if (!text_find(text, before, &rest) || !text_take_number(&rest, 1, 18, &value) ||
        rest.size == 0 || strchr(ends, rest.data[0]) == NULL || rest.data[0] == '\0')
        return false;
    *number = (int64_t)value;
    return true;
}

static void read_sizes(struct slice message, struct reading *reading) {
    int64_t number;
    struct slice size;
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        bool found = SIZES[i].behind ? text_find(message, SIZES[i].phrase, &size)
                                     : before_phrase(message, SIZES[i].phrase, &size);
        if (found && take_size(size, &number))
            reading_number(reading, SIZES[i].key, number);
    }
    if (number_between(message, SLICE(" GPU "), " ", &number) ||
        number_between(message, SLICE("(GPU "), ";", &number))
        reading_number(reading, FACT_DEVICE_INDEX, number);
    if (number_between(message, SLICE(" Process "), " ", &number))
        reading_number(reading, FACT_OTHER_PID, number);
}

// -- kinds ----------------------------------------------------------------------------------------

static bool contains(struct slice text, struct slice part) {
    struct slice behind;
    return text_find(text, part, &behind);
}

static bool is_out_of_memory(struct slice message) {
    static const struct slice words[] = {
        {"CUDA out of memory", 18},        {"HIP out of memory", 17},
        {"CUDA error: out of memory", 25}, {"HIP error: out of memory", 24},
        {"CUDNN_STATUS_ALLOC_FAILED", 25}, {"CUBLAS_STATUS_ALLOC_FAILED", 26},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (contains(message, words[i]))
            return true;
    return false;
}

// What is known of an error by its text.
static const struct {
    struct slice text;
    int hardware, victim; // -1: not known
} ERRORS[] = {
    {{"uncorrectable ECC error", 23}, true, false},
    {{"device-side assert triggered", 28}, false, false},
    {{"an illegal memory access", 24}, false, false},
    {{"misaligned address", 18}, false, false},
    {{"invalid device ordinal", 22}, false, false},
    {{"invalid argument", 16}, false, false},
    {{"invalid configuration argument", 30}, false, false},
    {{"no kernel image is available", 28}, false, false},
    {{"driver shutting down", 20}, false, true},
};

static bool find_error(struct slice message, struct slice *error) {
    static const struct slice words[] = {
        {"CUDA error: ", 12},        {"HIP error: ", 11},    {"cuDNN error: ", 13},
        {"CUDA driver error: ", 19}, {"MIOpen Error: ", 14},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (text_find(message, words[i], error))
            return error->size > 0;
    return false;
}

// "CUBLAS_STATUS_EXECUTION_FAILED when calling `…`": without the call.
static struct slice only_error(struct slice text) {
    struct slice behind;
    text = text_until(text, '\n');
    if (text_find(text, SLICE(" when calling "), &behind))
        text.size = (size_t)(behind.data - text.data) - 14;
    return text_trim(text);
}

static void set_nature(struct slice error, struct reading *reading) {
    int hardware = -1, victim = false;
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++) {
        if (!text_begins(error, ERRORS[i].text))
            continue;
        hardware = ERRORS[i].hardware;
        victim = ERRORS[i].victim;
    }
    if (hardware >= 0)
        reading_yes_no(reading, FACT_HARDWARE, hardware);
    reading_yes_no(reading, FACT_VICTIM, victim);
}

bool cuda_read(struct slice message, struct reading *reading) {
    struct slice error;
    if (is_out_of_memory(message)) {
        reading_begin(reading, OBSERVATION_CUDA_OOM);
        read_sizes(message, reading);
        reading_yes_no(reading, FACT_VICTIM, false);
        return true;
    }
    if (!find_error(message, &error))
        return false;
    error = only_error(error);
    if (error.size == 0)
        return false;
    reading_begin(reading, OBSERVATION_CUDA_ERROR);
    reading_text(reading, FACT_ERROR, error);
    set_nature(error, reading);
    return true;
}

bool cuda_runs_on(struct slice message) {
    struct slice error;
    return find_error(message, &error);
}
