/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compile.h: the compile threads of a context and the code generator that they load. The code
 * generator runs only on these threads, which have large stacks; whoever wants code waits, with a
 * limit of processor time and a larger one of time. A thread that does not come back is given up
 * and another one takes its place. While several of them are still inside, no code is generated. A
 * fatal error ends the use of the code generator in this context.
 */
#ifndef QN_RUNTIME_COMPILE_H
#define QN_RUNTIME_COMPILE_H

#include "jit/provider.h"

#include <pthread.h>

enum { QN_COMPILE_THREADS = 4 };
enum { QN_PROVIDER_NONE = 0, QN_PROVIDER_LOADING, QN_PROVIDER_READY, QN_PROVIDER_FAILED };

struct qn_job;
struct qn_worker;

/** The file of the LLVM that makes code; all zero if it is not known. An update gives it another
 * size or time. */
enum { QN_MAKER_PATH_BYTES = 256 };
typedef struct qn_maker {
    char path[QN_MAKER_PATH_BYTES];
    int64_t bytes, modified_ns;
} qn_maker;
/** Looks at the file at a path, which is kept if it is short enough (runtime/provider.c). */
void qn__maker_look(const char *path, qn_maker *out);

typedef struct qn_compiler {
    pthread_cond_t work,
        progress; /* a job was queued or the end is near; a job or the provider changed state */
    struct qn_job *first, **last; /* queue */
    struct qn_worker *workers;
    int n_workers, n_idle;
    int n_strays; /* threads that were given up and have not come back from the code generator */
    int n_guests; /* threads of the host inside the code generator */
    int64_t most_units; /* of a compile, see qn__budget_units; 0 but in tests */
    bool stop;
    bool is_late; /* the code generator is still being loaded, and nobody waits for that any more */
    int provider; /* QN_PROVIDER_... */
    qn_provider_function function;
    qn_maker maker; /* as it was when the code generator was loaded */
    qn_error error; /* status not 0: the engine is unusable, and why */
} qn_compiler;

/** What a compile gives. Released by qn__compiled_release. */
typedef struct qn_compiled {
    qn_text code, plan, llvm, assembly, schedule, estimate;
    qn_text object; /* for GDB, if the context tells it of code */
    qn_blob_info info;
    qn_entry orc_entry;
    void *orc_handle;
    qn_descent descent; /* what the budget of compiles took away */
    double milliseconds, planning_milliseconds; /* of a compile in all, and of these for plans */
    bool is_retry; /* set by the caller: with the cheapest plan, as the compile before took too long
                    */
} qn_compiled;
void qn__compiled_release(qn_compiled *c);

bool qn__compiler_init(qn_compiler *c);
/** Ends and joins the threads. Nobody else uses the context. */
void qn__compiler_release(qn_context *c);
/** Whether a thread is inside the code generator for this context. The lock is held. */
bool qn__compiler_is_inside(const qn_context *c);
/** After fork, in the child, with the lock held: the threads are gone. */
void qn__compiler_forked(qn_context *c);
/** The engine is unusable here: a thread that a fork left behind was inside the code generator,
 * whose locks it may hold for ever. */
void qn__compiler_lose(qn_context *c);

/** Loads the code generator in the background. */
void qn__compile_start(qn_context *c);
/** Compiles and waits. *out is all-zero but for `is_retry`. `texts`: QN_DUMP_.... The lock is not
 * held. QN_ERR_COMPILE_TIMEOUT: this kernel with this key takes too long; QN_ERR_CANCELLED:
 * `cancel`, which may be NULL, was set; QN_ERR_BUSY and QN_ERR_MEMORY: code cannot be had now, but
 * maybe later. */
qn_status qn__compile(qn_context *c, const qn_kernel *k, const qn_text *key, int loader,
                      uint32_t texts, const volatile int32_t *cancel, qn_compiled *out,
                      qn_error *err);
/** Whether a compile that took too long may be begun again: not while other ones have not come to
 * an end, as each may take a thread for ever. The lock is held. */
bool qn__compile_may_retry(const struct qn_context *c);
/** Waits for news of the compile threads, most_ms at most, -1 for ever, or until it is time to look
 * at `cancel`, which may be NULL. Called with the lock held. */
void qn__compile_wait(struct qn_context *c, const volatile int32_t *cancel, double most_ms);
/** Drops code of the orc loader. */
void qn__compile_free(qn_context *c, void *orc_handle);

/** Opens the code generator and asks it to start (runtime/provider.c). `path` and `maker` may be
 * NULL. On failure the message lists the paths tried. */
qn_status qn__provider_open(const char *path, qn_provider_function *out, qn_maker *maker,
                            qn_error *err);

#endif
