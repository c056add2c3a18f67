// SPDX-License-Identifier: Apache-2.0
// A feed by itself: which sources it knows, what it sets on events, when it hands over, waits and
// tells.
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "pipeline/model/telemetry_event.h"
#include "pipeline/runtime/feed/feed_run.h"
#include "pipeline/runtime/service.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

// -- a format: a letter says what becomes of the record -------------------------------------------

// "n": nothing; "x": refused; "t": refused, and told of; "N": its job is the text "none"; "j": has
// a job; "b": sums up others; else an event.
static enum decode_category decode_letter(void *state, struct slice record, struct arena *arena,
                                          struct event *event, struct decode_fault *fault) {
    (void)state;
    char letter = record.size == 0 ? ' ' : record.data[0];
    struct telemetry *telemetry = arena_zero(arena, 1, sizeof *telemetry);
    *event = (struct event){.time_ns = 7 + record.size,
                            .timeless = letter == 't',
                            .rank = RANK_NONE,
                            .telemetry = telemetry};
    if (letter == 'N' || letter == 'j')
        event->job = telemetry->job = intern(letter == 'N' ? SLICE("none") : SLICE("own"));
    if (letter == 'n')
        return DECODE_NOTHING;
    if (letter == 'b')
        return DECODE_BESIDE;
    if (letter != 'x' && letter != 't')
        return DECODE_OK;
    *fault = (struct decode_fault){.category = DECODE_BAD_JSON, .told = letter == 't'};
    return DECODE_BAD_JSON;
}

static uint32_t plain_count;

// "p" is beyond doubt.
static bool decode_plain_letter(void *state, struct slice record, struct arena *arena,
                                struct event *event) {
    struct decode_fault fault;
    if (record.data[0] != 'p' || decode_letter(state, record, arena, event, &fault) != DECODE_OK)
        return false;
    event->time_ns = 1000 + ++plain_count;
    return true;
}

static bool tell_letter(void *state, struct slice start, struct slice why, struct arena *arena,
                        struct event *event) {
    (void)state;
    ck_assert(slice_equal(why, SLICE("gone")));
    event->telemetry = arena_zero(arena, 1, sizeof *event->telemetry);
    event->timeless = true;
    return start.size > 0 && start.data[0] == 't';
}

static const struct decoder_type letters = {.name = "letters",
                                            .tell_refused = tell_letter,
                                            .state_size = 0,
                                            .decode = decode_letter,
                                            .decode_plain = decode_plain_letter};

// -- a format with several events a record --------------------------------------------------------

// An event for each byte, whose time is the byte; the bytes wait in the arena.
struct bytes_left {
    struct slice bytes;
};

static enum decode_category next_byte(void *state, struct arena *arena, struct event *event,
                                      struct decode_fault *fault) {
    struct bytes_left *left = state;
    (void)fault;
    if (left->bytes.size == 0)
        return DECODE_END;
    struct telemetry *telemetry = arena_zero(arena, 1, sizeof *telemetry);
    *event = (struct event){.time_ns = (uint64_t)left->bytes.data[0],
                            .kind = EVENT_KUBERNETES,
                            .rank = RANK_NONE,
                            .telemetry = telemetry};
    left->bytes = (struct slice){left->bytes.data + 1, left->bytes.size - 1};
    return DECODE_OK;
}

static enum decode_category decode_bytes(void *state, struct slice record, struct arena *arena,
                                         struct event *event, struct decode_fault *fault) {
    ((struct bytes_left *)state)->bytes = arena_copy(arena, record);
    return next_byte(state, arena, event, fault);
}

static const struct decoder_type bytes = {.name = "bytes",
                                          .state_size = sizeof(struct bytes_left),
                                          .decode = decode_bytes,
                                          .next = next_byte};

// -- a format that holds records ------------------------------------------------------------------

// "h": held; "e" ends what is held and is an event itself; "x" is refused. What is held becomes one
// event, or is refused when the first of it was "hx". Their time is the number of held records.
struct held {
    uint32_t count, given; // held; to be given back
    bool bad;
};

static enum decode_category decode_held(void *state, struct slice record, struct arena *arena,
                                        struct event *event, struct decode_fault *why) {
    struct held *held = state;
    if (record.data[0] == 'h') {
        held->bad = held->count++ == 0 ? record.size > 1 : held->bad;
        return DECODE_HELD;
    }
    held->given = held->count;
    held->count = 0;
    enum decode_category category = decode_letter(NULL, record, arena, event, why);
    event->kind = EVENT_KUBERNETES;
    return category;
}

static enum decode_category next_held(void *state, struct arena *arena, struct event *event,
                                      struct decode_fault *why) {
    struct held *held = state;
    if (held->given == 0)
        return DECODE_END;
    struct telemetry *telemetry = arena_zero(arena, 1, sizeof *telemetry);
    *event = (struct event){.time_ns = held->given,
                            .kind = EVENT_KUBERNETES,
                            .rank = RANK_NONE,
                            .lines = held->given,
                            .position = 77,
                            .raw = SLICE("held"),
                            .telemetry = telemetry};
    held->given = 0;
    if (!held->bad)
        return DECODE_OK;
    *why = (struct decode_fault){.category = DECODE_BAD_JSON};
    return DECODE_BAD_JSON;
}

static bool holds_held(const void *state) {
    return ((const struct held *)state)->count > 0;
}

static void finish_held(void *state) {
    struct held *held = state;
    held->given = held->count;
    held->count = 0;
}

static const struct decoder_type holding = {.name = "holding",
                                            .state_size = sizeof(struct held),
                                            .decode = decode_held,
                                            .next = next_held,
                                            .holds = holds_held,
                                            .finish = finish_held};

// -- the other end --------------------------------------------------------------------------------

static struct {
    uint32_t deliveries, events, touched, left, forgotten, caught_up;
    struct event last;
    struct telemetry last_telemetry;
    struct carried last_carried;
    uint64_t newest_ns; // of the first source that was touched
    uint32_t blocked_left;
    uint64_t lag;
    uint64_t told;     // before a restart
    uint64_t position; // of a place, as it was handed over
    char refused[64];  // after it had been held
    const char *trouble;
    const char *const *kept; // paths, NULL-terminated
    char times[64];          // of all events, where they are small
    uint32_t time_count;
} end;

static void on_deliver(void *context, const struct delivery *delivery) {
    (void)context;
    end.deliveries++;
    end.events += delivery->count;
    end.touched += delivery->touched_count;
    end.newest_ns = source_times_newest(&delivery->touched[0]->times);
    for (uint32_t i = 0; i < delivery->touched_count; i++)
        if (delivery->touched[i]->path.data[0] == PLACE_MARK)
            end.position = source_delivered(delivery->touched[i])->number;
    for (uint32_t i = 0; i < delivery->count && end.time_count < sizeof end.times; i++)
        end.times[end.time_count++] = (char)delivery->events[i].time_ns;
    if (delivery->count == 0)
        return;
    end.last = delivery->events[delivery->count - 1];
    end.last_telemetry = *end.last.telemetry;
    if (end.last.carried != NULL)
        end.last_carried = *end.last.carried;
}

static void on_restore(void *context, struct source *source) {
    (void)context;
    source->restored.number = source->path.size;
    source->told = end.told;
}

static bool on_restored_path(void *context, uint32_t index, struct slice *path) {
    (void)context;
    for (uint32_t i = 0; end.kept != NULL && end.kept[i] != NULL; i++)
        if (i == index) {
            *path = slice_of(end.kept[i]);
            return true;
        }
    return false;
}

static void on_leave(void *context, struct source *source, bool forget) {
    (void)context;
    (void)source;
    end.left++;
    end.forgotten += forget;
}

static struct source_position on_safe(void *context, const struct source *source) {
    (void)context;
    return (struct source_position){.number = source->highest - 1};
}

static bool on_blocked(void *context) {
    (void)context;
    return end.blocked_left > 0 && end.blocked_left-- > 0;
}

static uint64_t on_lag(void *context, const struct source *source) {
    (void)context;
    (void)source;
    return end.lag;
}

static void on_trouble(void *context, const char *sentence) {
    (void)context;
    end.trouble = sentence;
}

static void on_caught_up(void *context) {
    (void)context;
    end.caught_up++;
}

// -- the feed -------------------------------------------------------------------------------------

static struct intake intake;
static atomic_bool stopping, pausing;
static int stop_descriptor;
static struct feed *feed;
static struct decode_fault fault;

static void make(uint32_t batch_size, bool silent) {
    struct feed_settings settings = {.site = "receiver/test",
                                     .batch_size = batch_size,
                                     .runner_count = 2,
                                     .stop_descriptor = stop_descriptor,
                                     .stopping = &stopping,
                                     .pausing = &pausing,
                                     .silent = silent,
                                     .intake = &intake,
                                     .outlet = {.deliver = on_deliver,
                                                .restore = on_restore,
                                                .restored_path = on_restored_path,
                                                .leave = on_leave,
                                                .safe = on_safe,
                                                .blocked = on_blocked,
                                                .lag = on_lag,
                                                .trouble = on_trouble,
                                                .caught_up = on_caught_up}};
    feed = feed_create(&settings);
}

static void setup(void) {
    memset(&end, 0, sizeof end);
    intake_init(&intake);
    atomic_store(&stopping, false);
    atomic_store(&pausing, false);
    stop_descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    log_configure((enum log_level)(LOG_ERROR + 1), LOG_CONSOLE);
}

static void teardown(void) {
    feed_free(feed);
    feed = NULL;
    intake_release(&intake);
    intern_release();
    close(stop_descriptor);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static struct source *source_named(const char *path) {
    struct source *source = feed_source(feed, slice_of(path));
    if (feed_source_decoder(source) == NULL)
        feed_source_format(source, &letters, &(struct decoder_input){.path = {0}});
    return source;
}

static enum decode_category offer(struct source *source, const char *record) {
    return feed_offer(feed, source, slice_of(record), 1, &fault);
}

// -- sources --------------------------------------------------------------------------------------

START_TEST(sources_are_found_again_and_forgotten) {
    enum { COUNT = 50 };
    struct source *sources[COUNT];
    make(4, false);
    for (int round = 0; round < 3; round++) {
        char path[16];
        for (int i = 0; i < COUNT; i++) {
            snprintf(path, sizeof path, "/%d", i);
            sources[i] = source_named(path);
            ck_assert_ptr_eq(source_named(path), sources[i]);
            feed_source_figures(sources[i])->bytes = 10;
        }
        ck_assert_uint_le(feed_source_count(feed), 64 + 1); // places are used again
        for (int i = round; i < COUNT; i += 2)
            feed_source_forget(feed, sources[i]);
    }
    ck_assert_uint_eq(end.forgotten, 25 + 25 + 24);
    // What the forgotten ones had read is still told, under no name.
    struct report_source report;
    ck_assert(feed_source_report(feed, feed_source_count(feed) - 1, &report));
    ck_assert_ptr_null(report.path.data);
    ck_assert_uint_eq(report.figures.bytes, 740);
}
END_TEST

START_TEST(what_was_in_the_batch_goes_before_its_source) {
    make(4, false);
    struct source *source = source_named("/a");
    ck_assert_int_eq(offer(source, "e"), DECODE_OK);
    feed_source_forget(feed, source);
    ck_assert_uint_eq(end.events, 1);
    ck_assert_uint_eq(end.left, 1);
}
END_TEST

START_TEST(kept_sources_stand_where_they_stood) {
    static const char *const kept[] = {"/a", "/bcd", NULL};
    end.kept = kept;
    make(4, false);
    for (uint32_t i = 0; i < 2; i++) {
        struct source *source = feed_restored_source(feed, i);
        ck_assert(slice_equal(feed_source_path(source), slice_of(kept[i])));
        ck_assert_uint_eq(feed_source_restored(source).number, strlen(kept[i]));
        ck_assert_uint_eq(feed_source_safe(feed, source).number, strlen(kept[i]) - 1);
    }
    ck_assert_ptr_null(feed_restored_source(feed, 2));
}
END_TEST

START_TEST(a_position_alone_is_handed_over) {
    make(4, false);
    struct source *source = source_named("/a");
    feed_flush(feed);
    ck_assert_uint_eq(end.deliveries, 0);
    feed_source_reached(source, &(struct source_position){.number = 9});
    feed_source_leave(feed, source);
    feed_flush(feed);
    ck_assert_uint_eq(end.deliveries, 1);
    ck_assert_uint_eq(end.events, 0);
    ck_assert_uint_eq(end.left, 1);
    ck_assert_uint_eq(end.forgotten, 0);
    ck_assert_uint_eq(feed_source_safe(feed, source).number, 8);
}
END_TEST

START_TEST(many_sources_in_one_batch) {
    make(1000, false);
    for (int i = 0; i < 200; i++) {
        char path[16];
        snprintf(path, sizeof path, "/%d", i);
        ck_assert_int_eq(offer(source_named(path), "e"), DECODE_OK);
    }
    feed_flush(feed);
    ck_assert_uint_eq(end.touched, 200);
    ck_assert_uint_eq(feed_accepted(feed), 200);
}
END_TEST

// -- events ---------------------------------------------------------------------------------------

START_TEST(events_without_a_job_get_the_stamp) {
    make(1, false);
    struct source *source = source_named("/a");
    string_id given = intern(SLICE("given")), node = intern(SLICE("node-1"));
    offer(source, "e");
    ck_assert_uint_eq(end.last.job, STRING_NONE);
    feed_stamp(feed, (struct feed_stamp){given, node});
    static const char *const records[] = {"e", "N"};
    for (int i = 0; i < 2; i++) {
        offer(source, records[i]);
        ck_assert_uint_eq(end.last.job, given);
        ck_assert_uint_eq(end.last_telemetry.job, given);
        ck_assert_uint_eq(end.last.node, node);
    }
    offer(source, "j");
    ck_assert_uint_eq(end.last.job, intern(SLICE("own")));
    // A job that came with the record goes before the stamp.
    struct forwarded forwarded = {.carried = {.first_sample_ns = 3, .generation = 2},
                                  .job = intern(SLICE("other")),
                                  .node = intern(SLICE("node-2"))};
    feed_source_passed_on(feed, source, &forwarded);
    feed_offer(feed, source, SLICE("e"), 5, &fault);
    feed_source_passed_on(feed, source, NULL);
    ck_assert_uint_eq(end.last.job, forwarded.job);
    ck_assert_uint_eq(end.last.node, forwarded.node);
    ck_assert_uint_eq(end.last_carried.generation, 2);
    ck_assert_uint_eq(end.last.position, 5);
}
END_TEST

START_TEST(a_job_that_is_called_none_is_noted_once) {
    make(1, false);
    struct source *source = source_named("/a");
    offer(source, "N");
    offer(source, "N");
    struct report report = {0};
    intake_report(&intake, &report);
    ck_assert_uint_eq(report.note_count, 1);
    ck_assert_ptr_nonnull(strstr(report.notes[0], "job_id is the text \"none\""));
    report_release(&report);
}
END_TEST

// However small the batches are: what is still to come of a record stands in the batch's arena.
START_TEST(a_batch_goes_behind_the_last_event_of_a_record) {
    static const uint32_t sizes[] = {1, 2, 3, 100};
    make(sizes[_i], false);
    struct source *source = feed_source(feed, SLICE("/a"));
    feed_source_format(source, &bytes, &(struct decoder_input){.path = {0}});
    static const char *const records[] = {"abcdefgh", "i", "j", "klm", "nopqrstuvwxyz"};
    for (size_t i = 0; i < sizeof records / sizeof *records; i++)
        ck_assert_int_eq(offer(source, records[i]), DECODE_OK);
    feed_flush(feed);
    ck_assert_uint_eq(end.events, 26);
    ck_assert_uint_eq(feed_accepted(feed), 26);
    ck_assert_mem_eq(end.times, "abcdefghijklmnopqrstuvwxyz", 26);
    static const uint32_t deliveries[] = {5, 4, 3, 1};
    ck_assert_uint_eq(end.deliveries, deliveries[_i]);
}
END_TEST

START_TEST(what_is_foreseen_is_decoded_once) {
    struct slice plain = SLICE("p"), other = SLICE("a");
    make(8, false);
    struct source *source = source_named("/a");
    plain_count = 0;
    ck_assert(!feed_foresee(feed, source, other));
    ck_assert(feed_foresee(feed, source, plain));
    ck_assert_int_eq(feed_offer(feed, source, plain, 1, &fault), DECODE_OK);
    feed_flush(feed);
    ck_assert_uint_eq(end.last.time_ns, 1001);
    ck_assert_uint_eq(end.last.position, 1);
    ck_assert_uint_eq(end.newest_ns, 1001);
    // Another one is offered instead, or none before the batch goes.
    ck_assert(feed_foresee(feed, source, plain));
    ck_assert_int_eq(feed_offer(feed, source, other, 2, &fault), DECODE_OK);
    ck_assert(feed_foresee(feed, source, plain));
    feed_flush(feed);
    ck_assert_uint_eq(end.last.time_ns, 8);
    ck_assert_int_eq(feed_offer(feed, source, plain, 3, &fault), DECODE_OK);
    feed_flush(feed);
    ck_assert_uint_eq(end.last.time_ns, 1004); // decoded again
    ck_assert_uint_eq(end.events, 3);
}
END_TEST

START_TEST(events_made_elsewhere_are_taken_in_order) {
    make(2, false);
    struct source *source = source_named("/a");
    struct telemetry payload = {.job = STRING_NONE};
    struct event events[5];
    static const char records[] = "abcde";
    for (size_t i = 0; i < 5; i++)
        events[i] = (struct event){
            .time_ns = 50 + i, .raw = {records + i, 1}, .rank = RANK_NONE, .telemetry = &payload};
    ck_assert(feed_offer_foreseen(feed, source, events, 5, 7));
    ck_assert_uint_eq(end.deliveries, 2); // of the batches that were full
    ck_assert_uint_eq(end.events, 4);
    feed_flush(feed);
    ck_assert_uint_eq(end.events, 5);
    ck_assert_uint_eq(end.last.time_ns, 54);
    ck_assert_uint_eq(end.last.position, 11);
    ck_assert(end.last.raw.data == records + 4);
    ck_assert_uint_eq(feed_source_figures(source)->accepted, 5);
    ck_assert_uint_eq(feed_source_figures(source)->event_lines, 5);
    // What another culprit passed on is looked at one by one.
    struct forwarded forwarded = {.rank = RANK_NONE};
    feed_source_passed_on(feed, source, &forwarded);
    ck_assert(!feed_offer_foreseen(feed, source, events, 5, 12));
    ck_assert_uint_eq(feed_source_figures(source)->accepted, 5);
    feed_source_passed_on(feed, source, NULL);
}
END_TEST

// -- a format that is parsed elsewhere ------------------------------------------------------------

static enum decode_category decode_whole(void *state, struct slice record, struct arena *arena,
                                         struct event *event, struct decode_fault *why) {
    enum decode_category category = decode_letter(state, record, arena, event, why);
    event->kind = EVENT_KUBERNETES;
    return category;
}

static enum decode_category decode_parsed(void *state, void *parsed, struct event *event,
                                          struct decode_fault *why) {
    static const struct telemetry none;
    (void)state;
    (void)why;
    *event = (struct event){.time_ns = *(uint64_t *)parsed,
                            .kind = EVENT_KUBERNETES,
                            .rank = RANK_NONE,
                            .telemetry = &none};
    return DECODE_OK;
}

static const struct decoder_type wholes = {
    .name = "wholes", .decode = decode_whole, .decode_parsed = decode_parsed};

START_TEST(what_is_parsed_counts_for_its_record_only) {
    make(8, false);
    struct source *source = feed_source(feed, SLICE("/a"));
    feed_source_format(source, &wholes, &(struct decoder_input){.path = {0}});
    struct slice record = SLICE("abc"), other = SLICE("de");
    uint64_t parsed = 4711;
    feed_foresee_parsed(feed, record, &parsed);
    ck_assert_int_eq(feed_offer(feed, source, record, 1, &fault), DECODE_OK);
    feed_flush(feed);
    ck_assert_uint_eq(end.last.time_ns, 4711);
    ck_assert_uint_eq(end.last.position, 1);
    ck_assert_int_eq(feed_offer(feed, source, record, 2, &fault), DECODE_OK);
    feed_foresee_parsed(feed, record, &parsed);
    ck_assert_int_eq(feed_offer(feed, source, other, 3, &fault), DECODE_OK);
    feed_flush(feed);
    ck_assert_uint_eq(end.events, 3);
    ck_assert_uint_eq(end.last.time_ns, 9);
}
END_TEST

START_TEST(refused_records_may_be_told_of) {
    make(8, false);
    struct source *source = source_named("/a");
    ck_assert_int_eq(offer(source, "x"), DECODE_BAD_JSON);
    ck_assert_int_eq(offer(source, "t"), DECODE_BAD_JSON);
    ck_assert_int_eq(offer(source, "n"), DECODE_OK);
    ck_assert_int_eq(offer(source, "e"), DECODE_OK);
    feed_flush(feed);
    ck_assert_uint_eq(end.events, 2);          // what is told, and the event …
    ck_assert_uint_eq(feed_accepted(feed), 1); // … of which one was accepted
    ck_assert_uint_eq(feed_refused(feed, DECODE_BAD_JSON), 2);
    ck_assert_uint_eq(end.newest_ns, 8); // what has no time of its own moves nothing
    const struct source_figures *figures = feed_source_figures(source);
    ck_assert_uint_eq(figures->accepted, 1);
    ck_assert_uint_eq(figures->refused, 2);
    ck_assert_uint_eq(figures->other, 1);
}
END_TEST

START_TEST(what_sums_up_others_is_counted_nowhere) {
    make(8, false);
    struct source *source = source_named("/a");
    ck_assert_int_eq(offer(source, "e"), DECODE_OK);
    ck_assert_int_eq(offer(source, "b"), DECODE_OK);
    feed_flush(feed);
    ck_assert_uint_eq(end.events, 2);
    ck_assert_uint_eq(feed_accepted(feed), 1);
    ck_assert_uint_eq(feed_source_figures(source)->accepted, 1);
    ck_assert_uint_eq(feed_source_figures(source)->other, 0);
}
END_TEST

// It did not come to the decoder, which makes an event of it all the same where it can.
START_TEST(what_never_got_to_a_decoder_may_be_told_of) {
    make(8, false);
    struct source *source = feed_source(feed, SLICE("/b"));
    feed_tell_refused(feed, source, SLICE("t"), 1, SLICE("gone")); // it has no decoder
    feed_source_format(source, &letters, &(struct decoder_input){.path = {0}});
    feed_tell_refused(feed, source, SLICE("x"), 2, SLICE("gone"));
    feed_flush(feed);
    ck_assert_uint_eq(end.events, 0);
    feed_tell_refused(feed, source, SLICE("t"), 3, SLICE("gone"));
    ck_assert_int_eq(offer(source, "e"), DECODE_OK);
    feed_tell_refused(feed, source, SLICE("t"), 4, SLICE("gone"));
    feed_flush(feed);
    ck_assert_uint_eq(end.events, 3);
    ck_assert_uint_eq(end.last.position, 4);
    ck_assert(slice_equal(end.last.raw, SLICE("t")));
    ck_assert_uint_eq(feed_accepted(feed), 1);
    ck_assert_uint_eq(feed_refused(feed, DECODE_BAD_JSON), 0); // feed_refuse counts
    ck_assert_uint_eq(feed_source_figures(source)->accepted, 1);
}
END_TEST

static void on_refused(void *context, const struct source *source, struct slice record,
                       uint64_t position, const struct decode_fault *why) {
    ck_assert_ptr_eq(context, &end);
    snprintf(end.refused, sizeof end.refused, "%.*s %.*s %d %d", (int)source->path.size,
             source->path.data, (int)record.size, record.data, (int)position, (int)why->category);
}

// Records of a file "/a" whose positions the place "/a" of the feed has.
static struct source *place;

static struct source *holding_source(uint64_t told) {
    end.told = told;
    make(8, false);
    feed_on_refusal(feed, on_refused, &end);
    struct source *source = feed_source(feed, SLICE("/a"));
    feed_source_format(source, &holding, &(struct decoder_input){.path = {0}});
    place = feed_place(feed, SLICE("\x1fp"));
    return source;
}

static void offer_at(struct source *source, uint64_t number, const char *record) {
    feed_source_reached(place, &(struct source_position){.number = number});
    ck_assert_int_eq(offer(source, record), DECODE_OK);
}

START_TEST(what_is_held_is_finished) {
    struct source *source = holding_source(0);
    offer_at(source, 3, "e");
    offer_at(source, 4, "h");
    offer_at(source, 5, "h");
    feed_flush(feed);
    ck_assert_uint_eq(end.events, 1);
    ck_assert_uint_eq(end.position, 3); // a restart reads from the first that is held
    ck_assert(feed_source_holds(source));
    ck_assert(feed_source_holds(place));
    feed_source_finish(feed, place);
    ck_assert(!feed_source_holds(source));
    ck_assert(!feed_source_holds(place));
    feed_flush(feed);
    ck_assert_uint_eq(end.events, 2);
    ck_assert_uint_eq(end.last.time_ns, 2);
    ck_assert_uint_eq(end.position, 5);
    feed_source_finish(feed, place); // nothing is held
    ck_assert_uint_eq(feed_source_figures(source)->accepted, 2);
}
END_TEST

START_TEST(held_records_that_are_refused_are_told_of) {
    struct source *source = holding_source(0);
    offer_at(source, 3, "hx");
    offer_at(source, 4, "e");
    ck_assert_str_eq(end.refused, "/a held 77 1");
    ck_assert_uint_eq(feed_source_figures(source)->refused, 1);
    ck_assert_uint_eq(feed_source_figures(source)->accepted, 1);
}
END_TEST

// Up to 5 was told before a restart, but for what was held.
START_TEST(what_is_read_again_is_told_once) {
    struct source *source = holding_source(5);
    offer_at(source, 3, "e");
    offer_at(source, 4, "x"); // was refused before: counted, and kept in a quarantine
    offer_at(source, 4, "hx");
    offer_at(source, 4, "e");
    ck_assert_str_eq(end.refused, "");
    offer_at(source, 5, "h");
    feed_flush(feed);
    ck_assert_uint_eq(end.events, 0);
    ck_assert_uint_eq(feed_source_figures(source)->refused, 0);
    feed_source_finish(feed, place);
    feed_flush(feed);
    ck_assert_uint_eq(end.events, 1);
    ck_assert_uint_eq(feed_source_figures(source)->accepted, 1);
}
END_TEST

// Not all of it has been read again: what ends there was told before.
START_TEST(what_ends_before_what_was_told_was_told) {
    struct source *source = holding_source(9);
    offer_at(source, 4, "h");
    feed_source_finish(feed, place);
    feed_flush(feed);
    ck_assert_uint_eq(end.events, 0);
    ck_assert(!feed_source_holds(source));
}
END_TEST

START_TEST(a_further_copy_tells_nothing) {
    make(1, true);
    struct source *source = source_named("/a");
    offer(source, "x");
    offer(source, "e");
    feed_note(feed, SLICE("/a"), "said by the first");
    struct report report = {0};
    intake_report(&intake, &report);
    ck_assert_uint_eq(report.refused + report.note_count + report.accepted, 0);
    report_release(&report);
    ck_assert_uint_eq(end.events, 1);
    ck_assert_uint_eq(feed_refused(feed, DECODE_BAD_JSON), 0);
}
END_TEST

// -- handing over ---------------------------------------------------------------------------------

START_TEST(a_journal_is_handed_over_when_told) {
    make(2, false);
    struct source *source = source_named("/a");
    ck_assert(!feed_has_journal(feed));
    feed_keeps_journal(feed, source);
    ck_assert(feed_has_journal(feed));
    for (uint32_t count = 5; count <= 70000; count += 69995) {
        end.events = end.deliveries = 0;
        for (uint32_t i = 0; i < count; i++)
            ck_assert_int_eq(offer(source, "e"), DECODE_OK);
        ck_assert_uint_eq(end.deliveries, 0);
        uint64_t before = memory_figures().live_bytes;
        feed_flush(feed);
        // A large entry's room is given back.
        uint64_t given_back = before - memory_figures().live_bytes;
        ck_assert(given_back >= (count > 65536 ? count * sizeof(struct event) : 0));
        ck_assert_uint_eq(end.deliveries, 1);
        ck_assert_uint_eq(end.events, count);
    }
    end.lag = 4;
    ck_assert_uint_eq(feed_lag(feed, source), 4);
    // Older entries come again.
    feed_source_reached(source, &(struct source_position){.number = 9});
    feed_source_reached(source, &(struct source_position){.number = 4});
    ck_assert_uint_eq(feed_source_safe(feed, source).number, 8);
}
END_TEST

START_TEST(it_waits_until_there_is_room) {
    make(2, false);
    ck_assert(feed_wait(feed, 0));
    end.blocked_left = 3;
    ck_assert(feed_wait(feed, UINT64_C(10000000000)));
    end.blocked_left = UINT32_MAX;
    ck_assert(!feed_wait(feed, 1000000)); // the time was over
    // Asked to stop: at once.
    uint64_t one = 1;
    ck_assert_int_eq(write(stop_descriptor, &one, sizeof one), (ssize_t)sizeof one);
    ck_assert(!feed_wait(feed, UINT64_C(3600000000000)));
    atomic_store(&stopping, true);
    ck_assert(!feed_wait(feed, UINT64_C(3600000000000)));
    ck_assert(feed_stopping(feed) && !feed_pausing(feed));
    atomic_store(&pausing, true);
    ck_assert(feed_pausing(feed));
    ck_assert_int_eq(feed_stop_descriptor(feed), stop_descriptor);
}
END_TEST

START_TEST(what_was_there_is_said_once_behind_it) {
    make(10, false);
    offer(source_named("/a"), "e");
    feed_caught_up(feed);
    feed_caught_up(feed);
    ck_assert_uint_eq(end.caught_up, 1);
    ck_assert_uint_eq(end.events, 1);
    feed_trouble(feed, "no answer");
    ck_assert_str_eq(end.trouble, "no answer");
    feed_progress(feed, 3, 10);
    ck_assert_uint_eq(atomic_load(&intake.done_bytes), 3);
    ck_assert_uint_eq(atomic_load(&intake.total_bytes), 10);
}
END_TEST

START_TEST(lists_grow) {
    struct source_list list = {0};
    for (int i = 0; i < 300; i++) {
        char path[16];
        snprintf(path, sizeof path, "/%d", i);
        source_list_add(&list, slice_of(path));
    }
    ck_assert_uint_eq(list.count, 300);
    ck_assert(slice_equal(list.paths[0], SLICE("/0")));
    ck_assert(slice_equal(list.paths[299], SLICE("/299")));
    arena_release(&list.arena);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("feed");
    TCase *tests = tcase_create("feed");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, sources_are_found_again_and_forgotten);
    tcase_add_test(tests, what_was_in_the_batch_goes_before_its_source);
    tcase_add_test(tests, kept_sources_stand_where_they_stood);
    tcase_add_test(tests, a_position_alone_is_handed_over);
    tcase_add_test(tests, many_sources_in_one_batch);
    tcase_add_test(tests, events_without_a_job_get_the_stamp);
    tcase_add_test(tests, a_job_that_is_called_none_is_noted_once);
    tcase_add_loop_test(tests, a_batch_goes_behind_the_last_event_of_a_record, 0, 4);
    tcase_add_test(tests, what_is_foreseen_is_decoded_once);
    tcase_add_test(tests, events_made_elsewhere_are_taken_in_order);
    tcase_add_test(tests, what_is_parsed_counts_for_its_record_only);
    tcase_add_test(tests, refused_records_may_be_told_of);
    tcase_add_test(tests, what_sums_up_others_is_counted_nowhere);
    tcase_add_test(tests, what_never_got_to_a_decoder_may_be_told_of);
    tcase_add_test(tests, what_is_held_is_finished);
    tcase_add_test(tests, held_records_that_are_refused_are_told_of);
    tcase_add_test(tests, what_is_read_again_is_told_once);
    tcase_add_test(tests, what_ends_before_what_was_told_was_told);
    tcase_add_test(tests, a_further_copy_tells_nothing);
    tcase_add_test(tests, a_journal_is_handed_over_when_told);
    tcase_add_test(tests, it_waits_until_there_is_room);
    tcase_add_test(tests, what_was_there_is_said_once_behind_it);
    tcase_add_test(tests, lists_grow);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
