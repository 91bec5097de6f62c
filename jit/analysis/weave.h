/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weave.h: how members that lie between one another in memory come into vectors of their own, and
 * back: which loads, stores and shuffles that takes. The lowering emits these (jit/lower/weave.h),
 * and the cost of an access counts them.
 *
 * Lane l has n places from byte l * n * bytes on. Small elements are sorted first within chunks of
 * 16 bytes, each of which holds the places of several lanes: then the elements of one place in a
 * chunk are one unit, and units move as larger elements do.
 */
#ifndef QN_JIT_WEAVE_H
#define QN_JIT_WEAVE_H

#include "jit/facts/target.h"

enum { QN_MOST_PLACES = 16, QN_CHUNK_BYTES = 16 };

/**
 * PAIRS: all bytes of the lanes as whole registers, of which two at a time are permuted into one.
 * BLENDS: the same of an odd number of places: each lane of a member stands in a lane of its own of
 * some register, so members are blended of all registers, then permuted.
 * PIECES: up to 16 bytes of each lane, joined and transposed within 16 bytes.
 * WORDS: places of a lane as integers of at most as many bits as lanes hold a member in: shifts
 * tell members apart, and nothing is extended. Several words of a lane move as PAIRS do.
 */
enum { QN_WEAVE_PAIRS, QN_WEAVE_BLENDS, QN_WEAVE_PIECES, QN_WEAVE_WORDS };

typedef struct qn_weave {
    int method;
    int bytes; /* of an element */
    int n, lanes;
    uint32_t places;      /* bit p: place p is moved */
    uint32_t known;       /* bit p: place p of every lane is an element of the view */
    int per_chunk;        /* lanes in a chunk; 1: there are no chunks */
    int unit;             /* bytes: those of an element by per_chunk */
    int slots;            /* units from chunk to chunk; places if there are no chunks */
    bool is_side_by_side; /* chunks, or elements, lie in registers as they do in memory, or in words
                             of four bytes that are spread: registers are moved at once */
    int registers;        /* PAIRS, WORDS: that hold all units; so many bytes each: */
    int register_bytes;
    double moves; /* loads or stores */
    double shuffles;
} qn_weave;

/** Places that one piece of a lane takes: `size` of them, a power of two, from `first` on. */
typedef struct qn_window {
    int first, size;
} qn_window;

/**
 * Completes *w, of which bytes, n, lanes, places and known are set: the cheapest way for a target.
 * Lanes: a power of two, whose elements fit a register. False: there is none, as for some stores of
 * a few places. `held`: bytes in which lanes hold each member.
 */
bool qn__weave_of(const qn_target *t, bool is_load, int held, qn_weave *w);
/** WORDS: those that hold a place which is moved, as bits. */
uint32_t qn__weave_words(const qn_weave *w);
/** PIECES without chunks: the windows that cover the places; how many. */
int qn__weave_windows(const qn_weave *w, bool is_load, qn_window *out);
/** Those of n places that are `residue` modulo `factor`, by their numbers among these. */
uint32_t qn__weave_places(uint32_t places, int n, int factor, int residue);
/**
 * PAIRS: by which factor members are told apart first, those of place modulo the factor; 1: each is
 * taken out of the registers by itself. *shuffles: how many it takes in all.
 */
int qn__weave_factor(int registers, int n, uint32_t places, bool is_load, int *shuffles);

#endif
