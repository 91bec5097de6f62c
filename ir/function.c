/* SPDX-License-Identifier: Apache-2.0 */
/*
 * function.c: the life of functions, what can be asked of them, and the list of those that a kernel
 * calls.
 */
#include "ir/function.h"

#include <string.h>

qn_function *qn_function_retain(const qn_function *f)
{
    return f ? (qn_function *)qn_kernel_retain(&f->body) : NULL;
}

void qn_function_release(qn_function *f)
{
    if (f)
        qn_kernel_release(&f->body);
}

const char *qn_function_name(const qn_function *f)
{
    return f ? f->body.name : "";
}

int qn_function_n_params(const qn_function *f)
{
    return f ? f->body.n_params : 0;
}

int qn_function_n_results(const qn_function *f)
{
    return f ? f->n_results : 0;
}

qn_status qn_function_param(const qn_function *f, int i, qn_param_info *out, size_t out_bytes,
                            qn_error *err)
{
    const char *who = "qn_function_param";
    if (!f || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, f ? "out" : "function");
    if (i < 0 || i >= f->body.n_params)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: function \"%.100s\" has %d parameters, none has number %d", who,
                        f->body.name, f->body.n_params, i);
    return qn_kernel_param(&f->body, i, out, out_bytes, err);
}

qn_dtype qn_function_result(const qn_function *f, int i)
{
    if (!f || i < 0 || i >= f->n_results)
        return QN_VOID;
    const uint32_t *returned = qn__args(&f->body, qn__return_of(f));
    for (int r = 0; r < i; r++)
        returned += f->shape[r] ? 2 : 1;
    return (qn_dtype)(f->shape[i] ? f->shape[i] & 0xff : f->body.inst[*returned].type);
}

/* ---------------------------------------------------------------- lists */

/** Whether two functions print alike and call functions that do. */
static bool is_equal(const qn_function *f, const qn_function *g)
{
    if (f == g)
        return true;
    return f->body.hash == g->body.hash && f->body.canonical_bytes == g->body.canonical_bytes &&
           memcmp(f->body.canonical, g->body.canonical, f->body.canonical_bytes) == 0;
}

/** Enters f alone. */
static int list_one(qn_function **list, int *n, const qn_function *f, const char *who,
                    qn_error *err)
{
    for (int i = 0; i < *n; i++) {
        bool is_named_so = !list[i]->keyword_bytes == !f->keyword_bytes &&
                           strcmp(list[i]->body.name, f->body.name) == 0;
        if (is_named_so && is_equal(list[i], f))
            return i;
        if (is_named_so) {
            qn__fail(err, QN_ERR_ARGUMENT, "%s: two functions have the name \"%.100s\"", who,
                     f->body.name);
            return -1;
        }
    }
    if (*n == QN_MAX_FUNCTIONS) {
        qn__fail(err, QN_ERR_LIMIT, "%s: function \"%.100s\": more than %d functions", who,
                 f->body.name, QN_MAX_FUNCTIONS);
        return -1;
    }
    list[*n] = qn_function_retain(f);
    return (*n)++;
}

int qn__list_function(qn_function **list, int *n, const qn_function *f, const char *who,
                      qn_error *err)
{
    for (int i = 0; !f->keyword_bytes && i < f->body.n_functions; i++)
        if (list_one(list, n, f->body.function[i], who, err) < 0)
            return -1;
    return list_one(list, n, f, who, err);
}

int qn__number_of_function(const qn_kernel *k, const qn_kernel *body)
{
    int n = body == k ? 0 : k->n_functions;
    while (n > 0 && (k->function[n - 1]->keyword_bytes ||
                     strcmp(k->function[n - 1]->body.name, body->name) != 0))
        n--;
    return n;
}

void qn__measure_frames(const qn_kernel *k, uint32_t *values, uint32_t *places)
{
    *values = *places = 0;
    for (int i = 0; i < k->n_functions; i++) {
        const qn_function *f = k->function[i];
        *values = f->frame_values > *values ? f->frame_values : *values;
        *places = f->frame_places > *places ? f->frame_places : *places;
    }
}

void qn__mark_views(qn_kernel *k, uint32_t i)
{
    const qn_function *f = qn__callee(k, i);
    const uint32_t *view = qn__args(k, i) + f->n_values;
    for (int p = 0; p < f->body.n_params; p++)
        if (f->body.param[p].rank >= 0)
            k->param[k->inst[*view++].imm].is_read |= f->body.param[p].is_read;
}

void qn__measure_calls(const qn_kernel *k, uint32_t *n_inlined, uint32_t *n_regions, int *height)
{
    int depth = 0, most = 0;
    uint32_t n = k->n_insts, regions = 0, end[QN_MAX_NESTING];
    for (uint32_t i = 1; i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        while (depth && end[depth - 1] <= i)
            depth--;
        int here = depth;
        if (qn__opens_regions(x)) {
            regions += x->region[1] == x->region[2] ? 1 : 2;
            end[depth++] = x->region[2];
            here = depth;
        } else if (x->op == QN_I_CALL) {
            const qn_function *f = qn__callee(k, i);
            n = f->n_inlined < UINT32_MAX - n ? n + f->n_inlined : UINT32_MAX;
            regions = f->n_regions < UINT32_MAX - regions ? regions + f->n_regions : UINT32_MAX;
            here += f->height;
        }
        most = here > most ? here : most;
    }
    *n_inlined = n;
    *n_regions = regions;
    *height = most;
}
