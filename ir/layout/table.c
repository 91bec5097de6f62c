/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c: dimensions whose positions stand for values of a table: index lists, and the
 * members of a MultiView. The digits of such a dimension are those of the values, so a layout with
 * tables is a regular one underneath, after its tables have been looked up. Lists are read at every
 * access, for they may change; members never do. Tables hold memory for the runtime, which makes
 * them and gives them the function that lets go.
 */
#include "ir/layout/layout.h"

#include <string.h>

/* ---------------------------------------------------------------- tables */

void qn__table_retain(qn_table *t)
{
    atomic_fetch_add_explicit(&t->references, 1, memory_order_relaxed);
}

void qn__table_release(qn_table *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->references, 1, memory_order_acq_rel) != 1)
        return;
    if (t->whole)
        qn__table_release(t->whole);
    else if (t->release)
        t->release(t);
    qn__free(t);
}

qn_table *qn__table_part(qn_table *t, int64_t first, int64_t step, int64_t n)
{
    qn_table *part = qn__alloc(sizeof *part);
    if (!part)
        return NULL;
    *part = *t;
    atomic_init(&part->references, 1);
    part->whole = t->whole ? t->whole : t;
    qn__table_retain(part->whole);
    part->value = n > 0 ? t->value + first * t->stride : t->value;
    part->stride = n > 1 ? t->stride * step : 1;
    part->n = n;
    return part;
}

bool qn__table_equal(const qn_table *a, const qn_table *b)
{
    if (!a || !b || a == b)
        return a == b;
    return a->is_members == b->is_members && a->value == b->value && a->n == b->n &&
           a->stride == b->stride && a->lower == b->lower && a->extent == b->extent;
}

qn_status qn__table_check_readable(const qn_table *t, int d, const char *who, qn_error *err)
{
    if (qn__table_is_readable(t))
        return QN_OK;
    return qn__fail(
        err, QN_ERR_SPACE,
        "%s: dimension %d: list \"%.80s\" is in space %s, which the host does not reach", who, d,
        qn__label(t->label), qn_space_name(t->space));
}

/* ---------------------------------------------------------------- layouts with tables */

int qn__layout_members(const qn_layout *l)
{
    uint32_t tables = qn__layout_tables(l);
    for (int d = 0; tables && d < l->rank; d++)
        if (tables >> d & 1 && l->digits->table[d]->is_members)
            return d;
    return -1;
}

/** Appends the digits of dimension d of `l` to a draft as dimension p. */
static bool copy_digits(const qn_layout *l, int d, qn_digits *draft, int p)
{
    qn_digit one;
    int n;
    const qn_digit *digit = qn__layout_dim_digits(l, d, &one, &n);
    return qn__draft_add(draft, p, qn__values(l, d), n, digit);
}

qn_status qn__layout_with_table(const qn_layout *l, int d, qn_table *table, qn_layout *out,
                                const char *who, qn_error *err)
{
    qn_digits draft = {0};
    qn_layout made;
    qn__layout_set(&made, l);
    const qn_digit member = {table->extent, 1};
    for (int p = 0; p < l->rank; p++)
        if (p == d && table->is_members ? !qn__draft_add(&draft, p, table->extent, 1, &member)
                                        : !copy_digits(l, p, &draft, p))
            return qn__fail(err, QN_ERR_LIMIT, "%s: dimension %d: more than %d digits", who, p,
                            QN_MAX_DIGITS);
    for (int p = 0; p < l->rank; p++) {
        if (p != d && qn__layout_table(l, p)) {
            draft.table[p] = l->digits->table[p];
            draft.tables |= UINT32_C(1) << p;
            qn__table_retain(draft.table[p]);
        }
    }
    qn__table_retain(table); /* the draft's: it is dropped on failure */
    draft.table[d] = table;
    draft.tables |= UINT32_C(1) << d;
    made.dim[d].lower = 0;
    made.dim[d].extent = table->n;
    qn_status status = qn__draft_finish(&draft, who, &made, err);
    if (status)
        return status;
    qn__table_release(table);
    if (out == l)
        qn__digits_release(l->digits);
    qn__layout_set(out, &made);
    return QN_OK;
}

qn_status qn__fail_value(const qn_table *t, int d, int64_t at, int64_t value, const char *who,
                         qn_error *err)
{
    return qn__fail(
        err, QN_ERR_BOUNDS,
        "%s: dimension %d: list \"%.80s\" holds %lld at position %lld, not in [%lld,%lld)", who, d,
        qn__label(t->label), (long long)value, (long long)at, (long long)t->lower,
        (long long)(t->lower + t->extent));
}

qn_status qn__layout_look_up(const qn_layout *l, const int64_t *index, int64_t *values,
                             const char *who, qn_error *err)
{
    for (int d = 0; d < l->rank; d++) {
        const qn_table *t = qn__layout_table(l, d);
        values[d] = index[d];
        if (!t)
            continue;
        qn_status status = qn__table_check_readable(t, d, who, err);
        if (status)
            return status;
        values[d] = qn__table_value(t, index[d] - l->dim[d].lower);
        if ((uint64_t)values[d] - (uint64_t)t->lower >= (uint64_t)t->extent)
            return qn__fail_value(t, d, index[d], values[d], who, err);
    }
    return QN_OK;
}

void qn__layout_member(const qn_layout *l, int d, int64_t p, qn_layout *out, qn_digits *digits)
{
    memset(digits, 0, sizeof *digits);
    out->rank = l->rank - 1;
    out->origin = l->origin + qn__table_value(l->digits->table[d], p);
    out->projected = (l->projected & ((UINT32_C(1) << d) - 1)) | (l->projected >> (d + 1) << d);
    out->digits = digits;
    for (int q = 0, e = 0; e < l->rank; e++) {
        if (e == d)
            continue;
        out->dim[q] = l->dim[e];
        copy_digits(l, e, digits, q); /* fewer than those of `l` */
        if (qn__layout_table(l, e)) {
            digits->table[q] = l->digits->table[e];
            digits->tables |= UINT32_C(1) << q;
        }
        q++;
    }
}

qn_status qn__layout_check_lists(const qn_layout *l, const char *who, qn_error *err)
{
    for (int d = 0; d < l->rank; d++) {
        const qn_table *t = qn__layout_table(l, d);
        if (!t || t->is_members || !qn__table_is_readable(t) || qn__layout_is_empty(l))
            continue;
        uint8_t *seen = qn__zalloc((size_t)t->extent / 8 + 1, 1);
        qn_status status = seen ? QN_OK
                                : qn__fail(err, QN_ERR_MEMORY,
                                           "%s: dimension %d: no memory to check its list", who, d);
        for (int64_t p = 0; p < t->n && status == QN_OK; p++) {
            int64_t value = qn__table_value(t, p);
            uint64_t bit = (uint64_t)value - (uint64_t)t->lower;
            if (bit >= (uint64_t)t->extent)
                status = qn__fail_value(t, d, p + l->dim[d].lower, value, who, err);
            else if (seen[bit / 8] >> bit % 8 & 1)
                status = qn__fail(err, QN_ERR_NOT_INJECTIVE,
                                  "%s: dimension %d: list \"%.80s\" holds %lld twice, the second "
                                  "time at position %lld",
                                  who, d, qn__label(t->label), (long long)value,
                                  (long long)(p + l->dim[d].lower));
            else
                seen[bit / 8] |= (uint8_t)(1u << bit % 8);
        }
        qn__free(seen);
        if (status)
            return status;
    }
    return QN_OK;
}

/* ---------------------------------------------------------------- what kernels see */

bool qn__digits_expand(qn_digits *t, int rank)
{
    int n_tables = __builtin_popcount(t->tables), at = rank;
    if (t->n == rank || rank + n_tables > QN_MAX_RANK || t->n + n_tables > QN_MAX_DIGITS)
        return true; /* in the dims, or not at all */
    qn_digits *x = qn__zalloc(1, sizeof *x);
    if (!x)
        return false;
    atomic_init(&x->references, 1);
    memcpy(x->first, t->first, sizeof x->first);
    memcpy(x->digit, t->digit, (size_t)t->n * sizeof *t->digit);
    x->n = t->n;
    for (int d = 0; d < rank; d++) {
        if (!(t->tables >> d & 1))
            continue;
        if (t->table[d]->is_members)
            x->digit[x->first[d]].extent = QN_MEMBER_EXTENT;
        x->digit[x->n++] = (qn_digit){t->table[d]->n, 0};
        x->first[++at] = x->n;
    }
    t->expanded = x;
    return true;
}

bool qn__layout_expand(const qn_layout *l, qn_layout *out)
{
    const qn_digits *t = l->digits;
    int n_tables = __builtin_popcount(t->tables), at = l->rank;
    bool is_plain = t->n == l->rank;
    if (l->rank + n_tables > QN_MAX_RANK || (!is_plain && !t->expanded))
        return false;
    qn__layout_set(out, l);
    out->digits = t->expanded;
    for (int d = 0; d < l->rank; d++) {
        const qn_table *table = qn__layout_table(l, d);
        if (is_plain)
            out->dim[d].stride = t->digit[t->first[d]].stride;
        if (!table)
            continue;
        out->dim[at++] = (qn_dim){l->dim[d].lower, l->dim[d].extent, 0};
        out->dim[d].lower = table->lower;
        out->dim[d].extent = table->is_members ? QN_MEMBER_EXTENT : table->extent;
    }
    out->rank = at;
    return true;
}
