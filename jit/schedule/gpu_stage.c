/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_stage.c: which loads of a GPU go through shared memory, because their neighbouring elements
 * lie along another dimension than the threads.
 */
#include "jit/schedule/gpu.h"

enum { LONG_ENOUGH = QN_STAGE_SIDE / 2 };

/** May a load go through shared memory? It is performed for whole tiles ahead of the body, so it
 * must not fail, nor see what the launch writes. */
static bool may_be_staged(const gpu_planner *s, uint32_t site)
{
    const qn_kernel *k = s->k;
    uint32_t i = k->access[site].inst;
    const qn_inst *x = &k->inst[i];
    if (x->op != QN_I_LOAD || x->parent || site >= 64 || (k->param[x->imm].traits & QN_ATOMIC))
        return false;
    if (!s->f->param[x->imm].is_constant_memory || qn__is_checked(s->f, k, site))
        return false;
    return qn__is_known_ahead(k, i);
}

/** Loads worth staging in tiles of the dimensions x and y, as bits, within the shared memory there
 * is. */
static uint64_t staged_loads(const gpu_planner *s, int x, int y)
{
    uint64_t found = 0;
    int64_t stride, bytes = 0;
    FOR_ACCESSES (s->k, site, i) {
        int64_t size = qn__access_bytes(s->k, i);
        bool is_along = qn__is_plain_access(s->k, s->f, i) &&
                        qn__access_stride(&s->a, i, y, &stride) && stride == 1;
        if (!is_along || qn__gpu_access_cost(s, i, x) < GPU_COST_APART / 2 ||
            !may_be_staged(s, site))
            continue;
        bytes += QN_STAGE_SIDE * (QN_STAGE_SIDE * size + 4) + 16;
        if (bytes <= s->f->machine.block_shared_bytes)
            found |= UINT64_C(1) << site;
    }
    return found;
}

/** Whether the elements of a staged load from the corner of a tile on, to the end of the dimension,
 * are whole words of 4 bytes. */
static bool is_in_words(const gpu_planner *s, uint32_t i, int y)
{
    const qn_param_fact *param = &s->f->param[s->k->inst[i].imm];
    int64_t size = qn__access_bytes(s->k, i), of_word = 4 / size;
    if (size >= 4 || param->align < 2 || s->f->begin[y].kind != QN_FACT_EXACT ||
        s->f->begin[y].value % of_word || !qn__is_multiple(s->f, y, of_word))
        return false;
    for (int r = 0; r < qn__n_indices(s->k, i); r++) {
        const qn_dim_fact *dim = &param->dim[r];
        const qn_affine *a = &s->a.affine[qn__args(s->k, i)[r]];
        if (dim->n_digits == 0)
            continue;
        const qn_fact *stride = &s->f->digit[dim->first_digit].stride;
        if (dim->n_digits != 1 || a->sym[0] || a->sym[1] || stride->kind != QN_FACT_EXACT ||
            dim->lower.kind != QN_FACT_EXACT ||
            qn__wrap_mul(qn__wrap_sub(a->constant, dim->lower.value), stride->value) % of_word)
            return false;
        for (int d = 0; d < s->k->n_dims; d++)
            if (d != y && qn__wrap_mul(a->coef[d], stride->value) % of_word)
                return false;
    }
    return true;
}

bool qn__gpu_choose_staging(const gpu_planner *s, int x)
{
    qn_grid *p = s->p;
    if (s->is_unstaged || p->team != QN_TEAM_THREAD || s->has_assertions || x < 0 ||
        qn__trips_or(s->f, x, INT64_MAX) < LONG_ENOUGH)
        return false;
    for (int y = 0; y < s->k->n_dims; y++) {
        if (!qn__is_parallel(s->k, y) || y == x || qn__trips_or(s->f, y, INT64_MAX) < LONG_ENOUGH)
            continue;
        uint64_t found = staged_loads(s, x, y);
        if (__builtin_popcountll(found) > __builtin_popcountll(p->staged)) {
            p->staged = found;
            p->tile_dim = y;
        }
    }
    if (!p->staged)
        return false;
    for (uint32_t site = 0; site < s->k->n_accesses && site < 64; site++)
        if ((p->staged >> site & 1) && is_in_words(s, s->k->access[site].inst, p->tile_dim))
            p->words |= UINT64_C(1) << site;
    for (int n = 0; n < p->n_loops; n++) {
        int d = p->order[n];
        if (!qn__is_parallel(s->k, d))
            continue;
        p->threads[d] = d == x ? QN_BLOCK_THREADS : 1;
        p->block[d] = d == x || d == p->tile_dim ? QN_STAGE_SIDE : 1;
    }
    p->axis[0] = x;
    return true;
}
