// SPDX-License-Identifier: Apache-2.0
// A line on its way to being a frame: what was peeled off so far, and what the source is known to
// be. The forms of prefixes (transport.h, writer.h) each take theirs or leave the text as it is.
#pragma once

#include "base/hash/hash.h"
#include "receivers/decode/line/frame.h"

// How times without a date are made whole: one for each source.
struct line_clock {
    const struct time_zone *zone; // NULL: UTC
    uint64_t observed_ns;         // 0: not known
    uint64_t boot_ns;             // of the last boot; 0: not known
    uint32_t boots_ahead;         // further down in the log, as far as its end tells
    uint64_t near_ns;             // the last time with a year, of an input that ends; 0: none yet
    bool ends;                    // … and it does
    bool is_file;                 // boot_ns is that of the file's last line
    uint64_t paired_ns;           // of the boot at hand, from a line that says both times; 0: none
    uint64_t last_us;             // since boot, of the line before
    // dmesg -e: the last minute that was named, and what was added to it since.
    bool anchored;
    uint64_t anchor_ns, since_ns;
};

enum peel_tells {
    TELLS_NOTHING,
    TELLS_NO_DATE,  // the kernel's framing, without any time
    TELLS_DISTANCE, // only how long after the line before
    TELLS_BOOT,     // only the time since boot
    TELLS_FAULT,    // a date, and `fault` is wrong with it
    TELLS_TIME,
};

enum peel_part {
    PART_NONE,  // no runtime of containers cuts this line
    PART_MORE,  // what follows of the same stream belongs to it
    PART_WHOLE, // the last, or the only one
};

struct peel {
    struct line_clock *clock;
    enum frame_form form;
    struct frame *frame;
    struct slice text;     // what is left
    enum peel_tells tells; // of time; the outermost that says more has it
    bool has_uptime;       // frame->boot_us is said
    bool kernel;           // some prefix was the kernel's
    bool forwarded;        // … and the last one was another program's
    bool writer;           // some prefix was a process's: what follows is its text
    bool is_xml;           // … and it is escaped as XML
    bool counted;          // the line, of those that prefixes of names count
    uint32_t named;        // a bit for each prefix of names that the line had
    enum peel_part part;   // a container's line was opened
    bool joined;           // … and its parts were put together
    uint32_t stream;       // 0, or 2 for stderr, of such a line
    enum { LABEL_NONE, LABEL_RANK, LABEL_TASK } labels; // what "12: " in front means
    uint64_t key;                                       // hash of what names the writer
    uint64_t around;                                    // the same without the rank
};

// The line says a time with its year.
static inline void peel_year(struct peel *peel, uint64_t time_ns) {
    if (peel->clock->ends)
        peel->clock->near_ns = time_ns;
}

// Whoever relays syslog may keep the blank behind the tag: text is indented by an even number.
static inline void peel_blank(struct peel *peel) {
    size_t blanks = 0;
    while (blanks < peel->text.size && peel->text.data[blanks] == ' ')
        blanks++;
    if (blanks % 2 == 1) {
        peel->text.data++;
        peel->text.size--;
    }
}

static inline void peel_named(struct peel *peel, struct slice what, const char *kind) {
    peel->key = hash_more(peel->key, kind, strlen(kind));
    peel->key = hash_more(peel->key, what.data, what.size);
    peel->around = hash_more(peel->around, kind, strlen(kind));
    peel->around = hash_more(peel->around, what.data, what.size);
    peel->frame->has_writer = true;
}

static inline void peel_numbered(struct peel *peel, int64_t what, const char *kind) {
    peel_named(peel, (struct slice){(const char *)&what, sizeof what}, kind);
}
