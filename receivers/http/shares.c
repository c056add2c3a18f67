// SPDX-License-Identifier: Apache-2.0
#include "receivers/http/shares.h"

#include "base/hash/hash.h"
#include "base/hash/seeded_hash.h"
#include "base/memory.h"

#include <assert.h>
#include <string.h>

enum { FIRST_DEBTS = 64, LOOK_MAX = 4096 };

void http_shares_init(struct http_shares *shares) {
    *shares = (struct http_shares){.seed = hash_seed()};
}

void http_shares_release(struct http_shares *shares) {
    memory_give(shares->debts);
    shares->debts = NULL;
    shares->capacity = shares->first = shares->count = 0;
}

static struct slice behind(struct slice text, size_t size) {
    return (struct slice){text.data + size, text.size - size};
}

static struct slice skip(struct slice text, const char *letters) {
    while (text.size > 0 && strchr(letters, text.data[0]) != NULL)
        text = behind(text, 1);
    return text;
}

// The text as it stands there: this only tells one job from another, the decoder says which it is.
static struct slice job_of(struct slice record) {
    static const char key[] = "\"job_id\"";
    struct slice text = record;
    if (text.size > LOOK_MAX)
        text.size = LOOK_MAX;
    const char *at = memmem(text.data, text.size, key, sizeof key - 1);
    if (at == NULL)
        return SLICE("");
    text = skip(behind(text, (size_t)(at - text.data) + sizeof key - 1), " \t:");
    if (text.size == 0 || text.data[0] != '"')
        return SLICE("");
    text = behind(text, 1);
    const char *end = memchr(text.data, '"', text.size);
    if (end != NULL)
        text.size = (size_t)(end - text.data);
    return text;
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
    return shares->waiting[share] == 0 || shares->waiting[share] < room;
}

static void grow(struct http_shares *shares) {
    uint32_t capacity = shares->capacity == 0 ? FIRST_DEBTS : shares->capacity * 2;
    struct http_debt *debts = memory_take(capacity * sizeof *debts);
    for (uint32_t i = 0; i < shares->count; i++)
        debts[i] = shares->debts[(shares->first + i) & (shares->capacity - 1)];
    memory_give(shares->debts);
    shares->debts = debts;
    shares->capacity = capacity;
    shares->first = 0;
}

void http_share_add(struct http_shares *shares, uint32_t share, uint64_t bytes, uint64_t ticket) {
    if (shares->count == shares->capacity)
        grow(shares);
    uint32_t place = (shares->first + shares->count++) & (shares->capacity - 1);
    shares->debts[place] = (struct http_debt){ticket, bytes, share};
    shares->waiting[share] += bytes;
}
