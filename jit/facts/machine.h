/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h: the record of a processor: every number about one that plans and code depend on.
 * runtime/ reads from the system what that says; the rest, and all of portable code, comes from a
 * row for each instruction set. Numbers that were read are rounded down to classes, which stand in
 * the key: one key gives one plan, and processors that hardly differ share code. What is no number
 * of a processor, but a rule that was measured, stands where it is used.
 */
#ifndef QN_JIT_MACHINE_H
#define QN_JIT_MACHINE_H

#include <stdint.h>

/** A cache of data, as much of it as one core reaches. */
typedef struct qn_cache_level {
    int64_t bytes;
    int32_t ways, line; /* lines of a set; bytes of a line */
} qn_cache_level;

/** Kinds of cores that have a row of their own; what no row is for is as usual. */
enum { QN_CORE_USUAL, QN_CORE_GOLDEN_COVE, QN_N_CORES };

/** First and second: of a core; last: what lies before memory. */
enum { QN_CACHE_FIRST = 0, QN_CACHE_SECOND = 1, QN_CACHE_LAST = 2, QN_N_CACHES };

/** 0: not known. The numbers of a processor are 0 in a record of a GPU, and the other way around.
 */
typedef struct qn_machine {
    /* of a processor, read from the system */
    qn_cache_level cache[QN_N_CACHES];
    int32_t core; /* whose row counts, by the family and model that the processor says */
    /* of a processor, from the row: the system does not say them */
    int64_t most_last_bytes; /* of the last cache: what one core keeps there beside others */
    int32_t page_bytes;
    int32_t latency;    /* cycles of a sum or fma of floats */
    int32_t operations; /* of vectors that begin in a cycle */
    int32_t window; /* instructions from the oldest that waits to the newest that is looked at */
    int32_t memory_cycles; /* about the way to memory */
    int32_t instructions;  /* that begin in a cycle */
    int32_t loads, stores; /* that begin in a cycle */
    int32_t load_bytes, store_bytes; /* at most, in a cycle */
    int32_t lane_moves; /* single lanes that get into or out of vectors in a cycle */
    int32_t ports;      /* for operations and lanes: fewer than both where some take either */
    int32_t port_bytes; /* of a vector that a port for arithmetic takes in a cycle */
    int32_t wrong_guess;   /* cycles that a branch costs which was guessed wrong */
    int32_t gather_slots; /* for each that the table of costs has of a gather or scatter */
    int32_t misses;        /* lines that one core waits for at once */
    int32_t next_lines;    /* that are fetched with one, whatever is loaded next */
    int32_t fetches_masked; /* 1: what loads under masks read in order is fetched ahead, too */
    int32_t cache_cycles[QN_N_CACHES]; /* of a load that finds its line there */
    /* bytes in a cycle that one core moves into a level from the one behind it, or back */
    int32_t bytes_a_cycle[QN_N_CACHES];
    /* of a GPU, read from the driver */
    int32_t multiprocessors;
    int32_t threads;      /* that a multiprocessor holds */
    int32_t shared_bytes; /* of a multiprocessor */
    int32_t registers;    /* of 32 bits, of a multiprocessor */
    int64_t far_bytes;    /* of the second-level cache, which all multiprocessors share */
    int32_t memory_rate;  /* bytes of memory that a multiprocessor has as its part in a cycle */
    /* of a GPU, from the row */
    int32_t block_shared_bytes; /* what a block gets without asking for more */
    int32_t system_bytes; /* shared memory of a block that is not its own */
    int32_t warp;
    int32_t blocks; /* that a multiprocessor holds */
    int32_t near_bytes; /* of its first-level cache, shared memory included */
    /* bytes in a cycle to or from one multiprocessor, of its first-level cache and of the second
     * level; and cycles until a load has its value from there, and from memory */
    int32_t near_rate, far_rate;
    int32_t near_cycles, far_cycles, far_memory_cycles;
    int32_t torn_cycles;   /* of a store for each sector in memory of which it writes a part */
    int32_t launch_cycles; /* from one launch to the next of an empty kernel */
    int32_t adders; /* warps whose every addition waits for the one before, and which then take all
                       turns of a multiprocessor, what they load counted in */
} qn_machine;

/** The row of an instruction set, and that of a kind of core where there is one of both. */
const qn_machine *qn__machine_usual(int isa);
const qn_machine *qn__machine_of_core(int isa, int core);
/** Every number that is read becomes that of its class; where none is known, or it makes no sense,
 * that of the row. */
void qn__machine_classify(qn_machine *m, int isa);

/** What is believed of a system. */
#define QN_LEAST_CACHE_BYTES (INT64_C(1) << 12)
#define QN_MOST_CACHE_BYTES (INT64_C(1) << 32)
enum { QN_MOST_WAYS = 64, QN_LEAST_LINE_BYTES = 32, QN_MOST_LINE_BYTES = 128 };
enum { QN_MOST_MULTIPROCESSORS = 4096, QN_MOST_RESIDENT = 1 << 14, QN_MOST_SHARED_BYTES = 1 << 20 };
enum { QN_MOST_MEMORY_RATE = 256 };

/** Classes of sizes: four for each power of two. That of n > 0, and the smallest size of a class.
 */
int32_t qn__size_class(int64_t n);
int64_t qn__size_of_class(int32_t size_class);

/** Bytes between lines that share a set of a cache. */
static inline int64_t qn__way_bytes(const qn_cache_level *c)
{
    return c->bytes / c->ways;
}

#endif
