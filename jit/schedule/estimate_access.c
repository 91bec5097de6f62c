/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimate_access.c: how the code makes an access of some lanes: the operations on memory, and what
 * puts lanes into place. Whether rows are shorter than a vector, and all run under masks, is known.
 */
#include "jit/analysis/flat.h"
#include "jit/schedule/estimate_parts.h"
#include "jit/schedule/plan.h"

double qn__register_bytes(const qn_estimator *e, int bits, int lanes)
{
    double bytes = (double)bits / 8 * lanes, most = e->x->f->target->vector_bytes;
    return bytes < most ? bytes : most;
}

/** How the code makes an access: under a mask strided ones are gathers but where elements have
 * masks, and so are loads of lanes too far apart and too many to be taken one by one. */
static int method_of(const qn_estimator *e, const qn_record_info *r, bool is_load)
{
    const qn_target *t = e->x->f->target;
    bool is_gather =
        !r || (e->is_masked && ((r->method == QN_METHOD_GROUP && !t->has_masks) ||
                                (r->method == QN_METHOD_STRIDED &&
                                 !(t->has_strided_loads && qn__is_small_stride(r->stride)))));
    if (is_load && r && r->method == QN_METHOD_STRIDED && !qn__is_small_stride(r->stride))
        is_gather |= e->are_gathered;
    return is_gather ? QN_METHOD_GATHER : r->method;
}

/** Whether registers of an access along the lanes lie across two lines, about half of them. */
static bool is_unaligned(const qn_estimator *e, uint32_t i, int64_t lanes)
{
    const qn_param_fact *view = &e->x->f->param[e->x->k->inst[i].imm];
    for (int r = 0; r < qn__n_indices(e->x->k, i); r++) {
        const qn_dim_fact *d = &view->dim[r];
        const qn_affine *a = &e->x->affine[qn__args(e->x->k, i)[r]];
        int64_t offset = a->constant;
        for (int n = 0; n < d->n_digits; n++) {
            const qn_fact *stride = &e->x->f->digit[d->first_digit + n].stride;
            if (stride->kind == QN_FACT_EXACT && stride->value != 1 && stride->value % lanes)
                return true;
        }
        for (int m = 0; m < e->x->k->n_dims; m++)
            if (e->x->f->begin[m].kind == QN_FACT_EXACT)
                offset = qn__wrap_add(offset, qn__wrap_mul(a->coef[m], e->x->f->begin[m].value));
        if (d->lower.kind == QN_FACT_EXACT)
            offset = qn__wrap_sub(offset, d->lower.value);
        if (d->n_digits == 1 && e->x->f->digit[d->first_digit].stride.kind == QN_FACT_EXACT &&
            e->x->f->digit[d->first_digit].stride.value == 1 && offset % lanes)
            return true;
    }
    return false;
}

/** The dimension of the lanes, -1: none. */
static int lane_dim_of(const qn_estimator *e)
{
    for (int n = 1; n < e->n; n++)
        if (e->around[n].is_lanes)
            return qn__axis_dim(e->x, e->s, qn__node(e->s, e->around[n].node)->axis);
    return -1;
}

/** Iterations of a loop around that moves the access by one element from one to the next, and that
 * are emitted together; 0: there is none. So many elements are moved at once, and transposed in
 * registers. */
static double transposed(const qn_estimator *e, uint32_t i)
{
    const qn_analysis *x = e->x;
    int lanes = lane_dim_of(e);
    for (int n = 1; n < e->n; n++) {
        const qn_around *l = &e->around[n];
        qn_axis axis = qn__node(e->s, l->node)->axis;
        int d = qn__axis_dim(x, e->s, axis);
        if (l->is_together && !l->is_lanes && l->count >= 4 && lanes >= 0 && d >= 0 &&
            qn__axis_weight(x, e->s, axis, NULL) == 1 &&
            qn__is_transposed(x, lanes, d, qn__site_of(x->k, i)))
            return l->count;
    }
    return 0;
}

bool qn__lanes_are_in_digit(const qn_estimator *e, uint32_t i, int lanes)
{
    const qn_analysis *x = e->x;
    int d = lane_dim_of(e), n_found = 0;
    for (int r = 0; r < qn__n_indices(x->k, i) && d >= 0; r++) {
        const qn_dim_fact *dim = &x->f->param[x->k->inst[i].imm].dim[r];
        uint32_t value = qn__args(x->k, i)[r];
        if (!(x->value[value].deps >> d & 1))
            continue;
        if (!qn__is_within_digit(x, value, dim, d, lanes) ||
            x->f->digit[dim->first_digit].stride.value != 1)
            return false;
        n_found++;
    }
    return n_found == 1;
}

/** Slots of a permutation of registers that hold lanes: a port takes a part of one at once. */
static double shuffle_slots(const qn_estimator *e, int bits, int lanes)
{
    double bytes = qn__register_bytes(e, bits, lanes), port = e->m->port_bytes;
    double slots = (double)qn__work_slots(QN_WORK_SHUFFLE, bits, 2, e->x->f->target);
    return slots * (bytes > port ? bytes / port : 1);
}

/** Slots of what makes one register of parts of 16 bytes, in which lanes stand one by one. */
static double joins_of(const qn_estimator *e, double bytes)
{
    double slots = 0, port = e->m->port_bytes;
    for (double joined = 2 * QN_CHUNK_BYTES; joined <= bytes; joined *= 2)
        slots += bytes / joined * (joined > port ? joined / port : 1);
    return slots;
}

/** What one member of a flat group of stores takes, or a load that is made with these. */
static bool moves_of_flat(const qn_estimator *e, uint32_t i, int lanes, qn_access_work *out)
{
    qn_flat flat;
    qn_group group;
    int d = lane_dim_of(e), bits = (int)(8 * qn__access_bytes(e->x->k, i));
    if (!qn__group_of(e->x, d, i, &group))
        return false;
    double registers = (double)qn__registers(bits, lanes, e->x->f->target), members = 0;
    for (int p = 0; p < group.n; p++)
        members += group.inst[p] != 0;
    out->moves = registers * group.n / members;
    if (e->x->k->inst[i].op == QN_I_STORE && qn__flat_of(e->x, d, lanes, i, &flat)) {
        out->shuffles = registers * flat.shuffles * shuffle_slots(e, bits, lanes) / members;
        out->slots = registers * flat.ops / members;
    }
    return true;
}

/** What one member of a group takes; false: the access moves alone. */
static bool moves_of_group(const qn_estimator *e, uint32_t i, int lanes, qn_access_work *out)
{
    const qn_analysis *x = e->x;
    const qn_target *t = x->f->target;
    int bytes = (int)qn__access_bytes(x->k, i), most = t->vector_bytes / bytes;
    int d = lane_dim_of(e);
    qn_group group;
    qn_weave w;
    if (d < 0 || !qn__group_of(x, d, i, &group) ||
        !qn__weave_of_group(x, &group, i, lanes < most ? lanes : most, 0, &w))
        return false;
    double steps = lanes < most ? 1 : (double)lanes / most, members = __builtin_popcount(w.places);
    out->moves = steps * w.moves / members;
    /* each permutation has indices of its own, and half of the registers have room for them */
    double again = w.shuffles > t->vectors / 2 ? w.shuffles : 0;
    out->moves += steps * again / members;
    out->shuffles = steps * w.shuffles / members *
                    shuffle_slots(e, 8 * w.unit, t->vector_bytes / w.unit);
    return true;
}

qn_access_work qn__estimate_access(const qn_estimator *e, uint32_t i, const qn_record_info *r,
                                   int lanes)
{
    const qn_target *t = e->x->f->target;
    bool is_load = e->x->k->inst[i].op == QN_I_LOAD;
    int bits = (int)(8 * qn__access_bytes(e->x->k, i)), method = method_of(e, r, is_load);
    double registers = (double)qn__registers(bits, lanes, t);
    int64_t apart = r && r->stride < 0 ? -r->stride : r ? r->stride : 0;
    double shuffle = shuffle_slots(e, bits, lanes);
    double together = method == QN_METHOD_STRIDED ? transposed(e, i) : 0;
    int scattered = is_load ? QN_WORK_GATHER : QN_WORK_SCATTER;
    qn_access_work w = {.moves = registers};
    if (method == QN_METHOD_GATHER && !e->is_masked && lanes > 1 &&
        qn__nearness(e->x, lane_dim_of(e), i) == QN_NEAR_LIMITED) {
        method = QN_METHOD_CONTIGUOUS; /* but for the index of all lanes, and its first and last */
        w.slots = 2 * (double)qn__registers(64, lanes, t);
        w.shuffles = 2;
    } else if (method == QN_METHOD_GATHER && qn__lanes_are_in_digit(e, i, lanes)) {
        method = QN_METHOD_CONTIGUOUS;
    }
    if (lanes == 1 || method == QN_METHOD_UNIFORM) {
        w.moves = 1;
    } else if (method == QN_METHOD_CONTIGUOUS) {
        double bytes = qn__register_bytes(e, bits, lanes), torn = 0;
        if (is_unaligned(e, i, (int64_t)bytes * 8 / bits))
            torn = registers * bytes / e->m->cache[0].line;
        w.moves += torn; /* both halves take as long as a whole vector */
        w.torn = 2 * torn * (qn__larger(bytes, e->m->port_bytes) - bytes);
    } else if (method == QN_METHOD_TABLE) {
        w.moves = 0;
        w.shuffles = registers * shuffle * (r->index > 1 ? 2 : 1);
    } else if (method == QN_METHOD_GROUP && r->is_flat && !e->is_masked &&
               moves_of_flat(e, i, lanes, &w)) {
        return w;
    } else if (method == QN_METHOD_GROUP && moves_of_group(e, i, lanes, &w)) {
        return w;
    } else if (method == QN_METHOD_STRIDED && r->stride == -1) {
        w.shuffles = registers * shuffle;
    } else if (method == QN_METHOD_STRIDED && together > 0) {
        double run = together < lanes ? together : lanes;
        w.moves = registers * (double)lanes / run;
        w.shuffles = w.moves * shuffle * __builtin_ctz((unsigned)lanes);
    } else if (method == QN_METHOD_STRIDED && qn__is_small_stride(apart) && !r->is_single) {
        double taken = (double)(apart > 2 ? apart - 1 : 1); /* LLVM 19: of half registers by two */
        taken *= qn__register_bytes(e, bits, lanes) < t->vector_bytes ? 2 : 1;
        taken += t->permutes_pairs ? 0 : 1; /* then across the halves */
        w.moves = registers * (double)apart;
        w.shuffles = is_load ? registers * taken * shuffle : w.moves * shuffle;
        w.slots = is_load ? 0 : w.moves; /* under masks */
    } else if (method == QN_METHOD_STRIDED) {
        w.moves = lanes;
        double bytes = qn__register_bytes(e, bits, lanes);
        double parts = bytes / (double)QN_CHUNK_BYTES;
        double moved = lanes - registers * (parts > 1 ? parts : 1); /* the first of each is plain */
        w.shuffles = moved * (double)qn__work_slots(QN_WORK_LANE, bits, 2, t) +
                     registers * joins_of(e, bytes);
    } else if (method == QN_METHOD_GATHER && lanes * bits <= 8 * t->vector_bytes &&
               qn__nearness(e->x, lane_dim_of(e), i) >= QN_NEAR_CERTAIN) {
        w.shuffles = 4 * registers * shuffle; /* the index, its mask, and the permutation */
    } else if (method == QN_METHOD_GATHER) {
        const bool in_turns = r && r->is_plain; /* an element of each lane after the other */
        w.moves = lanes;
        w.slots = in_turns
                      ? lanes * (double)qn__work_slots(QN_WORK_FLOAT, bits, 1, t)
                      : e->m->gather_slots * (double)qn__work_slots(scattered, bits, lanes, t);
    }
    return w;
}
