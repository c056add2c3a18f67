// SPDX-License-Identifier: Apache-2.0
// Where does the kernel's own text begin? Prefixes are cut off one after the other, each by a
// reader that either takes what it knows or leaves the line as it is. O(line).
#include "receivers/decode/line/transport.h"

#include "base/text/log_time.h"
#include "pipeline/model/node_event.h"

#include <string.h>

struct cursor {
    struct slice line;
    size_t at;
};

static bool take_char(struct cursor *cursor, char wanted) {
    if (cursor->at >= cursor->line.size || cursor->line.data[cursor->at] != wanted)
        return false;
    cursor->at++;
    return true;
}

static void skip_blanks(struct cursor *cursor) {
    while (take_char(cursor, ' ')) {
    }
}

// At most 18 digits.
static bool take_number(struct cursor *cursor, uint64_t *value) {
    size_t from = cursor->at;
    *value = 0;
    while (cursor->at < cursor->line.size && cursor->line.data[cursor->at] >= '0' &&
           cursor->line.data[cursor->at] <= '9' && cursor->at - from < 18)
        *value = *value * 10 + (uint64_t)(cursor->line.data[cursor->at++] - '0');
    return cursor->at > from;
}

// Up to the next blank or the end; empty when there is none.
static struct slice take_word(struct cursor *cursor) {
    size_t from = cursor->at;
    while (cursor->at < cursor->line.size && cursor->line.data[cursor->at] != ' ')
        cursor->at++;
    return (struct slice){cursor->line.data + from, cursor->at - from};
}

static struct slice rest(const struct cursor *cursor) {
    return (struct slice){cursor->line.data + cursor->at, cursor->line.size - cursor->at};
}

// Facility 0 is the kernel's.
static void set_priority(struct kernel_record *record, uint64_t priority) {
    record->is_foreign = priority >> 3 != 0;
}

// "prio,seq,usec,flags[,…];text" of /dev/kmsg.
static bool read_kmsg(struct cursor cursor, struct kernel_record *record) {
    uint64_t priority, sequence, usec;
    if (!take_number(&cursor, &priority) || !take_char(&cursor, ',') ||
        !take_number(&cursor, &sequence) || !take_char(&cursor, ',') ||
        !take_number(&cursor, &usec) || !take_char(&cursor, ','))
        return false;
    const char *semicolon = memchr(rest(&cursor).data, ';', rest(&cursor).size);
    if (semicolon == NULL || usec > UINT64_MAX / 1000)
        return false;
    cursor.at = (size_t)(semicolon - cursor.line.data) + 1;
    set_priority(record, priority);
    record->has_since_boot = true;
    record->since_boot_ns = usec * 1000;
    record->text = rest(&cursor);
    return true;
}

// "<3>".
static void read_priority(struct cursor *cursor, struct kernel_record *record) {
    struct cursor here = *cursor;
    uint64_t priority;
    if (take_char(&here, '<') && take_number(&here, &priority) && take_char(&here, '>')) {
        set_priority(record, priority);
        *cursor = here;
    }
}

// "kern  :err   : ", of dmesg --decode.
static void read_level_words(struct cursor *cursor, struct kernel_record *record) {
    struct cursor here = *cursor;
    size_t size = 0;
    struct slice text = rest(&here);
    while (size < text.size && text.data[size] >= 'a' && text.data[size] <= 'z')
        size++;
    bool kernel = slice_equal((struct slice){text.data, size}, SLICE("kern"));
    here.at += size;
    skip_blanks(&here);
    if (size == 0 || !take_char(&here, ':'))
        return;
    while (here.at < here.line.size && here.line.data[here.at] >= 'a' &&
           here.line.data[here.at] <= 'z')
        here.at++;
    skip_blanks(&here);
    if (!take_char(&here, ':') || !take_char(&here, ' ') || rest(&here).size == 0 ||
        rest(&here).data[0] != '[')
        return;
    record->is_foreign = !kernel;
    *cursor = here;
}

static bool take_since_boot(struct cursor *cursor, uint64_t *since_boot_ns) {
    struct cursor here = *cursor;
    if (!take_char(&here, '[') || !log_time_seconds(here.line, &here.at, since_boot_ns) ||
        !take_char(&here, ']'))
        return false;
    *cursor = here;
    return true;
}

// "[  T123]", "[ C1]": which thread or processor wrote it.
static void skip_caller(struct cursor *cursor) {
    struct cursor here = *cursor;
    uint64_t number;
    skip_blanks(&here);
    if (!take_char(&here, '['))
        return;
    skip_blanks(&here);
    if ((take_char(&here, 'T') || take_char(&here, 'C')) && take_number(&here, &number) &&
        take_char(&here, ']'))
        *cursor = here;
}

// "node kernel: " and what follows it.
static bool take_kernel_tag(struct cursor *cursor, struct kernel_record *record) {
    struct cursor here = *cursor;
    skip_blanks(&here);
    struct slice host = take_word(&here);
    if (host.size == 0 || !take_char(&here, ' ') ||
        !slice_equal(take_word(&here), SLICE("kernel:")))
        return false;
    record->host = host;
    *cursor = here;
    return true;
}

// What follows "node kernel:".
static void set_syslog_text(struct cursor cursor, struct kernel_record *record) {
    uint64_t ignored;
    take_char(&cursor, ' ');
    if (take_since_boot(&cursor, &ignored)) {
        skip_caller(&cursor);
        take_char(&cursor, ' ');
    }
    record->text = rest(&cursor);
}

// "[ 1234.567890] text", "[Fri Jan 31 09:15:04 2026] text".
static bool read_brackets(struct cursor cursor, struct kernel_record *record) {
    if (take_since_boot(&cursor, &record->since_boot_ns)) {
        record->has_since_boot = true;
    } else {
        if (!take_char(&cursor, '[') ||
            !log_time_ctime(cursor.line, &cursor.at, &record->unix_ns) || !take_char(&cursor, ']'))
            return false;
    }
    skip_caller(&cursor);
    if (take_kernel_tag(&cursor, record)) {
        set_syslog_text(cursor, record);
        return true;
    }
    take_char(&cursor, ' ');
    record->text = rest(&cursor);
    return true;
}

// "node tag: text" behind a time, or the text itself: a device's name and address look like a host
// and a tag.
static void read_host_and_tag(struct cursor cursor, bool is_syslog, struct kernel_record *record) {
    struct cursor here = cursor;
    if (take_kernel_tag(&here, record)) {
        set_syslog_text(here, record);
        return;
    }
    skip_blanks(&here);
    struct slice first = take_word(&here);
    bool has_second = take_char(&here, ' ');
    struct slice second = take_word(&here);
    bool tagged = has_second && first.size > 0 && first.data[first.size - 1] != ':' &&
                  second.size > 1 && second.data[second.size - 1] == ':';
    pci_address address;
    if (tagged && !is_syslog && pci_parse((struct slice){second.data, second.size - 1}, &address))
        tagged = false;
    record->is_foreign = record->is_foreign || tagged || is_syslog;
    skip_caller(&cursor);
    take_char(&cursor, ' ');
    record->text = rest(&cursor);
}

// "1 TIME HOST APP PROCID MSGID SD text" of RFC 5424, behind the "<PRI>".
static bool read_rfc5424(struct cursor cursor, struct kernel_record *record) {
    if (!take_char(&cursor, '1') || !take_char(&cursor, ' ') ||
        !log_time_iso(cursor.line, &cursor.at, &record->unix_ns) || !take_char(&cursor, ' '))
        return false;
    struct slice words[5]; // host, program, process, message, structured data
    for (int i = 0; i < 5; i++) {
        words[i] = take_word(&cursor);
        take_char(&cursor, ' ');
    }
    record->is_foreign = !slice_equal(words[1], SLICE("kernel"));
    if (!slice_equal(words[0], SLICE("-")) && words[0].size > 0)
        record->host = words[0];
    // Structured data may hold blanks: its end is the bracket before a blank.
    if (words[4].size > 0 && words[4].data[0] == '[') {
        const char *end = memmem(
            words[4].data, (size_t)(cursor.line.data + cursor.line.size - words[4].data), "] ", 2);
        cursor.at = end == NULL ? cursor.line.size : (size_t)(end - cursor.line.data) + 2;
    }
    record->text = rest(&cursor);
    return true;
}

static bool read_syslog(struct cursor cursor, uint64_t observed_ns, struct kernel_record *record) {
    // Any day, to know the shape when the year cannot be told.
    static const uint64_t SOME_DAY_NS = UINT64_C(1700000000000000000);
    uint64_t day_ns = observed_ns != 0 ? observed_ns : SOME_DAY_NS;
    if (!log_time_syslog(cursor.line, &cursor.at, day_ns, &record->unix_ns) ||
        !take_char(&cursor, ' '))
        return false;
    if (observed_ns == 0) {
        record->unix_ns = 0;
        record->has_day_only = true;
    }
    read_host_and_tag(cursor, true, record);
    return true;
}

static bool read_iso(struct cursor cursor, struct kernel_record *record) {
    size_t from = cursor.at;
    if (!log_time_iso(cursor.line, &cursor.at, &record->unix_ns) || cursor.at >= cursor.line.size ||
        (cursor.line.data[cursor.at] != ' ' && cursor.line.data[cursor.at] != '['))
        return false;
    // Only dmesg puts a comma before the fraction.
    bool dmesg = memchr(cursor.line.data + from, ',', cursor.at - from) != NULL;
    if (!dmesg) {
        read_host_and_tag(cursor, false, record);
        return true;
    }
    skip_caller(&cursor);
    take_char(&cursor, ' ');
    record->text = rest(&cursor);
    return true;
}

void kernel_record_read(struct slice line, uint64_t observed_ns, struct kernel_record *record) {
    *record = (struct kernel_record){0};
    while (line.size > 0 && (line.data[line.size - 1] == '\n' || line.data[line.size - 1] == '\r'))
        line.size--;
    struct cursor cursor = {line, 0};
    // A continuation of a kmsg record, or nothing.
    if (line.size == 0 || line.data[0] == ' ' || read_kmsg(cursor, record))
        return;
    *record = (struct kernel_record){0};
    read_priority(&cursor, record);
    if (cursor.at > 0 && read_rfc5424(cursor, record))
        return;
    read_level_words(&cursor, record);
    if (read_brackets(cursor, record) || read_syslog(cursor, observed_ns, record) ||
        read_iso(cursor, record))
        return;
    record->text = rest(&cursor);
}
