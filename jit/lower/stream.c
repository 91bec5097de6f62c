/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c: non-temporal stores of the lanes' loop. They need aligned vectors, and pay only for
 * whole cache lines: so the first iterations of a row run apart until the first such store stands
 * at a cache line (the anchor). Other streams of elements of that size are tested against it once a
 * row; where they stand elsewhere, they are stored as usual.
 */
#include "jit/lower/hooks.h"
#include "jit/lower/nest.h"

#include "jit/schedule/forms.h"

#include <string.h>

static bool is_stream(const lower *g, uint32_t site)
{
    return g->block->streams && qn__is_streamed(g->schedule, g->k->access[site].inst);
}

static int64_t element_bytes(const lower *g, uint32_t site)
{
    return qn__access_bytes(g->k, g->k->access[site].inst);
}

/** The first stream, or -1. */
static int anchor_of(const lower *g)
{
    for (uint32_t n = 0; n < g->k->n_accesses; n++)
        if (is_stream(g, n))
            return (int)n;
    return -1;
}

/** Whether a store is streamed with the anchor: one of elements of another size leaves the place in
 * a line they share. */
static bool goes_with(const lower *g, uint32_t site, int anchor)
{
    return is_stream(g, site) && element_bytes(g, site) == element_bytes(g, (uint32_t)anchor);
}

/** Address of lane 0 of an access, as a number, where the lanes begin. */
static LLVMValueRef address_number(lower *g, uint32_t site)
{
    address x = qn__displaced(g, g->k->access[site].inst, 0, NULL);
    return LLVMBuildPtrToInt(g->b, x.pointer, g->i64, "");
}

LLVMValueRef qn__emit_stream_begin(lower *g, LLVMValueRef low, LLVMValueRef high)
{
    int anchor = anchor_of(g);
    if (anchor < 0)
        return NULL;
    int64_t bytes = element_bytes(g, (uint32_t)anchor);
    LLVMValueRef back = LLVMBuildNeg(g->b, address_number(g, (uint32_t)anchor), "");
    LLVMValueRef gap = LLVMBuildAnd(g->b, back, qn__const_i64(g, LINE_BYTES - 1), "");
    LLVMValueRef n = LLVMBuildUDiv(g->b, gap, qn__const_i64(g, bytes), "");
    return LLVMBuildAdd(g->b, low, qn__umin(g, n, LLVMBuildSub(g->b, high, low, "")), "");
}

LLVMValueRef qn__streams_agree(lower *g)
{
    int anchor = anchor_of(g);
    LLVMValueRef differ = NULL, first = address_number(g, (uint32_t)anchor);
    for (uint32_t n = (uint32_t)anchor + 1; n < g->k->n_accesses; n++) {
        if (!goes_with(g, n, anchor))
            continue;
        LLVMValueRef one = LLVMBuildXor(g->b, first, address_number(g, n), "");
        differ = differ ? LLVMBuildOr(g->b, differ, one, "") : one;
    }
    if (!differ)
        return NULL;
    LLVMValueRef low = LLVMBuildAnd(g->b, differ, qn__const_i64(g, LINE_BYTES - 1), "");
    return LLVMBuildICmp(g->b, LLVMIntEQ, low, qn__const_i64(g, 0), "");
}

void qn__make_nontemporal(lower *g, LLVMValueRef store, int64_t align)
{
    LLVMMetadataRef operand = LLVMValueAsMetadata(LLVMConstInt(g->i32, 1, false));
    unsigned kind =
        LLVMGetMDKindIDInContext(g->context, "nontemporal", (unsigned)strlen("nontemporal"));
    LLVMSetMetadata(store, kind,
                    LLVMMetadataAsValue(g->context, LLVMMDNodeInContext2(g->context, &operand, 1)));
    LLVMSetAlignment(store, (unsigned)align);
    g->has_streamed = true;
}

void qn__mark_stream(lower *g, uint32_t i, LLVMValueRef store)
{
    int site = (int)g->site[i], anchor = anchor_of(g);
    if (g->streaming == STREAM_NONE || anchor < 0 || !goes_with(g, g->site[i], anchor) ||
        (g->streaming == STREAM_ANCHOR && site != anchor))
        return;
    LLVMTypeRef t = LLVMTypeOf(LLVMGetOperand(store, 0));
    int64_t lanes = LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetVectorSize(t) : 1,
            bytes = qn__access_bytes(g->k, i) * lanes;
    qn__make_nontemporal(g, store, bytes < LINE_BYTES ? bytes : LINE_BYTES);
}

void qn__stream_fence(lower *g)
{
    if (g->has_streamed && g->hooks->fence)
        g->hooks->fence(g);
}
