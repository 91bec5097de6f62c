/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvptx.c: what lowering to PTX does differently: the kernel's one parameter, special registers,
 * atomic reductions, and the fault record that many threads share. units.c walks the domain; the
 * body is the scalar code that x86 has, too.
 */
#include "jit/target/nvptx/nvptx.h"
#include "jit/lower/atomic.h"
#include "jit/target/target.h"

#include <llvm-c/Target.h>
#include <stdio.h>
#include <string.h>

enum { GLOBAL_MEMORY = 1, SHARED_MEMORY = 3, CONSTANT_MEMORY = 4, KERNEL_CALL = 71 };
/** Bytes of parameters that every GPU and PTX version takes. */
enum { MOST_PARAMETER_BYTES = 4096 };

/* ---------------------------------------------------------------- the entry */

static LLVMValueRef word(lower *g, LLVMValueRef words, int n, LLVMTypeRef t)
{
    return qn__load_at(g, t, qn__gep(g, g->i64, words, qn__const_i64(g, n)), 8);
}

/** Whether an index of access i was loaded. */
static bool is_gather(const qn_kernel *k, uint32_t i)
{
    bool is_found = false;
    for (int r = 0; r < qn__n_indices(k, i); r++) {
        uint32_t v = qn__args(k, i)[r];
        while (k->inst[v].op == QN_I_CAST)
            v = qn__args(k, v)[0];
        is_found |= k->inst[v].op == QN_I_LOAD;
    }
    return is_found;
}

/** Whether neighbouring threads gather the same elements, or such as lie side by side, in the same
 * trips and points: loads wait for loads, and more warps have more of them under way than more
 * trips of each. */
static bool gathers_together(const lower *g)
{
    const qn_grid *p = g->grid;
    const int x = p->axis[0];
    int64_t stride;
    bool has_gathers = false;
    if (p->team != QN_TEAM_THREAD || x < 0 || p->wide * p->tall > 1 || p->n_moved || p->staged)
        return false;
    for (uint32_t i = g->k->body; i < g->k->n_insts; i++) {
        const qn_inst *inst = &g->k->inst[i];
        const uint32_t *bound = qn__args(g->k, i);
        if (inst->op == QN_I_WHILE || inst->op == QN_I_ATOMIC ||
            (inst->op == QN_I_STORE && inst->parent) ||
            (inst->op == QN_I_FOR &&
             ((g->a.value[bound[0]].deps | g->a.value[bound[1]].deps) >> x & 1)) ||
            (inst->op == QN_I_LOAD && inst->parent &&
             (!qn__access_stride(&g->a, i, x, &stride) || stride < 0 || stride > 1)))
            return false;
        has_gathers |= inst->op == QN_I_LOAD && inst->parent && is_gather(g->k, i);
    }
    return has_gathers;
}

/** Blocks that a multiprocessor should have room for. Those of threads that load little are as many
 * as it holds; those that keep rows are as many as shared memory holds. Others leave each thread
 * the registers that loads of several trips take, and no more: half of the threads then have them
 * under way. What needs more registers than these leave, 32 where it holds 2048 threads, is
 * assembled again with another limit (runtime/cuda/module.c). Without a limit, loads of many rows
 * of a reduce would take all registers, and too few threads would have loads under way. The driver
 * assembles PTX as relocatable code, which takes registers without regard to the number of
 * threads: exp of f32, four at once, 44 instead of 31. */
static int blocks_wanted(const lower *g, const int32_t *threads)
{
    enum { BLOCKS_OF_ROWS = 4, FEW_BYTES = 64 }; /* of the accumulators of a thread */
    enum { REGISTERS_OF_TEAM = 48, REGISTERS_OF_THREAD = 64 };
    const int at_once = g->grid->tall * g->grid->wide,
              n_threads = threads[0] * threads[1] * threads[2];
    if (g->grid->is_product)
        return qn__product_blocks(g->k, g->grid);
    const qn_machine *m = &g->f->machine;
    int most = m->threads / n_threads;
    most = most < m->blocks ? most : m->blocks;
    if (qn__nvptx_is_light(g->k, g->grid) || gathers_together(g))
        return most;
    if (g->grid->team == QN_TEAM_BLOCK && g->grid->n_kept) {
        const int64_t bytes = qn__block_value_bytes(g) + g->grid->kept_bytes + m->system_bytes;
        return m->shared_bytes / bytes < most ? (int)(m->shared_bytes / bytes) : most;
    }
    if (g->grid->team == QN_TEAM_WARP) {
        const int held = m->registers / (REGISTERS_OF_TEAM * n_threads),
                  bytes = qn__kept_bytes(g->grid) + m->system_bytes;
        most = most < held ? most : held;
        return bytes && m->shared_bytes / bytes < most ? m->shared_bytes / bytes : most;
    }
    for (uint32_t i = g->k->body; i < g->k->n_insts && at_once > 1; i++)
        if (g->k->inst[i].op == QN_I_REDUCE) {
            const int64_t bytes = at_once * qn_dtype_bytes(g->k->inst[i].type);
            return BLOCKS_OF_ROWS - (bytes > FEW_BYTES) - (bytes >= 2 * FEW_BYTES);
        }
    const int held = m->registers / (REGISTERS_OF_THREAD * n_threads);
    const int64_t units = qn__nvptx_units(g->f, g->grid); /* 0: not known */
    most = held < most ? held : most;
    if (units > 0 && units / m->multiprocessors < most) /* no more come */
        most = (int)(units / m->multiprocessors);
    return most < 1 ? 1 : most;
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
    LLVMMetadataRef node = LLVMMDNodeInContext2(g->context, m, 9);
    LLVMAddNamedMetadataOperand(g->module, "nvvm.annotations",
                                LLVMMetadataAsValue(g->context, node));
}

static void block_of(const qn_kernel *k, const qn_grid *p, int step, int32_t *threads)
{
    bool is_by_partials = false; /* of which all threads have some in either step */
    FOR_TOP_REDUCES (k, i)
        is_by_partials |= p->team == QN_TEAM_BLOCK && qn__block_is_by_partials(k, p, i);
    for (int a = 0; a < 3; a++)
        threads[a] = p->axis[a] >= 0 ? p->threads[p->axis[a]] : 1;
    if (p->team == QN_TEAM_WARP || p->team == QN_TEAM_GRID)
        threads[0] = WARP_LANES;
    if (p->is_split && step && !is_by_partials)
        threads[0] = p->block[p->axis[0]] > WARP_LANES ? (int32_t)p->block[p->axis[0]] : WARP_LANES;
    if (p->warps)
        threads[1] = p->warps;
    if (p->team == QN_TEAM_GRID && !step)
        threads[1] = FIRST_WARPS;
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
    block_of(g->k, g->grid, g->step, threads);
    annotate(g, threads);
    LLVMPositionBuilderAtEnd(g->b, qn__new_block(g, "entry"));
    g->range = g->slots;
    g->first_range = g->f->n_slots - 2; /* the sequential dimensions come right after the slots */
    g->fault = word(g, g->slots, n_words - 2, g->ptr);
    if (g->grid->team == QN_TEAM_WARP || g->grid->team == QN_TEAM_GRID)
        g->lane = qn__nvptx_register(g, "tid.x", g->i64);
}

LLVMValueRef qn__nvptx_scratch(lower *g)
{
    return word(g, g->slots, g->f->n_slots + 2 * qn__n_sequential(g->k) + 1, g->ptr);
}

/** So many blocks divide the rest as a GPU holds, or fewer that have an iteration for each thread.
 */
static void share_rest(const qn_facts *f, const qn_grid *p, qn_gpu_step *step)
{
    const int64_t threads = (int64_t)step->threads[0] * step->threads[1];
    int64_t n = 1;
    for (int d = 0; d < f->n_dims; d++) {
        if (!(p->rest_dims >> d & 1))
            continue;
        if (!qn__is_exact(f, d))
            step->tile[d] = n = 1;
        else if (__builtin_mul_overflow(n, qn__trips(f, d), &n))
            n = INT64_MAX / 2;
    }
    n /= p->wide;
    step->units = n / threads + (n % threads != 0);
    step->most_blocks = (int32_t)(f->machine.multiprocessors * f->machine.threads / threads);
}

/** Two steps: blocks of points, of each tile or of the whole kernel; then tiles, or one block. */
static void set_two_steps(const qn_kernel *k, const qn_facts *f, const qn_grid *p,
                          qn_gpu_info *info)
{
    const bool is_grid = p->team == QN_TEAM_GRID;
    const int64_t together = is_grid ? FIRST_WARPS : 1,
                  tile = is_grid ? FIRST_WARPS : p->block[p->axis[0]];
    info->n_steps = 2;
    info->step[1] = info->step[0];
    if (is_grid)
        info->step[1].shared_bytes = QN_TEAM_VALUES * 8;
    block_of(k, p, 1, info->step[1].threads);
    if (p->rest_dims && is_grid)
        share_rest(f, p, &info->step[1]);
    info->step[0].points = together * BLOCK;
    info->scratch_per_unit = qn__n_top_reduces(k) * tile * (int64_t)sizeof(int64_t);
}

/** How the host counts units: merged dimensions are exact, and no dimensions of the kernel. */
static void count_units(const qn_facts *f, const qn_grid *p, qn_gpu_step *step)
{
    qn_grid exact = *p;
    for (int n = 0; n < p->n_loops; n++) {
        const int d = p->order[n];
        if (!qn__is_exact(f, d)) {
            step->tile[d] = p->block[d];
            exact.block[d] = 0;
        }
    }
    step->units = qn__nvptx_units(f, &exact);
}

static void describe(const qn_kernel *k, const qn_facts *f, const qn_grid *p, int32_t block_bytes,
                     qn_blob_info *out)
{
    qn_gpu_info *info = &out->gpu;
    memset(info, 0, sizeof *info);
    info->n_steps = 1;
    info->n_words = f->n_slots + 2 * qn__n_sequential(k) + 2;
    info->words_in_memory = info->n_words * 8 > MOST_PARAMETER_BYTES;
    block_of(k, p, 0, info->step[0].threads);
    if (p->team == QN_TEAM_GRID) {
        set_two_steps(k, f, p, info);
        return;
    }
    count_units(f, p, &info->step[0]);
    info->step[0].most_blocks = p->most_blocks;
    info->step[0].has_block_for_each = qn__nvptx_has_block_for_each(k, f, p);
    info->step[0].shared_bytes = p->is_product              ? qn__product_bytes(k, p)
                                 : p->team == QN_TEAM_BLOCK ? block_bytes
                                 : p->warps                 ? QN_TEAM_VALUES * 8
                                 : p->n_kept                ? qn__kept_bytes(p)
                                 : p->privatized            ? qn__private_all(k, f, p)
                                 : p->n_moved               ? qn__moved_bytes(p)
                                                            : qn__stage_bytes(k, p);
    if (p->is_split)
        set_two_steps(k, f, p, info);
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
    for (int a = 0; a < 3 && g->grid->axis[a] >= 0; a++) {
        LLVMValueRef here = qn__nvptx_register(g, names[a], g->i64);
        here = LLVMBuildMul(g->b, here, qn__const_i64(g, below), "");
        thread = LLVMBuildAdd(g->b, thread, here, "");
        below *= g->grid->threads[g->grid->axis[a]];
    }
    return thread;
}

int64_t qn__nvptx_threads(const qn_grid *p)
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

LLVMValueRef qn__last_unless(lower *g, int d, int64_t side, int64_t each)
{
    int64_t low, high;
    const bool is_whole = qn__is_const(g->begin[d], &low) && qn__is_const(g->end[d], &high) &&
                          high > low && (high - low) % side == 0;
    return is_whole ? NULL : LLVMBuildSub(g->b, g->end[d], qn__const_i64(g, each), "");
}

LLVMValueRef qn__is_before(lower *g, int d, LLVMValueRef v, LLVMValueRef end)
{
    return LLVMBuildICmp(g->b, LLVMIntSLT, LLVMBuildSub(g->b, v, g->begin[d], ""),
                         LLVMBuildSub(g->b, end, g->begin[d], ""), "");
}

void qn__set_clamped(lower *g, int d, LLVMValueRef v, int64_t n, LLVMValueRef last)
{
    LLVMValueRef at = LLVMBuildAdd(g->b, v, qn__const_i64(g, n), "");
    v = last ? LLVMBuildSelect(g->b, qn__is_before(g, d, at, last), at, last, "") : v;
    qn__set_index(g, d, v);
    qn__set_ahead(g, d, last ? 0 : n, g->depth);
}

LLVMValueRef qn__is_inside(lower *g, int d, int64_t side)
{
    LLVMValueRef at = LLVMBuildAdd(g->b, g->iv[d], qn__const_i64(g, g->ahead[d]), "");
    return qn__last_unless(g, d, side, 1) ? qn__is_before(g, d, at, g->end[d]) : NULL;
}

LLVMValueRef qn__nvptx_register(lower *g, const char *name, LLVMTypeRef t)
{
    char intrinsic[48];
    snprintf(intrinsic, sizeof intrinsic, "llvm.nvvm.read.ptx.sreg.%s", name);
    LLVMValueRef v = qn__call(g, intrinsic, NULL, 0, NULL, 0);
    return t == g->i32 ? v : LLVMBuildZExt(g->b, v, t, "");
}

/* ---------------------------------------------------------------- atomic reductions */

/** Whether the sum of f32 of global memory, which takes subnormal numbers for zero and makes none,
 * rounds as all others do: |v| >= 2^-100. Beside such a number a subnormal one is less than half a
 * unit of the last place, and differences of others from it are 0 or at least 2^-124. */
static LLVMValueRef is_large(lower *g, LLVMValueRef v)
{
    enum { MAGNITUDE = 0x7fffffff, LEAST = (127 - 100) << 23 };
    LLVMValueRef bits = LLVMBuildBitCast(g->b, v, g->i32, "");
    bits = LLVMBuildAnd(g->b, bits, LLVMConstInt(g->i32, MAGNITUDE, false), "");
    return LLVMBuildICmp(g->b, LLVMIntUGE, bits, LLVMConstInt(g->i32, LEAST, false), "");
}

bool qn__nvptx_combine(lower *g, int combine, int dtype, LLVMValueRef pointer, LLVMValueRef v)
{
    enum { OF_SIGNED, OF_UNSIGNED, OF_FLOAT };
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
    const char *red = combine < QN_N_COMBINES ? reds[combine][is_float             ? OF_FLOAT
                                                              : kind == QN_CLASS_S ? OF_SIGNED
                                                                                   : OF_UNSIGNED]
                                              : NULL;
    char text[64];
    if (!red || width < 32 || dtype == QN_BOOL)
        return false;
    const char *operands = is_float      ? width == 64 ? "l,d,~{memory}" : "l,f,~{memory}"
                           : width == 64 ? "l,l,~{memory}"
                                         : "l,r,~{memory}";
    const bool is_shared = LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == SHARED_MEMORY,
               may_flush = dtype == QN_F32 && !is_shared;
    branch quick = {.from = NULL};
    if (may_flush)
        quick = qn__begin_choice(g, is_large(g, v), "large", "small");
    int n = snprintf(text, sizeof text, "red.%s.%s%d [$0], $1;", is_shared ? "shared" : "global",
                     red, width);
    LLVMValueRef in[2] = {LLVMBuildPtrToInt(g->b, pointer, g->i64, ""), v};
    LLVMTypeRef types[2] = {g->i64, LLVMTypeOf(v)},
                t = LLVMFunctionType(LLVMVoidTypeInContext(g->context), types, 2, false);
    LLVMValueRef code = LLVMGetInlineAsm(t, text, (size_t)n, operands, strlen(operands), true,
                                         false, LLVMInlineAsmDialectATT, false);
    LLVMBuildCall2(g->b, t, code, in, 2, "");
    if (may_flush) {
        qn__begin_other(g, &quick);
        const update u = {.dtype = dtype, .combine = combine};
        qn__update_element(g, &u, pointer, v, NULL);
        qn__end_branch(g, &quick, NULL);
    }
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

static LLVMValueRef held(lower *g, uint32_t i, int p)
{
    return g->held && g->site[i] < QN_MOST_HELD ? g->held[(uint32_t)p * QN_MOST_HELD + g->site[i]]
                                                : NULL;
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
    .run = qn__nvptx_run,
    .describe = describe,
    .to_integer = to_integer,
    .half_bits = half_bits,
    .constant = qn__nvptx_constant,
    .invert = qn__nvptx_invert,
    .divide = qn__nvptx_divide,
    .combine = qn__nvptx_combine,
    .place_in_block = qn__place_in_block,
    .move_rows = qn__nvptx_move_rows,
    .held = held,
    .team_begin = qn__team_begin,
    .team_end = qn__team_wait,
    .team_same = qn__team_same,
    .team_reduce = qn__team_reduce,
    .team_trips = qn__team_trips,
    .lock = lock,
    .unlock = unlock,
};
