// SPDX-License-Identifier: Apache-2.0
// Finds the GPU field of a DCGM name or number, and reads its value.
//
// Names are found by binary search in one sorted table. Source: NVIDIA DCGM, dcgm_structs.h (blank
// values).
#include "receivers/decode/dcgm/dcgm.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

struct field_name {
    struct slice name; // without "DCGM_FI_DEV_"
    enum gpu_field field;
    uint32_t spelling; // as gpu_field_spelling counts
};

// All names of all fields, sorted; made once from gpu_fields.h.
enum { NAMES_MAX = 256 };
static struct field_name names[NAMES_MAX];
static size_t name_count;
static pthread_once_t names_once = PTHREAD_ONCE_INIT;

static int compare_names(const void *left, const void *right) {
    return slice_compare(((const struct field_name *)left)->name,
                         ((const struct field_name *)right)->name);
}

static void make_names(void) {
    static const char *const ALL[GPU_FIELD_COUNT] = {
#define GPU_FIELD(field, name, others) name " " others,
#include "pipeline/model/gpu_fields.h"
#undef GPU_FIELD
    };
    for (enum gpu_field field = 0; field < GPU_FIELD_COUNT; field++) {
        uint32_t spelling = 0;
        for (const char *at = ALL[field]; *at != '\0'; at += strspn(at, " ")) {
            assert(name_count < NAMES_MAX && spelling < GPU_SPELLINGS);
            size_t size = strcspn(at, " ");
            names[name_count++] = (struct field_name){{at, size}, field, spelling++};
            at += size;
        }
    }
    qsort(names, name_count, sizeof names[0], compare_names);
}

// What stands behind "DCGM_FI_DEV_"; numbers and names of another kind stay whole. Empty: none.
static struct slice plain_name(struct slice name) {
    static const char before[] = "DCGM_FI_DEV_";
    size_t skip = sizeof before - 1;
    if (name.size > skip && memcmp(name.data, before, skip) == 0)
        return (struct slice){name.data + skip, name.size - skip};
    bool is_number = name.size > 0 && name.data[0] >= '0' && name.data[0] <= '9';
    bool is_whole = name.size > 9 && memcmp(name.data, "DCGM_EXP_", 9) == 0;
    return is_number || is_whole ? name : (struct slice){name.data, 0};
}

enum gpu_field dcgm_field_find(struct slice name, uint32_t *spelling) {
    struct slice wanted = plain_name(name);
    if (wanted.size == 0)
        return GPU_FIELD_COUNT;
    pthread_once(&names_once, make_names);
    const struct field_name key = {.name = wanted};
    const struct field_name *found =
        bsearch(&key, names, name_count, sizeof names[0], compare_names);
    if (found == NULL)
        return GPU_FIELD_COUNT;
    if (spelling != NULL)
        *spelling = found->spelling;
    return found->field;
}

static bool is_duration(enum gpu_field field) {
    return field >= GPU_POWER_VIOLATION_NS && field <= GPU_HW_POWER_BRAKE_NS;
}

// DCGM writes a value near the type's largest one for "blank", "not found", "not supported" and
// "not permitted". Times in nanoseconds pass through those of 32 bits.
static bool is_blank(enum gpu_field field, int64_t whole) {
    if (whole >= INT64_MAX - 15)
        return true;
    if (whole >= INT64_C(140737488355328) && whole <= INT64_C(140737488355331))
        return true;
    return !is_duration(field) && whole >= INT32_MAX - 15 && whole <= INT32_MAX;
}

enum { NUMBER_MAX = 64 };

static bool read_number(struct slice text, double *value, int64_t *whole) {
    char copy[NUMBER_MAX];
    if (text.size == 0 || text.size >= sizeof copy || memchr(text.data, '\0', text.size) != NULL ||
        (unsigned char)text.data[0] <= ' ')
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    char *end;
    *value = strtod(copy, &end);
    if (*end != '\0')
        return false;
    errno = 0;
    long long exact = strtoll(copy, &end, 10);
    if (*end == '\0' && errno == 0)
        *whole = exact;
    else if (*value >= 0x1p63)
        *whole = INT64_MAX;
    else
        *whole = isnan(*value) || *value < -0x1p63 ? INT64_MIN : (int64_t)*value;
    return true;
}

bool dcgm_field_set(struct gpu_sample *sample, enum gpu_field field, struct slice number) {
    assert(field < GPU_FIELD_COUNT);
    double value;
    int64_t whole;
    if (!read_number(number, &value, &whole))
        return false;
    sample->present &= ~(UINT64_C(1) << field);
    if (!isfinite(value) || is_blank(field, whole))
        return true;
    sample->present |= UINT64_C(1) << field;
    sample->value[field] = value;
    sample->whole[field] = whole;
    return true;
}

void dcgm_identity_set(struct gpu_sample *sample, struct slice uuid, struct slice pci_bus_id,
                       struct slice index) {
    assert(sample != NULL);
    if (uuid.size > 0)
        sample->uuid = uuid;
    pci_address address;
    if (pci_bus_id.size > 0 && pci_parse(pci_bus_id, &address))
        sample->address = address;
    int32_t number = 0;
    size_t at = 0;
    while (at < index.size && at < 6 && index.data[at] >= '0' && index.data[at] <= '9')
        number = number * 10 + (index.data[at++] - '0');
    if (at > 0 && at == index.size)
        sample->index = number;
}
