/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fpu.h: the floating-point environment of generated code, of the interpreter, and of every other
 * place where the library computes with floats. A host may have set flush-to-zero, another
 * rounding, or traps; the library computes under the default control bits and puts the host's back.
 * Reading the register costs a quarter of a nanosecond, writing it several, so it is written only
 * when its control bits differ.
 *
 * A compiler may move arithmetic across these calls. What computes stands in a function that is not
 * inlined between them.
 */
#ifndef QN_IR_FPU_H
#define QN_IR_FPU_H

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

#elif defined(__aarch64__)

/** FPCR holds control bits only, and the default is 0: rounding to nearest, subnormals kept, NaN
 * operands kept, no traps. Flags that stick are in another register. */
static inline uint64_t qn__fpu_control(void)
{
    uint64_t bits;
    __asm__ volatile("mrs %0, fpcr" : "=r"(bits));
    return bits;
}

static inline void qn__fpu_set_control(uint64_t bits)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(bits));
}

static inline uint32_t qn__fpu_enter(void)
{
    uint64_t host = qn__fpu_control();
    if (host)
        qn__fpu_set_control(0);
    return (uint32_t)host;
}

static inline void qn__fpu_leave(uint32_t host)
{
    if (host)
        qn__fpu_set_control(host);
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
