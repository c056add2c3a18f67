// SPDX-License-Identifier: Apache-2.0
// Keeps one job from having more waiting for the disk than it leaves for others.
//
// What waits is counted by job. A job may have as much as there is room left: alone half of it all,
// two that flood a third each. So there is always room for a job that sends less, however many
// clients another one has. A request counts for the job that its first record names.
//
// Jobs are told apart by a hash with a random seed into 1,024 counts. Memory: 8 KiB, and 24 bytes a
// request that is not yet on disk. One thread at a time.
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { HTTP_SHARES = 1024 };

struct http_debt {
    uint64_t ticket; // of the store; rising
    uint64_t bytes;
    uint32_t share;
};

struct http_shares {
    uint64_t seed;
    uint64_t waiting[HTTP_SHARES]; // bytes
    struct http_debt *debts;       // [capacity], a power of two; the oldest at `first`
    uint32_t capacity, first, count;
};

void http_shares_init(struct http_shares *shares);
void http_shares_release(struct http_shares *shares);
// Which share a record's job has: the text behind its first "job_id", or none.
uint32_t http_share_of(const struct http_shares *shares, struct slice record);
// What has become durable no longer waits.
void http_shares_settle(struct http_shares *shares, uint64_t durable);
// Whether the share's owner may have more waiting while there is room for `room` bytes.
bool http_share_is_open(const struct http_shares *shares, uint32_t share, uint64_t room);
// `bytes` wait until `ticket` is durable; tickets come in rising order.
void http_share_add(struct http_shares *shares, uint32_t share, uint64_t bytes, uint64_t ticket);
