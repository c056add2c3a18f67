// SPDX-License-Identifier: Apache-2.0
// Uploads an artifact.
//
// createArtifact with the digest of all files; when the server has none like it, addresses for
// them, each uploaded, then the manifest, then commitArtifact. Files are copied into one unlinked
// temporary file first, so that what is hashed is what is uploaded however long it takes. Memory:
// some 200 bytes a file.
#include "exporters/wandb/online/artifact.h"

#include "base/memory.h"
#include "exporters/wandb/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ADDRESSES_AT_ONCE = 500, MANIFEST_MAX = 64 << 20, NAME_TEXT_MAX = 64 * 1024 };

void wandb_artifact_release(struct wandb_artifact *artifact) {
    for (uint32_t i = 0; artifact->births != NULL && i < artifact->files.count; i++)
        memory_give(artifact->births[i]);
    memory_give(artifact->births);
    media_list_release(&artifact->files);
    if (artifact->sequence != 0 && artifact->copy >= 0)
        close(artifact->copy);
    memory_give(artifact->id);
    memory_give(artifact->base_id);
    json_decref(artifact->addresses);
    *artifact = (struct wandb_artifact){.copy = -1};
}

// -- its files ------------------------------------------------------------------------------------

static int temporary_file(void) {
    char path[4096];
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || folder[0] == '\0')
        folder = "/tmp";
    int descriptor = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
        return descriptor;
    snprintf(path, sizeof path, "%.4000s/culprit-XXXXXX", folder);
    descriptor = mkostemp(path, O_CLOEXEC);
    if (descriptor >= 0)
        unlink(path);
    return descriptor;
}

// Before much of it is copied in vain.
static enum status size_check(const struct media_file *file, struct error *error) {
    struct stat about;
    if (stat(file->source, &about) != 0 || (uint64_t)about.st_size < MEDIA_FILE_SIZE_MAX)
        return STATUS_OK; // what is wrong else is found when it is read
    return error_set(error, STATUS_LIMIT,
                     "%.300s has %lld bytes; a file of an artifact has less "
                     "than 2 GiB",
                     file->source, (long long)about.st_size);
}

static enum status copy_files(struct wandb_artifact *artifact, struct slice path,
                              struct error *error) {
    enum status status = media_list_add_path(&artifact->files, path, error);
    for (uint32_t i = 0; status == STATUS_OK && i < artifact->files.count; i++)
        status = size_check(&artifact->files.files[i], error);
    if (status != STATUS_OK)
        return status;
    artifact->copy = temporary_file();
    if (artifact->copy < 0)
        return error_set_os(error, STATUS_IO, errno, "making a temporary file (TMPDIR says where)");
    for (uint32_t i = 0; status == STATUS_OK && i < artifact->files.count; i++)
        status = media_file_read(&artifact->files.files[i], artifact->copy, error);
    return status;
}

enum status wandb_artifact_prepare(struct wandb_artifact *artifact,
                                   const struct wandb_record *record, struct error *error) {
    assert(record->kind == WANDB_TABLE || record->kind == WANDB_ARTIFACT);
    wandb_artifact_release(artifact);
    artifact->sequence = record->sequence;
    enum status status = STATUS_OK;
    if (record->kind == WANDB_TABLE) {
        struct buffer name;
        buffer_init(&name, NAME_TEXT_MAX);
        media_append_artifact_file(&name, record);
        media_list_add_bytes(&artifact->files, buffer_slice(&name), record->artifact_file);
        buffer_release(&name);
    } else {
        status = copy_files(artifact, record->file, error);
    }
    if (status == STATUS_OK)
        media_list_digest(&artifact->files, artifact->digest);
    artifact->births = memory_zero(artifact->files.count, sizeof *artifact->births);
    return status;
}

// -- creating it ----------------------------------------------------------------------------------

// False when it is not what it should be.
static bool created_take(struct wandb_artifact *artifact, const json_t *data, bool *committed) {
    assert(artifact->id == NULL && artifact->stage == ARTIFACT_CREATE);
    const json_t *made = wandb_json_at(data, "createArtifact", "artifact", NULL);
    const char *id = wandb_json_text(made, "id", NULL);
    const char *state = wandb_json_text(made, "state", NULL);
    const char *base = wandb_json_text(made, "artifactSequence", "latestArtifact", "id", NULL);
    if (id == NULL || state == NULL)
        return false;
    artifact->id = memory_copy_text(id, strlen(id));
    if (base != NULL)
        artifact->base_id = memory_copy_text(base, strlen(base));
    *committed = strcmp(state, "COMMITTED") == 0;
    artifact->stage = ARTIFACT_FILES;
    return true;
}

static enum wandb_answer not_understood(const char *name, struct error *error) {
    error_set(error, STATUS_IO, "%s: the answer is not what it should be", name);
    return WANDB_REFUSED;
}

static enum wandb_answer create(struct wandb_artifact *artifact, struct wandb_client *client,
                                const struct wandb_run_names *names,
                                const struct wandb_record *record, uint64_t history_step,
                                bool *committed, struct error *error) {
    static const char document[] =
        "mutation($input:CreateArtifactInput!){createArtifact(input:$input){"
        "artifact{id state artifactSequence{latestArtifact{id}}}}}";
    struct wandb_query query;
    struct buffer name;
    buffer_init(&name, NAME_TEXT_MAX);
    media_append_artifact_name(&name, record);
    wandb_query_begin(&query, "createArtifact", document);
    struct json_writer *json = &query.json;
    wandb_query_text(&query, "entityName", names->entity);
    wandb_query_text(&query, "projectName", names->project);
    wandb_query_text(&query, "runName", names->run);
    wandb_query_slice(&query, "artifactTypeName",
                      record->kind == WANDB_TABLE ? SLICE("run_table") : record->type);
    wandb_query_slice(&query, "artifactCollectionName", buffer_slice(&name));
    wandb_query_text(&query, "digest", artifact->digest);
    wandb_query_text(&query, "digestAlgorithm", "MANIFEST_MD5");
    json_field_array_open(json, "aliases");
    json_object_open(json);
    wandb_query_slice(&query, "artifactCollectionName", buffer_slice(&name));
    wandb_query_text(&query, "alias", "latest");
    json_object_close(json);
    json_array_close(json);
    wandb_query_slice(&query, "clientID", record->client_id);
    wandb_query_slice(&query, "sequenceClientID", record->sequence_client_id);
    json_field_bool(json, "enableDigestDeduplication", true);
    if (history_step == 0)
        json_field_null(json, "historyStep");
    else
        json_field_uint(json, "historyStep", history_step);
    buffer_release(&name);
    json_t *data;
    enum wandb_answer answer = wandb_query_send(client, &query, &data, error);
    if (answer == WANDB_DONE && !created_take(artifact, data, committed))
        answer = not_understood("createArtifact", error);
    json_decref(data);
    return answer;
}

// -- uploading its files --------------------------------------------------------------------------

static enum wandb_answer ask_addresses(struct wandb_artifact *artifact, struct wandb_client *client,
                                       struct error *error) {
    assert(artifact->next < artifact->files.count && artifact->addresses == NULL);
    static const char document[] =
        "mutation($input:CreateArtifactFilesInput!){createArtifactFiles(input:$input){"
        "files{edges{node{uploadUrl uploadHeaders artifact{id}}}}}}";
    struct wandb_query query;
    uint32_t end = artifact->files.count - artifact->next < ADDRESSES_AT_ONCE
                       ? artifact->files.count
                       : artifact->next + ADDRESSES_AT_ONCE;
    wandb_query_begin(&query, "createArtifactFiles", document);
    struct json_writer *json = &query.json;
    json_field_array_open(json, "artifactFiles");
    for (uint32_t i = artifact->next; i < end; i++) {
        json_object_open(json);
        wandb_query_text(&query, "artifactID", artifact->id);
        wandb_query_text(&query, "name", artifact->files.files[i].name);
        wandb_query_text(&query, "md5", artifact->files.files[i].md5);
        json_object_close(json);
    }
    json_array_close(json);
    wandb_query_text(&query, "storageLayout", "V2");
    json_t *data;
    enum wandb_answer answer = wandb_query_send(client, &query, &data, error);
    const json_t *edges = wandb_json_at(data, "createArtifactFiles", "files", "edges", NULL);
    if (answer == WANDB_DONE && json_array_size(edges) != end - artifact->next)
        answer = not_understood("createArtifactFiles", error);
    if (answer == WANDB_DONE) {
        artifact->addresses = json_incref((json_t *)(uintptr_t)edges);
        artifact->addresses_from = artifact->next;
    }
    json_decref(data);
    return answer;
}

static void forget_addresses(struct wandb_artifact *artifact) {
    json_decref(artifact->addresses);
    artifact->addresses = NULL;
}

// An address that was refused may only be too old: once a new one is asked for.
static enum wandb_answer perhaps_renew(struct wandb_artifact *artifact, struct wandb_client *client,
                                       enum wandb_answer answer) {
    if (answer != WANDB_DONE)
        forget_addresses(artifact);
    if (answer != WANDB_REFUSED || artifact->renewed || client->http.reply->status != 403)
        return answer;
    artifact->renewed = true;
    return WANDB_DONE;
}

static enum wandb_answer upload_next(struct wandb_artifact *artifact, struct wandb_client *client,
                                     const struct wandb_record *record, struct error *error) {
    assert(artifact->next < artifact->files.count && artifact->next >= artifact->addresses_from);
    uint32_t next = artifact->next;
    const struct media_file *file = &artifact->files.files[next];
    const json_t *node = json_object_get(
        json_array_get(artifact->addresses, next - artifact->addresses_from), "node");
    const char *url = wandb_json_text(node, "uploadUrl", NULL);
    const char *birth = wandb_json_text(node, "artifact", "id", NULL);
    struct http_call upload = {.body = record->artifact_file};
    if (file->source != NULL)
        upload = (struct http_call){
            .file = artifact->copy, .file_offset = artifact->next_offset, .file_size = file->size};
    // Without an address the server has these bytes already.
    if (url != NULL) {
        enum wandb_answer answer =
            wandb_upload_send(client, "uploading a file of an artifact", url,
                              json_object_get(node, "uploadHeaders"), &upload, error);
        if (answer != WANDB_DONE)
            return perhaps_renew(artifact, client, answer);
    }
    if (birth != NULL && strcmp(birth, artifact->id) != 0 && artifact->births[next] == NULL)
        artifact->births[next] = memory_copy_text(birth, strlen(birth));
    artifact->next++;
    artifact->next_offset += file->size;
    artifact->renewed = false;
    if (artifact->next == artifact->addresses_from + json_array_size(artifact->addresses))
        forget_addresses(artifact);
    return WANDB_DONE;
}

static enum wandb_answer files_step(struct wandb_artifact *artifact, struct wandb_client *client,
                                    const struct wandb_record *record, struct error *error) {
    if (artifact->next == artifact->files.count) {
        artifact->stage = ARTIFACT_MANIFEST;
        return WANDB_DONE;
    }
    if (artifact->addresses == NULL) {
        enum wandb_answer answer = ask_addresses(artifact, client, error);
        if (answer != WANDB_DONE)
            return answer;
    }
    return upload_next(artifact, client, record, error);
}

// -- manifest and commit --------------------------------------------------------------------------

static void manifest_append(const struct wandb_artifact *artifact, struct buffer *out) {
    struct json_writer json;
    json_begin(&json, out, 0);
    json_object_open(&json);
    json_field_int(&json, "version", 1);
    json_field_text(&json, "storagePolicy", "wandb-storage-policy-v1");
    json_key(&json, "storagePolicyConfig");
    json_raw(&json, SLICE("{\"storageLayout\":\"V2\"}"));
    json_field_object_open(&json, "contents");
    for (uint32_t i = 0; i < artifact->files.count; i++) {
        const struct media_file *file = &artifact->files.files[i];
        json_field_object_open(&json, file->name);
        json_field_text(&json, "digest", file->md5);
        json_field_uint(&json, "size", file->size);
        json_field_text(&json, "birthArtifactID",
                        artifact->births[i] != NULL ? artifact->births[i] : artifact->id);
        json_object_close(&json);
    }
    json_object_close(&json);
    json_object_close(&json);
}

static enum wandb_answer manifest_address(struct wandb_artifact *artifact,
                                          struct wandb_client *client,
                                          const struct wandb_run_names *names, const char *md5,
                                          json_t **data, struct error *error) {
    static const char document[] =
        "mutation($input:CreateArtifactManifestInput!){createArtifactManifest(input:$input){"
        "artifactManifest{id file{uploadUrl uploadHeaders}}}}";
    struct wandb_query query;
    wandb_query_begin(&query, "createArtifactManifest", document);
    wandb_query_text(&query, "artifactID", artifact->id);
    wandb_query_text(&query, "baseArtifactID", artifact->base_id);
    wandb_query_text(&query, "name", "wandb_manifest.json");
    wandb_query_text(&query, "digest", md5);
    wandb_query_text(&query, "entityName", names->entity);
    wandb_query_text(&query, "projectName", names->project);
    wandb_query_text(&query, "runName", names->run);
    wandb_query_text(&query, "type", "FULL");
    return wandb_query_send(client, &query, data, error);
}

static enum wandb_answer manifest_step(struct wandb_artifact *artifact, struct wandb_client *client,
                                       const struct wandb_run_names *names, struct error *error) {
    assert(artifact->next == artifact->files.count);
    struct buffer manifest;
    char md5[MEDIA_MD5_SIZE];
    json_t *data = NULL;
    buffer_init(&manifest, MANIFEST_MAX);
    manifest_append(artifact, &manifest);
    media_md5(buffer_slice(&manifest), md5);
    enum wandb_answer answer = manifest_address(artifact, client, names, md5, &data, error);
    const json_t *file =
        wandb_json_at(data, "createArtifactManifest", "artifactManifest", "file", NULL);
    const char *url = wandb_json_text(file, "uploadUrl", NULL);
    if (answer == WANDB_DONE && file == NULL)
        answer = not_understood("createArtifactManifest", error);
    struct http_call upload = {.body = buffer_slice(&manifest)};
    if (answer == WANDB_DONE && url != NULL)
        answer = wandb_upload_send(client, "uploading the manifest of an artifact", url,
                                   json_object_get(file, "uploadHeaders"), &upload, error);
    if (answer == WANDB_DONE)
        artifact->stage = ARTIFACT_COMMIT;
    else if (url != NULL) // perhaps asked for again at the next step
        answer = perhaps_renew(artifact, client, answer);
    json_decref(data);
    buffer_release(&manifest);
    return answer;
}

static enum wandb_answer commit(const struct wandb_artifact *artifact, struct wandb_client *client,
                                bool *committed, struct error *error) {
    assert(artifact->id != NULL);
    static const char document[] =
        "mutation($id:ID!){commitArtifact(input:{artifactID:$id}){"
        "artifact{id state}}}";
    struct wandb_query query;
    json_t *data;
    wandb_query_begin(&query, "commitArtifact", document);
    wandb_query_text(&query, "id", artifact->id);
    enum wandb_answer answer = wandb_query_send(client, &query, &data, error);
    json_decref(data);
    *committed = answer == WANDB_DONE;
    return answer;
}

enum wandb_answer wandb_artifact_step(struct wandb_artifact *artifact, struct wandb_client *client,
                                      const struct wandb_run_names *names,
                                      const struct wandb_record *record, uint64_t history_step,
                                      bool *committed, struct error *error) {
    assert(artifact->sequence == record->sequence && artifact->tries < WANDB_TRIES_MAX);
    enum wandb_answer answer = WANDB_REFUSED;
    *committed = false;
    switch (artifact->stage) {
    case ARTIFACT_CREATE:
        answer = create(artifact, client, names, record, history_step, committed, error);
        break;
    case ARTIFACT_FILES:
        answer = files_step(artifact, client, record, error);
        break;
    case ARTIFACT_MANIFEST:
        answer = manifest_step(artifact, client, names, error);
        break;
    case ARTIFACT_COMMIT:
        answer = commit(artifact, client, committed, error);
        break;
    }
    if (answer == WANDB_DONE)
        artifact->tries = 0;
    else if (answer == WANDB_LATER && ++artifact->tries >= WANDB_TRIES_MAX)
        answer = WANDB_REFUSED;
    return answer;
}
