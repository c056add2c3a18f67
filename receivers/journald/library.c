// SPDX-License-Identifier: Apache-2.0
#include "receivers/journald/library.h"

static struct journal_library journal;

static const struct late_symbol symbols[] = {
#define JOURNAL_PLACE(name) {"sd_journal_" #name, (void **)(void *)&journal.name},
    JOURNAL_FUNCTIONS(JOURNAL_PLACE)
#undef JOURNAL_PLACE
};
struct late_library journal_late_library = {"libsystemd.so.0", "libsystemd0", "the journal",
                                            symbols,
                                            .symbol_count = sizeof symbols / sizeof symbols[0]};

enum status journal_library_load(const struct journal_library **library, struct error *error) {
    enum status status = late_library_load(&journal_late_library, error);
    if (status == STATUS_OK)
        *library = &journal;
    return status;
}
