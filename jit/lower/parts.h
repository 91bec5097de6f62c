/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h: what the files of the provider that know LLVM show one another. Everything of one
 * compile belongs to one thread and to one LLVMContext made for it; what is shared between threads
 * is the target initialisation and the one LLJIT of the orc loader, each behind its own lock.
 */
#ifndef QN_JIT_LLVM_PARTS_H
#define QN_JIT_LLVM_PARTS_H

#include "jit/schedule/budget.h"
#include "jit/lower/debug.h"
#include "jit/provider.h"
#include "jit/schedule/shape.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

/* ---------------------------------------------------------------- what was emitted (lower/count.c)
 */

typedef struct qn_emitted {
    int64_t units, largest_block; /* of cost.h, in all blocks and in one */
    int64_t instructions, most_in_block;
    int64_t lanes; /* of gathers and scatters: counted as instructions, too */
} qn_emitted;
qn_emitted qn__llvm_count(LLVMValueRef function, const qn_target *target, bool is_fast);
/** What fast selection does badly becomes what it does well. Scalar selects of bytes, bools and
 * floats become those of wider integers, for which there is an instruction: for others LLVM splits
 * the block. Conversions go through signed integers of 32 or 64 bits: others are selected slowly,
 * with all that stands before them. */
void qn__llvm_suit_fast(LLVMValueRef function, LLVMBuilderRef b);
/** Truth values of lanes are integers between blocks, one register of them. Without registers of
 * masks LLVM 19 would narrow them where they leave a block, and widen them in each other one. */
void qn__llvm_carry_bools(LLVMValueRef function, LLVMBuilderRef b, const qn_target *target);
/** Whether code is so large that passes are left out whose work grows faster than it. */
bool qn__is_large(const qn_emitted *n);

/* ---------------------------------------------------------------- lowering (lower/lower.c) */

struct qn_hooks; /* lower/hooks.h */

/** Where functions go, and what is said of them. */
typedef struct qn_lowering {
    LLVMModuleRef module; /* has its target and data layout */
    const struct qn_hooks *hooks;
    qn_debug *debug;      /* NULL, or where lines for debuggers go */
    int64_t most;         /* see qn__budget_units */
    qn_blob_info *info;   /* results: what a launch must know, */
    qn_descent *descent;  /* how far the plan stepped down, */
    qn_emitted *emitted;  /* what was emitted */
} qn_lowering;
/** What is lowered. */
typedef struct qn_lowered {
    const qn_kernel *k;
    const qn_facts *f;
    const qn_block *block;
    const qn_schedule *schedule;   /* verified; NULL of a GPU, */
    const qn_analysis *scalar;     /* of the kernel as the schedule refers to it */
    const qn_grid *grid;           /* of a GPU: how threads walk the domain; else NULL */
} qn_lowered;
/** How a function is emitted. */
typedef struct qn_function_how {
    int64_t budget; /* of units */
    bool is_fast;   /* instructions are selected fast */
    int step;       /* of a grid */
} qn_function_how;

/** Adds a function, of a grid the kernel of one step; and counts it. Fewer than 0 instructions: it
 * could not be lowered. A function that is beyond the budget is not complete. *block_bytes becomes
 * the most shared memory that a function asks for. */
qn_emitted qn__lower_function(const qn_lowering *to, const qn_lowered *x,
                              const qn_function_how *how, const char *symbol, int32_t *block_bytes);
struct qn_piece;
/** The symbol of part n of a piece that has `symbol`. */
enum { QN_PART_SYMBOL_BYTES = QN_DEBUG_NAME_BYTES + 16 };
void qn__part_symbol(const char *symbol, int n, char out[QN_PART_SYMBOL_BYTES]);
/** Adds the function of a piece with parts, whose functions are there. scratch_word: where the
 * memory that a part needs stands in the range, -1: none does. */
qn_emitted qn__lower_calls(const qn_lowering *to, const struct qn_piece *piece, int scratch_word,
                           const char *symbol);

/* ---------------------------------------------------------------- within a budget (emit/fit.c) */

struct qn_planned;
/** Adds the function `symbol` of type qn_entry, and fills *to->info but for the entry. What is
 * beyond the budget is emitted under a plan of less code, which stands in *p then; that of a given
 * schedule is not. Beyond all budgets it is QN_ERR_LIMIT. */
qn_status qn__llvm_lower(const qn_lowering *to, const qn_kernel *k, const qn_facts *f,
                         struct qn_planned *p, const char *symbol, qn_error *err);
/** qn__llvm_lower for a piece that has parts: a function for each of them that has none of its own
 * or is distributed, and `symbol`, which calls them. QN_ERR_LIMIT also where a part would need fast
 * instruction selection. */
qn_status qn__llvm_lower_piece(const qn_lowering *to, struct qn_piece *p, const char *symbol,
                               qn_error *err);

/* ---------------------------------------------------------------- emission (emit/emit.c) */

/** Initialises the targets once per process. Any thread. */
void qn__llvm_start(void);

/** What a thread keeps for one instruction set. */
typedef struct qn_generator {
    const qn_target *row;
    const struct qn_hooks *hooks;
    int ptx;
    bool is_portable; /* tuned for no processor of its own */
    bool is_fast;     /* fast instruction selection */
    LLVMTargetMachineRef machine;
    struct qn_passes *passes; /* to object bytes or PTX; NULL until they are needed */
    const char *tune;         /* the processor that code is tuned for */
} qn_generator;

/** The generator for the facts' instruction set, kept in *thread_state, which qn__llvm_thread_end
 * frees. `is_fast`: one that selects instructions fast. */
qn_status qn__llvm_generator(void **thread_state, const qn_facts *f, bool is_fast,
                             qn_generator **out, qn_error *err);
void qn__llvm_thread_end(void **thread_state);

/** First error that LLVM reported through the context; emission succeeds all the same, so ask. */
typedef struct qn_diagnostics {
    bool has_error;
    char text[QN_MESSAGE_BYTES];
} qn_diagnostics;
/** A context of its own for one compile. `d` must live as long. */
LLVMContextRef qn__llvm_context(qn_diagnostics *d, bool keep_names);
/** An empty module for the machine. */
LLVMModuleRef qn__llvm_module(LLVMContextRef context, const qn_generator *m);
/** Attributes that every function of a blob has: no unwinding, no library calls, tuned for the
 * processor of the machine. */
void qn__llvm_finish_functions(LLVMModuleRef module, const qn_generator *m);
/** Verifies the module; a failure is QN_ERR_CODEGEN with LLVM's first words. */
qn_status qn__llvm_verify(LLVMModuleRef module, qn_error *err);
/** Object bytes, or PTX, of a module, which is used up; they are good until the machine makes the
 * next ones. */
qn_status qn__llvm_code(qn_generator *m, LLVMModuleRef module, bool is_large,
                        const qn_diagnostics *d, const char **bytes, size_t *n, qn_error *err);
/** Assembly text of a module, which is used up. The caller disposes *out. */
qn_status qn__llvm_assembly(const qn_generator *m, LLVMModuleRef module, bool is_large,
                            const qn_diagnostics *d, LLVMMemoryBufferRef *out, qn_error *err);

/** Between these calls a fatal error of LLVM on this thread calls r->fatal, which does not return.
 */
void qn__llvm_guard_begin(const qn_request *r);
void qn__llvm_guard_end(void);

/* ---------------------------------------------------------------- the end of the process
 * (emit/exit.c) */

/** A request begins, which exit() waits for; false if it must not, as the process ends. */
bool qn__exit_enter(void);
/** A request has ended, or its thread never goes on. */
void qn__exit_leave(void);
/** LLVM is loaded. */
void qn__exit_begin(void);

/* ---------------------------------------------------------------- the orc loader (emit/orc.c) */

/** A name for the entry of one object; objects in one LLJIT need different ones. */
void qn__orc_symbol(char *buffer, size_t buffer_bytes);
/** Loads an object (copied) and looks its entry up. *handle is for qn__orc_free. Any thread. */
qn_status qn__orc_load(const void *object, size_t n, const char *symbol, qn_entry *entry,
                       void **handle, qn_error *err);
/** Drops the code. NULL is ignored. */
void qn__orc_free(void *handle);

#endif
