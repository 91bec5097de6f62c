/* SPDX-License-Identifier: Apache-2.0 */
/* estimate_parts.h: what the files of the estimate show one another. */
#ifndef QN_JIT_ESTIMATE_PARTS_H
#define QN_JIT_ESTIMATE_PARTS_H

#include "jit/schedule/cost.h"
#include "jit/schedule/estimate.h"

/** Of what is shorter than the longest of core and transfers, the part that is not hidden. */
#define QN_SHOWN_SHARE 0.125

/** Of branches that depend on data: of a side, how often it is taken where it is rare; and of all,
 * how often the processor guesses wrong. */
#define QN_RARE_SHARE 0.125
#define QN_WRONG_SHARE 0.125
/** Trips of the longest of some lanes, by the mean of all. */
#define QN_LONGEST 2

/* The end of a loop of fewer trips is foreseen. */
enum { QN_FORESEEN_TRIPS = 32 };

/** What one iteration of a loop asks of the core. */
typedef struct qn_demand {
    double instructions, loads, stores;
    double slots, shuffles; /* of ports: for arithmetic, and for what puts lanes into place */
    double load_bytes, store_bytes;
    double chain; /* cycles from one iteration to the next, of what one adds to the other */
    double path;  /* cycles of the longest way through the body */
    double guesses;
} qn_demand;

/** A loop around what is looked at; [0] is the call. */
typedef struct qn_around {
    qn_node node;
    uint32_t dims; /* bit d: it moves dimension d; all: what, is not known */
    double count;  /* iterations */
    bool is_together, is_lanes, is_points;
    qn_demand demand; /* of what is emitted in the loop itself */
    double inside;    /* cycles of the loops in it, for one iteration */
} qn_around;

typedef struct qn_estimator {
    const qn_analysis *x;
    const qn_schedule *s;
    const qn_machine *m;
    qn_estimate *out;
    qn_around around[QN_MOST_DEPTH + 1];
    int n;                         /* loops around, with the call */
    bool is_stepped[QN_MOST_CUTS]; /* some part of the cut is lanes, or emitted together */
    bool is_masked; /* rows of the lanes are shorter than a vector: all of them run under masks */
    bool are_gathered; /* loads of lanes far apart: there are too many of them */
    double *ready;  /* [n_insts] when a value is known, from the begin of its statement */
    double *carried; /* [n_insts] cycles since what a loop of the body carries; 0: none of it */
} qn_estimator;

/** The integer part; numbers beyond those that a double tells apart stay as they are. */
static inline double qn__whole(double n)
{
    return n < 0x1p53 ? (double)(int64_t)n : n;
}
/** An index or extent that is not above what an i64 holds. */
static inline int64_t qn__extent_of(double n)
{
    return n < 0x1p62 ? (int64_t)n : INT64_C(1) << 62;
}

/** Whether the iterations of a loop are emitted together. */
static inline bool qn__is_together(const qn_node_info *l)
{
    return l->kind == QN_NODE_LOOP && (l->role == QN_ROLE_VECTOR || l->role == QN_ROLE_UNROLLED);
}

/** What takes so many cycles of an estimate. */
typedef struct qn_estimate_part {
    double cycles;
    const char *name;
} qn_estimate_part;
/** The name of what takes longest, the first of several; n > 0. */
const char *qn__longest_part(const qn_estimate_part *parts, size_t n);
/** Trips of a loop of the body, or points of a reduce in it, about. */
double qn__nominal_trips(const qn_analysis *x, uint32_t i);
/** Elements of a view that lie evenly apart. */
typedef struct qn_stretch {
    double n, stride; /* elements; bytes between them */
    bool is_known;    /* the stride; else it is a nominal one */
} qn_stretch;
enum { QN_MOST_STRETCHES = 4 * QN_MAX_RANK };
/** The digits of the extents of a box of an access, smallest strides first; how many there are. */
int qn__stretches_of(const qn_analysis *x, uint32_t inst, const qn_box *box, qn_stretch *out);
/** Iterations of a loop over an axis, about. */
double qn__nominal_count(const qn_estimator *e, qn_axis a);
/** With the part of a step that is left of the axis. */
double qn__steps(const qn_estimator *e, qn_axis a);
/** Adds what a DO asks for to the loops around it. */
void qn__estimate_statement(qn_estimator *e, qn_node at);
/** Memory operations of an access, slots as in qn_demand, and bytes taken besides those moved. */
typedef struct qn_access_work {
    double moves, slots, shuffles, torn;
} qn_access_work;
/** Access i of `lanes` lanes; r: its record, or NULL. */
qn_access_work qn__estimate_access(const qn_estimator *e, uint32_t i, const qn_record_info *r,
                                   int lanes);
/** Whether lanes stay within the fastest digit of a layout, whose elements stand side by side. */
bool qn__lanes_are_in_digit(const qn_estimator *e, uint32_t i, int lanes);
/** Bytes of the registers that hold lanes, at most those of one. */
double qn__register_bytes(const qn_estimator *e, int bits, int lanes);
/** Adds whole registers that are loaded and stored in one iteration of the innermost loop. */
void qn__estimate_moves(qn_estimator *e, double loads, double stores, double shuffles);
/** Sets bytes, transfer and waiting. */
qn_status qn__estimate_bytes(const qn_estimator *e, qn_error *err);

static inline double qn__larger(double a, double b)
{
    return a > b ? a : b;
}
static inline double qn__smaller(double a, double b)
{
    return a < b ? a : b;
}

#endif
