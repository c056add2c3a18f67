// SPDX-License-Identifier: Apache-2.0
// Names the files of a run, and makes the row values that point at them.
//
// Checksums are libnettle's. Linear in the bytes that are given; nothing is kept.
#include "exporters/wandb/media.h"

#include "base/text/json_write.h"
#include "exporters/wandb/files.h"

#include <nettle/base64.h>
#include <nettle/md5.h>
#include <nettle/sha2.h>
#include <stdio.h>

enum { ARTIFACT_PATH_MAX = 64 * 1024 };
static_assert(MEDIA_SHA256_SIZE == 2 * SHA256_DIGEST_SIZE + 1, "two digits a byte");
static_assert(MEDIA_MD5_SIZE == BASE64_ENCODE_RAW_LENGTH(MD5_DIGEST_SIZE) + 1, "with its padding");

void media_sha256(struct slice bytes, char hex[MEDIA_SHA256_SIZE]) {
    struct sha256_ctx hash;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&hash);
    if (bytes.size > 0)
        sha256_update(&hash, bytes.size, (const uint8_t *)bytes.data);
    sha256_digest(&hash, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

void media_md5(struct slice bytes, char base64[MEDIA_MD5_SIZE]) {
    struct md5_ctx hash;
    uint8_t digest[MD5_DIGEST_SIZE];
    md5_init(&hash);
    if (bytes.size > 0)
        md5_update(&hash, bytes.size, (const uint8_t *)bytes.data);
    md5_digest(&hash, sizeof digest, digest);
    base64_encode_raw(base64, sizeof digest, digest);
    base64[MEDIA_MD5_SIZE - 1] = '\0';
}

// -- names ----------------------------------------------------------------------------------------

void media_append_key(struct buffer *out, struct slice key) {
    while (key.size > 0 && key.data[0] == '/') {
        key.data++;
        key.size--;
    }
    for (size_t at = 0; at < key.size;) {
        const char *slash = memchr(key.data + at, '/', key.size - at);
        size_t end = slash == NULL ? key.size : (size_t)(slash - key.data);
        struct slice part = {key.data + at, end - at};
        if (slice_equal(part, SLICE(".")) || slice_equal(part, SLICE("..")))
            part = SLICE("_");
        for (size_t i = 0; i < part.size; i++)
            buffer_append_char(out, part.data[i] == '\0' ? '_' : part.data[i]);
        if (slash != NULL)
            buffer_append_char(out, '/');
        at = end + 1;
    }
}

void media_append_path(struct buffer *out, const struct wandb_record *record, uint64_t step,
                       const char sha256[MEDIA_SHA256_SIZE]) {
    assert(record->kind == WANDB_TABLE || record->kind == WANDB_HTML);
    bool table = record->kind == WANDB_TABLE;
    buffer_append_text(out, table ? "media/table/" : "media/html/");
    media_append_key(out, record->key);
    buffer_append_format(out, "_%llu_%.20s", (unsigned long long)step, sha256);
    buffer_append_text(out, table ? ".table.json" : ".html");
}

static void append_name(struct buffer *out, struct slice text, size_t *room) {
    for (size_t i = 0; i<text.size && * room> 0; i++)
        if (wandb_is_name_character(text.data[i])) {
            buffer_append_char(out, text.data[i]);
            --*room;
        }
}

void media_append_artifact_name(struct buffer *out, const struct wandb_record *record) {
    size_t room = MEDIA_NAME_MAX;
    if (record->kind == WANDB_TABLE) {
        append_name(out, SLICE("run-"), &room);
        append_name(out, record->run, &room);
        append_name(out, SLICE("-"), &room);
    }
    append_name(out, record->key, &room);
}

void media_append_artifact_file(struct buffer *out, const struct wandb_record *record) {
    assert(record->kind == WANDB_TABLE);
    media_append_key(out, record->key);
    buffer_append_text(out, ".table.json");
}

// -- pages and row values -------------------------------------------------------------------------

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
}

static struct slice trimmed(struct slice text, bool front, bool back) {
    while (front && text.size > 0 && is_space(text.data[0])) {
        text.data++;
        text.size--;
    }
    while (back && text.size > 0 && is_space(text.data[text.size - 1]))
        text.size--;
    return text;
}

// Where `page` goes on behind the first `tag`; 0: it has none.
static size_t behind(struct slice page, struct slice tag) {
    const char *found = memmem(page.data, page.size, tag.data, tag.size);
    return found == NULL ? 0 : (size_t)(found - page.data) + tag.size;
}

void media_append_html(struct buffer *out, struct slice page) {
    static const struct slice line = SLICE(
        "<base target=\"_blank\"><link rel=\"stylesheet\" type=\"text/css\" "
        "href=\"https://app.wandb.ai/normalize.css\" />");
    size_t head = page.size == 0 ? 0 : behind(page, SLICE("<head>"));
    size_t html = page.size == 0 || head > 0 ? 0 : behind(page, SLICE("<html>"));
    size_t cut = head + html; // one of them is 0
    buffer_append(out, trimmed((struct slice){page.data, cut}, true, false));
    if (html > 0)
        buffer_append(out, SLICE("<head>"));
    buffer_append(out, line);
    if (html > 0)
        buffer_append(out, SLICE("</head>"));
    if (page.size > cut)
        buffer_append(out, trimmed((struct slice){page.data + cut, page.size - cut}, false, true));
}

struct slice media_run_file(const struct wandb_record *record, uint64_t step, struct buffer *html,
                            struct buffer *path, char sha256[MEDIA_SHA256_SIZE]) {
    struct slice file = record->file;
    if (record->kind == WANDB_HTML) {
        buffer_reset(html);
        media_append_html(html, record->file);
        file = buffer_slice(html);
    }
    media_sha256(file, sha256);
    buffer_reset(path);
    media_append_path(path, record, step, sha256);
    return file;
}

static void append_member(struct buffer *out, const char *before, struct slice value) {
    buffer_append_text(out, before);
    json_append_string(out, value);
}

// The address of the table in its artifact; `alias` is what stands between id and name.
static void append_artifact_path(struct buffer *out, const struct wandb_record *record,
                                 const char *member, struct slice id, const char *alias) {
    struct buffer name;
    buffer_init(&name, ARTIFACT_PATH_MAX);
    buffer_append_text(&name, "wandb-client-artifact://");
    buffer_append(&name, id);
    buffer_append_text(&name, alias);
    media_append_artifact_file(&name, record);
    append_member(out, member, buffer_slice(&name));
    if (name.failed)
        out->failed = true;
    buffer_release(&name);
}

void media_append_value(struct buffer *out, const struct wandb_record *record, struct slice path,
                        const char sha256[MEDIA_SHA256_SIZE], uint64_t size) {
    assert(record->kind == WANDB_TABLE || record->kind == WANDB_HTML);
    bool table = record->kind == WANDB_TABLE;
    buffer_append_text(out, table ? "{\"_type\":\"table-file\"" : "{\"_type\":\"html-file\"");
    append_member(out, ",\"path\":", path);
    append_member(out, ",\"sha256\":", (struct slice){sha256, MEDIA_SHA256_SIZE - 1});
    buffer_append_text(out, ",\"size\":");
    buffer_append_uint(out, size);
    if (table) {
        buffer_append_text(out, ",\"ncols\":");
        buffer_append_uint(out, record->columns);
        buffer_append_text(out, ",\"nrows\":");
        buffer_append_uint(out, record->rows);
        buffer_append_text(out, ",\"log_mode\":\"IMMUTABLE\"");
        append_artifact_path(out, record, ",\"artifact_path\":", record->client_id, "/");
        append_artifact_path(out, record, ",\"_latest_artifact_path\":", record->sequence_client_id,
                             ":latest/");
    }
    buffer_append_char(out, '}');
}
