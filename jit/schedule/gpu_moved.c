/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_moved.c: views of records that a block moves through shared memory. Where an iteration
 * touches several words of a record of its own, threads side by side would touch words that are
 * apart, and stores of parts of a sector each; the words of all records of a block stand side by
 * side. Only words that every iteration stores are written back. Of a loop whose trips touch word
 * after word of a row, the rows of a warp are moved, piece by piece.
 */
#include "jit/schedule/gpu.h"

enum { WORD = QN_MOVED_WORD, LEAST_WORDS = 3, MOST_WORDS = 64 };

/** Whether all of the address of access i but its course along x is a constant, and the access in
 * range for every iteration: a block moves the records of all. */
static bool is_plain(const gpu_planner *s, uint32_t i, int x)
{
    const qn_param_fact *param = &s->f->param[s->k->inst[i].imm];
    if (s->k->inst[i].parent && !qn__is_in_range(s->f, qn__site_of(s->k, i)))
        return false;
    for (int d = 0; d < s->k->n_dims; d++)
        if ((s->a.value[i].deps >> d & 1) && d != x && qn__trips(s->f, d) != 1)
            return false;
    for (int r = 0; r < qn__n_indices(s->k, i); r++) {
        const qn_dim_fact *dim = &param->dim[r];
        const qn_affine *a = &s->a.affine[qn__args(s->k, i)[r]];
        if (dim->n_digits > 0 &&
            (a->sym[0] || a->sym[1] || s->f->digit[dim->first_digit].stride.kind != QN_FACT_EXACT))
            return false;
    }
    return true;
}

/** Adds access `site` to what is known of its view: where its record begins, and the step; then, of
 * those, the words. False if it may not be moved. */
static bool add_access(const gpu_planner *s, uint32_t site, int x, bool has_begin, qn_moved *out)
{
    const qn_kernel *k = s->k;
    const uint32_t i = k->access[site].inst;
    const qn_inst *inst = &k->inst[i];
    const bool is_store = inst->op == QN_I_STORE;
    const int64_t bytes = qn__access_bytes(k, i);
    gpu_course c;
    if ((inst->op != QN_I_LOAD && !is_store) || (is_store && inst->parent) || !is_plain(s, i, x) ||
        !qn__gpu_find_course(s, i, x, &c) || c.align < WORD || c.step <= 0 || c.step % WORD ||
        c.step / WORD > MOST_WORDS || (out->step && c.step != out->step))
        return false;
    out->begin = out->step && out->begin < c.first ? out->begin : c.first;
    out->step = (int32_t)c.step;
    if (!has_begin)
        return true;
    const int64_t offset = qn__wrap_sub(c.first, out->begin) + qn__access_offset(k, i);
    if ((bytes | offset | out->begin) % WORD || offset < 0 || offset > out->step - bytes)
        return false;
    const uint64_t words = (UINT64_C(1) << bytes / WORD) - 1;
    out->stores |= is_store ? words << offset / WORD : 0;
    out->loads |= is_store ? 0 : words << offset / WORD;
    return true;
}

static bool add_accesses(const gpu_planner *s, int param, int x, bool has_begin, qn_moved *out)
{
    for (uint32_t n = 0; n < s->k->n_accesses; n++)
        if ((int)s->k->inst[s->k->access[n].inst].imm == param &&
            !add_access(s, n, x, has_begin, out))
            return false;
    return out->step > 0;
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

/** Whether access `site` touches the word of each trip of a loop, of a row of its own for each
 * iteration: sets where rows begin, and their distance. */
static bool is_of_row(const gpu_planner *s, uint32_t site, uint32_t loop, int x, qn_moved *out)
{
    enum { LEAST_STEP = 64 }; /* nearer rows share sectors */
    const uint32_t i = s->k->access[site].inst;
    const qn_inst *inst = &s->k->inst[i];
    const bool is_store = inst->op == QN_I_STORE;
    int64_t words;
    gpu_course c;
    if ((inst->op != QN_I_LOAD && !is_store) || qn__is_checked(s->f, s->k, site) ||
        (inst->parent != loop && (is_store || !qn__is_in_range(s->f, site))) ||
        qn__access_bytes(s->k, i) != WORD || qn__gpu_element_bytes(s, i) != WORD ||
        !qn__trip_stride(&s->a, i, loop, &words) || words != 1 ||
        !qn__gpu_find_course(s, i, x, &c) || c.align < WORD || c.first % WORD || c.step % WORD ||
        c.step < LEAST_STEP || c.step > INT32_MAX / QN_MOVED_TRIPS ||
        (out->step && (c.step != out->step || c.first != out->begin)))
        return false;
    for (int r = 0; r < qn__n_indices(s->k, i); r++) {
        const qn_affine *a = &s->a.affine[qn__args(s->k, i)[r]];
        for (int n = 0; n < 2; n++)
            if (a->sym[n] && a->sym[n] != s->k->inst[loop].region[0])
                return false;
    }
    out->step = (int32_t)c.step;
    out->begin = c.first;
    out->stores |= is_store;
    out->loads |= !is_store;
    return true;
}

/** Whether all accesses of a view in a loop are of rows; of one that is stored to, all there are.
 */
static bool find_rows(const gpu_planner *s, uint32_t loop, int x, qn_moved *out)
{
    const qn_kernel *k = s->k;
    bool has_others = false;
    if (k->param[out->param].rank < 0 || (k->param[out->param].traits & QN_ATOMIC))
        return false;
    FOR_ACCESSES (k, site, i) {
        const bool is_inside = i > loop && i < k->inst[loop].region[2];
        if ((int)k->inst[i].imm != out->param)
            continue;
        if (is_inside && !is_of_row(s, site, loop, x, out))
            return false;
        has_others |= !is_inside;
    }
    return out->step && !(has_others && out->stores) &&
           !meets_another(s, out->param, out->stores != 0);
}

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

/** Pieces of the rows of a warp's threads, in whole warps. */
static void choose_rows(const gpu_planner *s, int x)
{
    qn_grid *p = s->p;
    const uint32_t loop = loop_of_rows(s);
    const int warp = s->f->machine.warp;
    int32_t bytes = 0;
    if (!loop || warp != QN_MOVED_TRIPS || !qn__is_exact(s->f, x) || qn__trips(s->f, x) % warp ||
        p->threads[x] % warp)
        return;
    p->moved_loop = loop;
    for (int param = 0; param < s->k->n_params && p->n_moved < QN_MOST_MOVED; param++) {
        qn_moved m = {.param = param, .at = bytes};
        const int32_t own = p->threads[x] * qn__moved_pitch(p, &m);
        if (!find_rows(s, loop, x, &m) || bytes + own > s->f->machine.block_shared_bytes)
            continue;
        p->moved[p->n_moved++] = m;
        bytes += own;
    }
    p->moved_loop = p->n_moved ? loop : 0;
}

void qn__gpu_choose_moved(const gpu_planner *s, int x)
{
    const qn_kernel *k = s->k;
    qn_grid *p = s->p;
    int64_t bytes = 0;
    if (x < 0 || p->team != QN_TEAM_THREAD || p->staged || p->privatized || s->has_assertions ||
        p->wide > 1 || p->tall > 1 || p->axis[0] != x || p->block[x] != p->threads[x])
        return;
    for (uint32_t n = 0; n < k->n_accesses; n++)
        if (qn__is_checked(s->f, k, n)) /* a thread that fails would leave others at a barrier */
            return;
    for (int d = 0; d < k->n_dims; d++)
        if (!qn__is_reduction(k, d) && d != x && qn__trips(s->f, d) != 1)
            return;
    for (int param = 0; param < k->n_params && p->n_moved < QN_MOST_MOVED; param++) {
        qn_moved m = {.param = param, .at = (int32_t)bytes};
        const bool is_possible = !(k->param[param].traits & QN_ATOMIC) &&
                                 add_accesses(s, param, x, false, &m) &&
                                 add_accesses(s, param, x, true, &m);
        const int64_t own = p->block[x] * m.step;
        if (!is_possible || !is_whole(s, &m) || !is_worth(&m) ||
            meets_another(s, param, m.stores != 0) ||
            bytes + own > s->f->machine.block_shared_bytes)
            continue;
        p->moved[p->n_moved++] = m;
        bytes += (own + 15) / 16 * 16;
    }
    if (!p->n_moved)
        choose_rows(s, x);
    p->wide_dim = p->n_moved ? -1 : p->wide_dim;
}
