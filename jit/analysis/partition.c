/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition.c: where along a parallel dimension values of the body take another form, and which
 * form they have in a range (partition.h). Knows no LLVM.
 *
 * Iterations of parallel dimensions come in any order, so sections may follow one another. A
 * comparison of two parallel dimensions, as of a triangle, has no section.
 */
#include "jit/analysis/partition.h"

enum { MOST_BOUNDS = 16, MOST_PERIODS = 3, MOST_FACTOR = INT16_MAX };
__extension__ typedef __int128 wide;

typedef struct cutter {
    const qn_kernel *k;
    const qn_facts *f;
    qn_analysis a;
    qn_interval *range; /* of each value */
    int dim;            /* that is cut */
    int n;
    int64_t bound[MOST_BOUNDS]; /* inside of the dimension */
} cutter;

/** by * i + what is from low to high, where i is the index of one dimension. */
typedef struct line {
    int64_t by, low, high;
} line;

/* ---------------------------------------------------------------- forms */

static bool has_known_range(const qn_kernel *k, uint32_t i)
{
    return qn__is_integer(k->inst[i].type) && k->inst[i].type != QN_U64;
}

/** What a comparison of integers is: 1, 0, or -1, if ranges do not tell. */
static int compared(int op, qn_interval a, qn_interval b)
{
    bool is_equal = a.low == a.high && b.low == b.high && a.low == b.low,
         is_apart = a.high < b.low || b.high < a.low;
    switch (op) {
    case QN_OP_lt:
        return a.high < b.low ? 1 : a.low >= b.high ? 0 : -1;
    case QN_OP_le:
        return a.high <= b.low ? 1 : a.low > b.high ? 0 : -1;
    case QN_OP_gt:
        return compared(QN_OP_lt, b, a);
    case QN_OP_ge:
        return compared(QN_OP_le, b, a);
    case QN_OP_eq:
        return is_equal ? 1 : is_apart ? 0 : -1;
    case QN_OP_ne:
        return is_equal ? 0 : is_apart ? 1 : -1;
    default:
        return -1;
    }
}

qn_form qn__form_of(const qn_kernel *k, const qn_interval *range, uint32_t i)
{
    const qn_inst *x = &k->inst[i];
    const uint32_t *arg = qn__args(k, i);
    const qn_form own = {.kind = QN_FORM_OWN};
    if (x->op < QN_I_PURE || x->n_args != 2 || !has_known_range(k, arg[0]))
        return own;
    int op = qn__pure(x);
    qn_interval a = range[arg[0]], b = range[arg[1]];
    int truth = compared(op, a, b);
    if (truth >= 0)
        return (qn_form){QN_FORM_NUMBER, truth};
    if (has_known_range(k, i) && range[i].low == range[i].high)
        return (qn_form){QN_FORM_NUMBER, range[i].low};
    if (op == QN_OP_min || op == QN_OP_max) {
        bool is_below = a.high <= b.low, is_above = a.low >= b.high;
        if (is_below || is_above)
            return (qn_form){is_below == (op == QN_OP_min) ? QN_FORM_FIRST : QN_FORM_SECOND, 0};
    }
    if (op == QN_OP_rem && b.low == b.high && b.low > 0) {
        int64_t m = b.low;
        if (a.low > -m && a.high < m)
            return (qn_form){QN_FORM_FIRST, 0};
        if (a.low >= 0 && a.low / m == a.high / m)
            return (qn_form){QN_FORM_FIRST, a.low / m * m};
    }
    return own;
}

/* ---------------------------------------------------------------- where forms change */

/** Adds scale times an affine value; false if other parallel dimensions, or what is computed of
 * them, have a part in it. */
static bool add_value(const cutter *c, uint32_t value, int64_t scale, line *x)
{
    const qn_affine *of = &c->a.affine[value];
    wide low = x->low + (wide)scale * of->constant, high = x->high + (wide)scale * of->constant;
    if (c->k->inst[value].type != QN_I64)
        return false;
    for (int t = 0; t < c->k->n_dims + 2; t++) {
        bool is_dim = t < c->k->n_dims;
        uint32_t sym = is_dim ? c->k->dim[t] : of->sym[t - c->k->n_dims];
        int64_t by = is_dim ? of->coef[t] : of->sym_coef[t - c->k->n_dims];
        if (by == 0 || sym == 0)
            continue;
        if (by < -MOST_FACTOR || by > MOST_FACTOR)
            return false;
        by *= scale;
        if (is_dim && t == c->dim) {
            x->by += by;
            continue;
        }
        for (int d = 0; d < c->k->n_dims; d++)
            if ((c->a.value[sym].deps >> d & 1) && !qn__is_reduction(c->k, d) &&
                qn__trips(c->f, d) != 1)
                return false;
        qn_interval r = c->range[sym];
        low += (wide)by * (by > 0 ? r.low : r.high);
        high += (wide)by * (by > 0 ? r.high : r.low);
    }
    x->low = (int64_t)low;
    x->high = (int64_t)high;
    return low > INT32_MIN && high < INT32_MAX;
}

/** The forms change where the line reaches `at`: for the first of what may be added, and for the
 * last. */
static void add_bounds(cutter *c, const line *x, int64_t at)
{
    const int64_t ends[2] = {x->low, x->high};
    for (int n = 0; n < 2; n++) {
        int64_t over = at - ends[n], by = x->by, b;
        if (by < 0) { /* below `at` from the index on where by * i <= over - 1 */
            over = 1 - over;
            by = -by;
        }
        b = over > 0 ? (over + by - 1) / by : -(-over / by);
        bool is_known = b <= c->f->begin[c->dim].value || b >= c->f->end[c->dim].value;
        for (int m = 0; m < c->n; m++)
            is_known |= c->bound[m] == b;
        if (!is_known && c->n < MOST_BOUNDS)
            c->bound[c->n++] = b;
    }
}

/** Where a quotient or a remainder by a number has another multiple of it. */
static void cut_periods(cutter *c, const uint32_t *arg)
{
    line x = {0};
    qn_interval a = c->range[arg[0]], m = c->range[arg[1]];
    if (m.low != m.high || m.low <= 0 || a.low <= INT32_MIN || a.high >= INT32_MAX ||
        a.high / m.low - a.low / m.low > MOST_PERIODS || !add_value(c, arg[0], 1, &x) || !x.by)
        return;
    for (int64_t at = a.low / m.low * m.low; at <= a.high; at += m.low)
        add_bounds(c, &x, at);
}

/** Whether a line is not negative in most of the dimension: where both operands of a limit are one
 * number, either form is right, and the longer section takes that index. */
static bool is_mostly_above(const cutter *c, const line *x)
{
    const int64_t middle = (c->f->begin[c->dim].value + c->f->end[c->dim].value - 1) / 2;
    return (wide)x->by * middle + x->low >= 0;
}

static void cut_at(cutter *c, uint32_t i)
{
    const qn_inst *inst = &c->k->inst[i];
    const uint32_t *arg = qn__args(c->k, i);
    line x = {0};
    if (inst->op < QN_I_PURE || inst->n_args != 2 || c->k->inst[arg[0]].type != QN_I64)
        return;
    int op = qn__pure(inst);
    if (op == QN_OP_rem || op == QN_OP_div) {
        cut_periods(c, arg);
        return;
    }
    bool is_limit = op == QN_OP_min || op == QN_OP_max;
    if ((!is_limit && qn__op_info[op].rule != QN_RULE_COMPARE) || !add_value(c, arg[0], 1, &x) ||
        !add_value(c, arg[1], -1, &x) || !x.by)
        return;
    bool is_above = is_limit && is_mostly_above(c, &x), is_below = is_limit && !is_above;
    if (op != QN_OP_le && op != QN_OP_gt && !is_below)
        add_bounds(c, &x, 0);
    if (op != QN_OP_lt && op != QN_OP_ge && !is_above)
        add_bounds(c, &x, 1);
}

/* ---------------------------------------------------------------- sections */

/** The longest section between two bounds. */
static qn_section longest(const cutter *c)
{
    const int64_t begin = c->f->begin[c->dim].value, end = c->f->end[c->dim].value;
    qn_section best = {begin, begin};
    for (int n = 0; n <= c->n; n++) {
        int64_t from = n < c->n ? c->bound[n] : begin, to = end;
        for (int m = 0; m < c->n; m++)
            to = c->bound[m] > from && c->bound[m] < to ? c->bound[m] : to;
        if (to - from > best.end - best.begin)
            best = (qn_section){from, to};
    }
    return best;
}

/** The interior, behind its rims. */
static void choose(const cutter *c, qn_sections *out)
{
    const int64_t begin = c->f->begin[c->dim].value, end = c->f->end[c->dim].value;
    const qn_section inside = longest(c);
    *out = (qn_sections){.dim = c->dim};
    if (inside.begin > begin)
        out->of[out->n++] = (qn_section){begin, inside.begin};
    if (inside.end < end)
        out->of[out->n++] = (qn_section){inside.end, end};
    out->of[out->n++] = inside;
}

/** Whether sections may follow one another: parallel dimensions, nothing that fails or is told. */
static bool may_be_cut(const qn_kernel *k, const qn_facts *f)
{
    if (f->is_ordered || f->target->has_grid || qn__n_sequential(k) || qn__may_fail(k, f))
        return false;
    for (int p = 0; p < k->n_params; p++)
        if (k->param[p].has_atomics)
            return false;
    return true;
}

/** The dimension that most accesses walk from neighbour to neighbour, the last one of several. Rims
 * of others have whole vectors along it where it is cut before them. */
static int dim_of_rows(const qn_analysis *a)
{
    int best = a->k->n_dims - 1, most = 0;
    for (int d = a->k->n_dims; d-- > 0;) {
        int n = 0;
        int64_t stride;
        for (uint32_t s = 0; s < a->k->n_accesses; s++)
            n += qn__access_stride(a, a->k->access[s].inst, d, &stride) &&
                 (stride == 1 || stride == -1);
        best = n > most ? d : best;
        most = n > most ? n : most;
    }
    return best;
}

/** Finds the bounds inside of a dimension; false: there are none. */
static bool find_bounds(cutter *c, int d)
{
    c->dim = d;
    c->n = 0;
    for (uint32_t i = c->k->body; i < c->k->n_insts && qn__is_parallel(c->k, d) &&
                                  qn__is_exact(c->f, d) && qn__trips(c->f, d) > 1;
         i++)
        cut_at(c, i);
    return c->n > 0;
}

bool qn__sections_of(const qn_kernel *k, const qn_facts *f, qn_sections *out)
{
    cutter c = {.k = k, .f = f};
    if (!may_be_cut(k, f) || !qn__analyse(k, f, -1, 0, &c.a))
        return false;
    c.range = qn__zalloc(k->n_insts, sizeof *c.range);
    if (c.range)
        qn__find_ranges(&c.a, c.range);
    bool is_cut = c.range && find_bounds(&c, dim_of_rows(&c.a));
    for (int d = k->n_dims; c.range && !is_cut && d-- > 0;)
        is_cut = find_bounds(&c, d);
    if (is_cut)
        choose(&c, out);
    qn__free(c.range);
    qn__analysis_release(&c.a);
    return is_cut;
}
