// SPDX-License-Identifier: Apache-2.0
// One card of /sys/class/infiniband: its files are opened once and read again and again by a thread
// of its own. The thread and the receiver take turns by `phase`, so values need no lock. O(files) a
// round, no allocation.
#include "base/clock.h"
#include "base/memory.h"
#include "base/text/cut.h"
#include "config/option.h"
#include "pipeline/component/feed.h"
#include "receivers/sysfs/receiver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t SLICE_NS = 100ull * 1000 * 1000;
static const uint64_t PARTING_NS = 500ull * 1000 * 1000;

size_t sysfs_read_file(int descriptor, char *text, size_t size) {
    assert(descriptor >= 0 && size > 1);
    ssize_t got;
    do
        got = pread(descriptor, text, size, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return 0;
    if ((size_t)got == size) {
        errno = EFBIG;
        return 0;
    }
    struct slice trimmed = text_trim((struct slice){text, (size_t)got});
    if (trimmed.size == 0) {
        errno = ENODATA;
        return 0;
    }
    memmove(text, trimmed.data, trimmed.size);
    return trimmed.size;
}

// -- the card's thread ----------------------------------------------------------------------------

static bool is_counter(enum value_kind kind) {
    return kind == VALUE_COUNTER || kind == VALUE_HW_COUNTER;
}

// "N/A (no PMA)" and the like are no numbers: such a counter is not there.
static bool is_number(const struct value_text *text) {
    for (uint8_t i = 0; i < text->size; i++)
        if (!text_is_digit(text->bytes[i]))
            return false;
    return text->size > 0;
}

static void read_value(struct sysfs_card *card, struct sysfs_value *value) {
    value->fresh.size =
        (uint8_t)sysfs_read_file(value->descriptor, value->fresh.bytes, sizeof value->fresh.bytes);
    if (value->fresh.size == 0) {
        card->gone = card->gone || errno == ENODEV || errno == ENXIO;
        card->failure = errno;
        return;
    }
    card->read_count++;
    if (is_counter(value->kind) && !is_number(&value->fresh))
        value->fresh.size = 0;
}

static void read_all(struct sysfs_card *card) {
    card->read_count = 0;
    card->failure = 0;
    card->gone = false;
    for (uint32_t i = 0; i < card->value_count && !card->gone; i++)
        read_value(card, &card->values[i]);
    card->read_ns = clock_unix_ns();
}

static void release(struct sysfs_card *card) {
    for (uint32_t i = 0; i < card->value_count; i++)
        close(card->values[i].descriptor);
    memory_give(card->values);
    pthread_cond_destroy(&card->changed);
    lock_destroy(&card->lock);
    memory_give(card);
}

static void *work(void *argument) {
    struct sysfs_card *card = argument;
    thread_name("sysfs", card->name);
    lock_take(&card->lock);
    while (!card->quit) {
        if (card->phase != CARD_ASKED) {
            cond_wait(&card->changed, &card->lock);
            continue;
        }
        card->phase = CARD_READING;
        lock_release(&card->lock);
        read_all(card);
        lock_take(&card->lock);
        card->phase = CARD_DONE;
        pthread_cond_broadcast(&card->changed);
    }
    bool abandoned = card->abandoned;
    lock_release(&card->lock);
    if (abandoned)
        release(card);
    return NULL;
}

void sysfs_card_ask(struct sysfs_card *card) {
    lock_take(&card->lock);
    if (card->phase != CARD_READING) {
        card->phase = CARD_ASKED;
        pthread_cond_broadcast(&card->changed);
    }
    lock_release(&card->lock);
}

bool sysfs_card_wait(struct sysfs_card *card, const struct feed *feed, uint64_t until_ns) {
    lock_take(&card->lock);
    assert(card->phase != CARD_IDLE);
    while (card->phase != CARD_DONE && !feed_stopping(feed)) {
        uint64_t now = clock_monotonic_ns();
        if (now >= until_ns)
            break;
        uint64_t wait_ns = until_ns - now < SLICE_NS ? until_ns - now : SLICE_NS;
        (void)cond_wait_until(&card->changed, &card->lock, now + wait_ns);
    }
    bool done = card->phase == CARD_DONE;
    lock_release(&card->lock);
    return done;
}

uint64_t sysfs_parting(void) {
    return clock_monotonic_ns() + PARTING_NS;
}

void sysfs_card_close(struct sysfs_card *card, uint64_t until_ns) {
    lock_take(&card->lock);
    card->quit = true;
    pthread_cond_broadcast(&card->changed);
    while (card->phase == CARD_READING && clock_monotonic_ns() < until_ns)
        (void)cond_wait_until(&card->changed, &card->lock, until_ns);
    card->abandoned = card->phase == CARD_READING;
    bool abandoned = card->abandoned;
    pthread_t thread = card->thread;
    lock_release(&card->lock); // an abandoned card is its thread's from here on
    if (abandoned) {
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    release(card);
}

// -- finding its files ----------------------------------------------------------------------------

static bool is_skipped(struct text_list skip, const char *name) {
    for (uint32_t i = 0; i < skip.count; i++)
        if (strcmp(skip.items[i], name) == 0)
            return true;
    return false;
}

static void add_file(struct sysfs_card *card, int folder, const char *name, enum value_kind kind,
                     struct error *error) {
    if (card->value_count == SYSFS_FILES_MAX || strlen(name) > SYSFS_NAME_MAX)
        return;
    int descriptor = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        if (errno != ENOENT)
            (void)error_set_os(error, STATUS_IO, errno, "%s of %s cannot be opened", name,
                               card->name);
        return;
    }
    struct sysfs_value *value = &card->values[card->value_count++];
    *value = (struct sysfs_value){.descriptor = descriptor, .kind = kind};
    memcpy(value->name, name, strlen(name) + 1);
}

static int compare_names(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static void add_folder(struct sysfs_card *card, int parent, const char *name, enum value_kind kind,
                       struct text_list skip, struct error *error) {
    struct dirent **entries;
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return;
    int count = scandirat(folder, ".", &entries, is_visible, compare_names);
    for (int i = 0; i < count; i++) {
        // How old the kernel lets its values be: a setting.
        if (strcmp(entries[i]->d_name, "lifespan") != 0 && !is_skipped(skip, entries[i]->d_name))
            add_file(card, folder, entries[i]->d_name, kind, error);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    close(folder);
}

static void add_port(struct sysfs_card *card, int folder, uint32_t number, struct text_list skip,
                     struct error *error) {
    if (card->port_count == SYSFS_PORTS_MAX)
        return;
    struct sysfs_port *port = &card->ports[card->port_count];
    *port = (struct sysfs_port){.number = number, .first = card->value_count};
    if (number > 0) {
        add_file(card, folder, "state", VALUE_STATE, error);
        add_file(card, folder, "phys_state", VALUE_PHYS_STATE, error);
        add_file(card, folder, "link_layer", VALUE_LINK_LAYER, error);
        add_file(card, folder, "rate", VALUE_RATE, error);
        add_folder(card, folder, "counters", VALUE_COUNTER, skip, error);
    }
    add_folder(card, folder, "hw_counters", VALUE_HW_COUNTER, skip, error);
    port->count = card->value_count - port->first;
    card->port_count += port->count > 0;
}

static void add_ports(struct sysfs_card *card, int folder, struct text_list skip,
                      struct error *error) {
    struct dirent **entries;
    int ports = openat(folder, "ports", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (ports < 0)
        return;
    int count = scandirat(ports, ".", &entries, is_visible, compare_names);
    for (int i = 0; i < count; i++) {
        uint64_t number;
        int port = openat(ports, entries[i]->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (port >= 0 && text_number(slice_of(entries[i]->d_name), 3, &number) && number > 0)
            add_port(card, port, (uint32_t)number, skip, error);
        if (port >= 0)
            close(port);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    close(ports);
}

// The link `device` ends in the card's address.
static void find_address(struct sysfs_card *card, int folder) {
    char path[PATH_MAX];
    ssize_t size = readlinkat(folder, "device", path, sizeof path - 1);
    if (size <= 0)
        return;
    path[size] = '\0';
    const char *last = strrchr(path, '/');
    last = last == NULL ? path : last + 1;
    if (strchr(last, ':') != NULL && strlen(last) <= SYSFS_NAME_MAX)
        memcpy(card->address, last, strlen(last) + 1);
}

struct sysfs_card *sysfs_card_open(int descriptor, const char *name, struct text_list skip,
                                   struct error *error) {
    struct stat status;
    assert(strlen(name) <= SYSFS_NAME_MAX);
    int folder = openat(descriptor, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || fstat(folder, &status) != 0) {
        (void)error_set_os(error, STATUS_IO, errno, "%s cannot be opened", name);
        if (folder >= 0)
            close(folder);
        return NULL;
    }
    struct sysfs_card *card = memory_zero(1, sizeof *card);
    memcpy(card->name, name, strlen(name) + 1);
    card->inode = status.st_ino;
    card->values = memory_zero(SYSFS_FILES_MAX, sizeof *card->values);
    lock_init(&card->lock);
    cond_init(&card->changed);
    find_address(card, folder);
    add_ports(card, folder, skip, error);
    add_port(card, folder, 0, skip, error);
    close(folder);
    if (card->value_count > 0) {
        card->values = memory_resize(card->values, card->value_count * sizeof *card->values);
        int failure = pthread_create(&card->thread, NULL, work, card);
        if (failure == 0)
            return card;
        (void)error_set_os(error, STATUS_OS, failure, "no thread for %s", name);
    }
    release(card);
    return NULL;
}
