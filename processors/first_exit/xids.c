// SPDX-License-Identifier: Apache-2.0
// The Xids of the GPU of the rank that ended first by a CUDA error.
#include "processors/cluster/tables.h"
#include "processors/cluster/xid_text.h"
#include "processors/first_exit/decide.h"

#include <inttypes.h>

// Clocks of a log and of the kernel may differ by so much.
#define XID_LATE_NS UINT64_C(5000000000)

// Where the rank's GPU is not known, the driver's pid tells, outside of containers.
static bool is_of_process(const struct xid_entry *xid, const struct exit_process *process) {
    if (xid->node != process->node || process->node == STRING_NONE)
        return false;
    if (process->gpu != PCI_NONE)
        return xid->address == pci_device(process->gpu);
    return process->unit == STRING_NONE && process->pid >= 0 && xid->pid == process->pid;
}

static bool is_of_program(uint32_t code) {
    enum { XID_CLEANUP = 45 };
    const struct xid_row *row = xid_find(code);
    return row != NULL && (row->class == XID_CLASS_APPLICATION || code == XID_CLEANUP);
}

void exit_tell_xids(const struct first_exit_config *config, const struct exit_list *list,
                    const struct exit_candidate *candidate, struct verdict_builder *builder) {
    const struct exit_note *note = candidate->reason;
    if (candidate->process == NO_PROCESS || candidate->kind != EXIT_CUDA_ERROR || note == NULL ||
        note_is(note, NOTE_TIMELESS))
        return;
    const struct exit_process *process = &list->processes[candidate->process];
    const struct xid_entry *named = NULL;
    for (uint32_t i = 0; i < list->xid_count; i++) {
        const struct xid_entry *xid = list->xids[i];
        if (!is_of_process(xid, process) ||
            xid->time_ns + duration_ns(config->xid_window) < note->time_ns ||
            xid->time_ns > note->time_ns + note->slack_ns + XID_LATE_NS)
            continue;
        bool by_program = is_of_program(xid->code);
        builder_evidence(builder, by_program ? EVIDENCE_CAUSE : EVIDENCE_CONTEXT, xid->time_ns,
                         xid_entry_uid(xid, builder->arena), "%s",
                         xid_entry_description(xid, builder->arena));
        // What the driver says last only cleans up.
        named = named == NULL ? xid : named;
    }
    if (named == NULL)
        return;
    builder_attribute_format(builder, "nvidia.xid.code", "%" PRIu32, named->code);
    const struct text_field fields[] = {
        {"who", exit_process_spoken(process, builder->arena)},
        {"code", arena_number(builder->arena, named->code)},
        {"meaning", arena_text(builder->arena, xid_meaning(named->code))},
        {NULL, NULL}};
    if (is_of_program(named->code))
        builder->verdict.remediation = slice_of(
            text_fill(builder->arena,
                      "Look for the error in the program of {who}: the driver reports Xid {code} "
                      "({meaning}), which programs cause; run it with CUDA_LAUNCH_BLOCKING=1.",
                      fields));
}
