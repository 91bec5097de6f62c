/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_moved.c: views of records that a warp moves through shared memory. Where an iteration touches
 * several words of a record of its own, threads side by side would touch words that are apart, and
 * store parts of a sector each; the words of all records of a warp stand side by side. Only words
 * that every iteration stores are written back. Of a loop whose trips touch word after word of a
 * row, the rows of a warp are moved, piece by piece.
 */
#include "jit/schedule/gpu.h"

enum { WORD = QN_MOVED_WORD, LEAST_WORDS = 3, MOST_WORDS = 64 };

/** Whether all of the address of access i but its course along x and its step in `loop` is a
 * constant, and the access in range for every iteration: others move what it touches. */
static bool is_plain(const gpu_planner *s, uint32_t i, uint32_t loop, int x)
{
    const qn_inst *inst = &s->k->inst[i];
    const qn_param_fact *param = &s->f->param[inst->imm];
    if (inst->parent != loop &&
        (inst->op == QN_I_STORE || !qn__is_in_range(s->f, qn__site_of(s->k, i))))
        return false;
    for (int d = 0; d < s->k->n_dims; d++)
        if ((s->a.value[i].deps >> d & 1) && d != x && qn__trips(s->f, d) != 1)
            return false;
    for (int r = 0; r < qn__n_indices(s->k, i); r++) {
        const qn_dim_fact *dim = &param->dim[r];
        const qn_affine *a = &s->a.affine[qn__args(s->k, i)[r]];
        if (dim->n_digits > 0 && s->f->digit[dim->first_digit].stride.kind != QN_FACT_EXACT)
            return false;
        for (int n = 0; n < 2 && dim->n_digits > 0; n++)
            if (a->sym[n] && (!loop || a->sym[n] != s->k->inst[loop].region[0]))
                return false;
    }
    return true;
}

/** Adds access `site` to what is known of its view: where the record of an iteration begins, and
 * the step; then, of those, the words. The row of one that a loop walks has one word in each trip.
 * False if it may not be moved. */
static bool add_access(const gpu_planner *s, uint32_t site, uint32_t loop, int x, bool has_begin,
                       qn_moved *out)
{
    enum { LEAST_STEP = 64 }; /* nearer rows share sectors */
    const qn_kernel *k = s->k;
    const uint32_t i = k->access[site].inst;
    const bool is_store = k->inst[i].op == QN_I_STORE;
    const int64_t bytes = qn__access_bytes(k, i), least = loop ? LEAST_STEP : WORD,
                  most = loop ? INT32_MAX / QN_MOVED_TRIPS : MOST_WORDS * WORD;
    int64_t words = 1;
    gpu_course c;
    if ((k->inst[i].op != QN_I_LOAD && !is_store) || !is_plain(s, i, loop, x) ||
        (loop && (!qn__trip_stride(&s->a, i, loop, &words) || words != 1 ||
                  qn__gpu_element_bytes(s, i) != WORD)) ||
        !qn__gpu_find_course(s, i, x, &c) || c.align < WORD || c.step % WORD || c.step < least ||
        c.step > most || (out->step && c.step != out->step))
        return false;
    out->begin = out->step && out->begin < c.first ? out->begin : c.first;
    out->step = (int32_t)c.step;
    if (!has_begin)
        return true;
    const int64_t offset = qn__wrap_sub(c.first, out->begin) + qn__access_offset(k, i);
    if ((bytes | offset | out->begin) % WORD || offset < 0 ||
        offset > (loop ? WORD : out->step) - bytes)
        return false;
    const uint64_t all = (UINT64_C(1) << bytes / WORD) - 1;
    out->stores |= is_store ? all << offset / WORD : 0;
    out->loads |= is_store ? 0 : all << offset / WORD;
    return true;
}

/** Whether all accesses of a view are such, or all in the loop; of one that is stored to, all there
 * are. */
static bool add_accesses(const gpu_planner *s, uint32_t loop, int x, qn_moved *out)
{
    const qn_kernel *k = s->k;
    bool has_others = false;
    for (int has_begin = 0; has_begin < 2; has_begin++)
        FOR_ACCESSES (k, site, i) {
            const bool is_inside = !loop || (i > loop && i < k->inst[loop].region[2]);
            if ((int)k->inst[i].imm != out->param)
                continue;
            if (is_inside && !add_access(s, site, loop, x, has_begin, out))
                return false;
            has_others |= !is_inside;
        }
    return out->step > 0 && !(has_others && out->stores) &&
           !(k->param[out->param].traits & QN_ATOMIC);
}

/** Whether every word of the records is memory of the view: all are touched, or it holds records.
 */
static bool is_whole(const gpu_planner *s, const qn_moved *m)
{
    const qn_record *record = s->k->param[m->param].record;
    const int words = m->step / WORD;
    return (record && record->bytes == m->step) ||
           __builtin_popcountll(m->loads | m->stores) == words;
}

/** Whether another view, of which one of both is written, may be the same memory. */
static bool meets_another(const gpu_planner *s, int param, bool is_written)
{
    for (uint32_t n = 0; n < s->k->n_accesses; n++) {
        const qn_inst *y = &s->k->inst[s->k->access[n].inst];
        if ((int)y->imm != param && (is_written || y->op != QN_I_LOAD) &&
            !s->f->param[y->imm].is_constant_memory && !s->f->param[param].is_constant_memory &&
            qn__may_meet(&s->a, y->imm, (uint64_t)param))
            return true;
    }
    return false;
}

/** Banks: records whose words are an odd number apart, or twice one, meet two at a time at most. */
static bool is_worth(const qn_moved *m)
{
    const int words = m->step / WORD;
    return words >= LEAST_WORDS && words % 4 != 0 &&
           2 * __builtin_popcountll(m->loads | m->stores) >= words;
}

/* ---------------------------------------------------------------- rows */

/** The loop whose rows may be moved: the only region of the body that accesses memory, with known
 * trips, the same ones in all iterations, and no loop inside. 0: there is none. */
static uint32_t loop_of_rows(const gpu_planner *s)
{
    const qn_kernel *k = s->k;
    uint32_t found = 0;
    int64_t begin;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        const bool is_loop = x->op == QN_I_FOR || x->op == QN_I_WHILE || x->op == QN_I_REDUCE;
        if (x->op == QN_I_ATOMIC || (is_loop && (found || x->op != QN_I_FOR || x->parent)))
            return 0;
        found = is_loop ? i : found;
    }
    if (!found || k->inst[found].imm != 1 || !qn__is_number(&s->a, qn__args(k, found)[0], &begin) ||
        qn__known_trips(&s->a, found) < QN_MOVED_TRIPS)
        return 0;
    return found;
}

/** The views of records that are moved, or of the rows of a loop. */
static void choose_views(const gpu_planner *s, uint32_t loop, int x)
{
    qn_grid *p = s->p;
    int32_t bytes = 0;
    p->moved_loop = loop;
    p->n_moved = 0;
    for (int param = 0; param < s->k->n_params && p->n_moved < QN_MOST_MOVED; param++) {
        qn_moved m = {.param = param, .at = bytes};
        if (!add_accesses(s, loop, x, &m) || (!loop && (!is_whole(s, &m) || !is_worth(&m))) ||
            meets_another(s, param, m.stores != 0))
            continue;
        const int32_t own = p->threads[x] * qn__moved_pitch(p, &m);
        if (bytes + own > s->f->machine.block_shared_bytes)
            continue;
        p->moved[p->n_moved++] = m;
        bytes += own;
    }
}

/** The rows of all views that a warp could move, in blocks of as many threads as shared memory has
 * room for. */
static void choose_rows(const gpu_planner *s, uint32_t loop, int x)
{
    qn_grid *p = s->p;
    const int32_t threads = p->threads[x];
    p->threads[x] = QN_MOVED_TRIPS;
    choose_views(s, loop, x);
    const int most = p->n_moved;
    p->threads[x] = threads;
    choose_views(s, loop, x);
    for (; p->n_moved < most; choose_views(s, loop, x))
        p->threads[x] /= 2;
    p->block[x] = p->threads[x];
}

void qn__gpu_choose_moved(const gpu_planner *s, int x)
{
    const qn_kernel *k = s->k;
    qn_grid *p = s->p;
    const int warp = s->f->machine.warp;
    if (x < 0 || p->team != QN_TEAM_THREAD || p->privatized || s->has_assertions || p->wide > 1 ||
        p->tall > 1 || p->axis[0] != x || p->block[x] != p->threads[x] || warp != QN_MOVED_TRIPS ||
        p->threads[x] % warp)
        return;
    for (uint32_t n = 0; n < k->n_accesses; n++)
        if (qn__is_checked(s->f, k, n)) /* a thread that fails would leave others of its warp */
            return;
    for (int d = 0; d < k->n_dims; d++)
        if (!qn__is_reduction(k, d) && d != x && qn__trips(s->f, d) != 1)
            return;
    choose_views(s, 0, x);
    const uint32_t loop = p->n_moved ? 0 : loop_of_rows(s);
    if (loop)
        choose_rows(s, loop, x);
    p->moved_loop = p->n_moved ? p->moved_loop : 0;
    p->wide_dim = p->n_moved ? -1 : p->wide_dim;
}
