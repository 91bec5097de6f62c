/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.c: what the system says of the processor: bytes, ways and lines of its caches in files of
 * Linux, the kind of its core by itself. What is not said is 0 and counts as usual
 * (jit/facts/machine.c).
 */
#include "runtime/context.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/** What the file `what` of cache `index` says, in one word; false if nothing. */
static bool read_word(const char *folder, int index, const char *what, char word[16])
{
    char path[256];
    int n = snprintf(path, sizeof path, "%.180s/cache/index%d/%s", folder, index, what);
    FILE *file = n > 0 && n < (int)sizeof path ? fopen(path, "re") : NULL;
    bool is_read = file && fscanf(file, "%15s", word) == 1;
    if (file)
        fclose(file);
    return is_read;
}

/** A number of a file; 0 if there is none. */
static int32_t read_number(const char *folder, int index, const char *what)
{
    char word[16], end;
    long n;
    bool is_one = read_word(folder, index, what, word) && sscanf(word, "%ld%c", &n, &end) == 1;
    return is_one && n > 0 && n < INT32_MAX ? (int32_t)n : 0;
}

/** The bytes of a cache of data; 0 if it is none, or not known. */
static int64_t read_bytes(const char *folder, int index)
{
    char word[16], unit = 0;
    long size;
    if (!read_word(folder, index, "type", word) || strcmp(word, "Instruction") == 0)
        return 0;
    bool is_known =
        read_word(folder, index, "size", word) && sscanf(word, "%ld%c", &size, &unit) == 2;
    return is_known && (unit == 'K' || unit == 'M') && size > 0 && size < 1 << 30
               ? (int64_t)size << (unit == 'M' ? 20 : 10)
               : 0;
}

static void read_caches(const char *folder, qn_cache_level *cache)
{
    enum { MOST_INDICES = 8 };
    char word[16];
    for (int index = 0; index < MOST_INDICES && read_word(folder, index, "level", word); index++) {
        int32_t level = read_number(folder, index, "level");
        if (level < 1 || level > QN_N_CACHES || cache[level - 1].bytes)
            continue;
        cache[level - 1] =
            (qn_cache_level){.bytes = read_bytes(folder, index),
                             .ways = read_number(folder, index, "ways_of_associativity"),
                             .line = read_number(folder, index, "coherency_line_size")};
    }
}

/* ---------------------------------------------------------------- all */

qn_machine qn__machine_read(const char *folder)
{
    qn_machine m = {.cache = {{0}}};
    read_caches(folder, m.cache);
    m.core = qn__processor_core();
    /* sysconf adds up the last caches of a socket, of which one core reaches a part: it counts only
     * where there is no file */
    const int names[QN_N_CACHES] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                                    _SC_LEVEL3_CACHE_SIZE};
    bool has_files = m.cache[0].bytes > 0;
    for (int n = 0; n < QN_N_CACHES && !has_files; n++) {
        long bytes = sysconf(names[n]);
        m.cache[n].bytes = bytes > 0 ? bytes : 0;
    }
    if (!m.cache[QN_CACHE_LAST].bytes) /* what lies before memory is the second then */
        m.cache[QN_CACHE_LAST] = m.cache[QN_CACHE_SECOND];
    return m;
}
