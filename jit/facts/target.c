/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.c: the table of target.h. Knows neither LLVM nor CUDA.
 */
#include "jit/jit.h"

#include <elf.h>

/* Columns that all rows of a family share. A GPU's widest access moves 16 bytes; it has no vectors,
 * but its row is as capable as that of AVX-512 where code asks about lanes. */
#define X86                                                                                        \
    .family = QN_TARGET_X86, .triple = "x86_64-unknown-linux-gnu", .elf_machine = EM_X86_64,       \
    .narrows_integers = true, .has_slow_bools = true, .keeps_signs = true, .looks = true
/* What all instruction sets with AVX-512 have. */
#define V4                                                                                         \
    X86, .cpu = "x86-64-v4", .vector_bytes = 64, .vectors = 32, .has_masks = true,                 \
         .least_masked = 1, .least_shuffled = 1, .permutes_pairs = true, .has_gathers = true,      \
         .has_strided_loads = true, .truncates = true, .converts_unsigned = true
#define AARCH64                                                                                    \
    .family = QN_TARGET_AARCH64, .triple = "aarch64-unknown-linux-gnu", .cpu = "generic",          \
    .elf_machine = EM_AARCH64, .narrows_integers = true, .has_slow_bools = true,                   \
    .keeps_signs = true, .looks = true
#define NVPTX(number, lowest_ptx)                                                                  \
    {                                                                                              \
        .isa = QN_ISA_SM##number, .family = QN_TARGET_NVPTX, .name = "sm_" #number,                \
        .triple = "nvptx64-nvidia-cuda", .vector_bytes = 16, .has_masks = true, .least_masked = 1, \
        .least_shuffled = 1, .has_gathers = true, .has_strided_loads = true, .truncates = true,    \
        .converts_unsigned = true, .costs = 1, .has_grid = true, .branches_diverge = true,         \
        .waits_for_loads = true, .counts_in_32 = true, .has_read_only = true,                      \
        .has_f64_sums = true, .has_relaxed_volatile = true, .is_text = true, .ptx = (lowest_ptx)   \
    }

/* From the lowest instruction set of a family to the highest. */
static const qn_target rows[] = {
    {X86, .isa = QN_ISA_V3, .name = "x86-64-v3", .vector_bytes = 32, .vectors = 16,
     .least_masked = 4, .least_shuffled = 4, .permuted = {0, 0, 4, 0}},
    {V4, .isa = QN_ISA_V4, .name = "x86-64-v4", .permuted = {0, 4, 16, 4}, .costs = 1},
    {V4, .isa = QN_ISA_V4_BYTES, .name = "x86-64-v4-bytes",
     .features = "+avx512vbmi,+avx512vbmi2,+avx512bitalg,+avx512vpopcntdq,+gfni",
     .permuted = {4, 4, 16, 4}, .costs = 2},
    {AARCH64, .isa = QN_ISA_NEON, .name = "armv8-a+lse", .features = "+lse", .vector_bytes = 16,
     .vectors = 32, .least_masked = QN_NONE_MASKED, .least_shuffled = 1, .truncates = true,
     .converts_unsigned = true, .rounds_twice = true, .fuses_signs = true},
    NVPTX(70, 63), /* CUDA C++ Programming Guide, release notes of the PTX ISA */
    NVPTX(75, 63),
    NVPTX(80, 70),
    NVPTX(86, 71),
    NVPTX(89, 78),
    NVPTX(90, 78),
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

const qn_target *qn__target_row(int isa)
{
    int best = 0;
    for (int i = 0; i < N_ROWS; i++)
        if (rows[i].isa <= isa)
            best = i;
    return &rows[best];
}

const qn_target *qn__target_at(int n)
{
    return n >= 0 && n < N_ROWS ? &rows[n] : NULL;
}

int qn__isa_below(int isa)
{
    const qn_target *row = qn__target_row(isa), *below = row - 1;
    return row > rows && below->family == row->family ? below->isa : 0;
}

bool qn__isa_runs(int have, int wanted)
{
    const qn_target *a = qn__target_row(have), *b = qn__target_row(wanted);
    return have >= wanted && a->family == b->family;
}

int qn__isa_of_gpu(int capability)
{
    const qn_target *best = qn__target_row(capability);
    return best->family == QN_TARGET_NVPTX ? best->isa : 0;
}

int qn__ptx_of_isa(int isa)
{
    const qn_target *row = qn__target_row(isa);
    return row->isa == isa ? row->ptx : 0;
}
