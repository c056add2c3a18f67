// SPDX-License-Identifier: Apache-2.0
// Writes and reads records as they wait between encoding and delivery.
//
// The sizes of the whole and of each text, the numbers, the texts. Numbers are in the machine's
// order: the bytes are read by the process that wrote them, or by one that loaded them from the
// store of the same machine.
#include "exporters/wandb/record.h"

#include <string.h>
#include <sys/random.h>

enum { HEAD = (WANDB_RECORD_TEXTS + 1) * sizeof(uint64_t) }; // sizes of the whole and of each text

void wandb_record_write(const struct wandb_record *record, struct buffer *out) {
    assert(record->kind >= WANDB_RUN && record->kind <= WANDB_KIND_MAX && record->sequence > 0);
    uint64_t sizes[WANDB_RECORD_TEXTS + 1] = {HEAD + WANDB_RECORD_NUMBERS};
    for (int i = 0; i < WANDB_RECORD_TEXTS; i++) {
        sizes[i + 1] = record->texts[i].size;
        sizes[0] += record->texts[i].size;
    }
    buffer_append(out, (struct slice){(const char *)sizes, sizeof sizes});
    buffer_append(out, (struct slice){(const char *)record, WANDB_RECORD_NUMBERS});
    for (int i = 0; i < WANDB_RECORD_TEXTS; i++)
        if (record->texts[i].size > 0)
            buffer_append(out, record->texts[i]);
}

bool wandb_record_read(struct slice *bytes, struct wandb_record *record) {
    uint64_t sizes[WANDB_RECORD_TEXTS + 1];
    if (bytes->size < HEAD + WANDB_RECORD_NUMBERS)
        return false;
    memcpy(sizes, bytes->data, sizeof sizes);
    if (sizes[0] < HEAD + WANDB_RECORD_NUMBERS || sizes[0] > bytes->size)
        return false;
    memcpy(record, bytes->data + HEAD, WANDB_RECORD_NUMBERS);
    if (record->kind < WANDB_RUN || record->kind > WANDB_KIND_MAX || record->sequence == 0)
        return false;
    const char *at = bytes->data + HEAD + WANDB_RECORD_NUMBERS;
    uint64_t left = sizes[0] - HEAD - WANDB_RECORD_NUMBERS;
    for (int i = 0; i < WANDB_RECORD_TEXTS; i++) {
        if (sizes[i + 1] > left)
            return false;
        record->texts[i] = (struct slice){at, sizes[i + 1]};
        at += sizes[i + 1];
        left -= sizes[i + 1];
    }
    if (left != 0 || record->run.size == 0 || record->run.size > WANDB_RUN_ID_MAX)
        return false;
    bytes->data += sizes[0];
    bytes->size -= sizes[0];
    return true;
}

void wandb_random_text(char *text, size_t size) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    enum { LETTERS = sizeof letters - 1, WHOLE = 256 / LETTERS * LETTERS };
    size_t done = 0;
    while (done < size) {
        unsigned char noise[256];
        ssize_t got = getrandom(noise, sizeof noise, 0);
        for (ssize_t i = 0; i < got && done < size; i++)
            if (noise[i] < WHOLE) // so that all letters are equally likely
                text[done++] = letters[noise[i] % LETTERS];
    }
}

// The time of a row, or of an alert among them, that comes after the others.
static uint64_t row_time(struct wandb_writer *writer, const struct wandb_record *record) {
    uint64_t time_ns = record->time_ns;
    if (writer->row_time_ns == NULL)
        return time_ns;
    if (record->kind != WANDB_ROW && writer->table_time_ns > 0 && time_ns > writer->table_time_ns)
        time_ns = writer->table_time_ns;
    if (time_ns < *writer->row_time_ns + WANDB_ROW_STEP_NS)
        time_ns = *writer->row_time_ns + WANDB_ROW_STEP_NS;
    *writer->row_time_ns = time_ns;
    return time_ns;
}

uint64_t wandb_say(struct wandb_writer *writer, struct wandb_record *record) {
    assert(record->kind >= WANDB_RUN && writer->run.size > 0);
    char ids[2][WANDB_CLIENT_ID_SIZE];
    bool is_row =
        record->kind == WANDB_ROW || record->kind == WANDB_TABLE || record->kind == WANDB_HTML;
    record->sequence = ++*writer->sequence;
    record->run = writer->run;
    if (record->time_ns == 0)
        record->time_ns = writer->time_ns;
    if (is_row || record->kind == WANDB_ALERT)
        record->time_ns = row_time(writer, record);
    record->row = is_row ? (*writer->row)++ : record->kind == WANDB_RUN ? *writer->row : 0;
    if (record->kind == WANDB_TABLE || record->kind == WANDB_ARTIFACT) {
        wandb_random_text(ids[0], sizeof ids[0]);
        wandb_random_text(ids[1], sizeof ids[1]);
        record->client_id = (struct slice){ids[0], sizeof ids[0]};
        record->sequence_client_id = (struct slice){ids[1], sizeof ids[1]};
    }
    wandb_record_write(record, writer->out);
    uint64_t row = record->row;
    record->client_id = record->sequence_client_id = (struct slice){NULL, 0};
    return row;
}

void wandb_say_members(struct wandb_writer *writer, enum wandb_record_kind kind,
                       const struct buffer *members) {
    assert(kind == WANDB_ROW || kind == WANDB_SUMMARY);
    wandb_say(writer,
              &(struct wandb_record){.kind = (uint16_t)kind, .members = buffer_slice(members)});
}
