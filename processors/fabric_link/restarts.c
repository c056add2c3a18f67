// SPDX-License-Identifier: Apache-2.0
// When machines and drivers start and stop: what links do then is no fault. Ports come up one after
// another, those that nobody uses stay down, and a driver that is unloaded takes its links down.
// Before a stop is written the links may already be down; behind a start they need some minutes.
// O(log) for each that is asked about.
#include "base/sort.h"
#include "pipeline/model/observation.h"
#include "processors/cluster/compare.h"
#include "processors/fabric_link/parts.h"

#define SECOND_NS       UINT64_C(1000000000)
#define BEFORE_STOP_NS  (120 * SECOND_NS)
#define BEHIND_STOP_NS  (900 * SECOND_NS)
#define BEFORE_START_NS (60 * SECOND_NS) // lines of one start are not always in order
#define BEHIND_START_NS (300 * SECOND_NS)
#define BESIDE_NS       (60 * SECOND_NS) // cards of one machine start one after another
#define LONGEST_NS      BEHIND_STOP_NS

enum { STATES_MAX = 16384 };

struct restart_key {
    string_id node;
    uint64_t time_ns;
    uint64_t address;
    uint32_t of;
    uint32_t is_up;
} __attribute__((packed));
_Static_assert(sizeof(struct restart) == sizeof(struct row_head) + sizeof(struct restart_key),
               "the key lies in the row as in struct restart_key");

const struct row_type RESTART_ROWS = {
    .size = sizeof(struct restart),
    .key_size = sizeof(struct restart_key),
    .rows_per_chunk = 64,
    .strings = {offsetof(struct restart, node)},
};

// Which devices it is about, by the driver; without one it is the machine.
static uint32_t state_of(const struct observation *said) {
    struct slice driver;
    if (!observation_text(said, FACT_DRIVER, &driver))
        return STATE_OF_MACHINE;
    return slice_equal(driver, SLICE("nvidia")) ? STATE_OF_GPUS : STATE_OF_CARDS;
}

void restart_take(struct link_log *log, const struct event *event, struct arena *scratch) {
    struct slice state = {NULL, 0};
    const struct fact *nic = observation_fact(event->observation, FACT_NIC);
    observation_text(event->observation, FACT_STATE, &state);
    log->restart_bound.max = STATES_MAX;
    struct restart_key key = {event->node, event->time_ns,
                              nic == NULL ? PCI_NONE : pci_device(nic->address),
                              state_of(event->observation), slice_equal(state, SLICE("up"))};
    row_bound_take(&log->restarts, &log->restart_bound, &key, offsetof(struct restart, time_ns),
                   scratch);
}

static int compare_states(const void *left, const void *right) {
    const struct restart *a = *(const struct restart *const *)left;
    const struct restart *b = *(const struct restart *const *)right;
    return COMPARE_KEYS(COMPARE(a->node, b->node), COMPARE(a->time_ns, b->time_ns));
}

struct restart_list link_log_restarts(const struct link_log *log, struct arena *arena) {
    const struct restart *state;
    struct restart_list list = {
        arena_take(arena, (keyed_rows_count(&log->restarts) + 1) * sizeof *list.items), 0};
    for (uint32_t at = 0; (state = keyed_rows_next(&log->restarts, &at)) != NULL;)
        list.items[list.count++] = state;
    sort_stable(list.items, list.count, sizeof *list.items, arena, compare_states);
    return list;
}

// A driver tells of each card by itself: what it says of one excuses the others only for as long as
// a machine takes to start them.
static bool covers(const struct restart *state, const struct link_said *said) {
    bool is_its = state->address == PCI_NONE || said->address == PCI_NONE ||
                  state->address == pci_device(said->address);
    uint64_t before_ns = state->is_up ? BEFORE_START_NS : BEFORE_STOP_NS;
    uint64_t behind_ns = !is_its ? BESIDE_NS : state->is_up ? BEHIND_START_NS : BEHIND_STOP_NS;
    return said->time_ns + before_ns >= state->time_ns &&
           said->time_ns <= state->time_ns + behind_ns;
}

// The first of the node that may cover this time.
static uint32_t seek(const struct restart_list *list, string_id node, uint64_t time_ns) {
    uint32_t low = 0, high = list->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct restart *state = list->items[middle];
        bool is_before =
            state->node < node || (state->node == node && state->time_ns + LONGEST_NS < time_ns);
        low = is_before ? middle + 1 : low;
        high = is_before ? high : middle;
    }
    return low;
}

static bool is_restarting(const struct restart_list *list, const struct link_said *said,
                          uint32_t of) {
    for (uint32_t at = seek(list, said->node, said->time_ns); at < list->count; at++) {
        const struct restart *state = list->items[at];
        if (state->node != said->node || state->time_ns > said->time_ns + BEFORE_STOP_NS)
            return false;
        if ((state->of & of) != 0 && covers(state, said))
            return true;
    }
    return false;
}

bool restart_list_excuses(const struct restart_list *list, const struct link_said *said) {
    const struct sxid_row *sxid = said->what == LINK_SXID ? sxid_find(said->code) : NULL;
    bool of_gpus = (sxid != NULL && sxid->harmless == SXID_HARMLESS_RESTART) ||
                   (said->what == LINK_XID && said->fatal == LINK_BY_SOFTWARE);
    bool of_cards = said->what == LINK_DOWN ||
                    (said->what == LINK_COUNTED && said->counter == PORT_LINK_DOWNED);
    if (list->count == 0 || (!of_gpus && !of_cards))
        return false;
    uint32_t of = STATE_OF_MACHINE | (of_gpus ? STATE_OF_GPUS : STATE_OF_CARDS);
    return is_restarting(list, said, of);
}
