// SPDX-License-Identifier: Apache-2.0
// What the tests of the file receiver share: a folder of their own, a receiver on a fake feed, and
// records that the decoder takes. Included once by each test program.
#pragma once

#include "cli/component_list.h"
#include "tests/receivers/fake_feed.c"

#include "base/clock.h"
#include "base/memory.h"
#include "receivers/file/receiver.h"
#include "tests/support/temporary.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static char folder[256];

static inline void fixture_run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void fixture_run(const char *format, ...) {
    char command[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    ck_assert_msg(system(command) == 0, "%s", command);
}

static inline void fixture_setup(void) {
    temporary_path(folder, sizeof folder, "file");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static inline void fixture_teardown(void) {
    ck_assert_int_eq(chdir("/"), 0);
    fixture_run("chmod -R u+rwX %s && rm -rf %s", folder, folder);
}

static inline char *record_text(char *out, size_t size, int number) {
    snprintf(out, size, "{\"timestamp\":%d.5,\"memory_allocated\":%d}", number, number);
    return out;
}

static inline void write_bytes(const char *path, const char *mode, const void *bytes, size_t size) {
    FILE *file = fopen(path, mode);
    ck_assert_msg(file != NULL, "%s", path);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

static inline void write_text(const char *path, const char *mode, const char *text) {
    write_bytes(path, mode, text, strlen(text));
}

// Appends the records `from` to `to`, one a line.
static inline void append_records(const char *path, int from, int to) {
    FILE *file = fopen(path, "a");
    ck_assert_msg(file != NULL, "%s", path);
    char text[128];
    for (int i = from; i <= to; i++)
        fprintf(file, "%s\n", record_text(text, sizeof text, i));
    ck_assert_int_eq(fclose(file), 0);
}

static inline void append_gzip(const char *path, const char *text) {
    gzFile file = gzopen(path, "ab");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(gzwrite(file, text, (unsigned)strlen(text)), (int)strlen(text));
    ck_assert_int_eq(gzclose(file), Z_OK);
}

// -- a receiver on its own ----------------------------------------------------------------------

struct rig {
    struct file_config config;
    struct component_context context;
    struct file_receiver receiver;
    struct feed *feed;
    struct source_list sources;
    struct error error;
    enum status list_status;
    pthread_t thread;
    uint64_t live_before;
};

static inline void rig_init(struct rig *rig, const char *const *include, uint32_t count) {
    memset(rig, 0, sizeof *rig);
    rig->config = (struct file_config){.include = {include, count},
                                       .max_line_size = {1 << 20},
                                       .records.quarantine_max_size = {1 << 28},
                                       .poll_interval = {20 * 1000 * 1000},
                                       .finish_after = {INT64_C(3600) * 1000000000},
                                       .max_sources = 10000};
    rig->context =
        (struct component_context){.id = "file/test", .site = "receiver/file/test", .once = true};
    rig->feed = fake_feed_create();
    rig->live_before = memory_figures().live_bytes;
}

static inline void rig_start(struct rig *rig) {
    enum status status =
        component_start(&receiver_file, &rig->receiver, &rig->config, &rig->context, &rig->error);
    ck_assert_msg(status == STATUS_OK, "%s", rig->error.message);
}

static inline void rig_free(struct rig *rig) {
    component_stop(&receiver_file, &rig->receiver);
    arena_release(&rig->sources.arena);
    fake_feed_free(rig->feed);
}

static inline int compare_slices(const void *a, const void *b) {
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

// Those that wait for the others are asked once more.
static inline uint32_t rig_read(struct rig *rig, struct slice *paths, uint32_t count) {
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < count; i++) {
        enum status status =
            receiver_file.receiver.read(&rig->receiver, rig->feed, paths[i], &rig->error);
        ck_assert_msg(status == STATUS_OK || status == STATUS_AGAIN, "%s", rig->error.message);
        if (status == STATUS_AGAIN)
            paths[waiting++] = paths[i];
    }
    return waiting;
}

// Lists and reads everything, as analyze does.
static inline void rig_read_all(struct rig *rig) {
    rig_start(rig);
    rig->list_status = receiver_file.receiver.list(&rig->receiver, &rig->sources, &rig->error);
    if (rig->sources.count > 1)
        qsort(rig->sources.paths, rig->sources.count, sizeof(struct slice), compare_slices);
    uint32_t waiting = rig_read(rig, rig->sources.paths, rig->sources.count);
    ck_assert_uint_eq(rig_read(rig, rig->sources.paths, waiting), 0);
}

static inline void *rig_thread(void *context) {
    struct rig *rig = context;
    struct error error;
    ck_assert_int_eq(receiver_file.receiver.run(&rig->receiver, rig->feed, &error), STATUS_OK);
    return NULL;
}

static inline void rig_run(struct rig *rig) {
    rig->context.once = false;
    rig_start(rig);
    ck_assert_int_eq(pthread_create(&rig->thread, NULL, rig_thread, rig), 0);
}

static inline void rig_stop(struct rig *rig) {
    fake_feed_stop(rig->feed);
    ck_assert_int_eq(pthread_join(rig->thread, NULL), 0);
}

// Waits, with no bound but the test's own, until so many records have been handed over.
static inline void rig_await(struct rig *rig, uint32_t count) {
    while (fake_feed_accepted(rig->feed, NULL) < count)
        clock_sleep_ns(1000 * 1000);
}

static inline void rig_await_note(struct rig *rig, const char *one, const char *other) {
    while (!fake_feed_noted(rig->feed, one, other))
        clock_sleep_ns(1000 * 1000);
}

// Each of the records 1 to `count` came exactly once.
static inline void rig_check_once_each(struct rig *rig, uint32_t count) {
    uint8_t *seen = calloc(count + 1, 1);
    for (uint32_t i = 0; i < rig->feed->count; i++) {
        int number = 0;
        ck_assert_msg(sscanf(rig->feed->records[i].text, "{\"timestamp\":%d.5", &number) == 1, "%s",
                      rig->feed->records[i].text);
        ck_assert_msg(number >= 1 && number <= (int)count, "record %d", number);
        ck_assert_msg(seen[number]++ == 0, "record %d came twice", number);
    }
    ck_assert_uint_eq(rig->feed->count, count);
    free(seen);
}

// -- one receiver that follows files ------------------------------------------------------------

static struct rig rig;
static const char *followed[1];

static inline void follow(const char *path) {
    followed[0] = path;
    rig_init(&rig, followed, 1);
    rig_run(&rig);
}

// Stops and checks that the records 1 to `count` came exactly once and none was refused.
static inline void finish(uint32_t count) {
    rig_stop(&rig);
    rig_check_once_each(&rig, count);
    ck_assert_uint_eq(fake_feed_refused(rig.feed, DECODE_OK), count);
    rig_free(&rig);
}
