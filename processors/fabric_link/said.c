// SPDX-License-Identifier: Apache-2.0
// Keeps what lines say of network cards, NVLink and NVSwitches. Rows of about 250 bytes, found by
// all that tells them apart; of two with one key the lesser text is kept.
#include "base/text/cut.h"
#include "pipeline/model/node_event.h"
#include "pipeline/model/observation.h"
#include "processors/cluster/xid_text.h"
#include "processors/fabric_link/parts.h"

#include <inttypes.h>

enum {
    XID_CLEANUP = 45,
    XID_LINK = 74,
    XID_LOST = 79,
    XID_LINKS_FROM = 144,
    XID_LINKS_TO = 150,
    XID_RECOVERY = 154,
    NAMES_MAX = 65536
};

struct said_key {
    string_id node;
    uint64_t address;
    uint64_t time_ns;
    string_id device;
    uint32_t what;
    int32_t port;
    uint32_t code;
    uint32_t counter;
} __attribute__((packed));
_Static_assert(offsetof(struct link_said, sampled) ==
                   sizeof(struct row_head) + sizeof(struct said_key),
               "the key lies in the row as in struct said_key");

struct name_key {
    string_id node, device;
};
_Static_assert(offsetof(struct card_name, device) + sizeof(string_id) ==
                   sizeof(struct row_head) + sizeof(struct name_key),
               "the key lies in the row as in struct name_key");

const struct row_type LINK_SAID_ROWS = {
    .size = sizeof(struct link_said),
    .key_size = sizeof(struct said_key),
    .rows_per_chunk = 64,
    .strings = {offsetof(struct link_said, node), offsetof(struct link_said, device)},
};
const struct row_type CARD_NAME_ROWS = {
    .size = sizeof(struct card_name),
    .key_size = sizeof(struct name_key),
    .rows_per_chunk = 64,
    .strings = {offsetof(struct card_name, node), offsetof(struct card_name, device)},
};

struct link_said *link_log_add(struct link_log *log, const struct link_said *like,
                               struct arena *scratch) {
    assert(log->bound.max > 0);
    struct said_key key = {like->node, like->address, like->time_ns, like->device,
                           like->what, like->port,    like->code,    like->counter};
    return row_bound_take(&log->rows, &log->bound, &key, offsetof(struct link_said, time_ns),
                          scratch);
}

static void put_text(struct link_said *said, struct slice text) {
    char room[LINK_TEXT_MAX];
    struct slice kept = text_shorten(text, sizeof room, TEXT_BYTES, room);
    struct slice old = {said->text, said->text_size};
    if (kept.size == 0 || (said->text_size > 0 && slice_compare(kept, old) >= 0))
        return;
    memcpy(said->text, kept.data, kept.size);
    said->text_size = (uint32_t)kept.size;
}

void link_log_name(struct link_log *log, string_id node, string_id device, pci_address address,
                   uint64_t time_ns, struct arena *scratch) {
    if (device == STRING_NONE || address == PCI_NONE)
        return;
    struct name_key key = {node, device};
    log->name_bound.max = NAMES_MAX;
    struct card_name *name = row_bound_take(&log->names, &log->name_bound, &key,
                                            offsetof(struct card_name, time_ns), scratch);
    // Of several the latest, of equal times the greater, so that order does not matter.
    if (time_ns > name->time_ns || (time_ns == name->time_ns && address > name->address)) {
        name->address = address;
        name->time_ns = time_ns;
    }
}

// -- lines of the kernel --------------------------------------------------------------------------

static bool is_link_xid(uint32_t code) {
    return code == XID_LINK || (code >= XID_LINKS_FROM && code <= XID_LINKS_TO);
}

static enum link_fatal grade_xid(uint32_t code, struct slice detail) {
    static const enum link_fatal grades[] = {
        [NVLINK5_SOFTWARE] = LINK_BY_SOFTWARE,
        [NVLINK5_PEER] = LINK_BY_PEER,
        [NVLINK5_ENDS_PROCESS] = LINK_ENDS_PROCESS,
        [NVLINK5_FATAL] = LINK_FATAL,
    };
    enum nvlink5 judged = nvlink5_judge(code, detail);
    if (judged != NVLINK5_UNKNOWN)
        return grades[judged];
    // What an Xid 74 says of itself is fatal, whether or not the driver has a word for it.
    bool fatal = xid_judge(code, xid_is_fatal(code, detail)).anchor != XID_ANCHOR_NO;
    return fatal ? LINK_FATAL : LINK_GOES_ON;
}

// Where the line has no word on it the code decides.
static enum link_fatal grade_sxid(const struct kernel_line *line) {
    const struct sxid_row *row = sxid_find(line->code);
    enum kernel_fatal fatal = line->fatal;
    if (fatal == KERNEL_FATAL_UNKNOWN && row != NULL)
        fatal = row->severity;
    return fatal == KERNEL_FATAL_YES ? LINK_FATAL : LINK_GOES_ON;
}

// What its table says may be passed over.
static bool is_harmless(const struct kernel_line *line) {
    if (line->kind == KERNEL_XID)
        return nvlink5_judge(line->code, line->detail) == NVLINK5_NOTHING;
    const struct sxid_row *row = line->kind == KERNEL_SXID ? sxid_find(line->code) : NULL;
    return row != NULL && grade_sxid(line) == LINK_GOES_ON &&
           (row->harmless == SXID_HARMLESS_YES || row->harmless == SXID_HARMLESS_RESTART);
}

// An Xid 45 ends what a process had on the GPU, and may name the Xid because of which: of that one
// no line may be left.
static bool is_cleanup(const struct kernel_line *line) {
    return line->kind == KERNEL_XID && line->code == XID_CLEANUP && line->caused_by != 0;
}

static uint32_t code_of(const struct kernel_line *line) {
    return is_cleanup(line) ? line->caused_by : line->code;
}

// False: it says nothing of a link.
static bool kernel_what(const struct kernel_line *line, enum link_what *what) {
    if (line->kind == KERNEL_SXID)
        *what = LINK_SXID;
    else if (line->kind == KERNEL_GPU_LOST || (line->kind == KERNEL_XID && line->code == XID_LOST))
        *what = LINK_GPU_LOST;
    else if (line->kind == KERNEL_XID && line->code == XID_RECOVERY)
        *what = LINK_RECOVERY;
    else if (line->kind == KERNEL_XID && is_link_xid(code_of(line)))
        *what = LINK_XID;
    else
        return false;
    return true;
}

static void take_kernel(struct link_log *log, const struct event *event, struct arena *scratch) {
    const struct kernel_line *line = event->kernel;
    enum link_what what;
    if (!kernel_what(line, &what) || line->address == PCI_NONE || is_harmless(line))
        return;
    bool lost = what == LINK_GPU_LOST;
    struct link_said like = {.node = event->node,
                             .address = pci_device(line->address),
                             .time_ns = event->time_ns,
                             .what = what,
                             .port = lost ? -1 : line->link,
                             .code = lost ? XID_LOST : code_of(line),
                             .counter = is_cleanup(line) ? XID_CLEANUP : 0};
    struct link_said *said = link_log_add(log, &like, scratch);
    uint32_t fatal = like.counter != 0   ? LINK_ENDS_PROCESS
                     : what == LINK_XID  ? grade_xid(line->code, line->detail)
                     : what == LINK_SXID ? grade_sxid(line)
                                         : LINK_GOES_ON;
    said->fatal = fatal > said->fatal ? fatal : said->fatal;
    put_text(said, line->detail);
}

// -- observations ---------------------------------------------------------------------------------

static bool state_is(const struct observation *seen, const char *word) {
    struct slice state;
    return observation_text(seen, FACT_STATE, &state) && slice_equal(state, slice_of(word));
}

static bool module_what(const struct observation *seen, enum link_what *what) {
    struct slice state;
    if (!observation_text(seen, FACT_STATE, &state))
        return false;
    bool out = slice_equal(state, SLICE("Cable unplugged"));
    bool in = slice_equal(state, SLICE("Cable plugged"));
    *what = out ? LINK_DOWN : in ? LINK_UP : LINK_TROUBLE;
    return true;
}

// False: it says nothing of a link.
static bool what_of(const struct observation *seen, enum link_what *what) {
    switch (seen->kind) {
    case OBSERVATION_NIC_LINK:
        *what = state_is(seen, "down") ? LINK_DOWN : LINK_UP;
        return true;
    case OBSERVATION_NIC_MODULE:
        return module_what(seen, what);
    case OBSERVATION_NIC_HEALTH:
        // What says of itself that it is no more than a warning is none.
        *what = observation_is(seen, FACT_FATAL, false) ? LINK_FAILED : LINK_TROUBLE;
        return observation_is(seen, FACT_FATAL, true);
    case OBSERVATION_NIC_COMMAND:
        *what = LINK_FAILED;
        return observation_is(seen, FACT_FATAL, false);
    case OBSERVATION_NETDEV_WATCHDOG:
        *what = LINK_TROUBLE;
        return true;
    case OBSERVATION_NCCL_PORT_ERROR:
        *what = LINK_LOST;
        return true;
    case OBSERVATION_NCCL_NET_ERROR:
        *what = LINK_REMOTE;
        return true;
    case OBSERVATION_HEALTH_EVENT:
        *what = observation_is(seen, FACT_FATAL, false) ? LINK_FAILED : LINK_TROUBLE;
        return !observation_is(seen, FACT_HEALTHY, false);
    default:
        return false;
    }
}

static void take_observation(struct link_log *log, const struct event *event,
                             struct arena *scratch) {
    const struct observation *seen = event->observation;
    const struct fact *nic = observation_fact(seen, FACT_NIC);
    struct slice device = {NULL, 0};
    enum link_what what;
    int64_t port = -1;
    observation_text(seen, FACT_DEVICE, &device);
    observation_number(seen, FACT_PORT, &port);
    if (!what_of(seen, &what) || (nic == NULL && device.size == 0))
        return;
    string_id name = device.size == 0 ? STRING_NONE : intern(device);
    struct link_said like = {.node = event->node,
                             .address = nic == NULL ? PCI_NONE : nic->address,
                             .time_ns = event->time_ns,
                             .device = name == STRING_REFUSED ? STRING_NONE : name,
                             .what = what,
                             .port = port >= 0 && port < INT32_MAX ? (int32_t)port : -1};
    if (like.address == PCI_NONE && like.device == STRING_NONE)
        return;
    link_log_name(log, like.node, like.device, like.address, like.time_ns, scratch);
    put_text(link_log_add(log, &like, scratch), seen->text);
}

void link_log_take(struct link_log *log, const struct event *event, struct arena *scratch) {
    if (event->kind == EVENT_KERNEL)
        take_kernel(log, event, scratch);
    else if (event->kind != EVENT_OBSERVATION)
        return;
    else if (event->observation->kind == OBSERVATION_NODE_STATE)
        restart_take(log, event, scratch);
    else
        take_observation(log, event, scratch);
}

const char *card_text(pci_address address, struct arena *arena) {
    return pci_text(address, address != pci_device(address), arena);
}

// -- names of evidence ----------------------------------------------------------------------------

static const char *const WORDS[] = {
    [LINK_DOWN] = "down",     [LINK_UP] = "up",           [LINK_LOST] = "port_error",
    [LINK_FAILED] = "failed", [LINK_TROUBLE] = "trouble", [LINK_COUNTED] = "counted",
    [LINK_REMOTE] = "remote"};

const char *link_said_uid(const struct link_said *said, struct arena *arena) {
    const char *node = node_in_uid(said->node, arena);
    if (said->what == LINK_XID || said->what >= LINK_GPU_LOST)
        return xid_uid(said->node, said->address, said->counter != 0 ? said->counter : said->code,
                       said->time_ns, arena);
    if (said->what == LINK_SXID)
        return arena_format(arena, "sxid:%s:%s:%" PRIu32 ":%" PRId32 ":%" PRIu64, node,
                            pci_text(said->address, false, arena), said->code, said->port,
                            said->time_ns);
    const char *name = said->device != STRING_NONE ? arena_text(arena, intern_slice(said->device))
                                                   : card_text(said->address, arena);
    if (said->sampled != 0)
        return arena_format(arena, "ib:%s:%s:%" PRId32 ":%s:%" PRIu64, node, name, said->port,
                            PORT_COUNTERS[said->counter].name, said->time_ns);
    return arena_format(arena, "link:%s:%s:%s:%" PRIu64, node, name, WORDS[said->what],
                        said->time_ns);
}
