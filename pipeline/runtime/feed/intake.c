// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtime/feed/intake.h"

#include "base/memory.h"
#include "pipeline/component/decoder.h"

#include <assert.h>

void intake_init(struct intake *intake) {
    memset(intake, 0, sizeof *intake);
    lock_init(&intake->lock);
}

void intake_release(struct intake *intake) {
    for (uint32_t i = 0; i < intake->note_count; i++)
        memory_give(intake->notes[i]);
    for (uint32_t i = 0; i < intake->missing_count; i++)
        memory_give(intake->missing[i]);
    intake->note_count = intake->missing_count = 0;
    lock_destroy(&intake->lock);
}

void intake_refuse(struct intake *intake, struct slice path, uint64_t position,
                   const struct decode_fault *fault) {
    assert(path.size == 0 || path.data != NULL);
    assert(fault->category < DECODE_CATEGORY_COUNT);
    atomic_fetch_add(&intake->refused, 1);
    atomic_fetch_add(&intake->refused_by[fault->category], 1);
    lock_take(&intake->lock);
    if (intake->refusal_count < REPORT_REFUSALS_MAX)
        intake->refusals[intake->refusal_count++] =
            (struct report_refusal){.path = path, .position = position, .fault = *fault};
    lock_release(&intake->lock);
}

void intake_note(struct intake *intake, const char *text) {
    assert(text != NULL);
    lock_take(&intake->lock);
    if (intake->note_count < REPORT_NOTES_MAX)
        intake->notes[intake->note_count++] = memory_copy_text(text, strlen(text));
    else
        intake->notes_dropped++;
    lock_release(&intake->lock);
}

void intake_missing(struct intake *intake, struct slice path) {
    assert(path.size > 0);
    lock_take(&intake->lock);
    if (intake->missing_count < REPORT_NOTES_MAX)
        intake->missing[intake->missing_count++] = memory_copy_text(path.data, path.size);
    lock_release(&intake->lock);
}

void intake_report(struct intake *intake, struct report *report) {
    assert(report->refusals == NULL && report->notes == NULL);
    report->accepted = atomic_load(&intake->accepted);
    report->refused = atomic_load(&intake->refused);
    for (int i = 0; i < DECODE_CATEGORY_COUNT; i++)
        report->refused_by[i] = atomic_load(&intake->refused_by[i]);
    report->done_bytes = atomic_load(&intake->done_bytes);
    report->total_bytes = atomic_load(&intake->total_bytes);
    lock_take(&intake->lock);
    report->refusal_count = intake->refusal_count;
    report->refusals = memory_take(intake->refusal_count * sizeof *report->refusals);
    memcpy(report->refusals, intake->refusals, intake->refusal_count * sizeof *report->refusals);
    report->note_count = intake->note_count;
    report->notes = memory_take(intake->note_count * sizeof *report->notes);
    for (uint32_t i = 0; i < intake->note_count; i++)
        report->notes[i] = memory_copy_text(intake->notes[i], strlen(intake->notes[i]));
    report->notes_dropped = intake->notes_dropped;
    report->missing_count = intake->missing_count;
    lock_release(&intake->lock);
}
