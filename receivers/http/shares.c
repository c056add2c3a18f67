// SPDX-License-Identifier: Apache-2.0
#include "receivers/http/shares.h"

#include "base/hash/hash.h"
#include "base/hash/seeded_hash.h"
#include "base/memory.h"
#include "base/text/cut.h"

#include <assert.h>
#include <string.h>

enum { LOOK_MAX = 4096 };

void http_shares_init(struct http_shares *shares) {
    *shares = (struct http_shares){.seed = hash_seed()};
}

void http_shares_release(struct http_shares *shares) {
    memory_give(shares->debts);
    shares->debts = NULL;
    shares->capacity = shares->first = shares->count = 0;
}

// The text as it stands there: this only tells one job from another, the decoder says which it is.
static struct slice job_of(struct slice record) {
    struct slice text = {record.data, record.size < LOOK_MAX ? record.size : LOOK_MAX};
    if (!text_find(text, SLICE("\"job_id\""), &text))
        return SLICE("");
    while (text.size > 0 && memchr(" \t:", text.data[0], 3) != NULL)
        text = text_from(text, 1);
    return text_skip_char(&text, '"') ? text_until(text, '"') : SLICE("");
}

uint32_t http_share_of(const struct http_shares *shares, struct slice record) {
    return hash_folded(hash_seeded(job_of(record), shares->seed)) % HTTP_SHARES;
}

void http_shares_settle(struct http_shares *shares, uint64_t durable) {
    while (shares->count > 0) {
        const struct http_debt *oldest = &shares->debts[shares->first];
        if (oldest->ticket > durable)
            return;
        assert(shares->waiting[oldest->share] >= oldest->bytes);
        shares->waiting[oldest->share] -= oldest->bytes;
        shares->first = (shares->first + 1) & (shares->capacity - 1);
        shares->count--;
    }
}

bool http_share_is_open(const struct http_shares *shares, uint32_t share, uint64_t room) {
    assert(share < HTTP_SHARES);
    return shares->waiting[share] == 0 || shares->waiting[share] < room;
}

void http_share_add(struct http_shares *shares, uint32_t share, uint64_t bytes, uint64_t ticket) {
    assert(share < HTTP_SHARES);
    shares->debts = memory_ring_room(shares->debts, &shares->capacity, shares->first, shares->count,
                                     sizeof *shares->debts);
    uint32_t place = (shares->first + shares->count++) & (shares->capacity - 1);
    shares->debts[place] = (struct http_debt){ticket, bytes, share};
    shares->waiting[share] += bytes;
}
