/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isa.c: what the processor and the operating system offer: x86-64-v3, v4, or neither, by cpuid and
 * xgetbv; its name; the sizes of the caches.
 */
#define _GNU_SOURCE
#include "runtime/context.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/** Reads what the system says of cache `index` of processor 0, in one word; false if nothing. */
static bool read_word(int index, const char *what, char word[16])
{
    char path[80];
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, what);
    FILE *file = fopen(path, "re");
    bool is_read = file && fscanf(file, "%15s", word) == 1;
    if (file)
        fclose(file);
    return is_read;
}

enum { MOST_LEVELS = 4 };

/** Bytes of the data caches that processor 0 shares, by their level; 0 where nothing is known. */
static void read_sizes(long bytes[MOST_LEVELS])
{
    char word[16], unit;
    int level;
    long size;
    for (int index = 0; read_word(index, "level", word) && index < 2 * MOST_LEVELS; index++) {
        bool is_known = sscanf(word, "%d", &level) == 1 && level > 0 && level < MOST_LEVELS && bytes[level] == 0;
        if (is_known && read_word(index, "type", word) && strcmp(word, "Instruction") != 0 && read_word(index, "size", word) &&
            sscanf(word, "%ld%c", &size, &unit) == 2 && unit == 'K' && size > 0 && size < 1 << 30)
            bytes[level] = size * 1024;
    }
}

/** The log2 of a size, or of the other if the first is none; `unknown` if neither is. */
static int32_t class_of(long bytes, long otherwise, int32_t unknown)
{
    const long least = 1L << QN_LEAST_CACHE_CLASS;
    int32_t n = 0;
    bytes = bytes >= least ? bytes : otherwise;
    if (bytes < least)
        return unknown;
    while (bytes >>= 1)
        n++;
    return n < QN_MOST_CACHE_CLASS ? n : QN_MOST_CACHE_CLASS;
}

qn_caches qn__caches_read(void)
{
    enum { FIRST = 15, SECOND = 20, LAST = 25 };
    long bytes[MOST_LEVELS] = {0};
    read_sizes(bytes);
    int32_t second = class_of(bytes[2], sysconf(_SC_LEVEL2_CACHE_SIZE), 0);
    return (qn_caches){
        .first = class_of(bytes[1], sysconf(_SC_LEVEL1_DCACHE_SIZE), FIRST),
        .second = second ? second : SECOND,
        /* sysconf adds up the caches of a socket, of which one core reaches a part */
        .last = class_of(bytes[3], sysconf(_SC_LEVEL3_CACHE_SIZE), second ? second : LAST)};
}
