// SPDX-License-Identifier: Apache-2.0
// Frames of lines: what is peeled off, in any order, what it says, and what is held until more
// came.
#include "base/buffer.h"
#include "base/memory.h"
#include "base/text/rfc3339.h"
#include "base/text/time_zone.h"
#include "pipeline/model/event.h"
#include "receivers/decode/line/frame_reader.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define OBSERVED UINT64_C(1773964800000000000) // 2026-03-20T00:00:00Z
#define BOOT     UINT64_C(1772431200000000000) // 2026-03-02T06:00:00Z

static struct arena arena;
static struct buffer shown;

static void setup(void) {
    arena_init(&arena, 4096);
    buffer_init(&shown, 1 << 20);
}

static void teardown(void) {
    arena_release(&arena);
    buffer_release(&shown);
    ck_assert_uint_eq(memory_figures().live_bytes, 0);
}

static void show(const char *word, struct slice text) {
    if (text.data != NULL)
        buffer_append_format(&shown, " %s=%.*s", word, (int)text.size, text.data);
}

static void show_number(const char *word, int64_t number, int64_t none) {
    if (number != none)
        buffer_append_format(&shown, " %s=%lld", word, (long long)number);
}

// "1+3 2026-…Z k host=n rank=3 | message"
static void show_frame(const struct frame *frame) {
    char time[RFC3339_TEXT_MAX] = "-";
    if (frame->time_ns != 0)
        rfc3339_format(frame->time_ns, time);
    else if (frame->time_fault != DECODE_OK)
        snprintf(time, sizeof time, "!%s", decode_category_name(frame->time_fault));
    ck_assert(frame->time_fault == DECODE_OK || strlen(frame->time_detail) > 10);
    buffer_append_format(&shown, "%llu+%u %s", (unsigned long long)frame->position, frame->lines,
                         time);
    if (frame->slack_ns != 0)
        buffer_append_format(&shown, "~%llus", (unsigned long long)(frame->slack_ns / 1000000000));
    const char *const origins[] = {"", " k", " p"};
    buffer_append_format(&shown, "%s", origins[frame->origin]);
    show("host", frame->host);
    show("program", frame->program);
    show("ns", frame->namespace);
    show("pod", frame->pod);
    show("uid", frame->unit_uid);
    show("container", frame->container);
    show("address", frame->address);
    show_number("rank", frame->rank, RANK_NONE);
    show_number("local", frame->local_rank, -1);
    show_number("task", frame->task, -1);
    show_number("pid", frame->pid, -1);
    if (frame->truncated)
        buffer_append_format(&shown, " truncated");
    buffer_append_format(&shown, " | %.*s\n", (int)frame->message.size,
                         frame->message.size == 0 ? "" : frame->message.data);
}

static void show_step(enum frame_step step, const struct frame *frame,
                      const struct decode_fault *fault) {
    if (step == FRAME_LINE)
        show_frame(frame);
    else if (step == FRAME_REFUSED)
        buffer_append_format(&shown, "%llu refused %s\n", (unsigned long long)frame->position,
                             decode_category_name(fault->category));
    else if (step == FRAME_NOTHING)
        buffer_append_format(&shown, "%llu+%u nothing\n", (unsigned long long)frame->position,
                             frame->lines);
}

static void show_rest(struct frame_reader *reader) {
    struct frame frame;
    struct decode_fault fault = {0};
    for (enum frame_step step; (step = frame_next(reader, &arena, &frame, &fault)) != FRAME_END;)
        show_step(step, &frame, &fault);
}

// All frames of a text. Each line lies in a block of its own, so that a read past its end is seen.
static const char *frames_of(struct slice text, const struct decoder_input *input,
                             enum frame_form form) {
    struct frame_reader *reader = frame_reader_make(input, form);
    struct frame frame;
    struct decode_fault fault = {0};
    buffer_reset(&shown);
    uint64_t position = 0;
    for (size_t at = 0; at < text.size;) {
        const char *newline = memchr(text.data + at, '\n', text.size - at);
        size_t end = newline == NULL ? text.size : (size_t)(newline - text.data);
        char *line = malloc(end - at + (end == at));
        memcpy(line, text.data + at, end - at);
        show_step(
            frame_read(reader, (struct slice){line, end - at}, ++position, &arena, &frame, &fault),
            &frame, &fault);
        show_rest(reader);
        free(line);
        at = end + 1;
    }
    frame_finish(reader);
    show_rest(reader);
    ck_assert(!frame_holds(reader));
    frame_reader_free(reader);
    buffer_append_char(&shown, (char)0);
    return shown.data;
}

static struct decoder_input input_of(uint64_t boot_ns, uint32_t world_size, const char *path) {
    return (struct decoder_input){.observed_ns = OBSERVED,
                                  .boot_ns = boot_ns,
                                  .world_size = world_size,
                                  .path = path == NULL ? SLICE("log") : slice_of(path)};
}

#define CRI "2026-03-14T01:50:17.000000001Z stderr "

static const struct {
    const char *text;
    const char *want;
    enum frame_form form;
} LINES[] = {
    // The kernel's.
    {"[  100.500000] text", "1+1 2026-03-02T06:01:40.5Z k | text\n", FORM_ANY},
    {"\t [  100.500000][ T77] text", "1+1 2026-03-02T06:01:40.5Z k | text\n", FORM_ANY},
    {"[  100.500000] [    C3]   text", "1+1 2026-03-02T06:01:40.5Z k |   text\n", FORM_ANY},
    {"[123] text", "1+1 2026-03-02T06:02:03Z k | text\n", FORM_KERNEL},
    {"[123] text", "1+1 - | [123] text\n", FORM_ANY},
    // A program's: glog's severity has a number behind it, a month has letters.
    {"[Feb  3 10:11:12 2026] x", "1+1 2026-02-03T10:11:12Z | [Feb  3 10:11:12 2026] x\n", FORM_ANY},
    {"[Feb 3 2026 10:11:12] x", "1+1 2026-02-03T10:11:12Z | [Feb 3 2026 10:11:12] x\n", FORM_ANY},
    {"F203 10:11:12.5 x", "1+1 2026-02-03T10:11:12.5Z | F203 10:11:12.5 x\n", FORM_ANY},
    {"[Info 0203 10:11:12] x", "1+1 - | [Info 0203 10:11:12] x\n", FORM_ANY},
    {"IBM 0203 10:11:12 x", "1+1 - | IBM 0203 10:11:12 x\n", FORM_ANY},
    {"<4>[  100.500000] text", "1+1 2026-03-02T06:01:40.5Z k | text\n", FORM_ANY},
    {"<30>[  100.500000] text", "1+1 2026-03-02T06:01:40.5Z p | text\n", FORM_ANY},
    {"kern  :warn  : [  100.500000] text", "1+1 2026-03-02T06:01:40.5Z k | text\n", FORM_ANY},
    {"daemon:info  : [  100.500000] text", "1+1 2026-03-02T06:01:40.5Z p | text\n", FORM_ANY},
    {"[  100.500000 <    0.499999>] text", "1+1 2026-03-02T06:01:40.5Z k | text\n", FORM_ANY},
    {"[<    0.499999>] text", "1+1 !missing_timestamp k | text\n", FORM_ANY},
    {"[  +0.499999] text", "1+1 !missing_timestamp k | text\n", FORM_ANY},
    {"[Sat Mar 14 01:50:17 2026] text", "1+1 2026-03-14T01:50:17Z k | text\n", FORM_ANY},
    {"[Sat Mar 14 01:50:17 2026 <    0.499999>] text", "1+1 2026-03-14T01:50:17Z k | text\n",
     FORM_ANY},
    {"[Sun Mar  1 14:54:40 2026] node7 kernel: text",
     "1+1 2026-03-01T14:54:40Z k host=node7 program=kernel | text\n", FORM_ANY},
    {"2026-03-14T01:50:17,500000+01:00 text", "1+1 2026-03-14T00:50:17.5Z k | text\n", FORM_ANY},
    {"4,1234,100500000,-;text", "1+1 2026-03-02T06:01:40.5Z k | text\n", FORM_ANY},
    {"30,1234,100500000,-,caller=T3;text", "1+1 2026-03-02T06:01:40.5Z p | text\n", FORM_ANY},
    {"4,1,100500000,-;a\\x09b\\\\x", "1+1 2026-03-02T06:01:40.5Z k | a\tb\\\\x\n", FORM_ANY},
    {"> [  100.500000] text", "1+1 2026-03-02T06:01:40.5Z k | text\n", FORM_ANY},
    {"> > kernel: [  100.500000] text", "1+1 2026-03-02T06:01:40.5Z k program=kernel | text\n",
     FORM_ANY},
    {"> [rank3]: text", "1+1 - rank=3 | text\n", FORM_ANY},
    {">>> text", "1+1 - | >>> text\n", FORM_ANY},
    {"dmesg.txt:[  100.500000] text", "1+1 2026-03-02T06:01:40.5Z k | text\n", FORM_ANY},
    {"/var/log/kern.log-1:812:Mar 14 01:50:17 n kernel: text",
     "1+1 2026-03-14T01:50:17Z k host=n program=kernel | text\n", FORM_ANY},
    {"train.py:812: Mar 14 01:50:17 n kernel: text",
     "1+1 2026-03-14T01:50:17Z k host=n program=kernel | text\n", FORM_ANY},
    {"train.py:812:text", "1+1 - | train.py:812:text\n", FORM_ANY},
    {"Mar 14 01:50:17 kernel: text", "1+1 2026-03-14T01:50:17Z k program=kernel | text\n",
     FORM_ANY},
    {"kernel: [  100.500000] text", "1+1 2026-03-02T06:01:40.5Z k program=kernel | text\n",
     FORM_ANY},
    {"text", "1+1 !missing_timestamp | text\n", FORM_KERNEL},
    // Syslog and the journal.
    {"Mar 14 01:50:17 node7 kernel: [  100.5] text",
     "1+1 2026-03-14T01:50:17Z k host=node7 program=kernel | text\n", FORM_ANY},
    {"Mar  4 01:50:17.250 node7 python3[12]: text",
     "1+1 2026-03-04T01:50:17.25Z p host=node7 program=python3 | text\n", FORM_ANY},
    {"Mar 4 01:50:17 node7 kernel: text",
     "1+1 2026-03-04T01:50:17Z k host=node7 program=kernel | text\n", FORM_ANY},
    {"<6>Mar 14 01:50:17 node7 kernel: text",
     "1+1 2026-03-14T01:50:17Z k host=node7 program=kernel | text\n", FORM_ANY},
    {"M\xc3\xa4r 14 01:50:17 n kernel: text",
     "1+1 2026-03-14T01:50:17Z k host=n program=kernel | text\n", FORM_ANY},
    {"janv. 14 01:50:17 n kernel: text",
     "1+1 2026-01-14T01:50:17Z k host=n program=kernel | text\n", FORM_ANY},
    {"3\xe6\x9c\x88"
     "14\xe6\x97\xa5 01:50:17 n kernel: text",
     "1+1 2026-03-14T01:50:17Z k host=n program=kernel | text\n", FORM_ANY},
    {"\xd0\x9c\xd0\xb0\xd1\x80 14 01:50:17 n kernel: text",
     "1+1 2026-03-14T01:50:17Z k host=n program=kernel | text\n", FORM_ANY},
    {"Xyz 14 01:50:17 n kernel: text", "1+1 !unknown_month k host=n program=kernel | text\n",
     FORM_ANY},
    {"Epoch 14 01:50:17 loss 3", "1+1 - | Epoch 14 01:50:17 loss 3\n", FORM_ANY},
    {"Feb 30 01:50:17 n kernel: text", "1+1 !bad_timestamp k host=n program=kernel | text\n",
     FORM_ANY},
    {"Feb 29 01:50:17 n kernel: text", "1+1 2024-02-29T01:50:17Z k host=n program=kernel | text\n",
     FORM_ANY},
    {"Sat 2026-03-14 01:50:17 UTC n kernel: text",
     "1+1 2026-03-14T01:50:17Z k host=n program=kernel | text\n", FORM_ANY},
    {"2026-03-14T01:50:17+0100 n kernel: text",
     "1+1 2026-03-14T00:50:17Z k host=n program=kernel | text\n", FORM_ANY},
    {"2026-03-14T01:50:17.500000-05:00 n1 sshd: text",
     "1+1 2026-03-14T06:50:17.5Z p host=n1 program=sshd | text\n", FORM_ANY},
    {"2026-03-14T01:50:17Z ERROR trainer: text", "1+1 2026-03-14T01:50:17Z | ERROR trainer: text\n",
     FORM_ANY},
    {"2026-03-14T01:50:17Z step 12: text", "1+1 2026-03-14T01:50:17Z | step 12: text\n", FORM_ANY},
    {"[  100.500000] node7 kernel: text",
     "1+1 2026-03-02T06:01:40.5Z k host=node7 program=kernel | text\n", FORM_ANY},
    {"[  100.500000] usb 1-1: text", "1+1 2026-03-02T06:01:40.5Z k | usb 1-1: text\n", FORM_ANY},
    {"1773453017.500000 node7 kernel: text",
     "1+1 2026-03-14T01:50:17.5Z k host=node7 program=kernel | text\n", FORM_ANY},
    {"<4>1 2026-03-14T01:50:17.5Z n kernel - - [a b=\"c d\"] [ 100.5] text",
     "1+1 2026-03-14T01:50:17.5Z k host=n program=kernel | text\n", FORM_ANY},
    {"<4>1 - n kernel - - - text", "1+1 !missing_timestamp k host=n program=kernel | text\n",
     FORM_ANY},
    {"Error: Mar 14 01:50:17 n kernel: [880.5] NVRM: x",
     "1+1 2026-03-14T01:50:17Z k host=n program=kernel | NVRM: x\n", FORM_ANY},
    {"Mar 15 00:00:00 hub fwd[1]: Mar 14 01:50:17 n kernel: NVRM: x",
     "1+1 2026-03-14T01:50:17Z k host=n program=kernel | NVRM: x\n", FORM_ANY},
    {"{\"__REALTIME_TIMESTAMP\":\"1773453017500000\",\"_HOSTNAME\":[\"n\",\"n\"],\"_TRANSPORT\":"
     "\"kernel\",\"MESSAGE\":[116,101,120,116]}",
     "1+1 2026-03-14T01:50:17.5Z k host=n | text\n", FORM_ANY},
    {"{\"__REALTIME_TIMESTAMP\":\"1773453017500000\",\"MESSAGE\":null}", "1+1 nothing\n", FORM_ANY},
    {"{\"__REALTIME_TIMESTAMP\":\"1773453017500000\",\"SYSLOG_IDENTIFIER\":\"t\",\"MESSAGE\":"
     "\"[rank3]: a\\n  b\\n\\nc\"}",
     "1+1 2026-03-14T01:50:17.5Z p program=t rank=3 | a\n"
     "1+0 2026-03-14T01:50:17.5Z p program=t rank=3 |   b\n"
     "1+0 2026-03-14T01:50:17.5Z p program=t rank=3 | c\n",
     FORM_ANY},
    {"{\"__REALTIME_TIMESTAMP\":\"1773453017500000\",\"MESSAGE\":[true]}", "1 refused wrong_type\n",
     FORM_ANY},
    {"{\"level\": \"info\"}", "1+1 - | {\"level\": \"info\"}\n", FORM_ANY},
    // Containers and launchers.
    {CRI "F   text", "1+1 2026-03-14T01:50:17.000000001Z |   text\n", FORM_ANY},
    {CRI "F [rank3]: text", "1+1 2026-03-14T01:50:17.000000001Z rank=3 | text\n", FORM_ANY},
    {CRI "F Mar 13 01:50:17 n kernel: text",
     "1+1 2026-03-14T01:50:17.000000001Z k host=n program=kernel | text\n", FORM_ANY},
    {"{\"log\":\"\\u001b[31m[rank5]: text\\u001b[0m\\n\",\"stream\":\"stderr\",\"time\":"
     "\"2026-03-14T01:50:17.5Z\"}",
     "1+1 2026-03-14T01:50:17.5Z rank=5 | text\n", FORM_ANY},
    {"{\"log\": \"text\"}", "1 refused unknown_envelope\n", FORM_ANY},
    {"{\"pod\": \"p\", \"container\": \"c\", \"message\": \"{\\\"log\\\": \\\"[rank2]: "
     "text\\\\n\\\", "
     "\\\"stream\\\": \\\"stderr\\\", \\\"time\\\": \\\"2026-03-14T01:50:17Z\\\"}\"}",
     "1+1 2026-03-14T01:50:17Z pod=p container=c rank=2 | text\n", FORM_ANY},
    {"2026-03-14T01:50:17+00:00\ttrain\t{\"log\": \"text\", \"stream\": \"stderr\"}",
     "1+1 2026-03-14T01:50:17Z | text\n", FORM_ANY},
    {"[rank3]: {\"asctime\": \"2026-03-14 01:50:17,000\", \"message\": \"text\"}",
     "1+1 2026-03-14T01:50:17Z rank=3 | text\n", FORM_ANY},
    {"2026-03-14T01:50:17Z n-1 train[12]   File",
     "1+1 2026-03-14T01:50:17Z p host=n-1 program=train |   File\n", FORM_ANY},
    {"<13>1 2026-03-14T01:50:17Z n train 12 - -    File",
     "1+1 2026-03-14T01:50:17Z p host=n program=train |   File\n", FORM_ANY},
    {"[pod/trainer-3/worker] 2026-03-14T01:50:17.5Z [rank3]: text",
     "1+1 2026-03-14T01:50:17.5Z pod=trainer-3 container=worker rank=3 | text\n", FORM_ANY},
    {"\x1b[36m(RayTrainWorker pid=81201, ip=10.20.0.7)\x1b[0m [rank6]:[E314 01:50:17.3 F.cpp:1] x",
     "1+1 2026-03-14T01:50:17.3Z address=10.20.0.7 rank=6 pid=81201 | [E314 01:50:17.3 F.cpp:1] "
     "x\n",
     FORM_ANY},
    {"(W(rank=0) pid=7) text [repeated 7x across cluster] (more)", "1+1 - pid=7 | text\n",
     FORM_ANY},
    {"[default3]:  text", "1+1 - local=3 |   text\n", FORM_ANY},
    {"[1,3]<stderr>:text", "1+1 - rank=3 | text\n", FORM_ANY},
    {"[rank3]: [  100.5] text", "1+1 - rank=3 | [  100.5] text\n", FORM_ANY},
    {"[rank3]: Error: Mar 14 01:50:17 n kernel: x",
     "1+1 - rank=3 | Error: Mar 14 01:50:17 n kernel: x\n", FORM_ANY},
    {"[rank99999999999]: text", "1+1 - | [rank99999999999]: text\n", FORM_ANY},
    {"12: text", "1+1 - | 12: text\n", FORM_ANY},
    // Dates of log libraries stay in front of the message.
    {"[E314 01:50:17.000417225 F.cpp:683] x",
     "1+1 2026-03-14T01:50:17.000417225Z | [E314 01:50:17.000417225 F.cpp:683] x\n", FORM_ANY},
    {"E0314 01:50:17.2 88410 torch/x.py:984] x",
     "1+1 2026-03-14T01:50:17.2Z | E0314 01:50:17.2 88410 torch/x.py:984] x\n", FORM_ANY},
    {"2026-03-14 01:50:17,120 INFO x",
     "1+1 2026-03-14T01:50:17.12Z | 2026-03-14 01:50:17,120 INFO x\n", FORM_ANY},
    {"[2026-03-14 01:50:17] n:1:2 [4] NCCL WARN x",
     "1+1 2026-03-14T01:50:17Z | [2026-03-14 01:50:17] n:1:2 [4] NCCL WARN x\n", FORM_ANY},
    {"[Mar 14 2026 01:50:17] [ERROR] x",
     "1+1 2026-03-14T01:50:17Z | [Mar 14 2026 01:50:17] [ERROR] x\n", FORM_ANY},
    {"[E1399 01:50:17 F.cpp:683] x", "1+1 - | [E1399 01:50:17 F.cpp:683] x\n", FORM_ANY},
    // What overwrites itself, and what a lost machine leaves.
    {"10%\r20%\r  ", "1+1 - | 20%\n", FORM_ANY},
    {"10%\r20%[rank0]:[E314 01:50:17.3 F.cpp:1] x\r30%",
     "1+1 2026-03-14T01:50:17.3Z rank=0 | [E314 01:50:17.3 F.cpp:1] x\n", FORM_ANY},
    {"10%\r20%\rsrun: error: n1: task 3: Out Of Memory\r30%\r40%\r",
     "1+1 - | srun: error: n1: task 3: Out Of Memory\n", FORM_ANY},
    {"   ^^^^[rank1]:[E314 01:50:17.4 F.cpp:1] x",
     "1+1 2026-03-14T01:50:17.4Z rank=1 | [E314 01:50:17.4 F.cpp:1] x\n", FORM_ANY},
    {"\xef\xbb\xbfMar 14 01:50:17 n kernel: text\r",
     "1+1 2026-03-14T01:50:17Z k host=n program=kernel | text\n", FORM_ANY},
    {"\xff\xfe"
     "a",
     "1 refused encoding\n", FORM_ANY},
    {"\x1b[32m[  +0.5] \x1b[0m\x1b[33mNVRM: \x1b[0mXid", "1+1 !missing_timestamp k | NVRM: Xid\n",
     FORM_ANY},
};

START_TEST(single_lines) {
    struct decoder_input input = input_of(BOOT, 0, NULL);
    const char *got = frames_of(slice_of(LINES[_i].text), &input, LINES[_i].form);
    ck_assert_msg(strcmp(got, LINES[_i].want) == 0, "%s\n got  %s want %s", LINES[_i].text, got,
                  LINES[_i].want);
}
END_TEST

// Cut off anywhere a line gives an answer, and at most one frame for each of its messages.
START_TEST(single_lines_cut_off) {
    struct decoder_input input = input_of(BOOT, 4, NULL);
    struct slice whole = slice_of(LINES[_i].text);
    for (size_t size = 0; size < whole.size; size++) {
        frames_of((struct slice){whole.data, size}, &input, LINES[_i].form);
        arena_reset(&arena);
    }
}
END_TEST

static const struct {
    const char *text;
    const char *want;
    uint64_t boot_ns;
    uint32_t world_size;
    const char *path;
} TEXTS[] = {
    // What a program puts in front of each line of a traceback is taken off the lines behind its
    // beginning, whatever numbers stand in it.
    {"[a 7 x1] Traceback (most recent call last):\n[a 8 x23]   File \"a.py\", line 1, in f\n"
     "[a 9 x23] KeyError: 3\n[b 9 x23] KeyError: 3\n[a x23] KeyError: 3\n",
     "1+1 - | [a 7 x1] Traceback (most recent call last):\n"
     "2+1 - |   File \"a.py\", line 1, in f\n3+1 - | KeyError: 3\n4+1 - | [b 9 x23] KeyError: 3\n"
     "5+1 - | [a x23] KeyError: 3\n",
     0, 0, NULL},
    {"it failed: Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 3\n"
     "    Traceback (most recent call last):\n    KeyError: 3\n",
     "1+1 - | it failed: Traceback (most recent call last):\n2+1 - |   File \"a.py\", line 1, in "
     "f\n"
     "3+1 - | KeyError: 3\n4+1 - |     Traceback (most recent call last):\n"
     "5+1 - |     KeyError: 3\n",
     0, 0, NULL},
    // A time in brackets is the kernel's only with a blank behind it.
    {"[Mon Jan  5 10:11:12 2026][1,3]<stderr>: a\n[Mon Jan  5 10:11:12 2026] b\n",
     "1+1 2026-01-05T10:11:12Z rank=3 | a\n2+1 2026-01-05T10:11:12Z k | b\n", 0, 0, NULL},
    // A record of /dev/kmsg has the lines that name its device; '+' goes on with the text.
    {"3,1,1000000,-;one\n SUBSYSTEM=pci\n DEVICE=+pci:0000:9b:00.0\n4,2,2000000,c;two \n"
     "4,3,2000001,+;halves\n4,4,3000000,-;NVRM: a\\x0aNVRM: b\ntext\n SUBSYSTEM=x\n",
     "1+3 2026-03-02T06:00:01Z k | one\n4+2 2026-03-02T06:00:02Z k | two halves\n"
     "6+1 2026-03-02T06:00:03Z k | NVRM: a\n6+0 2026-03-02T06:00:03Z k | NVRM: b\n7+1 - | text\n"
     "8+1 nothing\n",
     BOOT, 0, NULL},
    {"[Mar14 01:50] a\n[  +0.500000] b\n[  +9.250000] c\n[Mar14 01:52] d\n[  +1.0] e\n",
     "1+1 2026-03-14T01:50:00Z~60s k | a\n2+1 2026-03-14T01:50:00.5Z~60s k | b\n"
     "3+1 2026-03-14T01:50:09.75Z~60s k | c\n4+1 2026-03-14T01:52:00Z~60s k | d\n"
     "5+1 2026-03-14T01:52:01Z~60s k | e\n",
     0, 0, NULL},
    // Two boots: each has its own beginning, where a line says both times.
    {"Mar  2 08:00:00 n kernel: [ 7200.0] a\n[ 7201.0] b\nMar  2 08:30:00 n kernel: [    0.0] c\n"
     "[   61.5] d\n",
     "1+1 2026-03-02T08:00:00Z k host=n program=kernel | a\n2+1 2026-03-02T08:00:01Z k | b\n"
     "3+1 2026-03-02T08:30:00Z k host=n program=kernel | c\n4+1 2026-03-02T08:31:01.5Z k | d\n",
     UINT64_C(1772440200000000000), 0, NULL},
    // Parts pstore: time runs backwards, and that is no boot.
    {"Panic#1 Part1\n<0>[ 7200.9] a\nPanic#1 Part2\n<3>[ 7100.0] b\n",
     "1+1 - | Panic#1 Part1\n2+1 2026-03-02T08:00:00.9Z k | a\n3+1 - | Panic#1 Part2\n"
     "4+1 2026-03-02T07:58:20Z k | b\n",
     BOOT, 0, NULL},
    {"2026-03-14T01:50:17.1Z stderr P [rank2]: a \n2026-03-14T01:50:17.2Z stdout F out\n"
     "2026-03-14T01:50:17.3Z stderr P b \n2026-03-14T01:50:17.4Z stdout P half \n"
     "2026-03-14T01:50:17.5Z stderr F c\n2026-03-14T01:50:17.6Z stdout P more\n",
     "2+1 2026-03-14T01:50:17.2Z ns=ml pod=t-2 uid=0d9e2a41-6f0b-4f0e-8a53-1c2d3e4f5a6b "
     "container=w | out\n"
     "1+3 2026-03-14T01:50:17.1Z ns=ml pod=t-2 uid=0d9e2a41-6f0b-4f0e-8a53-1c2d3e4f5a6b "
     "container=w rank=2 | a b c\n"
     "4+2 2026-03-14T01:50:17.4Z ns=ml pod=t-2 uid=0d9e2a41-6f0b-4f0e-8a53-1c2d3e4f5a6b "
     "container=w truncated | half more\n",
     0, 0, "/var/log/pods/ml_t-2_0d9e2a41-6f0b-4f0e-8a53-1c2d3e4f5a6b/w/1.log"},
    {"{\"log\":\"a \",\"stream\":\"stderr\",\"time\":\"2026-03-14T01:50:17Z\"}\n"
     "{\"log\":\"b\\n\",\"stream\":\"stderr\",\"time\":\"2026-03-14T01:50:18Z\"}\n",
     "1+2 2026-03-14T01:50:17Z | a b\n", 0, 0, NULL},
    {"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1773453017500000\n_HOSTNAME=n\n_TRANSPORT=kernel\n"
     "MESSAGE=text\n\n__REALTIME_TIMESTAMP=1773453018000000\nMESSAGE=other\n_TRANSPORT=syslog\n"
     "__REALTIME_TIMESTAMP=1773453019000000\nMESSAGE=last\n",
     "1+6 2026-03-14T01:50:17.5Z k host=n | text\n7+3 2026-03-14T01:50:18Z p | other\n"
     "10+2 2026-03-14T01:50:19Z | last\n",
     0, 0, NULL},
    {"{\n   \"dmesg\": [\n      {\n         \"pri\": 6,\n         \"time\":   100.000001,\n"
     "         \"msg\": \"a \\\"b\\\"\"\n      },{\n         \"pri\": 30,\n         \"time\":   "
     "1.5,\n"
     "         \"msg\": \"c\"\n      }\n   ]\n}\n",
     "1+1 - | {\n2+1 - |    \"dmesg\": [\n3+5 2026-03-02T06:01:40.000001Z k | a \"b\"\n"
     "8+4 2026-03-02T06:00:01.5Z p | c\n12+1 nothing\n13+1 - | }\n",
     BOOT, 0, NULL},
    // Labels: of ranks where their number is known, else of tasks once they came again; numbers of
    // lines and too large ones are none.
    {" 0: a\n12: b\n 3:   c\n12: \n 3: d\n",
     "1+1 - rank=0 | a\n2+1 - rank=12 | b\n3+1 - rank=3 |   c\n4+1 - rank=12 | \n5+1 - rank=3 | "
     "d\n",
     0, 16, NULL},
    {"0: a\n1: b\n0: c\n1: d\n0: e\n",
     "1+1 - | 0: a\n2+1 - | 1: b\n3+1 - | 0: c\n4+1 - | 1: d\n5+1 - task=0 | e\n", 0, 0, NULL},
    {"99: a\n 3: b\n", "1+1 - | 99: a\n2+1 - |  3: b\n", 0, 16, NULL},
    {" 1: a\n 2: b\n 3: c\n 4: d\n 5: e\n 6: f\n",
     "1+1 - rank=1 | a\n2+1 - rank=2 | b\n3+1 - rank=3 | c\n4+1 - rank=4 | d\n5+1 - |  5: e\n"
     "6+1 - |  6: f\n",
     0, 16, NULL},
    // Names of logs.
    {"a\n", "1+1 - rank=3 | a\n", 0, 0, "/logs/rank_3.log"},
    {"a\n", "1+1 - rank=3 | a\n", 0, 0, "/logs/1/rank.3/stderr"},
    {"a\n", "1+1 - local=3 | a\n", 0, 0, "/logs/workerlog.3"},
    {"a\n", "1+1 - pid=29753 | a\n", 0, 0,
     "/logs/worker-f0329e3d4a6ccdea47335d95817993675430acd843576291a5eb30a4-ffffffff-29753.err"},
    {"a\n", "1+1 - pid=29753 | a\n", 0, 0,
     "python-core-worker-f0329e3d4a6ccdea47335d95817993675430acd843576291a5eb30a4_29753.log"},
    {"a\n", "1+1 - | a\n", 0, 0, "/logs/worker-a1-b2-29753.err"},
    {"a\n", "1+1 - rank=3 | a\n", 0, 0, "/logs/run/rank3/stderr"},
    {"a\n", "1+1 - rank=3 | a\n", 0, 0, "/logs/1/rank.3/stderr"},
    {"a\n", "1+1 - ns=ml pod=t-2 uid=0d9e2a41-6f0b-4f0e-8a53-1c2d3e4f5a6b container=w | a\n", 0, 0,
     "copied/ml_t-2_0d9e2a41-6f0b-4f0e-8a53-1c2d3e4f5a6b/w/0.log"},
    {"a\n", "1+1 - | a\n", 0, 0, "copied/ml_t-2_0d9e2a41-6f0b-4f0e-8a53-1c2d3e4f5a6X/w/0.log"},
    {"a\n", "1+1 - | a\n", 0, 0, "/logs/franks3/local_rank_3"},
    {"a\n", "1+1 - rank=3 | a\n", 0, 4, "/logs/out.3"},
    {"a\n", "1+1 - | a\n", 0, 0, "/logs/out.3"},
    {"a\n", "1+1 - | a\n", 0, 4, "/var/log/kern.log.3"},
    {"a\n", "1+1 - local=5 | a\n", 0, 0, "/tmp/te/none_x/attempt_1/5/stderr.log"},
    {"a\n", "1+1 - ns=ml pod=t-2 container=w | a\n", 0, 0,
     "/var/log/containers/"
     "t-2_ml_w-4be14be14be14be14be14be14be14be14be14be14be14be14be14be14be14be1.log"},
    // A kernel's line is nobody's rank.
    {"[ 1.0] a\n", "1+1 !missing_timestamp k | a\n", 0, 0, "/logs/rank_3.log"},
};

START_TEST(several_lines) {
    struct decoder_input input = input_of(TEXTS[_i].boot_ns, TEXTS[_i].world_size, TEXTS[_i].path);
    const char *got = frames_of(slice_of(TEXTS[_i].text), &input, FORM_ANY);
    ck_assert_msg(strcmp(got, TEXTS[_i].want) == 0, "%s\n got\n%s want\n%s", TEXTS[_i].text, got,
                  TEXTS[_i].want);
}
END_TEST

START_TEST(several_lines_cut_off) {
    struct decoder_input input = input_of(TEXTS[_i].boot_ns, TEXTS[_i].world_size, TEXTS[_i].path);
    struct slice whole = slice_of(TEXTS[_i].text);
    for (size_t size = 0; size < whole.size; size++) {
        frames_of((struct slice){whole.data, size}, &input, FORM_ANY);
        arena_reset(&arena);
    }
}
END_TEST

// What lies before the last boot is not reckoned from it, and what comes after the end not either.
START_TEST(boots) {
    static const char text[] =
        "[  100.0] a\n  more\n[    0.000000] b\n[    0.000000] c\n[   50.0] d\n"
        "[    0.000000] e\n[   60.0] f\n";
    struct decoder_input input = input_of(0, 0, NULL);
    input.is_file = true;
    input.tail = SLICE(text);
    ck_assert_str_eq(frames_of(SLICE(text), &input, FORM_ANY),
                     "1+1 !missing_timestamp k | a\n2+1 - |   more\n3+1 !missing_timestamp k | b\n"
                     "4+1 !missing_timestamp k | c\n5+1 !missing_timestamp k | d\n"
                     "6+1 2026-03-19T23:59:00Z k | e\n7+1 2026-03-20T00:00:00Z k | f\n");
    // Of a stream only the boot is known that was said.
    input = input_of(BOOT, 0, NULL);
    ck_assert_str_eq(frames_of(SLICE("[  1.0] a\n[    0.000000] b\n[  1.0] c\n"), &input, FORM_ANY),
                     "1+1 2026-03-02T06:00:01Z k | a\n2+1 !missing_timestamp k | b\n"
                     "3+1 !missing_timestamp k | c\n");
}
END_TEST

START_TEST(zones) {
    static const struct {
        const char *zone, *text, *want;
    } rows[] = {
        {"Europe/Berlin", "[Sun Apr  5 02:50:17 2026] a", "1+1 2026-04-05T00:50:17Z k | a\n"},
        {"Europe/Berlin", "Sat 2026-03-14 01:50:17 CET n kernel: a",
         "1+1 2026-03-14T00:50:17Z k host=n program=kernel | a\n"},
        {"Europe/Berlin", "Sat 2026-03-14 01:50:17 UTC n kernel: a",
         "1+1 2026-03-14T01:50:17Z k host=n program=kernel | a\n"},
        {"+02:00", "Mar 14 01:50:17 n kernel: a",
         "1+1 2026-03-13T23:50:17Z k host=n program=kernel | a\n"},
        {"Asia/Shanghai", "[E314 09:50:17.3 F.cpp:1] a",
         "1+1 2026-03-14T01:50:17.3Z | [E314 09:50:17.3 F.cpp:1] a\n"},
        {"Asia/Shanghai", "2026-03-14T01:50:17Z a", "1+1 2026-03-14T01:50:17Z | a\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct time_zone *zone = time_zone_open(slice_of(rows[i].zone));
        ck_assert_ptr_nonnull(zone);
        struct decoder_input input = input_of(0, 0, NULL);
        input.zone = zone;
        ck_assert_str_eq(frames_of(slice_of(rows[i].text), &input, FORM_ANY), rows[i].want);
        time_zone_close(zone);
    }
}
END_TEST

// Lines with the same prefixes have the same writer, and no others.
START_TEST(writers) {
    static const char *const lines[] = {
        "[rank3]: a",
        "[rank4]: a",
        "a",
        "(W pid=1) a",
        "(W pid=2) a",
        "Mar 14 01:50:17 n kernel: a",
        "Mar 14 01:50:17 m kernel: a",
        "Mar 14 01:50:17 n sshd[1]: a",
        "[pod/p/c] a",
        "[pod/p/d] a",
        CRI "F a",
        "2026-03-14T01:50:17.000000001Z stdout F a",
        "[default3]:a",
    };
    enum { COUNT = sizeof lines / sizeof *lines };
    uint64_t keys[COUNT];
    struct decoder_input input = input_of(BOOT, 0, NULL);
    struct frame_reader *reader = frame_reader_make(&input, FORM_ANY);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            struct frame frame;
            struct decode_fault fault;
            ck_assert_int_eq(frame_read(reader, slice_of(lines[i]), i, &arena, &frame, &fault),
                             FRAME_LINE);
            ck_assert_int_eq(frame.has_writer, i != 2);
            for (size_t j = 0; round == 0 && j < i; j++)
                ck_assert_msg(keys[j] != frame.key, "%s, %s", lines[j], lines[i]);
            ck_assert(round == 0 || keys[i] == frame.key);
            ck_assert_int_eq(frame.key == frame.around, i >= 2);
            keys[i] = frame.key;
        }
    }
    frame_reader_free(reader);
}
END_TEST

// However often a pattern comes on a line, no more memory is taken than a few times its size, and
// no more frames are made than are bounded: with what each peel may look at, the work is linear.
START_TEST(patterns_cost_no_more_than_their_size) {
    static const char *const patterns[] = {
        "[",        "[[rank",       "1: ",          "1,",
        "\x1b[",    "\x1b]",        "{\"log\":",    "<1>",
        "(a pid=",  " kernel: ",    "\r",           "a\r",
        "\\x0a",    "[rank1]:",     "kernel: ",     "Mar 14 01:50:17 n kernel: ",
        "[ 1.5]",   "[default1]:",  "\xef\xbb\xbf", "2026-03-14T01:50:17Z ",
        CRI "F ",   CRI "P ",       "[rank",        "\t",
        "MESSAGE=", "[Mar14 01:50]"};
    enum { SIZE = 1 << 20 };
    char *line = malloc(SIZE);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        size_t size = strlen(patterns[i]);
        for (size_t at = 0; at < SIZE; at++)
            line[at] = patterns[i][at % size];
        struct decoder_input input = input_of(BOOT, 16, NULL);
        struct frame_reader *reader = frame_reader_make(&input, FORM_ANY);
        struct frame frame;
        struct decode_fault fault = {0};
        uint64_t before = memory_figures().live_bytes;
        unsigned frames = 0;
        frame_read(reader, (struct slice){line, SIZE}, 1, &arena, &frame, &fault);
        frame_finish(reader);
        while (frame_next(reader, &arena, &frame, &fault) != FRAME_END)
            frames++;
        ck_assert_msg(frames <= 64, "%s: %u frames", patterns[i], frames);
        ck_assert_msg(memory_figures().live_bytes - before <= 8 * SIZE, "%s", patterns[i]);
        frame_reader_free(reader);
        arena_release(&arena);
        arena_init(&arena, 4096);
    }
    free(line);
}
END_TEST

START_TEST(a_line_that_breaks_off) {
    static const struct {
        const char *before, *line, *want;
    } rows[] = {
        {"", "text", "2+1 - truncated | text\n"},
        {"4,1,1000000,-;a", "4,2,2000000,-;b",
         "1+1 2026-03-02T06:00:01Z k | a\n2+1 2026-03-02T06:00:02Z k truncated | b\n"},
        {"4,1,1000000,-;a", " SUBSYS", "1+2 2026-03-02T06:00:01Z k | a\n"},
        {CRI "P a ", CRI "F b", "1+2 2026-03-14T01:50:17.000000001Z truncated | a b\n"},
        {"__REALTIME_TIMESTAMP=1773453017500000", "MESSAGE=te",
         "1+2 2026-03-14T01:50:17.5Z truncated | te\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct decoder_input input = input_of(BOOT, 0, NULL);
        struct frame_reader *reader = frame_reader_make(&input, FORM_ANY);
        struct frame frame;
        struct decode_fault fault = {0};
        buffer_reset(&shown);
        frame_read(reader, slice_of(rows[i].before), 1, &arena, &frame, &fault);
        show_rest(reader);
        frame_cut(reader);
        show_step(frame_read(reader, slice_of(rows[i].line), 2, &arena, &frame, &fault), &frame,
                  &fault);
        show_rest(reader);
        frame_finish(reader);
        show_rest(reader);
        buffer_append_char(&shown, (char)0);
        ck_assert_str_eq(shown.data, rows[i].want);
        frame_reader_free(reader);
    }
}
END_TEST

START_TEST(parts_are_bounded) {
    enum { PART = 1 << 20 };
    static const char head[] = CRI "P ";
    char *line = malloc(PART);
    memset(line, 'x', PART);
    memcpy(line, head, sizeof head - 1);
    struct decoder_input input = input_of(0, 0, NULL);
    struct frame_reader *reader = frame_reader_make(&input, FORM_ANY);
    struct frame frame;
    struct decode_fault fault = {0};
    for (uint64_t i = 1; i <= 40; i++) {
        ck_assert_int_eq(frame_read(reader, (struct slice){line, PART}, i, &arena, &frame, &fault),
                         FRAME_HELD);
        ck_assert_int_eq(frame_next(reader, &arena, &frame, &fault), FRAME_END);
    }
    ck_assert(frame_holds(reader));
    frame_finish(reader);
    ck_assert_int_eq(frame_next(reader, &arena, &frame, &fault), FRAME_LINE);
    ck_assert_uint_eq(frame.position, 1);
    ck_assert_uint_eq(frame.lines, 40);
    ck_assert(frame.truncated);
    ck_assert_uint_le(frame.message.size, 16 << 20);
    ck_assert_uint_gt(frame.message.size, 15 << 20);
    ck_assert_int_eq(frame_next(reader, &arena, &frame, &fault), FRAME_END);
    frame_reader_free(reader);
    free(line);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("frame_reader");
    TCase *cases = tcase_create("frame_reader");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_loop_test(cases, single_lines, 0, sizeof LINES / sizeof *LINES);
    tcase_add_loop_test(cases, single_lines_cut_off, 0, sizeof LINES / sizeof *LINES);
    tcase_add_loop_test(cases, several_lines, 0, sizeof TEXTS / sizeof *TEXTS);
    tcase_add_loop_test(cases, several_lines_cut_off, 0, sizeof TEXTS / sizeof *TEXTS);
    tcase_add_test(cases, boots);
    tcase_add_test(cases, zones);
    tcase_add_test(cases, writers);
    tcase_add_test(cases, patterns_cost_no_more_than_their_size);
    tcase_add_test(cases, a_line_that_breaks_off);
    tcase_add_test(cases, parts_are_bounded);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
