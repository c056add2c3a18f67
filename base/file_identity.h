// SPDX-License-Identifier: Apache-2.0
// Which file it is, whatever it is called.
#pragma once

#include "base/hash/hash.h"

#include <sys/stat.h>

// Zeroed: of no file.
struct file_identity {
    dev_t device;
    ino_t inode;
};

static inline struct file_identity file_identity_of(const struct stat *about) {
    return (struct file_identity){about->st_dev, about->st_ino};
}

static inline bool file_identity_equal(struct file_identity a, struct file_identity b) {
    return a.device == b.device && a.inode == b.inode;
}

static inline uint64_t file_identity_hash(struct file_identity identity) {
    return hash_more(HASH_START, &identity.inode, sizeof identity.inode);
}
