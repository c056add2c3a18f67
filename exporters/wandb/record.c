// SPDX-License-Identifier: Apache-2.0
// How does a record wait between encoding and being said?
//
// As its fixed numbers, then its texts, each with its length. Numbers are in the machine's order:
// the bytes are read by the process that wrote them, or by one that loaded them from the store of
// the same machine.
#include "exporters/wandb/record.h"

#include <string.h>
#include <sys/random.h>

// What of a record has always the same size.
struct fixed {
    uint64_t sequence, time_ns, row, columns, rows, incarnation;
    int32_t exit_code;
    uint16_t kind;
    uint16_t skips_known;
};

enum { TEXTS = 11 };

static void list_texts(struct wandb_record *record, struct slice *texts[TEXTS]) {
    struct slice *all[TEXTS] = {
        &record->run,          &record->members,  &record->key,
        &record->file,         &record->type,     &record->artifact_file,
        &record->client_id,    &record->group,    &record->sequence_client_id,
        &record->display_name, &record->job_type,
    };
    memcpy(texts, all, sizeof all);
}

void wandb_record_write(const struct wandb_record *record, struct buffer *out) {
    struct wandb_record copy = *record;
    struct slice *texts[TEXTS];
    list_texts(&copy, texts);
    struct fixed fixed = {
        .sequence = record->sequence,
        .time_ns = record->time_ns,
        .row = record->row,
        .columns = record->columns,
        .rows = record->rows,
        .incarnation = record->incarnation,
        .exit_code = record->exit_code,
        .kind = (uint16_t)record->kind,
        .skips_known = record->skips_known,
    };
    uint64_t sizes[TEXTS + 1] = {sizeof fixed + sizeof sizes};
    for (int i = 0; i < TEXTS; i++) {
        sizes[i + 1] = texts[i]->size;
        sizes[0] += texts[i]->size;
    }
    buffer_append(out, (struct slice){(const char *)sizes, sizeof sizes});
    buffer_append(out, (struct slice){(const char *)&fixed, sizeof fixed});
    for (int i = 0; i < TEXTS; i++)
        if (texts[i]->size > 0)
            buffer_append(out, *texts[i]);
}

bool wandb_record_read(struct slice *bytes, struct wandb_record *record) {
    uint64_t sizes[TEXTS + 1];
    struct fixed fixed;
    if (bytes->size < sizeof sizes + sizeof fixed)
        return false;
    memcpy(sizes, bytes->data, sizeof sizes);
    if (sizes[0] < sizeof sizes + sizeof fixed || sizes[0] > bytes->size)
        return false;
    memcpy(&fixed, bytes->data + sizeof sizes, sizeof fixed);
    if (fixed.kind < WANDB_RUN || fixed.kind > WANDB_FINISH)
        return false;
    *record = (struct wandb_record){
        .sequence = fixed.sequence,
        .time_ns = fixed.time_ns,
        .row = fixed.row,
        .columns = fixed.columns,
        .rows = fixed.rows,
        .incarnation = fixed.incarnation,
        .exit_code = fixed.exit_code,
        .kind = (enum wandb_record_kind)fixed.kind,
        .skips_known = fixed.skips_known != 0,
    };
    struct slice *texts[TEXTS];
    list_texts(record, texts);
    const char *at = bytes->data + sizeof sizes + sizeof fixed;
    uint64_t left = sizes[0] - sizeof sizes - sizeof fixed;
    for (int i = 0; i < TEXTS; i++) {
        if (sizes[i + 1] > left)
            return false;
        *texts[i] = (struct slice){at, sizes[i + 1]};
        at += sizes[i + 1];
        left -= sizes[i + 1];
    }
    if (left != 0)
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

uint64_t wandb_say(struct wandb_writer *writer, struct wandb_record *record) {
    char ids[2][WANDB_CLIENT_ID_SIZE];
    bool is_row =
        record->kind == WANDB_ROW || record->kind == WANDB_TABLE || record->kind == WANDB_HTML;
    record->sequence = ++*writer->sequence;
    record->run = writer->run;
    if (record->time_ns == 0)
        record->time_ns = writer->time_ns;
    record->row = is_row ? (*writer->row)++ : 0;
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
