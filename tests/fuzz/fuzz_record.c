// SPDX-License-Identifier: Apache-2.0
// Bytes that waited for delivery to W&B are read as records or left alone, and a record that was
// read is written again in the same bytes.
//
// The input is the queue's bytes; members and JSON in them are taken apart as the sinks do.
#include "exporters/wandb/members.h"
#include "exporters/wandb/record.h"
#include "tests/fuzz/fuzz.h"

static void take_apart(struct slice text) {
    struct wandb_values values = {.count = 0};
    struct slice members = text, key, value;
    while (wandb_member_next(&members, &key, &value)) {
        require(key.data >= text.data && key.data + key.size <= text.data + text.size);
        require(value.data >= key.data && value.data + value.size <= text.data + text.size);
        require(members.size < text.size);
    }
    (void)wandb_member_find(text, "_step");
    (void)wandb_member_number_or(text, "_step", 0);
    (void)wandb_object_inside(text);
    wandb_values_apply(&values, text, false);
    wandb_values_apply(&values, text, true);
    struct buffer out;
    buffer_init(&out, 64 << 20);
    wandb_values_append(&values, &out);
    require(!out.failed && out.size >= 2);
    buffer_release(&out);
    wandb_values_release(&values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice bytes = fuzz_block((struct slice){(const char *)data, size});
    struct wandb_record record;
    for (struct slice at = bytes; wandb_record_read(&at, &record);) {
        struct buffer out;
        struct wandb_record again;
        buffer_init(&out, 64 << 20);
        require(record.run.size >= 1 && record.run.size <= WANDB_RUN_ID_MAX);
        wandb_record_write(&record, &out);
        struct slice written = buffer_slice(&out);
        require(wandb_record_read(&written, &again) && written.size == 0);
        require(again.kind == record.kind && again.sequence == record.sequence);
        require(again.row == record.row && slice_equal(again.run, record.run));
        require(slice_equal(again.members, record.members) && slice_equal(again.file, record.file));
        buffer_release(&out);
        take_apart(record.members);
    }
    take_apart(bytes);
    fuzz_block_give(bytes);
    return 0;
}
