/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broadcast.c: see broadcast.h. Layouts are changed in place; they are those of views that live for
 * one call.
 */
#include "broadcast.h"

bool bind_extents(bind_shape *s, int64_t two[2])
{
    s->rank = 0;
    for (int i = 1; i < s->n; i++)
        if (s->layout[i] && s->layout[i]->rank > s->rank)
            s->rank = s->layout[i]->rank;
    for (int d = 0; d < s->rank; d++)
        s->extent[d] = 1;
    for (int i = 1; i < s->n; i++) {
        const qn_layout *l = s->layout[i];
        for (int d = 0; l && d < l->rank; d++) {
            int64_t *extent = &s->extent[s->rank - l->rank + d], mine = l->dim[d].extent;
            if (mine != *extent && mine != 1 && *extent != 1) {
                two[0] = *extent;
                two[1] = mine;
                return false;
            }
            *extent = mine == 1 ? *extent : mine;
        }
    }
    return true;
}

void bind_stretch(bind_shape *s)
{
    for (int i = 1; i < s->n; i++) {
        qn_layout *l = s->layout[i];
        if (!l)
            continue;
        int more = s->rank - l->rank;
        for (int d = s->rank - 1; d >= 0; d--) {
            qn_dim dim = d >= more ? l->dim[d - more] : (qn_dim){.extent = 1};
            if (dim.extent != s->extent[d] || dim.extent == 1)
                dim.stride = 0;
            dim.extent = s->extent[d];
            dim.lower = 0;
            l->dim[d] = dim;
        }
        l->rank = s->rank;
    }
}

/** Whether dimension d + 1 continues dimension d in all layouts. */
static bool continues(const bind_shape *s, int d)
{
    if (s->extent[d] == 1 || s->extent[d + 1] == 1)
        return true;
    for (int i = 0; i < s->n; i++) {
        const qn_layout *l = s->layout[i];
        if (l && l->dim[d].stride != l->dim[d + 1].stride * s->extent[d + 1])
            return false;
    }
    return true;
}

void bind_join(bind_shape *s)
{
    for (int d = s->rank - 2; d >= 0; d--) {
        if (!continues(s, d))
            continue;
        for (int i = 0; i < s->n; i++) {
            qn_layout *l = s->layout[i];
            if (!l)
                continue;
            if (s->extent[d + 1] != 1)
                l->dim[d].stride = l->dim[d + 1].stride;
            l->dim[d].extent = s->extent[d] * s->extent[d + 1];
            for (int e = d + 1; e < s->rank - 1; e++)
                l->dim[e] = l->dim[e + 1];
            l->rank--;
        }
        s->extent[d] *= s->extent[d + 1];
        for (int e = d + 1; e < s->rank - 1; e++)
            s->extent[e] = s->extent[e + 1];
        s->rank--;
    }
}

int bind_kept(const bind_shape *s, int64_t reduced, int64_t out[QN_MAX_RANK])
{
    int n = 0;
    for (int d = 0; d < s->rank; d++)
        if (!(reduced >> (s->rank - 1 - d) & 1))
            out[n++] = s->extent[d];
    return n;
}
