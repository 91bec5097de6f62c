/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute.c: running a task: generated code on the caller, or its split dimension in chunks over
 * threads, or the interpreter. Chunk borders are multiples of the granule counted from the begin;
 * each chunk has its own fault record, and the first in iteration order wins, so neither results
 * nor reports depend on the number of threads. With sequential dimensions the host steps them in
 * order and the chunks of one step are done before the next begins.
 */
#include "runtime/launch.h"
#include "runtime/thread.h"

#include <string.h>

enum { SCRATCH_ALIGN = 64 };
/** Parts of the second split dimension, at most. */
enum { MOST_PARTS = 32 };
/** Scratch, or results of blocks, that a launch on one thread keeps in its frame: taking memory
 * would be longer than what is done with so little. */
enum { FEW_BYTES = 8192 };

void qn__range_fill(const qn_kernel *k, const qn_blob_info *info, const qn_domain *domain,
                    int64_t *range)
{
    int split = info->split_dim;
    range[QN_ALONE_WORD] = 1;
    range[0] = split >= 0 ? domain->begin[split] : 0;
    range[1] = split >= 0 ? domain->end[split] : 0;
    for (int d = 0; d < k->n_dims; d++)
        if (info->split_merged >> d & 1)
            range[1] = range[0] + (range[1] - range[0]) * (domain->end[d] - domain->begin[d]);
    int at = 2;
    for (int d = 0; d < k->n_dims && at < 2 + 2 * info->n_sequential; d++) {
        if (qn__dim_kind(k, d) != QN_DIM_SEQUENTIAL)
            continue;
        range[at++] = domain->begin[d];
        range[at++] = domain->end[d];
    }
    if (info->second_granule) {
        range[at++] = domain->begin[info->second_dim];
        range[at++] = domain->end[info->second_dim];
    }
}

static void count_fault(const qn_task *t)
{
    qn__lock(t->context);
    t->context->counters.faults++;
    qn__unlock(t->context);
}

qn_status qn__task_fault(const qn_task *t, const qn_fault *fault, qn_error *err)
{
    if (fault->status == QN_ERR_CANCELLED)
        return qn__fail(err, QN_ERR_CANCELLED, "qn_launch: kernel \"%.60s\": cancelled",
                        t->kernel->name);
    count_fault(t);
    return qn__fault_report(t->kernel, fault, t->n, t->args, err);
}

/* ---------------------------------------------------------------- threads */

/** How a dimension is divided. */
typedef struct cut {
    int64_t granule, n_granules, n_parts;
} cut;

typedef struct chunks {
    qn_entry entry;
    const int64_t *slots;
    int64_t range[QN_RANGE_WORDS]; /* of the step: whole split dimensions */
    cut first, second;             /* the second has one part if there is none */
    int second_word;               /* its place in range */
    int64_t n_chunks;              /* those of both */
    qn_fault *fault; /* [n_chunks] */
    const volatile int32_t *cancel;
    void *scratch; /* n_places pieces, or NULL; each chunk takes one while it runs, the one that was
                      left last */
    int64_t scratch_room;  /* bytes of all pieces */
    int64_t scratch_bytes; /* of each piece */
    int scratch_word;      /* its place in range */
    bool is_shared;        /* scratch is one piece, results of blocks of points, and nobody's own */
    int64_t *place, n_places; /* free ones: place[0, n_places) */
    pthread_mutex_t lock;     /* of these */
} chunks;

/** First granule of part i: n_granules shared out as evenly as they go. */
static int64_t first_granule(const cut *c, int64_t i)
{
    int64_t each = c->n_granules / c->n_parts, rest = c->n_granules % c->n_parts;
    return i * each + (i < rest ? i : rest);
}

/** Makes of a whole range part i. */
static void cut_range(const cut *c, int64_t i, int64_t *range)
{
    int64_t begin = range[0];
    range[0] = begin + first_granule(c, i) * c->granule;
    if (i + 1 < c->n_parts)
        range[1] = begin + first_granule(c, i + 1) * c->granule;
}

/** Bytes of scratch for n chunks, aligned inside; 0 for none. */
static int64_t scratch_room(int64_t bytes, int64_t n)
{
    return bytes ? bytes * n + SCRATCH_ALIGN : 0;
}

/** Bytes for a launch whose threads divide the points of reduces: 8 for each result of a block. */
static int64_t results_bytes(const qn_blob_info *info, const int64_t *range)
{
    int64_t n = range[1] - range[0], blocks = n / QN_BLOCK_POINTS + (n % QN_BLOCK_POINTS != 0);
    return info->n_shared_reduces * blocks *
           (int64_t)sizeof(int64_t); /* 2^63 points of 31 reduces: below 2^60 */
}

/** Address of chunk i's. */
static int64_t scratch_at(const void *scratch, int64_t i, int64_t bytes)
{
    uintptr_t first = ((uintptr_t)scratch + SCRATCH_ALIGN - 1) & ~(uintptr_t)(SCRATCH_ALIGN - 1);
    return (int64_t)(first + (uintptr_t)(i * bytes));
}

static int64_t take_place(chunks *s)
{
    pthread_mutex_lock(&s->lock);
    int64_t place = s->place[--s->n_places];
    pthread_mutex_unlock(&s->lock);
    return place;
}

static void leave_place(chunks *s, int64_t place)
{
    pthread_mutex_lock(&s->lock);
    s->place[s->n_places++] = place;
    pthread_mutex_unlock(&s->lock);
}

static void run_chunk(void *arg, int64_t i)
{
    chunks *s = arg;
    if (qn__is_stopped(s->cancel)) {
        s->fault[i].status = QN_ERR_CANCELLED;
        return;
    }
    int64_t place = s->scratch && !s->is_shared ? take_place(s) : 0;
    int64_t range[QN_RANGE_WORDS];
    memcpy(range, s->range, sizeof range);
    cut_range(&s->first, i / s->second.n_parts, range);
    if (s->second.n_parts > 1)
        cut_range(&s->second, i % s->second.n_parts, range + s->second_word);
    if (s->scratch)
        range[s->scratch_word] = scratch_at(s->scratch, place, s->scratch_bytes);
    uint32_t host = qn__fpu_enter();
    s->entry(s->slots, range, &s->fault[i]);
    qn__fpu_leave(host);
    if (s->scratch && !s->is_shared)
        leave_place(s, place);
}

/** Which of two records counts: that of a chunk which was cancelled, or of the first failure. */
static bool is_before(const qn_fault *a, const qn_fault *b)
{
    if (a->status == QN_ERR_CANCELLED || b->status == QN_ERR_CANCELLED)
        return b->status != QN_ERR_CANCELLED;
    if (a->iteration == UINT64_MAX || b->iteration == UINT64_MAX)
        return a->iteration != UINT64_MAX;
    return a->iteration < b->iteration || (a->iteration == b->iteration && a->point < b->point);
}

/** Runs the chunks of one step and merges their faults into `first`. */
static void run_step(const qn_task *t, chunks *s, qn_fault *first)
{
    qn_context *c = t->context;
    for (int64_t i = 0; i < s->n_chunks; i++)
        qn__fault_clear(&s->fault[i], s->cancel);
    if (c->options.parallel_for && !atomic_load_explicit(&c->is_released, memory_order_relaxed))
        c->options.parallel_for(c->options.parallel_pool, s->n_chunks, t->max_threads, run_chunk,
                                s);
    else
        qn__pool_run(&c->pool, s->n_chunks, t->max_threads, run_chunk, s);
    for (int64_t i = 0; i < s->n_chunks; i++)
        if (is_before(&s->fault[i], first))
            *first = s->fault[i];
}

/** The reduces' values from the results of the chunks, and the rest of the body. */
static void run_rest(chunks *s, qn_fault *first)
{
    qn_fault fault;
    if (first->status == QN_ERR_CANCELLED)
        return; /* results of blocks are missing */
    qn__fault_clear(&fault, s->cancel);
    s->range[s->scratch_word] = scratch_at(s->scratch, 0, 0);
    s->range[QN_PHASES_WORD] = QN_PHASE_REST;
    uint32_t host = qn__fpu_enter();
    s->entry(s->slots, s->range, &fault);
    qn__fpu_leave(host);
    if (is_before(&fault, first))
        *first = fault;
}

/** Moves the sequential indices on, last fastest; false after the last step. `whole` has their full
 * ranges. */
static bool next_step(int n_sequential, const int64_t *whole, int64_t *range)
{
    for (int i = n_sequential - 1; i >= 0; i--) {
        int64_t *now = range + 2 + 2 * i;
        const int64_t *all = whole + 2 + 2 * i;
        if (now[0] + 1 < all[1]) {
            now[0]++;
            now[1]++;
            return true;
        }
        now[0] = all[0];
        now[1] = all[0] + 1;
    }
    return false;
}

int qn__count_threads(qn_context *c, int max_threads)
{
    int n = qn__pool_size(&c->pool, c->options.n_threads, c->thread_limit);
    return max_threads > 0 && max_threads < n ? max_threads : n;
}

/** Iterations of one step of the sequential dimensions. */
static int64_t iterations_of_step(const qn_task *t, const int64_t *range)
{
    int64_t n_iterations = t->n_iterations;
    for (int i = 0; i < t->function->info.n_sequential; i++) {
        int64_t n_steps = range[3 + 2 * i] - range[2 + 2 * i];
        n_iterations /= n_steps > 0 ? n_steps : 1;
    }
    return n_iterations;
}

/** Number of chunks of so many iterations along the first dimension, 1 if threads are not worth it.
 */
static int64_t count_chunks(const qn_task *t, int64_t n_iterations, int64_t n_granules,
                            int n_threads)
{
    const qn_blob_info *info = &t->function->info;
    int64_t n = n_iterations / info->chunk, most = (int64_t)n_threads * info->chunks_per_thread;
    n = n < most ? n : most;
    if (n > n_threads)
        n -= n % n_threads; /* as many for each */
    n = n < n_granules ? n : n_granules;
    return n_threads <= 1 || n < 2 ? 1 : n;
}

/** Parts of the second dimension with which n_chunks granules come out most even for the threads;
 * each part more costs about 1/16 of a granule. */
static int64_t count_parts(int64_t n_chunks, int64_t most, int n_threads)
{
    enum { GRANULE = 1 << 16 };
    int64_t best = 1, least = INT64_MAX;
    for (int64_t n = 1; n <= most && n <= MOST_PARTS; n++) {
        int64_t rounds = (n_chunks * n + n_threads - 1) / n_threads,
                cost = rounds * (GRANULE / n + GRANULE / 16);
        if (cost < least) {
            least = cost;
            best = n;
        }
    }
    return best;
}

/** Divides both split dimensions for the threads; false if one thread should do all. */
static bool cut_chunks(chunks *s, const qn_task *t, const int64_t *range, int n_threads)
{
    const qn_blob_info *info = &t->function->info;
    int64_t n_iterations = iterations_of_step(t, range), extent = range[1] - range[0];
    s->first = (cut){.granule = info->granule,
                     .n_granules = extent / info->granule + (extent % info->granule != 0)};
    s->first.n_parts = count_chunks(t, n_iterations, s->first.n_granules, n_threads);
    s->second = (cut){.granule = info->second_granule, .n_parts = 1};
    s->second_word = qn__second_word(info->n_sequential);
    if (info->second_granule) {
        int64_t most = n_iterations / info->chunk / s->first.n_granules;
        extent = range[s->second_word + 1] - range[s->second_word];
        s->second.n_granules = extent / info->second_granule + (extent % info->second_granule != 0);
        most = most < s->second.n_granules ? most : s->second.n_granules;
        if (s->first.n_parts >= s->first.n_granules)
            s->second.n_parts = count_parts(s->first.n_granules, most, n_threads);
    }
    s->n_chunks = s->first.n_parts * s->second.n_parts;
    return s->n_chunks > 1;
}

/** Memory of the chunks, as many pieces as may be in use at once: the host's own parallel_for may
 * run all chunks together. */
static bool chunks_open(chunks *s, const qn_task *t, int n_threads)
{
    const qn_blob_info *info = &t->function->info;
    bool is_own = !t->context->options.parallel_for;
    s->fault = qn__alloc((size_t)s->n_chunks * sizeof *s->fault);
    s->scratch_bytes = info->scratch_bytes;
    s->scratch_word = qn__scratch_word(info->n_sequential, info->second_granule);
    if (info->n_shared_reduces) {
        s->is_shared = true;
        s->scratch_room = scratch_room(results_bytes(info, s->range), 1);
        s->scratch = qn__memory_scratch(t->context->memory, s->scratch_room);
        return s->fault && s->scratch;
    }
    if (!s->fault || !s->scratch_bytes)
        return s->fault;
    s->n_places = is_own && n_threads < s->n_chunks ? n_threads : s->n_chunks;
    s->place = qn__alloc((size_t)s->n_places * sizeof *s->place);
    s->scratch_room = scratch_room(s->scratch_bytes, s->n_places);
    s->scratch = qn__memory_scratch(t->context->memory, s->scratch_room);
    for (int64_t i = 0; s->place && i < s->n_places; i++)
        s->place[i] = i;
    return s->place && s->scratch && pthread_mutex_init(&s->lock, NULL) == 0;
}

static void chunks_free(chunks *s, qn_memory *m)
{
    qn__free(s->fault);
    qn__free(s->place);
    qn__memory_scratch_free(m, s->scratch, s->scratch_room);
}

/** Splits and runs; false if one thread should do it. */
static bool run_threads(const qn_task *t, const int64_t *slots, const int64_t *range,
                        qn_fault *first)
{
    const qn_blob_info *info = &t->function->info;
    if (info->split_dim < 0 || info->granule < 1 || info->chunk < 1 || range[0] >= range[1])
        return false;
    chunks s = {.entry = t->function->entry, .slots = slots, .cancel = t->cancel};
    int n_threads = qn__count_threads(t->context, t->max_threads);
    if (!cut_chunks(&s, t, range, n_threads))
        return false;
    memcpy(s.range, range,
           (size_t)qn__scratch_word(info->n_sequential, info->second_granule) * sizeof *range);
    s.range[QN_ALONE_WORD] = 0;
    if (!chunks_open(&s, t, n_threads)) {
        chunks_free(&s, t->context->memory);
        return false;
    }
    for (int i = 0; i < info->n_sequential; i++)
        s.range[3 + 2 * i] = s.range[2 + 2 * i] + 1;
    if (s.is_shared)
        s.range[QN_PHASES_WORD] = QN_PHASE_POINTS;
    int n_behind = 0;
    do {
        run_step(t, &s, first);
        n_behind += first->status == QN_ERR_BOUNDS;
    } while (first->status != QN_ERR_CANCELLED && n_behind <= QN_MOST_LOOKS_BEHIND &&
             next_step(info->n_sequential, range, s.range));
    if (s.is_shared)
        run_rest(&s, first);
    if (s.scratch && !s.is_shared)
        pthread_mutex_destroy(&s.lock);
    chunks_free(&s, t->context->memory);
    return true;
}

/* ---------------------------------------------------------------- all */

/** Stack that the interpreter may take of a host's thread; kernels nested deeper run on a thread of
 * ours. */
enum { HOST_STACK_BYTES = 8 << 10, OWN_STACK_BYTES = 256 << 10 };

typedef struct interpretation {
    const qn_task *task;
    qn_fault *fault;
    qn_error *err;
    qn_status status;
} interpretation;

static void *interpret_task(void *arg)
{
    interpretation *x = arg;
    const qn_task *t = x->task;
    x->status = qn__interpret_debugged(t->kernel, t->n, t->args, t->domain, t->checks, t->debug,
                                       t->printed, x->fault, x->err);
    return NULL;
}

static qn_status interpret(const qn_task *t, qn_fault *fault, qn_error *err)
{
    interpretation x = {.task = t, .fault = fault, .err = err};
    size_t bytes = qn__interpret_stack(t->kernel);
    pthread_t thread;
    uint32_t host = qn__fpu_enter();
    if (bytes <= HOST_STACK_BYTES)
        interpret_task(&x);
    else if (qn__thread_start(&thread, OWN_STACK_BYTES + 4 * bytes, interpret_task, &x))
        pthread_join(thread, NULL);
    else
        x.status =
            qn__fail(err, QN_ERR_MEMORY,
                     "qn_launch: kernel \"%.60s\": no thread to interpret regions nested so deep",
                     t->kernel->name);
    qn__fpu_leave(host);
    if (x.status == QN_ERR_RACE || x.status == QN_ERR_NAN)
        count_fault(t);
    return x.status;
}

static qn_status run_serial(const qn_task *t, const int64_t *slots, const int64_t *range,
                            qn_fault *fault, qn_error *err)
{
    const qn_blob_info *info = &t->function->info;
    int64_t own_range[QN_RANGE_WORDS];
    _Alignas(SCRATCH_ALIGN) char few[FEW_BYTES];
    int64_t bytes = info->n_shared_reduces ? results_bytes(info, range) : info->scratch_bytes;
    bool are_few = bytes <= (int64_t)sizeof few;
    int64_t room = are_few ? 0 : scratch_room(bytes, 1);
    qn_memory *m = t->context->memory;
    void *scratch = room ? qn__memory_scratch(m, room) : NULL;
    char reason[QN_MEMORY_REASON_BYTES];
    if (room && !scratch)
        return qn__fail(err, QN_ERR_MEMORY,
                        "qn_launch: kernel \"%.60s\": no memory for %lld bytes of scratch%s",
                        t->kernel->name, (long long)room,
                        qn__memory_reason(m, QN_MEMORY_HOST, room, reason));
    if (bytes || info->n_shared_reduces) {
        int word = qn__scratch_word(info->n_sequential, info->second_granule);
        memcpy(own_range, range, (size_t)word * sizeof *range);
        own_range[QN_ALONE_WORD] = 1;
        own_range[word] = are_few ? (int64_t)(uintptr_t)few : scratch_at(scratch, 0, bytes);
        if (info->n_shared_reduces)
            own_range[QN_PHASES_WORD] = QN_PHASE_POINTS | QN_PHASE_REST;
        range = own_range;
    }
    uint32_t host = qn__fpu_enter();
    t->function->entry(slots, range, fault);
    qn__fpu_leave(host);
    qn__memory_scratch_free(m, scratch, room);
    return QN_OK;
}

qn_status qn__task_run(const qn_task *t, const int64_t *slots, const int64_t *range, qn_error *err)
{
    qn_fault fault;
    if (t->executor == QN_CUDA)
        return qn__cuda_run(t, slots, err);
    qn__fault_clear(&fault, t->cancel);
    if (!t->function || !t->function->entry) {
        qn_status status = interpret(t, &fault, err);
        if (status)
            return status;
    } else if (t->executor != QN_THREADS || !run_threads(t, slots, range, &fault)) {
        qn_status status = run_serial(t, slots, range, &fault, err);
        if (status)
            return status;
    }
    return !fault.status ? QN_OK : qn__task_fault(t, &fault, err);
}
