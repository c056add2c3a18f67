// SPDX-License-Identifier: Apache-2.0
// Reads the plain data of a pickle.
//
// A stack machine over pointers to values. Each op code makes at most one value and takes at least
// one byte, memo slots are counted against the record's size, and places in containers against
// PICKLE_VALUES_MAX, so memory is linear in the record whatever it says. Containers grow by
// doubling.
#include "receivers/decode/flight_recorder/pickle.h"

#include "base/text/utf8.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

typedef const struct pickle_value *pointer;

struct pointers {
    pointer *items;
    uint32_t count, capacity;
};

struct machine {
    const unsigned char *start, *at, *end;
    struct arena *arena;
    struct pickle_fault *fault;
    struct pointers stack;
    struct pointers memo;
    uint32_t marks[PICKLE_MARKS_MAX]; // heights of the stack
    uint32_t mark_count;
    uint32_t made;   // values
    uint32_t placed; // pointers put anywhere
    size_t op_offset;
    uint32_t memoized; // how many MEMOIZE and PUT there were
};

__attribute__((format(printf, 2, 3))) static void set_fault(struct machine *machine,
                                                            const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(machine->fault->why, PICKLE_WHY_MAX, format, arguments);
    va_end(arguments);
    machine->fault->offset = machine->op_offset;
}

// So that the compiler sees that it is false.
#define fail(...) (set_fault(__VA_ARGS__), false)

static bool fail_cut(struct machine *machine) {
    machine->fault->cut = true;
    return fail(machine, "the pickle ends inside an op code's argument");
}

// -- numbers in the stream -----------------------------------------------------------------------

static bool has(const struct machine *machine, uint64_t size) {
    return (uint64_t)(machine->end - machine->at) >= size;
}

// Little-endian, up to 8 bytes.
static bool read_unsigned(struct machine *machine, unsigned size, uint64_t *value) {
    assert(size > 0 && size <= sizeof *value);
    if (!has(machine, size))
        return fail_cut(machine);
    *value = 0;
    for (unsigned i = 0; i < size; i++)
        *value |= (uint64_t)machine->at[i] << (8 * i);
    machine->at += size;
    return true;
}

// -- stack, memo, marks --------------------------------------------------------------------------

static bool pointers_add(struct machine *machine, struct pointers *pointers, pointer value) {
    if (pointers->count == pointers->capacity) {
        uint32_t capacity = pointers->capacity == 0 ? 64 : pointers->capacity * 2;
        if (capacity > PICKLE_VALUES_MAX)
            return fail(machine, "more than %d values at once", PICKLE_VALUES_MAX / 2);
        pointer *items = arena_take(machine->arena, capacity * sizeof *items);
        if (pointers->count > 0)
            memcpy(items, pointers->items, pointers->count * sizeof *items);
        pointers->items = items;
        pointers->capacity = capacity;
    }
    pointers->items[pointers->count++] = value;
    return true;
}

static bool push(struct machine *machine, pointer value) {
    return pointers_add(machine, &machine->stack, value);
}

static struct pickle_value *make(struct machine *machine, enum pickle_kind kind) {
    if (machine->made == PICKLE_VALUES_MAX) {
        set_fault(machine, "more than %d values", PICKLE_VALUES_MAX);
        return NULL;
    }
    machine->made++;
    struct pickle_value *value = arena_zero(machine->arena, 1, sizeof *value);
    value->kind = kind;
    return value;
}

static bool push_made(struct machine *machine, unsigned kind) {
    struct pickle_value *value = make(machine, kind);
    return value != NULL && push(machine, value);
}

static bool push_integer(struct machine *machine, int64_t integer) {
    struct pickle_value *value = make(machine, PICKLE_INTEGER);
    if (value == NULL)
        return false;
    value->integer = integer;
    return push(machine, value);
}

// The lowest place of the stack that may be taken: above the last mark.
static uint32_t floor_of(const struct machine *machine) {
    return machine->mark_count == 0 ? 0 : machine->marks[machine->mark_count - 1];
}

static bool needs(struct machine *machine, uint32_t count) {
    if (machine->stack.count - floor_of(machine) < count)
        return fail(machine, "fewer than %u values on the stack above the mark", count);
    return true;
}

// Takes away the last mark; `*from` is where what came after it begins.
static bool pop_mark(struct machine *machine, uint32_t *from) {
    if (machine->mark_count == 0)
        return fail(machine, "no MARK before it");
    *from = machine->marks[--machine->mark_count];
    return true;
}

static bool memo_put(struct machine *machine, uint64_t index) {
    if (!needs(machine, 1))
        return false;
    // Each slot was put by an op code of its own, so an honest index is below the record's size.
    if (index >= (uint64_t)(machine->end - machine->start))
        return fail(machine, "memo slot %llu of a pickle of %zu bytes", (unsigned long long)index,
                    (size_t)(machine->end - machine->start));
    while (machine->memo.count <= index)
        if (!pointers_add(machine, &machine->memo, NULL))
            return false;
    assert(machine->memo.items != NULL && machine->stack.items != NULL);
    machine->memo.items[index] = machine->stack.items[machine->stack.count - 1];
    return true;
}

static bool memo_get(struct machine *machine, uint64_t index) {
    if (index >= machine->memo.count || machine->memo.items[index] == NULL)
        return fail(machine, "memo slot %llu was never put", (unsigned long long)index);
    return push(machine, machine->memo.items[index]);
}

// -- containers ----------------------------------------------------------------------------------

// Moves what is on the stack from `from` on into the container; `each` values an item.
static bool fill(struct machine *machine, struct pickle_value *into, uint32_t from, uint32_t each) {
    uint32_t more = machine->stack.count - from;
    if (more % each != 0)
        return fail(machine, "a key without a value");
    uint32_t held = into->count * each;
    if (more > PICKLE_VALUES_MAX - machine->placed)
        return fail(machine, "more than %d items", PICKLE_VALUES_MAX);
    machine->placed += more;
    if (held + more > into->capacity) {
        uint32_t capacity = into->capacity * 2 > held + more ? into->capacity * 2 : held + more;
        pointer *items = arena_take(machine->arena, capacity * sizeof *items);
        if (held > 0)
            memcpy(items, into->items, held * sizeof *items);
        into->items = items;
        into->capacity = capacity;
    }
    if (more > 0)
        memcpy(into->items + held, machine->stack.items + from, more * sizeof(pointer));
    into->count += more / each;
    machine->stack.count = from;
    return true;
}

// The container below `from`, which must be of this kind.
static bool extend(struct machine *machine, uint32_t from, enum pickle_kind kind) {
    assert(from <= machine->stack.count);
    if (from == floor_of(machine))
        return fail(machine, "no container below its items");
    // Containers on the stack are those that `make` made: theirs is not const memory.
    struct pickle_value *into = (struct pickle_value *)(uintptr_t)machine->stack.items[from - 1];
    if (into->kind != kind)
        return fail(machine, "what is below its items is no %s",
                    kind == PICKLE_LIST ? "list" : "dict");
    return fill(machine, into, from, kind == PICKLE_DICT ? 2 : 1);
}

static bool extend_marked(struct machine *machine, unsigned kind) {
    uint32_t from;
    return pop_mark(machine, &from) && extend(machine, from, kind);
}

static bool extend_last(struct machine *machine, unsigned kind) {
    uint32_t count = kind == PICKLE_DICT ? 2 : 1;
    return needs(machine, count + 1) && extend(machine, machine->stack.count - count, kind);
}

static bool make_tuple(struct machine *machine, uint32_t from) {
    struct pickle_value *tuple = make(machine, PICKLE_TUPLE);
    return tuple != NULL && fill(machine, tuple, from, 1) && push(machine, tuple);
}

static bool make_tuple_of(struct machine *machine, unsigned count) {
    return needs(machine, count) && make_tuple(machine, machine->stack.count - count);
}

static bool make_tuple_marked(struct machine *machine, unsigned unused) {
    (void)unused;
    uint32_t from;
    return pop_mark(machine, &from) && make_tuple(machine, from);
}

// -- scalars -------------------------------------------------------------------------------------

static bool read_text(struct machine *machine, unsigned length_size) {
    uint64_t size;
    if (!read_unsigned(machine, length_size, &size))
        return false;
    if (!has(machine, size))
        return fail_cut(machine);
    struct slice text = {(const char *)machine->at, (size_t)size};
    if (!utf8_is_valid(text))
        return fail(machine, "a text that is not UTF-8");
    machine->at += size;
    struct pickle_value *value = make(machine, PICKLE_TEXT);
    if (value == NULL)
        return false;
    value->text = text;
    return push(machine, value);
}

// Two's complement, any number of bytes, least significant first.
static bool read_long(struct machine *machine, unsigned length_size) {
    uint64_t size;
    if (!read_unsigned(machine, length_size, &size))
        return false;
    if (length_size == 4 && size > INT32_MAX)
        return fail(machine, "a negative length");
    if (!has(machine, size))
        return fail_cut(machine);
    const unsigned char *bytes = machine->at;
    machine->at += size;
    unsigned char sign = size > 0 && bytes[size - 1] >= 0x80 ? 0xff : 0;
    uint64_t value = sign == 0 ? 0 : UINT64_MAX;
    bool fits = true;
    for (uint64_t i = 0; i < size && i < 8; i++)
        value = (value & ~(UINT64_C(0xff) << (8 * i))) | (uint64_t)bytes[i] << (8 * i);
    for (uint64_t i = 8; i < size && fits; i++)
        fits = bytes[i] == sign;
    if (size > 8 && (value >> 63 != 0) != (sign != 0))
        fits = false;
    return fits ? push_integer(machine, (int64_t)value) : push_made(machine, PICKLE_HUGE);
}

static bool read_decimal(struct machine *machine, unsigned size) {
    if (!has(machine, size))
        return fail_cut(machine);
    uint64_t bits = 0;
    for (unsigned i = 0; i < size; i++)
        bits = bits << 8 | machine->at[i];
    machine->at += size;
    struct pickle_value *value = make(machine, PICKLE_DECIMAL);
    if (value == NULL)
        return false;
    memcpy(&value->decimal, &bits, sizeof bits);
    return push(machine, value);
}

static bool read_small(struct machine *machine, unsigned size) {
    uint64_t value;
    if (!read_unsigned(machine, size, &value))
        return false;
    return push_integer(machine, size == 4 ? (int32_t)(uint32_t)value : (int64_t)value);
}

// -- op codes ------------------------------------------------------------------------------------

static bool set_mark(struct machine *machine, unsigned unused) {
    (void)unused;
    if (machine->mark_count == PICKLE_MARKS_MAX)
        return fail(machine, "more than %d containers open in one another", PICKLE_MARKS_MAX);
    machine->marks[machine->mark_count++] = machine->stack.count;
    return true;
}

static bool put(struct machine *machine, unsigned index_size) {
    uint64_t index;
    return read_unsigned(machine, index_size, &index) && memo_put(machine, index);
}

static bool get(struct machine *machine, unsigned index_size) {
    uint64_t index;
    return read_unsigned(machine, index_size, &index) && memo_get(machine, index);
}

static bool read_frame(struct machine *machine, unsigned length_size) {
    uint64_t size;
    if (!read_unsigned(machine, length_size, &size))
        return false;
    return has(machine, size) || fail_cut(machine);
}

static bool read_protocol(struct machine *machine, unsigned size) {
    uint64_t version;
    if (!read_unsigned(machine, size, &version))
        return false;
    if (version < 2 || version > 5)
        return fail(machine, "protocol %llu; 2 to 5 are read", (unsigned long long)version);
    return true;
}

static bool push_constant(struct machine *machine, unsigned kind) {
    static const struct pickle_value CONSTANTS[] = {
        {.kind = PICKLE_NONE}, {.kind = PICKLE_FALSE}, {.kind = PICKLE_TRUE}};
    assert(kind < sizeof CONSTANTS / sizeof *CONSTANTS);
    return push(machine, &CONSTANTS[kind]);
}

static bool memoize(struct machine *machine, unsigned unused) {
    (void)unused;
    return memo_put(machine, machine->memoized);
}

// What an op code does, and with which size, count or kind; those without are only named, since
// plain data does not need them.
static const struct op {
    const char *name;
    bool (*run)(struct machine *machine, unsigned argument);
    unsigned argument;
} OPS[256] = {
    [0x80] = {"PROTO", read_protocol, 1},
    [0x95] = {"FRAME", read_frame, 8},
    ['('] = {"MARK", set_mark, 0},
    ['}'] = {"EMPTY_DICT", push_made, PICKLE_DICT},
    [']'] = {"EMPTY_LIST", push_made, PICKLE_LIST},
    [')'] = {"EMPTY_TUPLE", push_made, PICKLE_TUPLE},
    ['t'] = {"TUPLE", make_tuple_marked, 0},
    [0x85] = {"TUPLE1", make_tuple_of, 1},
    [0x86] = {"TUPLE2", make_tuple_of, 2},
    [0x87] = {"TUPLE3", make_tuple_of, 3},
    ['a'] = {"APPEND", extend_last, PICKLE_LIST},
    ['s'] = {"SETITEM", extend_last, PICKLE_DICT},
    ['e'] = {"APPENDS", extend_marked, PICKLE_LIST},
    ['u'] = {"SETITEMS", extend_marked, PICKLE_DICT},
    ['q'] = {"BINPUT", put, 1},
    ['r'] = {"LONG_BINPUT", put, 4},
    [0x94] = {"MEMOIZE", memoize, 0},
    ['h'] = {"BINGET", get, 1},
    ['j'] = {"LONG_BINGET", get, 4},
    ['J'] = {"BININT", read_small, 4},
    ['K'] = {"BININT1", read_small, 1},
    ['M'] = {"BININT2", read_small, 2},
    [0x8a] = {"LONG1", read_long, 1},
    [0x8b] = {"LONG4", read_long, 4},
    ['G'] = {"BINFLOAT", read_decimal, 8},
    ['X'] = {"BINUNICODE", read_text, 4},
    [0x8c] = {"SHORT_BINUNICODE", read_text, 1},
    [0x8d] = {"BINUNICODE8", read_text, 8},
    ['N'] = {"NONE", push_constant, PICKLE_NONE},
    [0x88] = {"NEWTRUE", push_constant, PICKLE_TRUE},
    [0x89] = {"NEWFALSE", push_constant, PICKLE_FALSE},
    ['0'] = {.name = "POP"},
    ['1'] = {.name = "POP_MARK"},
    ['2'] = {.name = "DUP"},
    ['F'] = {.name = "FLOAT"},
    ['I'] = {.name = "INT"},
    ['L'] = {.name = "LONG"},
    ['P'] = {.name = "PERSID"},
    ['Q'] = {.name = "BINPERSID"},
    ['R'] = {.name = "REDUCE"},
    ['S'] = {.name = "STRING"},
    ['T'] = {.name = "BINSTRING"},
    ['U'] = {.name = "SHORT_BINSTRING"},
    ['V'] = {.name = "UNICODE"},
    ['B'] = {.name = "BINBYTES"},
    ['C'] = {.name = "SHORT_BINBYTES"},
    ['b'] = {.name = "BUILD"},
    ['c'] = {.name = "GLOBAL"},
    ['d'] = {.name = "DICT"},
    ['g'] = {.name = "GET"},
    ['i'] = {.name = "INST"},
    ['l'] = {.name = "LIST"},
    ['o'] = {.name = "OBJ"},
    ['p'] = {.name = "PUT"},
    [0x81] = {.name = "NEWOBJ"},
    [0x82] = {.name = "EXT1"},
    [0x83] = {.name = "EXT2"},
    [0x84] = {.name = "EXT4"},
    [0x8e] = {.name = "BINBYTES8"},
    [0x8f] = {.name = "EMPTY_SET"},
    [0x90] = {.name = "ADDITEMS"},
    [0x91] = {.name = "FROZENSET"},
    [0x92] = {.name = "NEWOBJ_EX"},
    [0x93] = {.name = "STACK_GLOBAL"},
    [0x96] = {.name = "BYTEARRAY8"},
    [0x97] = {.name = "NEXT_BUFFER"},
    [0x98] = {.name = "READONLY_BUFFER"},
};

static bool step(struct machine *machine, unsigned char code) {
    const struct op *op = &OPS[code];
    if (op->run != NULL)
        return op->run(machine, op->argument);
    if (op->name == NULL)
        return fail(machine, "the byte 0x%02x, which is no op code of plain data", code);
    return fail(machine, "op code %s, which plain data does not need", op->name);
}

static const struct pickle_value *finish(struct machine *machine) {
    if (machine->stack.count != 1 || machine->mark_count != 0) {
        set_fault(machine, "STOP with %u values on the stack; there must be one",
                  machine->stack.count);
        return NULL;
    }
    if (machine->at != machine->end) {
        machine->op_offset = (size_t)(machine->at - machine->start);
        set_fault(machine, "bytes after the end of the pickle");
        return NULL;
    }
    return machine->stack.items[0];
}

const struct pickle_value *pickle_read(struct slice bytes, struct arena *arena,
                                       struct pickle_fault *fault) {
    const unsigned char *start = (const unsigned char *)bytes.data;
    struct machine machine = {
        .start = start, .at = start, .end = start + bytes.size, .arena = arena, .fault = fault};
    *fault = (struct pickle_fault){0};
    while (machine.at < machine.end) {
        machine.op_offset = (size_t)(machine.at - start);
        unsigned char code = *machine.at++;
        if (machine.op_offset == 0 && code != 0x80) {
            set_fault(&machine, "it does not begin with a protocol of 2 or more");
            return NULL;
        }
        if (code == '.')
            return finish(&machine);
        if (!step(&machine, code))
            return NULL;
        machine.memoized += code == 'q' || code == 'r' || code == 0x94;
    }
    machine.op_offset = bytes.size;
    fault->cut = true;
    set_fault(&machine, "the pickle ends without STOP");
    return NULL;
}

const struct pickle_value *pickle_get(const struct pickle_value *dict, struct slice key) {
    assert(dict->kind == PICKLE_DICT);
    for (uint32_t i = dict->count; i > 0; i--) {
        const struct pickle_value *name = dict->items[2 * i - 2];
        if (name->kind == PICKLE_TEXT && slice_equal(name->text, key))
            return dict->items[2 * i - 1];
    }
    return NULL;
}
