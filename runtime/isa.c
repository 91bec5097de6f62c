/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isa.c: what the processor and the operating system offer: x86-64-v3, v4, or neither, by cpuid and
 * xgetbv; its name.
 */
#define _GNU_SOURCE
#include "runtime/context.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

/** The state components that the operating system saves. */
static uint64_t saved_state(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool has_all(uint32_t bits, uint32_t wanted)
{
    return (bits & wanted) == wanted;
}

int qn__isa_best(void)
{
    const uint32_t leaf1_c =
        bit_FMA | bit_MOVBE | bit_OSXSAVE | bit_AVX | bit_F16C | bit_SSE4_2 | bit_POPCNT;
    const uint32_t leaf7_v3 = bit_BMI | bit_AVX2 | bit_BMI2;
    const uint32_t leaf7_v4 =
        bit_AVX512F | bit_AVX512DQ | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL;
    const uint64_t ymm = 0x6, zmm = 0xe6;
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has_all(c, leaf1_c) || (saved_state() & ymm) != ymm)
        return 0;
    if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !has_all(c, bit_LZCNT))
        return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has_all(b, leaf7_v3))
        return 0;
    return has_all(b, leaf7_v4) && (saved_state() & zmm) == zmm ? QN_ISA_V4 : QN_ISA_V3;
}

void qn__processor_name(char out[QN_PROCESSOR_BYTES])
{
    uint32_t a = 0, b = 0, c = 0, d = 0;
    char maker[13] = {0};
    __get_cpuid(0, &a, &b, &c, &d);
    memcpy(maker, &b, 4);
    memcpy(maker + 4, &d, 4);
    memcpy(maker + 8, &c, 4);
    __get_cpuid(1, &a, &b, &c, &d);
    uint32_t family = (a >> 8 & 15) + ((a >> 8 & 15) == 15 ? a >> 20 & 255 : 0), model = (a >> 4 & 15) | (a >> 12 & 0xf0);
    snprintf(out, QN_PROCESSOR_BYTES, "%s %u.%u", maker, family, model);
}

#else

int qn__isa_best(void)
{
    return 0;
}

void qn__processor_name(char out[QN_PROCESSOR_BYTES])
{
    snprintf(out, QN_PROCESSOR_BYTES, "unknown");
}

#endif
