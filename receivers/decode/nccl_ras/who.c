// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/nccl_ras/who.h"

#include "base/text/cut.h"

enum { DIGITS_MAX = 9 };

// "5", "0 (NVML 4)": as the process sees it, and as the driver counts where that is another number.
// Of several GPUs ("0,1") none is named.
static bool take_gpu(struct slice *text, struct reading *reading) {
    uint64_t cuda, nvml;
    if (!text_take_number(text, 1, DIGITS_MAX, &cuda))
        return false;
    if (text->size > 0 && text->data[0] == ',') {
        *text = text_from(*text, text_until_any(*text, " (").size);
        if (text_skip(text, SLICE(" (NVML ")))
            *text = text_from(*text, text_until(*text, ')').size);
        text_skip_char(text, ')');
        return true;
    }
    nvml = cuda;
    if (text_skip(text, SLICE(" (NVML ")) &&
        (!text_take_number(text, 1, DIGITS_MAX, &nvml) || !text_skip_char(text, ')')))
        return false;
    reading_number(reading, FACT_CUDA_DEVICE, (int64_t)cuda);
    reading_number(reading, FACT_NVML_DEVICE, (int64_t)nvml);
    return true;
}

static bool take_pid(struct slice *text, struct reading *reading) {
    uint64_t pid;
    if (!text_take_number(text, 1, DIGITS_MAX, &pid))
        return false;
    reading_number(reading, FACT_PID, (int64_t)pid);
    return true;
}

static bool take_host(struct slice *text, struct reading *reading) {
    struct slice host = text_until_any(*text, " \t\r");
    if (host.size == 0)
        return false;
    *text = text_from(*text, host.size);
    reading->host = host;
    return true;
}

enum who_result who_process(struct slice text, struct reading *reading) {
    if (!take_pid(&text, reading) || !text_skip(&text, SLICE(" on node ")) ||
        !take_host(&text, reading) ||
        (!text_skip(&text, SLICE(" managing GPU ")) && !text_skip(&text, SLICE(" managing GPUs "))))
        return WHO_CUT;
    return take_gpu(&text, reading) ? WHO_READ : WHO_CUT;
}

enum who_result who_gpu(struct slice text, struct reading *reading) {
    if (text_begins(text, SLICE("[process information not found]")))
        return WHO_UNKNOWN;
    if (!text_skip(&text, SLICE("GPU ")) || !take_gpu(&text, reading) ||
        !text_skip(&text, SLICE(" managed by process ")) || !take_pid(&text, reading) ||
        !text_skip(&text, SLICE(" on node ")))
        return WHO_CUT;
    return take_host(&text, reading) ? WHO_READ : WHO_CUT;
}
