// SPDX-License-Identifier: Apache-2.0
// What is wrong with NVLink on a node. What a switch says fatally is its own; else of the gravest
// Xids the first: a GPU that only lost the other end comes behind one that failed. Errors that the
// link recovered from count only when there are many. O(items).
#include "pipeline/model/node_event.h"
#include "processors/cluster/xid_text.h"
#include "processors/fabric_link/parts.h"

static bool is_link(const struct link_item *item) {
    return item->what == LINK_XID || item->what == LINK_SXID;
}

// NULL: none is fatal.
static const struct link_item *first_fatal(const struct link_item *items, uint32_t count,
                                           enum link_what what) {
    const struct link_item *first = NULL;
    for (uint32_t i = 0; i < count; i++)
        if (items[i].what == what && items[i].said->fatal != LINK_GOES_ON &&
            (first == NULL || items[i].said->fatal > first->said->fatal))
            first = &items[i];
    return first;
}

// What the driver asks for of this GPU, of several the last; RECOVERY_UNKNOWN: nothing.
enum recovery nvlink_recovery(const struct fabric_fault *fault) {
    enum recovery recovery = RECOVERY_UNKNOWN;
    for (uint32_t i = 0; i < fault->count; i++) {
        const struct link_said *said = fault->items[i].said;
        if (said->what != LINK_RECOVERY || said->address != fault->anchor->said->address)
            continue;
        enum recovery asked = recovery_read((struct slice){said->text, said->text_size});
        recovery = asked == RECOVERY_UNKNOWN ? recovery : asked;
    }
    return recovery;
}

static int64_t count_nonfatal(const struct link_item *items, uint32_t count,
                              const struct link_item **first) {
    int64_t number = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_link(&items[i]) || items[i].said->fatal != 0)
            continue;
        *first = number == 0 ? &items[i] : *first;
        number++;
    }
    return number;
}

struct fabric_fault nvlink_fault(const struct fabric_config *config, const struct link_item *items,
                                 uint32_t count) {
    assert(count > 0);
    struct fabric_fault fault = {.node = items->place.node,
                                 .address = PCI_NONE,
                                 .device = STRING_NONE,
                                 .items = items,
                                 .count = count,
                                 .severity = SEVERITY_CRITICAL,
                                 .last_ns = items[count - 1].time_ns};
    const struct link_item *of_switch = first_fatal(items, count, LINK_SXID);
    const struct link_item *of_gpu = first_fatal(items, count, LINK_XID), *first = NULL;
    int64_t nonfatal = count_nonfatal(items, count, &first);
    if (of_switch != NULL) {
        fault.anchor = of_switch;
        fault.action = "inspect_fabric";
    } else if (of_gpu != NULL) {
        bool by_software = of_gpu->said->fatal == LINK_BY_SOFTWARE;
        fault.anchor = of_gpu;
        fault.action = by_software ? "monitor" : xid_judge(of_gpu->said->code, true).action;
        fault.severity = by_software ? SEVERITY_WARNING : SEVERITY_CRITICAL;
    } else if (nonfatal >= config->nonfatal_errors) {
        fault.anchor = first;
        fault.severity = SEVERITY_WARNING;
        fault.action = "check_link";
        fault.number = nonfatal;
    }
    if (fault.anchor == NULL)
        return fault;
    fault.kind = fault.anchor->what == LINK_SXID ? FABRIC_SWITCH : FABRIC_NVLINK;
    for (uint32_t i = 0; i < count && fault.first_ns == 0; i++)
        if (is_link(&items[i]) && items[i].said->fatal == fault.anchor->said->fatal)
            fault.first_ns = items[i].time_ns;
    return fault;
}
