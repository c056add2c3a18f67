// SPDX-License-Identifier: Apache-2.0
// What does an on-call engineer read? Names the rank, the growth, the phase and the lead in one
// headline, says what to look at, and lists the samples that show it. The id hangs on job,
// generation and rank alone, so that it stays when more evidence comes.
#include "processors/phase_attribution/verdict.h"

#include "base/text/human.h"
#include "base/text/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { CONFIDENCE_OF_COMMON_GROWTH = 30, CONFIDENCE_OF_SWING = 20, EVIDENCE_UID_MAX = 512 };
static const char PATTERN[] = "memory_first_cause";
static const int CONFIDENCE_OF_LEAK[] = {
    [CONFIDENCE_LOW] = 40, [CONFIDENCE_MEDIUM] = 65, [CONFIDENCE_HIGH] = 85};
static const char *const CONFIDENCE_WORDS[] = {
    [CONFIDENCE_LOW] = "low", [CONFIDENCE_MEDIUM] = "medium", [CONFIDENCE_HIGH] = "high"};

static const struct rank_view *view_of(const struct memory_finding *finding, uint32_t i) {
    return &finding->evaluation->ranks[finding->cause->suspects.items[i].index];
}

static int32_t rank_of(const struct memory_finding *finding, uint32_t i) {
    return view_of(finding, i)->series->rank;
}

static const struct origin *origin_of(const struct memory_finding *finding, uint32_t i) {
    return table_row(&finding->evaluation->store->origins,
                     finding->cause->suspects.items[i].spike.origin);
}

// At most `max` characters, whole ones.
static struct slice cut(struct slice text, size_t max) {
    size_t at = 0;
    uint32_t code_point;
    for (size_t count = 0; count < max && at < text.size; count++) {
        size_t size = utf8_decode(text, at, &code_point);
        at += size == 0 ? 1 : size;
    }
    return (struct slice){text.data, at < text.size ? at : text.size};
}

// "epoch / step / backward", "a | b (ambiguous)", or empty.
static struct slice phase_text(const struct phase_attribution *phase, struct arena *arena) {
    if (phase->resolution == PHASE_NONE)
        return (struct slice){"", 0};
    if (phase->resolution == PHASE_UNIQUE)
        return phase->path;
    if (phase->summary.data != NULL)
        return slice_of(
            arena_format(arena, "%.*s (likely)", (int)phase->summary.size, phase->summary.data));
    return phase->paths[0];
}

// " in epoch / step", or nothing.
static const char *in_phase(const struct memory_finding *finding, struct arena *arena) {
    struct slice phase = cut(phase_text(&finding->phases[0], arena), 100);
    if (phase.size == 0)
        return "";
    return arena_format(arena, " in %.*s", (int)phase.size, phase.data);
}

static const char *leak_headline(const struct memory_finding *finding, struct arena *arena) {
    const struct suspect_list *suspects = &finding->cause->suspects;
    char growth[HUMAN_MAX];
    char lead[HUMAN_MAX];
    human_bytes(finding->cause->growth_bytes, growth);
    int32_t rank = rank_of(finding, 0);
    const char *phase = in_phase(finding, arena);
    if (suspects->candidate_count < 2)
        return arena_format(arena, "Rank %d leaked %s%s; no other rank grew for good", rank, growth,
                            phase);
    human_duration(suspects->items[0].lead_ns, lead);
    if (finding->cause->sole_earliest)
        return arena_format(arena, "Rank %d leaked %s%s, %s before rank %d followed", rank, growth,
                            phase, lead, rank_of(finding, 1));
    return arena_format(
        arena, "Rank %d leaked most (%s%s), but %" PRIu32 " ranks began at the same moment", rank,
        growth, phase, suspects->count);
}

static const char *headline(const struct memory_finding *finding, struct arena *arena) {
    const struct cause *cause = finding->cause;
    char growth[HUMAN_MAX];
    int32_t rank = rank_of(finding, 0);
    if (finding->replaced)
        return arena_format(arena, "Rank %d was named first, but rank %d began before it", rank,
                            finding->replaced_by);
    if (cause->kind == CAUSE_LEAK)
        return leak_headline(finding, arena);
    if (cause->kind == CAUSE_SWING) {
        human_bytes(cause->suspects.items[0].spike.growth_bytes, growth);
        return arena_format(arena, "Rank %d rose by %s and fell back: nobody is to blame", rank,
                            growth);
    }
    human_bytes(cause->growth_bytes, growth);
    char lead[HUMAN_MAX];
    human_duration(cause->suspects.items[0].lead_ns, lead);
    return arena_format(arena,
                        "All ranks grew alike; rank %d was first by %s and grew %s: nobody is to "
                        "blame",
                        rank, lead, growth);
}

static const char *remediation(const struct memory_finding *finding, struct arena *arena) {
    if (finding->replaced)
        return arena_format(arena, "Look at rank %d instead.", finding->replaced_by);
    if (finding->cause->kind == CAUSE_SWING)
        return "Nothing to mend. If memory is tight, look at the height of the swings.";
    if (finding->cause->kind == CAUSE_COMMON_GROWTH)
        return "Nothing to mend on one rank. If memory runs out, use less of it on all of them: "
               "smaller batches, activation checkpointing, sharding.";
    const struct origin *origin = origin_of(finding, 0);
    struct slice host = cut(intern_slice(origin->host), 64);
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
    session = cut(session, EVIDENCE_UID_MAX - 64);
    return slice_of(arena_format(arena, "sample:%.*s:%d:%" PRIu64, (int)session.size, session.data,
                                 rank_of(finding, i), time_ns));
}

static void add_evidence(const struct memory_finding *finding, struct arena *arena,
                         struct verdict *out, uint32_t i, uint64_t time_ns, enum evidence_role role,
                         const char *description) {
    if (out->evidence_count == VERDICT_EVIDENCE_MAX) {
        out->evidence_dropped++;
        return;
    }
    out->evidence[out->evidence_count++] =
        (struct evidence){.uid = sample_uid(finding, i, time_ns, arena),
                          .description = slice_of(description),
                          .time_ns = time_ns,
                          .has_time = true,
                          .role = role};
}

static const char GREW[] = "rank %d had grown by %s in %" PRIu64 " samples";
static const char CREPT[] = "the lows of rank %d had risen by %s over %" PRIu64 " swings";

static void add_first_evidence(const struct memory_finding *finding, struct arena *arena,
                               struct verdict *out) {
    const struct suspect *first = &finding->cause->suspects.items[0];
    const struct spike *spike = &first->spike;
    int32_t rank = rank_of(finding, 0);
    char bytes[HUMAN_MAX];
    human_bytes(spike->base_bytes, bytes);
    add_evidence(finding, arena, out, 0, spike->window_ns, EVIDENCE_CAUSE,
                 arena_format(arena, "rank %d used %s before it began to grow", rank, bytes));
    human_bytes(spike->growth_bytes, bytes);
    add_evidence(
        finding, arena, out, 0, spike->time_ns, EVIDENCE_CAUSE,
        arena_format(arena, finding->cause->creeping ? CREPT : GREW, rank, bytes, spike->samples));
}

static void add_last_evidence(const struct memory_finding *finding, struct arena *arena,
                              struct verdict *out) {
    const struct rank_view *view = view_of(finding, 0);
    const struct sample *last =
        series_at_or_before(finding->evaluation->store, view->series, view->last_ns);
    if (last == NULL)
        return;
    char bytes[HUMAN_MAX];
    human_bytes(last->used_bytes, bytes);
    add_evidence(
        finding, arena, out, 0, view->last_ns, EVIDENCE_CONTEXT,
        arena_format(arena, "rank %d used %s at its last sample", rank_of(finding, 0), bytes));
}

static void add_other_evidence(const struct memory_finding *finding, struct arena *arena,
                               struct verdict *out) {
    const struct suspect_list *suspects = &finding->cause->suspects;
    char bytes[HUMAN_MAX];
    char after[HUMAN_MAX];
    for (uint32_t i = 1; i < suspects->count; i++) {
        const struct suspect *suspect = &suspects->items[i];
        human_bytes(suspect->spike.growth_bytes, bytes);
        human_duration(suspect->aligned_ns - suspects->items[0].aligned_ns, after);
        add_evidence(finding, arena, out, i, suspect->spike.time_ns, EVIDENCE_EFFECT,
                     arena_format(arena, "rank %d had grown by %s, %s after rank %d",
                                  rank_of(finding, i), bytes, after, rank_of(finding, 0)));
    }
}

static void add_entities(const struct memory_finding *finding, struct arena *arena,
                         struct verdict *out) {
    const struct cause *cause = finding->cause;
    if (cause->kind == CAUSE_SWING || finding->replaced)
        return;
    uint32_t count = cause->suspects.count;
    out->entities = arena_take(arena, count * sizeof *out->entities);
    out->entity_count = count;
    for (uint32_t i = 0; i < count; i++)
        out->entities[i] = (struct entity){
            .kind = "rank",
            .name = slice_of(arena_format(arena, "%d", rank_of(finding, i))),
            .role = i == 0 && cause->kind == CAUSE_LEAK && cause->sole_earliest ? ROLE_CULPRIT
                                                                                : ROLE_SUSPECT};
    verdict_sort_entities(out);
    if (count > VERDICT_ENTITIES_MAX) {
        out->entities_dropped = count - VERDICT_ENTITIES_MAX;
        out->entity_count = VERDICT_ENTITIES_MAX;
    }
}

static void add_attribute(struct verdict *out, const char *key, const char *value) {
    if (value != NULL && value[0] != '\0')
        out->attributes[out->attribute_count++] =
            (struct attribute){key, cut(slice_of(value), 1024)};
}

static const char *digits(struct arena *arena, __int128 value) {
    char text[48];
    size_t at = sizeof text;
    unsigned __int128 left = value < 0 ? 0 - (unsigned __int128)value : (unsigned __int128)value;
    text[--at] = '\0';
    do {
        text[--at] = (char)('0' + (int)(left % 10));
        left /= 10;
    } while (left != 0);
    if (value < 0)
        text[--at] = '-';
    return arena_text(arena, slice_of(text + at));
}

// Keys in order of their bytes.
static void add_attributes(const struct memory_finding *finding, struct arena *arena,
                           struct verdict *out) {
    const struct cause *cause = finding->cause;
    const struct suspect *first = &cause->suspects.items[0];
    const struct origin *origin = origin_of(finding, 0);
    out->attributes = arena_take(arena, VERDICT_ATTRIBUTES_MAX * sizeof *out->attributes);
    add_attribute(out, "culprit.aligned_time_unix_nano", digits(arena, first->aligned_ns));
    add_attribute(out, "culprit.base_bytes", digits(arena, first->spike.base_bytes));
    if (cause->suspects.has_onset)
        add_attribute(out, "culprit.cluster_onset_unix_nano",
                      digits(arena, cause->suspects.onset_ns));
    add_attribute(out, "culprit.confidence", CONFIDENCE_WORDS[first->confidence]);
    add_attribute(out, "culprit.excess_ratio",
                  isinf(cause->excess_ratio) ? "infinite"
                                             : arena_format(arena, "%.3f", cause->excess_ratio));
    add_attribute(out, "culprit.generation", digits(arena, cause->generation));
    add_attribute(out, "culprit.growth_bytes", digits(arena, cause->growth_bytes));
    add_attribute(out, "culprit.lead_ns", digits(arena, first->lead_ns));
    add_attribute(out, "culprit.median_other_growth_bytes",
                  digits(arena, cause->median_other_growth_bytes));
    add_attribute(out, "culprit.peak_delta_bytes", digits(arena, first->spike.growth_bytes));
    struct slice phase = phase_text(&finding->phases[0], arena);
    add_attribute(out, "culprit.phase", arena_text(arena, phase));
    static const char *const resolutions[] = {
        [PHASE_NONE] = "none", [PHASE_UNIQUE] = "unique", [PHASE_AMBIGUOUS] = "ambiguous"};
    add_attribute(out, "culprit.phase_resolution", resolutions[finding->phases[0].resolution]);
    add_attribute(out, "culprit.rank", digits(arena, rank_of(finding, 0)));
    add_attribute(out, "culprit.spike_window_samples",
                  digits(arena, (__int128)first->spike.samples));
    add_attribute(out, "culprit.world_size", digits(arena, finding->evaluation->world_size));
    add_attribute(out, "host.name", intern_slice(origin->host).data);
    add_attribute(out, "process.pid", digits(arena, origin->pid));
}

static void judge_weight(const struct memory_finding *finding, struct verdict *out) {
    const struct cause *cause = finding->cause;
    enum confidence confidence = cause->suspects.items[0].confidence;
    out->severity = SEVERITY_INFO;
    out->action = "monitor";
    if (cause->kind == CAUSE_SWING) {
        out->kind = "swing";
        out->confidence = CONFIDENCE_OF_SWING;
    } else if (cause->kind == CAUSE_COMMON_GROWTH) {
        out->kind = "common_growth";
        out->confidence = CONFIDENCE_OF_COMMON_GROWTH;
    } else {
        out->kind = "leak";
        out->confidence = CONFIDENCE_OF_LEAK[confidence];
        if (!finding->replaced) {
            out->severity = confidence == CONFIDENCE_HIGH ? SEVERITY_ERROR : SEVERITY_WARNING;
            out->action = "inspect_rank";
        }
    }
}

void memory_verdict_build(const struct memory_finding *finding, struct arena *arena,
                          struct verdict *out) {
    const struct cause *cause = finding->cause;
    *out = (struct verdict){
        .pattern = PATTERN, .job = finding->evaluation->job, .partial = cause->suspects.sparse};
    struct slice key[] = {intern_slice(finding->evaluation->job),
                          slice_of(digits(arena, cause->generation)),
                          slice_of(digits(arena, rank_of(finding, 0)))};
    verdict_set_id(out, PATTERN, key, 3);
    judge_weight(finding, out);
    out->headline = cut(slice_of(headline(finding, arena)), VERDICT_HEADLINE_MAX);
    out->remediation = cut(slice_of(remediation(finding, arena)), VERDICT_REMEDIATION_MAX);
    add_entities(finding, arena, out);
    out->evidence = arena_take(arena, VERDICT_EVIDENCE_MAX * sizeof *out->evidence);
    add_first_evidence(finding, arena, out);
    add_other_evidence(finding, arena, out);
    // What fell back is over: what the rank uses since is no part of it.
    if (cause->kind != CAUSE_SWING)
        add_last_evidence(finding, arena, out);
    verdict_set_times(out);
    add_attributes(finding, arena, out);
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
