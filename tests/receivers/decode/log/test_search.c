// SPDX-License-Identifier: Apache-2.0
// A log that is searched gives the same events as one of which each line is read.
//
// Every recording of a log in this tree, and in the folders that CULPRIT_LOGS names (parted by
// colons), is put between lines of no interest and decoded both ways.
#include "receivers/decode/log/search.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text/cut.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/formats.h"
#include "receivers/decode/log/log.h"

#include <check.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { QUIET_FIRST = 300, QUIET = 60, FILE_MAX = 1 << 20 };

struct decoded {
    struct buffer events;
    uint64_t lines, offered, blank;
    void *state;
    const struct decoder_type *type;
};

static void put(struct decoded *decoded, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (size >= (int)sizeof text)
        size = sizeof text - 1;
    buffer_append(&decoded->events, (struct slice){text, (size_t)size});
}

static void settle(struct decoded *decoded, enum decode_category category,
                   const struct event *event) {
    if (category < DECODE_OK)
        return;
    put(decoded, "%" PRIu64 "+%u %d", event->position, event->lines, (int)category);
    if (category == DECODE_OK)
        put(decoded, " %d @%" PRIu64 "%s rank %d node %u", (int)event->kind, event->time_ns,
            event->timeless ? "?" : "", (int)event->rank, (unsigned)event->node);
    if (category == DECODE_OK && event->kind == EVENT_OBSERVATION)
        for (uint32_t i = 0; i < event->observation->fact_count; i++) {
            const struct fact *fact = &event->observation->facts[i];
            put(decoded, " %s=", fact_name(fact->key));
            if (fact_type(fact->key) == FACT_TEXT)
                put(decoded, "%.*s", (int)fact->text.size, fact->text.data);
            else if (fact_type(fact->key) == FACT_NUMBER)
                put(decoded, "%" PRId64, fact->number);
        }
    put(decoded, "\n");
}

static void take_more(struct decoded *decoded, struct arena *arena, uint64_t position) {
    for (;;) {
        struct event event = {.position = position, .lines = 1, .rank = RANK_NONE};
        struct decode_fault fault = {0};
        enum decode_category category = decoded->type->next(decoded->state, arena, &event, &fault);
        if (category == DECODE_END)
            return;
        settle(decoded, category, &event);
    }
}

// As receivers do: blank lines are not offered.
static void offer(struct decoded *decoded, struct slice line) {
    struct arena arena;
    struct decode_fault fault = {0};
    decoded->lines++;
    while (line.size > 0 && line.data[line.size - 1] == '\r')
        line.size--;
    decoded->blank += text_trim(line).size == 0;
    if (text_trim(line).size == 0)
        return;
    decoded->offered++;
    struct event event = {.position = decoded->lines, .lines = 1, .rank = RANK_NONE, .raw = line};
    arena_init(&arena, 4096);
    settle(decoded, decoded->type->decode(decoded->state, line, &arena, &event, &fault), &event);
    take_more(decoded, &arena, decoded->lines);
    arena_release(&arena);
}

static void begin(struct decoded *decoded, const struct decoder_type *type) {
    *decoded = (struct decoded){.type = type};
    buffer_init(&decoded->events, SIZE_MAX);
    decoded->state = memory_zero(1, type->state_size + 1);
    struct decoder_input input = {.path = SLICE("input"),
                                  .observed_ns = UINT64_C(1794992400000000000),
                                  .is_file = true,
                                  .ends = true};
    type->begin(decoded->state, &input);
}

static void end(struct decoded *decoded) {
    struct arena arena;
    arena_init(&arena, 4096);
    decoded->type->finish(decoded->state);
    take_more(decoded, &arena, decoded->lines);
    arena_release(&arena);
    decoded->type->release(decoded->state);
    memory_give(decoded->state);
}

static void read_all(struct decoded *decoded, struct slice text) {
    while (text.size > 0)
        offer(decoded, text_take_line(&text));
}

static uint64_t pass(struct decoded *decoded, const struct line_run *run, struct slice *text) {
    struct slice passed = {text->data, run->bytes};
    uint64_t lines = 0, blank = 0;
    ck_assert_uint_le(run->bytes, text->size);
    *text = text_from(*text, run->bytes);
    while (passed.size > 0) {
        ck_assert(memchr(passed.data, '\n', passed.size) != NULL);
        blank += text_trim(text_take_line(&passed)).size == 0;
        lines++;
    }
    ck_assert_uint_eq(run->lines, lines);
    ck_assert_uint_eq(run->blank, blank);
    decoded->lines += lines;
    decoded->blank += blank;
    return run->offered;
}

// What another thread finds in the text, of which it does not know where the first line begins.
struct ahead {
    struct search_ahead memory;
    struct found_lines found;
};

static void find_ahead(struct ahead *ahead, struct slice text) {
    text_take_line(&text);
    while (text.size > 0 && text.data[text.size - 1] != '\n')
        text.size--;
    ahead->memory.count = 0;
    bool known = text.size > 0 && search_ahead(&ahead->memory, forms_builtin(), text.data, text);
    ahead->found = (struct found_lines){.forms = forms_builtin(),
                                        .text = text,
                                        .lines = ahead->memory.lines,
                                        .count = known ? ahead->memory.count : 0};
}

// `window`: bytes that are seen at once. NULL: nothing is found ahead.
static void search_all(struct decoded *decoded, struct slice text, size_t window,
                       struct ahead *ahead) {
    if (ahead != NULL)
        find_ahead(ahead, text);
    while (text.size > 0) {
        struct line_run runs[LINE_RUNS];
        struct slice seen = {text.data, text.size < window ? text.size : window};
        if (ahead != NULL && window < SIZE_MAX)
            find_ahead(ahead, seen);
        decoded->type->pass_over(decoded->state, seen, ahead == NULL ? NULL : &ahead->found, runs);
        size_t before = text.size;
        for (int i = 0; i < LINE_RUNS; i++)
            for (uint64_t left = pass(decoded, &runs[i], &text); left > 0 && text.size > 0; left--)
                offer(decoded, text_take_line(&text));
        ck_assert_uint_lt(text.size, before);
    }
}

static void quiet(struct buffer *out, int lines) {
    for (int i = 0; i < lines; i++) {
        char text[64];
        snprintf(text, sizeof text, "quiet line %d of a job that goes well\n", i);
        buffer_append(out, slice_of(text));
    }
}

// -- recordings -----------------------------------------------------------------------------------

static uint64_t files, wrong;

static void tell_difference(const char *path, struct slice all, struct slice found) {
    while (all.size > 0 && found.size > 0) {
        struct slice left = text_take_line(&all), right = text_take_line(&found);
        if (slice_equal(left, right))
            continue;
        fprintf(stderr, "%s:\n  read     %.*s\n  searched %.*s\n", path, (int)left.size, left.data,
                (int)right.size, right.data);
        return;
    }
    struct slice more = all.size > 0 ? text_take_line(&all) : text_take_line(&found);
    fprintf(stderr, "%s: more is read: %.*s\n", path, (int)more.size, more.data);
}

static void compare(const char *path, struct slice text, const struct decoder_type *type) {
    static const size_t windows[] = {SIZE_MAX, 4096};
    struct buffer whole;
    buffer_init(&whole, SIZE_MAX);
    quiet(&whole, QUIET_FIRST);
    buffer_append(&whole, text);
    buffer_append(&whole, SLICE("\n\n"));
    quiet(&whole, QUIET);
    struct decoded all;
    begin(&all, type);
    read_all(&all, buffer_slice(&whole));
    end(&all);
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        struct decoded found, told;
        struct ahead ahead = {0};
        begin(&found, type);
        search_all(&found, buffer_slice(&whole), windows[i], NULL);
        end(&found);
        begin(&told, type);
        search_all(&told, buffer_slice(&whole), windows[i], &ahead);
        end(&told);
        ck_assert_uint_eq(told.lines, found.lines);
        ck_assert_uint_eq(told.blank, found.blank);
        ck_assert_uint_eq(told.offered, found.offered);
        ck_assert(slice_equal(buffer_slice(&told.events), buffer_slice(&found.events)));
        buffer_release(&told.events);
        memory_give(ahead.memory.lines);
        ck_assert_uint_eq(found.lines, all.lines);
        ck_assert_uint_eq(found.blank, all.blank);
        if (!slice_equal(buffer_slice(&found.events), buffer_slice(&all.events))) {
            tell_difference(path, buffer_slice(&all.events), buffer_slice(&found.events));
            wrong++;
        }
        buffer_release(&found.events);
    }
    buffer_release(&all.events);
    buffer_release(&whole);
}

static int visit(const char *path, const struct stat *about, int kind, struct FTW *walk) {
    (void)walk;
    if (kind != FTW_F || about->st_size == 0 || about->st_size > FILE_MAX)
        return 0;
    char *bytes = memory_take((size_t)about->st_size);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    size_t size = fread(bytes, 1, (size_t)about->st_size, file);
    fclose(file);
    struct slice text = {bytes, size};
    if (size > 0 && memchr(bytes, '\0', size) == NULL) {
        files++;
        compare(path, text, &decoder_any);
        compare(path, text, &decoder_kernel_log);
    }
    memory_give(bytes);
    return 0;
}

static void visit_folder(const char *folder) {
    enum { DESCRIPTORS = 16 };
    ck_assert_int_eq(nftw(folder, visit, DESCRIPTORS, FTW_PHYS), 0);
}

START_TEST(recordings) {
    static const char *const folders[] = {
        TESTS_DIR "/fuzz/seeds/kernel_messages",
        TESTS_DIR "/fuzz/seeds/kernel",
        TESTS_DIR "/fuzz/seeds/rank_log",
        TESTS_DIR "/fuzz/seeds/endings",
        TESTS_DIR "/fuzz/seeds/ras",
        TESTS_DIR "/golden/detectors",
        TESTS_DIR "/golden/field",
        TESTS_DIR "/golden/real_exits",
    };
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        visit_folder(folders[i]);
    const char *more = getenv("CULPRIT_LOGS");
    for (struct slice rest = slice_of(more == NULL ? "" : more); rest.size > 0;) {
        char folder[4096];
        struct slice next = text_until(rest, ':');
        rest = text_from(rest, next.size + (next.size < rest.size));
        snprintf(folder, sizeof folder, "%.*s", (int)next.size, next.data);
        visit_folder(folder);
    }
    ck_assert_uint_gt(files, 100);
    ck_assert_uint_eq(wrong, 0);
    intern_release();
}
END_TEST

// -- what is passed over --------------------------------------------------------------------------

START_TEST(quiet_lines_are_passed_over) {
    struct buffer whole;
    struct decoded found;
    buffer_init(&whole, SIZE_MAX);
    buffer_append(&whole, SLICE("2026-11-18 09:00:00 the job begins\n"));
    quiet(&whole, 20000);
    buffer_append(&whole, SLICE("2026-11-18 09:30:00 the last line with a time\n"));
    quiet(&whole, 20000);
    buffer_append(&whole, SLICE("ValueError: bad loss\n"));
    begin(&found, &decoder_log);
    search_all(&found, buffer_slice(&whole), SIZE_MAX, NULL);
    end(&found);
    ck_assert_uint_eq(found.lines, 40003);
    ck_assert_uint_lt(found.offered, 400);
    // It lies behind the last line that says a time, though that was far away.
    struct slice told = buffer_slice(&found.events), behind;
    ck_assert(text_find(told, SLICE("@1794994200000000000"), &behind));
    ck_assert(text_find(told, SLICE("message=bad loss"), &behind));
    buffer_release(&found.events);
    buffer_release(&whole);
    intern_release();
}
END_TEST

#define CARRIED                                                                                    \
    "{\"file\":\"/x/"                                                                              \
    "%d.log\",\"kubernetes\":{\"pod_name\":\"t-%d\"},\"message\":\"%s\",\"source_type\":"          \
    "\"kubernetes_logs\",\"timestamp\":\"2026-11-18T09:00:%02dZ\"}\n"

// Objects of a carrier are lines like others, once some were read. What is another object, though
// it begins alike, is looked at.
START_TEST(quiet_objects_are_passed_over) {
    struct buffer whole;
    buffer_init(&whole, SIZE_MAX);
    for (int i = 0; i < 20000; i++) {
        const char *says = i == 9000 ? "ValueError: bad loss" : "step of a job that goes well";
        char text[300];
        snprintf(text, sizeof text, CARRIED, i & 7, i & 7, says, i / 400);
        buffer_append(&whole, slice_of(text));
        if (i == 12000)
            buffer_append(&whole, SLICE("{\"file\":\"x\",\"timestamp_ns\":1794994200000000000,"
                                        "\"event_type\":\"sample\",\"rank\":3}\n"));
    }
    const struct decoder_type *types[] = {&decoder_log, &decoder_any};
    for (int i = 0; i < 4; i++) {
        struct decoded read, found;
        struct ahead ahead = {0};
        begin(&read, types[i & 1]);
        read_all(&read, buffer_slice(&whole));
        end(&read);
        begin(&found, types[i & 1]);
        search_all(&found, buffer_slice(&whole), 262144, i > 1 ? &ahead : NULL);
        end(&found);
        ck_assert_uint_eq(found.lines, 20001);
        ck_assert_uint_lt(found.offered, 1000);
        ck_assert(slice_equal(buffer_slice(&found.events), buffer_slice(&read.events)));
        buffer_release(&found.events);
        buffer_release(&read.events);
        memory_give(ahead.memory.lines);
    }
    buffer_release(&whole);
    intern_release();
}
END_TEST

// Where every line is of interest, none is judged before it is read, but for some.
START_TEST(busy_logs_are_read_as_they_are) {
    struct buffer whole;
    struct decoded found;
    buffer_init(&whole, SIZE_MAX);
    quiet(&whole, QUIET_FIRST);
    for (int i = 0; i < 4000; i++)
        buffer_append(&whole, SLICE("ValueError: bad loss\nquiet\n"));
    begin(&found, &decoder_log);
    search_all(&found, buffer_slice(&whole), SIZE_MAX, NULL);
    end(&found);
    ck_assert_uint_ge(found.offered, 8000);
    buffer_release(&found.events);
    buffer_release(&whole);
    intern_release();
}
END_TEST

// Lines of every look, with what makes one of interest near each end of what is seen.
START_TEST(what_was_found_ahead_changes_nothing) {
    static const char *const LINES[] = {"3: step 7 of the job\n",
                                        "\n",
                                        "  \t\n",
                                        "{\"a\": 1}\n",
                                        "{'loss': 3}\n",
                                        "\x1b[31mred\x1b[0m\n",
                                        "1: ValueError: bad loss\n",
                                        "rank 3 exitcode: 1 (pid: 7)\n",
                                        "JobID|State\n",
                                        "text\r\n"};
    struct buffer whole;
    buffer_init(&whole, SIZE_MAX);
    quiet(&whole, QUIET_FIRST);
    uint64_t random = 7;
    for (int i = 0; i < 6000; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        if (random >> 60 < 2)
            buffer_append(&whole, slice_of(LINES[(random >> 40) % (sizeof LINES / sizeof *LINES)]));
        else
            quiet(&whole, (int)(random >> 50 & 31));
    }
    buffer_append(&whole, SLICE("no end"));
    static const size_t windows[] = {SIZE_MAX, 4096, 50000, 262144};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        struct decoded found, told;
        struct ahead ahead = {0};
        begin(&found, &decoder_any);
        search_all(&found, buffer_slice(&whole), windows[i], NULL);
        end(&found);
        begin(&told, &decoder_any);
        search_all(&told, buffer_slice(&whole), windows[i], &ahead);
        end(&told);
        ck_assert_uint_eq(told.lines, found.lines);
        ck_assert_uint_eq(told.blank, found.blank);
        ck_assert_uint_eq(told.offered, found.offered);
        ck_assert(slice_equal(buffer_slice(&told.events), buffer_slice(&found.events)));
        ck_assert_uint_lt(told.offered, told.lines);
        buffer_release(&found.events);
        buffer_release(&told.events);
        memory_give(ahead.memory.lines);
    }
    buffer_release(&whole);
    intern_release();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("search");
    TCase *cases = tcase_create("search");
    tcase_set_timeout(cases, 300);
    tcase_add_test(cases, recordings);
    tcase_add_test(cases, quiet_lines_are_passed_over);
    tcase_add_test(cases, quiet_objects_are_passed_over);
    tcase_add_test(cases, busy_logs_are_read_as_they_are);
    tcase_add_test(cases, what_was_found_ahead_changes_nothing);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
