// SPDX-License-Identifier: Apache-2.0
// Blocks that are read and decoded ahead: the same bytes in the same order with any number of
// threads, lines of any length, and events only of lines that decode to them.
#include "base/arena.h"
#include "base/buffer.h"
#include "base/hash/hash.h"
#include "base/memory.h"
#include "base/text/cut.h"
#include "pipeline/model/telemetry_event.h"
#include "receivers/decode/flight_recorder/flight_recorder.h"
#include "receivers/decode/forms/forms.h"
#include "receivers/decode/telemetry/telemetry.h"
#include "receivers/file/ahead.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCK = 4096, LONGEST = 1 << 20 };

static int descriptor;
static struct buffer text;

static void setup(void) {
    char path[] = "/tmp/test_ahead.XXXXXX";
    descriptor = mkstemp(path);
    ck_assert_int_ge(descriptor, 0);
    unlink(path);
    buffer_init(&text, 64 << 20);
}

static void teardown(void) {
    close(descriptor);
    buffer_release(&text);
    intern_release();
}

static void append_sample(uint64_t number, const char *host) {
    buffer_append_format(
        &text,
        "{\"schema_version\": 2, \"timestamp_ns\": %llu, \"event_type\": \"sample\", "
        "\"collector\": \"stormlog.cuda_tracker\", \"sampling_interval_ms\": 100, \"pid\": 7, "
        "\"host\": \"%s\", \"device_id\": 0, \"allocator_allocated_bytes\": %llu, "
        "\"allocator_reserved_bytes\": 9000000, \"allocator_active_bytes\": null, "
        "\"allocator_inactive_bytes\": null, \"allocator_change_bytes\": 0, "
        "\"device_used_bytes\": 9000000, \"device_free_bytes\": null, "
        "\"device_total_bytes\": null, \"context\": null, \"job_id\": \"j\", \"rank\": 3, "
        "\"local_rank\": 3, \"world_size\": 8, \"metadata\": {}}\n",
        (unsigned long long)(UINT64_C(1700000000000000000) + number), host,
        (unsigned long long)(number % 9000000));
}

static void append_long_line(size_t size) {
    for (size_t i = 0; i < size; i++)
        buffer_append_char(&text, (char)('a' + i % 26));
    buffer_append_char(&text, '\n');
}

// What a taker sees.
struct taken {
    uint64_t bytes_hash;
    size_t bytes;
    uint64_t foreseen;
    uint64_t wrong; // events that are not those of their lines
};

static bool is_event_of(const struct event *event, struct slice line) {
    struct arena arena;
    arena_init(&arena, 4096);
    void *state = memory_zero(1, decoder_stormlog.state_size + 1);
    struct event own = {0};
    struct decode_fault fault;
    bool same = decoder_stormlog.decode(state, line, &arena, &own, &fault) == DECODE_OK &&
                own.time_ns == event->time_ns && own.job == event->job && own.node == event->node &&
                own.rank == event->rank && own.telemetry->session == event->telemetry->session &&
                own.telemetry->allocated_bytes == event->telemetry->allocated_bytes;
    arena_release(&arena);
    memory_give(state);
    return same;
}

static struct taken take_all(struct ahead *ahead, bool check) {
    struct taken taken = {.bytes_hash = HASH_START};
    struct file_input input = {.descriptor = -1, .stop_descriptor = -1};
    struct error error;
    ck_assert_int_eq(lseek(descriptor, 0, SEEK_SET), 0);
    ck_assert_int_eq(file_input_attach(&input, descriptor, &error), STATUS_OK);
    ck_assert(ahead_begin(ahead, &input, UINT64_MAX, LONGEST, NULL));
    struct slice rest = {NULL, 0};
    struct ahead_block block;
    for (ahead_next(ahead, rest, &block); block.read > 0; ahead_next(ahead, rest, &block)) {
        size_t used = block.size;
        while (used > 0 && block.data[used - 1] != '\n')
            used--;
        ck_assert_mem_eq(block.data, text.data + taken.bytes, block.size);
        taken.bytes_hash = hash_more(taken.bytes_hash, block.data, used);
        taken.bytes += used;
        const char *before = block.data;
        for (uint32_t i = 0; i < block.foreseen_count; i++) {
            struct slice line = block.foreseen[i].raw;
            ck_assert(line.data >= before && line.data + line.size <= block.data + used);
            ck_assert(line.data == block.data || line.data[-1] == '\n');
            before = line.data + line.size;
            taken.wrong += check && !is_event_of(&block.foreseen[i], line);
        }
        taken.foreseen += block.foreseen_count;
        rest = (struct slice){block.data + used, block.size - used};
    }
    ck_assert_int_eq(block.status, STATUS_OK);
    ck_assert_uint_eq(block.size, rest.size); // the line that no newline ends
    taken.bytes_hash = hash_more(taken.bytes_hash, block.data, block.size);
    taken.bytes += block.size;
    ahead_end(ahead);
    file_input_release(&input);
    return taken;
}

// The names of the samples, as if lines before had brought them.
static void know_names(const char *host) {
    static const char *const names[] = {"sample", "stormlog.cuda_tracker", "j"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)intern(slice_of(names[i]));
    (void)intern(slice_of(host));
}

static void put_text(void) {
    ck_assert(!text.failed);
    ck_assert_int_eq(pwrite(descriptor, text.data, text.size, 0), (ssize_t)text.size);
}

START_TEST(same_bytes_with_any_number_of_threads) {
    for (uint64_t i = 0; i < 20000; i++) {
        append_sample(i, i < 10000 ? "alpha" : "beta");
        if (i % 97 == 0)
            append_long_line(i % 7 == 0 ? 80000 : i); // also beyond the room before a block
        if (i % 31 == 0)
            buffer_append_text(&text, "\r\n\n  \n{\"torn\": \n");
    }
    buffer_append_text(&text, "no newline");
    put_text();
    know_names("alpha");
    know_names("beta");
    static const uint32_t threads[] = {2, 3, 7};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        struct ahead *ahead = ahead_new(threads[i], BLOCK);
        for (int round = 0; round < 3; round++) {
            struct taken taken = take_all(ahead, round == 0);
            ck_assert_uint_eq(taken.bytes, text.size);
            ck_assert(taken.bytes_hash == hash_more(HASH_START, text.data, text.size));
            ck_assert_uint_eq(taken.wrong, 0);
            ck_assert_uint_gt(taken.foreseen, 10000);
        }
        ahead_free(ahead);
    }
}
END_TEST

START_TEST(names_are_left_to_the_taker) {
    for (uint64_t i = 0; i < 2000; i++)
        append_sample(i, "never-seen");
    put_text();
    string_id before = intern_count();
    struct ahead *ahead = ahead_new(3, BLOCK);
    ck_assert_uint_eq(take_all(ahead, false).foreseen, 0);
    ck_assert_uint_eq(intern_count(), before);
    ck_assert_uint_eq(intern_find(SLICE("never-seen")), STRING_NONE);
    know_names("never-seen");
    ck_assert_uint_gt(take_all(ahead, true).foreseen, 1000);
    ahead_free(ahead);
}
END_TEST

// Of the lines behind the first of a block, each that may be of interest, and no other.
static uint32_t check_found(const struct ahead_block *block) {
    const struct found_lines *found = &block->found;
    const struct found_line *next = found->lines;
    uint32_t lines = 0;
    if (found->count == 0)
        return 0;
    ck_assert(found->text.data > block->data && found->text.data[-1] == '\n');
    for (struct slice rest = found->text; rest.size > 0; lines++) {
        size_t at = (size_t)(rest.data - found->text.data);
        bool is_told = next->at == at;
        struct slice line = text_take_line(&rest), behind;
        ck_assert_int_eq(is_told, text_find(line, SLICE("ValueError"), &behind));
        ck_assert(!is_told || (next->kind == FOUND_MAYBE && next->lines == lines));
        next += is_told;
    }
    ck_assert(next == &found->lines[found->count - 1] && next->kind == FOUND_NOTHING);
    ck_assert_uint_eq(next->at, found->text.size);
    ck_assert_uint_eq(next->lines, lines);
    return found->count - 1;
}

START_TEST(logs_are_searched) {
    for (int i = 0; i < 40000; i++)
        buffer_append_format(&text, i % 50 == 0 ? "ValueError: bad loss %d\n" : "quiet line %d\n",
                             i);
    put_text();
    for (uint32_t threads = 2; threads < 6; threads++) {
        struct ahead *ahead = ahead_new(threads, BLOCK);
        struct file_input input = {.descriptor = -1, .stop_descriptor = -1};
        struct error error;
        uint32_t found = 0;
        ck_assert_int_eq(lseek(descriptor, 0, SEEK_SET), 0);
        ck_assert_int_eq(file_input_attach(&input, descriptor, &error), STATUS_OK);
        ck_assert(ahead_begin(ahead, &input, UINT64_MAX, LONGEST, forms_builtin()));
        struct slice rest = {NULL, 0};
        struct ahead_block block;
        for (ahead_next(ahead, rest, &block); block.read > 0; ahead_next(ahead, rest, &block)) {
            size_t used = block.size;
            while (used > 0 && block.data[used - 1] != '\n')
                used--;
            found += check_found(&block);
            rest = (struct slice){block.data + used, block.size - used};
        }
        ahead_end(ahead);
        file_input_release(&input);
        ahead_free(ahead);
        ck_assert_uint_gt(found, 700); // but for those that the first line of a block is
    }
}
END_TEST

// A taker that stops in the middle, as when the run is stopped.
START_TEST(ends_early) {
    for (uint64_t i = 0; i < 20000; i++)
        append_sample(i, "alpha");
    put_text();
    struct ahead *ahead = ahead_new(4, BLOCK);
    for (int blocks = 0; blocks < 40; blocks++) {
        struct file_input input = {.descriptor = -1, .stop_descriptor = -1};
        struct error error;
        ck_assert_int_eq(lseek(descriptor, 0, SEEK_SET), 0);
        ck_assert_int_eq(file_input_attach(&input, descriptor, &error), STATUS_OK);
        ck_assert(ahead_begin(ahead, &input, UINT64_MAX, LONGEST, NULL));
        struct ahead_block block;
        for (int i = 0; i < blocks; i++)
            ahead_next(ahead, (struct slice){NULL, 0}, &block);
        ahead_end(ahead);
        file_input_release(&input);
    }
    ahead_free(ahead);
}
END_TEST

// As of a file that is followed: from the middle on, and no more than was asked for.
START_TEST(a_part_of_a_file) {
    enum { OFFSET = 100000, PART = 5 * BLOCK + 1 };
    for (uint64_t i = 0; i < 2000; i++)
        append_sample(i, "alpha");
    put_text();
    know_names("alpha");
    struct ahead *ahead = ahead_new(3, BLOCK);
    for (int round = 0; round < 20; round++) {
        struct file_input input = {.stop_descriptor = -1};
        struct error error;
        ck_assert_int_eq(file_input_attach_plain(&input, descriptor, OFFSET, &error), STATUS_OK);
        ck_assert(ahead_begin(ahead, &input, PART, LONGEST, NULL));
        struct ahead_block block;
        size_t read = 0, foreseen = 0;
        for (;; read += block.read, foreseen += block.foreseen_count) {
            ahead_next(ahead, (struct slice){NULL, 0}, &block);
            if (block.read == 0)
                break;
            ck_assert_mem_eq(block.data, text.data + OFFSET + read, block.read);
        }
        ahead_end(ahead);
        ck_assert_int_eq(block.status, STATUS_OK);
        ck_assert_uint_eq(read, 6 * BLOCK);
        ck_assert_uint_gt(foreseen, 10);
        file_input_release(&input);
    }
    ahead_free(ahead);
}
END_TEST

// -- files --------------------------------------------------------------------------------------

enum { FILES = 60 };

static char folder[] = "/tmp/test_ahead_files.XXXXXX";
static struct ahead_path paths[FILES];

static void put_file(unsigned number) {
    struct ahead_path *path = &paths[number];
    char name[64];
    int size = snprintf(name, sizeof name, "%s/%u", folder, number);
    path->path = (struct slice){memory_copy_text(name, (size_t)size), (size_t)size};
    path->size = text.size;
    FILE *file = fopen(name, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text.data, 1, text.size, file), text.size);
    ck_assert_int_eq(fclose(file), 0);
}

// Each brings a name of its own in its first line, and another one behind a line that is no event.
static void put_files(void) {
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (unsigned i = 0; i < FILES; i++) {
        char host[32];
        buffer_reset(&text);
        snprintf(host, sizeof host, "host-%u", i);
        append_sample(i, host);
        buffer_append_text(&text, "\n{\"torn\"\r\n");
        for (unsigned j = 0; j < i * 3; j++) {
            snprintf(host, sizeof host, "host-%u-%u", i, j / 7);
            append_sample(j, host);
        }
        if (i % 4 == 1)
            buffer_append_text(&text, "no newline");
        put_file(i);
    }
}

static void remove_files(void) {
    for (unsigned i = 0; i < FILES; i++) {
        ck_assert_int_eq(unlink(paths[i].path.data), 0);
        memory_give((char *)(uintptr_t)paths[i].path.data);
    }
    ck_assert_int_eq(rmdir(folder), 0);
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
}

// Takes the file; what was decoded of it is what its lines say, with ids in the order of the lines.
static uint32_t check_file(struct ahead *ahead, unsigned number, struct file_input *input) {
    struct ahead_file file;
    if (!ahead_file_take(ahead, paths[number].path, input, &file))
        return 0;
    ck_assert_uint_ge(file.size, BLOCK < paths[number].size ? BLOCK : paths[number].size);
    string_id ids[INTERN_LATER_MAX];
    uint32_t named = 0;
    for (uint32_t i = 0; i < file.foreseen_count; i++) {
        struct event *event = &file.foreseen[i];
        if (file.later != NULL) {
            for (; named < event->position; named++) {
                string_id before = intern_count();
                ids[named] = intern(file.later->names[named]);
                ck_assert_uint_eq(ids[named], before + 1);
            }
            ck_assert(telemetry_settle_names(event, ids));
        }
        ck_assert(is_event_of(event, event->raw));
    }
    file_input_close(input);
    ahead_file_done(ahead);
    return file.foreseen_count;
}

START_TEST(files_are_taken_in_order) {
    put_files();
    know_names("alpha");
    struct ahead *ahead = ahead_new(3, BLOCK);
    struct file_input input = {.descriptor = -1, .stop_descriptor = -1};
    const struct ahead_file_options options = {
        .line_max = LONGEST, .forms = forms_builtin(), .stop_descriptor = -1};
    uint32_t events = 0;
    // How many somebody had begun with is chance.
    for (int round = 0; round < 2 || events < 1000; round++) {
        ahead_files_begin(ahead, paths, FILES, options);
        for (unsigned i = 0; i < FILES; i++) {
            usleep(200);
            events += check_file(ahead, i, &input);
        }
        struct ahead_file none;
        ck_assert(!ahead_file_take(ahead, paths[0].path, &input, &none));
    }
    // Another one than the next is the caller's, and changes nothing.
    ahead_files_begin(ahead, paths, FILES, options);
    struct ahead_file none;
    ck_assert(!ahead_file_take(ahead, paths[1].path, &input, &none));
    for (unsigned i = 0; i < FILES / 2; i++)
        events += check_file(ahead, i, &input);
    ahead_free(ahead); // in the middle
    file_input_release(&input);
    remove_files();
}
END_TEST

START_TEST(a_file_that_is_gone_is_left_to_the_taker) {
    put_files();
    struct ahead *ahead = ahead_new(2, BLOCK);
    struct file_input input = {.descriptor = -1, .stop_descriptor = -1};
    for (unsigned i = 0; i < FILES; i += 2)
        ck_assert_int_eq(unlink(paths[i].path.data), 0);
    ahead_files_begin(ahead, paths, FILES,
                      (struct ahead_file_options){.line_max = LONGEST, .stop_descriptor = -1});
    for (unsigned i = 0; i < FILES; i++) {
        struct ahead_file file;
        bool taken = ahead_file_take(ahead, paths[i].path, &input, &file);
        ck_assert(!taken || i % 2 == 1);
        file_input_close(&input);
        if (taken)
            ahead_file_done(ahead);
    }
    ahead_files_end(ahead);
    ahead_free(ahead);
    file_input_release(&input);
    for (unsigned i = 0; i < FILES; i += 2) {
        memory_give((char *)(uintptr_t)paths[i].path.data);
        put_file(i);
    }
    remove_files();
}
END_TEST

// The dumps of Flight Recorders: longer than a block in JSON, or a pickle of nothing; and one with
// a fault, of which the taker says what it is.
static bool put_dump(unsigned i) {
    static const char PICKLE[] = "\x80\x02}X\x07\0\0\0entries]s.";
    buffer_reset(&text);
    if (i % 3 == 0) {
        buffer_append(&text, (struct slice){PICKLE, sizeof PICKLE - 1});
        put_file(i);
        return true;
    }
    buffer_append_text(&text, "{\"version\":\"2.10\",\"entries\":[");
    for (unsigned n = 0; n < 5000; n++)
        buffer_append_format(&text,
                             "%s{\"process_group\":[\"0\",\"all\"],\"collective_seq_id\":%u}",
                             n == 0 ? "" : ",", n + 1);
    buffer_append_text(&text, i % 3 == 1 ? "]}" : "]]");
    put_file(i);
    return i % 3 == 1;
}

START_TEST(dumps_are_parsed_ahead) {
    enum { DUMP_BLOCK = 64 << 10, DUMPS = 12 };
    bool is_right[FILES];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (unsigned i = 0; i < FILES; i++)
        is_right[i] = i < DUMPS ? put_dump(i) : (put_file(i), false);
    struct ahead *ahead = ahead_new(3, DUMP_BLOCK);
    struct file_input input = {.descriptor = -1, .stop_descriptor = -1};
    const struct ahead_file_options options = {
        .line_max = LONGEST, .documents = true, .stop_descriptor = -1};
    unsigned json = 0, pickles = 0;
    // How many somebody had begun with is chance.
    while (json < DUMPS || pickles < DUMPS) {
        ahead_files_begin(ahead, paths, DUMPS, options);
        for (unsigned i = 0; i < DUMPS; i++) {
            struct ahead_file file;
            usleep(500);
            if (!ahead_file_take(ahead, paths[i].path, &input, &file))
                continue;
            ck_assert_uint_eq(file.size, paths[i].size);
            const struct decoder_type *parser = i % 3 == 0    ? &decoder_flight_pickle
                                                : is_right[i] ? &decoder_flight_json
                                                              : NULL;
            ck_assert_ptr_eq(file.parser, parser);
            ck_assert((file.parsed != NULL) == is_right[i]);
            json += i % 3 == 1;
            pickles += i % 3 == 0;
            file_input_close(&input);
            ahead_file_done(ahead);
        }
        ahead_files_end(ahead);
    }
    ahead_free(ahead);
    file_input_release(&input);
    remove_files();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ahead");
    TCase *all = tcase_create("ahead");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, same_bytes_with_any_number_of_threads);
    tcase_add_test(all, names_are_left_to_the_taker);
    tcase_add_test(all, logs_are_searched);
    tcase_add_test(all, ends_early);
    tcase_add_test(all, a_part_of_a_file);
    tcase_add_test(all, files_are_taken_in_order);
    tcase_add_test(all, a_file_that_is_gone_is_left_to_the_taker);
    tcase_add_test(all, dumps_are_parsed_ahead);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
