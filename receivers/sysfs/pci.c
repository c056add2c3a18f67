// SPDX-License-Identifier: Apache-2.0
// The counters of PCI Express errors of one device. The kernel keeps them in its memory, so that
// reading them asks no device. Source: Linux, drivers/pci/pcie/aer.c and
// Documentation/ABI/testing/sysfs-bus-pci-devices-aer. O(files), no allocation but at the opening.
#include "base/memory.h"
#include "receivers/sysfs/receiver.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const SYSFS_AER_NAMES[SYSFS_AER_FILES] = {"aer_dev_correctable", "aer_dev_nonfatal",
                                                      "aer_dev_fatal"};

struct sysfs_pci *sysfs_pci_open(int descriptor, const char *address, int *failure) {
    struct stat status;
    int descriptors[SYSFS_AER_FILES], found = 0;
    assert(strlen(address) <= SYSFS_NAME_MAX);
    int folder = openat(descriptor, address, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return NULL;
    for (int i = 0; i < SYSFS_AER_FILES; i++) {
        descriptors[i] = openat(folder, SYSFS_AER_NAMES[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        found += descriptors[i] >= 0;
        if (descriptors[i] < 0 && errno != ENOENT)
            *failure = errno;
    }
    bool known = fstat(folder, &status) == 0;
    close(folder);
    if (!known || found == 0) {
        for (int i = 0; i < SYSFS_AER_FILES; i++)
            if (descriptors[i] >= 0)
                close(descriptors[i]);
        return NULL;
    }
    struct sysfs_pci *device = memory_zero(1, sizeof *device);
    memcpy(device->address, address, strlen(address) + 1);
    memcpy(device->descriptors, descriptors, sizeof descriptors);
    device->inode = status.st_ino;
    return device;
}

bool sysfs_pci_read(struct sysfs_pci *device) {
    bool any = false;
    for (int i = 0; i < SYSFS_AER_FILES; i++) {
        struct aer_text *text = &device->fresh[i];
        if (device->descriptors[i] < 0)
            continue;
        text->size =
            (uint16_t)sysfs_read_file(device->descriptors[i], text->bytes, sizeof text->bytes);
        device->gone = device->gone || (text->size == 0 && (errno == ENODEV || errno == ENXIO));
        any = any || text->size > 0;
    }
    return any;
}

void sysfs_pci_close(struct sysfs_pci *device) {
    for (int i = 0; i < SYSFS_AER_FILES; i++)
        if (device->descriptors[i] >= 0)
            close(device->descriptors[i]);
    memory_give(device);
}
