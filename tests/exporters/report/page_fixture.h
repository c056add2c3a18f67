// SPDX-License-Identifier: Apache-2.0
// A page made from an evaluation made by hand, and a strict reading of its markup.
#pragma once

#include "exporters/report/page/page.h"
#include "tests/exporters/sample_evaluation.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB   (INT64_C(1) << 20)
#define START UINT64_C(1795248412232761088)
#define MS    UINT64_C(1000000)

static struct sample_evaluation sample;
static struct page_input input;
static struct batch batch;
static struct buffer page_out;

static inline void page_setup(void) {
    buffer_init(&page_out, 64 << 20);
    sample_init(&sample, SLICE("llama"));
    input = (struct page_input){.batch = &batch, .max_points = 600, .max_ranks = 64};
}

static inline void page_teardown(void) {
    buffer_release(&page_out);
    sample_release(&sample);
    intern_release();
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// The page, with a terminating zero.
static inline const char *page_made(void) {
    buffer_reset(&page_out);
    batch = sample_batch(&sample);
    page_encode(&input, &page_out);
    buffer_append_char(&page_out, '\0');
    ck_assert(!page_out.failed);
    return page_out.data;
}

// `count` ranks of `steps` samples, one every 100 ms. Rank `leaking` grows by 12 MiB a sample from
// step 10 on, rank `following` by 8 MiB from step 20 on; -1: none.
static inline void ranks_make(int count, int steps, int leaking, int following, struct slice host) {
    for (int rank = 0; rank < count; rank++) {
        uint32_t index = sample_rank(&sample, rank, host, 4200 + rank);
        for (int step = 0; step < steps; step++) {
            int64_t used = 740 * MIB + rank % 7 * MIB;
            if (rank == leaking && step > 10)
                used += (step - 10) * 12 * MIB;
            if (rank == following && step > 20)
                used += (step - 20) * 8 * MIB;
            sample_add(&sample, index, START + (uint64_t)step * 100 * MS, used);
        }
    }
}

static inline struct suspect *suspect_make(int rank, int from, int to, int64_t slope) {
    return sample_suspect(&sample, (uint32_t)rank,
                          (struct spike){
                              .time_ns = START + (uint64_t)to * 100 * MS,
                              .window_ns = START + (uint64_t)from * 100 * MS,
                              .base_bytes = 740 * MIB,
                              .growth_bytes = (to - from) * slope,
                              .samples = (uint64_t)(to - from),
                          });
}

static inline void leak_make(int count, int steps, struct slice host) {
    ranks_make(count, steps, 2, 1, host);
    suspect_make(2, 10, 17, 12 * MIB)->confidence = CONFIDENCE_HIGH;
    suspect_make(1, 20, 28, 8 * MIB);
    sample_cause(&sample, CAUSE_LEAK, 552 * MIB, 112 * MIB, 4.93, true);
}

static inline struct verdict verdict_make(const char *headline, enum severity severity) {
    struct verdict verdict = {
        .pattern = "memory_first_cause",
        .kind = "leak",
        .job = sample.evaluation.job,
        .severity = severity,
        .confidence = 85,
        .headline = slice_of(headline),
        .remediation = SLICE("Find out what rank 2 keeps alive."),
        .action = "inspect_rank",
        .start_ns = START,
        .end_ns = START + 1000 * MS,
    };
    struct slice key = slice_of(headline);
    verdict_set_id(&verdict, verdict.pattern, &key, 1);
    return verdict;
}

// What a text of events may try.
#define EVIL                                                                                       \
    "</title></script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&lt;"               \
    "\x1b[2J\x1e\xff\xfe\xe2\x80\xae]]><!--"

static inline uint32_t count_of(const char *text, const char *word) {
    uint32_t count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word))
        count++;
    return count;
}

#define CONTAINS(page, word) ck_assert_msg(strstr(page, word) != NULL, "there is no %s", word)
#define LACKS(page, word)    ck_assert_msg(strstr(page, word) == NULL, "there is %s", word)

// -- markup ---------------------------------------------------------------------------------------

enum { OPEN_MAX = 64, NAME_MAX_SIZE = 16 };

struct markup {
    char open[OPEN_MAX][NAME_MAX_SIZE];
    int depth;
};

static bool name_is_one_of(const char *name, const char *names) {
    char wanted[NAME_MAX_SIZE + 2];
    snprintf(wanted, sizeof wanted, " %s ", name);
    return strstr(names, wanted) != NULL;
}

static void close_optional(struct markup *markup, const char *names) {
    while (markup->depth > 0 && name_is_one_of(markup->open[markup->depth - 1], names))
        markup->depth--;
}

static void tag_open(struct markup *markup, const char *name, bool closed) {
    static const char known[] =
        " html head meta style link title body a header p h1 h2 h3 h4 svg defs g path nav ul li "
        "main section article span dl div dt dd details summary ol time code table tbody tr th td "
        "caption thead figure figcaption strong desc text circle line rect use br footer script ";
    ck_assert_msg(name_is_one_of(name, known), "the page has a <%s>", name);
    if (name_is_one_of(name, " td th "))
        close_optional(markup, " td th ");
    if (name_is_one_of(name, " tr "))
        close_optional(markup, " td th tr ");
    if (closed || name_is_one_of(name, " meta link br "))
        return;
    ck_assert_int_lt(markup->depth, OPEN_MAX);
    strcpy(markup->open[markup->depth++], name);
}

static void tag_close(struct markup *markup, const char *name) {
    if (name_is_one_of(name, " tr "))
        close_optional(markup, " td th ");
    if (name_is_one_of(name, " tbody thead table "))
        close_optional(markup, " td th tr ");
    ck_assert_int_gt(markup->depth, 0);
    ck_assert_str_eq(markup->open[markup->depth - 1], name);
    markup->depth--;
}

// Attributes: names of ours, values without a bare < or quote. Returns what follows the tag.
static const char *attributes_read(const char *at, bool *closed) {
    *closed = false;
    while (*at != '>') {
        ck_assert(*at != '\0' && *at != '<');
        if (*at == '/' && at[1] == '>')
            *closed = true;
        size_t size = strcspn(at, " =>/\n");
        ck_assert_msg(size < 2 || strncmp(at, "on", 2) != 0, "an attribute %.20s", at);
        ck_assert(strncmp(at, "style=", 6) != 0 && strncmp(at, "src", 3) != 0);
        at += size;
        if (*at == '=' && at[1] == '"') {
            size_t value = strcspn(at + 2, "\"<");
            ck_assert(at[2 + value] == '"');
            at += value + 3;
        } else if (*at != '>') {
            at++;
        }
    }
    return at + 1;
}

static const char *raw_skip(const char *at, const char *name) {
    char end[NAME_MAX_SIZE + 4];
    snprintf(end, sizeof end, "</%s>", name);
    at = strstr(at, end);
    ck_assert_ptr_nonnull(at);
    return at;
}

static void reference_check(const char *at) {
    static const char *const known[] = {"&amp;", "&lt;",   "&gt;",   "&quot;",
                                        "&#39;", "&#160;", "&#8217;"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(at, known[i], strlen(known[i])) == 0)
            return;
    ck_abort_msg("a bare & before %.20s", at);
}

// Every tag is one of ours, closed where it must be; nothing acts; no control characters.
static inline void markup_check(const char *page) {
    struct markup markup = {0};
    ck_assert(strncmp(page, "<!doctype html>\n<html lang=\"en\">\n<head>\n", 40) == 0);
    for (const char *at = page + 16; *at != '\0';) {
        ck_assert_msg((unsigned char)*at >= 0x20 || *at == '\n', "a byte %02x", *at);
        if (*at == '&')
            reference_check(at);
        if (*at != '<') {
            at++;
            continue;
        }
        bool closing = at[1] == '/';
        char name[NAME_MAX_SIZE] = {0};
        size_t size = strcspn(at + 1 + closing, " >/\n");
        ck_assert_uint_lt(size, sizeof name);
        memcpy(name, at + 1 + closing, size);
        at += 1 + closing + size;
        if (closing) {
            tag_close(&markup, name);
            ck_assert(*at == '>');
            at++;
            continue;
        }
        bool closed;
        at = attributes_read(at, &closed);
        tag_open(&markup, name, closed);
        if (strcmp(name, "script") == 0 || strcmp(name, "style") == 0)
            at = raw_skip(at, name);
    }
    ck_assert_int_eq(markup.depth, 0);
}
