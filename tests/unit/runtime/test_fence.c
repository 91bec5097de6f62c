/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fence.c: generated code never touches a byte outside the elements of its views. Every view
 * stands between two inaccessible regions, once ending and once starting right at one; all bytes
 * around and between the elements hold a pattern that is compared afterwards, and all bytes are
 * compared with what the interpreter leaves in ordinary memory.
 *
 * The cases run in two children. One that dies fails the case it was in, and a new child goes on
 * behind it. FENCE_ROUNDS=n runs n times as many cases, FENCE_CASE=k:c only case c of kernel k,
 * with its plan.
 */
#define _GNU_SOURCE
#include "tests/sanitizer.h"
#include "tests/unit/guard_kernels.h"
#include "tests/unit/launch.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    N_KERNELS = sizeof guard_kernels / sizeof *guard_kernels,
    N_EXTENTS = 18,
    N_WORKERS = 2,
    MOST_VIEWS = 6,
    MOST_CRASHES = 4, /* of one kernel; then its other cases are left out */
    FENCE = 4 << 20,
    ROOM = 16 << 20,
    MARGIN = 256, /* bytes beside the view that are compared */
    PATTERN = 0xa5
};

static const int64_t extents[N_EXTENTS] = {1,  2,  3,  5,  7,  8,  9,   15,  16,
                                           17, 31, 33, 63, 64, 65, 100, 127, 129};

/* ---------------------------------------------------------------- what a child tells */

typedef struct report {
    int kernel, at; /* the case that runs */
    int n_cases[N_KERNELS], n_failed[N_KERNELS], n_crashes[N_KERNELS], n_faults[N_KERNELS];
    char now[1000], first[N_KERNELS][1500];
} report;

static void note_failure(report *r, int kernel, const char *symptom)
{
    if (r->n_failed[kernel]++ == 0)
        snprintf(r->first[kernel], sizeof r->first[kernel], "%s: %s", r->now, symptom);
    if (getenv("FENCE_VERBOSE"))
        fprintf(stderr, "%s: %s\n", r->now, symptom);
}

/* ---------------------------------------------------------------- cases */

static uint64_t next_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = (*state ^ *state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int64_t below(uint64_t *state, int64_t n)
{
    return (int64_t)(next_random(state) % (uint64_t)n);
}

/** Ways to lay out a view. The strides are those of the last dimension; FIRST: of the first. */
enum { LAY_RIGHT, LAY_LEFT, LAY_STRIDED, LAY_STRIDED_FIRST, LAY_TILED, LAY_BROADCAST, N_LAYS };
static const int64_t strides[] = {2, 3, 4, 5, -1, -2, -3, 7};

typedef struct guard_case {
    const guard_kernel *kernel;
    int type, index_type;
    const char *order;
    int64_t n, m, lower, seed;
    bool is_hostile, at_start;
    int lay[MOST_VIEWS];
    int64_t stride[MOST_VIEWS];
    int64_t gap[MOST_VIEWS]; /* bytes between elements next to each other, as in views of fields; 0:
                                none */
    qn_options options; /* but for the plan */
    qn_plan_options plan;
} guard_case;

static int type_of(char letter, const guard_case *c)
{
    static const char letters[] = "uhfdb";
    static const int types[] = {QN_U8, QN_I16, QN_F32, QN_F64, QN_BOOL};
    if (letter == 'T')
        return c->type;
    if (letter == 'I')
        return c->index_type;
    return types[strchr(letters, letter) - letters];
}

/** Dimensions of the kernel's domain. */
static int count_dims(const char *text)
{
    int n = 0;
    for (; (text = strchr(text, '=')) != NULL; text++)
        n += strncmp(text, "= parallel", 10) == 0 || strncmp(text, "= reduction", 11) == 0;
    return n;
}

static void choose_plan(qn_plan_options *p, int n_dims, uint64_t *seed)
{
    *p = (qn_plan_options){.bytes = sizeof *p};
    if (below(seed, 2))
        return;
    p->width = (int32_t)(INT64_C(1) << below(seed, 7)); /* 1: scalar code */
    p->unroll = (int32_t)below(seed, 9);
    p->lane_dim = (int32_t)below(seed, n_dims + 1);
    p->jam_dim = n_dims > 1 ? 1 + (int32_t)below(seed, n_dims) : 0;
    p->jam = 1 + (int32_t)below(seed, 16);
    p->pack = (int32_t)below(seed, 2);
    p->streams = (int32_t)below(seed, 3) - 1;
    p->transpose = -(int32_t)below(seed, 2);
    p->strip = below(seed, 2) ? 1 + (int32_t)below(seed, 200) : 0;
    p->prefetch = -(int32_t)below(seed, 2);
    p->tile_dim = (int32_t)below(seed, n_dims + 1);
    p->tile = (int32_t)below(seed, 40);
    p->apart = (int32_t)below(seed, 3) - 1;
    p->poll = (int32_t)below(seed, 2) * (1 + (int32_t)below(seed, 1000));
}

/** x86-64-v4 where this processor runs it. */
static int widest_isa(void)
{
    return __builtin_cpu_supports("avx512bw") ? QN_ISA_V4 : QN_ISA_V3;
}

static guard_case make_case(int kernel, int at)
{
    uint64_t seed = (uint64_t)kernel << 32 | (uint64_t)(at / 2); /* both places of one case */
    next_random(&seed);
    static const char *const orders[] = {"striped", "indexed", "ordered"};
    static const int64_t rows[] = {1, 2, 3, 5, 8, 17, 66}, lowers[] = {0, 0, 0, 2000, -5};
    guard_case c = {
        .kernel = &guard_kernels[kernel], .n = extents[at / 2 % N_EXTENTS], .at_start = at % 2};
    c.type = type_of(c.kernel->types[below(&seed, (int64_t)strlen(c.kernel->types))], &c);
    c.index_type = below(&seed, 2) ? QN_I32 : QN_I64;
    c.order = orders[below(&seed, 3)];
    c.m = rows[below(&seed, 7)];
    c.lower = lowers[below(&seed, 5)];
    c.is_hostile = below(&seed, 3) == 0;
    bool is_plain = below(&seed, 3) == 0;
    for (int v = 0; v < MOST_VIEWS; v++) {
        bool is_written = c.kernel->view[v].is_written;
        c.lay[v] = is_plain ? LAY_RIGHT : (int)below(&seed, is_written ? LAY_BROADCAST : N_LAYS);
        c.stride[v] = strides[below(&seed, 8)];
        bool is_field = below(&seed, 4) == 0 && !is_plain && !strstr(c.kernel->text, "atomic");
        c.gap[v] = is_field ? 1 + below(&seed, 13) : 0;
    }
    c.options =
        (qn_options){.bytes = sizeof c.options, .engine = QN_ENGINE_NATIVE, .executor = QN_SERIAL};
    c.options.isa = at / (2 * N_EXTENTS) % 2 ? QN_ISA_V3 : widest_isa();
    c.options.specialize = below(&seed, 2) ? QN_SPECIALIZE_EXACT : QN_SPECIALIZE_DYNAMIC;
    c.options.checks = below(&seed, 6) == 0 ? QN_CHECKS_CLAMP : QN_CHECKS_REPORT;
    choose_plan(&c.plan, count_dims(c.kernel->text), &seed);
    c.seed = (int64_t)(next_random(&seed) >> 1);
    return c;
}

/** Large domains for the threads: 70001 iterations make two chunks. */
static guard_case make_thread_case(int kernel, int at)
{
    guard_case c = make_case(kernel, 1000000 + at);
    for (int v = 0; v < MOST_VIEWS; v++) {
        c.lay[v] = c.lay[v] % 2 ? LAY_STRIDED : LAY_RIGHT;
        c.stride[v] = c.stride[v] % 2 ? 3 : -2;
    }
    c.n = 70001;
    c.m = 3;
    c.options.executor = QN_THREADS;
    c.options.isa = widest_isa();
    if (strcmp(c.kernel->name, "scatter") ==
        0) /* clamped stores meet in one element, which of two threads may store last */
        c.options.checks = QN_CHECKS_REPORT;
    return c;
}

static void describe(const guard_case *c, int kernel, int at, char *out, size_t bytes)
{
    const qn_plan_options *p = &c->plan;
    int n = snprintf(
        out, bytes, "%s (FENCE_CASE=%d:%d) %s %s %s n %d m %d lower %d%s, %s, v%d %s%s%s, plan",
        c->kernel->name, kernel, at, qn_dtype_name(c->type), qn_dtype_name(c->index_type), c->order,
        (int)c->n, (int)c->m, (int)c->lower, c->is_hostile ? ", hostile" : "",
        c->at_start ? "behind the fence" : "before the fence", (int)c->options.isa,
        c->options.specialize == QN_SPECIALIZE_EXACT ? "exact" : "dynamic",
        c->options.checks == QN_CHECKS_CLAMP ? " clamp" : "",
        c->options.executor == QN_THREADS ? " threads" : "");
#define X(name, text, least, most, names_dim)                                                      \
    n += snprintf(out + n, bytes - (size_t)n, " " #name " %d", p->name);
    QN_PLAN_LIST(X)
#undef X
    n += snprintf(out + n, bytes - (size_t)n, "; views");
    static const char *const lays[] = {"right",         "left",  "strided",
                                       "strided-first", "tiled", "broadcast"};
    for (int v = 0; v < MOST_VIEWS && c->kernel->view[v].label && n < (int)bytes; v++)
        n += snprintf(out + n, bytes - (size_t)n, " %s %s %d gap %d", c->kernel->view[v].label,
                      lays[c->lay[v]], (int)c->stride[v], (int)c->gap[v]);
}

/* ---------------------------------------------------------------- kernels */

static qn_kernel *kernel_for(const guard_case *c, qn_error *err)
{
    char text[4000];
    bool is_float = c->type == QN_F32 || c->type == QN_F64;
    size_t n = (size_t)snprintf(text, sizeof text, "kernel \"guard\" {\n");
    for (const char *t = c->kernel->text; *t && n + 20 < sizeof text; t++) {
        if (*t != '$') {
            text[n++] = *t;
            continue;
        }
        const char *word = *++t == 'T' ? qn_dtype_name(c->type)
                           : *t == 'I' ? qn_dtype_name(c->index_type)
                                       : c->order;
        if (*t == '0')
            word = is_float ? "0.0" : "0";
        if (*t == '2')
            word = is_float ? "2.0" : "2";
        n += (size_t)snprintf(text + n, sizeof text - n, "%s", word);
    }
    n += (size_t)snprintf(text + n, sizeof text - n, "\n}\n");
    qn_kernel *k = NULL;
    return qn_kernel_parse(text, n, &k, err) == QN_OK ? k : NULL;
}

/* ---------------------------------------------------------------- layouts and memory */

static void extents_of(const guard_case *c, const guard_view *v, int64_t *out)
{
    for (int d = 0; d < v->rank; d++)
        out[d] = v->extent[d].n * c->n + v->extent[d].m * c->m + v->extent[d].c;
}

static qn_status make_strided(const guard_case *c, int v, int rank, const int64_t *extent,
                              qn_layout *out, qn_error *err)
{
    int fast = c->lay[v] == LAY_STRIDED_FIRST ? 0 : rank - 1;
    int64_t s = c->lay[v] == LAY_BROADCAST ? 0 : c->stride[v], stride[2] = {s, s};
    int64_t row = extent[fast] * (s < 0 ? -s : s) + 3;
    if (rank == 2)
        stride[!fast] = c->stride[v] % 2 ? row : -row;
    return qn_layout_strided(rank, extent, stride, out, err);
}

static qn_status make_layout(const guard_case *c, int v, qn_layout *out, qn_error *err)
{
    const guard_view *g = &c->kernel->view[v];
    int64_t extent[2] = {0, 0}, lower[2] = {c->lower, c->lower};
    const int64_t tile[2] = {c->stride[v] % 2 ? 4 : 3, c->stride[v] % 3 ? 8 : 5};
    extents_of(c, g, extent);
    qn_status status;
    if (c->lay[v] == LAY_RIGHT || g->rank == 0)
        status = qn_layout_right(g->rank, extent, out, err);
    else if (c->lay[v] == LAY_LEFT)
        status = qn_layout_left(g->rank, extent, out, err);
    else if (c->lay[v] == LAY_TILED)
        status = qn_layout_tiled(g->rank, extent, tile, NULL, NULL, out, err);
    else
        status = make_strided(c, v, g->rank, extent, out, err);
    return status ? status : qn_layout_offset(out, lower, out, err);
}

/** Where the views' bytes are: [ROOM] between two fences, for each view. */
typedef struct arena {
    unsigned char *room[MOST_VIEWS];
} arena;

static bool make_arena(arena *a)
{
    for (int v = 0; v < MOST_VIEWS; v++) {
        unsigned char *p = mmap(NULL, ROOM + 2 * FENCE, PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED || mprotect(p + FENCE, ROOM, PROT_READ | PROT_WRITE))
            return false;
        a->room[v] = p + FENCE;
    }
    return true;
}

/** One view: in guarded memory, and its double in ordinary memory for the interpreter. */
typedef struct placed {
    const guard_view *what;
    qn_view view, twin;
    int64_t bytes;             /* of the span */
    unsigned char *at, *copy;  /* its first byte */
    unsigned char *before;     /* span and margin as they were */
    unsigned char *is_element; /* per byte of the span */
} placed;

/** The margin stands on the side of the room. */
static unsigned char *low_margin(const guard_case *c, unsigned char *first)
{
    return c->at_start ? first : first - MARGIN;
}

/* ---------------------------------------------------------------- contents */

static int64_t hostile_value(const guard_case *c, const guard_view *v, uint64_t *seed)
{
    static const int64_t awful[] = {
        INT64_MIN, INT64_MAX,        INT32_MIN,           INT32_MAX,        INT64_MIN + 1,
        -1,        INT64_C(1) << 61, -(INT64_C(1) << 60), INT64_C(1) << 32, 0x7fffffff8};
    bool is_count =
        v->fill >=
        FILL_STARTS; /* a loop of 2^63 trips would never end, nor many of some thousands */
    int64_t n = is_count && c->n > 300 ? 300 : c->n;
    switch (below(seed, 4)) {
    case 0:
        return c->lower - 1 - below(seed, 3);
    case 1:
        return (is_count ? 0 : c->lower) + n + below(seed, 3);
    case 2:
        return is_count ? -below(seed, 100) : awful[below(seed, 10)];
    default:
        return is_count ? below(seed, 300) : (int64_t)next_random(seed);
    }
}

static int64_t index_value(const guard_case *c, const guard_view *v, int64_t i, uint64_t *seed)
{
    if (c->is_hostile && below(seed, 4) == 0)
        return hostile_value(c, v, seed);
    switch (v->fill) {
    case FILL_ROTATION:
        return c->lower + (i + c->seed % c->n) % c->n;
    case FILL_COUNTS:
        return below(seed, c->m + 2 < c->n ? c->m + 2 : c->n + 1);
    case FILL_STARTS:
        return c->lower + i + below(seed, i % 5 + 1);
    }
    return c->lower + below(seed, c->n);
}

static void write_value(void *p, int dtype, int64_t value)
{
    if (dtype == QN_F32)
        memcpy(p, &(float){(float)value}, sizeof(float));
    else if (dtype == QN_F64)
        memcpy(p, &(double){(double)value}, sizeof(double));
    else
        memcpy(p, &value, (size_t)qn_dtype_bytes(dtype)); /* little-endian */
}

static bool fill_elements(const guard_case *c, placed *p, uint64_t *seed)
{
    int64_t extent[2] = {1, 1}, size = qn_dtype_bytes(p->view.dtype);
    extents_of(c, p->what, extent);
    for (int64_t i = 0; i < extent[0]; i++)
        for (int64_t j = 0; j < extent[1]; j++) {
            int64_t index[2] = {c->lower + i, c->lower + j};
            void *where;
            if (qn_view_at(&p->view, p->what->rank, index, &where, NULL) != QN_OK)
                return false;
            bool is_index = p->what->fill != FILL_VALUES;
            int64_t value = is_index ? index_value(c, p->what, i, seed)
                                     : below(seed, p->view.dtype == QN_BOOL ? 2 : 7);
            write_value(where, p->view.dtype, value);
            memset(p->is_element + ((unsigned char *)where - p->at), 1, (size_t)size);
        }
    return true;
}

/** The view of memory whose lowest element is at `first`. */
static bool wrap(const guard_case *c, int v, unsigned char *first, int dtype, const qn_layout *l,
                 int64_t low, uint32_t traits, qn_view *out, qn_error *err)
{
    int64_t size = qn_dtype_bytes(dtype), unit = size + c->gap[v];
    static _Alignas(16) char any[16]; /* until the address is known to be right for the unit */
    char *data = c->gap[v] ? any - low * size : (char *)first - low * size;
    if (qn_view_wrap(c->kernel->view[v].label, data, dtype, l, traits, out, err) != QN_OK)
        return false;
    if (c->gap[v]) { /* as qn_view_field makes them, for any layout */
        out->unit = (uint32_t)unit;
        out->data = first + (l->origin - low) * unit;
    }
    return true;
}

static bool place(const guard_case *c, const arena *a, int v, placed *p, uint64_t *seed,
                  qn_error *err)
{
    qn_layout l = {0};
    int64_t low, high;
    p->what = &c->kernel->view[v];
    int dtype = type_of(p->what->type, c);
    int64_t size = qn_dtype_bytes(dtype), unit = size + c->gap[v];
    if (make_layout(c, v, &l, err) != QN_OK || qn_layout_range(&l, &low, &high, err) != QN_OK)
        return false;
    p->bytes = high < low ? 0 : (high - low) * unit + size;
    if (p->bytes > ROOM - MARGIN)
        return false;
    p->at = c->at_start ? a->room[v] : a->room[v] + ROOM - p->bytes;
    size_t all = (size_t)p->bytes + MARGIN;
    memset(low_margin(c, p->at), PATTERN, all);
    p->copy = malloc(all);
    p->before = malloc(all);
    p->is_element = calloc(1, all);
    if (!p->copy || !p->before || !p->is_element)
        return false;
    uint32_t traits = p->what->is_written ? 0 : QN_READ_ONLY;
    bool is_fine = wrap(c, v, p->at, dtype, &l, low, traits, &p->view, err) &&
                   wrap(c, v, p->copy, dtype, &l, low, traits, &p->twin, err) &&
                   fill_elements(c, p, seed);
    qn_layout_release(&l);
    memcpy(p->before, low_margin(c, p->at), all);
    memcpy(p->copy, p->at, (size_t)p->bytes);
    return is_fine;
}

static void displace(placed *p)
{
    qn_view_release(&p->view);
    qn_view_release(&p->twin);
    free(p->copy);
    free(p->before);
    free(p->is_element);
}

/* ---------------------------------------------------------------- comparing */

/** The first byte that is not as it must be, as text; NULL if all are. */
static const char *compare(const guard_case *c, const placed *p, bool with_interpreter, char *out,
                           size_t bytes)
{
    const unsigned char *now = low_margin(c, p->at);
    int64_t head = p->at - now;
    for (int64_t i = 0; i < p->bytes + MARGIN; i++) {
        int64_t offset = i - head;
        bool is_inside = offset >= 0 && offset < p->bytes;
        bool may_change = is_inside && p->is_element[offset] && p->what->is_written;
        if (!may_change && now[i] != p->before[i]) {
            snprintf(out, bytes, "view %s: byte %lld %s was overwritten", p->what->label,
                     (long long)offset,
                     !is_inside              ? "beside the view"
                     : p->is_element[offset] ? "of an input"
                                             : "between elements");
            return out;
        }
        if (is_inside && with_interpreter && now[i] != p->copy[offset]) {
            snprintf(out, bytes, "view %s: byte %lld is 0x%02x, 0x%02x by the interpreter",
                     p->what->label, (long long)offset, now[i], p->copy[offset]);
            return out;
        }
    }
    return NULL;
}

static void show_plan(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                      const qn_options *o)
{
    static char text[400000];
    static const int stages[] = {QN_DUMP_KERNEL, QN_DUMP_PLAN, QN_DUMP_KEY, QN_DUMP_LLVM};
    qn_code *f = NULL;
    if (!getenv("FENCE_CASE") || qn_specialize(c, k, n, args, o, &f, NULL) != QN_OK)
        return;
    for (int s = 0; s < (getenv("FENCE_LLVM") ? 4 : 2); s++)
        if (qn_code_text(f, stages[s], text, sizeof text))
            fprintf(stderr, "%s\n", text);
    qn_code_release(f);
}

static void run_placed(qn_context *context, const guard_case *c, placed *p, int n, report *r,
                       int kernel)
{
    qn_error err = {0}, expected = {0};
    qn_kernel *k = kernel_for(c, &err);
    if (!k) {
        note_failure(r, kernel, err.message);
        return;
    }
    qn_arg args[MOST_VIEWS], twins[MOST_VIEWS];
    for (int v = 0; v < n; v++) {
        args[v] = qn_arg_view(&p[v].view);
        twins[v] = qn_arg_view(&p[v].twin);
    }
    qn_options interpreted = {
        .bytes = sizeof interpreted, .engine = QN_ENGINE_INTERP, .checks = c->options.checks};
    char text[1200];
    show_plan(context, k, n, args, &c->options);
    qn_launch(context, k, n, twins, &interpreted, &expected);
    qn_launch(context, k, n, args, &c->options, &err);
    r->n_faults[kernel] += expected.status == QN_ERR_BOUNDS;
    const char *symptom = NULL;
    for (int v = 0; v < n && !symptom; v++)
        symptom =
            compare(c, &p[v], err.status == QN_OK && expected.status == QN_OK, text, sizeof text);
    if (!symptom && (err.status != expected.status || strcmp(err.message, expected.message) != 0)) {
        snprintf(text, sizeof text, "\"%s\", \"%s\" by the interpreter", err.message,
                 expected.message);
        symptom = text;
    }
    if (symptom)
        note_failure(r, kernel, symptom);
    qn_kernel_release(k);
}

static void run_case(qn_context *context, const arena *a, report *r, int kernel, int at,
                     bool on_threads)
{
    guard_case c = on_threads ? make_thread_case(kernel, at) : make_case(kernel, at);
    c.options.plan = &c.plan;
    placed p[MOST_VIEWS] = {{0}};
    uint64_t seed = (uint64_t)c.seed;
    qn_error err = {0};
    int n = 0;
    bool is_fine = true;
    describe(&c, kernel, at, r->now, sizeof r->now);
    r->n_cases[kernel]++;
    for (; is_fine && n < MOST_VIEWS && c.kernel->view[n].label; n++)
        is_fine = place(&c, a, n, &p[n], &seed, &err);
    if (is_fine)
        run_placed(context, &c, p, n, r, kernel);
    else
        note_failure(r, kernel, err.status ? err.message : "the test could not place a view");
    for (int v = 0; v < n; v++)
        displace(&p[v]);
}

/* ---------------------------------------------------------------- children */

static int count_cases(void)
{
    const char *text = getenv("FENCE_ROUNDS");
    int n = text ? atoi(text) : 1;
    return (n > 0 ? n : 1) * 4 * N_EXTENTS;
}

/** Kernels whose work does not grow with the square of n also run on threads. */
static bool has_thread_case(int kernel)
{
    const char *name = guard_kernels[kernel].name;
    return strcmp(name, "gather in two dimensions") != 0 &&
           strncmp(name, "for, from the lane", 18) != 0 && strncmp(name, "for, up", 7) != 0;
}

/** All cases of the worker's kernels from r->kernel, r->at on. */
static void work(report *r, int worker)
{
    qn_context_options o = {.bytes = sizeof o, .n_threads = 3};
    qn_context *context = context_with(&o);
    arena a;
    if (!context || !make_arena(&a))
        _exit(2);
    int n = count_cases();
    for (; r->kernel < N_KERNELS; r->kernel++, r->at = 0) {
        if (r->kernel % N_WORKERS != worker)
            continue;
        for (; r->at < n + has_thread_case(r->kernel) && r->n_crashes[r->kernel] < MOST_CRASHES;
             r->at++)
            run_case(context, &a, r, r->kernel, r->at, r->at >= n);
    }
    qn_context_release(context);
    _exit(0);
}

static pid_t start(report *r, int worker)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(IS_SANITIZED ? 1200 : 120);
        work(r, worker);
    }
    return child;
}

/** A child has ended: notes a crash and goes on behind it; false when the worker is done. */
static bool is_to_go_on(report *r, int status)
{
    if ((WIFEXITED(status) && WEXITSTATUS(status) == 0) || r->kernel >= N_KERNELS)
        return false;
    char text[100];
    snprintf(text, sizeof text, WIFSIGNALED(status) ? "ended by signal %d" : "ended with %d",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    note_failure(r, r->kernel, text);
    r->n_crashes[r->kernel]++;
    r->at++;
    return true;
}

static void run_workers(report *r)
{
    pid_t child[N_WORKERS];
    for (int w = 0; w < N_WORKERS; w++)
        child[w] = start(&r[w], w);
    for (int n_left = N_WORKERS; n_left > 0;) {
        int status = 0;
        pid_t ended = wait(&status);
        if (ended < 0 && errno == EINTR)
            continue;
        if (ended < 0)
            return;
        for (int w = 0; w < N_WORKERS; w++)
            if (child[w] == ended && is_to_go_on(&r[w], status))
                child[w] = start(&r[w], w);
            else if (child[w] == ended)
                n_left--;
    }
}

static int run_one(report *r, const char *which)
{
    int kernel = 0, at = 0;
    arena a;
    qn_context_options o = {.bytes = sizeof o, .n_threads = 3};
    if (sscanf(which, "%d:%d", &kernel, &at) != 2 || kernel < 0 || kernel >= N_KERNELS ||
        !make_arena(&a))
        return 2;
    qn_context *context = context_with(&o);
    run_case(context, &a, r, kernel, at, at >= count_cases());
    tap_ok(r->n_failed[kernel] == 0, "%s", r->n_failed[kernel] ? r->first[kernel] : r->now);
    qn_context_release(context);
    return tap_done();
}

int main(void)
{
    char reason[600];
    report *r = mmap(NULL, N_WORKERS * sizeof *r, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r == MAP_FAILED)
        return 2;
    if (getenv("FENCE_CASE"))
        return run_one(r, getenv("FENCE_CASE"));
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    if (widest_isa() == QN_ISA_V3)
        tap_note("no AVX-512 here: all cases are x86-64-v3");
    run_workers(r);
    for (int k = 0; k < N_KERNELS; k++) {
        const report *w = &r[k % N_WORKERS];
        tap_ok(w->n_failed[k] == 0 && w->n_cases[k] > 0,
               "%s: %d cases, %d with bad indices, inside its views", guard_kernels[k].name,
               w->n_cases[k], w->n_faults[k]);
        if (w->n_failed[k])
            tap_note("%d failed, %d crashed; first: %s", w->n_failed[k], w->n_crashes[k],
                     w->first[k]);
    }
    munmap(r, N_WORKERS * sizeof *r);
    return tap_done();
}
