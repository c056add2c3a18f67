// SPDX-License-Identifier: Apache-2.0
// Which GPUs were lost together: those of one node, no longer than `together` after the first of
// them. What they share (a PCIe switch, power, the driver) failed then, not each of them.
#include "base/sort.h"
#include "processors/cluster/compare.h"
#include "processors/gpu_fault/parts.h"

static bool is_lost(const struct judged_burst *judged) {
    return judged->burst->anchor->kind == FAULT_LOST && judged->fault->node != STRING_NONE;
}

static uint64_t lost_ns(const struct judged_burst *judged) {
    return judged->burst->anchor->time_ns;
}

static int compare_losses(const void *left, const void *right) {
    const struct judged_burst *a = *(struct judged_burst *const *)left;
    const struct judged_burst *b = *(struct judged_burst *const *)right;
    int order = compare_strings(a->fault->node, b->fault->node);
    return order != 0 ? order
                      : COMPARE_KEYS(COMPARE(lost_ns(a), lost_ns(b)),
                                     COMPARE(a->fault->address, b->fault->address));
}

// How many of the sorted losses are one group; those of one GPU alone are none.
static uint32_t group_size(const struct gpu_fault_config *config, struct judged_burst **losses,
                           uint32_t count) {
    bool several = false;
    uint32_t size = 1;
    assert(count > 0);
    while (size < count && losses[size]->fault->node == losses[0]->fault->node &&
           lost_ns(losses[size]) - lost_ns(losses[0]) <= duration_ns(config->together)) {
        several |= losses[size]->fault->address != losses[0]->fault->address;
        size++;
    }
    return several ? size : 1;
}

void gpu_fault_group(const struct gpu_fault_config *config, struct judged_burst *judged,
                     uint32_t count, struct arena *arena) {
    struct judged_burst **losses = arena_take(arena, (count + 1) * sizeof *losses);
    uint32_t lost = 0;
    for (uint32_t i = 0; i < count; i++)
        if (is_lost(&judged[i]))
            losses[lost++] = &judged[i];
    sort_stable(losses, lost, sizeof *losses, arena, compare_losses);
    for (uint32_t at = 0, size; at < lost; at += size) {
        size = group_size(config, losses + at, lost - at);
        // What was told together is never told alone, when the others are forgotten.
        if (size == 1 && losses[at]->fault->with_ns == 0)
            continue;
        struct loss_group *group = arena_zero(arena, 1, sizeof *group);
        *group = (struct loss_group){.members = losses + at, .count = size};
        for (uint32_t i = 0; i < size; i++)
            losses[at + i]->group = group;
    }
}

static bool is_fault(const struct told_fault *fault, uint64_t address, uint64_t anchor_ns) {
    return fault->address == address && fault->anchor_ns == anchor_ns;
}

// The one that the members named before; else one that was told already, else the first.
struct told_fault *gpu_fault_group_first(const struct loss_group *group) {
    const struct told_fault *named = NULL;
    struct told_fault *told = NULL;
    for (uint32_t i = 0; i < group->count; i++) {
        struct told_fault *fault = group->members[i]->fault;
        if (fault->with_ns != 0 && (named == NULL || fault->with_ns < named->with_ns))
            named = fault;
        if (fault->told != 0 && told == NULL)
            told = fault;
    }
    if (named == NULL)
        return told != NULL ? told : group->members[0]->fault;
    for (uint32_t i = 0; i < group->count; i++)
        if (is_fault(group->members[i]->fault, named->with_address, named->with_ns))
            return group->members[i]->fault;
    return NULL;
}
