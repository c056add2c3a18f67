// SPDX-License-Identifier: Apache-2.0
// Writes what an on-call engineer reads: the rank, the growth, the phase and the lead in one
// headline, what to look at, and the samples that show it. The id hangs on job, generation and rank
// alone, so that it stays when more evidence comes.
#include "processors/phase_attribution/verdict.h"

#include "base/hash/digest.h"
#include "base/table/table.h"
#include "base/text/cut.h"
#include "base/text/human.h"
#include "base/text/utf8.h"
#include "pipeline/model/event.h"
#include "pipeline/model/series.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

enum { EVIDENCE_UID_MAX = 512, PHASE_SHOWN_MAX = 100, HOST_SHOWN_MAX = 64 };
static const char PATTERN[] = "memory_first_cause";
static const char *const KINDS[] = {
    [CAUSE_LEAK] = "leak", [CAUSE_COMMON_GROWTH] = "common_growth", [CAUSE_SWING] = "swing"};
static const int CONFIDENCE_OF[] = {[CAUSE_COMMON_GROWTH] = 30, [CAUSE_SWING] = 20};
static const int CONFIDENCE_OF_LEAK[] = {
    [CONFIDENCE_LOW] = 40, [CONFIDENCE_MEDIUM] = 65, [CONFIDENCE_HIGH] = 85};
static const char *const CONFIDENCE_WORDS[] = {
    [CONFIDENCE_LOW] = "low", [CONFIDENCE_MEDIUM] = "medium", [CONFIDENCE_HIGH] = "high"};
static const char *const RESOLUTIONS[] = {
    [PHASE_NONE] = "none", [PHASE_UNIQUE] = "unique", [PHASE_AMBIGUOUS] = "ambiguous"};

static const struct rank_view *view_of(const struct memory_finding *finding, uint32_t i) {
    assert(i < finding->cause->suspects.count);
    return &finding->evaluation->ranks[finding->cause->suspects.items[i].index];
}

static int32_t rank_of(const struct memory_finding *finding, uint32_t i) {
    return view_of(finding, i)->series->rank;
}

static const struct origin *origin_of(const struct memory_finding *finding, uint32_t i) {
    return table_row(&finding->evaluation->store->origins,
                     finding->cause->suspects.items[i].spike.origin);
}

static struct slice shortened(struct slice text, size_t max, struct arena *arena) {
    return text_shorten(text, max, TEXT_CHARACTERS, arena_take(arena, TEXT_ROOM(max)));
}

// "epoch / step / backward", "a (likely)", or empty.
static struct slice phase_text(const struct phase_attribution *phase, struct arena *arena) {
    if (phase->resolution == PHASE_NONE)
        return SLICE("");
    if (phase->resolution == PHASE_UNIQUE)
        return phase->path;
    if (phase->summary.data != NULL)
        return slice_of(
            arena_format(arena, "%.*s (likely)", (int)phase->summary.size, phase->summary.data));
    return phase->paths[0];
}

// " in epoch / step", or nothing.
static const char *in_phase(const struct memory_finding *finding, struct arena *arena) {
    struct slice phase = shortened(phase_text(&finding->phases[0], arena), PHASE_SHOWN_MAX, arena);
    return phase.size == 0 ? "" : arena_format(arena, " in %.*s", (int)phase.size, phase.data);
}

static const char *headline(const struct memory_finding *finding, struct arena *arena) {
    const struct cause *cause = finding->cause;
    const struct suspect_list *suspects = &cause->suspects;
    int32_t rank = rank_of(finding, 0);
    const char *phase = in_phase(finding, arena);
    char growth[HUMAN_MAX], lead[HUMAN_MAX];
    human_bytes(cause->kind == CAUSE_SWING ? suspects->items[0].spike.growth_bytes
                                           : cause->growth_bytes,
                growth);
    human_duration(suspects->items[0].lead_ns, lead);
    if (finding->replaced)
        return arena_format(arena, "Rank %d was named first, but rank %d began before it", rank,
                            finding->replaced_by);
    if (cause->kind == CAUSE_SWING)
        return arena_format(arena, "Rank %d rose by %s and fell back: no rank is at fault", rank,
                            growth);
    if (cause->kind == CAUSE_COMMON_GROWTH)
        return arena_format(arena,
                            "All ranks grew alike; rank %d was first by %s and grew %s: no rank is "
                            "at fault",
                            rank, lead, growth);
    if (suspects->candidate_count < 2)
        return arena_format(arena, "Rank %d leaked %s%s; no other rank grew for good", rank, growth,
                            phase);
    if (cause->sole_earliest)
        return arena_format(arena, "Rank %d leaked %s%s, %s before rank %d followed", rank, growth,
                            phase, lead, rank_of(finding, 1));
    return arena_format(
        arena, "Rank %d leaked most (%s%s), but %" PRIu32 " ranks began at the same moment", rank,
        growth, phase, suspects->count);
}

static const char *remediation(const struct memory_finding *finding, struct arena *arena) {
    if (finding->replaced)
        return arena_format(arena, "Look at rank %d instead.", finding->replaced_by);
    if (finding->cause->kind == CAUSE_SWING)
        return "No action needed. If memory is tight, reduce the height of the swings.";
    if (finding->cause->kind == CAUSE_COMMON_GROWTH)
        return "No action needed on a single rank. If memory runs out, use less on all of them: "
               "smaller batches, activation checkpointing, sharding.";
    const struct origin *origin = origin_of(finding, 0);
    struct slice host = shortened(intern_slice(origin->host), HOST_SHOWN_MAX, arena);
    return arena_format(arena,
                        "Find out what rank %d (host %.*s, pid %" PRId64
                        ") keeps alive%s: tensors held in lists, closures or caches, inputs larger "
                        "than those of other ranks. Compare its memory snapshot with that of "
                        "another rank.",
                        rank_of(finding, 0), (int)host.size, host.data, origin->pid,
                        in_phase(finding, arena));
}

static struct slice sample_uid(const struct memory_finding *finding, uint32_t i, uint64_t time_ns,
                               struct arena *arena) {
    const struct origin *origin = origin_of(finding, i);
    struct slice session = intern_slice(origin->session);
    if (origin->session == STRING_NONE) {
        struct slice host = intern_slice(origin->host);
        char uuid[UUID_TEXT_SIZE];
        digest_uuid5_url(slice_of(arena_format(arena, "%" PRIu64 "::%.*s::%" PRId64, time_ns,
                                               (int)host.size, host.data, origin->pid)),
                         uuid);
        session = slice_of(arena_format(arena, "legacy-%s", uuid));
    }
    session = utf8_cut(session, EVIDENCE_UID_MAX - 64);
    return slice_of(arena_format(arena, "sample:%.*s:%d:%" PRIu64, (int)session.size, session.data,
                                 rank_of(finding, i), time_ns));
}

// The verdict in the making.
struct writing {
    const struct memory_finding *finding;
    struct arena *arena;
    struct verdict *out;
};

// A sample of suspect `i`, described as printf does.
__attribute__((format(printf, 5, 6))) static void add_evidence(const struct writing *writing,
                                                               uint32_t i, uint64_t time_ns,
                                                               enum evidence_role role,
                                                               const char *format, ...) {
    struct verdict *out = writing->out;
    if (out->evidence_count == VERDICT_EVIDENCE_MAX) {
        out->evidence_dropped++;
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    const char *text = arena_format_list(writing->arena, format, arguments);
    va_end(arguments);
    out->evidence[out->evidence_count++] =
        (struct evidence){.uid = sample_uid(writing->finding, i, time_ns, writing->arena),
                          .description = slice_of(text),
                          .time_ns = time_ns,
                          .has_time = true,
                          .role = role};
}

static void add_first_evidence(const struct writing *writing) {
    const struct cause *cause = writing->finding->cause;
    const struct spike *spike = &cause->suspects.items[0].spike;
    int32_t rank = rank_of(writing->finding, 0);
    char bytes[HUMAN_MAX];
    human_bytes(spike->base_bytes, bytes);
    add_evidence(writing, 0, spike->window_ns, EVIDENCE_CAUSE,
                 "rank %d used %s before it began to grow", rank, bytes);
    human_bytes(spike->growth_bytes, bytes);
    if (cause->creeping)
        add_evidence(writing, 0, spike->time_ns, EVIDENCE_CAUSE,
                     "the lows of rank %d had risen by %s over %" PRIu64 " swings", rank, bytes,
                     spike->samples);
    else
        add_evidence(writing, 0, spike->time_ns, EVIDENCE_CAUSE,
                     "rank %d had grown by %s in %" PRIu64 " samples", rank, bytes, spike->samples);
}

static void add_other_evidence(const struct writing *writing) {
    const struct suspect_list *suspects = &writing->finding->cause->suspects;
    char bytes[HUMAN_MAX], after[HUMAN_MAX];
    for (uint32_t i = 1; i < suspects->count; i++) {
        const struct suspect *suspect = &suspects->items[i];
        human_bytes(suspect->spike.growth_bytes, bytes);
        human_duration(suspect->aligned_ns - suspects->items[0].aligned_ns, after);
        add_evidence(writing, i, suspect->spike.time_ns, EVIDENCE_EFFECT,
                     "rank %d had grown by %s, %s after rank %d", rank_of(writing->finding, i),
                     bytes, after, rank_of(writing->finding, 0));
    }
}

static void add_last_evidence(const struct writing *writing) {
    const struct rank_view *view = view_of(writing->finding, 0);
    const struct sample *last =
        series_at_or_before(writing->finding->evaluation->store, view->series, view->last_ns);
    if (last == NULL)
        return;
    char bytes[HUMAN_MAX];
    human_bytes(last->used_bytes, bytes);
    add_evidence(writing, 0, view->last_ns, EVIDENCE_CONTEXT, "rank %d used %s at its last sample",
                 view->series->rank, bytes);
}

static void add_entities(const struct writing *writing) {
    const struct cause *cause = writing->finding->cause;
    struct verdict *out = writing->out;
    if (cause->kind == CAUSE_SWING || writing->finding->replaced)
        return;
    bool has_culprit = cause->kind == CAUSE_LEAK && cause->sole_earliest;
    uint32_t count = cause->suspects.count;
    out->entities = arena_take(writing->arena, count * sizeof *out->entities);
    out->entity_count = count;
    for (uint32_t i = 0; i < count; i++)
        out->entities[i] = (struct entity){
            .kind = "rank",
            .name = slice_of(arena_number(writing->arena, rank_of(writing->finding, i))),
            .role = i == 0 && has_culprit ? ROLE_CULPRIT : ROLE_SUSPECT};
    verdict_sort_entities(out);
    if (count > VERDICT_ENTITIES_MAX) {
        out->entities_dropped = count - VERDICT_ENTITIES_MAX;
        out->entity_count = VERDICT_ENTITIES_MAX;
    }
}

static const char *some_ranks(uint32_t count, int32_t first, struct arena *arena) {
    return count == 1 ? arena_format(arena, "rank %d", first)
                      : arena_format(arena, "%u ranks", count);
}

// Whom the answer is without; NULL: nobody.
static const char *not_seen(const struct memory_finding *finding, struct arena *arena) {
    const struct evaluation *evaluation = finding->evaluation;
    uint32_t few = 0, missing = evaluation->missing_count;
    int32_t first = RANK_NONE;
    if (!finding->cause->suspects.sparse)
        return NULL;
    for (uint32_t i = 0; i < evaluation->rank_count; i++) {
        if (evaluation->ranks[i].sample_count - evaluation->ranks[i].repeated_count >= 2 &&
            evaluation->ranks[i].in_generation)
            continue;
        first = few++ == 0 ? evaluation->ranks[i].series->rank : first;
    }
    if (missing == 0)
        return arena_format(arena, "too few samples of %s were read",
                            few == 0 ? "some ranks" : some_ranks(few, first, arena));
    return arena_format(
        arena, "no samples of %s were read%s",
        some_ranks(missing, evaluation->missing_ranks[0], arena),
        few == 0 ? "" : arena_format(arena, ", and too few of %s", some_ranks(few, first, arena)));
}

static void add_attributes(const struct writing *writing) {
    const struct memory_finding *finding = writing->finding;
    const struct cause *cause = finding->cause;
    const struct suspect *first = &cause->suspects.items[0];
    const struct origin *origin = origin_of(finding, 0);
    const struct phase_attribution *phase = &finding->phases[0];
    struct arena *arena = writing->arena;
    // In order of the keys' bytes; what is NULL or empty is left out.
    const struct {
        const char *key, *value;
    } rows[] = {
        {"culprit.aligned_time_unix_nano", arena_number(arena, first->aligned_ns)},
        {"culprit.base_bytes", arena_number(arena, first->spike.base_bytes)},
        {"culprit.cluster_onset_unix_nano",
         cause->suspects.has_onset ? arena_number(arena, cause->suspects.onset_ns) : NULL},
        {"culprit.confidence", CONFIDENCE_WORDS[first->confidence]},
        {"culprit.excess_ratio", isinf(cause->excess_ratio)
                                     ? "infinite"
                                     : arena_format(arena, "%.3f", cause->excess_ratio)},
        {"culprit.generation", arena_number(arena, cause->generation)},
        {"culprit.growth_bytes", arena_number(arena, cause->growth_bytes)},
        {"culprit.lead_ns", arena_number(arena, first->lead_ns)},
        {"culprit.median_other_growth_bytes",
         arena_number(arena, cause->median_other_growth_bytes)},
        {"culprit.not_seen", not_seen(finding, arena)},
        {"culprit.peak_delta_bytes", arena_number(arena, first->spike.growth_bytes)},
        {"culprit.phase", arena_text(arena, phase_text(phase, arena))},
        {"culprit.phase_resolution", RESOLUTIONS[phase->resolution]},
        {"culprit.rank", arena_number(arena, rank_of(finding, 0))},
        {"culprit.spike_window_samples", arena_number(arena, (__int128)first->spike.samples)},
        {"culprit.world_size", arena_number(arena, finding->evaluation->world_size)},
        {"host.name", intern_slice(origin->host).data},
        {"process.pid", arena_number(arena, origin->pid)},
    };
    size_t count = sizeof rows / sizeof rows[0];
    struct attribute *all = arena_take(arena, count * sizeof *all);
    writing->out->attributes = all;
    for (size_t i = 0; i < count; i++)
        if (rows[i].value != NULL && rows[i].value[0] != '\0')
            all[writing->out->attribute_count++] =
                (struct attribute){rows[i].key, slice_of(rows[i].value)};
}

static void set_kind(const struct memory_finding *finding, struct verdict *out) {
    const struct cause *cause = finding->cause;
    enum confidence confidence = cause->suspects.items[0].confidence;
    bool is_leak = cause->kind == CAUSE_LEAK;
    out->kind = KINDS[cause->kind];
    out->confidence = is_leak ? CONFIDENCE_OF_LEAK[confidence] : CONFIDENCE_OF[cause->kind];
    out->severity = SEVERITY_INFO;
    out->action = "monitor";
    if (is_leak && !finding->replaced) {
        out->severity = confidence == CONFIDENCE_HIGH ? SEVERITY_ERROR : SEVERITY_WARNING;
        out->action = "inspect_rank";
    }
}

void memory_verdict_build(const struct memory_finding *finding, struct arena *arena,
                          struct verdict *out) {
    const struct cause *cause = finding->cause;
    struct writing writing = {finding, arena, out};
    assert(cause->suspects.count > 0);
    *out = (struct verdict){
        .pattern = PATTERN, .job = finding->evaluation->job, .partial = cause->suspects.sparse};
    struct slice key[] = {intern_slice(finding->evaluation->job),
                          slice_of(arena_number(arena, cause->generation)),
                          slice_of(arena_number(arena, rank_of(finding, 0)))};
    verdict_set_id(out, PATTERN, key, 3);
    set_kind(finding, out);
    out->headline = slice_of(headline(finding, arena));
    out->remediation = slice_of(remediation(finding, arena));
    add_entities(&writing);
    out->evidence = arena_take(arena, VERDICT_EVIDENCE_MAX * sizeof *out->evidence);
    add_first_evidence(&writing);
    add_other_evidence(&writing);
    // What fell back is over: what the rank uses since is no part of it.
    if (cause->kind != CAUSE_SWING)
        add_last_evidence(&writing);
    verdict_sort_evidence(out, arena);
    verdict_set_times(out);
    add_attributes(&writing);
}

uint64_t memory_verdict_weight(const struct memory_finding *finding) {
    const struct phase_attribution *phase = &finding->phases[0];
    uint64_t weight = (uint64_t)phase->resolution;
    for (uint32_t i = 0; i < phase->path_count; i++)
        for (size_t j = 0; j < phase->paths[i].size; j++)
            weight = weight * 31 + (unsigned char)phase->paths[i].data[j];
    if (finding->cause->kind == CAUSE_SWING || finding->cause->growth_bytes < 4)
        return weight;
    // Four steps a doubling: the exponent and the two bits behind it.
    uint64_t growth = (uint64_t)finding->cause->growth_bytes;
    unsigned exponent = 63 - (unsigned)__builtin_clzll(growth);
    return weight * 256 + (exponent << 2 | (growth >> (exponent - 2) & 3));
}
