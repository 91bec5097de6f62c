/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TAP: the record of a machine: read from a folder like that of Linux, rounded to classes, and as
 * text. test_facts has it in the key, test_plan what plans take from it.
 */
#define _GNU_SOURCE
#include "runtime/context.h"
#include "tests/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/quern-machine-XXXXXX";

/* ---------------------------------------------------------------- reading */

/** A cache as Linux describes it; NULL: no such file. */
typedef struct described {
    const char *level, *type, *size, *ways, *line;
} described;

static void write_word(const char *folder, const char *name, const char *word)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = word ? fopen(path, "w") : NULL;
    if (f) {
        fprintf(f, "%s\n", word);
        fclose(f);
    }
}

/** A folder of a processor with n caches. */
static void describe(const char *name, const described *cache, int n, char *folder, size_t bytes)
{
    char path[280];
    snprintf(folder, bytes, "%s/%s", root, name);
    mkdir(folder, 0700);
    snprintf(path, sizeof path, "%s/cache", folder);
    mkdir(path, 0700);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/cache/index%d", folder, i);
        mkdir(path, 0700);
        write_word(path, "level", cache[i].level);
        write_word(path, "type", cache[i].type);
        write_word(path, "size", cache[i].size);
        write_word(path, "ways_of_associativity", cache[i].ways);
        write_word(path, "coherency_line_size", cache[i].line);
    }
}

static bool is_cache(const qn_cache_level *c, int64_t bytes, int32_t ways, int32_t line)
{
    return c->bytes == bytes && c->ways == ways && c->line == line;
}

static void test_read(void)
{
    char folder[200];
    const described zen5[4] = {{"1", "Data", "48K", "12", "64"},
                               {"1", "Instruction", "32K", "8", "64"},
                               {"2", "Unified", "1024K", "16", "64"},
                               {"3", "Unified", "32768K", "16", "64"}};
    describe("zen5", zen5, 4, folder, sizeof folder);
    qn_machine m = qn__machine_read(folder);
    tap_ok(is_cache(&m.cache[QN_CACHE_FIRST], 48 << 10, 12, 64), "48 KiB in 12 ways");
    tap_ok(is_cache(&m.cache[QN_CACHE_SECOND], 1 << 20, 16, 64) &&
               is_cache(&m.cache[QN_CACHE_LAST], 32 << 20, 16, 64),
           "and the larger ones");
    qn__machine_classify(&m, QN_ISA_V4);
    tap_ok(is_cache(&m.cache[QN_CACHE_FIRST], 48 << 10, 12, 64), "48 KiB are a class of their own");
    tap_is_int(m.page_bytes, 4096, "what the system does not say comes from the row");

    const described swapped[2] = {{"1", "Instruction", "32K", "8", "64"},
                                  {"1", "Data", "48K", "12", "64"}};
    describe("swapped", swapped, 2, folder, sizeof folder);
    m = qn__machine_read(folder);
    tap_ok(is_cache(&m.cache[QN_CACHE_FIRST], 48 << 10, 12, 64),
           "that of instructions does not count, wherever it stands");

    const described two[2] = {{"1", "Data", "64K", "4", "64"}, {"2", "Unified", "2M", "16", "64"}};
    describe("two", two, 2, folder, sizeof folder);
    m = qn__machine_read(folder);
    tap_is_int(m.cache[QN_CACHE_LAST].bytes, 2 << 20,
               "without a third cache memory lies behind the second");

    const described odd[3] = {{"1", "Data", "32X", "eight", "63"},
                              {"9", "Unified", "4K", "1", "64"},
                              {"2", "Unified", "512K", "0", "100"}};
    describe("odd", odd, 3, folder, sizeof folder);
    m = qn__machine_read(folder);
    qn__machine_classify(&m, QN_ISA_V4);
    const qn_machine *usual = qn__machine_of_core(QN_ISA_V4, m.core);
    tap_ok(m.cache[QN_CACHE_SECOND].ways == usual->cache[QN_CACHE_SECOND].ways &&
               m.cache[0].line == 64,
           "ways and lines that make no sense are the usual ones");

    m = qn__machine_read("/nowhere");
    qn__machine_classify(&m, QN_ISA_V4);
    tap_ok(m.cache[0].bytes >= QN_LEAST_CACHE_BYTES && m.cache[0].ways > 0,
           "without a folder there are caches, too");
}

static void test_cores(void)
{
    tap_ok(qn__core_of_intel(0x806f8) == QN_CORE_GOLDEN_COVE &&
               qn__core_of_intel(0xc06f2) == QN_CORE_GOLDEN_COVE,
           "Sapphire and Emerald Rapids, by their cpuid, have the row of Golden Cove");
    tap_ok(qn__core_of_intel(0x50657) == QN_CORE_USUAL &&
               qn__core_of_intel(0xa10f11) == QN_CORE_USUAL,
           "other models, and these models of other families, are usual");
    qn_machine m = {.core = QN_CORE_GOLDEN_COVE, .cache = {{64 << 10, 16, 64}}};
    qn__machine_classify(&m, QN_ISA_V4);
    tap_ok(m.core == QN_CORE_GOLDEN_COVE && m.window == 512 && m.port_bytes == 64,
           "what the system does not say comes from the row of the core");
    tap_ok(is_cache(&m.cache[QN_CACHE_FIRST], 64 << 10, 16, 64), "what it says counts");
    m.cache[QN_CACHE_LAST].bytes = 300 << 20;
    qn__machine_classify(&m, QN_ISA_V4);
    tap_is_int(m.cache[QN_CACHE_LAST].bytes, 32 << 20,
               "of the last cache of a socket one core keeps a part");
    qn_text text = {0};
    qn__machine_print(&m, &text);
    qn__text_bytes(&text, "", 1);
    tap_contains(text.data, "machine: core Golden Cove\n", "a core as text");
    qn__text_release(&text);
    qn__machine_classify(&m, QN_ISA_NEON);
    tap_is_int(m.window, qn__machine_usual(QN_ISA_NEON)->window,
               "another instruction set has no such core");
}

/* ---------------------------------------------------------------- classes */

static void test_classes(void)
{
    int n_wrong = 0, n_far = 0;
    for (int64_t n = 4; n < INT64_C(1) << 33; n += n / 7 + 1) {
        int64_t size = qn__size_of_class(qn__size_class(n));
        n_wrong += size > n || qn__size_class(size) != qn__size_class(n);
        n_far += size * 5 < n * 4;
    }
    tap_is_int(n_wrong, 0, "a class begins with its smallest size");
    tap_is_int(n_far, 0, "which is at least four fifths of the others");
    qn_machine a = {.multiprocessors = 132,
                    .threads = 2048,
                    .shared_bytes = 228 << 10,
                    .registers = 65536},
               b = a;
    qn__machine_classify(&a, QN_ISA_SM90);
    tap_ok(a.multiprocessors == 128 && a.threads == 2048 && a.shared_bytes == 228 << 10,
           "an H100 has about 128 multiprocessors");
    b.multiprocessors = 1 << 30;
    b.threads = -1;
    b.shared_bytes = 1;
    qn__machine_classify(&b, QN_ISA_SM90);
    tap_ok(b.multiprocessors == QN_MOST_MULTIPROCESSORS && b.threads == 2048 &&
               b.shared_bytes == 228 << 10,
           "what no GPU has is bounded, or usual");
    a = (qn_machine){.cache = {{INT64_MAX, -1, 7}, {1, 1 << 20, 0}}};
    qn__machine_classify(&a, QN_ISA_V3);
    tap_ok(a.cache[0].bytes == QN_MOST_CACHE_BYTES && a.cache[0].ways == 8 &&
               a.cache[1].bytes == 1 << 20 && a.cache[1].ways == 8,
           "... and what no processor has");
}

/* ---------------------------------------------------------------- text */

static void test_text(void)
{
    qn_text text = {0};
    qn__machine_print(qn__machine_usual(QN_ISA_V4), &text);
    qn__text_bytes(&text, "", 1);
    tap_contains(text.data,
                 "first cache 32 KiB in 8 ways, second cache 1 MiB in 8 ways, last cache 32 MiB in "
                 "16 ways, lines of 64 bytes",
                 "caches as text");
    tap_contains(text.data, "pages of 4096 bytes", "pages as text");
    qn__text_release(&text);
    text = (qn_text){0};
    qn__machine_print(qn__machine_usual(QN_ISA_SM90), &text);
    qn__text_bytes(&text, "", 1);
    tap_contains(text.data, "128 multiprocessors, each with 2048 threads in warps of 32",
                 "a GPU as text");
    qn__text_release(&text);
}

static void remove_folder(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", root);
    if (system(command))
        printf("# %s is left\n", root);
}

int main(void)
{
    if (!mkdtemp(root))
        return 1;
    test_read();
    test_cores();
    test_classes();
    test_text();
    remove_folder();
    return tap_done();
}
