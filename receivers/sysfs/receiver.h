// SPDX-License-Identifier: Apache-2.0
// Inside the sysfs receiver: its options, the cards and PCI devices that it reads, and its records.
//
// Each card has a thread of its own that reads its files, since a read of a card that hangs does
// not return: such a card holds up nobody else, and its thread is left behind at a stop. Counters
// of PCI devices come from the kernel's memory, and are read by the receiver's own thread.
#pragma once

#include "base/buffer.h"
#include "base/thread.h"
#include "config/option.h"
#include "pipeline/component/feed.h"
#include "receivers/records/options.h"
#include "receivers/records/polling.h"
#include "receivers/records/sink.h"

#include <assert.h>
#include <limits.h>

struct sysfs_config {
    const char *root;
    struct record_config records; // only `node` is an option
    struct duration interval, read_timeout, rescan, repeat;
    struct text_list skip;
};

// What is more than this is left out, and logged once.
enum { SYSFS_CARDS_MAX = 64, SYSFS_PORTS_MAX = 64, SYSFS_FILES_MAX = 2048, SYSFS_PCI_MAX = 1024 };
enum { SYSFS_NAME_MAX = 63, SYSFS_VALUE_MAX = 47, SYSFS_AER_MAX = 2047, SYSFS_AER_FILES = 3 };

// -- values ---------------------------------------------------------------------------------------

enum value_kind {
    VALUE_STATE,
    VALUE_PHYS_STATE,
    VALUE_LINK_LAYER,
    VALUE_RATE,
    VALUE_COUNTER,    // counters/
    VALUE_HW_COUNTER, // hw_counters/
};

// The text of a file without the blanks around it. Size 0: there is none (yet), or it could not be
// read; that says nothing of the value.
struct value_text {
    uint8_t size;
    char bytes[SYSFS_VALUE_MAX];
};

struct sysfs_value {
    int descriptor;
    enum value_kind kind;
    char name[SYSFS_NAME_MAX + 1];
    struct value_text fresh; // the card's thread writes it while it reads
    struct value_text kept;  // of the reading before
};

// When what was read of something: what changed is told with the reading before it, so that one can
// see how long ago it was otherwise.
struct read_times {
    uint64_t before_ns;  // of the last reading, Unix; 0: there was none
    uint64_t told_ns;    // of the last reading that became a record
    uint64_t whole_ns;   // … with all its values
    uint64_t changed_ns; // of the last reading that found a change; 0: none did
};

struct sysfs_port {
    uint32_t number;       // 0: the card itself (EFA counts some things there)
    uint32_t first, count; // of the card's values
    struct read_times times;
};

// -- cards ----------------------------------------------------------------------------------------

enum card_phase { CARD_IDLE, CARD_ASKED, CARD_READING, CARD_DONE };

struct sysfs_card {
    char name[SYSFS_NAME_MAX + 1];
    char address[SYSFS_NAME_MAX + 1]; // "0000:5c:00.0"; empty: it is no PCI device
    uint64_t inode;                   // of its folder: another one is another card
    struct sysfs_value *values;
    uint32_t value_count;
    struct sysfs_port ports[SYSFS_PORTS_MAX];
    uint32_t port_count;
    struct polled polled;
    bool seen; // by the scan under way
    bool lost; // the last reading that was taken found it gone

    pthread_t thread;
    struct lock lock; // of what follows
    pthread_cond_t changed;
    enum card_phase phase;
    bool quit;
    bool abandoned; // its thread frees it

    // Written by the card's thread while it reads.
    uint64_t read_ns; // when it had read the last file, Unix
    uint32_t read_count;
    int failure; // errno of a file that could not be read; 0: none
    bool gone;   // ENODEV: the card was taken away
};

// Opens the files of the card `name` in the folder `descriptor` of all cards, and starts its
// thread. NULL, with a reason in `error`, when it cannot be read.
struct sysfs_card *sysfs_card_open(int descriptor, const char *name, struct text_list skip,
                                   struct error *error);
// Its thread begins to read; nothing happens while it still reads.
void sysfs_card_ask(struct sysfs_card *card);
// Waits for the reading until `until_ns` (clock_monotonic_ns), or until the feed is stopping. True:
// its fresh values are there, and belong to the caller until it asks again.
bool sysfs_card_wait(struct sysfs_card *card, const struct feed *feed, uint64_t until_ns);
// Stops its thread, waiting for it until `until_ns` (clock_monotonic_ns) at most, or leaves it
// behind, and gives the card back.
void sysfs_card_close(struct sysfs_card *card, uint64_t until_ns);
uint64_t sysfs_parting(void); // a moment from now, for cards that end together

// -- PCI devices ----------------------------------------------------------------------------------

extern const char *const SYSFS_AER_NAMES[SYSFS_AER_FILES];

struct aer_text {
    uint16_t size; // 0: there is none
    char bytes[SYSFS_AER_MAX];
};

struct sysfs_pci {
    char address[SYSFS_NAME_MAX + 1];
    uint64_t inode;
    int descriptors[SYSFS_AER_FILES]; // -1: it has no such file
    struct aer_text fresh[SYSFS_AER_FILES], kept[SYSFS_AER_FILES];
    struct read_times times;
    bool seen;
    bool gone;
};

// NULL: it counts no errors. `failure`: errno of a file that is there and could not be opened.
struct sysfs_pci *sysfs_pci_open(int descriptor, const char *address, int *failure);
// Fills `fresh`; false when nothing could be read.
bool sysfs_pci_read(struct sysfs_pci *device);
void sysfs_pci_close(struct sysfs_pci *device);

// -- the receiver ---------------------------------------------------------------------------------

struct sysfs_receiver {
    const struct sysfs_config *config;
    const struct component_context *context;
    bool started;
    char node[RECORD_NODE_MAX + 1];
    struct record_sink sink;
    struct source *source;
    struct source_position position;
    struct polling polling;
    struct buffer record;
    struct sysfs_card *cards[SYSFS_CARDS_MAX];
    uint32_t card_count;
    struct sysfs_pci *devices[SYSFS_PCI_MAX];
    uint32_t device_count;
    uint64_t scan_ns; // when the next one is due, clock_monotonic_ns
    bool scan_again;  // something went away
    bool said_empty, said_denied, said_full;
    struct metric *card_gauge, *device_gauge;
};

// Finds cards and devices that came, and drops those that went. O(entries of two folders).
void sysfs_scan(struct sysfs_receiver *receiver);
void sysfs_drop_all(struct sysfs_receiver *receiver);

// Tells what is new in the fresh values, which become the kept ones.
void sysfs_tell_card(struct sysfs_receiver *receiver, struct sysfs_card *card);
void sysfs_tell_pci(struct sysfs_receiver *receiver, struct sysfs_pci *device, uint64_t now_ns);

// Reads the whole file anew from its beginning, and cuts the blanks around it. The size, 0 with
// errno when it could not be read or is longer than `size`.
size_t sysfs_read_file(int descriptor, char *text, size_t size);
