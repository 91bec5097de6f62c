/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.c: what can be said of views without their storage: the check of the struct, the address of
 * an element, and whether two views share elements. Storage and reference counts are the runtime's.
 */
#include "ir/layout/layout.h"

#include <stdio.h>

/* ---------------------------------------------------------------- check */

/** Byte addresses [*begin, *end) of the elements at offsets low .. high; false if they leave the
 * address space. */
static bool find_bytes(const qn_view *v, int64_t low, int64_t high, uintptr_t *begin,
                       uintptr_t *end)
{
    int64_t unit = qn__unit_bytes(v), first, last, after;
    return !__builtin_mul_overflow(low, unit, &first) &&
           !__builtin_mul_overflow(high, unit, &last) &&
           !__builtin_add_overflow(last, qn__element_bytes(v), &after) &&
           !__builtin_add_overflow((uintptr_t)v->data, first, begin) &&
           !__builtin_add_overflow((uintptr_t)v->data, after, end);
}

/** Data of a view that is not empty: present, aligned, inside the address space. */
static qn_status check_data(const qn_view *v, int64_t low, int64_t high, const char *who,
                            qn_error *err)
{
    uintptr_t align = (uintptr_t)qn__view_align(v); /* a power of two */
    if (!v->data)
        return qn__fail(err, QN_ERR_NULL_DATA, "%s: view \"%s\": data is NULL for %lld elements",
                        who, qn__label(v->label), (long long)qn_layout_size(&v->layout));
    if ((uintptr_t)v->data & (align - 1))
        return qn__fail(err, QN_ERR_ALIGNMENT,
                        "%s: view \"%s\": data %p is not aligned to the %lld bytes of %s", who,
                        qn__label(v->label), v->data, (long long)align, qn_dtype_name(v->dtype));
    uintptr_t begin, end;
    if (!find_bytes(v, low, high, &begin, &end))
        return qn__fail(
            err, QN_ERR_OVERFLOW,
            "%s: view \"%s\": offsets [%lld,%lld] of %lld bytes leave the address space", who,
            qn__label(v->label), (long long)low, (long long)high, (long long)qn__unit_bytes(v));
    return QN_OK;
}

/** Fails with the message of a layout's check behind the name of the view. */
static qn_status fail_layout(const qn_view *v, const char *who, qn_error *err)
{
    qn_error inner;
    qn_status status = qn__layout_check(&v->layout, "layout", &inner);
    return qn__fail(err, status, "%s: view \"%s\": %s", who, qn__label(v->label), inner.message);
}

qn_status qn__view_check(const qn_view *v, const char *who, qn_error *err)
{
    if (!v)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view is NULL", who);
    if (qn__element_bytes(v) == 0)
        return qn__fail(err, QN_ERR_DTYPE, "%s: view \"%s\": %s", who, qn__label(v->label),
                        qn__no_dtype(v->dtype, (char[NO_DTYPE_BYTES]){0}));
    if (v->dtype != QN_RECORD && v->record)
        return qn__fail(err, QN_ERR_DTYPE, "%s: view \"%s\": dtype %s, and a record", who,
                        qn__label(v->label), qn_dtype_name(v->dtype));
    if (!qn_space_is_available(v->space))
        return qn__fail(err, QN_ERR_SPACE,
                        "%s: view \"%s\": space %d (%s) is not available in this build", who,
                        qn__label(v->label), (int)v->space, qn_space_name(v->space));
    if (v->unit > INT32_MAX)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": unit of %u bytes", who,
                        qn__label(v->label), (unsigned)v->unit);
    if (v->traits & ~QN_ALL_TRAITS)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": unknown traits 0x%x", who,
                        qn__label(v->label), (unsigned)v->traits);
    int64_t low, high;
    if (qn__layout_measure(&v->layout, "layout", &low, &high, NULL))
        return fail_layout(v, who, err);
    if (v->layout.origin)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": origin %lld of the layout is not 0",
                        who, qn__label(v->label), (long long)v->layout.origin);
    return low > high ? QN_OK : check_data(v, low, high, who, err);
}

/* ---------------------------------------------------------------- bytes */

int64_t qn__view_align(const qn_view *v)
{
    int64_t align = qn__dtype_align(v->dtype, v->record);
    int64_t unit = v->unit & (0 - (int64_t)v->unit); /* its lowest bit */
    return unit && unit < align ? unit : align;
}

void qn__view_bytes(const qn_view *v, int64_t *begin, int64_t *end)
{
    int64_t low = 0, high = -1;
    *begin = *end = 0;
    if (qn_layout_range(&v->layout, &low, &high, NULL) || high < low)
        return;
    /* These fit for a view that was checked; what kernels see of a MultiView has an extent without
     * end. */
    if (__builtin_mul_overflow(low, qn__unit_bytes(v), begin))
        *begin = INT64_MIN;
    if (__builtin_mul_overflow(high, qn__unit_bytes(v), end) ||
        __builtin_add_overflow(*end, qn__element_bytes(v), end))
        *end = INT64_MAX;
}

bool qn__view_is_storable(const qn_view *v)
{
    if (v->unit == 0 || !qn__layout_is_storable(&v->layout))
        return qn__layout_is_storable(&v->layout);
    if (qn__layout_is_empty(&v->layout))
        return true;
    qn_place place[QN_MAX_DIGITS];
    int n = qn__layout_places(&v->layout, place);
    qn__places_sort(place, n);
    qn_wide reach = qn__element_bytes(v); /* of the elements over all smaller strides */
    for (int i = 0; i < n; i++) {
        qn_wide step = (qn_wide)qn__magnitude(place[i].stride) * v->unit;
        if (step < reach)
            return false;
        reach += step * (place[i].extent - 1);
    }
    return true;
}

/* ---------------------------------------------------------------- elements */

static qn_status fail_bounds(const qn_view *v, int d, const int64_t *index, qn_error *err)
{
    char indices[200], extents[200];
    int64_t extent[QN_MAX_RANK];
    int n = v->layout.rank;
    for (int k = 0; k < n; k++)
        extent[k] = v->layout.dim[k].extent;
    qn__print_numbers(indices, sizeof indices, n, index);
    qn__print_numbers(extents, sizeof extents, n, extent);
    const qn_dim *dim = &v->layout.dim[d];
    return qn__fail(err, QN_ERR_BOUNDS,
                    "qn_view_at: view \"%.80s\": dimension %d: index %lld not in [%lld,%lld); "
                    "indices %s, extents %s",
                    qn__label(v->label), d, (long long)index[d], (long long)dim->lower,
                    (long long)(dim->lower + dim->extent), indices, extents);
}

qn_status qn_view_at(const qn_view *v, int n, const int64_t *index, void **out, qn_error *err)
{
    if (!v || !out || (!index && n > 0))
        return qn__fail(err, QN_ERR_ARGUMENT, "qn_view_at: %s is NULL",
                        !v     ? "view"
                        : !out ? "out"
                               : "index");
    qn_status status = qn__view_check(v, "qn_view_at", err);
    if (status)
        return status;
    const qn_layout *l = &v->layout;
    if (!qn_exec_can_access(QN_EXEC_SERIAL, v->space))
        return qn__fail(err, QN_ERR_SPACE,
                        "qn_view_at: view \"%s\": the host does not reach space %s",
                        qn__label(v->label), qn_space_name(v->space));
    if (v->traits & QN_ATOMIC)
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "qn_view_at: view \"%s\" is atomic: its elements have no addresses",
                        qn__label(v->label));
    if (n != l->rank)
        return qn__fail(err, QN_ERR_RANK, "qn_view_at: view \"%s\": %d indices for rank %d",
                        qn__label(v->label), n, l->rank);
    for (int d = 0; d < n; d++)
        if (!qn__is_projected(l, d) &&
            (index[d] < l->dim[d].lower || index[d] >= l->dim[d].lower + l->dim[d].extent))
            return fail_bounds(v, d, index, err);
    int64_t value[QN_MAX_RANK];
    if (qn__layout_tables(l)) {
        char who[120];
        snprintf(who, sizeof who, "qn_view_at: view \"%.80s\"", qn__label(v->label));
        status = qn__layout_look_up(l, index, value, who, err);
        index = value;
    }
    if (status == QN_OK)
        *out = (char *)v->data + qn__layout_offset_of(l, index) * qn__unit_bytes(v);
    return status;
}

/* ---------------------------------------------------------------- relation of two views */

/*
 * Views a and b share a byte iff there are an index of a, an index of b and a byte of each element
 * with
 *
 *     address(a) + sum(digit x stride) + byte = address(b) + sum(digit x stride) + byte
 *
 * that is, iff sum(x[k] x step[k]) = address(b) - address(a) has a solution with x[k] in
 * [low[k], high[k]]: one term per stride, of a counted forwards, of b backwards, equal strides
 * joined (for views of one shape these are mixed-radix digit differences), and one term of step 1
 * for the bytes of the elements. Steps are positive and in bytes.
 *
 * Solved from the largest step down. What the smaller terms reach bounds each x to few values;
 * their greatest common divisor excludes the interleaved cases at once; and where the smaller terms
 * reach every multiple of it in their range, no search is needed. After MAX_VISITS the answer is
 * "overlapping", which is always safe.
 */
typedef struct term {
    qn_wide step, low, high;
} term;

typedef struct equation {
    term term[2 * QN_MAX_DIGITS + 1]; /* largest step first */
    int n;
    /* Of the terms k, k+1, ...: the range of their sum, the divisor of all values, whether all
     * multiples are values. */
    qn_wide low[2 * QN_MAX_DIGITS + 2], high[2 * QN_MAX_DIGITS + 2], divisor[2 * QN_MAX_DIGITS + 2];
    bool dense[2 * QN_MAX_DIGITS + 2];
    int visits;
} equation;

enum { MAX_VISITS = 2000 };

static void add_term(equation *e, qn_wide step, qn_wide low, qn_wide high)
{
    if (step < 0) {
        qn_wide swap = low;
        step = -step;
        low = -high;
        high = -swap;
    }
    if (step == 0 || (low == 0 && high == 0))
        return;
    for (int k = 0; k < e->n; k++) {
        if (e->term[k].step == step) {
            e->term[k].low += low;
            e->term[k].high += high;
            return;
        }
    }
    int k = e->n++;
    for (; k > 0 && e->term[k - 1].step < step; k--)
        e->term[k] = e->term[k - 1];
    e->term[k] = (term){step, low, high};
}

static qn_wide divisor_of(qn_wide a, qn_wide b)
{
    while (b) {
        qn_wide rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/** Fills what is known of the tails of the list. The empty tail has the one value 0. */
static void describe_tails(equation *e)
{
    e->low[e->n] = e->high[e->n] = e->divisor[e->n] = 0;
    e->dense[e->n] = true;
    for (int k = e->n - 1; k >= 0; k--) {
        const term *t = &e->term[k];
        e->low[k] = e->low[k + 1] + t->low * t->step;
        e->high[k] = e->high[k + 1] + t->high * t->step;
        e->divisor[k] = divisor_of(t->step, e->divisor[k + 1]);
        bool is_only = k == e->n - 1;
        bool leaves_no_gap = e->divisor[k] == e->divisor[k + 1] &&
                             t->step <= e->high[k + 1] - e->low[k + 1] + e->divisor[k];
        e->dense[k] = e->dense[k + 1] && (is_only || leaves_no_gap);
    }
}

static qn_wide floor_div(qn_wide a, qn_wide b)
{
    return a / b - (a % b < 0);
}

/** Whether the terms from k on can sum to `rest`; true also when the search takes too long. */
static bool has_solution(equation *e, int k, qn_wide rest)
{
    if (rest < e->low[k] || rest > e->high[k])
        return false;
    if (k == e->n)
        return true;
    if (rest % e->divisor[k])
        return false;
    if (e->dense[k])
        return true;
    const term *t = &e->term[k];
    qn_wide first = -floor_div(e->high[k + 1] - rest, t->step); /* ceil((rest - high) / step) */
    qn_wide last = floor_div(rest - e->low[k + 1], t->step);
    first = first < t->low ? t->low : first;
    last = last > t->high ? t->high : last;
    for (qn_wide x = first; x <= last; x++) {
        if (++e->visits > MAX_VISITS || has_solution(e, k + 1, rest - x * t->step))
            return true;
    }
    return false;
}

static bool share_bytes(const qn_view *a, const qn_view *b)
{
    equation e;
    e.n = 0;
    e.visits = 0;
    qn_place place[QN_MAX_DIGITS];
    qn_wide unit_a = qn__unit_bytes(a), unit_b = qn__unit_bytes(b);
    int n = qn__layout_places(&a->layout, place);
    for (int i = 0; i < n; i++)
        add_term(&e, place[i].stride * unit_a, 0, place[i].extent - 1);
    n = qn__layout_places(&b->layout, place);
    for (int i = 0; i < n; i++)
        add_term(&e, place[i].stride * unit_b, -(qn_wide)(place[i].extent - 1), 0);
    add_term(&e, 1, -(qn_wide)(qn__element_bytes(b) - 1), qn__element_bytes(a) - 1);
    describe_tails(&e);
    return has_solution(&e, 0, (qn_wide)(uintptr_t)b->data - (qn_wide)(uintptr_t)a->data);
}

/** Of a MultiView: each member by itself, not the range from the first to the last. */
static int relation_of_members(const qn_view *a, const qn_view *b)
{
    int m = qn__layout_members(&a->layout);
    qn_view member = *a;
    qn_digits digits;
    for (int64_t p = 0; p < a->layout.dim[m].extent; p++) {
        qn__layout_member(&a->layout, m, p, &member.layout, &digits);
        member.data = (char *)a->data + member.layout.origin * qn__unit_bytes(a);
        member.layout.origin = 0;
        if (qn__view_relation(&member, b) != QN_DISJOINT)
            return QN_OVERLAPPING;
    }
    return QN_DISJOINT;
}

int qn__view_relation(const qn_view *a, const qn_view *b)
{
    int64_t low_a, high_a, low_b, high_b;
    uintptr_t begin_a, end_a, begin_b, end_b;
    if (!a->data || !b->data || qn__layout_is_empty(&a->layout) || qn__layout_is_empty(&b->layout))
        return QN_DISJOINT;
    if (a->data == b->data && qn__element_bytes(a) == qn__element_bytes(b) &&
        qn__unit_bytes(a) == qn__unit_bytes(b) && qn__layout_equal(&a->layout, &b->layout))
        return QN_SAME;
    if (qn__layout_measure(&a->layout, "", &low_a, &high_a, NULL) ||
        qn__layout_measure(&b->layout, "", &low_b, &high_b, NULL) ||
        !find_bytes(a, low_a, high_a, &begin_a, &end_a) ||
        !find_bytes(b, low_b, high_b, &begin_b, &end_b))
        return QN_OVERLAPPING;
    if (end_a <= begin_b || end_b <= begin_a)
        return QN_DISJOINT;
    if (qn__layout_members(&a->layout) >= 0)
        return relation_of_members(a, b);
    if (qn__layout_members(&b->layout) >= 0)
        return relation_of_members(b, a);
    return share_bytes(a, b) ? QN_OVERLAPPING : QN_DISJOINT;
}
