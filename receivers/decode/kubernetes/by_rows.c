// SPDX-License-Identifier: Apache-2.0
#include "receivers/decode/kubernetes/by_rows.h"

#include "pipeline/model/node_event.h"
#include "receivers/decode/line/frame.h"
#include "receivers/decode/log/form_reader.h"

// Longer messages are read in part.
enum { LINE_MAX_BYTES = 2048 };

struct writing {
    size_t size;
    char text[LINE_MAX_BYTES];
};

// Rows read one line: what a message says on further ones goes on behind a blank.
static void put(struct writing *writing, struct slice text) {
    size_t room = LINE_MAX_BYTES - writing->size;
    size_t size = text.size < room ? text.size : room;
    for (size_t i = 0; i < size; i++)
        writing->text[writing->size + i] = text.data[i] == '\n' ? ' ' : text.data[i];
    writing->size += size;
}

static bool is_read(const struct forms *forms, struct slice line, struct reading *reading) {
    struct frame frame;
    frame_clear(&frame, line, 0);
    frame.forms = forms;
    reading_clear(reading);
    if (READER_FORMS.read(&frame, line, reading) == READ_EVENT)
        return true;
    reading_clear(reading);
    return false;
}

// Few lines are known: those are copied, since what was read lies in them.
static bool read_line(const struct forms *forms, const struct writing *writing,
                      struct reading *reading, struct slice *line) {
    *line = (struct slice){writing->text, writing->size};
    if (!is_read(forms, *line, reading))
        return false;
    char *copy = arena_take(reading->arena, writing->size);
    memcpy(copy, writing->text, writing->size);
    *line = (struct slice){copy, writing->size};
    return is_read(forms, *line, reading);
}

bool kubernetes_read_condition(const struct forms *forms, const struct kubernetes_condition *said,
                               struct reading *reading, struct slice *line) {
    struct writing writing;
    writing.size = 0;
    put(&writing, SLICE("node condition "));
    put(&writing, said->type);
    put(&writing, SLICE("="));
    put(&writing, said->status);
    put(&writing, SLICE(", "));
    put(&writing, said->reason);
    put(&writing, SLICE(": "));
    put(&writing, said->message);
    return read_line(forms, &writing, reading, line);
}

bool kubernetes_read_event(const struct forms *forms, const struct kubernetes_object *event,
                           struct reading *reading, struct slice *line) {
    struct writing writing;
    writing.size = 0;
    put(&writing, SLICE("node event "));
    put(&writing, event->reason);
    put(&writing, SLICE(" from "));
    put(&writing, event->component);
    put(&writing, SLICE(": "));
    put(&writing, event->message);
    return read_line(forms, &writing, reading, line);
}
