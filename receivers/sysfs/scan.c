// SPDX-License-Identifier: Apache-2.0
// Which cards and PCI devices there are: at the start, at an interval, and as soon as one is gone.
// Those that are there already are known by name and inode, so that a driver that was loaded anew
// brings new ones. Entries are looked at in the order of their names.
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics/metrics.h"
#include "receivers/sysfs/receiver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct log_site site(const struct sysfs_receiver *receiver, const char *code) {
    return (struct log_site){code, receiver->context->site};
}

static int is_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.' && strlen(entry->d_name) <= SYSFS_NAME_MAX;
}

static int compare_names(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void say_denied(struct sysfs_receiver *receiver, const char *why) {
    if (!receiver->said_denied)
        log_write(LOG_WARN, site(receiver, "C9504"), "not all files can be read: %s", why);
    receiver->said_denied = true;
}

static int open_folder(struct sysfs_receiver *receiver, const char *below) {
    char path[PATH_MAX];
    int size = snprintf(path, sizeof path, "%s/%s", receiver->config->root, below);
    if (size < 0 || (size_t)size >= sizeof path) {
        say_denied(receiver, "the path of root is too long");
        return -1;
    }
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 && errno != ENOENT) {
        char text[96];
        snprintf(text, sizeof text, "%s: %s", below, strerror(errno));
        say_denied(receiver, text);
    }
    return folder;
}

static uint64_t inode_of(int folder, const char *name) {
    struct stat status;
    return fstatat(folder, name, &status, 0) == 0 ? status.st_ino : 0;
}

static void say_full(struct sysfs_receiver *receiver, const char *what, int max) {
    if (!receiver->said_full)
        log_write(LOG_WARN, site(receiver, "C9505"),
                  "there are more than %d %s: the others are "
                  "not read",
                  max, what);
    receiver->said_full = true;
}

// -- cards ----------------------------------------------------------------------------------------

static struct sysfs_card *find_card(const struct sysfs_receiver *receiver, const char *name) {
    for (uint32_t i = 0; i < receiver->card_count; i++)
        if (strcmp(receiver->cards[i]->name, name) == 0)
            return receiver->cards[i];
    return NULL;
}

static void look_at_card(struct sysfs_receiver *receiver, int folder, const char *name) {
    struct sysfs_card *card = find_card(receiver, name);
    if (card != NULL && card->inode == inode_of(folder, name)) {
        card->seen = true;
        return;
    }
    if (card != NULL)
        return; // another one of this name: the old one goes first
    if (receiver->card_count == SYSFS_CARDS_MAX) {
        say_full(receiver, "cards", SYSFS_CARDS_MAX);
        return;
    }
    struct error error = {.status = STATUS_OK};
    card = sysfs_card_open(folder, name, receiver->config->skip, &error);
    if (error.status != STATUS_OK)
        say_denied(receiver, error.message);
    if (card == NULL)
        return;
    card->seen = true;
    polled_begin(&card->polled, receiver->context->id, card->name, site(receiver, "C9502"),
                 site(receiver, "C9503"));
    receiver->cards[receiver->card_count++] = card;
}

static void drop_unseen_cards(struct sysfs_receiver *receiver) {
    uint32_t kept = 0;
    uint64_t until_ns = sysfs_parting();
    for (uint32_t i = 0; i < receiver->card_count; i++) {
        if (receiver->cards[i]->seen)
            receiver->cards[kept++] = receiver->cards[i];
        else {
            polled_absent(&receiver->cards[i]->polled);
            sysfs_card_close(receiver->cards[i], until_ns);
        }
    }
    receiver->card_count = kept;
}

// Those that are there still are marked; with `open` new ones are taken up.
static void walk_cards(struct sysfs_receiver *receiver, bool open) {
    struct dirent **entries;
    int folder = open_folder(receiver, "class/infiniband");
    int count = folder < 0 ? -1 : scandirat(folder, ".", &entries, is_visible, compare_names);
    for (int i = 0; i < count; i++) {
        struct sysfs_card *card = find_card(receiver, entries[i]->d_name);
        if (open)
            look_at_card(receiver, folder, entries[i]->d_name);
        else if (card != NULL && card->inode == inode_of(folder, card->name))
            card->seen = true;
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    if (folder >= 0)
        close(folder);
}

static void scan_cards(struct sysfs_receiver *receiver) {
    for (uint32_t i = 0; i < receiver->card_count; i++)
        receiver->cards[i]->seen = false;
    walk_cards(receiver, false);
    for (uint32_t i = 0; i < receiver->card_count; i++)
        receiver->cards[i]->seen = receiver->cards[i]->seen && !receiver->cards[i]->lost;
    drop_unseen_cards(receiver);
    walk_cards(receiver, true);
}

// -- PCI devices ----------------------------------------------------------------------------------

// Both lists are in the order of names.
static struct sysfs_pci *find_device(const struct sysfs_receiver *receiver, const char *address) {
    for (uint32_t low = 0, high = receiver->device_count; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(receiver->devices[middle]->address, address);
        if (order == 0)
            return receiver->devices[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static struct sysfs_pci *take_device(struct sysfs_receiver *receiver, int folder,
                                     const char *address) {
    struct sysfs_pci *known = find_device(receiver, address);
    if (known != NULL && !known->gone && known->inode == inode_of(folder, address)) {
        known->seen = true;
        return known;
    }
    int failure = 0;
    struct sysfs_pci *device = sysfs_pci_open(folder, address, &failure);
    if (failure != 0) {
        char text[SYSFS_NAME_MAX + 320];
        snprintf(text, sizeof text, "counters of %s: %s", address, strerror(failure));
        say_denied(receiver, text);
    }
    return device;
}

static void scan_devices(struct sysfs_receiver *receiver) {
    struct dirent **entries;
    struct sysfs_pci *found[SYSFS_PCI_MAX];
    uint32_t found_count = 0;
    int folder = open_folder(receiver, "bus/pci/devices");
    int count = folder < 0 ? -1 : scandirat(folder, ".", &entries, is_visible, compare_names);
    for (uint32_t i = 0; i < receiver->device_count; i++)
        receiver->devices[i]->seen = false;
    for (int i = 0; i < count; i++) {
        struct sysfs_pci *device = NULL;
        if (found_count < SYSFS_PCI_MAX)
            device = take_device(receiver, folder, entries[i]->d_name);
        else
            say_full(receiver, "PCI devices", SYSFS_PCI_MAX);
        if (device != NULL)
            found[found_count++] = device;
        free(entries[i]);
    }
    for (uint32_t i = 0; i < receiver->device_count; i++)
        if (!receiver->devices[i]->seen)
            sysfs_pci_close(receiver->devices[i]);
    memcpy(receiver->devices, found, found_count * sizeof *found);
    receiver->device_count = found_count;
    if (count >= 0)
        free(entries);
    if (folder >= 0)
        close(folder);
}

void sysfs_scan(struct sysfs_receiver *receiver) {
    uint32_t cards = receiver->card_count, devices = receiver->device_count;
    scan_cards(receiver);
    scan_devices(receiver);
    receiver->scan_again = false;
    metric_set(receiver->card_gauge, receiver->card_count);
    metric_set(receiver->device_gauge, receiver->device_count);
    bool empty = receiver->card_count + receiver->device_count == 0;
    if (empty && !receiver->said_empty)
        log_write(LOG_WARN, site(receiver, "C9501"),
                  "no card and no PCI device that counts errors below %s", receiver->config->root);
    else if (!empty && (cards != receiver->card_count || devices != receiver->device_count))
        log_write(LOG_INFO, site(receiver, "C9506"), "reads %u cards and %u PCI devices",
                  receiver->card_count, receiver->device_count);
    receiver->said_empty = empty;
}

void sysfs_drop_all(struct sysfs_receiver *receiver) {
    uint64_t until_ns = sysfs_parting();
    for (uint32_t i = 0; i < receiver->card_count; i++)
        sysfs_card_close(receiver->cards[i], until_ns);
    for (uint32_t i = 0; i < receiver->device_count; i++)
        sysfs_pci_close(receiver->devices[i]);
    receiver->card_count = receiver->device_count = 0;
}
