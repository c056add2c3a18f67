// SPDX-License-Identifier: Apache-2.0
// Lines of a path below /sys/class and a value. The path is cut at its slashes from where the class
// is named; what stands in front (a mount of the host's files) does not matter. O(line).
#include "base/text/cut.h"
#include "pipeline/component/decoder.h"
#include "pipeline/model/observation.h"
#include "receivers/decode/ib_counters/ib_counters.h"
#include "receivers/decode/ib_counters/value.h"
#include "receivers/decode/line/reading.h"

struct place {
    struct slice device;
    uint64_t port; // 0: not said
};

static struct slice take_part(struct slice *path) {
    struct slice part = text_take(path, text_until(*path, '/').size);
    text_skip_char(path, '/');
    return part;
}

static enum read_result cut_off(struct reading *reading) {
    return reading_refuse(reading, DECODE_TRUNCATED, "a counter or a state that breaks off");
}

static enum read_result set_place(struct reading *reading, const struct place *place,
                                  enum read_result result) {
    if (result != READ_EVENT)
        return result;
    reading_text(reading, FACT_DEVICE, place->device);
    if (place->port > 0)
        reading_number(reading, FACT_PORT, (int64_t)place->port);
    return READ_EVENT;
}

static enum read_result read_state(struct reading *reading, enum fact_key key, struct slice value) {
    struct slice word = ib_state_word(value);
    if (word.data == NULL)
        return reading_refuse(reading, DECODE_MISSING_VALUE, "the state has no value");
    reading_begin(reading, OBSERVATION_IB_STATE);
    reading->no_rank = true;
    reading_text(reading, key, word);
    return READ_EVENT;
}

// What stands behind the device or the port.
static enum read_result read_file(struct reading *reading, const struct place *place,
                                  struct slice file, struct slice value) {
    static const struct slice folders[] = {
        {"counters/", 9}, {"hw_counters/", 12}, {"statistics/", 11}};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (text_skip(&file, folders[i])) {
            if (file.size == 0 || memchr(file.data, '/', file.size) != NULL)
                return READ_NOT;
            return set_place(reading, place, ib_counter_read(reading, file, value));
        }
    if (slice_equal(file, SLICE("carrier_changes")))
        return set_place(reading, place, ib_counter_read(reading, file, value));
    if (slice_equal(file, SLICE("state")) || slice_equal(file, SLICE("operstate")))
        return set_place(reading, place, read_state(reading, FACT_STATE, value));
    if (slice_equal(file, SLICE("phys_state")))
        return set_place(reading, place, read_state(reading, FACT_STATUS, value));
    return READ_OTHER;
}

static enum read_result read_line(const struct frame *frame, struct slice message,
                                  struct reading *reading) {
    struct slice path, text = text_trim(message);
    struct place place = {.port = 0};
    if (text.size == 0 || text.data[0] != '/' || !text_find(text, SLICE("/class/"), &path))
        return READ_NOT;
    bool is_card = text_skip(&path, SLICE("infiniband/"));
    if (!is_card && !text_skip(&path, SLICE("net/")))
        return READ_NOT;
    const char *colon = memchr(path.data, ':', path.size);
    if (colon == NULL) // a path alone is no fault, unless it is that of a counter
        return text_until_any(path, " \t").size == path.size &&
                       memmem(path.data, path.size, "/ports/", 7) != NULL
                   ? cut_off(reading)
                   : READ_NOT;
    struct slice value = text_from(path, (size_t)(colon - path.data) + 1);
    path.size = (size_t)(colon - path.data);
    place.device = take_part(&path);
    if (place.device.size == 0 || text_until_any(path, " \t").size < path.size)
        return READ_NOT;
    if (is_card && text_skip(&path, SLICE("ports/")) &&
        !text_number(take_part(&path), 3, &place.port))
        return READ_NOT;
    enum read_result result = read_file(reading, &place, path, value);
    // The front of a value is another value.
    return result == READ_EVENT && frame->truncated ? cut_off(reading) : result;
}

const struct line_reader READER_IB_COUNTERS = {.name = "ib_counters", .read = read_line};
