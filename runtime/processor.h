/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processor.h: what the library asks the processor that it runs on. Each kind of processor has a
 * file of its own, of which the others compile nothing: processor_x86.c, processor_aarch64.c, and
 * processor_other.c for those that no code is generated for. Control bits of floats are in
 * ir/fpu.h.
 */
#ifndef QN_RUNTIME_PROCESSOR_H
#define QN_RUNTIME_PROCESSOR_H

#include "jit/jit.h"

#include <elf.h>

#if defined(__x86_64__)
#define QN_PROCESSOR_KIND "x86-64"
enum { QN_PROCESSOR_ELF = EM_X86_64 };
#elif defined(__aarch64__)
#define QN_PROCESSOR_KIND "AArch64"
enum { QN_PROCESSOR_ELF = EM_AARCH64 };
#else
#define QN_PROCESSOR_KIND "this processor"
enum { QN_PROCESSOR_ELF = EM_NONE };
#endif

/** Best instruction set of this machine, QN_ISA_...; 0: it has none that code is generated for. */
int qn__isa_best(void);
/** The name of the lowest one that it would need. */
const char *qn__isa_needed(void);

enum { QN_PROCESSOR_BYTES = 40 };
/** Maker, family and model of the processor: what LLVM tunes for. */
void qn__processor_name(char out[QN_PROCESSOR_BYTES]);

/** Which row of numbers counts for the core, QN_CORE_*. */
int qn__processor_core(void);
/** That of x86, by eax of leaf 1 of a processor of Intel. */
int qn__core_of_intel(uint32_t signature);

/** Lets another thread of the core run, in a loop that waits for it. */
static inline void qn__relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
