// SPDX-License-Identifier: Apache-2.0
// The tables that the build makes are those of processors/cluster/tables/, line by line; and
// looking them up.
#include "processors/cluster/causes.h"
#include "processors/cluster/tables.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS_MAX = 12, LINE_MAX_BYTES = 4096 };

struct tsv {
    FILE *file;
    char line[LINE_MAX_BYTES];
    char *columns[COLUMNS_MAX];
    uint32_t count;
};

static struct tsv tsv_open(const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/../processors/cluster/tables/%s", TESTS_DIR, name);
    struct tsv tsv = {.file = fopen(path, "r")};
    ck_assert_msg(tsv.file != NULL, "%s", path);
    ck_assert_ptr_nonnull(fgets(tsv.line, sizeof tsv.line, tsv.file)); // the heading
    return tsv;
}

static bool tsv_next(struct tsv *tsv) {
    if (fgets(tsv->line, sizeof tsv->line, tsv->file) == NULL) {
        fclose(tsv->file);
        return false;
    }
    tsv->line[strcspn(tsv->line, "\n")] = '\0';
    tsv->count = 0;
    for (char *at = tsv->line; at != NULL; tsv->count++) {
        ck_assert_uint_lt(tsv->count, COLUMNS_MAX);
        tsv->columns[tsv->count] = strsep(&at, "\t");
    }
    return true;
}

START_TEST(xid_rows) {
    struct tsv tsv = tsv_open("xid.tsv");
    size_t row = 0;
    for (; tsv_next(&tsv); row++) {
        ck_assert_uint_lt(row, XID_ROWS_COUNT);
        const struct xid_row *xid = &XID_ROWS[row];
        const char *texts[] = {xid->mnemonic,
                               xid->meaning,
                               xid->class_text,
                               xid->severity_text,
                               xid->fault_domain,
                               xid->nvidia_immediate,
                               xid->nvidia_investigatory,
                               xid->action_text,
                               xid->anchor_text,
                               xid->hbm_role_text,
                               xid->source};
        ck_assert_uint_eq(tsv.count, 12);
        ck_assert_uint_eq(xid->code, strtoul(tsv.columns[0], NULL, 10));
        for (size_t i = 0; i < 11; i++)
            ck_assert_str_eq(texts[i], tsv.columns[i + 1]);
        ck_assert_ptr_eq(xid_find(xid->code), xid);
        ck_assert_int_eq(xid->anchor == XID_ANCHOR_NO, strcmp(tsv.columns[9], "no") == 0);
        ck_assert_int_eq(xid->needs_fatal, strstr(tsv.columns[4], "Fatal") != NULL);
        ck_assert_int_eq(xid->hbm_role == XID_HBM_ANCHOR, strcmp(tsv.columns[10], "anchor") == 0);
        ck_assert(strncmp(severity_name(xid->severity), tsv.columns[4],
                          strlen(severity_name(xid->severity))) == 0);
        if (xid->action != NULL)
            ck_assert(strncmp(xid->action, tsv.columns[8], strlen(xid->action)) == 0);
        else
            ck_assert(strcmp(tsv.columns[8], "follow_other") == 0 ||
                      strcmp(tsv.columns[8], "use_text") == 0);
    }
    ck_assert_uint_eq(row, XID_ROWS_COUNT);
    ck_assert_uint_eq(row, 65);
}
END_TEST

START_TEST(nvlink5_rows) {
    struct tsv tsv = tsv_open("nvlink5.tsv");
    size_t row = 0;
    for (; tsv_next(&tsv); row++) {
        ck_assert_uint_lt(row, NVLINK5_ROWS_COUNT);
        const struct nvlink5_row *known = &NVLINK5_ROWS[row];
        const char *texts[] = {known->status_text,          known->nvidia_immediate,
                               known->nvidia_investigatory, known->severity_text,
                               known->judged_text,          known->effect};
        ck_assert_uint_eq(tsv.count, 9);
        ck_assert_uint_eq(known->xid, strtoul(tsv.columns[0], NULL, 10));
        ck_assert_str_eq(known->units, tsv.columns[1]);
        ck_assert_uint_eq(known->subcode, strtoul(tsv.columns[2], NULL, 10));
        ck_assert_uint_eq(known->statuses[0], strtoul(tsv.columns[3], NULL, 16));
        for (size_t i = 0; i < 6; i++)
            ck_assert_str_eq(texts[i], tsv.columns[i + 3]);
    }
    ck_assert_uint_eq(row, NVLINK5_ROWS_COUNT);
}
END_TEST

START_TEST(sxid_rows) {
    struct tsv tsv = tsv_open("sxid.tsv");
    size_t row = 0;
    for (; tsv_next(&tsv); row++) {
        ck_assert_uint_lt(row, SXID_ROWS_COUNT);
        const struct sxid_row *sxid = &SXID_ROWS[row];
        const char *texts[] = {sxid->name,      sxid->severity_text, sxid->harmless_text,
                               sxid->authority, sxid->meaning,       sxid->action};
        ck_assert_uint_eq(tsv.count, 7);
        ck_assert_uint_eq(sxid->code, strtoul(tsv.columns[0], NULL, 10));
        for (size_t i = 0; i < 6; i++)
            ck_assert_str_eq(texts[i], tsv.columns[i + 1]);
        ck_assert_ptr_eq(sxid_find(sxid->code), sxid);
    }
    ck_assert_uint_eq(row, SXID_ROWS_COUNT);
    ck_assert_ptr_null(sxid_find(0));
    ck_assert_ptr_null(sxid_find(UINT32_MAX));
    ck_assert_int_eq(sxid_find(22013)->harmless, SXID_HARMLESS_YES);
    ck_assert_int_eq(sxid_find(20034)->severity, KERNEL_FATAL_YES);
}
END_TEST

// The first word has the subcode, the second the cause: a bit, or of Xid 149 a number.
static const struct {
    uint32_t xid;
    const char *detail;
    enum nvlink5 judged;
} NVLINK5[] = {
    {149, "NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x00000000 0x0)", NVLINK5_FATAL},
    {149, "NETIR_LINK_EVT  Fatal   XC0 i0 Link 15 (0x0215e5c6 0x00000000 0x0)", NVLINK5_PEER},
    {149, "NETIR_LINK_EVT/x Fatal XC0 i0 Link 15 (0x015505c6 0x00000000 0x0)", NVLINK5_PEER},
    {149, "NETIR_LINK_EVT  Fatal   XC0 i0 Link 15 (0x00f505c6 0x00000000 0x0)", NVLINK5_SOFTWARE},
    {149, "NETIR_LINK_EVT  Fatal   XC0 i0 Link 15 (0x026505c6 0x00000000 0x0)", NVLINK5_NOTHING},
    {149, "NETIR_LINK_EVT  Fatal   XC0 i0 Link 15 (0x028505c6 0x00000000 0x0)", NVLINK5_NOTE},
    {149, "NETIR_LINK_EVT  Fatal   XC0 i1 Link 08 (0x004505c6 0x00000000 0x0)", NVLINK5_NOTHING},
    {149, "NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x03f505c6 0x00000000 0x0)", NVLINK5_UNKNOWN},
    {149, "NETIR_BER_EVENT Nonfatal XC0 i0 Link 08 (0x00000226 0x00000002 0x0)", NVLINK5_NOTE},
    {149, "NETIR_MFDE_EVENT Fatal XC0 i0 Link -1 (0x00000246 0x00000005)", NVLINK5_FATAL},
    {149, "NETIR_MFDE_EVENT Nonfatal XC0 i0 Link -1 (0x00000246 0x00000003)", NVLINK5_NOTHING},
    {145, "RLW_REMAP Nonfatal XC0 i0 Link 02 (0x00000004 0x00000004 0x0)", NVLINK5_ENDS_PROCESS},
    {145, "RLW_REMAP Fatal XC0 i0 Link 02 (0x00000004 0x00000041 0x0)", NVLINK5_FATAL},
    {149, "NETIR_LINK_EVT Nonfatal XC0 i0 Link 08 (0x004505c6 0x00000000 0x0)", NVLINK5_NOTE},
    {145, "RLW_RSPCOL Nonfatal XC0 i0 Link 02 (0x00000005 0x80000000)", NVLINK5_NOTHING},
    {146, "TLW_RX_PIPE1 Fatal XC0 i0 Link 02 (0x0000000b 0x00000004)", NVLINK5_FATAL},
    {145, "RLW_REMAP Nonfatal XC0 i0 Link 02 (0x00000004", NVLINK5_UNKNOWN},
    {145, "RLW_REMAP Nonfatal", NVLINK5_UNKNOWN},
    {79, "GPU has fallen off the bus.", NVLINK5_UNKNOWN},
    {149, "", NVLINK5_UNKNOWN},
};

START_TEST(nvlink5_by_meaning) {
    ck_assert_int_eq(nvlink5_judge(NVLINK5[_i].xid, slice_of(NVLINK5[_i].detail)),
                     NVLINK5[_i].judged);
}
END_TEST

START_TEST(aer_rows) {
    struct tsv tsv = tsv_open("aer_bits.tsv");
    size_t row = 0;
    for (; tsv_next(&tsv); row++) {
        ck_assert_uint_lt(row, AER_BITS_COUNT);
        const struct aer_bit *bit = &AER_BITS[row];
        const char *texts[] = {bit->kernel_name,  bit->sysfs_doc_name,        bit->kernel_layer,
                               bit->kernel_agent, bit->default_severity_text, bit->usual_meaning,
                               bit->source};
        ck_assert_uint_eq(tsv.count, 9);
        ck_assert_str_eq(bit->reg, tsv.columns[0]);
        ck_assert_uint_eq(bit->bit, strtoul(tsv.columns[1], NULL, 10));
        for (size_t i = 0; i < 7; i++)
            ck_assert_str_eq(texts[i], tsv.columns[i + 2]);
        enum aer_severity severity = bit->default_severity;
        ck_assert_ptr_eq(aer_bit_find(severity, bit->bit), bit);
        ck_assert_ptr_eq(aer_bit_find_name(severity, slice_of(bit->kernel_name)), bit);
        ck_assert_ptr_eq(aer_bit_find_name(severity, slice_of(bit->sysfs_doc_name)), bit);
    }
    ck_assert_uint_eq(row, AER_BITS_COUNT);
}
END_TEST

START_TEST(throttle_rows) {
    struct tsv tsv = tsv_open("throttle_bits.tsv");
    uint64_t mask = 0;
    size_t row = 0;
    for (; tsv_next(&tsv); row++) {
        ck_assert_uint_lt(row, THROTTLE_BITS_COUNT);
        const struct throttle_bit *bit = &THROTTLE_BITS[row];
        const char *texts[] = {bit->bit_text, bit->dcgm_name, bit->meaning,
                               bit->group,    bit->use,       bit->source};
        ck_assert_uint_eq(tsv.count, 6);
        for (size_t i = 0; i < 6; i++)
            ck_assert_str_eq(texts[i], tsv.columns[i]);
        mask |= bit->mask;
        ck_assert_uint_eq(bit->mask, strtoul(tsv.columns[0], NULL, 16));
        ck_assert_ptr_eq(throttle_bit_find(bit->mask), bit->mask == 0 ? NULL : bit);
    }
    ck_assert_uint_eq(row, THROTTLE_BITS_COUNT);
    ck_assert_uint_eq(mask, 0x1ff);
}
END_TEST

START_TEST(looking_up) {
    ck_assert_ptr_null(xid_find(0));
    ck_assert_ptr_null(xid_find(9));
    ck_assert_ptr_null(xid_find(UINT32_MAX));
    static const uint32_t copies[] = {40, 41, 70, 71, 72, 75, 77, 85, 126, 130, 135};
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        ck_assert_ptr_eq(xid_find(copies[i]), xid_find(39));
    ck_assert_ptr_null(xid_find(73));
    ck_assert_ptr_null(xid_find(125));
    ck_assert_ptr_null(aer_bit_find(AER_CORRECTABLE, 1));
    ck_assert_ptr_null(aer_bit_find(AER_CORRECTABLE, 4));
    ck_assert_str_eq(aer_bit_find(AER_FATAL, 12)->kernel_name, "TLP");
    ck_assert_str_eq(aer_bit_find(AER_CORRECTABLE, 12)->kernel_name, "Timeout");
    ck_assert_ptr_null(aer_bit_find_name(AER_CORRECTABLE, SLICE("TLP")));
    ck_assert_ptr_null(aer_bit_find_name(AER_CORRECTABLE, SLICE("")));
    ck_assert_str_eq(aer_bit_find_name(AER_CORRECTABLE, SLICE("receiver error"))->kernel_name,
                     "RxErr");
    ck_assert_ptr_null(throttle_bit_find(0x60));
}
END_TEST

START_TEST(judging) {
    struct xid_judgement judgement = xid_judge(79, false);
    ck_assert_int_eq(judgement.anchor, XID_ANCHOR_YES);
    ck_assert_int_eq(judgement.severity, SEVERITY_CRITICAL);
    ck_assert_str_eq(judgement.action, "drain_node");
    ck_assert_int_eq(xid_judge(149, true).anchor, XID_ANCHOR_YES);
    ck_assert_str_eq(xid_judge(149, true).action, "reset_gpu");
    ck_assert_int_eq(xid_judge(149, false).anchor, XID_ANCHOR_NO);
    ck_assert_int_eq(xid_judge(149, false).severity, SEVERITY_WARNING);
    ck_assert_str_eq(xid_judge(149, false).action, "monitor");
    ck_assert_ptr_null(xid_judge(45, false).action);
    ck_assert_int_eq(xid_judge(13, false).anchor, XID_ANCHOR_NO);
    ck_assert_int_eq(xid_judge(39, false).anchor, XID_ANCHOR_LOW);
    ck_assert_str_eq(xid_judge(63, false).action, "reset_gpu");
    ck_assert(xid_find(63)->when_free);
    ck_assert_int_eq(xid_judge(12345, true).anchor, XID_ANCHOR_NO);
}
END_TEST

// -- causes of exceptions -------------------------------------------------------------------------

static const char *words_of(const char *type, const char *message) {
    const struct cause_row *cause = cause_find(slice_of(type), slice_of(message));
    return cause == NULL ? NULL : cause->words;
}

// Each row is found by its words, be they in the type or in the message, and with more around them.
START_TEST(cause_rows) {
    const struct cause_row *row = &CAUSE_ROWS[_i];
    char around[256];
    snprintf(around, sizeof around, "<%s>", row->words);
    ck_assert_str_eq(words_of("", around), row->words);
    ck_assert_str_eq(words_of(around, ""), row->words);
    ck_assert_int_ne(row->restart, RESTART_STOPPED);
}
END_TEST

START_TEST(causes_of_exceptions) {
    ck_assert_str_eq(words_of("OSError", "[Errno 5] Input/output error: '/scratch/ckpt'"),
                     "[Errno 5]");
    ck_assert_str_eq(words_of("OSError", "[Errno 28] No space left on device"), "[Errno 28]");
    ck_assert_str_eq(words_of("KeyError", "'labels'"), "KeyError");
    ck_assert_ptr_null(words_of("ValueError", "label 7 out of range"));
    ck_assert_ptr_null(words_of("", ""));
}
END_TEST

// Two processes with memory of one GPU: the other holds it. Its own use alone is the program's.
START_TEST(memory_that_another_process_holds) {
    static const char oom[] =
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total "
        "capacity of 79.11 GiB of which 1.31 GiB is free. ";
    char message[512];
    snprintf(message, sizeof message,
             "%sProcess 918273 has 76.90 GiB memory in use. Including non-PyTorch memory, this "
             "process has 884.00 MiB memory in use.",
             oom);
    const struct cause_row *held = cause_find(SLICE("OutOfMemoryError"), slice_of(message));
    ck_assert_int_eq(held->restart, RESTART_ELSEWHERE);
    snprintf(message, sizeof message,
             "%sIncluding non-PyTorch memory, this process has 77.50 GiB memory in use.", oom);
    ck_assert_str_eq(words_of("OutOfMemoryError", message), "out of memory. Tried to allocate");
    snprintf(message, sizeof message, "%sProcess 41 has 77.50 GiB memory in use.", oom);
    ck_assert_str_eq(words_of("OutOfMemoryError", message), "out of memory. Tried to allocate");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("tables");
    TCase *cases = tcase_create("tables");
    tcase_add_test(cases, xid_rows);
    tcase_add_test(cases, nvlink5_rows);
    tcase_add_test(cases, sxid_rows);
    tcase_add_loop_test(cases, nvlink5_by_meaning, 0, sizeof NVLINK5 / sizeof *NVLINK5);
    tcase_add_test(cases, aer_rows);
    tcase_add_test(cases, throttle_rows);
    tcase_add_test(cases, looking_up);
    tcase_add_test(cases, judging);
    tcase_add_loop_test(cases, cause_rows, 0, (int)CAUSE_ROWS_COUNT);
    tcase_add_test(cases, causes_of_exceptions);
    tcase_add_test(cases, memory_that_another_process_holds);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
