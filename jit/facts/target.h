/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h: what a target is to those who make plans and code for it: numbers and properties in a
 * row of a table, one row for each instruction set. What a target emits of its own are functions,
 * which stand in jit/target/ (jit/lower/hooks.h). Nobody asks which target it is: a property that
 * code depends on is a column here, with its reason.
 */
#ifndef QN_JIT_TARGET_H
#define QN_JIT_TARGET_H

#include <stdbool.h>
#include <stdint.h>

/** Families of targets that share their functions. */
enum { QN_TARGET_X86 = 0, QN_TARGET_NVPTX = 1, QN_TARGET_AARCH64 = 2, QN_N_TARGETS };

/** More bytes than an element has. */
enum { QN_NONE_MASKED = 16 };

typedef struct qn_target {
    int32_t isa;        /* QN_ISA_... */
    int32_t family;     /* QN_TARGET_... */
    const char *name;   /* of the instruction set */
    const char *triple; /* of LLVM, as are */
    const char *cpu, *features; /* NULL: the name; none */
    int32_t elf_machine;        /* e_machine of its objects; 0: it has none */

    /* registers */
    int32_t vector_bytes; /* of the widest register */
    int32_t vectors;      /* registers of that width */
    bool has_masks; /* registers of masks: a masked access costs little more than a whole one */
    int32_t least_masked; /* bytes of the smallest element that is loaded and stored under masks;
                             QN_NONE_MASKED: there is no such element */
    int32_t least_shuffled; /* bytes of the smallest element that few shuffles take to any lane of a
                               register */
    int32_t permuted[4];    /* registers from which a permutation takes elements of 1, 2, 4 and 8
                               bytes faster than a gather does */
    bool permutes_pairs;    /* one instruction permutes two registers side by side */
    bool has_gathers; /* that are faster than a load for each lane, from memory that is in the first
                         cache */
    bool has_strided_loads; /* a load under a mask costs so little that lanes a few elements apart
                               are taken out of whole vectors */
    bool truncates;         /* one instruction cuts the lanes of integers to fewer bits */
    bool converts_unsigned; /* one instruction converts an unsigned scalar to a float */
    bool rounds_twice; /* LLVM 19 converts vectors of 64-bit integers to f32 by way of f64, which
                          rounds twice: their lanes are converted one by one */
    bool narrows_integers;  /* integers are computed in the fewest bits that hold them
                               (jit/analysis/narrow.c): more fit a vector */
    int32_t costs; /* which of its family's tables of costs (jit/target/costs.c) */

    /* how instructions run */
    bool has_grid; /* each iteration is that of a thread of a grid, which runs scalar code */
    bool branches_diverge; /* threads that take different branches wait for one another, so that
                              neither side is free */
    bool waits_for_loads;  /* no instruction runs before an earlier one: loads are emitted ahead of
                              their use, several at once */
    bool counts_in_32;   /* integers of 32 bits are twice as fast as those of 64: trips of loops are
                            counted in them */
    bool has_slow_bools; /* LLVM selects chains of single bits without bound: operations of scalar
                            bools are done in bytes */
    bool keeps_signs;    /* neg, abs and copysign of floats keep the bits of a NaN */
    bool fuses_signs;    /* LLVM 19 makes one instruction of neg behind a scalar fma, whose zero has
                            the other sign: the sign of scalars is changed in integers */
    bool has_read_only;  /* loads of memory that nothing writes are marked: they go another way */
    bool has_f64_sums;   /* an atomic sum of f64 is an instruction */
    bool has_relaxed_volatile; /* volatile loads and stores are relaxed atomic ones; LLVM 19 selects
                                  none that are called so */
    bool looks;                /* loops look whether the launch was cancelled */

    /* how code is made */
    bool is_text; /* the code is assembly text, which its driver assembles; compiling it has no
                     budget */
    int32_t ptx;  /* the lowest PTX ISA version (times 10) that has the instruction set; 0: none */
} qn_target;

/** The row of an instruction set; of one that is not known, that of the next lower one. Never NULL.
 */
const qn_target *qn__target_row(int isa);
/** Row n of the table, in the order of `isa`; NULL behind the last. */
const qn_target *qn__target_at(int n);
/** The next lower instruction set of the same family; 0 if there is none. */
int qn__isa_below(int isa);
/** Whether what has the instruction set `have`, or none if it is 0, runs code for `wanted`. */
bool qn__isa_runs(int have, int wanted);

#endif
