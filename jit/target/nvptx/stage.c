/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.c: loads through shared memory. Where neighbouring threads store neighbouring elements, a
 * load whose neighbouring elements lie along another dimension would touch a line of memory for
 * each thread. Such loads are staged: the block takes a square tile of two dimensions, its threads
 * read the tile along the dimension that suits the load, and after a barrier each takes the element
 * of its own iteration from shared memory.
 *
 * Small elements that stand in aligned words of 4 bytes are read so.
 *
 * Rows of the tile in shared memory are padded by one 32-bit word, so that threads side by side use
 * different banks both ways. All threads reach every barrier: units are the same for the whole
 * block, and guards stand between barriers.
 */
#include "jit/target/nvptx/stage.h"

#include <string.h>

enum { SIDE = QN_STAGE_SIDE, ROWS = QN_STAGE_THREADS / SIDE, EACH = SIDE / ROWS };
/** Bodies above this size are emitted once, in a loop, not for each of a thread's iterations. */
enum { SMALL_BODY = 24 };

typedef struct tile {
    int x, y; /* dimensions: of neighbouring threads in the body, and in staged loads */
    LLVMValueRef low_x, low_y;  /* of the tile */
    LLVMValueRef across, along; /* of this thread: its number in the row, its first row */
    uint64_t by_element;        /* staged loads that are made one element at a time, as bits */
    void (*body)(lower *g, void *arg);
    void *arg;
} tile;

/** A row of this thread: number `constant`, or `index` if that is not known. Rows are ROWS apart.
 */
typedef struct row {
    LLVMValueRef index;
    int64_t constant;
} row;

/** Where an iteration stands in the tile: (x, y) + (ahead_x, ahead_y). */
typedef struct stage_place {
    LLVMValueRef x, y;
    int64_t ahead_x, ahead_y;
} stage_place;

bool qn__is_shared(const lower *g, uint32_t i)
{
    return g->stage_at && g->site[i] < 64 && (g->grid->staged >> g->site[i] & 1);
}

/** Elements from row to row of a tile. */
static int64_t row_elements(int64_t bytes)
{
    return SIDE + (bytes < 4 ? 4 / bytes : 1);
}

int32_t qn__stage_bytes(const qn_kernel *k, const qn_grid *p)
{
    int64_t sum = 0;
    for (uint32_t n = 0; n < k->n_accesses && n < 64; n++) {
        int64_t bytes = qn__access_bytes(k, k->access[n].inst);
        if (p->staged >> n & 1)
            sum += (SIDE * row_elements(bytes) * bytes + 15) / 16 * 16;
    }
    return (int32_t)sum;
}

/** Where the element of a staged load stands in shared memory. */
static LLVMValueRef address_of(lower *g, uint32_t i, const stage_place *p)
{
    int64_t first = 0, bytes = qn__access_bytes(g->k, i), row_bytes = row_elements(bytes) * bytes;
    for (uint32_t n = 0; n < g->site[i]; n++)
        if (g->grid->staged >> n & 1) {
            int64_t b = qn__access_bytes(g->k, g->k->access[n].inst);
            first += (SIDE * row_elements(b) * b + 15) / 16 * 16;
        }
    LLVMValueRef at = LLVMBuildMul(g->b, p->x, qn__const_i64(g, row_bytes), "");
    at = LLVMBuildAdd(g->b, at, LLVMBuildMul(g->b, p->y, qn__const_i64(g, bytes), ""), "");
    at = LLVMBuildGEP2(g->b, g->i8, qn__nvptx_shared(g), &at, 1, "");
    return qn__ahead(g, at, first + p->ahead_x * row_bytes + p->ahead_y * bytes);
}

LLVMValueRef qn__staged_value(lower *g, uint32_t i)
{
    int dtype = g->k->inst[i].type;
    LLVMValueRef v =
        LLVMBuildLoad2(g->b, qn__memory_type(g, dtype), address_of(g, i, g->stage_at), "");
    LLVMSetAlignment(v, (unsigned)qn__access_bytes(g->k, i));
    return qn__to_register(g, dtype, v);
}

/** Sets the index of a dimension to low + first, a row's with its number. */
static void set_index(lower *g, int d, LLVMValueRef low, LLVMValueRef first, const row *r)
{
    qn__set_index(g, d, LLVMBuildAdd(g->b, low, first, ""));
    if (r && r->index)
        g->iv[d] = LLVMBuildAdd(g->b, g->iv[d],
                                LLVMBuildMul(g->b, r->index, qn__const_i64(g, ROWS), ""), "");
}

/** Sets both indices for the threads of this block: for rows with known numbers only `ahead`
 * differs then. */
static void set_indices(lower *g, const tile *t, bool is_staging, const row *r)
{
    int across = is_staging ? t->y : t->x, along = is_staging ? t->x : t->y;
    set_index(g, across, is_staging ? t->low_y : t->low_x, t->across, NULL);
    set_index(g, along, is_staging ? t->low_x : t->low_y, t->along, r);
}

static LLVMValueRef first_of(lower *g, const tile *t, const row *r)
{
    return r->index ? LLVMBuildAdd(g->b, t->along,
                                   LLVMBuildMul(g->b, r->index, qn__const_i64(g, ROWS), ""), "")
                    : t->along;
}

/* ---------------------------------------------------------------- one row of a tile */

/** Reads a row of the staged loads: along y. The values are kept for write_row. */
static void read_row(lower *g, const tile *t, const row *r, LLVMValueRef *value)
{
    qn__set_ahead(g, t->x, ROWS * r->constant, g->depth);
    for (uint32_t s = 0; s < g->k->n_accesses && s < 64; s++) {
        uint32_t i = g->k->access[s].inst;
        if (!(t->by_element >> s & 1))
            continue;
        qn__lower_load(g, i);
        *value++ = qn__scalar(g, i, 0);
    }
    qn__set_ahead(g, t->x, 0, 0);
}

static void write_row(lower *g, const tile *t, const row *r, const LLVMValueRef *value)
{
    stage_place at = {first_of(g, t, r), t->across, ROWS * r->constant, 0};
    for (uint32_t s = 0; s < g->k->n_accesses && s < 64; s++) {
        uint32_t i = g->k->access[s].inst;
        if (!(t->by_element >> s & 1))
            continue;
        LLVMValueRef v = qn__to_memory(g, g->k->inst[i].type, *value++);
        LLVMSetAlignment(LLVMBuildStore(g->b, v, address_of(g, i, &at)),
                         (unsigned)qn__access_bytes(g->k, i));
    }
}

/* ---------------------------------------------------------------- words of a tile */

/** This thread's place among the words of a tile, and rows from one of its words to the next. */
static stage_place word_place(lower *g, uint32_t i, int64_t *rows)
{
    int64_t each = 4 / qn__access_bytes(g->k, i), words = SIDE / each;
    LLVMValueRef thread = qn__nvptx_register(g, "tid.x", g->i64), n = qn__const_i64(g, words);
    LLVMValueRef y =
        LLVMBuildMul(g->b, LLVMBuildURem(g->b, thread, n, ""), qn__const_i64(g, each), "");
    *rows = QN_STAGE_THREADS / words;
    return (stage_place){LLVMBuildUDiv(g->b, thread, n, ""), y, 0, 0};
}

/** Loads what one access needs of a whole tile in words of 4 bytes; `value` receives this thread's.
 */
static void read_words(lower *g, const tile *t, uint32_t i, LLVMValueRef *value)
{
    int64_t rows;
    stage_place at = word_place(g, i, &rows);
    loop once;
    set_index(g, t->y, t->low_y, at.y, NULL);
    set_index(g, t->x, t->low_x, at.x, NULL);
    for (int64_t m = 0; m < SIDE; m += rows) {
        qn__once_open(g, &once, NULL);
        qn__set_ahead(g, t->x, m, g->depth);
        *value++ = qn__load_word(g, i);
        qn__set_ahead(g, t->x, 0, 0);
        qn__loop_close(g, &once);
    }
}

static void write_words(lower *g, uint32_t i, const LLVMValueRef *value)
{
    int64_t rows;
    stage_place at = word_place(g, i, &rows);
    for (; at.ahead_x < SIDE; at.ahead_x += rows)
        LLVMSetAlignment(LLVMBuildStore(g->b, *value++, address_of(g, i, &at)), 4);
}

/** The accesses in words of a whole tile: reads all, or writes all. */
static void for_words(lower *g, const tile *t, bool reads, LLVMValueRef *value)
{
    for (uint32_t s = 0; s < g->k->n_accesses && s < 64; s++) {
        uint32_t i = g->k->access[s].inst;
        if (!(g->grid->words >> s & 1))
            continue;
        if (reads)
            read_words(g, t, i, value);
        else
            write_words(g, i, value);
        value += EACH;
    }
}

static void stage_row(lower *g, const tile *t, const row *r)
{
    LLVMValueRef value[64];
    read_row(g, t, r, value);
    write_row(g, t, r, value);
}

/** The body for a row: along x. */
static void run_row(lower *g, const tile *t, const row *r)
{
    const stage_place at = {t->across, first_of(g, t, r), 0, ROWS * r->constant};
    qn__set_ahead(g, t->y, ROWS * r->constant, g->depth);
    g->stage_at = &at;
    t->body(g, t->arg);
    g->stage_at = NULL;
    qn__set_ahead(g, t->y, 0, 0);
}

/* ---------------------------------------------------------------- tiles */

/** Rows in a loop; with guards where the tile may reach beyond the domain. */
static void for_rows(lower *g, const tile *t, bool is_staging, bool is_guarded)
{
    int across = is_staging ? t->y : t->x, along = is_staging ? t->x : t->y;
    loop l;
    qn__loop_times(g, &l, EACH);
    branch then = {0};
    row r = {.index = l.index};
    set_indices(g, t, is_staging, &r);
    if (is_guarded) {
        LLVMValueRef a = LLVMBuildICmp(g->b, LLVMIntSLT, g->iv[across], g->end[across], "");
        LLVMValueRef b = LLVMBuildICmp(g->b, LLVMIntSLT, g->iv[along], g->end[along], "");
        then = qn__begin_branch(g, LLVMBuildAnd(g->b, a, b, ""));
    }
    if (is_staging)
        stage_row(g, t, &r);
    else
        run_row(g, t, &r);
    if (is_guarded)
        qn__end_branch(g, &then, NULL);
    qn__loop_close(g, &l);
}

/** A whole tile of a small body: all loads of a thread are under way before the first is stored. */
static void run_unrolled(lower *g, tile *t)
{
    LLVMValueRef value[EACH][64], words[64 * EACH];
    loop outer, inner;
    t->by_element = g->grid->staged & ~g->grid->words;
    qn__once_open(g, &outer, NULL);
    for_words(g, t, true, words);
    set_indices(g, t, true, NULL);
    for (int n = 0; n < EACH; n++) {
        qn__once_open(g, &inner, NULL);
        read_row(g, t, &(row){NULL, n}, value[n]);
        qn__loop_close(g, &inner);
    }
    for (int n = 0; n < EACH; n++)
        write_row(g, t, &(row){NULL, n}, value[n]);
    for_words(g, t, false, words);
    qn__loop_close(g, &outer);
    qn__nvptx_barrier(g);
    qn__once_open(g, &outer, NULL);
    set_indices(g, t, false, NULL);
    for (int n = 0; n < EACH; n++) {
        qn__once_open(g, &inner, NULL);
        run_row(g, t, &(row){NULL, n});
        qn__loop_close(g, &inner);
    }
    qn__loop_close(g, &outer);
}

static void run_rolled(lower *g, tile *t, bool is_guarded)
{
    t->by_element = g->grid->staged;
    for_rows(g, t, true, is_guarded);
    qn__nvptx_barrier(g);
    for_rows(g, t, false, is_guarded);
}

static bool is_divided(const lower *g, int d)
{
    int64_t low, high;
    return qn__is_const(g->begin[d], &low) && qn__is_const(g->end[d], &high) &&
           (high - low) % SIDE == 0;
}

static LLVMValueRef is_whole(lower *g, LLVMValueRef low, int d)
{
    LLVMValueRef high = LLVMBuildAdd(g->b, low, qn__const_i64(g, SIDE), "");
    return LLVMBuildICmp(g->b, LLVMIntSLE, high, g->end[d], "");
}

void qn__stage_tile(lower *g, LLVMValueRef low_x, LLVMValueRef low_y,
                    void (*body)(lower *g, void *arg), void *arg)
{
    LLVMValueRef thread = qn__nvptx_register(g, "tid.x", g->i64);
    tile t = {.x = g->grid->axis[0],
              .y = g->grid->stage_dim,
              .low_x = low_x,
              .low_y = low_y,
              .body = body,
              .arg = arg};
    t.across = LLVMBuildAnd(g->b, thread, qn__const_i64(g, SIDE - 1), "");
    t.along = LLVMBuildUDiv(g->b, thread, qn__const_i64(g, SIDE), "");
    bool is_small = g->k->n_insts - g->k->body <= SMALL_BODY;
    qn__nvptx_barrier(g); /* the tile before has been read */
    if (is_divided(g, t.x) && is_divided(g, t.y)) {
        if (is_small)
            run_unrolled(g, &t);
        else
            run_rolled(g, &t, false);
        return;
    }
    if (!is_small) {
        run_rolled(g, &t, true);
        return;
    }
    LLVMValueRef condition =
        LLVMBuildAnd(g->b, is_whole(g, low_x, t.x), is_whole(g, low_y, t.y), "");
    branch x = qn__begin_choice(g, condition, "whole", "part");
    run_unrolled(g, &t);
    qn__begin_other(g, &x);
    run_rolled(g, &t, true);
    qn__end_branch(g, &x, NULL);
}
