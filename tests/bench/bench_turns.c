/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_turns.c: times prepared calls and what they are compared with in turns: 11 samples of each,
 * of at least 2 ms; the side that begins alternates. Times are those of the thread: what others run
 * on the processor does not count. A line shows the medians.
 */
#include "bench_model.h"

enum { N_PAIRS = 11, MOST_CALLS = 1 << 16 };
#define SAMPLE_SECONDS 2e-3

typedef struct sides {
    int n_calls;
    qn_call *const *call;
    void (*theirs)(const void *data);
    const void *data;
    int n; /* calls of a sample */
} sides;

static void run_all(const sides *s)
{
    for (int i = 0; i < s->n_calls; i++)
        qn_run(s->call[i], NULL);
}

/* Seconds of a call. */
static double time_of(const sides *s, bool is_ours)
{
    double begin = bench_thread_time();
    for (int i = 0; i < s->n; i++)
        if (is_ours)
            run_all(s);
        else
            s->theirs(s->data);
    return (bench_thread_time() - begin) / s->n;
}

void bench_in_turns(bench *b, bench_line *line, qn_call *call, void (*theirs)(const void *data),
                    const void *data)
{
    bench_calls_in_turns(b, line, 1, &call, theirs, data);
}

void bench_calls_in_turns(bench *b, bench_line *line, int n_calls, qn_call *const *calls,
                          void (*theirs)(const void *data), const void *data)
{
    double sample[2][N_PAIRS];
    sides s = {n_calls, calls, theirs, data, 1};
    if (n_calls == 1 && bench_model_times(b, calls[0]))
        return;
    while (s.n < MOST_CALLS && time_of(&s, false) * s.n < SAMPLE_SECONDS)
        s.n *= 2;
    for (int i = 0; i < N_PAIRS; i++) {
        int first = i % 2;
        sample[first][i] = time_of(&s, first);
        sample[!first][i] = time_of(&s, !first);
    }
    bench_report_pairs(b, line, sample[1], sample[0], N_PAIRS);
}
