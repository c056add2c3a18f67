// SPDX-License-Identifier: Apache-2.0
// "Nonfatal" holds "fatal", so that whole words are compared. O(size), no memory.
#include "receivers/decode/kernel_log/nvlink.h"

#include "base/text/cut.h"

enum { LINK_DIGITS_MAX = 4, CODE_DIGITS_MAX = 6 };

static void clear(struct kernel_line *line) {
    line->link = -1;
    line->fatal = KERNEL_FATAL_UNKNOWN;
    line->unit = line->action = (struct slice){NULL, 0};
    line->caused_by = 0;
}

static void read_link(struct slice text, struct kernel_line *line) {
    uint64_t link;
    if (text_take_number(&text, 1, LINK_DIGITS_MAX, &link))
        line->link = (int32_t)link;
}

static struct slice take_word(struct slice *text) {
    text_skip_blanks(text);
    struct slice word = text_until_any(*text, " \t");
    *text = text_from(*text, word.size);
    return word;
}

// "NETIR_LINK_EVT[/SUB] Fatal   XC0 i0 Link 09 (0x…". A link of -1 is the whole GPU.
static void read_unit(struct slice text, struct kernel_line *line) {
    struct slice unit = take_word(&text), fatal = take_word(&text);
    bool is_fatal = slice_equal(fatal, SLICE("Fatal"));
    if (!is_fatal && !slice_equal(fatal, SLICE("Nonfatal")))
        return;
    line->unit = text_until(unit, '/');
    line->fatal = is_fatal ? KERNEL_FATAL_YES : KERNEL_FATAL_NO;
    for (int words = 0; words < 3 && text.size > 0; words++)
        if (slice_equal(take_word(&text), SLICE("Link"))) {
            text_skip_blanks(&text);
            read_link(text, line);
            return;
        }
}

// "NVLink: fatal error detected on link 9(0x10000, …)".
static void read_link_error(struct slice text, struct kernel_line *line) {
    struct slice behind;
    if (text_find(text, SLICE("NVLink: fatal error detected"), &behind))
        line->fatal = KERNEL_FATAL_YES;
    if (text_find(text, SLICE(" on link "), &behind))
        read_link(behind, line);
}

// "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)".
static void read_action(struct slice text, struct kernel_line *line) {
    struct slice action;
    if (!text_find(text, SLICE(" to 0x"), &text) || !text_find(text, SLICE(" ("), &text))
        return;
    action = text_until(text, ')');
    if (action.size > 0 && action.size < text.size)
        line->action = action;
}

// "Ch 0000000c caused by previous Xid 149".
static void read_cause(struct slice text, struct kernel_line *line) {
    uint64_t code;
    if (text_find(text, SLICE("caused by previous Xid "), &text) &&
        text_take_number(&text, 1, CODE_DIGITS_MAX, &code))
        line->caused_by = (uint32_t)code;
}

void nvlink_read_xid(struct kernel_line *line) {
    clear(line);
    if (line->code >= 144 && line->code <= 150)
        read_unit(line->detail, line);
    else if (line->code == 74)
        read_link_error(line->detail, line);
    else if (line->code == 154)
        read_action(line->detail, line);
    else
        read_cause(line->detail, line);
}

// Of the controller, of heat and of modules: those whose lines have no word on severity. Source:
// NVIDIA/open-gpu-kernel-modules, src/common/nvswitch.
static bool has_no_word(uint32_t code) {
    return (code >= 10004 && code <= 10010) || code == 25010 || (code >= 26000 && code < 29000);
}

bool nvlink_read_sxid(struct kernel_line *line) {
    struct slice text = line->detail;
    clear(line);
    if (text_skip(&text, SLICE("Fatal,")))
        line->fatal = KERNEL_FATAL_YES;
    else if (text_skip(&text, SLICE("Non-fatal,")) || text_skip(&text, SLICE("Correctable,")))
        line->fatal = KERNEL_FATAL_NO;
    else if (!has_no_word(line->code) || text.size == 0 || text_begins(text, SLICE("Severity ")) ||
             text_begins(text, SLICE("Data {")))
        return false;
    if (text_skip(&text, SLICE(" Link ")))
        read_link(text, line);
    return true;
}
