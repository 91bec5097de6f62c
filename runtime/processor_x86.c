/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processor_x86.c: x86 as processor.h asks for it, by cpuid and xgetbv.
 */
#include "runtime/processor.h"

#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- cores */

static uint32_t family_of(uint32_t signature)
{
    uint32_t family = signature >> 8 & 15;
    return family + (family == 15 ? signature >> 20 & 255 : 0);
}

static uint32_t model_of(uint32_t signature)
{
    return (signature >> 4 & 15) | (signature >> 12 & 0xf0);
}

int qn__core_of_intel(uint32_t signature)
{
    /* Sapphire Rapids, Emerald Rapids, Granite Rapids */
    static const uint8_t golden_cove[] = {0x8f, 0xcf, 0xad, 0xae};
    for (size_t n = 0; n < sizeof golden_cove && family_of(signature) == 6; n++)
        if (model_of(signature) == golden_cove[n])
            return QN_CORE_GOLDEN_COVE;
    return QN_CORE_USUAL;
}

#if defined(__x86_64__)
#include <cpuid.h>

/** The twelve letters of who made it. */
static void read_maker(char maker[13])
{
    uint32_t a = 0, b = 0, c = 0, d = 0;
    __get_cpuid(0, &a, &b, &c, &d);
    memcpy(maker, &b, 4);
    memcpy(maker + 4, &d, 4);
    memcpy(maker + 8, &c, 4);
    maker[12] = 0;
}

int qn__processor_core(void)
{
    uint32_t a = 0, b, c, d;
    char maker[13];
    read_maker(maker);
    bool is_intel = strcmp(maker, "GenuineIntel") == 0 && __get_cpuid(1, &a, &b, &c, &d);
    return is_intel ? qn__core_of_intel(a) : QN_CORE_USUAL;
}

/* ---------------------------------------------------------------- instruction sets */

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
    const uint32_t leaf7_bytes =
        bit_AVX512VBMI | bit_AVX512VBMI2 | bit_AVX512BITALG | bit_AVX512VPOPCNTDQ | bit_GFNI;
    const uint64_t ymm = 0x6, zmm = 0xe6;
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has_all(c, leaf1_c) || (saved_state() & ymm) != ymm)
        return 0;
    if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !has_all(c, bit_LZCNT))
        return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has_all(b, leaf7_v3))
        return 0;
    if (!has_all(b, leaf7_v4) || (saved_state() & zmm) != zmm)
        return QN_ISA_V3;
    return has_all(c, leaf7_bytes) ? QN_ISA_V4_BYTES : QN_ISA_V4;
}

void qn__processor_name(char out[QN_PROCESSOR_BYTES])
{
    uint32_t a = 0, b = 0, c = 0, d = 0;
    char maker[13];
    read_maker(maker);
    __get_cpuid(1, &a, &b, &c, &d);
    snprintf(out, QN_PROCESSOR_BYTES, "%s %u.%u", maker, family_of(a), model_of(a));
}

const char *qn__isa_needed(void)
{
    return "x86-64-v3";
}

#endif
