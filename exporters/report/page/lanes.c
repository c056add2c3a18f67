// SPDX-License-Identifier: Apache-2.0
// The lanes of an incident, in SVG.
//
// Across, places are shares of the width and texts keep their size, so that the picture is readable
// on a phone and needs no scaling. Time is not to scale: each moment that counts has a column, and
// what lies between is put between; else a second and an hour would not fit on one axis. At most
// LANES_MAX lanes, COLUMNS_MAX columns, STEPS_DRAWN steps and MARKS_MAX marks.
#include "exporters/report/page/lanes.h"

#include "base/sort.h"
#include "base/text/display.h"

#include <assert.h>

enum {
    LANES_MAX = 9,
    COLUMNS_MAX = 6,
    STEPS_DRAWN = 12,
    MARKS_MAX = 96,
    MARKS_NEAR = 180, // so near to one another they are one mark
    LANE_HEIGHT = 58,
    TRACK = 32, // from a lane's top to its line
    MARKS_BELOW = 16,
    LABEL_COLUMNS = 40, // of a name that is longer, its beginning and its end
    LABEL_HEAD = 24,
    LABEL_TAIL = 16,
    LEFT = 400, // hundredths of a percent
    RIGHT = 9600,
};

struct lane {
    const char *kind; // "gpu"; NULL: the ranks that were struck
    struct slice name;
    bool blamed; // by the root
};

struct mark {
    uint32_t lane;
    int x;
    enum evidence_role role;
    const struct evidence *first;
    uint32_t count;
};

struct circle {
    uint32_t lane;
    int x;
    uint32_t beside; // circles that stand there already
};

// What the legend names, in its order.
enum drawing {
    DRAWN_STEP,
    DRAWN_ARROW,
    DRAWN_CULPRIT,
    DRAWN_SUSPECT,
    DRAWN_VICTIM,
    DRAWN_CAUSE,
    DRAWN_EFFECT,
    DRAWN_CONTEXT,
    DRAWINGS
};

struct lanes {
    struct page_view *view;
    const struct story *story;
    uint32_t step_count; // of those that are drawn
    struct lane lanes[LANES_MAX];
    uint32_t lane_count;
    uint32_t left_out;
    const char *struck; // "ranks 0 to 5 and 7"; NULL: none
    uint64_t columns[COLUMNS_MAX];
    uint32_t column_count;
    struct mark marks[MARKS_MAX];
    uint32_t mark_count;
    struct circle circles[STEPS_DRAWN];
    bool drawn[DRAWINGS];
};

// -- who has a lane -------------------------------------------------------------------------------

// From what breaks to whom it strikes.
static uint32_t place_of(const struct lane *lane) {
    static const char *const kinds[] = {"pci_port", "pci_device", "nic", "gpu", "node", "pod"};
    uint32_t place = 0;
    if (lane->kind == NULL)
        return UINT32_MAX;
    while (place < sizeof kinds / sizeof kinds[0] && strcmp(kinds[place], lane->kind) != 0)
        place++;
    return place;
}

static int compare_lanes(const void *left, const void *right) {
    return COMPARE(place_of(left), place_of(right));
}

static uint32_t find_lane(const struct lanes *lanes, const char *kind, struct slice name) {
    for (uint32_t i = 0; i < lanes->lane_count; i++) {
        const struct lane *lane = &lanes->lanes[i];
        if (kind == NULL ? lane->kind == NULL
                         : lane->kind != NULL && strcmp(lane->kind, kind) == 0 &&
                               slice_equal(lane->name, name))
            return i;
    }
    return LANES_MAX;
}

// A rank that is struck and nothing else shares its lane with others.
static bool shares_lane(const struct entity *entity) {
    return entity->role == ROLE_VICTIM && strcmp(entity->kind, "rank") == 0;
}

static void lane_add(struct lanes *lanes, const struct entity *entity, bool root) {
    if (shares_lane(entity) || find_lane(lanes, entity->kind, entity->name) < LANES_MAX)
        return;
    // The last one is kept for the ranks that were struck.
    if (lanes->lane_count == LANES_MAX - 1) {
        lanes->left_out++;
        return;
    }
    lanes->lanes[lanes->lane_count++] = (struct lane){
        .kind = entity->kind, .name = entity->name, .blamed = root && entity->role == ROLE_CULPRIT};
}

// Of all steps together, but for those that have a lane of their own.
static const char *struck_ranks(struct lanes *lanes) {
    struct arena *arena = lanes->view->html.arena;
    uint32_t count = 0, kept = 0;
    bool more;
    const int32_t *all = story_ranks(lanes->story, arena, &count, &more);
    int32_t *ranks = arena_zero(arena, count, sizeof *ranks);
    for (uint32_t i = 0; i < count; i++)
        if (find_lane(lanes, "rank", slice_of(arena_number(arena, all[i]))) == LANES_MAX)
            ranks[kept++] = all[i];
    return kept == 0 ? NULL : text_ranks(&lanes->view->words, ranks, kept);
}

static void lanes_find(struct lanes *lanes) {
    for (uint32_t i = 0; i < lanes->step_count; i++) {
        const struct verdict *step = lanes->story->steps[i];
        for (uint32_t j = 0; j < step->entity_count; j++)
            lane_add(lanes, &step->entities[j], i == 0);
    }
    lanes->struck = struck_ranks(lanes);
    if (lanes->struck != NULL)
        lanes->lanes[lanes->lane_count++] = (struct lane){.kind = NULL};
    sort_stable(lanes->lanes, lanes->lane_count, sizeof *lanes->lanes, lanes->view->html.arena,
                compare_lanes);
}

// A node holds pods, and both hold ranks and devices.
static int breadth_of(const struct entity *entity) {
    return strcmp(entity->kind, "node") == 0 ? 2 : strcmp(entity->kind, "pod") == 0 ? 1 : 0;
}

// Where the numbers of a step stand: with the first that it blames, else suspects, else calls a
// victim; a node or a pod only where nothing on it is named so.
static uint32_t home_of(const struct lanes *lanes, const struct verdict *step) {
    const struct entity *narrowest = NULL;
    uint32_t home = 0;
    for (uint32_t i = 0; i < step->entity_count; i++) {
        const struct entity *entity = &step->entities[i];
        uint32_t lane = shares_lane(entity) ? find_lane(lanes, NULL, entity->name)
                                            : find_lane(lanes, entity->kind, entity->name);
        if (lane == LANES_MAX ||
            (narrowest != NULL &&
             (entity->role != narrowest->role || breadth_of(entity) >= breadth_of(narrowest))))
            continue;
        narrowest = entity;
        home = lane;
    }
    return home;
}

static uint32_t lane_of_evidence(const struct lanes *lanes, const struct verdict *step,
                                 const struct evidence *evidence) {
    int32_t rank;
    if (evidence->role != EVIDENCE_EFFECT)
        return home_of(lanes, step);
    if (story_struck_rank(evidence, &rank)) {
        struct slice name = slice_of(arena_number(lanes->view->html.arena, rank));
        uint32_t own = find_lane(lanes, "rank", name);
        uint32_t shared = find_lane(lanes, NULL, name);
        return own < LANES_MAX ? own : shared < LANES_MAX ? shared : home_of(lanes, step);
    }
    for (uint32_t i = 0; i < step->entity_count; i++) {
        uint32_t lane = find_lane(lanes, step->entities[i].kind, step->entities[i].name);
        if (step->entities[i].role == ROLE_VICTIM && lane < LANES_MAX)
            return lane;
    }
    return home_of(lanes, step);
}

// -- when -----------------------------------------------------------------------------------------

static void column_add(struct lanes *lanes, uint64_t time_ns) {
    uint32_t at = 0;
    while (at < lanes->column_count && lanes->columns[at] < time_ns)
        at++;
    if (lanes->column_count == COLUMNS_MAX ||
        (at < lanes->column_count && lanes->columns[at] == time_ns))
        return;
    memmove(lanes->columns + at + 1, lanes->columns + at,
            (lanes->column_count - at) * sizeof *lanes->columns);
    lanes->columns[at] = time_ns;
    lanes->column_count++;
}

// The first and the last moment, then when each step began, then when each was last seen.
static void columns_find(struct lanes *lanes) {
    const struct story *story = lanes->story;
    uint64_t first_ns = story->steps[0]->start_ns, last_ns = first_ns;
    for (uint32_t i = 0; i < lanes->step_count; i++) {
        const struct verdict *step = story->steps[i];
        uint64_t end_ns = step->end_ns > step->start_ns ? step->end_ns : step->start_ns;
        first_ns = step->start_ns < first_ns ? step->start_ns : first_ns;
        last_ns = end_ns > last_ns ? end_ns : last_ns;
    }
    column_add(lanes, first_ns);
    column_add(lanes, last_ns);
    for (uint32_t i = 0; i < lanes->step_count; i++)
        column_add(lanes, story->steps[i]->start_ns);
    for (uint32_t i = 0; i < lanes->step_count; i++)
        if (story->steps[i]->end_ns > story->steps[i]->start_ns)
            column_add(lanes, story->steps[i]->end_ns);
}

static int column_x(const struct lanes *lanes, uint32_t column) {
    if (lanes->column_count < 2)
        return LEFT;
    return LEFT + (int)((RIGHT - LEFT) * column / (lanes->column_count - 1));
}

static int x_of(const struct lanes *lanes, uint64_t time_ns) {
    uint32_t at = 0;
    while (at + 1 < lanes->column_count && lanes->columns[at + 1] <= time_ns)
        at++;
    int x = column_x(lanes, at);
    if (at + 1 == lanes->column_count || time_ns <= lanes->columns[at])
        return x;
    __int128 into_ns = (__int128)time_ns - lanes->columns[at];
    __int128 whole_ns = (__int128)lanes->columns[at + 1] - lanes->columns[at];
    return x + (int)(into_ns * (column_x(lanes, at + 1) - x) / whole_ns);
}

// -- writing --------------------------------------------------------------------------------------

static int top_of(uint32_t lane) {
    return (int)lane * LANE_HEIGHT;
}

static const char *lane_name(const struct lanes *lanes, const struct lane *lane) {
    struct page_view *view = lanes->view;
    if (lane->kind == NULL)
        return lanes->struck;
    return arena_format(view->html.arena, "%s %s", lane->kind,
                        page_shown(&view->words, lane->name, 0));
}

static const char *label_of(const struct lanes *lanes, const char *name) {
    struct slice text = slice_of(name);
    if (display_columns(text) <= LABEL_COLUMNS)
        return name;
    size_t tail = text.size > LABEL_TAIL ? text.size - LABEL_TAIL : 0;
    while (((unsigned char)name[tail] & 0xc0) == 0x80) // inside a character
        tail++;
    return arena_format(lanes->view->html.arena, "%s%s",
                        page_shown(&lanes->view->words, text, LABEL_HEAD), name + tail);
}

static void lane_append(struct lanes *lanes, uint32_t number) {
    const struct lane *lane = &lanes->lanes[number];
    struct html *html = &lanes->view->html;
    const char *name = lane_name(lanes, lane);
    html_format(html,
                "<line class=\"track\" x1=\"0\" x2=\"100%%\" "
                "y1=\"%d\" y2=\"%d\"/>\n",
                top_of(number) + TRACK, top_of(number) + TRACK);
    html_format(html, "<text class=\"lane%s\" x=\"0\" y=\"%d\"><title>%s</title>%s</text>\n",
                lane->blamed ? " blamed" : "", top_of(number) + 14, name, label_of(lanes, name));
}

static void bar_append(struct lanes *lanes, uint32_t lane, const struct verdict *step,
                       enum entity_role role) {
    static const char *const roles[] = {"culprit", "suspect", "victim"};
    int from = x_of(lanes, step->start_ns), to = x_of(lanes, step->end_ns);
    if (to <= from)
        return;
    lanes->drawn[DRAWN_CULPRIT + role] = true;
    html_format(&lanes->view->html,
                "<rect class=\"span %s\" x=\"" PAGE_SHARE "\" width=\"" PAGE_SHARE
                "\" y=\"%d\" height=\"8\" rx=\"4\"/>\n",
                roles[role], PAGE_SHARE_OF(from), PAGE_SHARE_OF(to - from),
                top_of(lane) + TRACK - 4);
}

static bool is_blamed(const struct lanes *lanes, const struct entity *suspect) {
    for (uint32_t i = 0; i < lanes->step_count; i++) {
        const struct verdict *step = lanes->story->steps[i];
        for (uint32_t j = 0; j < step->entity_count; j++)
            if (step->entities[j].role == ROLE_CULPRIT &&
                strcmp(step->entities[j].kind, suspect->kind) == 0 &&
                slice_equal(step->entities[j].name, suspect->name))
                return true;
    }
    return false;
}

// One bar for whom it blames, suspects or struck; none for a suspicion of whom another step blames.
static void bars_append(struct lanes *lanes, const struct verdict *step) {
    for (uint32_t i = 0; i < step->entity_count; i++) {
        const struct entity *entity = &step->entities[i];
        uint32_t lane = find_lane(lanes, entity->kind, entity->name);
        if (shares_lane(entity) || lane == LANES_MAX ||
            (entity->role == ROLE_SUSPECT && is_blamed(lanes, entity)))
            continue;
        bar_append(lanes, lane, step, entity->role);
    }
    uint32_t count, shared = find_lane(lanes, NULL, SLICE(""));
    story_victims(step, lanes->view->html.arena, &count);
    if (count > 0 && shared < LANES_MAX)
        bar_append(lanes, shared, step, ROLE_VICTIM);
}

static void circles_find(struct lanes *lanes) {
    for (uint32_t i = 0; i < lanes->step_count; i++) {
        struct circle *circle = &lanes->circles[i];
        *circle = (struct circle){.lane = home_of(lanes, lanes->story->steps[i]),
                                  .x = x_of(lanes, lanes->story->steps[i]->start_ns)};
        for (uint32_t j = 0; j < i; j++)
            if (lanes->circles[j].lane == circle->lane && lanes->circles[j].x == circle->x)
                circle->beside++;
    }
}

// Along the lane of the cause to the moment of the consequence, then over to its lane.
static void arrow_append(struct lanes *lanes, uint32_t step) {
    const struct circle *to = &lanes->circles[step];
    const struct circle *from = &lanes->circles[story_cause_of(lanes->story, step)];
    struct html *html = &lanes->view->html;
    int y = top_of(from->lane) + TRACK, end = top_of(to->lane) + TRACK;
    if (to->beside > 0 || to->x < from->x)
        return;
    lanes->drawn[DRAWN_ARROW] = true;
    if (to->x > from->x)
        html_format(html,
                    "<line class=\"arrow\" x1=\"" PAGE_SHARE "\" x2=\"" PAGE_SHARE
                    "\" y1=\"%d\" "
                    "y2=\"%d\"/>\n",
                    PAGE_SHARE_OF(from->x), PAGE_SHARE_OF(to->x), y, y);
    if (to->lane == from->lane) {
        html_format(html,
                    "<svg x=\"" PAGE_SHARE
                    "\" y=\"%d\" overflow=\"visible\"><path class=\"head\" "
                    "d=\"M-11 0l-8-5v10z\"/></svg>\n",
                    PAGE_SHARE_OF(to->x), end);
        return;
    }
    int down = to->lane > from->lane ? 1 : -1;
    html_format(html,
                "<line class=\"arrow\" x1=\"" PAGE_SHARE "\" x2=\"" PAGE_SHARE
                "\" y1=\"%d\" y2=\"%d\"/>"
                "<svg x=\"" PAGE_SHARE
                "\" y=\"%d\" overflow=\"visible\"><path class=\"head\" "
                "d=\"M0 0l-5 %dh10z\"/></svg>\n",
                PAGE_SHARE_OF(to->x), PAGE_SHARE_OF(to->x), y, end - down * 16,
                PAGE_SHARE_OF(to->x), end - down * 11, -down * 8);
}

static void circle_append(struct lanes *lanes, uint32_t step) {
    const struct circle *circle = &lanes->circles[step];
    const struct verdict *verdict = lanes->story->steps[step];
    struct page_view *view = lanes->view;
    int dx = (int)circle->beside * 20;
    lanes->drawn[DRAWN_STEP] = true;
    html_format(&view->html,
                "<svg x=\"" PAGE_SHARE
                "\" y=\"%d\" overflow=\"visible\"><g class=\"step%s\" "
                "role=\"img\"><title>%u: %s",
                PAGE_SHARE_OF(circle->x), top_of(circle->lane) + TRACK, step == 0 ? " first" : "",
                step + 1, page_began(&view->words, verdict));
    html_format(&view->html,
                ": %s</title><circle cx=\"%d\" r=\"10\"/><text x=\"%d\" y=\"4.5\" "
                "text-anchor=\"middle\">%u</text></g></svg>\n",
                page_shown(&view->words, verdict->headline, 0), dx, dx, step + 1);
}

// -- evidence -------------------------------------------------------------------------------------

static void mark_add(struct lanes *lanes, uint32_t lane, const struct evidence *evidence) {
    int x = x_of(lanes, evidence->time_ns);
    for (uint32_t i = lanes->mark_count; i > 0; i--) {
        struct mark *mark = &lanes->marks[i - 1];
        if (mark->lane == lane && mark->role == evidence->role && x - mark->x < MARKS_NEAR &&
            mark->x - x < MARKS_NEAR) {
            mark->count++;
            return;
        }
    }
    if (lanes->mark_count < MARKS_MAX)
        lanes->marks[lanes->mark_count++] =
            (struct mark){.lane = lane, .x = x, .role = evidence->role, .first = evidence, 1};
}

static void marks_find(struct lanes *lanes) {
    for (uint32_t i = 0; i < lanes->step_count; i++) {
        const struct verdict *step = lanes->story->steps[i];
        for (uint32_t j = 0; j < step->evidence_count; j++) {
            const struct evidence *evidence = &step->evidence[j];
            if (evidence->has_time && !evidence->repeats &&
                evidence->time_ns >= lanes->columns[0] &&
                evidence->time_ns <= lanes->columns[lanes->column_count - 1])
                mark_add(lanes, lane_of_evidence(lanes, step, evidence), evidence);
        }
    }
}

static const char *const evidence_shapes[] = {
    [EVIDENCE_CAUSE] = "<path class=\"cause\" d=\"M0-5.5 5.5 0 0 5.5-5.5 0Z\"/>",
    [EVIDENCE_EFFECT] = "<circle class=\"effect\" r=\"4.5\"/>",
    [EVIDENCE_CONTEXT] = "<circle class=\"context\" r=\"3.5\"/>",
};

static void mark_append(struct lanes *lanes, const struct mark *mark) {
    struct page_view *view = lanes->view;
    lanes->drawn[DRAWN_CAUSE + mark->role] = true;
    html_format(&view->html,
                "<svg x=\"" PAGE_SHARE
                "\" y=\"%d\" overflow=\"visible\"><g class=\"seen\" "
                "role=\"img\"><title>%s: %s",
                PAGE_SHARE_OF(mark->x), top_of(mark->lane) + TRACK + MARKS_BELOW,
                page_time(&view->words, mark->first->time_ns),
                page_shown(&view->words, mark->first->description, 0));
    if (mark->count > 1)
        html_format(&view->html, "; and %u more", mark->count - 1);
    html_raw(&view->html, "</title>");
    html_raw(&view->html, evidence_shapes[mark->role]);
    html_raw(&view->html, "</g></svg>\n");
}

// -- the axis, and all of it ----------------------------------------------------------------------

static const char *tick_text(struct lanes *lanes, uint32_t column) {
    uint64_t begin_ns = lanes->story->steps[0]->start_ns, time_ns = lanes->columns[column];
    struct text_page *words = &lanes->view->words;
    if (time_ns == begin_ns)
        return "began";
    if (time_ns < begin_ns)
        return arena_format(words->arena, "-%s", page_duration(words, begin_ns - time_ns));
    return arena_format(words->arena, "+%s", page_duration(words, time_ns - begin_ns));
}

static void axis_append(struct lanes *lanes) {
    struct html *html = &lanes->view->html;
    int bottom = top_of(lanes->lane_count);
    bool crowded = lanes->column_count > 3; // then every other one stands lower
    for (uint32_t i = 0; i < lanes->column_count; i++) {
        const char *anchor = i == 0 ? "start" : i == lanes->column_count - 1 ? "end" : "middle";
        int x = i == 0 ? 0 : i == lanes->column_count - 1 ? 10000 : column_x(lanes, i);
        html_format(html,
                    "<line class=\"column\" x1=\"" PAGE_SHARE "\" x2=\"" PAGE_SHARE
                    "\" y1=\"20\" "
                    "y2=\"%d\"/><text class=\"when\" x=\"" PAGE_SHARE
                    "\" y=\"%d\" "
                    "text-anchor=\"%s\">%s</text>\n",
                    PAGE_SHARE_OF(column_x(lanes, i)), PAGE_SHARE_OF(column_x(lanes, i)), bottom,
                    PAGE_SHARE_OF(x), bottom + 14 + (crowded ? (int)(i % 2) * 16 : 0), anchor,
                    tick_text(lanes, i));
    }
}

// Of each kind of mark that is drawn what it means.
static void legend_append(struct lanes *lanes) {
    static const struct {
        const char *shape, *words;
    } keys[] = {
        [DRAWN_STEP] = {"<g class=\"step first\"><circle r=\"6\"/></g>",
                        "a step began, by its number"},
        [DRAWN_ARROW] = {"<path class=\"arrow\" d=\"M-12 0H6\"/><path class=\"head\" "
                         "d=\"M12 0l-8-5v10z\"/>",
                         "led to"},
        [DRAWN_CULPRIT] = {"<path class=\"span culprit\" d=\"M-13-4H13V4H-13Z\"/>", "blamed"},
        [DRAWN_SUSPECT] = {"<path class=\"span suspect\" d=\"M-12-4H12V4H-12Z\"/>", "suspected"},
        [DRAWN_VICTIM] = {"<path class=\"span victim\" d=\"M-13-4H13V4H-13Z\"/>", "struck"},
        [DRAWN_CAUSE] = {NULL, "evidence of a cause"},
        [DRAWN_EFFECT] = {NULL, "evidence of an effect"},
        [DRAWN_CONTEXT] = {NULL, "context"},
    };
    struct html *html = &lanes->view->html;
    html_raw(html, "<ul class=\"legend\">\n");
    for (int i = 0; i < DRAWINGS; i++) {
        if (!lanes->drawn[i])
            continue;
        html_raw(html,
                 "<li><svg class=\"key\" viewBox=\"-13 -6 26 12\" aria-hidden=\"true\">"
                 "<g class=\"seen\">");
        html_raw(html, keys[i].shape != NULL ? keys[i].shape : evidence_shapes[i - DRAWN_CAUSE]);
        html_format(html, "</g></svg>%s</li>\n", keys[i].words);
    }
    html_raw(html, "</ul>");
}

static void caption_append(struct lanes *lanes) {
    struct html *html = &lanes->view->html;
    html_raw(html, "<figcaption class=\"quiet\">");
    legend_append(lanes);
    html_raw(html, "Time runs from left to right, not to scale.");
    if (lanes->left_out > 0)
        html_format(html, " %u more that are named have no lane.", lanes->left_out);
    if (lanes->story->count > lanes->step_count)
        html_format(html, " %u more steps are not drawn.", lanes->story->count - lanes->step_count);
    html_raw(html, "</figcaption></figure>\n");
}

void page_lanes_append(struct page_view *view, const struct story *story) {
    struct lanes *lanes = arena_zero(view->html.arena, 1, sizeof *lanes);
    lanes->view = view;
    lanes->story = story;
    lanes->step_count = story->count < STEPS_DRAWN ? story->count : STEPS_DRAWN;
    lanes_find(lanes);
    if (lanes->lane_count == 0)
        return;
    columns_find(lanes);
    circles_find(lanes);
    marks_find(lanes);
    html_format(&view->html,
                "<figure class=\"story\"><svg class=\"lanes\" width=\"100%%\" height=\"%d\" "
                "role=\"group\" aria-label=\"Who was struck and when\">\n",
                top_of(lanes->lane_count) + 36);
    axis_append(lanes);
    for (uint32_t i = 0; i < lanes->lane_count; i++)
        lane_append(lanes, i);
    for (uint32_t i = 0; i < lanes->step_count; i++)
        bars_append(lanes, story->steps[i]);
    for (uint32_t i = 1; i < lanes->step_count; i++)
        arrow_append(lanes, i);
    for (uint32_t i = 0; i < lanes->mark_count; i++)
        mark_append(lanes, &lanes->marks[i]);
    for (uint32_t i = 0; i < lanes->step_count; i++)
        circle_append(lanes, i);
    html_raw(&view->html, "</svg>\n");
    caption_append(lanes);
}
