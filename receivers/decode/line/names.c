// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/line/names.h"

#include "base/text/cut.h"
#include "receivers/decode/forms/rows.h"

#include <ctype.h>
#include <strings.h>

enum {
    WINDOW = 16, // lines; then all that was counted is halved
    ENOUGH = 3,  // lines of one family
    ALL = 8,     // of so many lines …
    NEARLY = 7,  // … so many have the prefix
    TAKEN = 31,  // the bit of peel->named that says that one was taken
};
_Static_assert((int)NAMES_ROWS_MAX <= (int)TAKEN, "each row has a bit");

// -- names ----------------------------------------------------------------------------------------

static struct slice letters_of(struct slice name) {
    size_t size = 0;
    while (size < name.size && isalpha((unsigned char)name.data[size]))
        size++;
    return (struct slice){name.data, size};
}

// Words that programs number or put before a value, levels of loggers, and programs that write
// names of hosts behind their own. Hosts are called gpu3, but not GPU3.
static bool is_other_word(struct slice letters) {
    static const char *const words[] = {
        "rank",  "local",   "global",    "step",       "steps", "iter",     "iteration", "epoch",
        "batch", "micro",   "cuda",      "device",     "layer", "stage",    "fold",      "trial",
        "run",   "test",    "task",      "job",        "shard", "thread",   "proc",      "level",
        "loss",  "lr",      "version",   "v",          "phase", "round",    "chunk",     "split",
        "part",  "file",    "line",      "checkpoint", "ckpt",  "token",    "sample",    "image",
        "frame", "attempt", "retry",     "try",        "pid",   "tid",      "process",   "exit",
        "code",  "signal",  "eth",       "ib",         "mlx",   "hca",      "nvme",      "debug",
        "info",  "warn",    "warning",   "error",      "fatal", "critical", "trace",     "notice",
        "srun",  "slurmd",  "slurmstepd"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (letters.size == strlen(words[i]) &&
            strncasecmp(letters.data, words[i], letters.size) == 0)
            return true;
    return slice_equal(letters, SLICE("GPU"));
}

// "train2.py", as compilers and warnings have it in front of the number of a line.
static bool is_file(struct slice name) {
    static const struct slice ends[] = {{"py", 2}, {"c", 1},   {"cc", 2}, {"cpp", 3}, {"cu", 2},
                                        {"h", 1},  {"hpp", 3}, {"go", 2}, {"rs", 2},  {"java", 4},
                                        {"js", 2}, {"ts", 2},  {"sh", 2}, {"log", 3}};
    const char *dot = memrchr(name.data, '.', name.size);
    for (size_t i = 0; dot != NULL && i < sizeof ends / sizeof *ends; i++)
        if (slice_equal(text_from(name, (size_t)(dot - name.data) + 1), ends[i]))
            return true;
    return false;
}

static bool has_digit(struct slice name) {
    size_t i = 0;
    while (i < name.size && !text_is_digit(name.data[i]))
        i++;
    return i < name.size;
}

// The first value names the writer, and has a number; that of a pod has a dash, too. False: some
// value is none that a name can have.
static bool take_name(const struct form_match *match, struct slice *name) {
    *name = (struct slice){NULL, 0};
    for (uint32_t i = 0; i < match->text->pattern.name_count; i++) {
        struct slice value = match->values[i];
        enum form_target target = match->text->names[i].target;
        if (value.size == 0 || target == TARGET_RANK)
            continue;
        if (is_other_word(letters_of(value)) || is_file(value) ||
            (target == TARGET_POD && memchr(value.data, '-', value.size) == NULL))
            return false;
        if (name->data == NULL && target != TARGET_NAMESPACE)
            *name = value;
    }
    return name->size > 0 && letters_of(*name).size > 0 && has_digit(*name);
}

// -- counting -------------------------------------------------------------------------------------

static struct names_row *row_of(struct names_seen *seen, const struct form *form) {
    for (int i = 0; i < NAMES_ROWS_MAX; i++) {
        if (seen->rows[i].form == NULL)
            seen->rows[i].form = form;
        if (seen->rows[i].form == form)
            return &seen->rows[i];
    }
    return NULL;
}

static uint64_t hash_of(struct slice text) {
    return hash_more(HASH_START, text.data, text.size);
}

// One that is new takes the place of the one that had the fewest lines.
static struct names_family *family_of(struct names_row *row, struct slice name) {
    uint64_t letters = hash_of(letters_of(name));
    struct names_family *fewest = &row->families[0];
    for (int i = 0; i < NAMES_FAMILIES_MAX; i++) {
        struct names_family *family = &row->families[i];
        if (family->lines > 0 && family->letters == letters)
            return family;
        if (family->lines < fewest->lines)
            fewest = family;
    }
    *fewest = (struct names_family){.letters = letters, .first = hash_of(name)};
    return fewest;
}

static bool has_names_that_differ(const struct names_row *row) {
    for (int i = 0; i < NAMES_FAMILIES_MAX; i++)
        if (row->families[i].differs && row->families[i].lines == ENOUGH)
            return true;
    return false;
}

void names_pass(struct names_seen *seen, struct peel *peel) {
    if (peel->counted)
        return;
    peel->counted = true;
    if (++seen->lines < WINDOW)
        return;
    seen->lines /= 2;
    for (int i = 0; i < NAMES_ROWS_MAX; i++)
        seen->rows[i].had /= 2;
}

bool names_stand(struct names_seen *seen, struct peel *peel, const struct form_match *match) {
    struct slice name;
    struct names_row *row = NULL;
    if ((peel->named >> TAKEN & 1) != 0 || !take_name(match, &name) ||
        (row = row_of(seen, match->form)) == NULL)
        return false;
    uint32_t bit = UINT32_C(1) << (row - seen->rows);
    struct names_family *family = family_of(row, name);
    if ((peel->named & bit) == 0) {
        row->had++;
        family->lines += family->lines < ENOUGH;
        family->differs = family->differs || family->first != hash_of(name);
    }
    peel->named |= bit;
    bool stands = row->had * ALL >= seen->lines * NEARLY && family->lines == ENOUGH &&
                  has_names_that_differ(row);
    if (stands)
        peel->named |= UINT32_C(1) << TAKEN;
    return stands;
}
