// SPDX-License-Identifier: Apache-2.0
// What an API server answers, and what a checkpoint kept of the Kubernetes exporter.
//
// The input is lines. Each is read as an answer and put back as something that was kept. What is
// there then is kept once more and put back in the same bytes; each object's Event is JSON within
// the bounds of the API server.
#include "exporters/kubernetes/exporter.h"
#include "tests/fuzz/fuzz.h"

enum { VERDICTS_MAX = 8, KEPT_MAX = 1 << 20 };

static void read_answer(struct slice bytes) {
    struct kube_status status;
    char uid[KUBE_UID_MAX + 1];
    uint64_t created_ns;
    kube_status_read(bytes, &status);
    require(strlen(status.message) < sizeof status.message);
    if (kube_pod_read(bytes, uid, &created_ns))
        require(kubernetes_is_label(slice_of(uid)));
}

static void put_back(struct kube_table *table, struct slice line) {
    json_t *kept = json_loadb(line.data, line.size, 0, NULL);
    if (json_is_object(kept))
        kube_table_restore(table, kept);
    json_decref(kept);
}

static void require_event(const struct kube_verdict *verdict, const struct kube_object *object) {
    struct buffer body;
    char digest[DIGEST_ID_SIZE];
    buffer_init(&body, KUBE_BODY_MAX);
    kube_event_digest(verdict, object, digest);
    kube_event_body(verdict, object, digest, "fuzz", 1, &body);
    if (!body.failed) { // annotations of a damaged line may be any size
        json_t *event = json_loadb(body.data, body.size, 0, NULL);
        require(event != NULL && strlen(kube_text(event, "note")) <= KUBE_NOTE_MAX);
        const json_t *metadata = json_object_get(event, "metadata");
        require(kubernetes_is_subdomain(slice_of(kube_text(metadata, "name"))));
        json_decref(event);
    }
    buffer_release(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_input input = {(const char *)data, size};
    struct kube_table table, again;
    struct buffer first, second;
    struct slice line;
    kube_table_init(&table, VERDICTS_MAX);
    kube_table_init(&again, VERDICTS_MAX);
    buffer_init(&first, KEPT_MAX);
    buffer_init(&second, KEPT_MAX);
    while (fuzz_piece(&input, '\n', &line)) {
        struct slice block = fuzz_block(line);
        read_answer(block);
        put_back(&table, block);
        memory_give((void *)block.data);
    }
    for (uint32_t i = 0; i < table.count; i++)
        for (uint32_t at = 0; at < table.items[i].object_count; at++)
            require_event(&table.items[i], &table.items[i].objects[at]);
    kube_table_keep(&table, &first);
    input = (struct fuzz_input){first.data, first.size};
    while (fuzz_piece(&input, '\n', &line))
        put_back(&again, line);
    kube_table_keep(&again, &second);
    require(slice_equal(buffer_slice(&first), buffer_slice(&second)));
    kube_table_release(&table);
    kube_table_release(&again);
    buffer_release(&first);
    buffer_release(&second);
    return 0;
}
