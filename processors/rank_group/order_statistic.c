// SPDX-License-Identifier: Apache-2.0
// Selects by place in a large, changing multiset.
//
// New values wait in a small array, so that the buckets of sixteen are searched for beside one
// another: a search is a chain of loads that wait for each other. In a bucket values stand from the
// front, those that were erased from the back; they cancel when there are many, or when the bucket
// is asked. What is sorted stays so: only what came behind it is sorted anew.
//
// When rows of all ranks expire in one evaluation, a third of all values may be erased at once.
// Taking them out of their buckets costs some 60 ns each, looking past them in a query less than
// one: so they wait, and queries take them out little by little.
#include "processors/rank_group/order_statistic.h"

#include "base/memory.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

enum {
    GROUP = 16,                        // searched for beside one another
    FEW = 24,                          // are put in order one by one
    SMALL = ORDER_BUCKET_MAX / 4,      // two buckets with so many together are joined
    SPARE_ROOM = 2 * ORDER_BUCKET_MAX, // at least; and as much as a third of what is in use
    // Of the erased values that wait a query takes out so many, and one in SHARE.
    TAKEN_LEAST = 64,
    SHARE = 32,
};

struct order_bucket {
    struct order_bucket *next; // of the spares
    uint32_t size_class;
    uint32_t room;
    uint32_t count;  // values, from the front
    uint32_t sorted; // so many of them ascend
    uint32_t erased; // values, from the back
    uint64_t values[];
};

// -- buckets ------------------------------------------------------------------------------------

static struct order_bucket *bucket_take(struct order_statistic *set, size_t count) {
    uint32_t size_class = 0;
    while ((size_t)ORDER_BUCKET_LEAST << size_class < count)
        size_class++;
    assert(size_class < ORDER_CLASSES);
    uint32_t room = (uint32_t)ORDER_BUCKET_LEAST << size_class;
    struct order_bucket *bucket = set->spares[size_class];
    if (bucket == NULL) {
        bucket = memory_take(sizeof *bucket + room * sizeof(uint64_t));
    } else {
        set->spares[size_class] = bucket->next;
        set->spare_room -= room;
    }
    set->room += room;
    bucket->size_class = size_class;
    bucket->room = room;
    bucket->count = bucket->sorted = bucket->erased = 0;
    return bucket;
}

static void bucket_give(struct order_statistic *set, struct order_bucket *bucket) {
    if (bucket == NULL)
        return;
    assert(set->room >= bucket->room);
    set->room -= bucket->room;
    if (set->spare_room + bucket->room > SPARE_ROOM + set->room / 3) {
        memory_give(bucket);
        return;
    }
    bucket->next = set->spares[bucket->size_class];
    set->spares[bucket->size_class] = bucket;
    set->spare_room += bucket->room;
}

void order_release(struct order_statistic *set) {
    for (uint32_t i = 0; i < set->bucket_count; i++)
        memory_give(set->buckets[i]);
    for (uint32_t i = 0; i < ORDER_CLASSES; i++) {
        for (struct order_bucket *spare = set->spares[i], *next; spare != NULL; spare = next) {
            next = spare->next;
            memory_give(spare);
        }
    }
    memory_give(set->firsts);
    memory_give(set->counts);
    memory_give(set->buckets);
    memory_give(set->erased.values);
    memset(set, 0, sizeof *set);
}

// Takes one value only: it is counted, not kept.
static bool is_single(const struct order_statistic *set, uint32_t at) {
    return at + 1 < set->bucket_count ? set->firsts[at] + 1 == set->firsts[at + 1]
                                      : set->firsts[at] == UINT64_MAX;
}

// -- order within a bucket ------------------------------------------------------------------------

// One step of the radix sort: by the byte at `shift`, keeping the order of equal ones.
static void byte_sort(const uint64_t *from, uint64_t *to, size_t count, unsigned shift) {
    uint16_t places[256] = {0};
    for (size_t i = 0; i < count; i++)
        places[from[i] >> shift & 255]++;
    uint16_t next = 0;
    for (size_t i = 0; i < 256; i++) {
        uint16_t here = places[i];
        places[i] = next;
        next = (uint16_t)(next + here);
    }
    for (size_t i = 0; i < count; i++)
        to[places[from[i] >> shift & 255]++] = from[i];
}

static void insertion_sort(uint64_t *values, size_t count) {
    for (size_t i = 1; i < count; i++) {
        uint64_t value = values[i];
        size_t at = i;
        for (; at > 0 && values[at - 1] > value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
}

// Radix sort over the bytes in which the values differ: those of one bucket differ in few.
static void sort_values(uint64_t *values, size_t count) {
    assert(count <= ORDER_BUCKET_MAX);
    if (count <= FEW) {
        insertion_sort(values, count);
        return;
    }
    uint64_t differing = 0;
    for (size_t i = 1; i < count; i++)
        differing |= values[i] ^ values[0];
    uint64_t other[ORDER_BUCKET_MAX];
    uint64_t *from = values, *to = other;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if ((differing >> shift & 255) == 0)
            continue;
        byte_sort(from, to, count, shift);
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != values)
        memcpy(values, from, count * sizeof *values);
}

static void sort_bucket(struct order_bucket *bucket) {
    size_t sorted = bucket->sorted, rest = bucket->count - sorted;
    if (rest == 0)
        return;
    uint64_t *values = bucket->values, behind[ORDER_BUCKET_MAX];
    sort_values(values + sorted, rest);
    memcpy(behind, values + sorted, rest * sizeof *values);
    // From the back: writing never overtakes reading.
    for (size_t out = bucket->count; rest > 0 && sorted > 0;) {
        bool ours = values[sorted - 1] > behind[rest - 1];
        values[--out] = ours ? values[sorted - 1] : behind[rest - 1];
        sorted -= ours;
        rest -= !ours;
    }
    memcpy(values, behind, rest * sizeof *values);
    bucket->sorted = bucket->count;
}

// Takes the erased values out; what is left is sorted.
static void settle_bucket(struct order_bucket *bucket) {
    sort_bucket(bucket);
    if (bucket->erased == 0)
        return;
    uint64_t *values = bucket->values, *erased = values + bucket->room - bucket->erased;
    sort_values(erased, bucket->erased);
    uint32_t kept = 0, next = 0;
    for (uint32_t i = 0; i < bucket->count; i++) {
        if (next < bucket->erased && erased[next] == values[i])
            next++;
        else
            values[kept++] = values[i];
    }
    assert(next == bucket->erased && "a value was erased that is not in the set");
    bucket->count = bucket->sorted = kept;
    bucket->erased = 0;
}

// -- the row of buckets --------------------------------------------------------------------------

static void open_places(struct order_statistic *set, uint32_t at, uint32_t count) {
    uint32_t needed = set->bucket_count + count, behind = set->bucket_count - at;
    if (needed > set->bucket_capacity) {
        set->bucket_capacity = set->bucket_capacity == 0 ? 4 : set->bucket_capacity * 2;
        assert(set->bucket_capacity >= needed);
        set->firsts = memory_resize(set->firsts, set->bucket_capacity * sizeof *set->firsts);
        set->counts = memory_resize(set->counts, set->bucket_capacity * sizeof *set->counts);
        set->buckets = memory_resize(set->buckets, set->bucket_capacity * sizeof(void *));
    }
    memmove(set->firsts + at + count, set->firsts + at, behind * sizeof *set->firsts);
    memmove(set->counts + at + count, set->counts + at, behind * sizeof *set->counts);
    memmove(set->buckets + at + count, set->buckets + at, behind * sizeof(void *));
    set->bucket_count = needed;
}

static void close_place(struct order_statistic *set, uint32_t at) {
    uint32_t behind = --set->bucket_count - at;
    memmove(set->firsts + at, set->firsts + at + 1, behind * sizeof *set->firsts);
    memmove(set->counts + at, set->counts + at + 1, behind * sizeof *set->counts);
    memmove(set->buckets + at, set->buckets + at + 1, behind * sizeof(void *));
}

// Sorted values of the bucket's range become what it holds.
static void fill(struct order_statistic *set, uint32_t at, const uint64_t *values, size_t count) {
    set->counts[at] = count;
    set->buckets[at] = NULL;
    if (count == 0 || is_single(set, at))
        return;
    size_t room = count + count / 4;
    struct order_bucket *bucket =
        bucket_take(set, room < ORDER_BUCKET_MAX ? room : ORDER_BUCKET_MAX);
    memcpy(bucket->values, values, count * sizeof *values);
    bucket->count = bucket->sorted = (uint32_t)count;
    set->buckets[at] = bucket;
}

// Appends what the bucket holds to `out`, sorted.
static size_t collect(const struct order_statistic *set, uint32_t at, uint64_t *out) {
    struct order_bucket *bucket = set->buckets[at];
    size_t count = set->counts[at];
    if (bucket == NULL) {
        for (size_t i = 0; i < count; i++)
            out[i] = set->firsts[at];
        return count;
    }
    settle_bucket(bucket);
    assert(bucket->count == count);
    memcpy(out, bucket->values, count * sizeof *out);
    return count;
}

// Cuts a full bucket in two at its median; where half of it is one value, that one gets a bucket of
// its own.
static void split(struct order_statistic *set, uint32_t at) {
    uint64_t values[ORDER_BUCKET_MAX];
    size_t count = collect(set, at, values);
    uint64_t median = values[count / 2];
    size_t begin = count / 2, end = count / 2;
    while (begin > 0 && values[begin - 1] == median)
        begin--;
    while (end < count && values[end] == median)
        end++;
    struct order_bucket *before = set->buckets[at];
    if (end - begin < count / 2) {
        assert(begin > 0);
        open_places(set, at + 1, 1);
        set->firsts[at + 1] = median;
        fill(set, at, values, begin);
        fill(set, at + 1, values + begin, count - begin);
        bucket_give(set, before);
        return;
    }
    bool lower = set->firsts[at] < median;
    bool upper =
        median < UINT64_MAX && (at + 1 == set->bucket_count || set->firsts[at + 1] > median + 1);
    assert((lower || begin == 0) && (upper || end == count) && (lower || upper));
    uint32_t middle = at + lower;
    open_places(set, at + 1, (uint32_t)lower + (uint32_t)upper);
    set->firsts[middle] = median;
    if (upper)
        set->firsts[middle + 1] = median + 1;
    if (lower)
        fill(set, at, values, begin);
    fill(set, middle, NULL, end - begin);
    if (upper)
        fill(set, middle + 1, values + end, count - end);
    bucket_give(set, before);
}

// Joins the bucket with the one before or behind it, where they are small.
static void join(struct order_statistic *set, uint32_t at) {
    if (at > 0 && set->counts[at - 1] + set->counts[at] <= SMALL)
        at--;
    else if (at + 1 == set->bucket_count || set->counts[at] + set->counts[at + 1] > SMALL)
        return;
    uint64_t values[SMALL];
    size_t count = collect(set, at, values);
    count += collect(set, at + 1, values + count);
    bucket_give(set, set->buckets[at]);
    bucket_give(set, set->buckets[at + 1]);
    close_place(set, at + 1);
    fill(set, at, values, count);
}

// -- adding and erasing ---------------------------------------------------------------------------

// Of each value, the bucket that takes it.
static void find(const struct order_statistic *set, const uint64_t *values, uint32_t count,
                 uint32_t *at) {
    assert(count <= GROUP && set->bucket_count > 0);
    for (uint32_t i = 0; i < count; i++)
        at[i] = 0;
    for (uint32_t left = set->bucket_count; left > 1;) {
        uint32_t half = left / 2;
        for (uint32_t i = 0; i < count; i++)
            at[i] += set->firsts[at[i] + half] <= values[i] ? half : 0;
        left -= half;
    }
}

// Room for one value more, added or erased; the row of buckets may change.
static void make_room(struct order_statistic *set, uint32_t at) {
    struct order_bucket *bucket = set->buckets[at];
    if (bucket == NULL) {
        set->buckets[at] = bucket_take(set, 1);
    } else if (bucket->erased >= bucket->room / 8) {
        settle_bucket(bucket);
    } else if (bucket->size_class + 1 < ORDER_CLASSES) {
        settle_bucket(bucket);
        struct order_bucket *larger = bucket_take(set, bucket->room + 1);
        memcpy(larger->values, bucket->values, bucket->count * sizeof *larger->values);
        larger->count = larger->sorted = bucket->count;
        set->buckets[at] = larger;
        bucket_give(set, bucket);
    } else {
        split(set, at);
    }
}

static bool has_no_room(const struct order_bucket *bucket) {
    return bucket == NULL || bucket->count + bucket->erased == bucket->room;
}

// Whether it found room.
static bool put_added(struct order_statistic *set, uint32_t at, uint64_t value) {
    struct order_bucket *bucket = set->buckets[at];
    if (has_no_room(bucket) && !is_single(set, at))
        return false;
    if (bucket != NULL) {
        bucket->sorted += bucket->sorted == bucket->count &&
                          (bucket->count == 0 || bucket->values[bucket->count - 1] <= value);
        bucket->values[bucket->count++] = value;
    }
    set->counts[at]++;
    return true;
}

static bool put_erased(struct order_statistic *set, uint32_t at, uint64_t value) {
    struct order_bucket *bucket = set->buckets[at];
    assert(set->counts[at] > 0 && "a value was erased that is not in the set");
    if (bucket != NULL && has_no_room(bucket))
        return false;
    set->counts[at]--;
    if (bucket != NULL)
        bucket->values[bucket->room - ++bucket->erased] = value;
    return true;
}

// Behind an erased value: whether the row of buckets changed.
static bool shrink(struct order_statistic *set, uint32_t at) {
    struct order_bucket *bucket = set->buckets[at];
    if (bucket != NULL && bucket->erased < bucket->room / 8 && set->counts[at] > 0)
        return false;
    if (bucket != NULL)
        settle_bucket(bucket);
    if (bucket != NULL && bucket->count < bucket->room / 4) {
        fill(set, at, bucket->values, bucket->count);
        bucket_give(set, bucket);
    }
    uint32_t before = set->bucket_count;
    join(set, at);
    return set->bucket_count != before;
}

static void flush_added(struct order_statistic *set) {
    struct order_pending *pending = &set->added;
    if (pending->count > 0 && set->bucket_count == 0) {
        open_places(set, 0, 1);
        set->firsts[0] = 0;
        fill(set, 0, NULL, 0);
    }
    for (uint32_t done = 0; done < pending->count;) {
        uint32_t at[GROUP], size = pending->count - done < GROUP ? pending->count - done : GROUP;
        find(set, pending->values + done, size, at);
        uint32_t i = 0;
        while (i < size && put_added(set, at[i], pending->values[done + i]))
            i++;
        if (i < size)
            make_room(set, at[i]);
        done += i;
    }
    pending->count = 0;
}

static void erased_resize(struct order_waiting *erased, size_t capacity) {
    assert(capacity >= erased->count);
    erased->values = memory_resize(erased->values, capacity * sizeof *erased->values);
    erased->capacity = capacity;
}

// Takes up to `most` of the erased values that wait out of their buckets, the newest first.
static void take_erased(struct order_statistic *set, size_t most) {
    struct order_waiting *erased = &set->erased;
    flush_added(set);
    size_t left = most < erased->count ? most : erased->count;
    while (left > 0) {
        uint32_t at[GROUP], size = left < GROUP ? (uint32_t)left : GROUP, i = size;
        const uint64_t *values = erased->values + erased->count - size;
        find(set, values, size, at);
        bool same = true;
        while (i > 0 && same && put_erased(set, at[i - 1], values[i - 1]))
            same = !shrink(set, at[--i]);
        if (i > 0 && same)
            make_room(set, at[i - 1]);
        erased->count -= size - i;
        left -= size - i;
    }
    if (erased->capacity > ORDER_BUCKET_MAX && erased->count < erased->capacity / 8)
        erased_resize(erased, erased->capacity / 2);
}

void order_add(struct order_statistic *set, uint64_t value) {
    if (set->added.count == ORDER_PENDING_MAX)
        flush_added(set);
    set->added.values[set->added.count++] = value;
    set->count++;
}

void order_erase(struct order_statistic *set, uint64_t value) {
    struct order_waiting *erased = &set->erased;
    assert(set->count > 0);
    if (erased->count >= ORDER_PENDING_MAX && erased->count >= set->count)
        take_erased(set, ORDER_PENDING_MAX);
    if (erased->count == erased->capacity)
        erased_resize(erased, erased->count == 0 ? ORDER_PENDING_MAX : 2 * erased->count);
    erased->values[erased->count++] = value;
    set->count--;
}

size_t order_count(const struct order_statistic *set) {
    return set->count;
}

// -- queries --------------------------------------------------------------------------------------

static bool is_last(const struct order_statistic *set, uint32_t at) {
    return at + 1 == set->bucket_count;
}

// Of the erased values that wait: how many are below the bucket's range, and in it.
static size_t count_erased(const struct order_statistic *set, uint32_t at, size_t *within) {
    const struct order_waiting *erased = &set->erased;
    uint64_t first = set->firsts[at], next = is_last(set, at) ? UINT64_MAX : set->firsts[at + 1];
    size_t below_first = 0, below_next = 0;
    for (size_t i = 0; i < erased->count; i++) {
        below_first += erased->values[i] < first;
        below_next += erased->values[i] < next;
    }
    if (is_last(set, at))
        below_next = erased->count;
    *within = below_next - below_first;
    return below_first;
}

static size_t count_before(const struct order_statistic *set, uint32_t at) {
    size_t count = 0;
    for (uint32_t i = 0; i < at; i++)
        count += set->counts[i];
    return count;
}

// The bucket with the value that has `*k` before it, which becomes how many of those are in the
// bucket; `*within`: how many of the erased values that wait are in it.
static uint32_t find_place(const struct order_statistic *set, size_t *k, size_t *within) {
    // As if what waits were spread like the rest: mostly so, and then this is the bucket.
    size_t waiting = set->erased.count, before = 0;
    size_t guess = *k + (size_t)((unsigned __int128)*k * waiting / set->count);
    uint32_t at = 0, low = 0, high = set->bucket_count;
    for (; guess >= before + set->counts[at]; at++)
        before += set->counts[at];
    for (bool near = true;; near = false) {
        size_t kept_before = before - count_erased(set, at, within);
        if (*k < kept_before) {
            high = at;
        } else if (*k - kept_before >= set->counts[at] - *within) {
            low = at + 1;
        } else {
            *k -= kept_before;
            return at;
        }
        assert(low < high && "counts of buckets and values do not agree");
        at = !near ? low + (high - low) / 2 : low > at ? low : high - 1;
        before = count_before(set, at);
    }
}

// The value with `k` before it in the bucket, past those that wait to be erased.
static uint64_t select_past(const struct order_statistic *set, uint32_t at, size_t k,
                            size_t within) {
    const struct order_waiting *erased = &set->erased;
    const struct order_bucket *bucket = set->buckets[at];
    uint64_t first = set->firsts[at], gone[ORDER_BUCKET_MAX];
    size_t count = 0, next = 0, i = 0;
    assert(within <= bucket->count && bucket->count <= ORDER_BUCKET_MAX);
    for (size_t j = 0; count < within; j++)
        if (erased->values[j] >= first &&
            (is_last(set, at) || erased->values[j] < set->firsts[at + 1]))
            gone[count++] = erased->values[j];
    sort_values(gone, count);
    for (;; i++) {
        assert(i < bucket->count && "a value was erased that is not in the set");
        if (next < count && gone[next] == bucket->values[i])
            next++;
        else if (k-- == 0)
            return bucket->values[i];
    }
}

uint64_t order_select(struct order_statistic *set, size_t k) {
    assert(k < set->count);
    take_erased(set, TAKEN_LEAST + set->erased.count / SHARE);
    size_t within;
    uint32_t at = find_place(set, &k, &within);
    struct order_bucket *bucket = set->buckets[at];
    if (bucket == NULL)
        return set->firsts[at];
    settle_bucket(bucket);
    return within == 0 ? bucket->values[k] : select_past(set, at, k, within);
}
