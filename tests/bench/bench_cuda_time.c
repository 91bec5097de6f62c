/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda_time.c: what every line of the GPU's benchmark does with its sides, which are ours,
 * the peer in CUDA C and the driver's copy: the peer is found by the name of the line, samples of
 * all sides are taken in turns between two timed marks of one stream, and --text prints a stage of
 * our code.
 */
#include "tests/bench/bench_cuda.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SAMPLES = 11, MAX_REPEATS = 1000, TEXT_BYTES = 1 << 20 };
#define SLOW_SECONDS 0.3 /* of a run: one sample is enough */

/* ---------------------------------------------------------------- peers */

gpu_peer gpu_find_peer(const gpu_bench *b, const char *line)
{
    char name[GPU_NAME_BYTES + 8];
    gpu_peer peer = NULL;
    const int n = snprintf(name, sizeof name, "peer_%s", line);
    for (int i = 0; i < n && i < (int)sizeof name; i++)
        name[i] = (char)(name[i] == '/' ? '_' : name[i]);
    void *symbol = b->peers ? dlsym(b->peers, name) : NULL;
    memcpy(&peer, &symbol, sizeof peer);
    return peer;
}

qn_status gpu_peer_status(const char *what, int result, qn_error *err)
{
    if (result == 0)
        return QN_OK;
    err->status = QN_ERR_CUDA;
    snprintf(err->message, sizeof err->message, "theirs: %s %d", what, result);
    return QN_ERR_CUDA;
}

/* ---------------------------------------------------------------- times */

/* Seconds of one of n runs. */
static qn_status time_side(const gpu_sides *s, int side, int n, double *seconds, qn_error *err)
{
    qn_mark *begin = NULL, *end = NULL;
    double ms = 0;
    qn_status status = qn_stream_mark(s->b->stream, 1, &begin, err);
    for (int i = 0; i < n && !status; i++)
        status = s->run(s->line, side, err);
    if (!status)
        status = qn_stream_mark(s->b->stream, 1, &end, err);
    if (!status)
        status = qn_stream_fence(s->b->stream, err);
    if (!status)
        status = qn_mark_milliseconds(begin, end, &ms, err);
    qn_mark_release(begin);
    qn_mark_release(end);
    *seconds = ms * 1e-3 / n;
    return status;
}

qn_status gpu_time_sides(const gpu_sides *s, double *median, qn_error *err)
{
    double sample[GPU_SIDES][MAX_SAMPLES];
    int n_samples = s->b->is_tiny ? 1 : s->b->is_quick ? 5 : MAX_SAMPLES, n[GPU_SIDES] = {0};
    const double target = s->b->is_tiny ? 0 : s->b->is_quick ? 2e-3 : 4e-3;
    for (int side = 0; side < GPU_SIDES; side++) {
        double once = 0;
        qn_status status = s->is_there[side] ? time_side(s, side, 1, &once, err) : QN_OK;
        if (!status && s->is_there[side])
            status = time_side(s, side, 1, &once, err);
        if (status)
            return status;
        const double repeats = once > 0 ? ceil(target / once) : 1;
        n[side] = repeats < 1 ? 1 : repeats > (double)MAX_REPEATS ? MAX_REPEATS : (int)repeats;
        n_samples = once > SLOW_SECONDS ? 1 : n_samples;
        median[side] = 0;
    }
    for (int i = 0; i < n_samples; i++)
        for (int turn = 0; turn < GPU_SIDES; turn++) {
            const int side = (turn + i) % GPU_SIDES;
            const qn_status status =
                s->is_there[side] ? time_side(s, side, n[side], &sample[side][i], err) : QN_OK;
            if (status)
                return status;
        }
    for (int side = 0; side < GPU_SIDES; side++)
        median[side] = s->is_there[side] ? gpu_median(sample[side], n_samples) : 0;
    return QN_OK;
}

/* ---------------------------------------------------------------- text */

void gpu_print_text(const gpu_bench *b, const char *line, const qn_kernel *kernel, int n_args,
                    const qn_arg *args, const qn_options *o)
{
    static const struct {
        const char *name;
        int stage;
    } stage[] = {
#define QN_X(name, bit, text) {text, QN_DUMP_##name},
        QN_DUMP_LIST(QN_X)
#undef QN_X
    };
    qn_code *f = NULL;
    qn_error err = {0};
    char *text = malloc(TEXT_BYTES);
    int number = 0;
    for (size_t i = 0; i < sizeof stage / sizeof stage[0]; i++)
        if (strcmp(stage[i].name, b->text) == 0)
            number = stage[i].stage;
    if (text && number && qn_specialize(b->context, kernel, n_args, args, o, &f, &err) == QN_OK &&
        qn_code_text(f, number, text, TEXT_BYTES) > 0)
        for (char *row = strtok(text, "\n"); row; row = strtok(NULL, "\n"))
            printf("# %s: %s\n", line, row);
    else
        printf("# %s: no text of stage \"%s\" %s\n", line, b->text, err.message);
    qn_code_release(f);
    free(text);
}
