// SPDX-License-Identifier: Apache-2.0
// What an exporter renders on the sender's own thread: what is newer takes the place of what waits,
// nothing is rendered while the sink is behind, and nothing is lost at a halt or the end.
#include "tests/pipeline/runtime/sender_fixture.h"

// -- an exporter that renders ---------------------------------------------------------------------

static struct lock gate; // held by a test: rendering goes on no further
static struct {
    char waiting[16], taken[16]; // under the sender's lock; "": none
    bool superseded;
    uint64_t due_ns;
    bool all;                         // of the last begin
    uint32_t captures;                // that were made
    atomic_uint renders, in_progress; // of those with something to render
} page;

static void page_encode_box(void *instance, const struct batch *batch, struct buffer *out) {
    (void)instance;
    if (batch->last) {
        page.waiting[0] = '\0';
        page.superseded = true;
        buffer_append_text(out, next_text);
        return;
    }
    page.captures++;
    snprintf(page.waiting, sizeof page.waiting, "%s", next_text);
}

static uint64_t page_due(const void *instance) {
    (void)instance;
    return page.waiting[0] == '\0' ? UINT64_MAX : page.due_ns;
}

static void page_begin(void *instance, bool all) {
    (void)instance;
    page.all = all;
    page.superseded = false;
    memcpy(page.taken, page.waiting, sizeof page.taken);
    page.waiting[0] = '\0';
}

static void page_run(void *instance, struct buffer *out) {
    (void)instance;
    atomic_fetch_add(&page.in_progress, 1);
    lock_take(&gate);
    lock_release(&gate);
    buffer_append_text(out, page.taken);
    out->failed |= strcmp(page.taken, "huge") == 0;
    atomic_fetch_add(&page.renders, 1);
}

static bool page_end(void *instance) {
    (void)instance;
    return !page.superseded;
}

static void setup_pages(void) {
    setup();
    lock_init(&gate);
    memset(&page, 0, sizeof page);
    type.exporter.encode = page_encode_box;
    type.exporter.render = (struct render_calls){page_due, page_begin, page_run, page_end};
}

static void teardown_pages(void) {
    lock_destroy(&gate);
    teardown();
}

static void wait_in_progress(uint32_t count) {
    for (int i = 0; i < 30000 && atomic_load(&page.in_progress) < count; i++)
        clock_sleep_ns(1000000);
    ck_assert_uint_ge(atomic_load(&page.in_progress), count);
}

static void consume_last(const char *text) {
    struct batch batch = {.evaluate = true, .last = true, .verdicts = {.count = 2}};
    next_text = text;
    sender_consume(&sender, &batch);
}

// -- memory ---------------------------------------------------------------------------------------

// Whoever encodes holds its pipeline, and freeing a page can take longer than an evaluation.
START_TEST(memory_of_a_page_is_kept_while_nothing_is_appended) {
    make(false, false);
    struct block_queue *queue = &sender.queue;
    struct block *block = block_queue_add(queue);
    buffer_append_text(&block->bytes, "page");
    const char *memory = block->bytes.data;
    block_queue_appended(queue, 4, 1);
    ck_assert_uint_eq(block_queue_pass(queue, 4), 1);
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_eq(block_queue_add(queue)->bytes.data, memory);
        block_queue_take_back(queue);
    }
    struct buffer bytes;
    block_queue_spare_take(queue, &bytes);
    ck_assert_ptr_eq(bytes.data, memory);
    block_queue_spare_put(queue, &bytes);
    ck_assert_uint_eq(queue->spare_count, 1);
    block_queue_spare_put(queue, &bytes); // has no memory any more
    ck_assert_uint_eq(queue->spare_count, 1);
}
END_TEST

// While the sink is slower than what comes, no block is moved as it grows.
START_TEST(a_block_has_room_for_what_the_one_before_held) {
    make(false, false);
    struct block_queue *queue = &sender.queue;
    struct block *block = block_queue_add(queue);
    for (int i = 0; i < 1000; i++)
        buffer_append_text(&block->bytes, "record");
    block_queue_appended(queue, block->bytes.size, 1);
    block = block_queue_add(queue);
    const char *memory = block->bytes.data;
    ck_assert_uint_eq(block->bytes.size, 0);
    for (int i = 0; i < 1000; i++)
        buffer_append_text(&block->bytes, "record");
    ck_assert_ptr_eq(block->bytes.data, memory);
    // A small one behind it has its memory, the one behind that need not have as much.
    block_queue_appended(queue, block->bytes.size, 1);
    block = block_queue_add(queue);
    ck_assert_uint_ge(block->bytes.capacity, 6000);
    buffer_append_text(&block->bytes, "record");
    block_queue_appended(queue, 6, 1);
    ck_assert_uint_lt(block_queue_add(queue)->bytes.capacity, 6000);
}
END_TEST

// -- what is delivered ----------------------------------------------------------------------------

START_TEST(what_was_encoded_is_rendered_and_leaves) {
    make(false, false);
    start();
    consume("a", true);
    wait_for_requests(1);
    consume("b", true);
    wait_for_requests(2);
    consume_last("z");
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("a|b|z");
    ck_assert_uint_eq(atomic_load(&sender.sent_records), 6);
    ck_assert_uint_eq(sender.queue.delivered_sequence, 3);
}
END_TEST

// Rendering is slower than evaluations: those are not held up, and one page waits at most.
START_TEST(what_is_newer_takes_the_place_of_what_waits) {
    make(false, false);
    start();
    lock_take(&gate);
    consume("first", true);
    wait_in_progress(1);
    for (int i = 0; i < 1000; i++)
        consume(i < 999 ? "between" : "newest", true);
    ck_assert_uint_eq(page.captures, 1001);
    ck_assert_uint_eq(atomic_load(&sender.queue.bytes), 0);
    ck_assert(!sender_is_full(&sender));
    lock_release(&gate);
    wait_for_requests(2);
    consume_last("z");
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("first|newest|z");
    // All findings were delivered, in fewer pages.
    ck_assert_uint_eq(atomic_load(&sender.sent_records), 2 * 1002);
    ck_assert_uint_eq(atomic_load(&page.renders), 2);
}
END_TEST

START_TEST(a_page_of_before_does_not_come_behind_the_last) {
    make(false, false);
    start();
    lock_take(&gate);
    consume("before", true);
    wait_in_progress(1);
    consume_last("z");
    lock_release(&gate);
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("z");
    ck_assert_uint_eq(atomic_load(&sender.sent_records), 4);
}
END_TEST

// Holds the gate until the halt has begun.
static void *hold_gate(void *argument) {
    (void)argument;
    lock_take(&gate);
    atomic_fetch_add(&page.in_progress, 100);
    for (bool halting = false; !halting; clock_sleep_ns(1000000)) {
        lock_take(&sender.lock);
        halting = sender.quitting;
        lock_release(&sender.lock);
    }
    lock_release(&gate);
    return NULL;
}

// A reload: what is being rendered, and what waits behind it, is there for who goes on.
START_TEST(a_halt_leaves_what_waited_in_the_queue) {
    pthread_t holder;
    sending.retry.initial_interval.ns = 3600 * (int64_t)SECOND;
    sending.retry.max_interval.ns = 3600 * (int64_t)SECOND;
    sending.retry.max_elapsed_time.ns = 7200 * (int64_t)SECOND;
    make(false, false);
    ck_assert_int_eq(pthread_create(&holder, NULL, hold_gate, NULL), 0);
    wait_in_progress(100);
    start();
    consume("a", true);
    wait_in_progress(101);
    lock_take(&sender.lock);
    page.due_ns = clock_monotonic_ns() + 3600 * SECOND; // of what comes behind
    lock_release(&sender.lock);
    consume("b", true);
    answers[0] = (struct answer){.refused = true};
    sender_halt(&sender);
    pthread_join(holder, NULL);
    ck_assert_uint_eq(atomic_load(&page.renders), 2);
    ck_assert(page.all);
    ck_assert_uint_ge(sender.queue.count, 1);
    struct slice last = buffer_slice(&block_queue_last(&sender.queue)->bytes);
    ck_assert(slice_equal(last, SLICE("b")));
    ck_assert(block_queue_last(&sender.queue)->closed);
}
END_TEST

START_TEST(nothing_is_rendered_while_the_sink_is_behind) {
    make(false, false);
    sending.retry.max_interval.ns = 1000000;
    atomic_store(&sink_refuses, true); // until all were encoded, however long that takes
    start();
    consume("a", true);
    wait_for_failure();
    for (int i = 0; i < 100; i++)
        consume("b", true);
    lock_take(&sender.lock);
    ck_assert_uint_le(sender.queue.count, 1);
    lock_release(&sender.lock);
    ck_assert_uint_eq(atomic_load(&page.renders), 1);
    atomic_store(&sink_refuses, false);
    EVENTUALLY(atomic_load(&page.renders) == 2);
    consume_last("z");
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("a|b|z");
}
END_TEST

START_TEST(what_is_rendered_before_its_time_is_not) {
    make(false, false);
    page.due_ns = UINT64_MAX - 1;
    start();
    consume("a", true);
    clock_sleep_ns(20000000);
    ck_assert_uint_eq(atomic_load(&page.renders), 0);
    consume_last("z");
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("z");
}
END_TEST

START_TEST(what_is_too_long_is_dropped_and_the_next_goes_on) {
    make(false, false);
    start();
    consume("huge", true);
    wait_in_progress(1);
    for (int i = 0; i < 30000 && atomic_load(&page.renders) < 1; i++)
        clock_sleep_ns(1000000);
    consume("a", true);
    wait_for_requests(1);
    consume_last("z");
    ck_assert_int_eq(finish(60 * SECOND), STATUS_OK);
    check_sent("a|z");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("sender_render");
    TCase *tests = tcase_create("sender_render");
    tcase_add_checked_fixture(tests, setup_pages, teardown_pages);
    tcase_add_test(tests, memory_of_a_page_is_kept_while_nothing_is_appended);
    tcase_add_test(tests, a_block_has_room_for_what_the_one_before_held);
    tcase_add_test(tests, what_was_encoded_is_rendered_and_leaves);
    tcase_add_test(tests, what_is_newer_takes_the_place_of_what_waits);
    tcase_add_test(tests, a_page_of_before_does_not_come_behind_the_last);
    tcase_add_test(tests, a_halt_leaves_what_waited_in_the_queue);
    tcase_add_test(tests, nothing_is_rendered_while_the_sink_is_behind);
    tcase_add_test(tests, what_is_rendered_before_its_time_is_not);
    tcase_add_test(tests, what_is_too_long_is_dropped_and_the_next_goes_on);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
