/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_ends.c: non-temporal stores of rows that begin anywhere in a cache line, in transposing
 * kernels: each step of the lanes fills 64 bytes of many rows, of a line and the next. What a step
 * stores waits in memory of the launch, a line for each row; the step behind it takes the end of
 * that and the beginning of its own elements, and writes the line that they make.
 *
 *   first step     stores its elements as usual: the line where they begin is another's too
 *   later ones     write the line that begins after the first element of the step before, up to
 * their own first element end of a row   what the last line lacks of the last step's elements is
 * stored as usual
 *
 * A buffer of line ends is over so many rows that their lines stay in the second-level cache.
 */
#include "jit/lower/hooks.h"
#include "jit/schedule/forms.h"

static bool has_line_ends(const lower *g, uint32_t site)
{
    int buffer = g->through[site];
    return buffer && g->ends.buffers >> (buffer - 1) & 1;
}

/** Memory for the row that stands in g->iv, and those behind it. */
static LLVMValueRef row_memory(lower *g, uint32_t site)
{
    int d = g->across;
    int64_t rows = 0;
    for (uint32_t before = 0; before < site; before++)
        if (has_line_ends(g, before))
            rows += qn__rows_of_ends(g->scalar, g->schedule, g->through[before] - 1);
    LLVMValueRef row = qn__element_pointer(g, g->ends.memory, g->iv[d], g->iv_level[d], LINE_BYTES);
    return qn__ahead(g, row, rows * LINE_BYTES);
}

/** Bytes from the beginning of a line to `pointer`. */
static LLVMValueRef bytes_into_line(lower *g, LLVMValueRef pointer)
{
    return LLVMBuildAnd(g->b, LLVMBuildPtrToInt(g->b, pointer, g->i64, ""),
                        qn__const_i64(g, LINE_BYTES - 1), "");
}

static LLVMValueRef lane_numbers(const lower *g, int64_t bytes)
{
    return qn__lanes(g, qn__int_type(g, bytes * 8), 1);
}

/** How many elements so many bytes are, in all lanes. */
static LLVMValueRef in_all_lanes(lower *g, LLVMValueRef line_bytes, int64_t bytes)
{
    LLVMValueRef n = LLVMBuildUDiv(g->b, line_bytes, qn__const_i64(g, bytes), "");
    n = LLVMBuildTrunc(g->b, n, qn__int_type(g, bytes * 8), "");
    return qn__splat(g, n, g->depth);
}

/** Elements n, n + 1, ... of the vectors `left` and `right` side by side; n in all lanes. */
static LLVMValueRef joined(lower *g, LLVMValueRef left, LLVMValueRef right, LLVMValueRef n,
                           int64_t bytes)
{
    LLVMTypeRef t = LLVMTypeOf(right), words = LLVMTypeOf(n);
    LLVMValueRef both[2] = {LLVMBuildBitCast(g->b, left, words, "")},
                 index = LLVMBuildAdd(g->b, lane_numbers(g, bytes), n, "");
    both[1] = LLVMBuildBitCast(g->b, right, words, "");
    return LLVMBuildBitCast(g->b, g->hooks->permute(g, both, 2, index), t, "");
}

void qn__line_ends_open(lower *g, uint32_t buffers, LLVMValueRef first_row, LLVMValueRef first_lane)
{
    g->ends.buffers = buffers;
    LLVMValueRef before = LLVMBuildMul(g->b, first_row, qn__const_i64(g, -LINE_BYTES), "");
    g->ends.memory = qn__gep(g, g->i8, g->scratch_memory, before);
    g->ends.first = first_lane;
}

bool qn__line_ends_store(lower *g, uint32_t i, int p, LLVMValueRef v, LLVMValueRef pointer)
{
    if (!g->ends.first || !has_line_ends(g, g->site[i]))
        return false;
    int64_t bytes = qn__access_bytes(g->k, i);
    LLVMValueRef row =
        qn__ahead(g, row_memory(g, g->site[i]), (int64_t)(p % g->jam_max) * LINE_BYTES);
    LLVMValueRef is_first =
        LLVMBuildICmp(g->b, LLVMIntEQ, g->iv[g->block->lane_dim], g->ends.first, "");
    branch x = qn__begin_choice(g, is_first, "first", "line");
    qn__store_at(g, v, pointer, (unsigned)bytes);
    qn__begin_other(g, &x);
    LLVMValueRef old = qn__load_at(g, LLVMTypeOf(v), row, LINE_BYTES),
                 into = bytes_into_line(g, pointer);
    LLVMValueRef back = LLVMBuildNeg(g->b, into, ""), begin = qn__gep(g, g->i8, pointer, back);
    LLVMValueRef n =
        in_all_lanes(g, LLVMBuildAdd(g->b, back, qn__const_i64(g, LINE_BYTES), ""), bytes);
    qn__make_nontemporal(g, LLVMBuildStore(g->b, joined(g, old, v, n, bytes), begin), LINE_BYTES);
    qn__end_branch(g, &x, NULL);
    qn__store_at(g, v, row, LINE_BYTES);
    return true;
}

/** Stores the end of one row: the lanes stand behind the last step. */
static void end_row(lower *g, uint32_t site)
{
    uint32_t i = g->k->access[site].inst;
    int64_t bytes = qn__access_bytes(g->k, i);
    address x = qn__displaced(g, i, 0, NULL);
    LLVMTypeRef t = qn__vector_of(g, qn__memory_type(g, qn__access_dtype(g->k, i)));
    LLVMValueRef first =
        LLVMBuildSub(g->b, qn__const_i64(g, LINE_BYTES), bytes_into_line(g, x.pointer), "");
    LLVMValueRef mask =
        LLVMBuildICmp(g->b, LLVMIntUGE, lane_numbers(g, bytes), in_all_lanes(g, first, bytes), "");
    LLVMValueRef v = qn__load_at(g, t, row_memory(g, site), LINE_BYTES);
    qn__store_masked(g, v, qn__ahead(g, x.pointer, -LINE_BYTES), (unsigned)bytes, mask);
}

void qn__line_ends_close(lower *g, span rows, LLVMValueRef end)
{
    loop once, l;
    g->width = g->block->width;
    qn__once_open(g, &once, LLVMBuildICmp(g->b, LLVMIntNE, end, g->ends.first, ""));
    qn__loop_open(g, &l, rows, 1, LOOP_MAY_BE_EMPTY);
    qn__set_index(g, g->across, l.index);
    qn__set_index(g, g->block->lane_dim, end);
    for (uint32_t site = 0; site < g->k->n_accesses; site++)
        if (has_line_ends(g, site))
            end_row(g, site);
    qn__loop_close(g, &l);
    qn__loop_close(g, &once);
    g->ends.first = NULL;
}
