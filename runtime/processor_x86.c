/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processor_x86.c: x86 as processor.h asks for it, by cpuid and xgetbv.
 */
#include "runtime/processor.h"

#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- pages */

static bool is_power(int32_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

void qn__pages_of_amd(uint32_t first, uint32_t second, qn_machine *m)
{
    /* The fewest ways that a code stands for. */
    static const uint8_t least[16] = {[2] = 2, [4] = 4, [5] = 6, [6] = 8, [8] = 16, [10] = 32};
    int32_t entries = (int32_t)(second >> 16 & 0xfff), ways = least[second >> 28];
    int32_t usual = qn__machine_usual(QN_ISA_V3)->page_ways;
    m->near_pages = (int32_t)(first >> 16 & 0xff);
    if (usual > ways && entries % usual == 0 && is_power(entries / usual))
        ways = usual;
    if (ways && entries % ways == 0) {
        m->page_sets = entries / ways;
        m->page_ways = ways;
    }
}

void qn__pages_of_intel(uint32_t b, uint32_t c, uint32_t d, qn_machine *m)
{
    enum { DATA = 1, ALL = 3, LOADS = 4 };
    int32_t ways = (int32_t)(b >> 16), sets = (int32_t)(c & 0xffff);
    uint32_t kind = d & 31, level = d >> 5 & 7;
    if (!(b & 1) || (kind != DATA && kind != ALL && kind != LOADS)) /* bit 0: pages of 4 KiB */
        return;
    if (level == 1)
        m->near_pages = ways * sets;
    if (level == 2) {
        m->page_sets = sets;
        m->page_ways = ways;
    }
}

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

void qn__processor_pages(qn_machine *m)
{
    enum { MOST_LEAVES = 16 };
    uint32_t a, b, c, d, second;
    if (__get_cpuid(0x80000005, &a, &b, &c, &d) && b &&
        __get_cpuid(0x80000006, &a, &second, &c, &d)) {
        qn__pages_of_amd(b, second, m);
        return;
    }
    for (uint32_t leaf = 0; leaf < MOST_LEAVES && __get_cpuid_count(0x18, leaf, &a, &b, &c, &d);
         leaf++)
        qn__pages_of_intel(b, c, d, m);
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
