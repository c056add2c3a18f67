// SPDX-License-Identifier: Apache-2.0
// Disks, file systems, servers of files. Which device it is stands at a fixed place in each
// wording. O(line), no memory.
#include "receivers/decode/kernel_log/parts.h"

enum { PID_DIGITS_MAX = 10 };

static const char CUT_DETAIL[] = "the line ends before it says which device it is about";

static enum read_result give_io(struct slice device, struct reading *reading) {
    reading_begin(reading, OBSERVATION_IO_ERROR);
    reading->needs_time = true;
    reading_text(reading, FACT_DEVICE, device);
    return READ_EVENT;
}

static void begin_fs(struct slice fs, struct reading *reading) {
    reading_begin(reading, OBSERVATION_FS_ERROR);
    reading->needs_time = true;
    reading_text(reading, FACT_FS, fs);
}

// The device up to one of `stops`.
static bool take_device(struct slice *text, const char *stops, struct slice *device) {
    *device = text_until_any(*text, stops);
    if (device->size == 0 || device->size == text->size)
        return false;
    *text = text_from(*text, device->size);
    return true;
}

static enum read_result read_io(struct slice text, const char *stops, struct reading *reading) {
    struct slice device;
    if (!take_device(&text, stops, &device))
        return reading_refuse(reading, DECODE_TRUNCATED, CUT_DETAIL);
    return give_io(device, reading);
}

// "nvme0n1, sector 123 op 0x0:(READ) …".
enum read_result storage_read_io_error(struct slice before, struct slice behind,
                                       const struct frame *frame, struct reading *reading) {
    (void)before;
    (void)frame;
    return read_io(behind, ",", reading);
}

// "medium error, dev nvme0n1, sector …".
enum read_result storage_read_critical(struct slice before, struct slice behind,
                                       const struct frame *frame, struct reading *reading) {
    struct slice what, rest;
    (void)before;
    (void)frame;
    if (!words_find(behind, SLICE(" error, dev "), &what, &rest) ||
        memchr(what.data, ' ', what.size) != NULL)
        return READ_NOT;
    return read_io(rest, ",", reading);
}

// " dm-3, logical block 5, …", "ice sda1, logical block …".
enum read_result storage_read_buffer(struct slice before, struct slice behind,
                                     const struct frame *frame, struct reading *reading) {
    (void)before;
    (void)frame;
    text_skip(&behind, SLICE("ice"));
    if (!text_skip_char(&behind, ' '))
        return READ_NOT;
    return read_io(behind, ",", reading);
}

// "nvme2: I/O 412 QID 9 timeout, reset controller", "nvme0: Disabling device after reset failure".
enum read_result storage_read_nvme(struct slice before, struct slice behind,
                                   const struct frame *frame, struct reading *reading) {
    struct slice device, rest;
    (void)before;
    (void)frame;
    if (!take_device(&behind, ": ", &device) || !text_begins(device, SLICE("nvme")) ||
        !text_skip(&behind, SLICE(": ")))
        return READ_NOT;
    bool timeout = text_begins(behind, SLICE("I/O ")) &&
                   (text_find(behind, SLICE(" timeout, reset"), &rest) ||
                    text_find(behind, SLICE(" timeout, abort"), &rest) ||
                    text_find(behind, SLICE(" timeout, disable"), &rest));
    if (!timeout && !text_begins(behind, SLICE("Disabling device after reset failure")) &&
        !text_begins(behind, SLICE("controller is down; will reset")))
        return READ_NOT;
    return give_io(device, reading);
}

// "sda, disabling device.".
enum read_result storage_read_raid(struct slice before, struct slice behind,
                                   const struct frame *frame, struct reading *reading) {
    struct slice rest;
    (void)frame;
    if (!text_find(before, SLICE("md/"), &rest))
        return READ_NOT;
    return read_io(behind, ", ", reading);
}

// "block nvme0n1: " stands before it.
enum read_result storage_read_no_path(struct slice before, struct slice behind,
                                      const struct frame *frame, struct reading *reading) {
    struct slice device, rest;
    (void)behind;
    (void)frame;
    if (!words_find_last(before, SLICE("block "), &rest, &device) ||
        !words_find(device, SLICE(": "), &device, &rest) || rest.size > 0)
        return READ_NOT;
    return give_io(device, reading);
}

// -- file systems ---------------------------------------------------------------------------------

// " error (device dm-3): ext4_find_entry:1456: inode #2: comm python3: …",
// " (dm-3): Remounting filesystem read-only".
enum read_result storage_read_ext4(struct slice before, struct slice behind,
                                   const struct frame *frame, struct reading *reading) {
    struct slice device, process, rest;
    (void)before;
    (void)frame;
    bool error = text_skip(&behind, SLICE(" error (device "));
    if (!error && !text_skip(&behind, SLICE(" (")))
        return READ_NOT;
    if (!take_device(&behind, "):", &device))
        return error ? reading_refuse(reading, DECODE_TRUNCATED, CUT_DETAIL) : READ_NOT;
    if (!error && !text_find(behind, SLICE("Remounting filesystem read-only"), &rest))
        return READ_NOT;
    begin_fs(SLICE("ext4"), reading);
    reading_text(reading, FACT_DEVICE, device);
    if (error && text_find(behind, SLICE(": comm "), &process) &&
        words_find(process, SLICE(": "), &process, &rest))
        reading_text(reading, FACT_PROCESS, process);
    return READ_EVENT;
}

// "nvme2n1p1): Log I/O Error (0x2) detected at …", "…): Shutting down filesystem".
enum read_result storage_read_xfs(struct slice before, struct slice behind,
                                  const struct frame *frame, struct reading *reading) {
    static const struct slice faults[] = {{"I/O Error", 9},       {"I/O error", 9},
                                          {"orruption", 9},       {"hutting down", 12},
                                          {"been shut down", 14}, {"Internal error", 14}};
    struct slice device, rest;
    (void)before;
    (void)frame;
    if (!take_device(&behind, ")", &device) || !text_skip(&behind, SLICE("): ")))
        return READ_NOT;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        if (!text_find(behind, faults[i], &rest))
            continue;
        begin_fs(SLICE("xfs"), reading);
        reading_text(reading, FACT_DEVICE, device);
        return READ_EVENT;
    }
    return READ_NOT;
}

// " error (device sda1: state EA): …", " critical (device sda1): …", ": error (device sda1) in …".
enum read_result storage_read_btrfs(struct slice before, struct slice behind,
                                    const struct frame *frame, struct reading *reading) {
    struct slice device;
    (void)before;
    (void)frame;
    text_skip_char(&behind, ':');
    if (!text_skip(&behind, SLICE(" error (device ")) &&
        !text_skip(&behind, SLICE(" critical (device ")))
        return READ_NOT;
    if (!take_device(&behind, "):", &device))
        return reading_refuse(reading, DECODE_TRUNCATED, CUT_DETAIL);
    begin_fs(SLICE("btrfs"), reading);
    reading_text(reading, FACT_DEVICE, device);
    return READ_EVENT;
}

// -- servers --------------------------------------------------------------------------------------

// "filer1 not responding, still trying", "filer1 not responding, timed out", "filer1 OK".
enum read_result storage_read_nfs(struct slice before, struct slice behind,
                                  const struct frame *frame, struct reading *reading) {
    struct slice server;
    (void)before;
    (void)frame;
    if (!take_device(&behind, " ", &server))
        return READ_NOT;
    bool begins = text_begins(behind, SLICE(" not responding"));
    if (!begins && !slice_equal(text_trim(behind), SLICE("OK")))
        return READ_NOT;
    reading_begin(reading, OBSERVATION_NFS_STALL);
    reading->needs_time = true;
    reading_text(reading, FACT_SERVER, server);
    reading_text(reading, FACT_STATE, begins ? SLICE("begin") : SLICE("end"));
    return READ_EVENT;
}

// "4711:0:(file.c:243:…) …", "11-0: scr1-OST0007-osc-ffff8d0: operation ost_write … failed: …".
enum read_result storage_read_lustre(struct slice before, struct slice behind,
                                     const struct frame *frame, struct reading *reading) {
    uint64_t pid, outer;
    (void)before;
    (void)frame;
    begin_fs(SLICE("lustre"), reading);
    if (text_take_number(&behind, 1, PID_DIGITS_MAX, &pid) && text_skip_char(&behind, ':') &&
        text_take_number(&behind, 1, PID_DIGITS_MAX, &outer) && text_begins(behind, SLICE(":(")))
        reading_number(reading, FACT_PID, (int64_t)pid);
    return READ_EVENT;
}

// "…: Connection to lfs-OST0001 (at 10.0.0.9@o2ib) was lost; in progress operations …".
enum read_result storage_read_lustre_up(struct slice before, struct slice behind,
                                        const struct frame *frame, struct reading *reading) {
    struct slice server, rest;
    (void)before;
    (void)frame;
    if (!text_find(behind, SLICE("Connection to "), &server) ||
        !text_find(server, SLICE(" was lost"), &rest))
        return READ_OTHER;
    begin_fs(SLICE("lustre"), reading);
    reading_text(reading, FACT_SERVER, text_until(server, ' '));
    return READ_EVENT;
}
