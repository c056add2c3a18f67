// SPDX-License-Identifier: Apache-2.0
// Blobs that do not fit what a component declares are refused, and what is loaded can be used.
//
// The input is strings and blobs of a snapshot: pages and headers of a table and of a struct,
// beginning as they were saved. What is whole after that is loaded; then rows are freed and taken,
// which must not lead astray, and strings looked up.
#include "base/intern.h"
#include "pipeline/runtime/checkpoint.h"
#include "tests/fuzz/fuzz.h"

struct row {
    uint32_t chain;
    string_id name;
    uint64_t value;
};

struct scalars {
    uint64_t count;
    string_id last;
};

struct component {
    struct table rows;
    struct scalars scalars;
    struct saver saver;
};

enum { ROWS_MAX = 600 };

static void component_init(struct component *self) {
    *self = (struct component){.scalars = {0}};
    table_init(&self->rows, "rows", sizeof(struct row), 64);
    saver_init(&self->saver, "p/test", 5);
    state_entry_string(state_list_table(&self->saver.list, &self->rows),
                       offsetof(struct row, name));
    state_entry_string(
        state_list_struct(&self->saver.list, "scalars", &self->scalars, sizeof self->scalars),
        offsetof(struct scalars, last));
}

static void component_release(struct component *self) {
    table_release(&self->rows);
    saver_release(&self->saver);
}

// Rows, some of them freed, and their strings.
static void fill(struct component *self, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        struct row *row = table_row(&self->rows, table_add(&self->rows));
        *row = (struct row){.name = 1 + i % 3, .value = i};
    }
    for (uint32_t i = 1; i < count; i += 5)
        table_free(&self->rows, i);
    self->scalars = (struct scalars){count, 2};
}

static bool snapshot_change(struct snapshot *snapshot, struct fuzz_input *input) {
    static const char *const entry_names[] = {"p/test/rows", "p/test/scalars"};
    if (input->left < 2)
        return false;
    uint8_t what = fuzz_byte(input);
    const char *name = entry_names[what & 1];
    uint64_t number = what >> 1 & 7;
    struct slice bytes = {NULL, 0};
    if ((what & 0x10) != 0) {
        snapshot_put(snapshot, STORAGE_STRINGS, "", (string_id)number,
                     (struct slice){"name", number % 5});
    } else if (snapshot_get(snapshot, STORAGE_STATE, name, number, &bytes) && bytes.size > 0) {
        // The bytes that are there, changed or cut.
        struct slice copy = fuzz_block(bytes);
        char *at = (char *)(uintptr_t)copy.data;
        size_t place = fuzz_number(input, 2) % copy.size;
        if ((what & 0x20) != 0)
            copy.size = place;
        else
            at[place] = (char)fuzz_byte(input);
        snapshot_put(snapshot, STORAGE_STATE, name, number, copy);
        fuzz_block_give(copy);
    } else {
        size_t size = fuzz_byte(input) < input->left ? input->left / 2 : input->left;
        snapshot_put(snapshot, STORAGE_STATE, name, number, (struct slice){input->at, size});
        input->at += size;
        input->left -= size;
    }
    return true;
}

static void use(struct component *self) {
    require(self->rows.free_count <= self->rows.used);
    uint32_t before = self->rows.used, freed = self->rows.free_count;
    for (uint32_t i = 0; i < freed; i++) {
        uint32_t row = table_add(&self->rows);
        require(row < before && ((struct row *)table_row(&self->rows, row))->value == 0);
    }
    require(self->rows.used == before && table_add(&self->rows) == before);
    for (uint32_t i = 0; i < before; i++) {
        const struct row *row = table_row(&self->rows, i);
        require(row->name == STRING_NONE || intern_slice(row->name).data != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input input = {(const char *)data, size};
    struct component from, to;
    struct snapshot *snapshot = snapshot_new();
    component_init(&from);
    component_init(&to);
    fill(&from, fuzz_number(&input, 2) % ROWS_MAX);
    for (string_id id = 1; id <= 3; id++)
        snapshot_put(snapshot, STORAGE_STRINGS, "", id, (struct slice){"some", id});
    struct blob_sink sink = snapshot_sink(snapshot);
    saver_save(&from.saver, &sink);
    bool changed = false;
    while (snapshot_change(snapshot, &input))
        changed = true;
    enum saver_answer answer = saver_check(&to.saver, snapshot);
    require(changed || answer == SAVER_WHOLE);
    if (answer == SAVER_WHOLE) {
        saver_load(&to.saver, snapshot);
        use(&to);
    }
    component_release(&from);
    component_release(&to);
    snapshot_free(snapshot);
    intern_release();
    return 0;
}
