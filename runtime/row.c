/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.c: rows of different lengths that lie one behind the other, on the host. In kernels they are
 * loops (ir/build/rows.c).
 */
#include "runtime/buffer.h"

static qn_status check_map(const char *who, const qn_view *map, qn_error *err)
{
    if (map->layout.rank == 1 && qn__is_integer(map->dtype))
        return QN_OK;
    return qn__fail(err, QN_ERR_DTYPE,
                    "%s: view \"%.80s\" of %s and rank %d is no map of rows: expected integers and "
                    "rank 1",
                    who, qn__label(map->label), qn_dtype_name(map->dtype), map->layout.rank);
}

qn_status qn_view_row(const qn_view *map, const qn_view *entries, int64_t row, qn_view *out,
                      qn_error *err)
{
    const char *who = "qn_view_row";
    if (!map || !entries || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who,
                        !map       ? "map"
                        : !entries ? "entries"
                                   : "out");
    qn_status status = qn__view_check(entries, who, err);
    if (status == QN_OK)
        status = check_map(who, map, err);
    if (status == QN_OK && (entries->layout.rank < 1 || row == INT64_MAX))
        return qn__fail(err, entries->layout.rank < 1 ? QN_ERR_RANK : QN_ERR_BOUNDS,
                        "%s: view \"%.80s\" of rank %d: row %lld", who, qn__label(entries->label),
                        entries->layout.rank, (long long)row);
    int64_t border[2];
    for (int i = 0; i < 2 && status == QN_OK; i++) {
        const int64_t index = row + i;
        void *at;
        qn_error inner = {0};
        status = qn_view_at(map, 1, &index, &at, &inner);
        if (status)
            return qn__fail(err, status, "%s: row %lld: %s", who, (long long)row, inner.message);
        border[i] = (int64_t)qn__load_element(map->dtype, at);
    }
    if (status)
        return status;
    const qn_dim *dim = &entries->layout.dim[0];
    if (border[0] > border[1] || border[0] < dim->lower || border[1] > dim->lower + dim->extent)
        return qn__fail(
            err, QN_ERR_RANGE,
            "%s: row %lld of map \"%.80s\" is [%lld,%lld), view \"%.80s\" has [%lld,%lld)", who,
            (long long)row, qn__label(map->label), (long long)border[0], (long long)border[1],
            qn__label(entries->label), (long long)dim->lower,
            (long long)(dim->lower + dim->extent));
    qn_slice slices[QN_MAX_RANK] = {{QN_RANGE, border[0], border[1], 1}};
    return qn_subview(entries, entries->layout.rank, slices, out, err);
}
