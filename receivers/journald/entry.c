// SPDX-License-Identifier: Apache-2.0
// An entry as a tagged line: message, time, host and, where it is not the kernel's, the program.
#include "receivers/decode/tagged/line.h"
#include "receivers/journald/receiver.h"

#include <assert.h>
#include <errno.h>

// The value of a field; data NULL: it has none. False: the entry cannot be read. The bytes are the
// library's, until the next field is asked for.
static bool field(struct journald_receiver *receiver, const char *name, struct slice *value) {
    const void *data;
    size_t size, skip = strlen(name) + 1;
    *value = (struct slice){NULL, 0};
    int result = receiver->library->get_data(receiver->journal, name, &data, &size);
    if (result == -ENOENT)
        return true;
    if (result < 0 || size < skip)
        return false;
    *value = (struct slice){(const char *)data + skip, size - skip};
    return true;
}

struct name {
    char bytes[JOURNALD_NAME_MAX];
    size_t size;
};

static bool name_field(struct journald_receiver *receiver, const char *key, struct name *name) {
    struct slice value;
    if (!field(receiver, key, &value))
        return false;
    name->size = value.size < sizeof name->bytes - 3 ? value.size : sizeof name->bytes - 3;
    if (name->size > 0)
        memcpy(name->bytes, value.data, name->size);
    return true;
}

static struct slice text_of(const struct name *name) {
    return (struct slice){name->bytes, name->size};
}

static bool read_entry(struct journald_receiver *receiver, struct tagged_line *line,
                       struct name names[3]) {
    uint64_t usec = 0;
    if (receiver->library->get_realtime_usec(receiver->journal, &usec) < 0 || usec == 0 ||
        usec > INT64_MAX / 1000 || !name_field(receiver, "_TRANSPORT", &names[0]) ||
        !name_field(receiver, "_HOSTNAME", &names[1]) ||
        !name_field(receiver, "SYSLOG_IDENTIFIER", &names[2]) ||
        !field(receiver, "MESSAGE", &line->message))
        return false;
    const char *given = receiver->config->records.node;
    line->time_ns = usec * 1000;
    line->kernel = slice_equal(text_of(&names[0]), SLICE("kernel"));
    line->rank = RANK_NONE;
    line->node = given != NULL       ? slice_of(given)
                 : names[1].size > 0 ? text_of(&names[1])
                                     : slice_of(receiver->host);
    line->program = text_of(&names[2]);
    return true;
}

bool journald_line(struct journald_receiver *receiver, struct slice *made) {
    struct tagged_line line = {.kernel = false};
    struct name names[3];
    *made = (struct slice){NULL, 0};
    if (!read_entry(receiver, &line, names)) {
        if (receiver->context->copy == 0)
            metric_add(receiver->counters.unreadable, 1);
        return false;
    }
    if (line.message.size == 0)
        return false;
    size_t most = (size_t)receiver->config->max_message_size.bytes;
    if (line.message.size > most)
        line.message.size = most;
    buffer_reset(&receiver->line);
    tagged_line_append(&line, &receiver->line);
    assert(!receiver->line.failed && receiver->line.size <= receiver->line_max);
    assert(receiver->block_size - receiver->used >= receiver->line.size);
    char *to = receiver->block + receiver->used;
    memcpy(to, receiver->line.data, receiver->line.size);
    receiver->used += receiver->line.size;
    *made = (struct slice){to, receiver->line.size};
    return true;
}
