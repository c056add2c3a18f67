// SPDX-License-Identifier: Apache-2.0
// What waits behind a request is shown to an exporter that can begin with it: how much, in which
// order, and what becomes of it at a halt and at the end of inputs.
#include "pipeline/runtime/sender.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "pipeline/model/batch.h"
#include "tests/support/eventually.h"

#include <check.h>
#include <stdio.h>

static const uint64_t SECOND = 1000000000;

// -- the exporter ---------------------------------------------------------------------------------

static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER; // of what the thread writes
static bool refused[8];                                       // of the first requests
static uint32_t request_count;
static char sent[1024];   // requests, a bar behind each
static char shown[1024];  // what each was shown of what waits: "bytes(ahead ahead)"
static atomic_bool holds; // requests are not answered
static const char *next_text;

static void box_encode(void *instance, const struct batch *batch, struct buffer *out) {
    (void)instance;
    (void)batch;
    buffer_append_text(out, next_text);
}

static void note(char *text, struct slice bytes, const char *end) {
    size_t used = strlen(text);
    ck_assert_uint_lt(used + bytes.size + strlen(end), sizeof shown);
    snprintf(text + used, sizeof shown - used, "%.*s%s", (int)bytes.size,
             bytes.data == NULL ? "" : bytes.data, end);
}

static enum status box_send(void *instance, const struct request *request,
                            struct send_outcome *outcome, struct error *error) {
    (void)instance;
    (void)outcome;
    pthread_mutex_lock(&sink_lock);
    bool refuses = request_count < 8 && refused[request_count];
    request_count++;
    if (!refuses && request->bytes.size > 0)
        note(sent, request->bytes, "|");
    note(shown, request->bytes, "(");
    for (uint32_t i = 0; i < request->ahead_count; i++)
        note(shown, request->ahead[i], i + 1 < request->ahead_count ? " " : "");
    note(shown, SLICE(""), ")");
    pthread_mutex_unlock(&sink_lock);
    while (atomic_load(&holds))
        clock_sleep_ns(1000000);
    return refuses ? error_set(error, STATUS_IO, "it says no") : STATUS_OK;
}

static struct sending_config sending;
static const struct sending_config *box_sending(const void *config) {
    (void)config;
    return &sending;
}

static bool box_waits(const void *config) {
    (void)config;
    return true;
}

// -- the sender -----------------------------------------------------------------------------------

static struct component_type type;
static struct plan_component component;
static struct sender sender;
static atomic_bool stopping;
static struct error error;

static void ask_checkpoint(void *context) {
    (void)context;
}

static void make(bool once, bool with_store) {
    component = (struct plan_component){.type = &type, .id = "box", .used = true};
    sender = (struct sender){.component = &component,
                             .site = "exporter/box",
                             .once = once,
                             .with_store = with_store,
                             .stopping = &stopping,
                             .wake_checkpoint = ask_checkpoint};
    sender_init(&sender);
}

static void start(void) {
    ck_assert_int_eq(sender_start(&sender, &error), STATUS_OK);
}

static void setup(void) {
    type = (struct component_type){
        .name = "box",
        .kind = COMPONENT_EXPORTER,
        .exporter = {.encode = box_encode, .send = box_send, .sending = box_sending}};
    sending = sending_defaults;
    sending.retry.initial_interval.ns = 1000000;
    memset(refused, 0, sizeof refused);
    request_count = 0;
    sent[0] = shown[0] = '\0';
    atomic_store(&holds, false);
    atomic_store(&stopping, false);
    log_configure((enum log_level)(LOG_ERROR + 1), LOG_CONSOLE);
}

static void teardown(void) {
    sender_release(&sender);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

// A batch with two verdicts, judged or not.
static void consume(const char *text, bool evaluate) {
    struct batch batch = {.evaluate = evaluate, .verdicts = {.count = 2}};
    next_text = text;
    sender_consume(&sender, &batch);
}

static enum status finish(void) {
    error = (struct error){0};
    return sender_finish(&sender, clock_monotonic_ns() + 60 * SECOND, &error);
}

static bool has_request(void) {
    pthread_mutex_lock(&sink_lock);
    bool there = request_count > 0;
    pthread_mutex_unlock(&sink_lock);
    return there;
}

static void wait_for_request(void) {
    EVENTUALLY(has_request());
}

static uint32_t blocks(void) {
    lock_take(&sender.lock);
    uint32_t there = sender.queue.count;
    lock_release(&sender.lock);
    return there;
}

static void wait_for_blocks(uint32_t count) {
    EVENTUALLY(blocks() <= count);
}

// -- what is shown --------------------------------------------------------------------------------

START_TEST(what_waits_is_shown_in_order_up_to_a_bound) {
    type.exporter.ahead_bytes = 3;
    make(false, false);
    atomic_store(&holds, true);
    start();
    consume("a", true);
    wait_for_request();
    consume("b", true);
    consume("c", true);
    consume("dd", true); // more than there is room for
    consume("e", true);
    consume("f", false); // nothing that may leave yet
    atomic_store(&holds, false);
    wait_for_blocks(0);
    ck_assert_int_eq(finish(), STATUS_OK);
    ck_assert_uint_eq(atomic_load(&sender.sent_records), 12);
    ck_assert_str_eq(sent, "a|b|c|dd|e|f|");
    ck_assert_ptr_nonnull(strstr(shown, "a()b(c dd)c(dd e)dd(e)e()"));
}
END_TEST

START_TEST(what_waits_for_a_checkpoint_is_not_shown) {
    type.exporter.ahead_bytes = 100;
    type.exporter.waits_for_checkpoint = box_waits;
    make(false, true);
    consume("a", true);
    consume("b", true);
    consume("c", true);
    for (uint32_t i = 0; i < 3; i++)
        block_queue_at(&sender.queue, i)->ticket = 1 + i / 2; // the last one's comes later
    start();
    sender_durable(&sender, 1);
    wait_for_blocks(1);
    sender_halt(&sender);
    ck_assert_str_eq(shown, "a(b)b()");
}
END_TEST

// So that it does not come once more after a reload.
START_TEST(a_halt_waits_for_what_was_begun) {
    type.exporter.ahead_bytes = 2;
    make(false, false);
    consume("a", true);
    consume("b", true);
    consume("c", true);
    consume("d", true);
    consume("e", true);
    atomic_store(&holds, true);
    start();
    wait_for_request(); // of a, with b and c
    lock_take(&sender.lock);
    sender.quitting = true;
    lock_release(&sender.lock);
    atomic_store(&holds, false);
    sender_halt(&sender);
    ck_assert_str_eq(sent, "a|b|c|");
    ck_assert_str_eq(shown, "a(b c)b()c()");
    ck_assert_uint_eq(sender.queue.count, 2);
}
END_TEST

START_TEST(a_halt_does_not_wait_for_what_fails) {
    type.exporter.ahead_bytes = 2;
    refused[0] = _i == 0;
    refused[1] = true;
    make(false, false);
    consume("a", true);
    consume("b", true);
    consume("c", true);
    atomic_store(&holds, true);
    start();
    wait_for_request();
    lock_take(&sender.lock);
    sender.quitting = true;
    lock_release(&sender.lock);
    atomic_store(&holds, false);
    sender_halt(&sender);
    ck_assert_uint_eq(sender.queue.count, _i == 0 ? 3 : 2);
    ck_assert_uint_eq(request_count, _i == 0 ? 1 : 2);
}
END_TEST

START_TEST(inputs_that_end_show_what_waits_up_to_a_bound) {
    type.exporter.ahead_bytes = 2;
    refused[1] = true;
    make(true, false);
    consume("a", true);
    consume("b", true);
    ck_assert_uint_eq(request_count, 0);
    consume("c", true);
    consume("d", true);
    ck_assert_str_eq(sent, "a|b|");
    ck_assert_uint_eq(atomic_load(&sender.queue.bytes), 2);
    ck_assert_int_eq(finish(), STATUS_OK);
    ck_assert_str_eq(sent, "a|b|c|d|");
    ck_assert_str_eq(shown, "a(b c)b(c d)b(c d)c(d)d()");
    ck_assert_uint_eq(sender.queue.count, 0);
}
END_TEST

START_TEST(inputs_that_end_stop_with_what_waits) {
    type.exporter.ahead_bytes = 100;
    refused[0] = true;
    make(true, false);
    consume("a", true);
    consume("b", true);
    atomic_store(&stopping, true);
    ck_assert_int_eq(finish(), STATUS_IO);
    ck_assert_str_eq(error.message,
                     "exporter/box: it says no; 4 records (2 bytes) were not delivered");
    ck_assert_uint_eq(request_count, 1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("sender ahead");
    TCase *tests = tcase_create("ahead");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, what_waits_is_shown_in_order_up_to_a_bound);
    tcase_add_test(tests, what_waits_for_a_checkpoint_is_not_shown);
    tcase_add_test(tests, a_halt_waits_for_what_was_begun);
    tcase_add_loop_test(tests, a_halt_does_not_wait_for_what_fails, 0, 2);
    tcase_add_test(tests, inputs_that_end_show_what_waits_up_to_a_bound);
    tcase_add_test(tests, inputs_that_end_stop_with_what_waits);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
