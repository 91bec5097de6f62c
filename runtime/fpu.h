/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fpu.h: the floating-point environment of generated code and of the interpreter. A host may have
 * set flush-to-zero or another rounding; kernels run under the default control bits, and the host's
 * are put back. Reading the register costs a quarter of a nanosecond, writing it several, so it is
 * written only when its control bits differ.
 */
#ifndef QN_RUNTIME_FPU_H
#define QN_RUNTIME_FPU_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

enum { QN_MXCSR_DEFAULT = 0x1f80, QN_MXCSR_STICKY = 0x3f };

/** Enters the default environment; returns what qn__fpu_leave needs. */
static inline uint32_t qn__fpu_enter(void)
{
    uint32_t host = _mm_getcsr();
    if ((host & ~(uint32_t)QN_MXCSR_STICKY) != QN_MXCSR_DEFAULT)
        _mm_setcsr(QN_MXCSR_DEFAULT);
    return host;
}

static inline void qn__fpu_leave(uint32_t host)
{
    if ((host & ~(uint32_t)QN_MXCSR_STICKY) != QN_MXCSR_DEFAULT)
        _mm_setcsr(host);
}

#else

static inline uint32_t qn__fpu_enter(void)
{
    return 0;
}

static inline void qn__fpu_leave(uint32_t host)
{
    (void)host;
}

#endif
#endif
