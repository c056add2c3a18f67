// SPDX-License-Identifier: Apache-2.0
// What lasts until somebody mends it, by the kinds of verdicts and by the words of programs: short
// tables, walked once a verdict.
#include "processors/cluster/lasting.h"

#include "base/text/cut.h"

static const struct {
    const char *text;
    enum lasting lasting;
} KINDS[] =
    {
        {"fabric_manager", LASTING_FABRIC}, {"nvswitch", LASTING_FABRIC},
        {"nvlink_setup", LASTING_FABRIC},   {"driver_mismatch", LASTING_DRIVER},
        {"gpu_lost", LASTING_GPUS},         {"gpu_unusable", LASTING_GPUS},
        {"gpu_missing", LASTING_GPUS},      {"gpu_power", LASTING_GPUS},
        {"gpu_needs_reset", LASTING_GPUS},
},
  WORDS[] = {
      {"system not yet initialized", LASTING_FABRIC},
      {"cudaErrorSystemNotReady", LASTING_FABRIC},
      {"CUDA_ERROR_SYSTEM_NOT_READY", LASTING_FABRIC},
      {"river/library version mismatch", LASTING_DRIVER},
      {"unsupported display driver / cuda driver combination", LASTING_DRIVER},
      {"cudaErrorSystemDriverMismatch", LASTING_DRIVER},
      {"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", LASTING_DRIVER},
      {"No CUDA GPUs are available", LASTING_GPUS},
      {"no CUDA-capable device", LASTING_GPUS},
      {"invalid device ordinal", LASTING_GPUS},
      {"CUDA_ERROR_NO_DEVICE", LASTING_GPUS},
      {"GPU is lost", LASTING_GPUS},
      {"GPU requires reset", LASTING_GPUS},
};

uint32_t lasting_of_kind(const char *kind) {
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (strcmp(kind, KINDS[i].text) == 0)
            return KINDS[i].lasting;
    return LASTING_NONE;
}

uint32_t lasting_of_words(struct slice message) {
    struct slice behind;
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (text_find(message, slice_of(WORDS[i].text), &behind))
            return WORDS[i].lasting;
    return LASTING_NONE;
}

bool lasting_needs_place(uint32_t lasting) {
    return lasting == LASTING_GPUS;
}
