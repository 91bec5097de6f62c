/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_weave.c: which way members that lie between one another take, by what lanes hold them in.
 */
#include "jit/analysis/weave.h"
#include "quern.h"
#include "tests/tap.h"

typedef struct row {
    const char *name;
    int isa;
    bool is_load;
    int bytes, n, lanes;
    uint32_t places, known;
    int held; /* bytes */
    bool has_words;
    int slots; /* words of a lane */
} row;

static const row rows[] = {
    {"a pair of bytes held in 16 bits", QN_ISA_V4, true, 1, 2, 32, 3, 3, 2, true, 1},
    {"one stored from 16 bits", QN_ISA_V4, false, 1, 2, 32, 3, 3, 2, true, 1},
    {"without AVX-512", QN_ISA_V3, true, 1, 2, 16, 3, 3, 2, true, 1},
    {"held as bytes", QN_ISA_V4, true, 1, 2, 32, 3, 3, 1, false, 0},
    {"four bytes held in 32 bits", QN_ISA_V4, true, 1, 4, 16, 15, 15, 4, true, 1},
    {"held in 16 bits", QN_ISA_V4, true, 1, 4, 32, 15, 15, 2, true, 2},
    {"three of them", QN_ISA_V4, true, 1, 4, 32, 7, 15, 2, true, 2},
    {"three of them, where the fourth is none of the view", QN_ISA_V4, true, 1, 4, 32, 7, 7, 2,
     false, 0},
    {"three of them stored", QN_ISA_V4, false, 1, 4, 32, 7, 15, 2, false, 0},
    {"pixels of three bytes", QN_ISA_V4, true, 1, 3, 32, 7, 7, 4, false, 0},
    {"pairs of 16 bits held in 32", QN_ISA_V4, true, 2, 2, 16, 3, 3, 4, true, 1},
};

int main(void)
{
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        const row *r = &rows[n];
        qn_weave w = {.bytes = r->bytes,
                      .n = r->n,
                      .lanes = r->lanes,
                      .places = r->places,
                      .known = r->known};
        bool has = qn__weave_of(qn__target_row(r->isa), r->is_load, r->held, &w);
        bool is_words = has && w.method == QN_WEAVE_WORDS;
        tap_ok(is_words == r->has_words && (!is_words || w.slots == r->slots), "%s: %s", r->name,
               r->has_words ? "words" : "no words");
    }
    for (int is_load = 0; is_load < 2; is_load++) {
        qn_weave w = {.bytes = 4, .n = 2, .lanes = 4, .places = 3, .known = 3};
        bool has = qn__weave_of(qn__target_row(QN_ISA_NEON), is_load, 4, &w);
        tap_ok(has && w.method == QN_WEAVE_PAIRS && w.per_chunk == 1 && w.registers == 2,
               "pairs of f32 of AArch64, %s: two registers are permuted as they are",
               is_load ? "loaded" : "stored");
    }
    return tap_done();
}
