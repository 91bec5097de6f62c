/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_args.c: random numbers, layouts, and views with their memory. A view's memory has
 * guards at both ends and is filled with values of its dtype everywhere, gaps between elements
 * included, so that a store outside the view shows as a difference.
 */
#define _DEFAULT_SOURCE
#include "differential.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GUARD_BYTES = 128, MOST_MEMBERS = 140 };

/* ---------------------------------------------------------------- random numbers */

/* splitmix64 */
uint64_t random_bits(randoms *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int random_below(randoms *r, int n)
{
    return (int)(random_bits(r) % (uint64_t)n);
}

int64_t random_between(randoms *r, int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits(r) % (uint64_t)(high - low + 1));
}

bool random_percent(randoms *r, int percent)
{
    return random_below(r, 100) < percent;
}

bool is_float(int dtype)
{
    return dtype == QN_F32 || dtype == QN_F64 || is_half(dtype);
}

bool is_half(int dtype)
{
    return dtype == QN_F16 || dtype == QN_BF16;
}

bool is_integer(int dtype)
{
    return dtype >= QN_I8 && dtype <= QN_U64;
}

int random_dtype(randoms *r)
{
    static const uint8_t often[] = {QN_F32, QN_F64, QN_I32, QN_I64};
    if (random_percent(r, 45))
        return often[random_below(r, 4)];
    return 1 + random_below(r, QN_BF16);
}

/* Cuts bits to the width of an integer dtype and extends them by its sign. */
static uint64_t canonical_integer(int dtype, uint64_t bits)
{
    int unused = 64 - 8 * (int)qn_dtype_bytes(dtype);
    if (dtype <= QN_I64)
        return (uint64_t)((int64_t)(bits << unused) >> unused);
    return bits << unused >> unused;
}

static uint64_t float_bits(int dtype, double value)
{
    uint64_t bits = 0;
    float narrow = (float)value;
    if (dtype == QN_F32)
        memcpy(&bits, &narrow, sizeof narrow);
    else
        memcpy(&bits, &value, sizeof value);
    return bits;
}

/* The value cut to a half-width float: f16 from 2^-14 on, less is 0. */
static uint64_t half_bits(int dtype, double value)
{
    uint64_t bits = float_bits(QN_F32, value), magnitude = bits & 0x7fffffff;
    if (dtype == QN_BF16)
        return bits >> 16;
    if (magnitude < 0x38800000)
        magnitude = 112u << 23;
    return (bits >> 16 & 0x8000) | (magnitude - (112u << 23)) >> 13;
}

static uint64_t random_half(randoms *r, int dtype)
{
    uint64_t nan = dtype == QN_F16 ? 0x7e00 : 0x7fc0, inf = dtype == QN_F16 ? 0x7c00 : 0x7f80;
    int kind = random_below(r, 20);
    uint64_t bits = random_bits(r) & 0xffff;
    if (kind < 3)
        return (bits & 0x7fff) > inf ? nan : bits;
    if (kind < 12)
        return half_bits(dtype, (double)random_between(r, -12, 12));
    return half_bits(dtype, (double)random_between(r, -1000, 1000) * 0.37);
}

static uint64_t random_float(randoms *r, int dtype)
{
    if (is_half(dtype))
        return random_half(r, dtype);
    static const uint64_t awkward_f32[] = {0,           0x80000000u, 1,           0x007fffffu,
                                           0x00800000u, 0x3f800000u, 0x7f7fffffu, 0xff7fffffu,
                                           0x7f800000u, 0xff800000u, 0x7fc00000u, 0x4b7fffffu,
                                           0x4f000000u, 0x5f000000u, 0x3effffffu, 0xbf000000u};
    static const uint64_t awkward_f64[] = {0,
                                           0x8000000000000000u,
                                           1,
                                           0x000fffffffffffffu,
                                           0x0010000000000000u,
                                           0x3ff0000000000000u,
                                           0x7fefffffffffffffu,
                                           0xffefffffffffffffu,
                                           0x7ff0000000000000u,
                                           0xfff0000000000000u,
                                           0x7ff8000000000000u,
                                           0x433fffffffffffffu,
                                           0x41dfffffffc00000u,
                                           0x43e0000000000000u,
                                           0x3fdfffffffffffffu,
                                           0xbfe0000000000000u};
    int kind = random_below(r, 20);
    if (kind == 0)
        return (dtype == QN_F32 ? awkward_f32 : awkward_f64)[random_below(r, 16)];
    if (kind < 8)
        return float_bits(dtype, (double)random_between(r, -12, 12));
    if (kind < 12)
        return float_bits(dtype, (double)random_between(r, -1000, 1000) * 0.37);
    double mantissa = 1 + (double)(random_bits(r) >> 11) * 0x1p-53;
    return float_bits(dtype, random_percent(r, 50) ? mantissa : -mantissa * 7);
}

uint64_t random_value(randoms *r, int dtype)
{
    if (is_float(dtype))
        return random_float(r, dtype);
    if (dtype == QN_BOOL)
        return random_bits(r) & 1;
    int kind = random_below(r, 12), width = 8 * (int)qn_dtype_bytes(dtype);
    uint64_t bits;
    if (kind == 0)
        bits = (uint64_t)1 << random_below(r, width);
    else if (kind == 1)
        bits = ((uint64_t)1 << random_below(r, width)) - 1;
    else if (kind == 2)
        bits = random_bits(r);
    else
        bits = (uint64_t)random_between(r, -20, 20);
    return canonical_integer(dtype, bits);
}

/* ---------------------------------------------------------------- layouts */

static void random_order(randoms *r, int rank, int *order)
{
    for (int d = 0; d < rank; d++) {
        int at = random_below(r, d + 1);
        order[d] = order[at];
        order[at] = d;
    }
}

/* Strides in a random order with gaps; some negative; some zero where two indices may meet. */
static qn_status random_strides(randoms *r, int rank, const int64_t *extents, bool is_unique,
                                qn_layout *out, qn_error *err)
{
    int order[VIEW_RANK];
    int64_t strides[VIEW_RANK], stride = random_percent(r, 30) ? random_between(r, 2, 3) : 1;
    random_order(r, rank, order);
    for (int i = 0; i < rank; i++) {
        int d = order[i];
        strides[d] = random_percent(r, 25) ? -stride : stride;
        if (!is_unique && random_percent(r, 20)) {
            strides[d] = 0;
            continue;
        }
        int64_t extent = extents[d] > 0 ? extents[d] : 1;
        stride = stride * extent + (random_percent(r, 30) ? random_between(r, 1, 9) : 0);
    }
    return qn_layout_strided(rank, extents, strides, out, err);
}

static qn_status random_tiles(randoms *r, int rank, const int64_t *extents, qn_layout *out,
                              qn_error *err)
{
    int inner[VIEW_RANK], outer[VIEW_RANK];
    int64_t tile[VIEW_RANK];
    random_order(r, rank, inner);
    random_order(r, rank, outer);
    for (int d = 0; d < rank; d++)
        tile[d] =
            random_percent(r, 50) ? (int64_t)1 << random_below(r, 5) : random_between(r, 1, 6);
    return qn_layout_tiled(rank, extents, tile, random_percent(r, 50) ? inner : NULL,
                           random_percent(r, 50) ? outer : NULL, out, err);
}

/* Tiles or Morton order: dimensions of several digits. */
static qn_status random_digits(randoms *r, int rank, const int64_t *extents, qn_layout *out,
                               qn_error *err)
{
    enum { MOST_IN_MORTON = 20000 }; /* which grows to powers of two */
    int order[VIEW_RANK];
    int64_t size = 1;
    random_order(r, rank, order);
    for (int d = 0; d < rank; d++)
        size *= extents[d] > 0 ? extents[d] : 1;
    return size <= MOST_IN_MORTON && random_percent(r, 40)
               ? qn_layout_morton(rank, extents, order, out, err)
               : random_tiles(r, rank, extents, out, err);
}

static qn_status reversed_somewhere(randoms *r, qn_layout *l, qn_error *err)
{
    if (l->rank == 0)
        return QN_OK;
    qn_layout reversed;
    qn_status status = qn_layout_reverse(l, random_below(r, l->rank), &reversed, err);
    if (status == QN_OK)
        *l = reversed;
    return status;
}

static qn_status random_dense(randoms *r, int rank, const int64_t *extents, bool is_unique,
                              qn_layout *out, qn_error *err)
{
    int order[VIEW_RANK];
    switch (random_below(r, is_unique ? 8 : 9)) {
    case 0:
    case 1:
        return qn_layout_right(rank, extents, out, err);
    case 2:
        return qn_layout_right_padded(rank, extents, random_percent(r, 50) ? 8 : 1, out, err);
    case 3:
        return qn_layout_left(rank, extents, out, err);
    case 4:
        random_order(r, rank, order);
        return qn_layout_ordered(rank, extents, order, out, err);
    case 5:
        random_order(r, rank, order);
        return random_percent(r, 40) ? qn_layout_morton(rank, extents, order, out, err)
                                     : random_tiles(r, rank, extents, out, err);
    case 6: {
        qn_status status = qn_layout_right(rank, extents, out, err);
        return status ? status : reversed_somewhere(r, out, err);
    }
    default:
        return random_strides(r, rank, extents, is_unique, out, err);
    }
}

qn_status random_layout(randoms *r, int rank, const int64_t *extents, bool is_unique,
                        int64_t *lower, qn_layout *out, qn_error *err)
{
    for (int d = 0; d < rank; d++)
        lower[d] = 0;
    qn_layout plain;
    qn_status status = random_dense(r, rank, extents, is_unique, &plain, err);
    if (status || !random_percent(r, 25)) {
        *out = plain;
        return status;
    }
    for (int d = 0; d < rank; d++) {
        lower[d] = random_percent(r, 65)   ? random_between(r, -5, 5)
                   : random_percent(r, 80) ? random_between(r, -200, 200) : random_far(r);
        lower[d] = random_at_limit(r, lower[d], extents[d]);
    }
    status = qn_layout_offset(&plain, lower, out, err);
    qn_layout_release(&plain);
    return status;
}

/* As most programs have them: without gaps, or rows that lie far apart, as those of a part of a
 * larger array. */
static qn_status plain_layout(const test_case *t, const test_view *v, randoms *r, qn_layout *out,
                              qn_error *err)
{
    enum { FAR = 512, MOST = 600000 };
    const int64_t *extents = v->extent;
    int order[VIEW_RANK], rank = v->rank, kind = random_below(r, 10); /* fastest first */
    bool is_dense = t->rows      ? !t->has_far_rows
                    : t->n_alike ? random_percent(r, 85)
                               : (t->has_channels || t->has_members) && random_percent(r, 70);
    int64_t strides[VIEW_RANK], stride = 1, size = 1;
    random_order(r, rank, order);
    for (int d = 0; d < rank; d++) {
        order[d] = kind < 5 || is_dense || t->rows ? rank - 1 - d : kind < 8 ? d : order[d];
        size *= extents[d] > 0 ? extents[d] : 1;
    }
    for (int at = 1; at < rank && t->is_batch; at++) /* its number first */
        if ((v->role == ROLE_INPUT ? v->along : v->source)[order[at]] == t->longest) {
            int first = order[0];
            order[0] = order[at];
            order[at] = first;
        }
    int64_t pitch = is_dense                                       ? 1
                    : random_percent(r, t->has_far_rows ? 80 : 20) ? FAR
                    : random_percent(r, 60)                        ? 1
                                                                   : random_between(r, 2, 9);
    for (int i = 0; i < rank; i++) {
        int64_t extent = extents[order[i]] > 0 ? extents[order[i]] : 1;
        strides[order[i]] = stride;
        stride *= extent;
        if (i == 0 && size / extent < MOST / (extent + pitch))
            stride = (stride + pitch - 1) / pitch * pitch;
    }
    return qn_layout_strided(rank, extents, strides, out, err);
}

/* ---------------------------------------------------------------- views */

static void store_bits(void *p, int dtype, uint64_t bits)
{
    memcpy(p, &bits, (size_t)qn_dtype_bytes(dtype)); /* little endian */
}

/* Values in the whole memory; a byte of a bool is any. */
static void fill(randoms *r, test_view *v)
{
    size_t size = (size_t)unit_bytes(v);
    for (size_t at = 0; at < v->bytes; at++)
        v->initial[at] = (unsigned char)(at * 37 + at / 256);
    for (size_t at = (size_t)v->first % size;
         at + size <= v->bytes && at + (size_t)element_bytes(v) <= v->bytes; at += size)
        for (int p = 0; p < v->n_parts; p++) {
            int dtype = v->part[p].dtype;
            uint64_t bits = random_value(r, dtype);
            if (dtype == QN_BOOL && random_percent(r, 20))
                bits = random_bits(r) & 0xff;
            store_bits(v->initial + at + v->part[p].offset, dtype, bits);
        }
    memcpy(v->memory, v->initial, v->bytes);
}

/* Memory whose first element lies at the begin of a page, or whose last one ends with a page, and
 * an inaccessible page there; what is outside and accessible is compared. */
static bool make_fenced(test_case *t, test_view *v, size_t span)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE),
           whole = (span + GUARD_BYTES + page - 1) / page * page;
    v->map_bytes = whole + 2 * page;
    v->map = mmap(NULL, v->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (v->map == MAP_FAILED || mprotect(v->map + page, whole, PROT_READ | PROT_WRITE)) {
        v->map = v->map == MAP_FAILED ? NULL : v->map;
        return false;
    }
    bool is_first =
        v->unit || random_percent(&t->random,
                                  t->has_channels ? 25 : 50); /* aligned as its dtype in any case */
    v->first = is_first ? 0 : GUARD_BYTES;
    v->bytes = span + GUARD_BYTES;
    v->memory = is_first ? v->map + page : v->map + page + whole - v->bytes;
    return true;
}

static void free_memory(test_view *v)
{
    if (v->map)
        munmap(v->map, v->map_bytes);
    else
        free(v->memory);
    v->map = NULL;
}

static bool make_memory(test_case *t, test_view *v, int64_t low, int64_t high)
{
    int64_t size = element_bytes(v);
    size_t span = high < low ? 0 : (size_t)((high - low) * unit_bytes(v) + size);
    v->first =
        GUARD_BYTES -
        size * random_below(&t->random, (int)(GUARD_BYTES / size < 8 ? GUARD_BYTES / size : 8) + 1);
    v->bytes = (2 * GUARD_BYTES + span + 63) / 64 * 64;
    if (v->is_alone && random_percent(&t->random, t->has_channels ? 90 : 60))
        (void)make_fenced(t, v, span);
    else
        v->memory = aligned_alloc(64, v->bytes);
    v->initial = malloc(v->bytes);
    v->expected = malloc(v->bytes);
    if (!v->memory || !v->initial || !v->expected)
        return false;
    fill(&t->random, v);
    return true;
}

/* The memory of another view: large enough, or the view gets its own. */
static bool can_share(const test_case *t, const test_view *v, int64_t low, int64_t high)
{
    const test_view *other = &t->view[v->shares];
    size_t need = 2 * GUARD_BYTES + (size_t)(high - low + 1) * (size_t)qn_dtype_bytes(v->dtype);
    return other != v && other->memory && other->dtype == v->dtype && need <= other->bytes;
}

/* A dimension selects one of several addresses, which lie in any order. */
static bool make_multi(test_case *t, test_view *v, randoms *choices, qn_error *err)
{
    int at = random_below(choices, v->rank), order[MOST_MEMBERS];
    int64_t low, high, extent[VIEW_RANK], lower[VIEW_RANK], n = v->extent[at],
                                                            size = element_bytes(v);
    void *data[MOST_MEMBERS];
    for (int d = 0; d < v->rank - 1; d++)
        extent[d] = v->extent[d + (d >= at)];
    if (random_layout(choices, v->rank - 1, extent, v->role != ROLE_INPUT, lower, &v->member,
                      err) ||
        qn_layout_range(&v->member, &low, &high, err))
        return false;
    int64_t apart = high < low ? 0 : high - low + 1 + random_below(choices, 4);
    if (!make_memory(t, v, 0, n * apart - 1))
        return false;
    random_order(choices, (int)n, order);
    for (int64_t m = 0; m < n; m++)
        data[m] = v->memory + v->first + (order[m] * apart - low) * size;
    if (qn_view_multi_wrap(v->name, (int)n, data, v->dtype, &v->member, at, 0, &v->view, err))
        return false;
    v->layout = qn_layout_copy(&v->view.layout);
    for (int d = 0; d < v->rank; d++)
        v->lower[d] = v->layout.dim[d].lower;
    return true;
}

/* The elements of the view whose memory it is, in the same order. */
static bool make_twin(test_case *t, test_view *v, qn_error *err)
{
    const test_view *of = &t->view[v->shares];
    memcpy(v->extent, of->extent, sizeof v->extent);
    memcpy(v->lower, of->lower, sizeof v->lower);
    v->layout = qn_layout_copy(&of->layout);
    char *zero = (char *)of->view.data -
                 of->layout.origin * element_bytes(of); /* wrapping adds the origin */
    return qn_view_wrap(v->name, zero, v->dtype, &v->layout, 0, &v->view, err) == QN_OK;
}

static bool make_view(test_case *t, int i, qn_error *err)
{
    test_view *v = &t->view[i];
    if (v->role == ROLE_TWIN)
        return make_twin(t, v, err);
    bool is_written = v->role != ROLE_INPUT;
    int64_t low, high;
    randoms choices = v->layout_choices;
    if (random_percent(&choices, t->is_plain ? 2 : 8) && v->rank > 0 && v->is_alone &&
        !v->is_owner && has_plain_elements(v)) {
        int64_t most = 1;
        for (int d = 0; d < v->rank; d++)
            most = v->extent[d] > most || v->extent[d] == 0
                       ? (v->extent[d] ? v->extent[d] : MOST_MEMBERS + 1)
                       : most;
        if (most <= MOST_MEMBERS)
            return make_multi(t, v, &choices, err);
    }
    bool has_list = v->rank > 0 && random_percent(&choices, t->is_plain ? 3 : 15) && !v->is_owner;
    bool escapes =
        (is_written ? t->stores_escape : t->loads_escape) && random_percent(&choices, 50);
    bool is_plain =
        t->is_plain && v->role != ROLE_ATOMIC && !has_list && random_percent(&choices, 85);
    bool has_digits =
        t->has_digits && !has_list && v->rank > 0 && random_percent(&choices, is_written ? 30 : 70);
    if ((has_list     ? random_list(&choices, v, is_written, escapes, err)
         : has_digits ? random_digits(&choices, v->rank, v->extent, &v->layout, err)
         : is_plain   ? plain_layout(t, v, &choices, &v->layout, err)
                      : random_layout(&choices, v->rank, v->extent, is_written || v->is_owner,
                                      v->lower, &v->layout, err)) ||
        qn_layout_range(&v->layout, &low, &high, err))
        return false;
    unsigned char *memory;
    if (can_share(t, v, low, high)) {
        memory = t->view[v->shares].memory;
    } else {
        v->shares = i;
        if (!make_memory(t, v, low, high))
            return false;
        memory = v->memory;
    }
    int64_t size = element_bytes(v);
    unsigned char *first = v->shares == i
                               ? memory + v->first
                               : memory + GUARD_BYTES - size * random_below(&t->random, 9);
    void *zero = first - low * size;
    uint32_t traits = v->role == ROLE_INPUT && random_percent(&t->random, 30) ? QN_READ_ONLY : 0;
    qn_status status =
        v->record ? qn_view_wrap_record(v->name, zero, v->record, &v->layout, traits, &v->view, err)
                  : qn_view_wrap(v->name, zero, v->dtype, &v->layout, traits, &v->view, err);
    if (v->unit && low <= high) { /* as qn_view_field makes them, for any layout */
        v->view.unit = v->unit;
        v->view.data = first + (v->layout.origin - low) * unit_bytes(v);
    }
    return status == QN_OK;
}

/* Indices of the target's dimension, but for a few where loads may leave it: all elements, or the
 * numbers of different ones. */
static void fill_indices(test_case *t, test_view *v)
{
    randoms *r = &t->random;
    const test_view *to = v->target;
    int64_t lower = to->lower[v->target_dim], n = to->extent[v->target_dim], size = unit_bytes(v);
    for (int64_t at = v->first % size; n > 0 && !v->is_owner && at + size <= (int64_t)v->bytes;
         at += size)
        store_bits(v->initial + at, v->dtype, (uint64_t)(lower + random_between(r, 0, n - 1)));
    int64_t count = v->is_owner && v->extent[0] > n ? v->extent[0] : n;
    int64_t *number = malloc((size_t)(count + 1) * sizeof *number);
    for (int64_t i = 0; number && v->is_owner && i < count; i++) {
        int64_t at = random_between(r, 0, i);
        number[i] = number[at];
        number[at] = lower + i;
    }
    for (int64_t i = 0; number && v->is_owner && i < v->extent[0]; i++) {
        void *at;
        int64_t index = v->lower[0] + i;
        if (qn_view_at(&v->view, 1, &index, &at, NULL) == QN_OK)
            store_bits(v->initial + ((unsigned char *)at - v->memory), v->dtype,
                       (uint64_t)number[i]);
    }
    free(number);
    if (t->loads_escape && !v->is_owner && v->first + size < (int64_t)v->bytes &&
        random_percent(r, 30))
        store_bits(v->initial + v->first, v->dtype, (uint64_t)(lower + n));
    memcpy(v->memory, v->initial, v->bytes);
}

static void fill_all_indices(test_case *t)
{
    for (int i = 0; i < t->n_views; i++)
        if (t->view[i].target && t->view[i].memory)
            fill_indices(t, &t->view[i]);
}

bool make_views(test_case *t, qn_error *err)
{
    for (int i = 0; i < t->n_views; i++) {
        t->view[i].layout_choices.state = random_bits(&t->random);
        if (!make_view(t, i, err))
            return false;
    }
    fill_all_indices(t);
    return true;
}

/* The choices of layouts are made again from the same numbers: what was a unit stride stays one. */
/** How many indices more dimension d of a view of a plain kernel has, where the dimensions of the
 * domain have so many more. */
static int64_t growth_of(const test_view *v, int d, const int64_t *growth)
{
    if (v->role != ROLE_INPUT)
        return v->source[d] == NO_SOURCE ? 0 : growth[v->source[d]];
    return v->along[d] == NO_SOURCE ? 0 : growth[v->along[d]] * v->factor[d];
}

/* Whether the lower bound of a dimension follows from its extent (random_at_limit): indices of the
 * kernel that are constants hold for one extent then. */
static bool is_at_end(const test_view *v, int d)
{
    return v->lower[d] > INT64_MAX / 2;
}

bool vary_arguments(test_case *t, qn_error *err)
{
    int n_grown = 0;
    int64_t growth[MAX_DIMS] = {0};
    release_views(t);
    bool may_grow = t->is_plain;
    for (int i = 0; i < t->n_views; i++)
        for (int d = 0; d < t->view[i].rank; d++)
            may_grow &= !is_at_end(&t->view[i], d);
    for (int d = 0; d < t->n_dims && may_grow; d++)
        growth[d] = random_percent(&t->random, 50)
                        ? random_between(&t->random, 1, t->points < 2000 ? 5 : 1)
                        : 0;
    for (int i = 0; i < t->n_views; i++) {
        test_view *v = &t->view[i];
        for (int d = 0; d < v->rank && t->is_plain && v->role != ROLE_ATOMIC; d++)
            v->extent[d] += growth_of(v, d, growth);
        for (int d = 0; d < v->rank && n_grown < 3 && v->role != ROLE_TWIN && !t->is_plain; d++)
            if (random_percent(&t->random, 40) && !is_at_end(v, d)) {
                v->extent[d] += random_between(&t->random, 1, t->points < 2000 ? 3 : 1);
                n_grown++;
            }
        if (!make_view(t, i, err))
            return false;
    }
    fill_all_indices(t);
    for (int i = 0; i < t->n_scalars; i++)
        if (random_percent(&t->random, 60))
            t->args[t->n_views + i].bits = random_value(&t->random, t->scalar[i].dtype);
    return true;
}

void release_views(test_case *t)
{
    for (int i = 0; i < t->n_views; i++) {
        test_view *v = &t->view[i];
        qn_view_release(&v->view);
        qn_layout_release(&v->layout);
        qn_layout_release(&v->member);
        free_memory(v);
        free(v->initial);
        free(v->expected);
        free(v->list);
        v->memory = v->initial = v->expected = NULL;
        v->list = NULL;
    }
}
