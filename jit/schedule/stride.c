/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stride.c: lanes a few elements apart, taken out of plain loads. Load n has the lanes whose
 * elements lie in the n-th run of `lanes` elements. A run that reaches beyond the last lane's
 * element begins so much earlier that it ends there.
 */
#include "jit/schedule/stride.h"

bool qn__piece_of(int lanes, int stride, int n, qn_piece *out)
{
    int low = n * lanes, high = low + lanes,
        latest = (lanes - 1) * (stride - 1); /* so begins the load that ends with the last lane */
    bool is_needed = false;
    out->begin = low < latest ? low : latest;
    for (int l = 0; l < lanes; l++) {
        int at = l * stride;
        bool is_here = at >= low && at < high;
        out->pick[l] = is_here ? at - out->begin : lanes;
        is_needed = is_needed || is_here;
    }
    return is_needed;
}
