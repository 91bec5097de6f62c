/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_lists.c: index lists of random views, and what they mean, said without them: the
 * kernel on dense copies of the elements that the lists select gives the same elements.
 */
#include "differential.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- making */

/* Indices from `lower` on; different ones for stores, and some bad ones where that is wanted. */
static void fill_list(randoms *r, int64_t *list, int64_t n, int64_t lower, int64_t extent,
                      bool is_unique, bool escapes)
{
    for (int64_t i = 0; i < n; i++)
        list[i] = lower + (is_unique ? i : random_between(r, 0, extent - 1));
    for (int64_t i = n - 1; is_unique && i >= 0; i--) {
        int64_t j = random_between(r, 0, extent - 1), other = lower + j;
        if (j < n) {
            other = list[j];
            list[j] = list[i];
        }
        bool is_taken = false; /* beyond the list: swapped in, unless it was before */
        for (int64_t k = 0; k < n && j >= n; k++)
            is_taken = is_taken || list[k] == other;
        list[i] = is_taken ? list[i] : other;
    }
    if (escapes && n > 0)
        list[random_between(r, 0, n - 1)] = random_percent(r, 50)
                                                ? lower - random_between(r, 1, 3)
                                                : lower + extent + random_between(r, 0, 3);
}

qn_status random_list(randoms *r, test_view *v, bool is_unique, bool escapes, qn_error *err)
{
    int d = random_below(r, v->rank);
    int64_t under[VIEW_RANK], lower[VIEW_RANK], n = v->extent[d];
    memcpy(under, v->extent, sizeof under);
    under[d] = is_unique ? n + random_between(r, 0, 4) : random_between(r, 1, n + 4);
    qn_status status = random_layout(r, v->rank, under, is_unique, lower, &v->layout, err);
    v->list = malloc((size_t)(n + 1) * sizeof *v->list);
    if (status || !v->list)
        return status ? status : QN_ERR_MEMORY;
    int64_t first =
        random_between(r, -5, 5); /* before the list, so that it is the same for another extent */
    fill_list(r, v->list, n, lower[d], under[d], is_unique, escapes);
    qn_layout l;
    qn_view list;
    status = qn_layout_right(1, &n, &l, err);
    if (status == QN_OK)
        status = qn_view_wrap("list", v->list, QN_I64, &l, 0, &list, err);
    if (status == QN_OK)
        status = qn_layout_list(&v->layout, d, &list, &v->layout, err);
    lower[d] = first;
    if (status == QN_OK)
        status = qn_layout_offset(&v->layout, lower, &v->layout, err);
    memcpy(v->lower, lower, (size_t)v->rank * sizeof *lower);
    return status;
}

/* ---------------------------------------------------------------- dense copies */

/* Visits all elements: copies them to the dense view, or compares those expected with it. */
static bool visit(const test_view *v, const qn_view *dense, bool compares)
{
    int64_t index[QN_MAX_RANK];
    size_t size = (size_t)element_bytes(v);
    for (int d = 0; d < v->rank; d++)
        index[d] = v->layout.dim[d].lower;
    if (qn_layout_size(&v->layout) == 0)
        return true;
    do {
        void *at, *mine;
        if (qn_view_at(&v->view, v->rank, index, &at, NULL) ||
            qn_view_at(dense, v->rank, index, &mine, NULL))
            return false;
        const unsigned char *expected = v->expected + ((unsigned char *)at - v->memory);
        if (!compares)
            memcpy(mine, at, size);
        else if (!is_same_value(v, mine, expected))
            return false;
    } while (next_element(&v->layout, index));
    return true;
}

static bool make_dense(const test_view *v, qn_view *out)
{
    qn_layout l;
    return qn_layout_right(v->rank, v->extent, &l, NULL) == QN_OK &&
           qn_layout_offset(&l, v->lower, &l, NULL) == QN_OK &&
           (v->record ? qn_view_alloc_record(NULL, v->name, v->record, &l, 0, out, NULL)
                      : qn_view_alloc(NULL, v->name, v->dtype, &l, 0, out, NULL)) == QN_OK;
}

bool has_lists(const test_case *t)
{
    bool has_list = false;
    for (int i = 0; i < t->n_views; i++) {
        if (t->view[i].shares != i) /* elements that are shared are not shared by copies */
            return false;
        has_list = has_list || t->view[i].list;
    }
    return has_list;
}

/** Whether two messages name one access. Of several indices out of range that of a list is named
 * first. */
static bool is_same_access(const char *a, const char *b)
{
    const char *x = strstr(a, ", dimension "), *y = strstr(b, ", dimension ");
    const char *x_end = strstr(a, "; indices ["), *y_end = strstr(b, "; indices [");
    if (!x || !y || !x_end || !y_end)
        return is_same_message(a, b);
    return x - a == y - b && memcmp(a, b, (size_t)(x - a)) == 0 && strcmp(x_end, y_end) == 0;
}

bool is_meant(runner *r, const test_case *t, const outcome *reference, char *what, size_t bytes)
{
    qn_view dense[MAX_VIEWS] = {{0}};
    qn_arg args[MAX_ARGS];
    qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP};
    qn_error error = {0};
    bool is_good = true, is_whole = true;
    memcpy(args, t->args, sizeof args);
    snprintf(what, bytes, "no memory");
    for (int i = 0; i < t->n_views && is_good && is_whole; i++) {
        is_good = make_dense(&t->view[i], &dense[i]);
        is_whole = is_good && visit(&t->view[i], &dense[i], false); /* no bad value in the list */
        args[i].view = &dense[i];
    }
    if (is_good && is_whole) {
        qn_status status = qn_launch(r->context, t->kernel, t->n_args, args, &o, &error);
        is_good = status == reference->status &&
                  is_same_access(error.message, reference->error.message);
        snprintf(what, bytes, "%s (%s), expected %s (%s)", qn_status_name((int)status),
                 error.message, qn_status_name((int)reference->status), reference->error.message);
    }
    for (int i = 0; i < t->n_views && is_good && is_whole && reference->status == QN_OK; i++) {
        is_good = visit(&t->view[i], &dense[i], true);
        snprintf(what, bytes, "other elements of view %s", t->view[i].name);
    }
    for (int i = 0; i < t->n_views; i++)
        qn_view_release(&dense[i]);
    return is_good || !is_whole;
}
