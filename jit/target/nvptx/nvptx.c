/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvptx.c: what lowering to PTX does differently: the kernel's one parameter, the walk of a block's
 * threads over units of work, and the fault record that many threads share. The body is the same
 * scalar code as on x86.
 *
 * A unit of work is a tile of the parallel dimensions (plan->tile). Blocks take units blockIdx.x,
 * blockIdx.x + gridDim.x, ...; the threads of a block take the iterations of its unit (plan->axis).
 */
#include "jit/target/nvptx/block.h"
#include "jit/target/nvptx/private.h"
#include "jit/target/nvptx/rest.h"
#include "jit/target/nvptx/stage.h"
#include "jit/target/nvptx/team.h"
#include "jit/target/target.h"
#include "jit/lower/nest.h"
#include "jit/lower/wide.h"

#include <llvm-c/Target.h>
#include <stdio.h>
#include <string.h>

enum { GLOBAL_MEMORY = 1, SHARED_MEMORY = 3, CONSTANT_MEMORY = 4, KERNEL_CALL = 71 };
/** Bytes of parameters that every GPU and PTX version takes. */
enum { MOST_PARAMETER_BYTES = 4096 };

/* ---------------------------------------------------------------- the entry */

static LLVMValueRef word(lower *g, LLVMValueRef words, int n, LLVMTypeRef t)
{
    LLVMValueRef at = qn__const_i64(g, n);
    LLVMValueRef v = LLVMBuildLoad2(g->b, t, LLVMBuildGEP2(g->b, g->i64, words, &at, 1, ""), "");
    LLVMSetAlignment(v, 8);
    return v;
}

/** Whether the body is straight code and branches of a thread that loads little: more registers
 * than its values need would only let fewer threads have loads under way. */
static bool is_light(const qn_kernel *k, const qn_plan *p)
{
    enum { FEW_REGISTERS = 16 }; /* of all that a thread loads: half of those that it then has */
    int64_t registers = 0;
    if (p->team != QN_TEAM_THREAD || p->staged || p->jam > 1)
        return false;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        if (x->op == QN_I_FOR || x->op == QN_I_WHILE || x->op == QN_I_REDUCE ||
            x->op == QN_I_ATOMIC)
            return false;
        if (x->op == QN_I_LOAD)
            registers += (qn_dtype_bytes(x->type) + 3) / 4 * p->width;
    }
    return registers <= FEW_REGISTERS;
}

/** Blocks that a multiprocessor should have room for. Those of threads that load little are as many
 * as it holds; what needs more registers than these leave, 32 where it holds 2048 threads, is
 * assembled again with another limit (runtime/cuda/module.c). Without a limit, loads of many rows
 * of a reduce would take all registers, and too few threads would have loads under way. The driver
 * assembles PTX as relocatable code, which takes registers without regard to the number of threads:
 * exp of f32, four at once, 44 instead of 31. */
static int blocks_wanted(const lower *g, const int32_t *threads)
{
    enum { BLOCKS_OF_ROWS = 4, FEW_BYTES = 64 }; /* of the accumulators of a thread */
    const int at_once = g->p->jam * g->p->width;
    if (g->p->is_product)
        return qn__product_blocks(g->k, g->p);
    if (is_light(g->k, g->p)) {
        int blocks = g->f->machine.threads / (threads[0] * threads[1] * threads[2]);
        return blocks < g->f->machine.blocks ? blocks : g->f->machine.blocks;
    }
    for (uint32_t i = g->k->body; i < g->k->n_insts && at_once > 1; i++)
        if (g->k->inst[i].op == QN_I_REDUCE) {
            const int64_t bytes = at_once * qn_dtype_bytes(g->k->inst[i].type);
            return BLOCKS_OF_ROWS - (bytes > FEW_BYTES) - (bytes >= 2 * FEW_BYTES);
        }
    return 1;
}

/** Fixes the number of threads of a block: !nvvm.annotations = {function, "reqntidx", x, ...}; and
 * how many blocks a multiprocessor must have registers for. */
static void annotate(lower *g, const int32_t *threads)
{
    static const char *const name[4] = {"reqntidx", "reqntidy", "reqntidz", "minctasm"};
    int value[4] = {threads[0], threads[1], threads[2], blocks_wanted(g, threads)};
    LLVMMetadataRef m[9] = {LLVMValueAsMetadata(g->function)};
    for (int a = 0; a < 4; a++) {
        m[1 + 2 * a] = LLVMMDStringInContext2(g->context, name[a], strlen(name[a]));
        m[2 + 2 * a] =
            LLVMValueAsMetadata(LLVMConstInt(g->i32, (unsigned long long)value[a], false));
    }
    LLVMMetadataRef node = LLVMMDNodeInContext2(g->context, m, value[3] > 1 ? 9 : 7);
    LLVMAddNamedMetadataOperand(g->module, "nvvm.annotations",
                                LLVMMetadataAsValue(g->context, node));
}

static void block_of(const qn_plan *p, int step, int32_t *threads)
{
    for (int a = 0; a < 3; a++)
        threads[a] = p->axis[a] >= 0 ? p->threads[p->axis[a]] : 1;
    if (p->team == QN_TEAM_WARP || p->team == QN_TEAM_GRID)
        threads[0] = WARP_LANES;
    if (p->is_split && step)
        threads[0] = p->tile[p->axis[0]] > WARP_LANES ? (int32_t)p->tile[p->axis[0]] : WARP_LANES;
    if (p->team == QN_TEAM_GRID)
        threads[1] = step ? SECOND_WARPS : FIRST_WARPS;
}

static void open_kernel(lower *g, const char *symbol)
{
    int n_words = g->f->n_slots + 2 * qn__n_sequential(g->k) + 2;
    bool in_memory = n_words * 8 > MOST_PARAMETER_BYTES;
    LLVMTypeRef block = LLVMArrayType2(g->i64, (uint64_t)n_words);
    LLVMTypeRef param = LLVMPointerTypeInContext(g->context, in_memory ? GLOBAL_MEMORY : 0);
    g->function = LLVMAddFunction(
        g->module, symbol, LLVMFunctionType(LLVMVoidTypeInContext(g->context), &param, 1, false));
    LLVMSetFunctionCallConv(g->function, KERNEL_CALL);
    g->slots = LLVMGetParam(g->function, 0);
    if (!in_memory) {
        unsigned by_value = LLVMGetEnumAttributeKindForName("byval", 5),
                 align = LLVMGetEnumAttributeKindForName("align", 5);
        LLVMAddAttributeAtIndex(g->function, 1,
                                LLVMCreateTypeAttribute(g->context, by_value, block));
        LLVMAddAttributeAtIndex(g->function, 1, LLVMCreateEnumAttribute(g->context, align, 8));
    }
    int32_t threads[3];
    block_of(g->p, g->step, threads);
    annotate(g, threads);
    LLVMPositionBuilderAtEnd(g->b, qn__new_block(g, "entry"));
    g->range = g->slots;
    g->first_range = g->f->n_slots - 2; /* the sequential dimensions come right after the slots */
    g->fault = word(g, g->slots, n_words - 2, g->ptr);
    if (g->p->team == QN_TEAM_WARP || g->p->team == QN_TEAM_GRID)
        g->lane = qn__nvptx_register(g, "tid.x", g->i64);
}

LLVMValueRef qn__nvptx_scratch(lower *g)
{
    return word(g, g->slots, g->f->n_slots + 2 * qn__n_sequential(g->k) + 1, g->ptr);
}

/** Units of work if the domain is exact and not empty, else 0. Merged dimensions are one here. */
static int64_t known_units(const qn_facts *f, const qn_plan *p)
{
    int64_t n = 1;
    for (int at = 0; at < p->n_loops; at++) {
        int d = p->order[at];
        int64_t tile = p->tile[d], extent = qn__trips(f, d) + qn__plan_reach(p, d);
        if (tile == 0)
            continue;
        if (!qn__is_exact(f, d))
            return 0;
        if (__builtin_mul_overflow(n, extent / tile + (extent % tile != 0), &n))
            return 0;
    }
    return n;
}

/** Whether each unit has a block of its own, so that blocks need no loop over units. */
static bool has_block_for_each(const qn_kernel *k, const qn_facts *f, const qn_plan *p)
{
    int64_t units = is_light(k, p) && !p->is_split ? known_units(f, p) : 0;
    return units > 0 && units <= INT32_MAX;
}

/** Two steps: tiles and blocks of points, tiles. */
static void split_info(const qn_kernel *k, const qn_plan *p, qn_gpu_info *info)
{
    int64_t tile = p->tile[p->axis[0]];
    info->n_steps = 2;
    info->step[1] = info->step[0];
    info->step[1].shared_bytes = 0;
    block_of(p, 1, info->step[1].threads);
    info->step[0].units = 0;
    info->step[0].points = BLOCK;
    info->scratch_per_unit = qn__n_top_reduces(k) * tile * (int64_t)sizeof(int64_t);
}

static void describe(const qn_kernel *k, const qn_facts *f, const qn_plan *p, int32_t block_bytes,
                     qn_blob_info *out)
{
    qn_gpu_info *info = &out->gpu;
    memset(info, 0, sizeof *info);
    info->n_steps = 1;
    info->n_words = f->n_slots + 2 * qn__n_sequential(k) + 2;
    info->words_in_memory = info->n_words * 8 > MOST_PARAMETER_BYTES;
    if (p->team == QN_TEAM_GRID) {
        qn__team_info(k, info);
        return;
    }
    block_of(p, 0, info->step[0].threads);
    info->step[0].units = known_units(f, p);
    info->step[0].most_blocks = p->most_blocks;
    info->step[0].has_block_for_each = has_block_for_each(k, f, p);
    info->step[0].shared_bytes = p->is_product              ? qn__product_bytes(k, p)
                                 : p->team == QN_TEAM_BLOCK ? block_bytes
                                 : p->n_kept                ? qn__kept_bytes(p)
                                 : p->privatized            ? qn__private_all(k, f, p)
                                                            : qn__stage_bytes(k, p);
    for (int n = 0; n < p->n_loops; n++)
        info->step[0].tile[p->order[n]] = p->tile[p->order[n]];
    if (p->is_split)
        split_info(k, p, info);
}

LLVMValueRef qn__nvptx_shared(lower *g)
{
    static const char name[] = "qn_shared";
    LLVMValueRef found = LLVMGetNamedGlobal(g->module, name);
    if (found)
        return found;
    found = LLVMAddGlobalInAddressSpace(g->module, LLVMArrayType2(g->i8, 0), name, SHARED_MEMORY);
    LLVMSetAlignment(found, 16);
    return found;
}

LLVMValueRef qn__nvptx_thread(lower *g)
{
    static const char *const names[3] = {"tid.x", "tid.y", "tid.z"};
    LLVMValueRef thread = qn__const_i64(g, 0);
    int64_t below = 1;
    for (int a = 0; a < 3 && g->p->axis[a] >= 0; a++) {
        LLVMValueRef here = qn__nvptx_register(g, names[a], g->i64);
        here = LLVMBuildMul(g->b, here, qn__const_i64(g, below), "");
        thread = LLVMBuildAdd(g->b, thread, here, "");
        below *= g->p->threads[g->p->axis[a]];
    }
    return thread;
}

int64_t qn__nvptx_threads(const qn_plan *p)
{
    int64_t n = 1;
    for (int a = 0; a < 3; a++)
        n *= p->axis[a] >= 0 ? p->threads[p->axis[a]] : 1;
    return n;
}

void qn__nvptx_barrier(lower *g)
{
    qn__call(g, "llvm.nvvm.barrier0", NULL, 0, NULL, 0);
}

/* ---------------------------------------------------------------- units of work */

LLVMValueRef qn__nvptx_register(lower *g, const char *name, LLVMTypeRef t)
{
    char intrinsic[48];
    snprintf(intrinsic, sizeof intrinsic, "llvm.nvvm.read.ptx.sreg.%s", name);
    LLVMValueRef v = qn__call(g, intrinsic, NULL, 0, NULL, 0);
    return t == g->i32 ? v : LLVMBuildZExt(g->b, v, t, "");
}

/** The walk over one function's units. Tiles are counted in `type`. */
typedef struct walk {
    int n, dim[QN_MAX_RANK]; /* tiled dimensions, outermost first */
    LLVMValueRef low[QN_MAX_RANK], high[QN_MAX_RANK], tiles[QN_MAX_RANK];
    LLVMValueRef units, unit; /* tiles */
    LLVMValueRef apart;       /* blocks of points of each, in the first of two steps; else NULL */
    LLVMTypeRef type;
    thread_place place;
} walk;

static LLVMValueRef constant(LLVMTypeRef t, int64_t n)
{
    return LLVMConstInt(t, (unsigned long long)n, true);
}

/** ceil(extent / tile), i64 */
static LLVMValueRef tiles_of(lower *g, const walk *w, int n)
{
    int64_t tile = g->p->tile[w->dim[n]], low, high;
    if (qn__is_const(w->low[n], &low) && qn__is_const(w->high[n], &high)) {
        high += qn__plan_reach(g->p, w->dim[n]);
        return qn__const_i64(g, (high - low) / tile + ((high - low) % tile != 0));
    }
    LLVMValueRef extent = LLVMBuildSub(g->b, w->high[n], w->low[n], "");
    if (tile == 1)
        return extent;
    extent = LLVMBuildAdd(g->b, extent, qn__const_i64(g, tile - 1), "");
    return LLVMBuildUDiv(g->b, extent, qn__const_i64(g, tile), "");
}

/** Blocks of 4096 points of the reduces. */
static int64_t blocks_apart(const lower *g)
{
    return (qn__describe_reduction(g, qn__next_reduce(g->k, g->k->body)).points + BLOCK - 1) /
           BLOCK;
}

/** Counts tiles and units; in 32 bits where their number is known to fit. */
static void count_units(lower *g, walk *w)
{
    int64_t apart = g->p->is_split && g->step == 0 ? blocks_apart(g) : 1, known = apart, n;
    w->units = qn__const_i64(g, 1);
    for (int i = 0; i < w->n; i++) {
        w->tiles[i] = tiles_of(g, w, i);
        if (!qn__is_const(w->tiles[i], &n) || known > INT32_MAX / (n > 0 ? n : 1))
            known = INT64_MAX;
        else
            known *= n;
        w->units = LLVMBuildMul(g->b, w->units, w->tiles[i], "");
    }
    w->type = known > INT32_MAX ? g->i64 : g->i32;
    w->apart = g->p->is_split && g->step == 0 ? constant(w->type, apart) : NULL;
    if (known > INT32_MAX)
        return; /* in 32 bits a step of gridDim.x < 2^31 beyond the last unit does not wrap either
                 */
    w->units = constant(g->i32, known / apart);
    for (int i = 0; i < w->n; i++)
        w->tiles[i] = LLVMBuildTrunc(g->b, w->tiles[i], g->i32, "");
}

/** The type of what is counted along dimension number n: i32 where all of it fits, tiles that reach
 * beyond the end too. */
static LLVMTypeRef counter_type(const lower *g, const walk *w, int n)
{
    int64_t low, high, last, tile = g->p->tile[w->dim[n]];
    bool fits = w->type == g->i32 && qn__is_const(w->low[n], &low) &&
                qn__is_const(w->high[n], &high) && low > INT32_MIN / 2 &&
                !__builtin_add_overflow(high, 2 * tile, &last) && last < INT32_MAX / 2;
    return fits ? g->i32 : g->i64;
}

/** Iterations from where threads begin to the end of dimension number n. */
static LLVMValueRef extent_from(lower *g, const walk *w, int n, LLVMTypeRef t)
{
    int64_t low, high, reach = qn__plan_reach(g->p, w->dim[n]);
    if (qn__is_const(w->low[n], &low) && qn__is_const(w->high[n], &high))
        return constant(t, high - low + reach);
    return LLVMBuildSub(g->b, w->high[n], w->low[n], ""); /* no lead then */
}

/** Notes what code for several iterations at once must know of its place. */
static void note_place(const lower *g, walk *w, int d, LLVMValueRef ahead, LLVMValueRef extent)
{
    for (int n = 0; n < 2; n++)
        if (d == (n ? g->p->jam_dim : g->p->lane_dim)) {
            w->place.ahead[n] = ahead;
            w->place.extent[n] = extent;
        }
}

/** The index of this thread in dimension number n (of staged tiles: that of the tile's corner) for
 * the present unit; *ok is anded with "inside the domain". */
static LLVMValueRef thread_index(lower *g, walk *w, int n, LLVMValueRef tile_number,
                                 LLVMValueRef *ok)
{
    static const char *const thread[3] = {"tid.x", "tid.y", "tid.z"};
    int d = w->dim[n];
    bool is_block = g->p->team == QN_TEAM_BLOCK;
    int64_t tile = g->p->tile[d], each = qn__plan_at_once(g->p, d), low, known;
    LLVMTypeRef t = counter_type(g, w, n);
    LLVMValueRef ahead =
        LLVMTypeOf(tile_number) == t ? tile_number : LLVMBuildZExt(g->b, tile_number, t, "");
    if (tile != 1)
        ahead = LLVMBuildMul(g->b, ahead, constant(t, tile), "");
    bool is_corner = (g->p->staged && !is_block && d == g->p->stage_dim) ||
                     ((g->p->staged || is_block) && d == g->p->axis[0]);
    for (int a = 0; a < 3 && !is_corner; a++)
        if (g->p->axis[a] == d) {
            LLVMValueRef first = qn__nvptx_register(g, thread[a], t);
            if (each > 1)
                first = LLVMBuildMul(g->b, first, constant(t, each), "");
            ahead = LLVMBuildAdd(g->b, ahead, first, "");
        }
    LLVMValueRef extent = extent_from(g, w, n, t);
    note_place(g, w, d, ahead, extent);
    if (tile != 1 && !is_corner && !(qn__is_const(extent, &known) && known % tile == 0)) {
        LLVMValueRef inside = LLVMBuildICmp(g->b, LLVMIntULT, ahead, extent, "");
        *ok = *ok ? LLVMBuildAnd(g->b, *ok, inside, "") : inside;
    }
    if (!qn__is_const(w->low[n], &low))
        return LLVMBuildAdd(g->b, w->low[n], ahead, "");
    low -= qn__plan_lead(g->p, d);
    if (low)
        ahead = LLVMBuildAdd(g->b, ahead, constant(t, low), "");
    return t == g->i64 ? ahead : LLVMBuildSExt(g->b, ahead, g->i64, "");
}

/** Sets the indices of the tiled dimensions for the present unit; the condition under which they
 * are inside, or NULL. */
static LLVMValueRef set_indices(lower *g, walk *w)
{
    LLVMValueRef rest = w->unit, ok = NULL;
    for (int n = w->n - 1; n >= 0; n--) {
        int64_t tiles;
        LLVMValueRef number = rest;
        if (qn__is_const(w->tiles[n], &tiles) && tiles == 1) {
            number = constant(w->type, 0);
        } else if (n > 0) {
            number = LLVMBuildURem(g->b, rest, w->tiles[n], "");
            rest = LLVMBuildUDiv(g->b, rest, w->tiles[n], "");
        }
        qn__set_index(g, w->dim[n], thread_index(g, w, n, number, &ok));
    }
    return ok;
}

typedef struct unit_body {
    walk *w;
    void (*run)(lower *g, void *arg);
    void *arg;
} unit_body;

static LLVMValueRef as_i64(lower *g, LLVMValueRef v)
{
    return LLVMTypeOf(v) == g->i64 ? v : LLVMBuildZExt(g->b, v, g->i64, "");
}

/** A tile whose reduces all threads share, or a block of its points. */
static void run_block(lower *g, const unit_body *body, LLVMValueRef tile, LLVMValueRef number)
{
    LLVMValueRef low = g->iv[g->p->axis[0]], tiles = as_i64(g, body->w->units);
    if (!g->p->is_split)
        qn__block_tile(g, low, body->run, body->arg);
    else if (g->step == 0)
        qn__block_first(g, low, tiles, as_i64(g, tile), as_i64(g, number));
    else
        qn__block_second(g, low, tiles, as_i64(g, tile), body->run, body->arg);
}

static void run_thread(lower *g, const unit_body *body)
{
    if (g->p->lane_dim >= 0)
        qn__wide_unit(g, &body->w->place, body->run, body->arg);
    else
        body->run(g, body->arg);
}

/** A unit: the body, if this thread has an iteration in it. */
static void run_unit(lower *g, LLVMValueRef unit, void *arg)
{
    const unit_body *body = arg;
    LLVMValueRef number = unit;
    if (body->w->apart) {
        number = LLVMBuildUDiv(g->b, unit, body->w->units, "");
        unit = LLVMBuildURem(g->b, unit, body->w->units, "");
    }
    body->w->unit = unit;
    LLVMValueRef ok = set_indices(g, body->w);
    if (g->p->is_product) {
        qn__product_tile(g, g->iv[g->p->axis[0]], g->iv[g->p->stage_dim], body->run, body->arg);
        return;
    }
    if (g->p->team == QN_TEAM_BLOCK) {
        run_block(g, body, unit, number);
        return;
    }
    if (g->p->staged) {
        qn__stage_tile(g, g->iv[g->p->axis[0]], g->iv[g->p->stage_dim], body->run, body->arg);
        return;
    }
    if (!ok) {
        run_thread(g, body);
        return;
    }
    LLVMBasicBlockRef inside = qn__new_block(g, "mine"), join = qn__new_block(g, "idle");
    LLVMBuildCondBr(g->b, ok, inside, join);
    qn__level_open(g, false, false, true);
    LLVMPositionBuilderAtEnd(g->b, inside);
    run_thread(g, body);
    LLVMBuildBr(g->b, join);
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, join);
}

/** body(first, arg) if first < end. */
static void once_below(lower *g, LLVMValueRef first, LLVMValueRef end,
                       void (*body)(lower *g, LLVMValueRef index, void *arg), void *arg)
{
    LLVMBasicBlockRef some = qn__new_block(g, "some"), done = qn__new_block(g, "done");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntULT, first, end, ""), some, done);
    qn__level_open(g, false, false, true);
    LLVMPositionBuilderAtEnd(g->b, some);
    body(g, first, arg);
    LLVMBuildBr(g->b, done);
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, done);
}

void qn__nvptx_stride(lower *g, LLVMValueRef first, LLVMValueRef end, LLVMValueRef step,
                      void (*body)(lower *g, LLVMValueRef index, void *arg), void *arg)
{
    LLVMBasicBlockRef entry = qn__new_block(g, "some"), head = qn__new_block(g, "stride"),
                      done = qn__new_block(g, "done");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntULT, first, end, ""), entry, done);
    qn__level_open(g, false, false, true);
    LLVMPositionBuilderAtEnd(g->b, entry);
    LLVMBuildBr(g->b, head);
    qn__level_open(g, false, false, false);
    LLVMPositionBuilderAtEnd(g->b, head);
    LLVMValueRef index = LLVMBuildPhi(g->b, LLVMTypeOf(first), "");
    LLVMAddIncoming(index, &first, &entry, 1);
    body(g, index, arg);
    LLVMValueRef next = LLVMBuildAdd(g->b, index, step, "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    LLVMAddIncoming(index, &next, &latch, 1);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntULT, next, end, ""), head, done);
    qn__level_close(g);
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, done);
}

/** A loop of a thread, over dimension number `at` of the plan's order. */
typedef struct thread_steps {
    steps steps;
    const span *spans; /* of all dimensions, by their place */
    int at;
} thread_steps;

static void thread_loops(lower *g, const span *spans, int at);

static void inside_loop(lower *g, const steps *of)
{
    const thread_steps *x = (const thread_steps *)of;
    thread_loops(g, x->spans, x->at + 1);
}

/** The loops of a thread over the dimensions that are no tiles, from place `at` on, and the body.
 * Of sequential dimensions a launch runs one index. */
static void thread_loops(lower *g, const span *spans, int at)
{
    const qn_plan *p = g->p;
    while (at < p->n_loops &&
           (p->tile[p->order[at]] > 0 || qn__dim_kind(g->k, p->order[at]) == QN_DIM_SEQUENTIAL))
        at++;
    if (at == p->n_loops) {
        qn__wide_begin(g);
        qn__lower_body(g);
        return;
    }
    const thread_steps x = {.steps = {.d = p->order[at], .all = spans[at], .inside = inside_loop},
                            .spans = spans,
                            .at = at};
    qn__nest_over(g, &x.steps, spans[at], 1, false);
}

static void emit_body(lower *g, void *spans)
{
    if (g->p->rest_dims)
        qn__rest_of_warp(g);
    else
        thread_loops(g, spans, 0);
}

/** The loop over units of work and in it the body, for each thread that has an iteration, with the
 * indices of the tiled dimensions set. */
static void run_units(lower *g, const span *spans)
{
    walk w = {0};
    span inside[QN_MAX_RANK];
    unit_body unit = {&w, emit_body, inside};
    memcpy(inside, spans, (size_t)g->p->n_loops * sizeof *inside);
    for (int at = 0; at < g->p->n_loops; at++)
        if (g->p->tile[g->p->order[at]] > 0) {
            w.dim[w.n] = g->p->order[at];
            w.low[w.n] = spans[at].low;
            w.high[w.n++] = spans[at].high;
        }
    count_units(g, &w);
    g->is_team = g->p->team == QN_TEAM_WARP;
    qn__kept_open(g);
    qn__private_open(g);
    LLVMValueRef first = qn__nvptx_register(g, "ctaid.x", w.type),
                 step = qn__nvptx_register(g, "nctaid.x", w.type);
    LLVMValueRef units = w.apart ? LLVMBuildMul(g->b, w.units, w.apart, "") : w.units;
    if (has_block_for_each(g->k, g->f, g->p))
        once_below(g, first, units, run_unit, &unit);
    else
        qn__nvptx_stride(g, first, units, step, run_unit, &unit);
    qn__private_close(g);
}

static void run_step(lower *g, const span *spans)
{
    bool is_grid = g->p->team == QN_TEAM_GRID;
    for (int at = 0; at < g->p->n_loops; at++)
        if (is_grid || qn__dim_kind(g->k, g->p->order[at]) ==
                           QN_DIM_SEQUENTIAL) /* parallel dimensions of a grid have one index, a
                                                 launch runs one of others */
            qn__set_index(g, g->p->order[at], spans[at].low);
    if (!is_grid)
        run_units(g, spans);
    else if (g->step == 0)
        qn__team_first(g);
    else
        qn__team_second(g);
}

/* ---------------------------------------------------------------- atomic reductions */

bool qn__nvptx_combine(lower *g, int combine, int dtype, LLVMValueRef pointer, LLVMValueRef v)
{
    enum { OF_SIGNED, OF_UNSIGNED, OF_F64 };
    static const char *const reds[QN_N_COMBINES][3] = {
#define PTX(s, u, f)                                                                               \
    {                                                                                              \
        s, u, f                                                                                    \
    }
#define NONE                                                                                       \
    {                                                                                              \
        NULL                                                                                       \
    }
#define QN_REDUCER(NAME, number, text, is_reduction, is_atomic, classes, op, neutral, rmw, fold,   \
                   red, ...)                                                                       \
    [number] = red,
#include "quern/reducers.def"
#undef QN_REDUCER
#undef NONE
#undef PTX
    };
    int kind = qn__dtype_class(dtype), width = qn__dtype_width(dtype);
    bool is_float = kind == QN_CLASS_F;
    const char *red = combine < QN_N_COMBINES ? reds[combine][is_float             ? OF_F64
                                                              : kind == QN_CLASS_S ? OF_SIGNED
                                                                                   : OF_UNSIGNED]
                                              : NULL;
    char text[64];
    if (!red || width < (is_float ? 64 : 32) || dtype == QN_BOOL)
        return false; /* the sum of f32 flushes to zero */
    const char *operands = is_float      ? "l,d,~{memory}"
                           : width == 64 ? "l,l,~{memory}"
                                         : "l,r,~{memory}";
    int n = snprintf(text, sizeof text, "red.global.%s%d [$0], $1;", red, width);
    LLVMValueRef in[2] = {LLVMBuildPtrToInt(g->b, pointer, g->i64, ""), v};
    LLVMTypeRef types[2] = {g->i64, LLVMTypeOf(v)},
                t = LLVMFunctionType(LLVMVoidTypeInContext(g->context), types, 2, false);
    LLVMValueRef code = LLVMGetInlineAsm(t, text, (size_t)n, operands, strlen(operands), true,
                                         false, LLVMInlineAsmDialectATT, false);
    LLVMBuildCall2(g->b, t, code, in, 2, "");
    return true;
}

/* ---------------------------------------------------------------- the fault record */

static LLVMValueRef lock_address(lower *g)
{
    return qn__ahead(g, g->fault, (int64_t)offsetof(qn_gpu_fault, lock));
}

static void fence(lower *g)
{
    qn__call(g, "llvm.nvvm.membar.gl", NULL, 0, NULL, 0);
}

static void lock(lower *g, LLVMBasicBlockRef retry, LLVMBasicBlockRef locked)
{
    LLVMValueRef pair =
        LLVMBuildAtomicCmpXchg(g->b, lock_address(g), qn__const_i64(g, 0), qn__const_i64(g, 1),
                               LLVMAtomicOrderingMonotonic, LLVMAtomicOrderingMonotonic, false);
    LLVMBuildCondBr(g->b, LLVMBuildExtractValue(g->b, pair, 1, ""), locked, retry);
    LLVMPositionBuilderAtEnd(g->b, locked);
    fence(g);
}

static void unlock(lower *g)
{
    fence(g);
    LLVMBuildAtomicRMW(g->b, LLVMAtomicRMWBinOpXchg, lock_address(g), qn__const_i64(g, 0),
                       LLVMAtomicOrderingMonotonic, false);
}

/* ---------------------------------------------------------------- the table */

/** The bits of an f16 in PTX, through 32 bits. The assembler (that of CUDA 13.0 was seen to) takes
 * a store of one byte of a 16-bit register that a conversion to f16 has set for a store of the
 * number, converted to an integer. */
static LLVMValueRef half_bits(lower *g, LLVMValueRef bits)
{
    LLVMTypeRef t = LLVMFunctionType(g->i32, &g->i16, 1, false);
    LLVMValueRef widen = LLVMGetInlineAsm(t, "cvt.u32.u16 $0, $1;", 19, "=r,h", 4, false, false,
                                          LLVMInlineAsmDialectATT, false);
    return LLVMBuildTrunc(g->b, LLVMBuildCall2(g->b, t, widen, &bits, 1, ""), g->i16, "");
}

/** The conversions of PTX saturate. They give 0 for NaN only from f32 to at most 32 bits. Of
 * integers below 32 bits the wider one is limited. */
static LLVMValueRef to_integer(lower *g, int to, int from, LLVMValueRef v)
{
    static const char *const names[2][2][2] = {
        {{"llvm.nvvm.f2ui.rz", "llvm.nvvm.f2i.rz"}, {"llvm.nvvm.f2ull.rz", "llvm.nvvm.f2ll.rz"}},
        {{"llvm.nvvm.d2ui.rz", "llvm.nvvm.d2i.rz"}, {"llvm.nvvm.d2ull.rz", "llvm.nvvm.d2ll.rz"}}};
    const bool is_signed = qn__dtype_class(to) == QN_CLASS_S, is_f64 = from == QN_F64;
    const unsigned width = (unsigned)qn__dtype_width(to);
    LLVMValueRef n = qn__call(g, names[is_f64][width == 64][is_signed], NULL, 0, &v, 1);
    if (is_f64 || width == 64) {
        LLVMValueRef is_nan = LLVMBuildFCmp(g->b, LLVMRealUNO, v, v, "");
        n = LLVMBuildSelect(g->b, is_nan, LLVMConstNull(LLVMTypeOf(n)), n, "");
    }
    if (width >= 32)
        return n;
    const unsigned long long most = (UINT64_C(1) << (width - is_signed)) - 1;
    LLVMValueRef limit[2] = {n, LLVMConstInt(g->i32, most, false)};
    n = qn__call(g, is_signed ? "llvm.smin" : "llvm.umin", &g->i32, 1, limit, 2);
    limit[0] = n;
    limit[1] = LLVMConstInt(g->i32, ~most, true);
    n = is_signed ? qn__call(g, "llvm.smax", &g->i32, 1, limit, 2) : n;
    return LLVMBuildTrunc(g->b, n, qn__scalar_type(g, to), "");
}

static LLVMValueRef held(lower *g, uint32_t i)
{
    if (qn__is_shared(g, i))
        return qn__staged_value(g, i);
    return g->held && g->site[i] < 64 ? g->held[g->site[i]] : NULL;
}

static void initialize(void)
{
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
}

/** Subnormal numbers are kept. */
static void add_attributes(LLVMValueRef function, const qn_target *target, const char *tune)
{
    (void)target, (void)tune;
    LLVMAddTargetDependentFunctionAttr(function, "denormal-fp-math", "ieee,ieee");
    LLVMAddTargetDependentFunctionAttr(function, "denormal-fp-math-f32", "ieee,ieee");
}

const qn_hooks qn__nvptx_hooks = {
    .data_space = GLOBAL_MEMORY,
    .constant_space = {GLOBAL_MEMORY, CONSTANT_MEMORY},
    .same_i64 = "=l,0",
    .initialize = initialize,
    .attributes = add_attributes,
    .open = open_kernel,
    .run = run_step,
    .describe = describe,
    .to_integer = to_integer,
    .half_bits = half_bits,
    .combine = qn__nvptx_combine,
    .private_place = qn__private_place,
    .held = held,
    .team_begin = qn__team_begin,
    .team_end = qn__team_end,
    .team_same = qn__team_same,
    .team_reduce = qn__team_reduce,
    .team_trips = qn__team_trips,
    .lock = lock,
    .unlock = unlock,
};
