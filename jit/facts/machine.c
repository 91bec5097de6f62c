/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.c: the rows of machine.h, and classes of what was read. Knows neither the system nor
 * CUDA.
 */
#include "jit/jit.h"

#include <inttypes.h>

/* Caches as most processors of servers have them; pages, latencies, window and rates of Zen 4
 * (AMD, Software Optimization Guide, 57647); of memory the rate of one core with DDR5.
 * Without AVX-512 the window is that of Zen 3 (AMD, Software Optimization Guide, 56665). */
#define PROCESSOR(held)                                                                            \
    {                                                                                              \
        .cache = {{32 << 10, 8, 64}, {1 << 20, 8, 64}, {32 << 20, 16, 64}},                        \
        .cache_cycles = {5, 14, 50}, .bytes_a_cycle = {32, 32, 8}, .most_last_bytes = 64 << 20,    \
        .page_bytes = 4096, .latency = 4, .operations = 2, .window = (held), .memory_cycles = 256, \
        .instructions = 6, .loads = 2, .stores = 1, .load_bytes = 64, .store_bytes = 32,           \
        .lane_moves = 2, .port_bytes = 32, .wrong_guess = 13, .gather_slots = 3, .misses = 24,     \
        .ports = 3, .next_lines = 4,                                                               \
    }
/* Intel 64 and IA-32 Architectures Optimization Reference Manual, Golden Cove; what it does not say
 * (the way to memory, rates beyond the second cache) was measured on one of Emerald Rapids. */
#define GOLDEN_COVE                                                                                \
    {                                                                                              \
        .core = QN_CORE_GOLDEN_COVE,                                                               \
        .cache = {{48 << 10, 12, 64}, {2 << 20, 16, 64}, {32 << 20, 16, 64}},                      \
        .cache_cycles = {5, 15, 70}, .bytes_a_cycle = {48, 12, 6}, .most_last_bytes = 32 << 20,    \
        .page_bytes = 4096, .latency = 4, .operations = 2, .window = 512, .memory_cycles = 350,    \
        .instructions = 6, .loads = 3, .stores = 2, .load_bytes = 128, .store_bytes = 64,          \
        .lane_moves = 1, .port_bytes = 64, .wrong_guess = 17, .gather_slots = 1, .misses = 16,     \
        .ports = 2, .next_lines = 4, .fetches_masked = 1,                                          \
    }
/* Arm Neoverse N1 Core Technical Reference Manual and Software Optimization Guide; caches of a
 * server. What they do not say (memory, lines that are waited for, rates between levels) is as
 * above. Nothing of it is measured. */
#define NEOVERSE                                                                                   \
    {                                                                                              \
        .cache = {{64 << 10, 4, 64}, {1 << 20, 8, 64}, {32 << 20, 16, 64}},                        \
        .cache_cycles = {4, 11, 50}, .bytes_a_cycle = {32, 32, 8}, .most_last_bytes = 64 << 20,    \
        .page_bytes = 4096, .latency = 4, .operations = 2, .window = 128, .memory_cycles = 256,    \
        .instructions = 4, .loads = 2, .stores = 1, .load_bytes = 32, .store_bytes = 16,           \
        .lane_moves = 2, .port_bytes = 16, .wrong_guess = 11, .gather_slots = 1, .misses = 24,     \
        .ports = 2, .next_lines = 4,                                                               \
    }
/* CUDA C++ Programming Guide, technical specifications per compute capability; a large GPU. The way
 * to memory: data sheets, and the microbenchmarks of Luo et al., Benchmarking and Dissecting the
 * Nvidia Hopper GPU Architecture, 2024. */
#define GPU(most_threads, shared_kib, system_kib, near_kib, far_mib, rate)                         \
    {                                                                                              \
        .multiprocessors = 128, .threads = (most_threads), .shared_bytes = (shared_kib) << 10,     \
        .registers = 65536, .block_shared_bytes = 48 << 10, .system_bytes = (system_kib) << 10,    \
        .warp = 32, .blocks = 16, .adders = 12, .near_bytes = (near_kib) << 10,                    \
        .far_bytes = (far_mib) << 20, .near_rate = 128, .far_rate = 48, .memory_rate = (rate),     \
        .near_cycles = 35, .far_cycles = 260, .far_memory_cycles = 600, .torn_cycles = 7,          \
        .launch_cycles = 3000                                                                      \
    }

static const struct {
    int isa;
    qn_machine machine;
} rows[] = {
    {QN_ISA_V3, PROCESSOR(256)},
    {QN_ISA_V4, PROCESSOR(128)},
    {QN_ISA_V4_BYTES, PROCESSOR(128)},
    {QN_ISA_NEON, NEOVERSE},
    {QN_ISA_SM70, GPU(2048, 96, 0, 128, 6, 8)},
    {QN_ISA_SM75, GPU(1024, 64, 0, 96, 4, 6)},
    {QN_ISA_SM80, GPU(2048, 164, 1, 192, 40, 10)},
    {QN_ISA_SM86, GPU(1536, 100, 1, 128, 6, 6)},
    {QN_ISA_SM89, GPU(1536, 100, 1, 128, 72, 4)},
    {QN_ISA_SM90, GPU(2048, 228, 1, 256, 50, 15)},
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

const qn_machine *qn__machine_usual(int isa)
{
    int best = 0;
    for (int i = 0; i < N_ROWS; i++)
        if (rows[i].isa <= isa)
            best = i;
    return &rows[best].machine;
}

const qn_machine *qn__machine_of_core(int isa, int core)
{
    static const qn_machine golden_cove = GOLDEN_COVE;
    bool is_x86 = qn__target_row(isa)->family == QN_TARGET_X86;
    return is_x86 && core == QN_CORE_GOLDEN_COVE ? &golden_cove : qn__machine_usual(isa);
}

/* ---------------------------------------------------------------- classes */

int32_t qn__size_class(int64_t n)
{
    int32_t log2 = 0;
    while (n >> log2 > 1)
        log2++;
    int64_t quarter = log2 >= 2 ? n >> (log2 - 2) & 3 : 0;
    return 4 * log2 + (int32_t)quarter;
}

int64_t qn__size_of_class(int32_t size_class)
{
    int32_t log2 = size_class / 4, quarter = size_class % 4;
    return log2 >= 2 ? (INT64_C(4) + quarter) << (log2 - 2) : INT64_C(1) << log2;
}

static int64_t classed(int64_t n, int64_t least, int64_t most, int64_t usual)
{
    if (n < least)
        return usual;
    return qn__size_of_class(qn__size_class(n < most ? n : most));
}

static int32_t power_of_two(int32_t n, int32_t least, int32_t most, int32_t usual)
{
    return n < least || n > most || (n & (n - 1)) ? usual : n;
}

/** A cache whose bytes are known has ways; without them those of the usual one. */
static void classify_cache(qn_cache_level *c, const qn_cache_level *usual)
{
    c->bytes = classed(c->bytes, QN_LEAST_CACHE_BYTES, QN_MOST_CACHE_BYTES, usual->bytes);
    c->ways = c->ways < 1 || c->ways > QN_MOST_WAYS ? usual->ways : c->ways;
    c->line = power_of_two(c->line, QN_LEAST_LINE_BYTES, QN_MOST_LINE_BYTES, usual->line);
}

void qn__machine_classify(qn_machine *m, int isa)
{
    const qn_machine read = *m, *usual = qn__machine_of_core(isa, read.core);
    const int64_t last = read.cache[QN_CACHE_LAST].bytes;
    *m = *usual;
    for (int n = 0; n < QN_N_CACHES && usual->cache[n].bytes; n++) {
        m->cache[n] = read.cache[n];
        classify_cache(&m->cache[n], &usual->cache[n]);
        m->cache[n].line = m->cache[0].line; /* levels exchange lines */
    }
    if (last > usual->most_last_bytes && usual->most_last_bytes)
        m->cache[QN_CACHE_LAST].bytes = usual->most_last_bytes;
    if (!usual->multiprocessors)
        return;
    m->multiprocessors =
        (int32_t)classed(read.multiprocessors, 1, QN_MOST_MULTIPROCESSORS, usual->multiprocessors);
    m->threads = (int32_t)classed(read.threads, 256, QN_MOST_RESIDENT, usual->threads);
    m->shared_bytes =
        read.shared_bytes < usual->block_shared_bytes || read.shared_bytes > QN_MOST_SHARED_BYTES
            ? usual->shared_bytes
            : read.shared_bytes & ~1023;
    m->registers = (int32_t)classed(read.registers, 1 << 14, 1 << 20, usual->registers);
    m->far_bytes =
        classed(read.far_bytes, QN_LEAST_CACHE_BYTES, QN_MOST_CACHE_BYTES, usual->far_bytes);
    m->memory_rate = (int32_t)classed(read.memory_rate, 1, QN_MOST_MEMORY_RATE, usual->memory_rate);
}

/* ---------------------------------------------------------------- text */

static void print_size(int64_t bytes, qn_text *out)
{
    bool is_large = bytes >= 1 << 20 && bytes % (1 << 20) == 0;
    qn__text_add(out, "%" PRId64 " %s", is_large ? bytes >> 20 : bytes >> 10,
                 is_large ? "MiB" : "KiB");
}

void qn__machine_print(const qn_machine *m, qn_text *out)
{
    static const char *const names[QN_N_CACHES] = {"first", "second", "last"};
    static const char *const cores[QN_N_CORES] = {NULL, "Golden Cove"};
    for (int n = 0; n < QN_N_CACHES && m->cache[n].bytes; n++) {
        qn__text_add(out, "%s %s cache ", n ? "," : "machine:", names[n]);
        print_size(m->cache[n].bytes, out);
        qn__text_add(out, " in %" PRId32 " ways", m->cache[n].ways);
    }
    if (m->cache[0].bytes)
        qn__text_add(out, ", lines of %" PRId32 " bytes\n", m->cache[0].line);
    if (m->page_bytes)
        qn__text_add(out,
                     "machine: pages of %" PRId32 " bytes; latency %" PRId32 ", %" PRId32
                     " operations a cycle, window %" PRId32 ", memory %" PRId32 " cycles away\n",
                     m->page_bytes, m->latency, m->operations, m->window, m->memory_cycles);
    if (cores[m->core])
        qn__text_add(out, "machine: core %s\n", cores[m->core]);
    if (m->multiprocessors)
        qn__text_add(
            out,
            "machine: %" PRId32 " multiprocessors, each with %" PRId32
            " threads in warps of %" PRId32 ", %" PRId32 " blocks, %" PRId32 " registers, %" PRId32
            " KiB of shared memory, %" PRId32 " for a block; second-level cache %" PRId64
            " MiB, memory %" PRId32 " bytes a cycle\n",
            m->multiprocessors, m->threads, m->warp, m->blocks, m->registers, m->shared_bytes >> 10,
            m->block_shared_bytes >> 10, m->far_bytes >> 20, m->memory_rate);
}
