/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_layout_random.c: random layouts next to a model, a plain table of all index tuples and
 * offsets. Constructors fill it by their definition, each transform by its post-condition; then
 * every query is compared with the table.
 */
#include "tests/unit/layout.h"

#include <stdlib.h>

enum { MODEL_SIZE = 1296 };

/** All index tuples of a layout, last dimension fastest, and their offsets. */
typedef struct model {
    int rank;
    int64_t lower[QN_MAX_RANK], extent[QN_MAX_RANK];
    int64_t n;
    int64_t offset[MODEL_SIZE];
} model;

static int64_t model_count(model *m)
{
    m->n = 1;
    for (int d = 0; d < m->rank; d++)
        m->n *= m->extent[d];
    return m->n;
}

/** The t-th index tuple. */
static void model_index(const model *m, int64_t t, int64_t *index)
{
    for (int d = m->rank - 1; d >= 0; d--) {
        index[d] = m->lower[d] + t % m->extent[d];
        t /= m->extent[d];
    }
}

static int64_t model_at(const model *m, const int64_t *index)
{
    int64_t t = 0;
    for (int d = 0; d < m->rank; d++)
        t = t * m->extent[d] + index[d] - m->lower[d];
    return m->offset[t];
}

/** Position of an index of a dense block: the last entry of `order` is slowest. */
static int64_t dense_at(int rank, const int64_t *extent, const int *order, const int64_t *index)
{
    int64_t offset = 0;
    for (int i = rank - 1; i >= 0; i--)
        offset = offset * extent[order[i]] + index[order[i]];
    return offset;
}

/** A random layout made by a constructor, and its model by the constructor's definition. */
static void make_random(qn_layout *l, model *m)
{
    int64_t strides[QN_MAX_RANK], tile[QN_MAX_RANK], count[QN_MAX_RANK];
    int inner[QN_MAX_RANK], outer[QN_MAX_RANK];
    qn_status status = QN_OK;
    m->rank = (int)random_in(0, 4);
    for (int d = 0; d < m->rank; d++) {
        m->lower[d] = 0;
        m->extent[d] = random_in(0, 20) ? random_in(1, 6) : 0;
        strides[d] = random_in(-12, 40);
        tile[d] = random_in(1, 4);
        count[d] = (m->extent[d] + tile[d] - 1) / tile[d];
    }
    random_order(m->rank, inner);
    random_order(m->rank, outer);
    int kind = (int)random_in(0, 7);
    for (int d = 0; d < m->rank && kind < 2; d++)
        inner[d] = kind == 0 ? m->rank - 1 - d : d;
    switch (kind) {
    case 0:
        status = qn_layout_right(m->rank, m->extent, l, NULL);
        break;
    case 1:
        status = qn_layout_left(m->rank, m->extent, l, NULL);
        break;
    case 2:
        status = qn_layout_ordered(m->rank, m->extent, inner, l, NULL);
        break;
    case 3:
        status = qn_layout_strided(m->rank, m->extent, strides, l, NULL);
        break;
    default:
        status = qn_layout_tiled(m->rank, m->extent, tile, inner, outer, l, NULL);
        break;
    }
    if (status)
        tap_ok(false, "constructor %d fails", kind);
    int64_t tile_size = 1;
    for (int d = 0; d < m->rank; d++)
        tile_size *= tile[d];
    model_count(m);
    for (int64_t t = 0; t < m->n; t++) {
        int64_t index[QN_MAX_RANK], low[QN_MAX_RANK], high[QN_MAX_RANK], sum = 0;
        model_index(m, t, index);
        for (int d = 0; d < m->rank; d++) {
            low[d] = index[d] % tile[d];
            high[d] = index[d] / tile[d];
            sum += index[d] * strides[d];
        }
        m->offset[t] = kind == 3   ? sum
                       : kind >= 4 ? dense_at(m->rank, count, outer, high) * tile_size +
                                         dense_at(m->rank, tile, inner, low)
                                   : dense_at(m->rank, m->extent, inner, index);
    }
}

/** Applies post-conditions: result(index) = m(source index). */
typedef struct change {
    int kind; /* 0 offset, 1 permute, 2 broadcast, 3 reverse, 4 slice */
    int d;
    int perm[QN_MAX_RANK];
    int64_t lower[QN_MAX_RANK], extent;
    qn_slice slice[QN_MAX_RANK];
} change;

/** The shape of the result of a change. */
static void change_shape(const change *c, const model *m, model *out)
{
    out->rank = m->rank;
    memcpy(out->lower, m->lower, sizeof m->lower);
    memcpy(out->extent, m->extent, sizeof m->extent);
    switch (c->kind) {
    case 0:
        memcpy(out->lower, c->lower, sizeof c->lower);
        break;
    case 1:
        for (int p = 0; p < m->rank; p++) {
            out->lower[p] = m->lower[c->perm[p]];
            out->extent[p] = m->extent[c->perm[p]];
        }
        break;
    case 2:
        out->rank++;
        for (int d = m->rank; d > c->d; d--) {
            out->lower[d] = m->lower[d - 1];
            out->extent[d] = m->extent[d - 1];
        }
        out->lower[c->d] = 0;
        out->extent[c->d] = c->extent;
        break;
    case 4:
        out->rank = 0;
        for (int d = 0; d < m->rank; d++) {
            const qn_slice *s = &c->slice[d];
            if (s->kind == QN_AT)
                continue;
            int64_t step = s->step ? s->step : 1;
            out->lower[out->rank] = s->kind == QN_ALL ? m->lower[d] : 0;
            out->extent[out->rank++] =
                s->kind == QN_ALL ? m->extent[d] : (s->end - s->begin + step - 1) / step;
        }
        break;
    default:
        break;
    }
}

/** The index of `m` that an index of the result stands for. */
static void change_index(const change *c, const model *m, const int64_t *index, int64_t *source)
{
    int p = 0;
    for (int d = 0; d < m->rank; d++) {
        const qn_slice *s = &c->slice[d];
        switch (c->kind) {
        case 0:
            source[d] = index[d] - c->lower[d] + m->lower[d];
            break;
        case 1:
            source[c->perm[d]] = index[d];
            break;
        case 2:
            source[d] = index[d + (d >= c->d)];
            break;
        case 3:
            source[d] = d == c->d ? 2 * m->lower[d] + m->extent[d] - 1 - index[d] : index[d];
            break;
        default:
            source[d] = s->kind == QN_AT    ? s->begin
                        : s->kind == QN_ALL ? index[p]
                                            : s->begin + index[p] * (s->step ? s->step : 1);
            p += s->kind != QN_AT;
        }
    }
}

static void random_change(change *c, const model *m)
{
    c->kind = (int)random_in(0, 4);
    c->d = (int)random_in(0, c->kind == 2 ? m->rank : m->rank > 0 ? m->rank - 1 : 0);
    c->extent = random_in(0, 8) ? random_in(1, 3) : 0;
    random_order(m->rank, c->perm);
    for (int d = 0; d < m->rank; d++) {
        c->lower[d] = random_in(-9, 9);
        int64_t kind = random_in(0, 9);
        c->slice[d] = (qn_slice){.kind = kind < 2 ? QN_AT : kind < 6 ? QN_ALL : QN_RANGE};
        if (c->slice[d].kind == QN_AT && m->extent[d] == 0)
            c->slice[d].kind = QN_ALL;
        if (c->slice[d].kind == QN_AT)
            c->slice[d].begin = m->lower[d] + random_in(0, m->extent[d] - 1);
        if (c->slice[d].kind == QN_RANGE) {
            c->slice[d].begin = m->lower[d] + random_in(0, m->extent[d]);
            c->slice[d].end = random_in(c->slice[d].begin, m->lower[d] + m->extent[d]);
            c->slice[d].step = random_in(0, 3);
            if (random_in(0, 2) == 0) {
                c->slice[d].begin = m->lower[d];
                c->slice[d].end = m->lower[d] + m->extent[d];
                c->slice[d].step = 1;
            }
        }
    }
}

static qn_status apply_change(const change *c, const qn_layout *l, qn_layout *out)
{
    switch (c->kind) {
    case 0:
        return qn_layout_offset(l, c->lower, out, NULL);
    case 1:
        return qn_layout_permute(l, c->perm, out, NULL);
    case 2:
        return qn_layout_broadcast(l, c->d, c->extent, out, NULL);
    case 3:
        return qn_layout_reverse(l, c->d, out, NULL);
    default:
        return qn_layout_slice(l, l->rank, c->slice, out, NULL);
    }
}

/** Changes layout and model; false if the layout may not be changed this way (several digits in a
 * dimension). */
static bool change_both(qn_layout *l, model *m)
{
    static model next;
    change c;
    random_change(&c, m);
    change_shape(&c, m, &next);
    if (c.kind == 3 && m->rank == 0)
        return false;
    if (model_count(&next) > MODEL_SIZE)
        return false;
    qn_layout changed = {0}, before = *l;
    bool in_place = random_in(0, 1) != 0;
    qn_status status = apply_change(&c, l, in_place ? l : &changed);
    if (status == QN_ERR_UNSUPPORTED && l->digits && (c.kind == 3 || c.kind == 4)) {
        if (memcmp(&before, l, sizeof before) != 0)
            tap_ok(false, "a refused transform leaves its argument alone");
        return false;
    }
    if (status)
        tap_ok(false, "transform %d: %s", c.kind, qn_status_name((int)status));
    if (!in_place) {
        qn_layout_release(l);
        *l = changed;
    }
    for (int64_t t = 0; t < next.n; t++) {
        int64_t index[QN_MAX_RANK], source[QN_MAX_RANK];
        model_index(&next, t, index);
        change_index(&c, m, index, source);
        next.offset[t] = model_at(m, source);
    }
    *m = next;
    return true;
}

static int compare_offsets(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/** What the queries got wrong, counted over all layouts. */
static struct {
    int offset, at, range, size, span, unique, contiguous, inverse, missing, equal, text, check,
        shape;
} wrong;

/** What was looked at: layouts of more than one element with ... */
static struct {
    int checked, tables, cut, unique, folded, gaps;
} seen;

static void check_inverse(const qn_layout *l, const model *m, const int64_t *sorted)
{
    int64_t index[QN_MAX_RANK], found[QN_MAX_RANK];
    for (int64_t t = 0; t < m->n; t++) {
        model_index(m, t, index);
        wrong.inverse += qn_layout_inverse(l, m->offset[t], found, NULL) != QN_OK ||
                         memcmp(index, found, (size_t)m->rank * sizeof *index) != 0;
    }
    int64_t low = m->n ? sorted[0] - 3 : -3, high = m->n ? sorted[m->n - 1] + 3 : 3;
    for (int64_t offset = low, k = 0; offset <= high; offset++) {
        while (k < m->n && sorted[k] < offset)
            k++;
        bool exists = k < m->n && sorted[k] == offset;
        wrong.missing += !exists && qn_layout_inverse(l, offset, found, NULL) != QN_ERR_NOT_FOUND;
    }
}

static void check_against(const qn_layout *l, const model *m)
{
    static int64_t sorted[MODEL_SIZE];
    seen.checked += m->n > 1;
    wrong.shape += l->rank != m->rank;
    for (int d = 0; d < m->rank; d++)
        wrong.shape += l->dim[d].extent != m->extent[d] || l->dim[d].lower != m->lower[d];
    for (int64_t t = 0; t < m->n; t++) {
        int64_t index[QN_MAX_RANK], offset = 0;
        model_index(m, t, index);
        wrong.offset += qn__layout_offset_of(l, index) != m->offset[t];
        wrong.at +=
            qn_layout_at(l, m->rank, index, &offset, NULL) != QN_OK || offset != m->offset[t];
    }
    memcpy(sorted, m->offset, (size_t)m->n * sizeof *sorted);
    qsort(sorted, (size_t)m->n, sizeof *sorted, compare_offsets);
    int64_t n_distinct = 0;
    for (int64_t t = 0; t < m->n; t++)
        n_distinct += t == 0 || sorted[t] != sorted[t - 1];
    int64_t low = m->n ? sorted[0] : 0, high = m->n ? sorted[m->n - 1] : -1;
    int64_t found_low = 99, found_high = 99;
    wrong.range += qn_layout_range(l, &found_low, &found_high, NULL) != QN_OK || found_low != low ||
                   found_high != high;
    wrong.size += qn_layout_size(l) != m->n;
    wrong.span += qn_layout_span(l) != high - low + 1;
    wrong.unique += qn_layout_is_unique(l) && n_distinct != m->n;
    wrong.contiguous += qn_layout_is_contiguous(l) != (n_distinct == high - low + 1);
    wrong.check += qn__layout_check(l, "x", NULL) != QN_OK;
    seen.tables += m->n > 1 && l->digits;
    seen.cut += m->n > 1 && l->digits && n_distinct == m->n && n_distinct != high - low + 1;
    seen.unique += m->n > 1 && qn_layout_is_unique(l);
    seen.folded += m->n > 1 && n_distinct < m->n;
    seen.gaps += m->n > 1 && n_distinct < high - low + 1;
    if (qn_layout_is_unique(l))
        check_inverse(l, m, sorted);
    qn_layout copy = qn_layout_copy(l);
    wrong.equal += !qn__layout_equal(l, &copy);
    if (m->rank > 0 && copy.dim[0].extent > 0) {
        copy.dim[0].lower++;
        wrong.equal += qn__layout_equal(l, &copy);
    }
    qn_layout_release(&copy);
    char small[8], large[600];
    size_t n = qn_layout_print(l, large, sizeof large);
    wrong.text += n != strlen(large) || qn_layout_print(l, NULL, 0) != n ||
                  qn_layout_print(l, small, sizeof small) != n || strncmp(small, large, 7) != 0 ||
                  small[n < 7 ? n : 7] != '\0';
}

static void test_random(void)
{
    static model m;
    int n_changes = 0;
    for (int i = 0; i < 4000; i++) {
        qn_layout l;
        make_random(&l, &m);
        check_against(&l, &m);
        for (int64_t k = random_in(0, 5); k > 0; k--) {
            n_changes += change_both(&l, &m);
            check_against(&l, &m);
        }
        qn_layout_release(&l);
    }
    tap_note("4000 layouts, %d transforms; %d of more than one element: %d with tables (%d with "
             "gaps), %d unique, "
             "%d folded, %d with gaps",
             n_changes, seen.checked, seen.tables, seen.cut, seen.unique, seen.folded, seen.gaps);
    tap_ok(seen.tables > 1000 && seen.cut > 500 && seen.unique > 3000 && seen.folded > 1000 &&
               seen.gaps > 1000,
           "the sample has all sorts");
    tap_is_int(wrong.shape, 0, "rank, extents and lower bounds");
    tap_is_int(wrong.offset, 0, "offset of an index");
    tap_is_int(wrong.at, 0, "qn_layout_at");
    tap_is_int(wrong.range, 0, "range is that of all offsets");
    tap_is_int(wrong.size, 0, "size");
    tap_is_int(wrong.span, 0, "span");
    tap_is_int(wrong.unique, 0, "unique layouts are");
    tap_is_int(wrong.contiguous, 0, "contiguous iff every offset of the span is used");
    tap_is_int(wrong.inverse, 0, "inverse(offset(i)) == i for unique layouts");
    tap_is_int(wrong.missing, 0, "offsets without an index are not found");
    tap_is_int(wrong.equal, 0, "equal to its copy, not after a change");
    tap_is_int(wrong.text, 0, "text is cut like snprintf");
    tap_is_int(wrong.check, 0, "check passes");
}

/** Without negative or zero strides and tables, the rule must find uniqueness where mixed radix has
 * it. */
static void test_unique_is_known(void)
{
    int n_wrong = 0;
    for (int i = 0; i < 2000; i++) {
        int64_t extents[4], strides[4], stride = 1;
        int order[4];
        random_order(4, order);
        for (int k = 0; k < 4; k++) {
            int d = order[k];
            extents[d] = random_in(1, 5);
            strides[d] = extents[d] == 1 ? random_in(-9, 9) : random_in(0, 1) ? stride : -stride;
            stride = stride * extents[d] + random_in(0, 3);
        }
        qn_layout l;
        qn_layout_strided(4, extents, strides, &l, NULL);
        n_wrong += !qn_layout_is_unique(&l);
    }
    tap_is_int(n_wrong, 0,
               "padded dense layouts in any order and direction are known to be unique");
}

int main(void)
{
    test_random();
    test_unique_is_known();
    return tap_done();
}
