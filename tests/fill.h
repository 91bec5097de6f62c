/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fill.h: qn_fill with the bits of an element, low end first, whatever the dtype of the view.
 */
#ifndef QN_TESTS_FILL_H
#define QN_TESTS_FILL_H

#include "quern/cuda.h"

static inline qn_arg arg_of_bits(const qn_view *v, uint64_t bits)
{
    return (qn_arg){.dtype = v ? v->dtype : 0, .bits = bits};
}

static inline qn_status fill_bits(qn_context *c, const qn_view *v, uint64_t bits, qn_error *err)
{
    return qn_fill(c, v, arg_of_bits(v, bits), err);
}

static inline qn_status stream_fill_bits(qn_stream *s, const qn_view *v, uint64_t bits,
                                         qn_error *err)
{
    return qn_stream_fill(s, v, arg_of_bits(v, bits), err);
}

#endif
