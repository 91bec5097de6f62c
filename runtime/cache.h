/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h: what a context knows of kernels it has met, in two levels, both bounded by bytes.
 *
 * (1) entries: the exact description of some arguments -> domain, byte ranges and code. A hit needs
 * nothing else. (2) functions: kernel text, key and loader -> code. Counted or pinned while they
 * run, so that running code is never freed.
 *
 * The caller holds the lock of the context, except where it says otherwise.
 */
#ifndef QN_RUNTIME_CACHE_H
#define QN_RUNTIME_CACHE_H

#include "jit/jit.h"
#include "runtime/arena.h"
#include "runtime/compile.h"
#include "runtime/trial.h"

enum { QN_DESCRIPTION_WORDS = 512 }; /* longest description that is kept */
enum { QN_BUILDING = 0, QN_READY = 1, QN_FAILED = 2 };

/** Code for facts. Immutable once it is ready, but for `last_use` and the texts made on demand. */
struct qn_code {
    _Atomic int64_t references;
    qn_context *context;
    qn_kernel *kernel;
    int state;
    int loader;
    uint64_t hash;
    qn_text key;
    qn_facts facts;
    qn_entry entry; /* NULL: the interpreter runs it */
    qn_blob_info info;
    qn_blob blob;
    void *orc_handle;
    void *announced; /* to GDB, or NULL */
    qn_text tuned_key;   /* the key with what tuning chose, or empty; compiles take it (choice.h) */
    qn_text tuned;       /* what tuning chose, as text; empty: it is not known */
    qn_text reason;      /* why it is made, and what it is, once that is known */
    double milliseconds; /* that making or finding it took */
    qn_text plan, llvm, assembly, schedule, estimate;
    qn_text ptx; /* zero-terminated, the zero counted; empty: x86 */
    bool may_fault;                       /* PTX: a launch needs a fault record */
    _Atomic(struct qn_gpu_code *) on_gpu; /* PTX: where it is loaded; added to under the lock */
    qn_text cubin;                        /* PTX, assembled for this compute capability; likewise */
    int cubin_capability;
    qn_error error; /* of a failed build */
    int64_t bytes, code_bytes; /* as they are counted in the cache; 0: not yet */
    uint64_t last_use;
    bool is_cached;
    bool is_on_trial; /* made for a shape that came back: it goes if it is not faster */
    bool is_retry; /* code of the cheapest plan, as the compile before took too long */
    qn_code *next; /* in a bucket */
};

/** The key that the code of a function is made of. */
static inline const qn_text *qn__key_of_code(const qn_code *f)
{
    return f->tuned_key.n ? &f->tuned_key : &f->key;
}

/** Description of arguments, word by word. */
typedef struct qn_description {
    uint64_t hash;
    uint32_t n;
    uint64_t word[QN_DESCRIPTION_WORDS];
} qn_description;

/** A function for arguments without or with an overlap that needs iteration order; NULL and ready:
 * the interpreter. */
typedef struct qn_choice {
    bool is_ready, may_pin;
    bool is_provisional; /* a better version may come */
    qn_code *function; /* borrowed from level 2 */
    uint64_t trial; /* that is not decided: launches are timed for it; 0: they are not */
    uint32_t n_hits; /* with such a trial, of a version for a GPU */
} qn_choice;

struct qn_known_kernel;

/** Two arguments whose overlap matters. */
typedef struct qn_pair {
    uint8_t a, b;
} qn_pair;

/** Bytes [low, high) that a view touches, counted from its data. */
typedef struct qn_span {
    int64_t low, high;
} qn_span;

typedef struct qn_known_args {
    struct qn_known_args *next; /* in a bucket */
    struct qn_known_args *next_of_kernel;
    struct qn_known_kernel *kernel;
    uint64_t hash;
    uint32_t n_words, n_pairs;
    bool has_members; /* of a MultiView among the pairs: byte ranges do not tell */
    int64_t bytes;
    int64_t n_iterations;
    qn_domain domain;
    qn_choice choice[2]; /* by is_ordered */
    uint64_t *word;      /* these three stand behind the struct */
    qn_span *span;       /* [n_params] */
    qn_pair *pair;
} qn_known_args;

/** Masks of a policy: of the extents of each parameter, then of the strides. */
enum { QN_POLICY_MASKS = 2 * QN_MAX_PARAMS };

/** What a policy learned, in memory of a launch. */
typedef struct qn_learned {
    uint32_t varied[QN_POLICY_MASKS];
    qn_common common[QN_MAX_PARAMS];
} qn_learned;

/** What was learned of a kernel. Holds a reference to it, so that its address names it. */
typedef struct qn_known_kernel {
    struct qn_known_kernel *next; /* in a bucket */
    qn_kernel *kernel;
    uint32_t scalars[2];  /* parameters whose values are in descriptions: `deciding`, and, if
                             launches are compared, `fixed` */
    uint32_t deciding[2]; /* that decide the domain, or of which code is pinned to know something */
    uint32_t fixed[2];    /* scalar parameters that were not seen to change */
    bool are_compared;    /* the values of all launches are */
    bool has_values;
    uint64_t (*value)[2]; /* [n_params]: of these, the bits */
    qn_known_args *args;
    qn_known_args *recent; /* of them, or NULL: the one to compare first */
    uint64_t last_use;
    /* policy */
    int n_exact;
    bool has_last;        /* below: of the version ordered last */
    bool has_odd_changes; /* a lower bound varied */
    uint32_t varied[QN_POLICY_MASKS]; /* extents that varied, by dimension, then strides */
    qn_layout *last;                /* [n_params], without digit tables */
    bool has_common, has_relied;
    qn_common *common; /* [n_params]: what all values that were met had in common */
    qn_common *relied; /* [n_params]: the same when a dynamic version was ordered last */
    qn_trials trials;
} qn_known_kernel;

/** Holds a function for one thread while it runs; NULL: free. Taken under the lock, given up
 * without it. */
typedef _Atomic(qn_code *) qn_pin;

enum { QN_PINS = 32 };
enum { QN_ARG_BUCKETS = 4096, QN_KERNEL_BUCKETS = 512, QN_FUNCTION_BUCKETS = 1024 };

typedef struct qn_cache {
    qn_known_args *args[QN_ARG_BUCKETS];
    qn_known_kernel *kernels[QN_KERNEL_BUCKETS];
    qn_code *functions[QN_FUNCTION_BUCKETS];
    qn_code *dropped; /* removed, their references to be given up without the lock */
    qn_pin pin[QN_PINS];
    uint64_t clock;
    uint64_t n_changes; /* of versions: what was found before the last one may be outdated */
    int64_t n_functions, n_args;
    int64_t bytes, known_bytes, arg_bytes, code_bytes; /* of everything, of kernels with entries, of
                                                          entries, of code */
} qn_cache;

/** The record of a kernel, or NULL if there is none. */
qn_known_kernel *qn__cache_kernel(qn_cache *c, const qn_kernel *k);
/** The record of a kernel, made if there is none; NULL without memory. */
qn_known_kernel *qn__cache_learn(qn_cache *c, const qn_kernel *k, const qn_domain *domain);
/** Forgets the descriptions of a kernel: their launches take the long way once more. */
void qn__cache_forget_args(qn_cache *c, qn_known_kernel *known);
/** The entry of a description, or NULL. */
qn_known_args *qn__cache_args(qn_cache *c, const qn_known_kernel *known, const qn_description *d);
/** Room for the shapes of a kernel, made if need be; NULL without memory. */
qn_trial *qn__cache_trials(qn_cache *c, qn_known_kernel *known);
/** A new entry with room for spans and pairs; NULL without memory. */
qn_known_args *qn__cache_add_args(qn_cache *c, qn_known_kernel *known, const qn_description *d,
                                  uint32_t n_pairs);
qn_code *qn__cache_function(const qn_cache *c, const qn_kernel *k, const qn_text *key,
                                int loader);
/** The versions of a kernel, or of others of its text, are others now: provisional choices are made
 * again. */
void qn__cache_look_again(qn_cache *c, const qn_kernel *k);
/** Adds a function that is being built; the cache holds a reference. */
void qn__cache_add_function(qn_cache *c, qn_code *f);
/** Counts the bytes of a function that is now ready, or is kept because it failed. */
void qn__cache_weigh(qn_cache *c, qn_code *f);
/** Counts what a function has got since: texts, a cubin. Nothing happens for one that is not in the
 * cache. */
void qn__cache_grown(qn_cache *c, qn_code *f);
/** Removes a function and its place in all entries; it waits in `dropped`. */
void qn__cache_remove(qn_cache *c, qn_code *f);
/** Removes what was not used longest until the bounds of everything and of code hold; `keep` stays.
 * Returns the number of functions removed. */
int qn__cache_evict(qn_cache *c, int64_t bound, int64_t code_bound, const qn_code *keep);
/** Takes one of the removed functions that is not pinned from `dropped`; NULL if there is none. */
qn_code *qn__cache_take_dropped(qn_cache *c);
/** Empties the cache; functions wait in `dropped`. */
void qn__cache_clear(qn_cache *c);

/** After fork, in the child: forgets builds that no thread goes on with. */
void qn__cache_forked(qn_cache *c);

/** Holds a function of the cache without counting, which costs more than the rest of a hit;
 * qn__cache_unpin ends that. NULL if all pins are in use. For short runs that call nothing of the
 * host: the cache cannot go before they end. */
qn_pin *qn__cache_pin(qn_cache *c, qn_code *f);
/** The lock need not be held. */
static inline void qn__cache_unpin(qn_pin *pin)
{
    atomic_store_explicit(pin, NULL, memory_order_release);
}
/** Gives up the references of removed functions, but for those that are pinned. Whether none is
 * left. The lock is not held. */
bool qn__cache_sweep(qn_context *c);
/** A new function that is being built, with one reference; NULL without memory. On success the key
 * is taken over. */
qn_code *qn__code_new(qn_context *c, const qn_kernel *k, qn_text *key, qn_facts *facts,
                              int loader);
void qn__code_retain(qn_code *f);
/** qn_code_release for qn__stream_keep. */
void qn__code_drop(void *f);

#endif
