// SPDX-License-Identifier: Apache-2.0
// What is due: an Event for what is new on an object, the series of one that says the same again,
// and an Event when it is over.
//
// On an object a verdict is written of at once, then at most once in update_interval; what came in
// between counts as one. That it is over is written at once.
#include "base/clock.h"
#include "base/log.h"
#include "exporters/kubernetes/exporter.h"

#include <assert.h>

void kube_note_refused(struct kube_exporter *self, unsigned what, enum kube_answer answer,
                       const struct error *error) {
    assert(what < sizeof self->counters.refused / sizeof self->counters.refused[0]);
    metric_add(self->counters.refused[what], 1);
    // Of a missing right it is told by itself.
    if (answer != KUBE_DENIED)
        log_write(LOG_WARN, (struct log_site){"C4303", self->context->site}, "%s", error->message);
}

bool kube_has_time(const struct kube_exporter *self, struct error *error) {
    if (clock_monotonic_ns() < self->until_ns)
        return true;
    (void)error_set(error, STATUS_IO,
                    "the API server takes longer for what is to be written than `timeout`");
    return false;
}

// Unix; 0: now.
static uint64_t due_of(const struct kube_exporter *self, const struct kube_object *object) {
    assert(object->held);
    bool first = object->event[0] == '\0' || !object->stays || self->last;
    return first ? 0 : object->written_ns + (uint64_t)self->config->update_interval.ns;
}

static enum kube_answer write_event(struct kube_exporter *self, struct kube_verdict *verdict,
                                    struct kube_object *object, struct error *error) {
    char digest[DIGEST_ID_SIZE];
    kube_event_digest(verdict, object, digest);
    if (strcmp(digest, object->event) == 0) {
        enum kube_answer answer = kube_count_event(self, verdict, object, error);
        if (answer != KUBE_ABSENT) {
            object->count += answer == KUBE_DONE;
            metric_add(self->counters.series, answer == KUBE_DONE);
            return answer;
        } // the server forgets Events, after an hour by default
    }
    if (!kube_find_uid(self, verdict, object, error))
        return KUBE_RETRY;
    enum kube_answer answer = kube_create_event(self, verdict, object, digest, error);
    metric_add(self->counters.events, answer == KUBE_DONE);
    if (answer != KUBE_RETRY) {
        memcpy(object->event, digest, sizeof digest);
        object->count = 1;
    }
    return answer;
}

bool kube_write_verdict(struct kube_exporter *self, struct kube_verdict *verdict,
                        struct error *error) {
    bool fine = true;
    for (uint32_t i = 0; i < verdict->object_count && fine; i++) {
        struct kube_object *object = &verdict->objects[i];
        uint64_t now_ns = clock_unix_ns();
        // A clock that was set back delays nothing for long.
        if (!object->held || (due_of(self, object) > now_ns && object->written_ns <= now_ns))
            continue;
        enum kube_answer answer = KUBE_RETRY;
        if (kube_has_time(self, error))
            answer = write_event(self, verdict, object, error);
        fine = answer != KUBE_RETRY;
        if (!fine)
            break;
        object->held = false;
        object->written_ns = now_ns;
        if (answer != KUBE_DONE)
            kube_note_refused(self, 0, answer, error);
    }
    kube_verdict_tidy(verdict);
    return fine;
}

bool kube_write_due(struct kube_exporter *self, struct error *error) {
    bool fine = true;
    for (uint32_t i = 0; i < self->table.count && fine; i++)
        if (self->table.items[i].line != NULL)
            fine = kube_write_verdict(self, &self->table.items[i], error);
    uint64_t unix_ns = clock_unix_ns(), now_ns = clock_monotonic_ns();
    for (uint32_t i = 0; i < self->table.count; i++)
        for (uint32_t at = 0; at < self->table.items[i].object_count; at++) {
            const struct kube_object *object = &self->table.items[i].objects[at];
            uint64_t due_ns = object->held ? due_of(self, object) : UINT64_MAX;
            if (due_ns == UINT64_MAX)
                continue;
            uint64_t wait_ns = due_ns > unix_ns ? due_ns - unix_ns : 0;
            self->due_ns = now_ns + wait_ns < self->due_ns ? now_ns + wait_ns : self->due_ns;
        }
    return fine;
}
