// SPDX-License-Identifier: Apache-2.0
// Puts verdicts into stories by what they say of one another (`related`, "culprit.root").
//
// A verdict that is no root belongs to the first root that names it, or that it names. One whose
// root is not there is a story of its own. Behind the root stand the others by time, so that times
// grow also where clocks differ and a consequence seems to come before its second cause.
#include "exporters/report/story.h"

#include "base/sort.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { NOBODY = UINT32_MAX };

// -- who belongs to whom --------------------------------------------------------------------------

struct by_id {
    const struct verdict *verdict;
    uint32_t index;
};

struct board {
    const struct verdict **verdicts; // by time, so that their order in the input does not matter
    uint32_t count;
    struct by_id *by_id;
    uint32_t *root; // of each verdict; NOBODY: not known yet
};

const struct entity *story_only_blamed(const struct verdict *verdict, const char *kind) {
    const struct entity *found = NULL;
    for (uint32_t i = 0; i < verdict->entity_count; i++) {
        const struct entity *entity = &verdict->entities[i];
        if (entity->role == ROLE_VICTIM || strcmp(entity->kind, kind) != 0)
            continue;
        if (found != NULL && found->role == entity->role)
            return NULL;
        if (found == NULL)
            found = entity;
    }
    return found;
}

bool story_relates(const struct verdict *verdict, const struct verdict *other,
                   enum relation relation) {
    for (uint32_t i = 0; i < verdict->related_count; i++)
        if (verdict->related[i].relation == relation &&
            strcmp(verdict->related[i].id, other->id) == 0)
            return true;
    return false;
}

static int compare_ids(const void *left, const void *right) {
    const struct by_id *a = left, *b = right;
    return COMPARE_KEYS(strcmp(a->verdict->id, b->verdict->id), COMPARE(a->index, b->index));
}

static uint32_t find_id(const struct board *board, const char *id) {
    uint32_t low = 0, high = board->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(board->by_id[middle].verdict->id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < board->count && strcmp(board->by_id[low].verdict->id, id) == 0;
    return found ? board->by_id[low].index : NOBODY;
}

static int compare_verdicts(const struct verdict *a, const struct verdict *b) {
    return COMPARE_KEYS(COMPARE(a->start_ns, b->start_ns), COMPARE(b->severity, a->severity),
                        strcmp(a->id, b->id));
}

static int compare_steps(const void *left, const void *right) {
    return compare_verdicts(*(const struct verdict *const *)left,
                            *(const struct verdict *const *)right);
}

bool story_is_unexplained(const struct verdict *verdict) {
    return verdict->pattern != NULL && strcmp(verdict->pattern, "unexplained") == 0;
}

static int compare_stories(const void *left, const void *right) {
    const struct verdict *a = ((const struct story *)left)->steps[0];
    const struct verdict *b = ((const struct story *)right)->steps[0];
    return COMPARE_KEYS(COMPARE(a->state == VERDICT_RESOLVED, b->state == VERDICT_RESOLVED),
                        COMPARE(a->severity == SEVERITY_INFO, b->severity == SEVERITY_INFO),
                        COMPARE(story_is_unexplained(a), story_is_unexplained(b)),
                        compare_verdicts(a, b));
}

// Whom a root names is its own, unless another root came first.
static void roots_take(struct board *board) {
    for (uint32_t i = 0; i < board->count; i++) {
        const struct verdict *verdict = board->verdicts[i];
        if (!verdict_is_root(verdict))
            continue;
        board->root[i] = i;
        for (uint32_t j = 0; j < verdict->related_count; j++) {
            uint32_t other = find_id(board, verdict->related[j].id);
            if (other != NOBODY && board->root[other] == NOBODY &&
                !verdict_is_root(board->verdicts[other]))
                board->root[other] = i;
        }
    }
}

// The others by the root that they name, for a root can name only so many.
static void others_join(struct board *board) {
    for (uint32_t i = 0; i < board->count; i++) {
        const struct verdict *verdict = board->verdicts[i];
        for (uint32_t j = 0; board->root[i] == NOBODY && j < verdict->related_count; j++) {
            uint32_t other = find_id(board, verdict->related[j].id);
            if (other != NOBODY && verdict_is_root(board->verdicts[other]))
                board->root[i] = other;
        }
        if (board->root[i] == NOBODY)
            board->root[i] = i;
    }
}

static void board_make(struct board *board, const struct verdict *verdicts, struct arena *arena) {
    board->verdicts = arena_zero(arena, board->count, sizeof *board->verdicts);
    for (uint32_t i = 0; i < board->count; i++)
        board->verdicts[i] = &verdicts[i];
    sort_stable(board->verdicts, board->count, sizeof *board->verdicts, arena, compare_steps);
    board->by_id = arena_zero(arena, board->count, sizeof *board->by_id);
    board->root = arena_zero(arena, board->count, sizeof *board->root);
    for (uint32_t i = 0; i < board->count; i++) {
        board->by_id[i] = (struct by_id){board->verdicts[i], i};
        board->root[i] = NOBODY;
    }
    sort_stable(board->by_id, board->count, sizeof *board->by_id, arena, compare_ids);
    roots_take(board);
    others_join(board);
}

// -- the order of a story -------------------------------------------------------------------------

// Whether a step of the same moment that is still to be told, from `from` on, is its cause.
static bool waits(const struct story *story, uint32_t from, uint32_t step) {
    const struct verdict *verdict = story->steps[step];
    for (uint32_t i = from; i < story->count && story->steps[i]->start_ns == verdict->start_ns; i++)
        if (i != step && story_relates(verdict, story->steps[i], RELATION_CAUSED_BY))
            return true;
    return false;
}

// By time; of the same moment causes first, and in a circle as they are.
static void story_order(struct story *story, struct arena *arena) {
    sort_stable(story->steps + 1, story->count - 1, sizeof *story->steps, arena, compare_steps);
    for (uint32_t at = 1; at < story->count; at++) {
        uint32_t next = at;
        while (next < story->count && story->steps[next]->start_ns == story->steps[at]->start_ns &&
               waits(story, at, next))
            next++;
        if (next == story->count || story->steps[next]->start_ns != story->steps[at]->start_ns)
            continue;
        const struct verdict *step = story->steps[next];
        memmove(story->steps + at + 1, story->steps + at, (next - at) * sizeof *story->steps);
        story->steps[at] = step;
    }
}

struct story_list stories_make(const struct verdict *verdicts, uint32_t count,
                               struct arena *arena) {
    assert(count == 0 || verdicts != NULL);
    struct board board = {.count = count};
    struct story_list list = {.items = arena_zero(arena, count, sizeof *list.items)};
    uint32_t *place = arena_zero(arena, count, sizeof *place);
    uint32_t *size = arena_zero(arena, count, sizeof *size);
    board_make(&board, verdicts, arena);
    for (uint32_t i = 0; i < count; i++)
        size[board.root[i]]++;
    for (uint32_t i = 0; i < count; i++) {
        if (board.root[i] != i)
            continue;
        place[i] = list.count++;
        struct story *story = &list.items[place[i]];
        story->steps = arena_zero(arena, size[i], sizeof(struct verdict *));
        story->steps[story->count++] = board.verdicts[i];
    }
    for (uint32_t i = 0; i < count; i++)
        if (board.root[i] != i) {
            struct story *story = &list.items[place[board.root[i]]];
            story->steps[story->count++] = board.verdicts[i];
        }
    for (uint32_t i = 0; i < list.count; i++)
        story_order(&list.items[i], arena);
    sort_stable(list.items, list.count, sizeof *list.items, arena, compare_stories);
    return list;
}

uint32_t story_cause_of(const struct story *story, uint32_t step) {
    assert(step > 0 && step < story->count);
    for (uint32_t i = step; i > 0; i--)
        if (story_relates(story->steps[step], story->steps[i - 1], RELATION_CAUSED_BY))
            return i - 1;
    return 0;
}

// -- evidence -------------------------------------------------------------------------------------

const bool *story_evidence_chosen(const struct verdict *verdict, uint32_t most,
                                  struct arena *arena) {
    assert(most >= 4);
    const struct {
        enum evidence_role role;
        uint32_t most;
    } turns[] = {{EVIDENCE_CAUSE, most / 2},
                 {EVIDENCE_CONTEXT, most / 4},
                 {EVIDENCE_EFFECT, most},
                 {EVIDENCE_CAUSE, most},
                 {EVIDENCE_CONTEXT, most}};
    bool *chosen = arena_zero(arena, verdict->evidence_count + 1, sizeof *chosen);
    uint32_t left = most;
    for (size_t turn = 0; turn < sizeof turns / sizeof turns[0]; turn++) {
        uint32_t room = left < turns[turn].most ? left : turns[turn].most;
        for (uint32_t i = 0; i < verdict->evidence_count && room > 0; i++) {
            if (chosen[i] || verdict->evidence[i].repeats ||
                verdict->evidence[i].role != turns[turn].role)
                continue;
            chosen[i] = true;
            room--;
            left--;
        }
    }
    return chosen;
}

uint32_t story_evidence_count(const struct verdict *verdict) {
    uint32_t count = verdict->evidence_dropped;
    for (uint32_t i = 0; i < verdict->evidence_count; i++)
        count += !verdict->evidence[i].repeats;
    return count;
}

// -- ranks ----------------------------------------------------------------------------------------

// The digits at the beginning of a text; false: there are none, or too many.
static bool number_at(struct slice text, int32_t *number, size_t *size) {
    enum { DIGITS_MAX = 9 };
    *number = 0;
    for (*size = 0; *size < text.size && text.data[*size] >= '0' && text.data[*size] <= '9';
         ++*size)
        if (*size < DIGITS_MAX)
            *number = *number * 10 + (text.data[*size] - '0');
    return *size > 0 && *size <= DIGITS_MAX;
}

bool story_rank_of(const struct entity *entity, int32_t *rank) {
    size_t size;
    return strcmp(entity->kind, "rank") == 0 && number_at(entity->name, rank, &size) &&
           size == entity->name.size;
}

// "rank 4 started all_reduce 17 and has not completed it": an effect on rank 4.
bool story_struck_rank(const struct evidence *evidence, int32_t *rank) {
    static const char word[] = "rank ";
    size_t skip = sizeof word - 1, size;
    struct slice text = evidence->description;
    return evidence->role == EVIDENCE_EFFECT && text.size > skip &&
           memcmp(text.data, word, skip) == 0 &&
           number_at((struct slice){text.data + skip, text.size - skip}, rank, &size);
}

static bool has_rank(const struct verdict *verdict, int32_t rank, enum entity_role last_role) {
    int32_t named;
    for (uint32_t i = 0; i < verdict->entity_count; i++)
        if (verdict->entities[i].role <= last_role &&
            story_rank_of(&verdict->entities[i], &named) && named == rank)
            return true;
    return false;
}

struct rank_set {
    int32_t *items; // sorted, each once, after ranks_finish
    uint32_t count;
};

// Those named in this verdict from this role on, and those on which it shows an effect.
static void ranks_add(struct rank_set *set, const struct verdict *verdict,
                      enum entity_role first_role) {
    for (uint32_t i = 0; i < verdict->entity_count; i++)
        if (verdict->entities[i].role >= first_role &&
            story_rank_of(&verdict->entities[i], &set->items[set->count]))
            set->count++;
    for (uint32_t i = 0; i < verdict->evidence_count; i++)
        if (story_struck_rank(&verdict->evidence[i], &set->items[set->count]))
            set->count++;
}

// Sorts, and leaves out doubles and whom `root` blames or suspects.
static void ranks_finish(struct rank_set *set, const struct verdict *root, struct arena *arena) {
    uint32_t kept = 0;
    sort_stable(set->items, set->count, sizeof *set->items, arena, compare_by_i32);
    for (uint32_t i = 0; i < set->count; i++)
        if ((kept == 0 || set->items[kept - 1] != set->items[i]) &&
            !has_rank(root, set->items[i], ROLE_SUSPECT))
            set->items[kept++] = set->items[i];
    set->count = kept;
}

const int32_t *story_ranks(const struct story *story, struct arena *arena, uint32_t *count,
                           bool *more) {
    uint32_t most = 1;
    *more = false;
    for (uint32_t i = 0; i < story->count; i++) {
        const struct verdict *step = story->steps[i];
        most += step->entity_count + step->evidence_count;
        *more |= step->entities_dropped > 0 || step->evidence_dropped > 0;
    }
    struct rank_set set = {.items = arena_zero(arena, most, sizeof *set.items)};
    for (uint32_t i = 0; i < story->count; i++)
        ranks_add(&set, story->steps[i], ROLE_CULPRIT);
    ranks_finish(&set, story->steps[0], arena);
    *count = set.count;
    return set.items;
}

const int32_t *story_victims(const struct verdict *verdict, struct arena *arena, uint32_t *count) {
    uint32_t most = verdict->entity_count + verdict->evidence_count + 1;
    struct rank_set set = {.items = arena_zero(arena, most, sizeof *set.items)};
    ranks_add(&set, verdict, ROLE_VICTIM);
    ranks_finish(&set, verdict, arena);
    *count = set.count;
    return set.items;
}

// -- what the launcher said -----------------------------------------------------------------------

// The rank in "3", "rank 3" or "rank 3 (local 1), exit code 1"; false: it names none.
static bool rank_in(struct slice text, int32_t *rank) {
    size_t size;
    while (text.size > 0 && (text.data[0] < '0' || text.data[0] > '9'))
        text = (struct slice){text.data + 1, text.size - 1};
    return number_at(text, rank, &size);
}

static const struct attribute *launcher_of(const struct verdict *verdict) {
    const struct attribute *said = verdict_attribute(verdict, "launcher.root_cause");
    return said != NULL && said->value.size > 0 ? said : NULL;
}

struct slice story_launcher_named(const struct verdict *verdict, struct arena *arena) {
    const struct attribute *said = launcher_of(verdict);
    int32_t rank;
    if (said == NULL || (rank_in(said->value, &rank) && has_rank(verdict, rank, ROLE_CULPRIT)))
        return (struct slice){NULL, 0};
    bool bare = said->value.data[0] >= '0' && said->value.data[0] <= '9';
    return slice_of(arena_format(arena, "%s%.*s", bare ? "rank " : "", (int)said->value.size,
                                 said->value.data));
}

bool story_launcher_named_victim(const struct verdict *verdict) {
    const struct attribute *said = launcher_of(verdict);
    int32_t rank;
    return said != NULL && rank_in(said->value, &rank) && has_rank(verdict, rank, ROLE_VICTIM) &&
           !has_rank(verdict, rank, ROLE_SUSPECT);
}

// -- how far the job came -------------------------------------------------------------------------

// Digits with commas; anything else as it is.
static const char *grouped(struct slice number, struct arena *arena) {
    char *text = arena_take(arena, 2 * number.size + 1);
    size_t size = 0;
    for (size_t i = 0; i < number.size; i++) {
        if (i > 0 && (number.size - i) % 3 == 0)
            text[size++] = ',';
        text[size++] = number.data[i];
    }
    text[size] = '\0';
    return text;
}

// "step 4,120 of 50,000", "step 120 of 5,004 in epoch 3", "epoch 0.34"; NULL: not known.
static const char *place_reached(const struct verdict *verdict, struct arena *arena) {
    const struct attribute *step = verdict_attribute(verdict, "job.step");
    const struct attribute *steps = verdict_attribute(verdict, "job.steps");
    const struct attribute *in_epoch = verdict_attribute(verdict, "job.step_of_epoch");
    const struct attribute *epoch = verdict_attribute(verdict, "job.epoch");
    if (step == NULL)
        return epoch == NULL
                   ? NULL
                   : arena_format(arena, "epoch %.*s", (int)epoch->value.size, epoch->value.data);
    const char *text = arena_format(arena, "step %s", grouped(step->value, arena));
    if (steps != NULL)
        text = arena_format(arena, "%s of %s", text, grouped(steps->value, arena));
    if (in_epoch != NULL)
        text = arena_format(arena, "%s in epoch %.*s", text, (int)in_epoch->value.size,
                            in_epoch->value.data);
    return text;
}

const char *story_progress(const struct verdict *verdict, struct arena *arena) {
    const char *place = place_reached(verdict, arena);
    const struct attribute *saved = verdict_attribute(verdict, "job.checkpoint");
    const struct attribute *epoch = verdict_attribute(verdict, "job.checkpoint_epoch");
    const char *checkpoint =
        saved != NULL ? grouped(saved->value, arena)
        : epoch != NULL
            ? arena_format(arena, "of epoch %.*s", (int)epoch->value.size, epoch->value.data)
            : NULL;
    if (place == NULL || checkpoint == NULL)
        return place != NULL        ? arena_format(arena, "the job got to %s", place)
               : checkpoint != NULL ? arena_format(arena, "the last checkpoint is %s", checkpoint)
                                    : NULL;
    return arena_format(arena, "the job got to %s; its last checkpoint is %s", place, checkpoint);
}

// -- a restart ------------------------------------------------------------------------------------

const char *story_restart(const struct verdict *verdict) {
    static const struct {
        const char *name, *words;
    } ROWS[] = {
        {"helps", "helps, as it is"},
        {"in_vain", "is in vain until something is changed"},
        {"elsewhere", "helps only without what is named here, or after its repair"},
        {"stopped", "is for whoever stopped the job to decide"},
    };
    const struct attribute *said = verdict_attribute(verdict, "culprit.restart");
    for (size_t i = 0; said != NULL && i < sizeof ROWS / sizeof *ROWS; i++)
        if (slice_equal(said->value, slice_of(ROWS[i].name)))
            return ROWS[i].words;
    return NULL;
}
