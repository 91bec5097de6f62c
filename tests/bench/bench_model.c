/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_model.c: `bench_main --model [filter...]`: how well estimates tell plans apart. Each case
 * is run under the planner's plan and under others that the kernel allows; for each, a line shows
 * what was estimated and measured. At the end: how much slower than the best candidate are the one
 * of the least estimate and the planner's, and how estimates and times of pairs of candidates rank.
 */
#include "bench_model.h"
#include "bench_plan.h"
#include "bench_rank.h"
#include "bench_tune.h"

#include <math.h>
#include <stdio.h>

enum { MOST_NAMES = 700, MOST_CANDIDATES = 9, N_SAMPLES = 7 };
#define SAMPLE_SECONDS 1e-3
#define LONG_SECONDS 0.1

/* The first is the planner's. A field that a kernel does not follow gives code that was there. */
static const char *const plans[] = {
    "",        "unroll=1", "unroll=4",     "lane_dim=-1", "jam=1",      "strip=-1",
    "pack=-1", "tile=-1",  "transpose=-1", "pack=1",      "lane_dim=1", "lane_dim=2",
    "width=8", "unroll=8", "unroll=2",     "streams=1",   "apart=1",    "width=4"};
enum { N_PLANS = sizeof plans / sizeof plans[0] };

/* Cases where no filter is given. */
static const char *const usual[] = {"saxpy/f32/in/right/exact",
                                    "saxpy/f64/out/right/exact",
                                    "triad/f32/in/sub/exact",
                                    "stencil5/f64/in/right/exact",
                                    "stencil5/f32/out/left/exact",
                                    "stencil7/f32/in/right/exact",
                                    "stencil7/f64/in/left/exact",
                                    "matrix/f64/nn/64",
                                    "matrix/f64/nt/64",
                                    "matrix/f64/nn/256",
                                    "matrix/f32/tn/256",
                                    "matrix/f64/tn/509",
                                    "raja/DAXPY/right",
                                    "raja/DAXPY/mixed",
                                    "raja/FIR/right",
                                    "raja/FIR/mixed",
                                    "raja/EOS/right",
                                    "raja/EOS/mixed",
                                    "raja/VOL3D/right",
                                    "raja/VOL3D/mixed",
                                    "raja/DOT/right",
                                    "raja/REDUCE_SUM/right",
                                    "raja/PI_REDUCE/right",
                                    "raja/ATAX/right",
                                    "raja/MVT/left",
                                    "raja/LTIMES/right",
                                    "raja/HYDRO_1D/right",
                                    "raja/JACOBI_2D/right",
                                    "raja/JACOBI_2D/mixed",
                                    "raja/HEAT_3D/right",
                                    "raja/HEAT_3D/mixed",
                                    "copy/u8/in",
                                    "permute/u8/rows",
                                    "permute/f32/all",
                                    "spread/f32/2/in",
                                    "collect/f32/2/in",
                                    "collect/f64/9/in",
                                    "sum/f32/striped/right/in",
                                    "sum/f32/indexed/right/in",
                                    "sum/f32/indexed/left/in",
                                    "gather/f32/in",
                                    "blur/interleaved/in",
                                    "blur/planar/in",
                                    "scale/u8",
                                    "histogram/u8",
                                    "math/exp/f32/alone",
                                    "dot/f32/in",
                                    "columns/mixed/in"};

struct bench_model {
    char name[MOST_NAMES][80];
    int n_names;
    bool is_collecting;
    bench_candidate candidate[MOST_CANDIDATES];
    int n, at;        /* candidates; the one that runs */
    bool is_open;     /* it is timed */
    bool is_again;    /* it was timed before */
    int n_cases;
    bench_ranking ranking;
};

/* ---------------------------------------------------------------- hooks of the cases */

bool bench_model_wants(bench *b, const char *name)
{
    struct bench_model *m = b->model;
    bool is_wanted = b->n_filters > 0;
    if (!m->is_collecting)
        return strcmp(name, m->name[m->n_cases]) == 0;
    for (int n = 0; n < b->n_filters; n++)
        is_wanted &= strstr(name, b->filter[n]) != NULL;
    for (size_t n = 0; n < sizeof usual / sizeof usual[0] && b->n_filters == 0; n++)
        is_wanted |= strcmp(usual[n], name) == 0;
    for (int n = 0; n < m->n_names; n++)
        is_wanted &= strcmp(m->name[n], name) != 0;
    if (is_wanted && m->n_names < MOST_NAMES)
        snprintf(m->name[m->n_names++], sizeof m->name[0], "%s", name);
    return false;
}

/** Cycles in all, of the pieces that a kernel was made of. */
static double cycles_of(const char *text)
{
    static const char word[] = "estimate ";
    double sum = 0;
    for (const char *at = text; at && (at = strstr(at, word)); at++)
        sum += atof(at + sizeof word - 1);
    return sum;
}

/** Enters a candidate, unless its code was there already or nothing is estimated. */
static void open_candidate(struct bench_model *m, const qn_code *f)
{
    char *code = bench_text_of(f, QN_DUMP_ASM), *estimate = bench_text_of(f, QN_DUMP_ESTIMATE);
    bench_candidate *c = &m->candidate[m->at];
    c->text = code;
    c->estimate = cycles_of(estimate);
    c->seconds = 0;
    m->is_open = code && c->estimate > 0;
    for (int n = 0; n < m->n && m->is_open; n++)
        m->is_open = strcmp(m->candidate[n].text, code) != 0;
    if (!m->is_open)
        free(code);
    free(estimate);
}

qn_status bench_prepare(bench *b, const qn_kernel *k, int n, const qn_arg *args,
                        const qn_options *o, qn_call **out, qn_error *err)
{
    qn_code *f = NULL;
    if (b->tuning.seconds > 0) {
        bench_tune_case(b, k, n, args, o);
        return QN_ERR_CANCELLED;
    }
    qn_status status = qn_prepare(b->context, k, n, args, o, out, err);
    if (!b->model || status || b->model->is_again)
        return status;
    if (qn_specialize(b->context, k, n, args, o, &f, err) == QN_OK)
        open_candidate(b->model, f);
    qn_code_release(f);
    return status;
}

bool bench_model_leaves_out(bench *b)
{
    if (b->model && b->model->n > 0) { /* a kernel may have no such dimension */
        b->model->is_open = false;
        return true;
    }
    b->n_wrong++;
    return false;
}

/** The shortest of some samples. */
static double seconds_of(qn_call *call)
{
    double shortest = INFINITY;
    int runs = 1;
    for (int n = 0; n < N_SAMPLES; n++) {
        double begin = bench_thread_time();
        for (int i = 0; i < runs; i++)
            (void)qn_run(call, NULL);
        double seconds = (bench_thread_time() - begin) / runs;
        shortest = n > 0 && shortest < seconds ? shortest : seconds;
        if (seconds > LONG_SECONDS)
            break;
        if (n == 0)
            runs = 1 + (int)(SAMPLE_SECONDS / (seconds + 1e-9));
    }
    return shortest;
}

bool bench_model_times(bench *b, qn_call *call)
{
    struct bench_model *m = b->model;
    if (!m)
        return false;
    bench_candidate *c = &m->candidate[m->at];
    double seconds = m->is_open ? seconds_of(call) : 0;
    if (m->is_open)
        c->seconds = m->is_again && c->seconds < seconds ? c->seconds : seconds;
    return true;
}

/* ---------------------------------------------------------------- a case */

static void run_cases(bench *b)
{
    bench_speed_cases(b);
    bench_product_cases(b);
    bench_body_cases(b);
    bench_sum_cases(b);
    bench_data_cases(b);
    bench_math_cases(b);
    bench_unseen_cases(b);
}

static void run_plan(bench *b, const char *plan)
{
    (void)bench_read_plan(plan, &b->plan);
    b->model->candidate[b->model->at].plan = plan;
    b->model->is_open = b->model->is_again;
    run_cases(b);
}

/** All plans of one case, one right after the other, and once more. */
static void run_case(bench *b, const char *name)
{
    struct bench_model *m = b->model;
    m->n = 0;
    m->is_again = false;
    for (int n = 0; n < N_PLANS && m->n < MOST_CANDIDATES; n++) {
        m->at = m->n;
        run_plan(b, plans[n]);
        if (m->is_open && m->candidate[m->n].seconds > 0)
            m->n++;
        else if (m->is_open)
            free(m->candidate[m->n].text);
        if (n == 0 && m->n == 0)
            break; /* not a case whose calls are timed here */
    }
    m->is_again = true;
    for (m->at = 0; m->at < m->n && m->n > 1; m->at++)
        run_plan(b, m->candidate[m->at].plan);
    if (m->n > 1)
        bench_ranking_add(&m->ranking, name, m->candidate, m->n);
    for (int n = 0; n < m->n; n++)
        free(m->candidate[n].text);
}

void bench_model_run(bench *b)
{
    struct bench_model *m = calloc(1, sizeof *m);
    if (!m || !bench_ranking_begin(&m->ranking)) {
        printf("# out of memory\n");
        b->n_wrong++;
        goto done;
    }
    m->is_collecting = true;
    b->model = m;
    run_cases(b);
    m->is_collecting = false;
    printf("# case\tplan\testimate, cycles\tmeasured, ns\tcycles a ns\tchosen\n");
    for (m->n_cases = 0; m->n_cases < m->n_names; m->n_cases++)
        run_case(b, m->name[m->n_cases]);
done:
    b->model = NULL;
    if (m)
        bench_ranking_end(&m->ranking);
    free(m);
}
