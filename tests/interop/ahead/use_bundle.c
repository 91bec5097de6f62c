/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use_bundle.c BUNDLE KERNEL.qn: runs a saxpy of three lengths with the code of a bundle, and with
 * the interpreter, and compares. Ends with 0 if the results are the same bits, all launches ran
 * code, and nothing was compiled.
 */
#include <quern.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what, const qn_error *err)
{
    printf("%s: %s\n", what, err->message);
    return 1;
}

static qn_kernel *read_kernel(const char *path, qn_error *err)
{
    static char text[1 << 16];
    qn_kernel *k = NULL;
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text, f) : 0;
    if (f)
        fclose(f);
    return qn_kernel_parse(text, n, &k, err) == QN_OK ? k : NULL;
}

static int run(qn_context *c, qn_kernel *k, int engine, int64_t n, float *y, qn_error *err)
{
    qn_view x = {0}, out = {0};
    const qn_options o = {.bytes = sizeof o, .engine = engine};
    int status = qn_view_new(c, "x", QN_F32, 1, &n, &x, err) ||
                 qn_view_new(c, "y", QN_F32, 1, &n, &out, err);
    for (int64_t i = 0; i < n && !status; i++) {
        ((float *)x.data)[i] = (float)i / 7;
        ((float *)out.data)[i] = (float)(n - i);
    }
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&out), qn_arg_f32(2.5f)};
    status = status || qn_launch(c, k, 3, args, &o, err) != QN_OK;
    if (!status)
        memcpy(y, out.data, (size_t)n * sizeof *y);
    qn_view_release(&x);
    qn_view_release(&out);
    return status;
}

int main(int n_words, char **word)
{
    static float found[5000], wanted[5000];
    const int64_t length[] = {1000, 17, 5000};
    const qn_context_options o = {.bytes = sizeof o, .bundle = n_words > 1 ? word[1] : ""};
    qn_error err = {0};
    qn_context *c = NULL;
    qn_kernel *k = n_words > 2 ? read_kernel(word[2], &err) : NULL;
    if (!k || qn_context_new(&o, &c, &err) != QN_OK)
        return fail("kernel or context", &err);
    for (int i = 0; i < 3; i++) {
        if (run(c, k, QN_ENGINE_NATIVE, length[i], found, &err) ||
            run(c, k, QN_ENGINE_INTERP, length[i], wanted, &err))
            return fail("launch", &err);
        if (memcmp(found, wanted, (size_t)length[i] * sizeof *found) != 0)
            return fail("results differ", &err);
    }
    qn_counters counters;
    qn_context_counters(c, &counters, sizeof counters);
    printf("compiles %d, interpreted %d, disk_hits %d\n", (int)counters.compiles,
           (int)counters.interpreted, (int)counters.disk_hits);
    int is_wrong = counters.compiles != 0 || counters.interpreted != 3 || counters.disk_hits != 2;
    qn_kernel_release(k);
    qn_context_release(c);
    return is_wrong;
}
