// SPDX-License-Identifier: Apache-2.0
// What the receiver itself needs of a watch event or of a page of a list; the rest is the
// decoder's. Texts are as they stand in the JSON, so names of objects, uids and versions that hold
// an escape (none does) count as absent. No allocation, any thread.
#pragma once

#include "base/status.h"
#include "receivers/decode/json/scan.h"
#include "receivers/decode/json/shape.h"

// A version is opaque; the server's are decimal numbers of up to 20 digits.
enum { VERSION_MAX = 40 };

enum watch_event_type {
    WATCH_EVENT_ADDED,
    WATCH_EVENT_MODIFIED,
    WATCH_EVENT_DELETED,
    WATCH_EVENT_BOOKMARK,
    WATCH_EVENT_ERROR,
    WATCH_EVENT_TYPE_COUNT
};

struct object_meta {
    struct slice uid, version, namespace, name; // empty: absent
};

struct watch_event {
    enum watch_event_type type;
    struct object_meta meta;
    bool initial_end;     // a bookmark behind the initial state of a streaming list
    int64_t code;         // of an ERROR: the status
    struct slice message; // of an ERROR, as written
};

// False: the line is not a watch event.
bool watch_event_read(struct slice line, struct watch_event *event) MUST_USE;

struct list_page {
    struct slice version;
    struct slice more; // metadata.continue; empty: this is the last page
    struct token items;
};
// False: the body is not a list.
bool list_page_read(struct slice body, struct list_page *page) MUST_USE;
// Of an item of a list.
bool object_meta_read(struct slice object, struct object_meta *meta) MUST_USE;
