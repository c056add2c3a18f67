// SPDX-License-Identifier: Apache-2.0
// What is wrong with NVLink on a node. What a switch says fatally is its own; else the first GPU
// whose Xid is fatal. Errors that the link recovered from count only when there are many. O(items).
#include "pipeline/model/node_event.h"
#include "processors/fabric_link/parts.h"

static bool is_link(const struct link_item *item) {
    return item->what == LINK_XID || item->what == LINK_SXID;
}

static const struct link_item *first_fatal(const struct link_item *items, uint32_t count,
                                           enum link_what what) {
    for (uint32_t i = 0; i < count; i++)
        if (items[i].what == what && items[i].said->fatal != 0)
            return &items[i];
    return NULL;
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
        fault.anchor = of_gpu;
        fault.action = xid_judge(of_gpu->said->code, true).action;
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
