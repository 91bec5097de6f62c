/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stride.c: lanes a few elements apart that are taken out of plain loads: no load reads an
 * element outside those from the first lane's to the last lane's, and each lane has its element,
 * from one load.
 */
#include "jit/schedule/stride.h"
#include "tests/tap.h"

enum { MOST_STRIDE = 40, MOST_WIDTH = 64 };

typedef struct counts {
    int n_loads, n_before, n_behind, n_idle, n_missing, n_twice, n_wrong, n_dropped;
} counts;

/** The loads of lanes [first, first + lanes) of `width` lanes. */
static void count_loads(int first, int lanes, int width, int stride, counts *c)
{
    int n_found[PIECE_BYTES] = {0};
    for (int n = 0; n < stride; n++) {
        qn_piece p;
        int n_here = 0;
        bool is_needed = qn__piece_of(lanes, stride, n, &p);
        for (int l = 0; l < lanes; l++) {
            bool is_here = p.pick[l] != lanes;
            n_here += is_here;
            n_found[l] += is_here && is_needed;
            c->n_wrong += is_here &&
                          (p.pick[l] < 0 || p.pick[l] > lanes || p.begin + p.pick[l] != l * stride);
        }
        c->n_dropped += !is_needed && n_here > 0;
        if (!is_needed)
            continue;
        int begin = first * stride + p.begin, end = begin + lanes;
        c->n_loads++;
        c->n_idle += n_here == 0;
        c->n_before += begin < 0;
        c->n_behind += end > (width - 1) * stride + 1;
    }
    for (int l = 0; l < lanes; l++) {
        c->n_missing += n_found[l] == 0;
        c->n_twice += n_found[l] > 1;
    }
}

int main(void)
{
    counts c = {0};
    for (int width = 1; width <= MOST_WIDTH; width++)
        for (int lanes = 1; lanes <= width && lanes <= PIECE_BYTES; lanes++)
            for (int stride = 1; stride <= MOST_STRIDE; stride++)
                for (int first = 0; first + lanes <= width; first += lanes)
                    count_loads(first, lanes, width, stride, &c);
    tap_ok(c.n_loads > 0, "%d loads", c.n_loads);
    tap_is_int(c.n_before, 0, "none begins before the first lane's element");
    tap_is_int(c.n_behind, 0, "none ends behind the last lane's element");
    tap_is_int(c.n_wrong, 0, "what a lane takes is its element");
    tap_is_int(c.n_missing, 0, "each lane has its element");
    tap_is_int(c.n_twice, 0, "from one load");
    tap_is_int(c.n_idle, 0, "no load is made for no lane");
    tap_is_int(c.n_dropped, 0, "no load that a lane needs is left out");
    return tap_done();
}
