// SPDX-License-Identifier: Apache-2.0
// Does the store keep what it said was safe, whatever a power failure leaves of its files?
//
//     power_loss [SEEDS [FIRST]]         (2,000 from 1)
//     power_loss state LOG BYTES SEED FOLDER
//         one state of a log that disk_record.c wrote elsewhere, of its first BYTES bytes
//
// The real store runs a script of batches over real files while disk_record.c writes down what
// reaches them. Then the power fails: at each point of that log in turn, disk_image.c makes a state
// that a disk may then hold, and the store is opened on it. It must open by itself, hold exactly
// the first N batches for some N, none of those it had called durable missing, and find nothing
// damaged. Some states are spun on: the power fails again while the store recovers, or while it
// repairs a file of which a byte was flipped; a repair that is cut short must end as one that is
// not. A failure says its seed; the same seed runs the same script (but for how batches were
// grouped, which is up to the clock: the log of a failure is kept).
#include "base/log.h"
#include "base/memory.h"
#include "extensions/file_storage/store.h"
#include "tests/fault/disk_image.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

enum {
    BATCHES = 200,
    SEEDS_A_SCRIPT = 2500,
    NUMBERS = 24,
    NAME_COUNT = 4,
    BLOB_MAX = 6000,
    MARK_SUBMITTED = 1,
    MARK_DURABLE = 2,
    MARK_AFTER = 3, // the row that is put after a recovery is durable
};

static const struct {
    enum storage_space space;
    const char *text;
} NAMES[NAME_COUNT] = {{STORAGE_STATE, "all/rank_group/rows"},
                       {STORAGE_JOURNAL, "http"},
                       {STORAGE_QUEUE, "json"},
                       {STORAGE_STRINGS, ""}};

static char folder[64], crash_folder[64], again_folder[64];
static struct error problem;

static struct { uint64_t seeds, states, twice, repairs, points, operations; } figures;

// -- dice ---------------------------------------------------------------------------------------

static uint64_t dice_state;
static uint64_t dice(uint64_t below) {
    dice_state = dice_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (dice_state >> 33) % below;
}

static uint64_t hash_of(const void *bytes, size_t size, uint64_t hash) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    return hash;
}

// -- what should be there -----------------------------------------------------------------------

// A row's hash, 0 when it is not there; the hash of a state is their sum.
static uint64_t rows[NAME_COUNT][NUMBERS];
static uint64_t state_after[BATCHES + 1];

static uint64_t row_hash(int name, uint64_t number, const void *bytes, size_t size) {
    return hash_of(bytes, size, UINT64_C(14695981039346656037) + number * 31 + (uint64_t)name) | 1;
}

static uint64_t rows_sum(void) {
    uint64_t sum = 0;
    for (int name = 0; name < NAME_COUNT; name++)
        for (int i = 0; i < NUMBERS; i++)
            sum += rows[name][i];
    return sum;
}

static void put_any(struct storage_batch *batch, int name) {
    static char bytes[BLOB_MAX];
    uint64_t number = dice(NUMBERS), size = dice(4) == 0 ? dice(BLOB_MAX) : dice(200);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)dice(256);
    rows[name][number] = row_hash(name, number, bytes, size);
    storage_put(batch, NAMES[name].space, NAMES[name].text, number,
                (struct slice){bytes, (size_t)size});
}

static void delete_any(struct storage_batch *batch, int name) {
    if (dice(6) == 0) {
        storage_delete_names(batch, NAMES[name].space, NAMES[name].text);
        memset(rows[name], 0, sizeof rows[name]);
        return;
    }
    uint64_t first = dice(NUMBERS), last = first + dice(NUMBERS - first);
    storage_delete(batch, NAMES[name].space, NAMES[name].text, first, last);
    for (uint64_t i = first; i <= last; i++)
        rows[name][i] = 0;
}

// -- stores -------------------------------------------------------------------------------------

static bool opened(struct storage **store, const char *where) {
    struct store_options options = {.directory = where,
                                    .create_directory = true,
                                    .max_size = 64 << 20,
                                    .commit_interval_ns = 100000,
                                    .site = "extension/file_storage"};
    return store_open(store, &options, &problem) == STATUS_OK;
}

// Runs the script and gives the log of what it did to the files.
static struct disk_log script_run(uint64_t seed) {
    struct storage *store = NULL;
    dice_state = seed * 7919 + 1;
    memset(rows, 0, sizeof rows);
    state_after[0] = 0;
    disk_record_begin(folder);
    if (!opened(&store, folder))
        goto failed;
    for (uint64_t i = 1; i <= BATCHES; i++) {
        struct storage_batch *batch = storage_batch_new(store);
        for (uint64_t part = 1 + dice(5); part > 0; part--) {
            int name = (int)dice(NAME_COUNT);
            if (dice(5) == 0)
                delete_any(batch, name);
            else
                put_any(batch, name);
        }
        state_after[i] = rows_sum();
        disk_record_mark(MARK_SUBMITTED, i);
        uint64_t ticket = storage_submit(batch);
        bool reopen = dice(60) == 0;
        if (dice(2) == 0 || reopen || i == BATCHES) {
            if (storage_wait(store, ticket, 60 * SECOND, &problem) != STATUS_OK)
                goto failed;
            disk_record_mark(MARK_DURABLE, i);
        }
        if (reopen) {
            store_close(store, 10 * SECOND);
            if (!opened(&store, folder))
                goto failed;
        }
    }
    store_close(store, 10 * SECOND);
    return disk_record_end();
failed:
    fprintf(stderr, "power_loss: the script of seed %llu: %s\n", (unsigned long long)seed,
            problem.message);
    exit(1);
}

struct found {
    uint64_t state; // hash of the rows
    uint64_t rows;
    bool after; // the row that is put after a recovery
    bool strange;
    struct storage_statistics figures;
};

static bool visit_row(void *context, const char *name, uint64_t number, struct slice bytes) {
    struct found *found = context;
    if (strcmp(name, "after") == 0) {
        found->after = true;
        return true;
    }
    int which = 0;
    while (which < NAME_COUNT && strcmp(NAMES[which].text, name) != 0)
        which++;
    if (which == NAME_COUNT || number >= NUMBERS) {
        found->strange = true;
        return false;
    }
    found->state += row_hash(which, number, bytes.data, bytes.size);
    found->rows++;
    return true;
}

// Opens a store, reads all of it, and with `go_on` writes a row more and sees it durable.
static bool look(const char *where, bool go_on, struct found *found) {
    struct storage *store = NULL;
    *found = (struct found){0};
    if (!opened(&store, where))
        return false;
    bool good = true;
    for (int space = 0; space < STORAGE_SPACE_COUNT && good; space++)
        good = storage_scan(store, (enum storage_space)space, NULL, 0, UINT64_MAX, visit_row, found,
                            &problem) == STATUS_OK;
    if (good && go_on) {
        struct storage_batch *batch = storage_batch_new(store);
        storage_put(batch, STORAGE_META, "after", 1, slice_of("after"));
        good = storage_wait(store, storage_submit(batch), 60 * SECOND, &problem) == STATUS_OK;
        disk_record_mark(MARK_AFTER, 0);
    }
    storage_statistics(store, &found->figures);
    store_close(store, 10 * SECOND);
    return good;
}

// -- judging ------------------------------------------------------------------------------------

struct expected {
    uint64_t durable, submitted; // batches
};

static bool fits(const struct found *found, const struct expected *expected) {
    // A file whose making was cut short is made anew; else nothing is damaged, and nothing told.
    bool is_told = found->figures.repairs > 0 && expected->durable > 0;
    if (found->strange || found->figures.damaged_blobs > 0 || is_told)
        return false;
    for (uint64_t i = expected->durable; i <= expected->submitted; i++)
        if (found->state == state_after[i])
            return true;
    return false;
}

_Noreturn static void failed(const char *what, uint64_t seed, const struct disk_log *log, size_t at,
                             const struct found *found) {
    char path[64];
    snprintf(path, sizeof path, "power_loss-%llu.log", (unsigned long long)seed);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file >= 0 && write(file, log->data, log->size) == (ssize_t)log->size)
        fprintf(stderr, "power_loss: the log is kept in %s\n", path);
    fprintf(stderr,
            "FAILED: seed %llu, record at byte %zu: %s: %llu rows, %llu damaged, %llu repairs%s "
            "(%s); the state is in %s\n",
            (unsigned long long)seed, at, what, (unsigned long long)found->rows,
            (unsigned long long)found->figures.damaged_blobs,
            (unsigned long long)found->figures.repairs,
            found->strange ? ", a row that nobody put" : "", problem.message, crash_folder);
    exit(1);
}

// The power fails again while the store recovers from the state in crash_folder.
static const char *fail_again(uint64_t seed, const struct expected *expected, struct found *found) {
    struct disk_log log = {0};
    disk_record_begin(crash_folder);
    struct disk_image *image = disk_image_new(crash_folder, &log);
    const struct disk_record *record;
    const char *wrong = look(crash_folder, true, found) ? NULL : "it does not open";
    log = disk_record_end();
    if (wrong == NULL && !fits(found, expected))
        wrong = "after a recovery that was recorded";
    bool after = false;
    uint64_t until = 0, count = 0;
    for (size_t at = 0; at < log.size; count++)
        at += disk_record_size((const struct disk_record *)(const void *)(log.data + at));
    for (until = 1 + seed % (count + 1); until > 1 && disk_image_step(image, &record); until--)
        after = after || (record->kind == DISK_MARK && record->offset == MARK_AFTER);
    if (wrong == NULL) {
        disk_crash(image, seed * 31, again_folder);
        if (!look(again_folder, false, found))
            wrong = "it does not open after a second failure";
        else if (!fits(found, expected) || (after && !found->after))
            wrong = "after a second failure";
    }
    disk_image_free(image);
    free(log.data);
    figures.twice++;
    return wrong;
}

// A byte of the store is wrong; the power fails while it is repaired.
static const char *fail_in_repair(uint64_t seed, struct found *found) {
    char path[96];
    struct found whole;
    snprintf(path, sizeof path, "%s/culprit.db", crash_folder);
    struct stat about;
    unsigned char byte = 0;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return NULL; // the name was lost: nothing was durable yet
    if (fstat(file, &about) != 0 || about.st_size < 8192) {
        close(file);
        return NULL;
    }
    off_t at = (off_t)(seed * 2654435761u % (uint64_t)about.st_size);
    bool done = pread(file, &byte, 1, at) == 1;
    byte ^= 0x55;
    done = done && pwrite(file, &byte, 1, at) == 1;
    close(file);
    struct disk_log log = {0};
    struct disk_image *image = disk_image_new(crash_folder, &log);
    const struct disk_record *record;
    disk_record_begin(crash_folder);
    const char *wrong = done && look(crash_folder, false, &whole) ? NULL : "it is not repaired";
    log = disk_record_end();
    uint64_t count = 0;
    for (size_t byte_at = 0; byte_at < log.size; count++)
        byte_at += disk_record_size((const struct disk_record *)(const void *)(log.data + byte_at));
    for (uint64_t until = seed % (count + 1); until > 0 && disk_image_step(image, &record); until--)
        continue;
    if (wrong == NULL) {
        disk_crash(image, seed * 37, again_folder);
        if (!look(again_folder, false, found))
            wrong = "it does not open after a failure in a repair";
        else if (found->strange || found->state != whole.state)
            wrong = "a repair that was cut short ends otherwise";
    }
    disk_image_free(image);
    free(log.data);
    figures.repairs++;
    return wrong;
}

static void state_check(const struct disk_image *image, uint64_t seed, const struct disk_log *log,
                        size_t at, const struct expected *expected) {
    struct found found = {0};
    const char *wrong = NULL;
    disk_crash(image, seed, crash_folder);
    if (seed % 16 == 3) {
        wrong = fail_again(seed, expected, &found);
    } else if (seed % 16 == 7) {
        wrong = fail_in_repair(seed, &found);
    } else if (!look(crash_folder, seed % 16 == 5, &found)) {
        wrong = "it does not open";
    } else if (!fits(&found, expected)) {
        wrong = "what is there is not what some batch left";
    }
    if (wrong != NULL)
        failed(wrong, seed, log, at, &found);
    figures.states++;
}

// All points of one script's log, each as often as `seeds` allows.
static void script_check(uint64_t first, uint64_t seeds) {
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s && mkdir %s", folder, folder);
    if (system(command) != 0)
        exit(70);
    struct disk_log log = {0}, empty = {0};
    struct disk_image *image = disk_image_new(folder, &log);
    log = script_run(first);
    (void)empty;
    uint64_t points = 0, done = 0, point = 0;
    for (size_t at = 0; at < log.size; points++)
        at += disk_record_size((const struct disk_record *)(const void *)(log.data + at));
    struct expected expected = {0};
    const struct disk_record *record;
    while (disk_image_step(image, &record)) {
        size_t at = (size_t)((const uint8_t *)record - log.data);
        if (record->kind == DISK_MARK && record->offset == MARK_SUBMITTED)
            expected.submitted = record->size;
        if (record->kind == DISK_MARK && record->offset == MARK_DURABLE)
            expected.durable = record->size;
        for (point++; done < seeds * point / points; done++)
            state_check(image, first + done, &log, at, &expected);
    }
    figures.points += points;
    figures.operations += BATCHES;
    disk_image_free(image);
    free(log.data);
}

// -- logs of others -----------------------------------------------------------------------------

static int write_state(char **arguments) {
    int file = open(arguments[0], O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (file < 0 || fstat(file, &about) != 0) {
        perror(arguments[0]);
        return 66;
    }
    struct disk_log log = {.size = (size_t)about.st_size};
    log.data = malloc(log.size + 1);
    if (log.data == NULL || read(file, log.data, log.size) != (ssize_t)log.size)
        return 70;
    close(file);
    uint64_t until = strtoull(arguments[1], NULL, 10);
    if (until < log.size)
        log.size = (size_t)until;
    char begin[] = "/tmp/culprit-power-XXXXXX"; // it began with nothing
    if (mkdtemp(begin) == NULL)
        return 70;
    struct disk_image *image = disk_image_new(begin, &log);
    rmdir(begin);
    const struct disk_record *record;
    while (disk_image_step(image, &record))
        continue;
    disk_crash(image, strtoull(arguments[2], NULL, 10), arguments[3]);
    disk_image_free(image);
    free(log.data);
    return 0;
}

static void folders_make(void) {
    char base[48];
    snprintf(base, sizeof base, "%s/culprit-power-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(base) == NULL)
        exit(70);
    snprintf(folder, sizeof folder, "%s/live", base);
    snprintf(crash_folder, sizeof crash_folder, "%s/state", base);
    snprintf(again_folder, sizeof again_folder, "%s/again", base);
    if (mkdir(crash_folder, 0700) != 0 || mkdir(again_folder, 0700) != 0)
        exit(70);
}

int main(int count, char **arguments) {
    if (count == 6 && strcmp(arguments[1], "state") == 0)
        return write_state(arguments + 2);
    uint64_t seeds = count > 1 ? strtoull(arguments[1], NULL, 10) : 2000;
    uint64_t first = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    log_configure((enum log_level)(LOG_ERROR + 1), LOG_CONSOLE);
    folders_make();
    for (uint64_t done = 0; done < seeds; done += SEEDS_A_SCRIPT) {
        uint64_t part = seeds - done < SEEDS_A_SCRIPT ? seeds - done : SEEDS_A_SCRIPT;
        script_check(first + done, part);
    }
    char command[256];
    *strrchr(folder, '/') = '\0';
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        return 70;
    printf("%llu states of %llu points, %llu of them failed again, %llu in a repair\n",
           (unsigned long long)figures.states, (unsigned long long)figures.points,
           (unsigned long long)figures.twice, (unsigned long long)figures.repairs);
    return figures.states == seeds && seeds > 0 ? 0 : 1;
}
