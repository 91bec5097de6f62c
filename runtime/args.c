/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.c: arguments of a launch.
 */
#include "ir/ir.h"

#include <string.h>

qn_arg qn_arg_view(const qn_view *v)
{
    return (qn_arg){.view = v};
}

qn_arg qn_arg_int(int dtype, int64_t value)
{
    int part = qn__dtype_part(dtype); /* the imaginary part of complex numbers is 0 */
    bool is_float = qn__dtype_class(part) == QN_CLASS_F;
    uint64_t bits = (uint64_t)value;
    return (qn_arg){.dtype = dtype, .bits = is_float ? qn__eval_cast(part, QN_I64, bits) : bits};
}

qn_arg qn_arg_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (qn_arg){.dtype = QN_F32, .bits = bits};
}

qn_arg qn_arg_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (qn_arg){.dtype = QN_F64, .bits = bits};
}

qn_arg qn_arg_c64(float re, float im)
{
    uint64_t bits = qn_arg_f32(re).bits | qn_arg_f32(im).bits << 32;
    return (qn_arg){.dtype = QN_C64, .bits = bits};
}

qn_arg qn_arg_c128(double re, double im)
{
    return (qn_arg){.dtype = QN_C128, .bits = qn_arg_f64(re).bits, .high = qn_arg_f64(im).bits};
}
