// SPDX-License-Identifier: Apache-2.0
// Says which rank holds up the others, or which phase takes all of them longer: "Rank 3 holds up
// the others: its own work takes 1.32 times theirs, most of it in forward". The id hangs on the
// job, the process, the phase and the step in which it began, so it stays while it lasts.
#include "processors/cluster/xid_text.h"
#include "processors/slow_rank/parts.h"

#include <inttypes.h>

static const char PATTERN[] = "slow_rank";
enum { CONFIDENCE_OF_ENDED = 5 };

static const struct {
    const char *name, *headline, *remediation, *action;
} KINDS[] = {
    [SLOW_COMPUTE] = {"slow_compute",
                      "{Rank} holds up the others: its own work takes {ratio} times theirs, most "
                      "of the difference in {phase}",
                      "Look at the clocks, temperature, power and PCIe link of the GPU of {rank} "
                      "and at what else runs on its node; check that it has no more to compute "
                      "than the others. If it stays slow, move it to another node.",
                      "inspect_rank"},
    [SLOW_INPUT] = {"slow_input",
                    "{Rank} holds up the others: its own work takes {ratio} times theirs, most of "
                    "the difference in {phase}",
                    "Look at where {rank} reads its input from: storage and network of its node, "
                    "workers that load data, CPUs that others use, and the size of its share.",
                    "inspect_rank"},
    [SLOW_CHECKPOINT] = {"slow_checkpoint",
                         "{Rank} holds up the others at checkpoints: {phase} takes it {ratio} "
                         "times as long",
                         "Look at where {rank} writes to: disk and network of its node, and how "
                         "much of the checkpoint is its own.",
                         "inspect_rank"},
    [COMMON_STALL] = {"common_stall",
                      "All ranks are slow in {phase} alike: it takes the fastest {ratio} times as "
                      "long as usual",
                      "Look at what all ranks share in {phase}: storage, network, or a service "
                      "that they all call. No rank is to blame.",
                      "monitor"},
};

static const char *headline_of(const struct slow_finding *finding) {
    if (finding->ended == 0)
        return KINDS[finding->kind].headline;
    return finding->kind == COMMON_STALL ? "Phase {phase} takes no longer than usual again"
                                         : "{Rank} keeps up with the others again, in {phase} too";
}

static const char *rank_text(int32_t rank, struct arena *arena) {
    return arena_format(arena, "%" PRId32, rank);
}

static const char *uid_of(string_id session, int32_t rank, uint64_t time_ns, struct arena *arena) {
    struct slice name = intern_slice(session);
    return arena_format(arena, "step:%.*s:%" PRId32 ":%" PRIu64, (int)name.size, name.data, rank,
                        time_ns);
}

static const char *length(uint32_t us, struct arena *arena) {
    return duration_text((__int128)us * 1000, arena);
}

// "1.32", rounded down.
static const char *ratio_text(uint64_t own_us, uint64_t others_us, struct arena *arena) {
    if (others_us == 0)
        return "many";
    uint64_t hundredths = own_us / others_us * 100 + own_us % others_us * 100 / others_us;
    return arena_format(arena, "%" PRIu64 ".%02" PRIu64, hundredths / 100, hundredths % 100);
}

static void add_evidence(struct verdict_builder *builder, const struct slow_finding *finding,
                         const char *phase) {
    struct arena *arena = builder->arena;
    const char *rank = rank_text(finding->last_rank, arena);
    const char *own = length(finding->own_us, arena), *others = length(finding->others_us, arena);
    const char *last = uid_of(finding->last_session, finding->last_rank, finding->last_ns, arena);
    const char *first =
        uid_of(finding->first_session, finding->first_rank, finding->onset_ns, arena);
    switch ((enum slow_kind)finding->kind) {
    case SLOW_COMPUTE:
    case SLOW_INPUT:
        builder_evidence(builder, EVIDENCE_CAUSE, finding->last_ns, last,
                         "rank %s worked %s in this step and waited %s; median of the others: "
                         "worked %s, waited %s",
                         rank, own, length(finding->wait_us, arena), others,
                         length(finding->others_wait_us, arena));
        break;
    case SLOW_CHECKPOINT:
        builder_evidence(builder, EVIDENCE_CAUSE, finding->last_ns, last,
                         "rank %s was in %s for %s in this step; median of the others: %s", rank,
                         phase, own, others);
        break;
    case COMMON_STALL:
        builder_evidence(builder, EVIDENCE_CAUSE, finding->last_ns, last,
                         "%s took %s on rank %s, the fastest, in this step; usual are %s", phase,
                         own, rank, others);
        break;
    }
    builder_evidence(builder, EVIDENCE_CAUSE, finding->onset_ns, first,
                     "the first step in which it was so, of rank %s",
                     rank_text(finding->first_rank, arena));
    if (finding->victim_ns != 0)
        builder_evidence(
            builder, EVIDENCE_EFFECT, finding->victim_ns,
            uid_of(finding->victim_session, finding->victim_rank, finding->victim_ns, arena),
            "rank %s waited longest: %s", rank_text(finding->victim_rank, arena),
            length(finding->victim_wait_us, arena));
}

static enum severity severity_of(const struct slow_finding *finding) {
    bool computes =
        finding->kind == COMMON_STALL && (phase_class_of(finding->phase) == PHASE_COMPUTE ||
                                          phase_class_of(finding->phase) == PHASE_BACKWARD);
    return finding->ended != 0 || computes ? SEVERITY_INFO : SEVERITY_WARNING;
}

void slow_verdict(const struct slow_rank *self, const struct slow_finding *finding, string_id node,
                  struct verdict_builder *builder) {
    struct arena *arena = builder->arena;
    enum slow_kind kind = (enum slow_kind)finding->kind;
    bool common = kind == COMMON_STALL;
    const char *rank = rank_text(finding->rank, arena);
    const char *phase = arena_text(arena, intern_slice(finding->phase));
    const char *ratio = ratio_text(finding->own_sum_us, finding->others_sum_us, arena);
    const struct text_field fields[] = {{"rank", arena_format(arena, "rank %s", rank)},
                                        {"phase", phase},
                                        {"ratio", ratio},
                                        {NULL, NULL}};
    builder_begin(builder, arena, PATTERN, KINDS[kind].name);
    builder_rate(builder, severity_of(finding),
                 finding->ended != 0 ? CONFIDENCE_OF_ENDED
                 : common            ? self->config.stall_confidence
                                     : self->config.confidence,
                 KINDS[kind].action);
    builder_texts(builder, headline_of(finding), KINDS[kind].remediation, fields);
    if (!common) {
        builder_entity(builder, "rank", ROLE_CULPRIT, rank);
        if (node != STRING_NONE)
            builder_entity(builder, "node", ROLE_SUSPECT, arena_text(arena, intern_slice(node)));
    }
    // Who waits longest changes from step to step, and is no entity, else each change were news.
    builder_attribute(builder, "culprit.slow.phase", slice_of(phase));
    builder_attribute(builder, "culprit.slow.ratio", slice_of(ratio));
    builder->verdict.job = finding->job;
    add_evidence(builder, finding, phase);
    builder_finish(builder,
                   (struct slice[]){intern_slice(finding->job), intern_slice(finding->session),
                                    slice_of(rank), slice_of(phase),
                                    slice_of(arena_format(arena, "%" PRIu64, finding->onset_ns))},
                   5);
}
