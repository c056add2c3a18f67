// SPDX-License-Identifier: Apache-2.0
// Compares the end of a path with the names that PyTorch gives dumps unless it is told others.
#include "receivers/decode/flight_recorder/dump_path.h"

#include "base/text/cut.h"
#include "pipeline/model/event.h"

static void drop_end(struct slice *name, struct slice end) {
    if (name->size >= end.size &&
        memcmp(name->data + name->size - end.size, end.data, end.size) == 0)
        name->size -= end.size;
}

bool flight_dump_path(struct slice path) {
    static const char *const NAMES[] = {"comm_lib_trace_rank_", "nccl_trace_rank_"};
    static const char *const ENDS[] = {".gz", ".json", ".pickle", ".pkl"};
    const char *slash = path.size == 0 ? NULL : memrchr(path.data, '/', path.size);
    struct slice name = slash == NULL ? path : text_from(path, (size_t)(slash + 1 - path.data));
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++)
        drop_end(&name, slice_of(ENDS[i]));
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        uint64_t rank = 0;
        if (text_begins(name, slice_of(NAMES[i])))
            return text_number(text_from(name, strlen(NAMES[i])), 10, &rank) && rank <= RANK_MAX;
    }
    return false;
}
