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
#include "jit/target/nvptx/nvptx.h"

enum {
    SIDE = QN_STAGE_SIDE,
    ROWS = QN_BLOCK_THREADS / SIDE,
    EACH = SIDE / ROWS,
    MOST_STAGED = QN_MOST_HELD
};
/** Bodies above this size are emitted once, in a loop, not for each of a thread's iterations. */
enum { SMALL_BODY = 24 };

typedef struct tile {
    int x, y; /* dimensions: of neighbouring threads in the body, and in staged loads */
    LLVMValueRef low_x, low_y; /* of the tile */
    LLVMValueRef thread;
} tile;

/** Where an iteration stands in the tile: (x, y) + (ahead_x, ahead_y). */
typedef struct stage_place {
    LLVMValueRef x, y;
    int64_t ahead_x, ahead_y;
} stage_place;

/** Elements from row to row of a tile. */
static int64_t row_elements(int64_t bytes)
{
    return SIDE + (bytes < 4 ? 4 / bytes : 1);
}

/** Bytes of the tiles of staged loads before a site. */
static int64_t bytes_before(const qn_kernel *k, const qn_grid *p, uint32_t site)
{
    int64_t sum = 0;
    for (uint32_t n = 0; n < site && n < MOST_STAGED; n++) {
        int64_t bytes = qn__access_bytes(k, k->access[n].inst);
        if (p->staged >> n & 1)
            sum += (SIDE * row_elements(bytes) * bytes + 15) / 16 * 16;
    }
    return sum;
}

int32_t qn__stage_bytes(const qn_kernel *k, const qn_grid *p)
{
    return (int32_t)bytes_before(k, p, k->n_accesses);
}

/** Where the element of a staged load stands in shared memory. */
static LLVMValueRef address_of(lower *g, uint32_t i, const stage_place *p)
{
    const int64_t first = bytes_before(g->k, g->grid, g->site[i]),
                  bytes = qn__access_bytes(g->k, i), row_bytes = row_elements(bytes) * bytes;
    LLVMValueRef at = LLVMBuildMul(g->b, p->x, qn__const_i64(g, row_bytes), "");
    at = LLVMBuildAdd(g->b, at, LLVMBuildMul(g->b, p->y, qn__const_i64(g, bytes), ""), "");
    at = qn__gep(g, g->i8, qn__nvptx_shared(g), at);
    return qn__ahead(g, at, first + p->ahead_x * row_bytes + p->ahead_y * bytes);
}

/* ---------------------------------------------------------------- into shared memory */

/** The elements of a staged load that a thread moves at once. */
static int64_t elements_at_once(const lower *g, uint32_t i)
{
    return g->grid->words >> g->site[i] & 1 ? 4 / qn__access_bytes(g->k, i) : 1;
}

/** This thread's first place in the tile of a staged load, and rows from one place to the next. */
static stage_place first_place(lower *g, const tile *t, uint32_t i, int64_t *rows)
{
    const int64_t each = elements_at_once(g, i), across = SIDE / each;
    LLVMValueRef n = qn__const_i64(g, across), y = LLVMBuildURem(g->b, t->thread, n, "");
    *rows = QN_BLOCK_THREADS / across;
    return (stage_place){LLVMBuildUDiv(g->b, t->thread, n, ""),
                         LLVMBuildMul(g->b, y, qn__const_i64(g, each), ""), 0, 0};
}

/** Loads what this thread moves of a tile, along y: `value` receives it. Beyond the end of a
 * dimension the last element is loaded again. Returns the end of the values. */
static LLVMValueRef *load_tile(lower *g, const tile *t, uint32_t i, LLVMValueRef *value)
{
    const int64_t each = elements_at_once(g, i);
    int64_t rows;
    loop once;
    const stage_place at = first_place(g, t, i, &rows);
    LLVMValueRef x = LLVMBuildAdd(g->b, t->low_x, at.x, ""),
                 y = LLVMBuildAdd(g->b, t->low_y, at.y, ""),
                 last_x = qn__last_unless(g, t->x, SIDE, 1),
                 last_y = qn__last_unless(g, t->y, SIDE, each);
    for (int64_t m = 0; m < SIDE; m += rows) {
        qn__once_open(g, &once, NULL);
        qn__set_clamped(g, t->x, x, m, last_x);
        qn__set_clamped(g, t->y, y, 0, last_y);
        if (each > 1) {
            *value++ = qn__load_word(g, i);
        } else {
            qn__lower_load(g, i, 0);
            *value++ = qn__to_memory(g, g->k->inst[i].type, qn__scalar(g, i, 0));
        }
        qn__set_ahead(g, t->x, 0, 0);
        qn__loop_close(g, &once);
    }
    return value;
}

static LLVMValueRef *store_tile(lower *g, const tile *t, uint32_t i, LLVMValueRef *value)
{
    int64_t rows;
    stage_place at = first_place(g, t, i, &rows);
    const int64_t bytes = elements_at_once(g, i) * qn__access_bytes(g->k, i);
    for (; at.ahead_x < SIDE; at.ahead_x += rows)
        qn__store_at(g, *value++, address_of(g, i, &at), (unsigned)bytes);
    return value;
}

/** All staged loads of a thread are under way before the first is stored. */
static void stage_all(lower *g, const tile *t)
{
    LLVMValueRef value[MOST_STAGED * EACH], *end = value;
    for (int is_store = 0; is_store < 2; is_store++, end = value)
        for (uint32_t s = 0; s < g->k->n_accesses && s < MOST_STAGED; s++) {
            const uint32_t i = g->k->access[s].inst;
            if (g->grid->staged >> s & 1)
                end = is_store ? store_tile(g, t, i, end) : load_tile(g, t, i, end);
        }
}

/* ---------------------------------------------------------------- the body */

/** Takes what an iteration loads from the tiles. */
static void take_all(lower *g, const stage_place *at, LLVMValueRef *held)
{
    for (uint32_t s = 0; s < g->k->n_accesses && s < MOST_STAGED; s++) {
        const uint32_t i = g->k->access[s].inst;
        if (g->grid->staged >> s & 1)
            held[s] = qn__load_as(g, g->k->inst[i].type, address_of(g, i, at),
                                  qn__access_bytes(g->k, i));
    }
}

/** The rows of a thread, along x: one behind the other, or in a loop. */
static void run_rows(lower *g, const tile *t, const span *spans)
{
    const bool is_small = g->k->n_insts - g->k->body <= SMALL_BODY;
    LLVMValueRef side = qn__const_i64(g, SIDE), rows = qn__const_i64(g, ROWS),
                 across = LLVMBuildURem(g->b, t->thread, side, ""),
                 along = LLVMBuildUDiv(g->b, t->thread, side, "");
    LLVMValueRef held[QN_MOST_HELD] = {NULL};
    loop all, once;
    qn__loop_times(g, &all, is_small ? 1 : EACH);
    if (!is_small)
        along = LLVMBuildAdd(g->b, along, LLVMBuildMul(g->b, all.index, rows, ""), "");
    qn__set_index(g, t->x, LLVMBuildAdd(g->b, t->low_x, across, ""));
    qn__set_index(g, t->y, LLVMBuildAdd(g->b, t->low_y, along, ""));
    for (int n = 0; n < (is_small ? EACH : 1); n++) {
        const stage_place at = {across, along, 0, ROWS * n};
        qn__set_ahead(g, t->y, ROWS * n, g->depth);
        qn__once_open(g, &once,
                      qn__mask_and(g, qn__is_inside(g, t->x, SIDE), qn__is_inside(g, t->y, SIDE)));
        qn__set_ahead(g, t->y, ROWS * n, g->depth);
        take_all(g, &at, held);
        g->held = held;
        qn__thread_body(g, spans);
        g->held = NULL;
        qn__set_ahead(g, t->y, 0, 0);
        qn__loop_close(g, &once);
    }
    qn__loop_close(g, &all);
}

void qn__stage_tile(lower *g, LLVMValueRef low_x, LLVMValueRef low_y, const span *spans)
{
    const tile t = {.x = g->grid->axis[0],
                    .y = g->grid->tile_dim,
                    .low_x = low_x,
                    .low_y = low_y,
                    .thread = qn__nvptx_register(g, "tid.x", g->i64)};
    qn__nvptx_barrier(g); /* the tile before has been read */
    stage_all(g, &t);
    qn__nvptx_barrier(g);
    run_rows(g, &t, spans);
}
