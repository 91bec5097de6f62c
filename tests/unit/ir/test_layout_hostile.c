/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_layout_hostile.c: layouts of absurd numbers: what is accepted is exactly what fits in 64
 * bits, by arithmetic in 128 bits; what was made by hand is refused or harmless.
 */
#include "tests/unit/layout.h"

static const int64_t awkward[] = {0,
                                  1,
                                  -1,
                                  2,
                                  3,
                                  -2,
                                  ((int64_t)1 << 31) - 1,
                                  (int64_t)1 << 31,
                                  ((int64_t)1 << 31) + 1,
                                  -((int64_t)1 << 31),
                                  ((int64_t)1 << 32) - 1,
                                  (int64_t)1 << 32,
                                  ((int64_t)1 << 32) + 1,
                                  (int64_t)1 << 62,
                                  -((int64_t)1 << 62),
                                  INT64_MAX,
                                  INT64_MAX - 1,
                                  INT64_MIN,
                                  INT64_MIN + 1};

static int64_t random_awkward(void)
{
    return awkward[random_bits() % (sizeof awkward / sizeof *awkward)];
}

static bool fits(wide x)
{
    return x >= INT64_MIN && x <= INT64_MAX;
}

/** What the definition says of a strided layout: accept or not, and the range. */
static bool expect_strided(int n, const int64_t *extents, const int64_t *strides, int64_t origin,
                           wide *low, wide *high)
{
    bool is_empty = false, is_large = false;
    wide size = 1;
    for (int d = 0; d < n; d++) {
        if (extents[d] < 0)
            return false;
        is_empty |= extents[d] == 0;
    }
    *low = is_empty ? 0 : origin;
    *high = is_empty ? -1 : origin;
    for (int d = 0; d < n && !is_empty && !is_large; d++) {
        size *= extents[d];
        wide reach = (wide)(extents[d] - 1) * strides[d];
        *low += reach < 0 ? reach : 0;
        *high += reach > 0 ? reach : 0;
        is_large = !fits(size) || !fits(*low) || !fits(*high);
    }
    return !is_large;
}

static void test_hostile_strided(void)
{
    int n_wrong = 0, n_accepted = 0;
    for (int i = 0; i < 200000; i++) {
        int64_t extents[3], strides[3], low = 0, high = 0;
        int n = (int)random_in(1, 3);
        for (int d = 0; d < n; d++) {
            extents[d] = random_awkward();
            strides[d] = random_awkward();
        }
        wide expect_low = 0, expect_high = 0;
        qn_layout l;
        bool accepts = expect_strided(n, extents, strides, 0, &expect_low, &expect_high);
        bool accepted = qn_layout_strided(n, extents, strides, &l, NULL) == QN_OK;
        n_wrong += accepts != accepted;
        n_accepted += accepted;
        if (accepted) {
            n_wrong += qn_layout_range(&l, &low, &high, NULL) != QN_OK || low != expect_low ||
                       high != expect_high;
            wide span = expect_high - expect_low + 1;
            n_wrong += qn_layout_span(&l) != (fits(span) ? (int64_t)span : -1);
            n_wrong += qn_layout_is_unique(&l) && qn_layout_is_contiguous(&l) && fits(span) &&
                       qn_layout_size(&l) != (int64_t)span;
        }
    }
    tap_note("accepted %d of 200000", n_accepted);
    tap_is_int(n_wrong, 0, "H3 strided: accepted iff the range fits");
}

static void test_hostile_dense(void)
{
    int n_wrong = 0;
    for (int i = 0; i < 100000; i++) {
        int64_t extents[3];
        int order[3];
        random_order(3, order);
        wide stride = 1;
        bool accepts = true;
        for (int d = 0; d < 3; d++) {
            extents[d] = random_awkward();
            accepts &= extents[d] >= 0;
        }
        for (int k = 0; k < 3 && accepts; k++) {
            stride *= extents[order[k]];
            accepts = fits(stride);
        }
        qn_layout l;
        n_wrong += (qn_layout_ordered(3, extents, order, &l, NULL) == QN_OK) != accepts;
    }
    tap_is_int(n_wrong, 0, "H3 dense: accepted iff all products fit");
}

/** One of the transforms, with any numbers. */
static qn_status transform_anyhow(const qn_layout *l, qn_layout *out)
{
    int perm[3];
    int64_t lower[3];
    qn_slice slices[3];
    random_order(l->rank, perm);
    for (int d = 0; d < l->rank; d++) {
        lower[d] = random_awkward();
        slices[d] = (qn_slice){(int32_t)random_in(0, 2), random_awkward(), random_awkward(),
                               random_awkward()};
        if (random_in(0, 1))
            slices[d].begin = l->dim[d].lower;
    }
    switch (random_in(0, 4)) {
    case 0:
        return qn_layout_offset(l, lower, out, NULL);
    case 1:
        return qn_layout_permute(l, perm, out, NULL);
    case 2:
        return qn_layout_broadcast(l, (int)random_in(0, 3), random_awkward(), out, NULL);
    case 3:
        return qn_layout_reverse(l, (int)random_in(0, 2), out, NULL);
    default:
        return qn_layout_slice(l, l->rank, slices, out, NULL);
    }
}

/** Layouts made by hand of any numbers: every function returns, and the check decides as the
 * definition does. */
static void test_hostile_fields(void)
{
    int n_wrong = 0;
    for (int i = 0; i < 100000; i++) {
        qn_layout l = {.rank = (int32_t)random_in(0, 3), .origin = random_awkward()};
        int64_t extents[3], strides[3], index[3], offset;
        wide low, high;
        bool accepts = true;
        for (int d = 0; d < l.rank; d++) {
            extents[d] = random_awkward();
            strides[d] = random_awkward();
            index[d] = random_awkward();
            l.dim[d] = (qn_dim){random_awkward(), extents[d], strides[d]};
            accepts &= fits((wide)l.dim[d].lower + extents[d]);
        }
        accepts &= expect_strided(l.rank, extents, strides, l.origin, &low, &high);
        bool accepted = qn__layout_check(&l, "x", NULL) == QN_OK;
        n_wrong += accepts != accepted;
        qn_layout_size(&l);
        qn_layout_span(&l);
        qn_layout_is_unique(&l);
        qn_layout_is_contiguous(&l);
        qn_layout_print(&l, NULL, 0);
        qn_status status = qn_layout_at(&l, l.rank, index, &offset, NULL);
        n_wrong += accepted && status != QN_OK && status != QN_ERR_BOUNDS;
        if (status == QN_OK && qn_layout_is_unique(&l) && accepted) {
            int64_t found[3];
            n_wrong += qn_layout_inverse(&l, offset, found, NULL) != QN_OK ||
                       memcmp(found, index, (size_t)l.rank * sizeof *found) != 0;
        }
        qn_layout out;
        status = transform_anyhow(&l, &out);
        n_wrong += status == QN_OK && (!accepted || qn__layout_check(&out, "x", NULL) != QN_OK);
    }
    tap_is_int(n_wrong, 0, "H3 by hand: checked, and transforms give layouts that pass the check");
}

static void test_hostile_tiled(void)
{
    int n_wrong = 0, n_accepted = 0;
    for (int i = 0; i < 100000; i++) {
        int64_t extents[2], tile[2], index[2], found[2], offset;
        wide product = 1;
        bool accepts = true;
        for (int d = 0; d < 2; d++) {
            extents[d] = random_awkward();
            tile[d] = random_in(0, 1) ? random_in(1, 5) : random_awkward();
            accepts &= extents[d] >= 0 && tile[d] >= 1;
        }
        for (int d = 1; d >= 0 && accepts; d--)
            accepts = fits(product *= tile[d]);
        for (int d = 1; d >= 0 && accepts; d--)
            accepts = fits(product *= extents[d] / tile[d] + (extents[d] % tile[d] != 0));
        qn_layout l;
        bool accepted = qn_layout_tiled(2, extents, tile, NULL, NULL, &l, NULL) == QN_OK;
        n_wrong += accepted != accepts;
        if (!accepted)
            continue;
        n_accepted++;
        n_wrong += qn__layout_check(&l, "x", NULL) != QN_OK || !qn_layout_is_unique(&l);
        if (qn_layout_size(&l) > 0) {
            for (int d = 0; d < 2; d++)
                index[d] = extents[d] - 1 - random_in(0, extents[d] - 1) % 3;
            n_wrong += qn_layout_at(&l, 2, index, &offset, NULL) != QN_OK ||
                       qn_layout_inverse(&l, offset, found, NULL) != QN_OK ||
                       memcmp(index, found, sizeof index) != 0;
        }
        qn_layout_release(&l);
    }
    tap_note("accepted %d of 100000", n_accepted);
    tap_is_int(n_wrong, 0, "H3 tiled: accepted iff all products fit; inverse at the far corner");
}

int main(void)
{
    test_hostile_strided();
    test_hostile_dense();
    test_hostile_fields();
    test_hostile_tiled();
    return tap_done();
}
