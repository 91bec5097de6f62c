/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_layout_queries.c: queries by stride, family and bytes; the transforms of
 * test_layout_algebra.c in the exact numbers of the specification, over hostile numbers, and with
 * bad arguments.
 */
#include "tests/unit/layout.h"

static void is_text(qn_layout *l, const char *expected, const char *what)
{
    char text[600];
    qn_layout_print(l, text, sizeof text);
    tap_is_str(text, expected, what);
    qn_layout_release(l);
}

/* ---------------------------------------------------------------- queries */

/** The formula as it is written: tries the p that the strides themselves propose. */
static bool is_right_by_formula(int n, const int64_t *e, const int64_t *s)
{
    for (int d = 0; d < n; d++)
        if (e[d] == 0)
            return true;
    if (n == 0 || (n == 1 && (s[0] == 1 || e[0] == 1)))
        return true;
    for (int proposed = 0; proposed < n; proposed++)
        for (int64_t divisor = 1; divisor <= 36; divisor++) {
            int64_t p = proposed < n - 1 ? s[proposed] / divisor : e[n - 1];
            bool fits = p >= e[n - 1] && (e[n - 1] == 1 || s[n - 1] == 1);
            for (int k = 0; k < n - 1 && fits; k++) {
                int64_t stride = p;
                for (int j = k + 1; j <= n - 2; j++)
                    stride *= e[j];
                fits = e[k] == 1 || s[k] == stride;
            }
            if (fits)
                return true;
        }
    return false;
}

static void test_families(void)
{
    int n_wrong = 0, n_right = 0;
    for (int i = 0; i < 40000; i++) {
        int n = (int)random_in(0, 4);
        int64_t e[4], s[4], e_left[4], s_left[4], stride = 1;
        for (int d = n - 1; d >= 0; d--) {
            e[d] = random_in(0, 20) ? random_in(1, 3) : 0;
            s[d] = random_in(0, 9) ? stride : random_in(-2, 9);
            stride *= e[d] + (random_in(0, 3) == 0);
        }
        for (int d = 0; d < n; d++) {
            e_left[n - 1 - d] = e[d];
            s_left[n - 1 - d] = s[d];
        }
        qn_layout right, left;
        n_wrong += qn_layout_strided(n, e, s, &right, NULL) != QN_OK ||
                   qn_layout_strided(n, e_left, s_left, &left, NULL) != QN_OK;
        bool expected = is_right_by_formula(n, e, s);
        n_right += expected && n > 1;
        n_wrong += qn_layout_is_right(&right) != expected || qn_layout_is_left(&left) != expected;
    }
    tap_note("%d of 40000 are Right", n_right);
    tap_ok(n_right > 4000 && n_right < 30000, "the sample has both");
    tap_is_int(n_wrong, 0, "Q3 formula of Right and of Left");
}

static void test_queries(void)
{
    qn_layout l;
    int64_t number = 77;
    qn_error err = {0};
    qn_layout_tiled(2, INDEX(5, 6), INDEX(2, 4), NULL, NULL, &l, NULL);
    tap_ok(!qn_layout_is_strided(&l) && !qn_layout_is_right(&l) && !qn_layout_is_left(&l),
           "tiles are of no family");
    tap_is_int(qn_layout_n_digits(&l), 4, "digits");
    tap_ok(qn_layout_stride(&l, 1, &number, &err) == QN_ERR_UNSUPPORTED && number == 77,
           "several digits have no stride");
    tap_is_str(err.message, "qn_layout_stride: dimension 1: has 2 digits, not one stride",
               "message");
    qn_layout_release(&l);
    qn_layout_strided(3, INDEX(3, 4, 5), INDEX(4, 1, 12), &l, NULL);
    tap_ok(qn_layout_is_exhaustive(&l) && qn_layout_is_strided(&l), "LY3 exhaustive and strided");
    tap_ok(qn_layout_stride(&l, 2, &number, NULL) == QN_OK && number == 12, "LY7 stride(2)");
    tap_ok(qn_layout_required_bytes(&l, 8, &number, NULL) == QN_OK && number == 480, "VC17 bytes");
    qn_layout_left_padded(2, INDEX(9, 3), 8, &l, NULL);
    tap_ok(!qn_layout_is_exhaustive(&l) &&
               qn_layout_required_bytes(&l, 8, &number, NULL) == QN_OK && number == 41 * 8,
           "VC17 bytes of padded");
    qn_layout_right(2, INDEX(0, 5), &l, NULL);
    tap_ok(qn_layout_required_bytes(&l, 8, &number, NULL) == QN_OK && number == 0, "empty");
    qn_layout_right(2, INDEX((int64_t)1 << 31, (int64_t)1 << 30), &l, NULL);
    tap_ok(qn_layout_required_bytes(&l, 2, &number, NULL) == QN_OK && number == (int64_t)1 << 62,
           "2^62 bytes");
    tap_ok(qn_layout_required_bytes(&l, 4, &number, &err) == QN_ERR_OVERFLOW && number == (int64_t)1
                                                                                              << 62,
           "VC19 2^63 bytes");
    qn_layout_strided(1, INDEX(2), INDEX(INT64_MAX), &l, NULL);
    tap_ok(qn_layout_required_bytes(&l, 1, &number, NULL) == QN_ERR_OVERFLOW, "span of 2^63");
    tap_ok(qn_layout_n_digits(NULL) == 0 && !qn_layout_is_strided(NULL) &&
               !qn_layout_is_right(NULL) && !qn_layout_is_left(NULL) &&
               !qn_layout_is_exhaustive(NULL),
           "queries of NULL");
    qn_layout bad = {.rank = 17};
    tap_ok(qn_layout_n_digits(&bad) == 0 && !qn_layout_is_strided(&bad) &&
               !qn_layout_is_right(&bad) && !qn_layout_is_left(&bad),
           "queries of a bad rank");
}

/* ---------------------------------------------------------------- exact numbers */

static void test_numbers(void)
{
    qn_layout l, r;
    qn_error err = {0};
    int64_t offset = 0;
    qn_layout_right(2, INDEX(10, 15), &l, NULL);
    qn_layout_shift(&l, INDEX(3, 3), &l, NULL);
    is_text(&l, "(10,15):(15,1)@(3,3)", "IM4, X1.14 shift by (3,3)");
    qn_layout_right(3, INDEX(2, 3, 4), &l, NULL);
    tap_ok(qn_layout_reshape(&l, 2, INDEX(2, 12), &r, &err) == QN_OK, "reshape");
    is_text(&r, "(2,12):(12,1)", "LY26, X2.2 (nz,ny,nx) -> (nz,ny*nx)");
    qn_layout_reshape(&l, 1, INDEX(24), &r, NULL);
    is_text(&r, "(24):(1)", "LY26 collapse");
    qn_layout_to_fortran(&l, NULL, &r, NULL);
    qn_layout_at(&r, 3, INDEX(4, 3, 2), &offset, NULL);
    tap_is_int(offset, 23, "X2.3 arrF(i,j,k) == arr(k-1,j-1,i-1)");
    tap_ok(qn_layout_is_left(&r), "LY27 Right is Left in Fortran style");
    qn_layout_to_c(&r, &r, NULL);
    tap_ok(qn__layout_equal(&l, &r), "X2.4 and back");
    qn_layout_strided(2, INDEX(4, 6), INDEX(8, 1), &l, NULL);
    tap_ok(qn_layout_reshape(&l, 1, INDEX(24), &r, NULL) == QN_OK && r.digits, "rows with gaps");
    is_text(&r, "((6,4)):((1,8))", "... are one dimension of two digits");
    tap_ok(qn_layout_reshape(&l, 2, INDEX(3, 8), &r, &err) == QN_ERR_UNSUPPORTED, "cut rows");
    tap_is_str(
        err.message,
        "qn_layout_reshape: dimension 1: extent 8 cuts or jumps over the digits of the layout",
        "message");
    tap_ok(qn_layout_reshape(&l, 2, INDEX(5, 5), &r, &err) == QN_ERR_EXTENT, "LY26 size mismatch");
    qn_layout_split(&l, 1, 2, &r, NULL);
    is_text(&r, "(4,3,2):(8,2,1)", "split");
    qn_layout_merge(&l, 0, &r, NULL);
    is_text(&r, "((6,4)):((1,8))", "merge");
    qn_layout_right(4, INDEX(2, 1, 3, 4), &l, NULL);
    qn_layout_coalesce(&l, &r, NULL);
    is_text(&r, "(24):(1)", "coalesce");
    qn_layout_squeeze(&l, &r, NULL);
    is_text(&r, "(2,3,4):(12,4,1)", "squeeze");
    qn_layout_expand(&l, 4, &r, NULL);
    is_text(&r, "(2,1,3,4,1):(12,12,4,1,0)", "expand");
    qn_layout_projected(3, INDEX(3, 0, 5), &l, NULL);
    qn_layout_coalesce(&l, &r, NULL);
    is_text(&r, "(15):(1)", "coalesce leaves out projected dimensions");
    qn_layout_squeeze(&l, &r, NULL);
    tap_ok(r.rank == 3 && r.projected == 2, "squeeze keeps them");
    qn_layout_tiled(2, INDEX(6, 8), INDEX(2, 4), NULL, NULL, &l, NULL);
    qn_layout_section(&l, 1, 4, 8, 1, &r, NULL);
    is_text(&r, "((2,3),4):((4,16),1)+8", "SV10 one tile of a row of tiles");
    qn_layout_section(&l, 0, 0, 6, 2, &r, NULL);
    is_text(&r, "(3,(4,2)):(16,(1,8))", "the first row of each tile");
    qn_layout_release(&l);
}

/* ---------------------------------------------------------------- hostile numbers */

static int64_t random_awkward(void)
{
    static const int64_t awkward[] = {0,
                                      1,
                                      -1,
                                      2,
                                      3,
                                      4,
                                      (int64_t)1 << 31,
                                      (int64_t)1 << 32,
                                      -((int64_t)1 << 32),
                                      (int64_t)1 << 62,
                                      INT64_MAX,
                                      INT64_MIN};
    return awkward[random_bits() % (sizeof awkward / sizeof *awkward)];
}

/** Offset of the last index in 128 bits, of one-digit layouts. */
static wide last_offset(const qn_layout *l)
{
    wide sum = l->origin;
    for (int d = 0; d < l->rank; d++)
        sum += (wide)(l->dim[d].extent - 1) * l->dim[d].stride;
    return sum;
}

/** Transforms of strided layouts of any numbers: what comes out passes the check, and has the last
 * offset where it should be. */
static void test_hostile(void)
{
    int n_wrong = 0, n_made[8] = {0};
    for (int i = 0; i < 200000; i++) {
        int64_t e[3], s[3], amount[3], index[5], offset = 0;
        for (int d = 0; d < 3; d++) {
            e[d] = random_in(0, 1) ? random_in(1, 8) : random_awkward();
            s[d] = random_awkward();
            amount[d] = random_awkward();
        }
        qn_layout l, out;
        if (qn_layout_strided(3, e, s, &l, NULL) != QN_OK)
            continue;
        int kind = i % 8, d = (int)random_in(0, 2);
        int64_t some = random_in(0, 1) ? random_in(1, 4) : random_awkward();
        int64_t flat[] = {qn_layout_size(&l)}, step[] = {e[d]};
        qn_status status = kind == 0   ? qn_layout_shift(&l, amount, &out, NULL)
                           : kind == 1 ? qn_layout_split(&l, d, some, &out, NULL)
                           : kind == 2 ? qn_layout_merge(&l, d % 2, &out, NULL)
                           : kind == 3 ? qn_layout_reshape(&l, 1, flat, &out, NULL)
                           : kind == 4 ? qn_layout_coalesce(&l, &out, NULL)
                           : kind == 5 ? qn_layout_to_fortran(&l, amount, &out, NULL)
                           : kind == 6 ? qn_layout_squeeze(&l, &out, NULL)
                                       : qn_layout_section(&l, d, 0, step[0], some, &out, NULL);
        bool must_work = kind == 3 || kind == 4 || kind == 6;
        if (kind == 0 || kind == 5) {
            must_work = true;
            for (int k = 0; k < 3; k++) {
                wide end = (wide)amount[k] + e[kind == 0 ? k : 2 - k];
                must_work = must_work && end >= INT64_MIN && end <= INT64_MAX;
            }
            n_wrong += must_work != (status == QN_OK);
        }
        n_wrong += must_work && status != QN_OK;
        if (status != QN_OK)
            continue;
        n_made[kind]++;
        n_wrong += qn__layout_check(&out, "x", NULL) != QN_OK;
        for (int p = 0; p < out.rank && qn_layout_size(&out) > 0; p++)
            index[p] = out.dim[p].lower + out.dim[p].extent - 1;
        if (kind != 7 && qn_layout_size(&l) > 0)
            n_wrong += qn_layout_size(&out) != qn_layout_size(&l) ||
                       qn_layout_at(&out, out.rank, index, &offset, NULL) != QN_OK ||
                       offset != last_offset(&l);
        qn_layout_release(&out);
    }
    for (int kind = 0; kind < 8; kind++)
        tap_ok(n_made[kind] > 300, "transform %d: %d made", kind, n_made[kind]);
    tap_is_int(n_wrong, 0, "Q5 the last element stays where it is, in 128 bits");
}

/* ---------------------------------------------------------------- bad arguments */

static void test_bad_arguments(void)
{
    const int64_t huge[3] = {INT64_MAX, INT64_MAX, INT64_MAX}, e[2] = {4, 6};
    qn_layout l, p, t, out, bad = {.rank = 17};
    int64_t number;
    qn_layout_right(3, INDEX(2, 3, 4), &l, NULL);
    qn_layout_projected(3, INDEX(2, 0, 4), &p, NULL);
    qn_layout_tiled(2, INDEX(4, 6), INDEX(2, 4), NULL, NULL, &t, NULL);
    qn_layout deep = {.rank = QN_MAX_RANK};
    for (int d = 0; d < QN_MAX_RANK; d++)
        deep.dim[d] = (qn_dim){0, 2, 0};
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_shift, NULL, huge, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_shift, &l, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_shift, &l, huge, NULL);
    REFUSED(QN_ERR_RANK, out, qn_layout_shift, &bad, huge, &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_layout_shift, &l, huge, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_squeeze, NULL, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_squeeze, &l, NULL);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_expand, &l, 4, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_expand, &l, -1, &out);
    REFUSED(QN_ERR_RANK, out, qn_layout_expand, &deep, 0, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_to_c, NULL, &out);
    REFUSED(QN_ERR_OVERFLOW, out, qn_layout_to_fortran, &l, huge, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_split, &l, 3, 1, &out);
    REFUSED(QN_ERR_EXTENT, out, qn_layout_split, &l, 2, 3, &out);
    REFUSED(QN_ERR_EXTENT, out, qn_layout_split, &l, 2, 0, &out);
    REFUSED(QN_ERR_UNSUPPORTED, out, qn_layout_split, &p, 1, 1, &out);
    REFUSED(QN_ERR_UNSUPPORTED, out, qn_layout_split, &t, 1, 3, &out);
    REFUSED(QN_ERR_RANK, out, qn_layout_split, &deep, 0, 1, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_merge, &l, 2, &out);
    REFUSED(QN_ERR_UNSUPPORTED, out, qn_layout_merge, &p, 0, &out);
    REFUSED(QN_ERR_UNSUPPORTED, out, qn_layout_merge, &t, 0, &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_reshape, &l, 2, NULL, &out);
    REFUSED(QN_ERR_RANK, out, qn_layout_reshape, &l, 17, e, &out);
    REFUSED(QN_ERR_EXTENT, out, qn_layout_reshape, &l, 2, INDEX(-4, -6), &out);
    REFUSED(QN_ERR_EXTENT, out, qn_layout_reshape, &l, 3, huge, &out);
    REFUSED(QN_ERR_UNSUPPORTED, out, qn_layout_reshape, &t, 1, INDEX(24), &out);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_coalesce, &l, NULL);
    REFUSED(QN_ERR_ARGUMENT, out, qn_layout_section, &l, 3, 0, 1, 1, &out);
    REFUSED(QN_ERR_RANGE, out, qn_layout_section, &l, 2, 3, 1, 1, &out);
    REFUSED(QN_ERR_RANGE, out, qn_layout_section, &l, 2, 0, 5, 1, &out);
    REFUSED(QN_ERR_RANGE, out, qn_layout_section, &l, 2, 0, 4, -1, &out);
    REFUSED(QN_ERR_UNSUPPORTED, out, qn_layout_section, &p, 1, 0, 0, 1, &out);
    REFUSED(QN_ERR_UNSUPPORTED, out, qn_layout_section, &t, 1, 1, 6, 1, &out);
    REFUSED(QN_ERR_ARGUMENT, number, qn_layout_stride, &l, 3, &number);
    REFUSED(QN_ERR_RANK, number, qn_layout_stride, &bad, 0, &number);
    REFUSED(QN_ERR_ARGUMENT, number, qn_layout_stride, &l, 0, NULL);
    REFUSED(QN_ERR_ARGUMENT, number, qn_layout_required_bytes, &l, -1, &number);
    REFUSED(QN_ERR_ARGUMENT, number, qn_layout_required_bytes, &l, 1, NULL);
    REFUSED(QN_ERR_RANK, number, qn_layout_required_bytes, &bad, 1, &number);
    qn_layout_release(&t);
}

/** The digit table is the only allocation: without it a call fails and leaves its argument alone.
 */
static void test_memory(void)
{
    const qn_digit digits[2] = {{4, 1}, {2, 8}};
    int two = 2;
    qn_layout l, rows, out;
    qn_layout_morton(2, INDEX(8, 8), NULL, &l, NULL);
    qn_layout_strided(2, INDEX(4, 6), INDEX(8, 1), &rows, NULL);
    qn__fail_allocation(1, true);
    REFUSED(QN_ERR_MEMORY, out, qn_layout_morton, 2, INDEX(8, 8), NULL, &out);
    REFUSED(QN_ERR_MEMORY, out, qn_layout_custom, 1, NULL, &two, digits, &out);
    REFUSED(QN_ERR_MEMORY, out, qn_layout_merge, &rows, 0, &out);
    REFUSED(QN_ERR_MEMORY, out, qn_layout_reshape, &l, 3, INDEX(2, 4, 8), &out);
    REFUSED(QN_ERR_MEMORY, out, qn_layout_section, &l, 0, 0, 4, 1, &out);
    REFUSED(QN_ERR_MEMORY, out, qn_layout_to_c, &l, &out);
    tap_ok(qn_layout_merge(&rows, 0, &rows, NULL) == QN_ERR_MEMORY && rows.rank == 2 &&
               !rows.digits,
           "in place, too");
    qn__fail_allocation(0, false);
    qn_layout_release(&l);
}

int main(void)
{
    test_families();
    test_queries();
    test_numbers();
    test_hostile();
    test_bad_arguments();
    test_memory();
    return tap_done();
}
