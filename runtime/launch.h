/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h: the steps of a launch, each in its own file:
 *
 * check.c       options and arguments are what the kernel wants
 * overlap.c     which arguments share elements, and what that means
 * describe.c    the exact description of arguments, for the cache
 * policy.c      which facts become constants, and why a new version is made
 * trial.c       shapes that come back: whether their exact version is worth it
 * explain.c     the same in words, for whoever asks
 * specialize.c  code for checked arguments: engines, versions, fallbacks
 * limit.c       options of callers of other versions, flags and time limits that cancel
 * execute.c     running code or the interpreter, on one thread or several
 * expand.c      arguments with index lists or members, as arguments without
 * printing.c    launches whose lines the host wants
 * launch.c      all of them in order, and the short way for arguments that are known
 * prepare.c     the same with the arguments bound once
 */
#ifndef QN_RUNTIME_LAUNCH_H
#define QN_RUNTIME_LAUNCH_H

#include "ir/printed.h"
#include "runtime/context.h"

/** A launch on its way. */
typedef struct qn_launch_state {
    const char *who; /* the public function, for messages */
    qn_context *context;
    const qn_kernel *kernel;
    int n;
    const qn_arg *args;
    const qn_arg *given; /* the caller's; NULL: args. They differ where arguments have tables */
    qn_options options; /* executor and loader resolved; its plan is the one below */
    qn_plan_options plan;
    qn_domain domain;
    int64_t n_iterations; /* over all dimensions */
    bool is_ordered;
    bool takes_any_target; /* the code is wanted, not run: it may be for a GPU that is not here */
    bool shares_elements;  /* arguments have the same elements, harmlessly */
    bool may_have_code_later; /* it is interpreted for want of what may be there at the next launch
                               */
    bool is_provisional; /* what runs it is not the best version, which may be there at the next
                            launch */
    uint64_t n_changes;  /* of the cache when a provisional choice was made */
    uint64_t trial;      /* what the time of this launch is for (trial.h); 0: it is not taken */
    uint32_t constants[2]; /* scalars that the policy made constants of the version that runs */
    qn_code *usual;        /* of qn_prepare: that version without them, with a reference, or NULL */
    bool is_in_turns;    /* two versions run in turns: the choice is for this launch */
    int64_t hot_ns; /* of a version that is made as launches have taken so long; 0: it is not */
    int hot_kind;   /* of that trial */
    bool is_prepared;    /* of qn_prepare or qn_specialize: it is chosen once */
    qn_stream *stream;     /* executor QN_CUDA; borrowed */
    qn_stops run_stops; /* qn_prepare: of the runs */
    const qn_print_buffer *printed; /* where the interpreter prints, or NULL */
    qn_error overlap; /* why, if it is ordered */
} qn_launch_state;

/** The kernel and view of argument i as the caller gave them; of an added argument, a list, those
 * of the launch. */
static inline const qn_kernel *qn__given_kernel(const qn_launch_state *l, int i)
{
    return i < qn__n_given(l->kernel) && l->kernel->expansion ? l->kernel->expansion->given
                                                              : l->kernel;
}
static inline const qn_view *qn__given_view(const qn_launch_state *l, int i)
{
    return (l->given && i < qn__n_given(l->kernel) ? l->given : l->args)[i].view;
}

/** A launch whose arguments have tables, as one without (expand.c). It is too large for the stack
 * of a small thread. */
typedef struct qn_expanded {
    qn_kernel *kernel; /* with a reference */
    int n, n_views;
    qn_arg arg[QN_MAX_PARAMS];
    uint64_t
        owned; /* bit i: the view of argument i has a reference: a table in memory of the GPU */
    qn_stream *stream; /* of a launch on a GPU; borrowed */
    qn_view view[];    /* of arguments with tables and of the tables; borrows, but for `owned` */
} qn_expanded;
/** Whether a view argument has a table. False also if the arguments are not what the kernel takes:
 * then the checks of the launch say so. */
bool qn__has_tables(const qn_kernel *k, int n, const qn_arg *args);
/** Expands for a launch with options `o`; the arguments must outlive *out, which
 * qn__expanded_release frees. */
qn_status qn__expand(qn_context *c, const char *who, const qn_kernel *k, int n, const qn_arg *args,
                     const qn_options *o, qn_expanded **out, qn_error *err);
/** After the launch. Work that was given keeps what it uses of the tables of `args`. */
void qn__expanded_release(const char *who, const qn_arg *args, qn_expanded *e);
/** Of a state with its context and arguments: sets the kernel, k or that of late atomics
 * (qn__late_atomics), and expands tables. It is without calls and prints where such a kernel
 * exists, but with them where it is debugged, or prints to l->printed, and has no tables; what it
 * was given then stands in l->given. If that is QN_OK, qn__state_close ends it. */
qn_status qn__state_open(qn_launch_state *l, const qn_kernel *k, const qn_options *o,
                         qn_expanded **e, qn_error *err);
void qn__state_close(const qn_launch_state *l, qn_expanded *e);

/** Options of a caller of another version, in the structs of this one. */
typedef struct qn_taken_options {
    qn_options options;
    qn_plan_options plan;
} qn_taken_options;
/** Whether options are structs of this version; all functions below expect such, or NULL. */
static inline bool qn__are_of_this_version(const qn_options *o)
{
    return !o || (o->bytes == sizeof *o && (!o->plan || o->plan->bytes == sizeof *o->plan));
}

/** What a checked launch looks for: iterations in order do not race. */
static inline int qn__debug_of(const qn_launch_state *l)
{
    return l->is_ordered ? l->options.debug & ~QN_DEBUG_RACES : l->options.debug;
}

/** The word that a launch looks at. */
static inline const volatile int32_t *qn__cancel_of(const qn_options *o)
{
    return o && o->cancel ? o->cancel : &qn__never;
}

/** A call of the host: its options in structs of this version, and while its time limit runs
 * (limit.c). */
typedef struct qn_limit {
    qn_taken_options taken;
    qn_deadline deadline;
    qn_context *context;            /* NULL: no time limit runs */
    qn_stops stops; /* as the caller gave them */
} qn_limit;
/** Begins it: *o become options that look at one word, and have no time limit of their own.
 * QN_ERR_CANCELLED if the flag is set; only if it succeeds, qn__limit_end ends it, with the status
 * of the call, and returns what the call returns. */
qn_status qn__limit_begin(const char *who, qn_context *c, const qn_options **o, qn_limit *x,
                          qn_error *err);
qn_status qn__limit_end(const char *who, qn_limit *x, qn_status status, qn_error *err);

/** Does every check of a launch and fills the rest of the state from `who`, context, kernel, n,
 * args (check.c). */
qn_status qn__launch_check(qn_launch_state *l, const qn_options *o, qn_error *err);

/** The kernel to launch for k: with the parameters declared atomic whose arguments claim it
 * (check.c). Borrowed, for the life of k. */
qn_status qn__late_atomics(const qn_kernel *k, int n, const qn_arg *args, const qn_kernel **out,
                           qn_error *err);

/** How the accesses of a kernel use its parameters (overlap.c). */
typedef struct qn_usage {
    bool has_plain_store[QN_MAX_PARAMS];
    uint32_t tuple[QN_MAX_PARAMS]; /* an access whose index values all accesses of this parameter
                                      have; 0: no access, UINT32_MAX: they differ */
} qn_usage;
void qn__usage_collect(const qn_kernel *k, qn_usage *out);
/** Whether two views that have the same elements, in the same order, may be run as if they had not:
 * no iteration sees what another one writes. */
bool qn__may_be_same(const qn_kernel *k, const qn_usage *usage, int a, int b);
/** Whether the overlap of two arguments matters: one is written, or one claims to overlap nothing.
 */
bool qn__overlap_matters(const qn_kernel *k, const qn_arg *args, int a, int b);
/** Decides overlap of checked arguments: fine, iteration order needed (is_ordered), or
 * QN_ERR_OVERLAP. */
qn_status qn__overlap_check(qn_launch_state *l, qn_error *err);
/** Bytes that a checked view touches, counted from its data. */
qn_span qn__view_span(const qn_view *v);

/** Describes arguments; false if they are not what the kernel takes, or too long to keep
 * (describe.c). */
bool qn__describe(const qn_kernel *k, int n, const qn_arg *args, const qn_options *o,
                  const uint32_t scalars[2], qn_description *out);
/** Whether that would give these words; stops at the first argument that differs. */
bool qn__is_described(const qn_kernel *k, int n, const qn_arg *args, const qn_options *o,
                      const uint32_t scalars[2], const uint64_t *word, uint32_t n_words);

/** Compares arguments with those of the version ordered last and notes what varies (policy.c). The
 * lock is held. */
void qn__policy_observe(qn_known_kernel *known, const qn_arg *args);
/** Compares scalars with those of the launches before: one that has changed is no candidate for a
 * constant any more, and descriptions are made without its value. The lock is held. Launches that
 * hit are compared only after qn__policy_compare_scalars, which puts the values into descriptions.
 */
void qn__policy_scalars(qn_cache *c, qn_known_kernel *known, const qn_arg *args);
void qn__policy_compare_scalars(qn_cache *c, qn_known_kernel *known);
/** The scalars that never changed and of which pins say nothing; whether there are any. The lock is
 * held. */
bool qn__policy_constants(const qn_known_kernel *known, const qn_options *o, uint32_t out[2]);
/** Appends their names. */
void qn__policy_print_scalars(const qn_kernel *k, const uint32_t constants[2], qn_text *out);
/** Whether a further version should leave varying extents dynamic; fills the policy, whose arrays
 * are known's. */
bool qn__policy_wants_dynamic(const qn_known_kernel *known, qn_policy *out);
/** Appends why a version is made: "extent 1 of view b: 640, was 512". */
void qn__policy_reason(const qn_known_kernel *known, const qn_arg *args, qn_text *out);
/** Appends "; exact", or how far a version is not. */
void qn__policy_print_kind(const qn_facts *f, bool is_dynamic, qn_text *out);
/** Appends what code relies on of numbers that are dynamic, but that they are small: `before`, and
 * "extent 0 of view x a multiple of 64". Whether that is anything. */
bool qn__policy_print_known(const qn_kernel *k, const qn_facts *f, const char *before,
                            qn_text *out);
/** Notes that a version is ordered, and its arguments. */
void qn__policy_ordered(qn_known_kernel *known, const qn_arg *args, bool is_exact);
/** Notes that no compile of an exact version that was ordered began: it is not counted. */
void qn__policy_not_begun(qn_known_kernel *known);

/** Code for a checked launch: *out has a reference, or is NULL if the interpreter is to run it
 * (specialize.c). */
qn_status qn__specialize(qn_launch_state *l, qn_code **out, qn_error *err);
/** A function without code, for the interpreter. */
qn_status qn__specialize_nothing(qn_launch_state *l, qn_code **out, qn_error *err);
/** Writes the wanted stages of a function to files (dump.c). */
void qn__dump(qn_context *c, const qn_code *f);

/** One of so many launches on a GPU is timed, while their times are only added up. */
enum { QN_GPU_SAMPLE = 16 };

/** Something to run. */
typedef struct qn_task {
    qn_context *context;
    const qn_kernel *kernel;
    int n;
    const qn_arg *args;
    const qn_code *function; /* NULL, or without entry: the interpreter */
    const qn_domain *domain;
    int64_t n_iterations;
    int executor, max_threads, checks;
    int debug;                      /* of QN_DEBUG_...: what the interpreter looks for */
    const qn_print_buffer *printed; /* where the interpreter prints, or NULL */
    const volatile int32_t *cancel; /* the word that says when it is to end, never NULL */
    qn_stream *stream; /* executor QN_CUDA */
    qn_call *call;     /* the prepared call that this is, or NULL */
    uint64_t trial;    /* what its time is for (trial.h); 0: it is not taken */
    int n_timed;       /* of so many launches on a GPU, if it is */
} qn_task;

/** Threads that may work on a launch with this option, 0: as many as there are (execute.c). */
int qn__count_threads(qn_context *c, int max_threads);
/** Fills the range argument of generated code for the whole domain, but for the scratch memory
 * (execute.c). */
void qn__range_fill(const qn_kernel *k, const qn_blob_info *info, const qn_domain *domain,
                    int64_t *range);
/** Runs a task; `slots` and `range` as generated code takes them, for the whole domain. */
qn_status qn__task_run(const qn_task *t, const int64_t *slots, const int64_t *range, qn_error *err);
/** Gives a task to its stream (cuda/launch.c). */
qn_status qn__cuda_run(const qn_task *t, const int64_t *slots, qn_error *err);
/** Whether the memory of all views can be used by a stream (cuda/launch.c). */
qn_status qn__cuda_check_views(qn_stream *s, const char *who, int n, const qn_arg *args,
                               qn_error *err);
/** Loads code on the GPU of a stream (cuda/module.c). */
qn_status qn__cuda_load(qn_stream *s, const char *who, qn_code *f, qn_error *err);
/** Bytes of scratch memory on the GPU that a task needs (cuda/launch.c). */
qn_status qn__cuda_scratch(const qn_task *t, int64_t *bytes, qn_error *err);
/** Gives a task's kernels, and nothing else, to a stream that is captured; `fault` is the device
 * address of its record, 0 if it needs none (cuda/launch.c). */
qn_status qn__cuda_capture(const qn_task *t, const int64_t *slots, qn_stream *s, uint64_t fault,
                           uint64_t scratch, qn_error *err);
/** qn_launch of a kernel that prints, with the option `print`, of a caller of this version
 * (printing.c). */
qn_status qn__launch_printing(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                              const qn_options *o, qn_error *err);
/** qn_prepare of a kernel that prints, with the option `print`, of a caller of this version. */
qn_status qn__prepare_printing(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                               const qn_options *o, qn_call **out, qn_error *err);
/** What a call that prints has: before and after a run, and at its end; NULL is ignored there. */
typedef struct qn_print_call qn_print_call;
void qn__print_call_begin(qn_print_call *p);
qn_status qn__print_call_end(qn_context *c, qn_print_call *p, qn_status status, qn_error *err);
void qn__print_call_release(qn_context *c, qn_print_call *p);
/** Makes a call one that prints; takes p over. */
void qn__call_print(qn_call *call, qn_print_call *p);
bool qn__call_prints(const qn_call *call);
/** A launch by the interpreter that looks for what option debug says and prints to `printed`, if
 * that is not NULL. It takes the long way, and nothing of it is remembered (launch.c). */
qn_status qn__launch_once(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                          const qn_options *o, const qn_print_buffer *printed, qn_error *err);
/** References of a prepared call (prepare.c). */
void qn__call_retain(qn_call *call);
void qn__call_drop(void *call);
/** What a prepared call runs, and its argument block; `function` is NULL if that is nothing. */
const qn_task *qn__call_task(const qn_call *call, const int64_t **slots);
/** Before work of a call with tables is given to a stream, see qn__cuda_tables_renew. */
qn_status qn__call_renew(const qn_call *call, const char *who, qn_stream *s, qn_error *err);
/** The label of a list that each run copies, NULL if there is none. */
const char *qn__call_copied_list(const qn_call *call);
/** Reports a fault and counts it. */
qn_status qn__task_fault(const qn_task *t, const qn_fault *fault, qn_error *err);

/** What was read of the machine that a launch runs on: that of its stream, or the processor
 * (check.c). */
const qn_machine *qn__machine_of(const qn_launch_state *l);

#endif
