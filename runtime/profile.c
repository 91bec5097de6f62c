/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.c: rows of counters and the table that shows them, see profile.h.
 */
#include "runtime/profile.h"
#include "runtime/context.h"

#include <stdlib.h>
#include <string.h>

/** What the host calls the kernel: not what calls and tables made of it. */
static const qn_kernel *given(const qn_kernel *k)
{
    return k->expansion ? k->expansion->given : k;
}

static uint64_t hash_of(const qn_kernel *k)
{
    return qn__hash(k->name, strlen(k->name), k->hash);
}

static qn_profile_row *find(const qn_profile *p, const qn_kernel *k)
{
    uint64_t hash = hash_of(k);
    qn_profile_row *row = p->bucket[hash % QN_PROFILE_BUCKETS];
    while (row && (row->hash != hash || strcmp(row->name, k->name) != 0))
        row = row->next;
    return row;
}

/** The row of a kernel, or NULL. */
static const qn_profile_row *find_row(const qn_profile *p, const qn_kernel *k)
{
    return find(p, given(qn__kernel_to_run(k)));
}

/** The counters of a kernel: a new row if need be, or those of the rest. */
static qn_kernel_counters *counters_of(qn_profile *p, const qn_kernel *k)
{
    qn_profile_row *row = find(p, k);
    if (row)
        return &row->count;
    row = p->n < QN_PROFILE_KERNELS ? qn__zalloc(1, sizeof *row) : NULL;
    if (row)
        row->name = qn__strdup(k->name);
    if (!row || !row->name) {
        qn__free(row);
        return &p->rest;
    }
    row->hash = hash_of(k);
    row->next = p->bucket[row->hash % QN_PROFILE_BUCKETS];
    p->bucket[row->hash % QN_PROFILE_BUCKETS] = row;
    p->n++;
    return &row->count;
}

static void add_counters(qn_kernel_counters *to, const qn_kernel_counters *add)
{
    int64_t flops = to->flops < 0 || add->flops < 0 ? -1 : to->flops + add->flops;
#define QN_X(name, text) to->name += add->name;
    QN_KERNEL_COUNTER_LIST(QN_X)
#undef QN_X
    to->flops = flops;
}

void qn__profile_add(qn_profile *p, const qn_kernel *k, const qn_kernel_counters *add)
{
    add_counters(counters_of(p, given(k)), add);
}

void qn__profile_release(qn_profile *p)
{
    for (int i = 0; i < QN_PROFILE_BUCKETS; i++) {
        for (qn_profile_row *row = p->bucket[i], *next; row; row = next) {
            next = row->next;
            qn__free(row->name);
            qn__free(row);
        }
    }
    memset(p, 0, sizeof *p);
}

/* ---------------------------------------------------------------- the table */

static int compare_rows(const void *a, const void *b)
{
    const qn_profile_row *x = *(qn_profile_row *const *)a, *y = *(qn_profile_row *const *)b;
    int64_t of_x = x->count.run_ns, of_y = y->count.run_ns;
    return of_x != of_y ? (of_x < of_y) - (of_x > of_y) : strcmp(x->name, y->name);
}

/** " 12.34  56 %", or dashes for what is not known. */
static void print_rate(qn_text *out, int64_t n, int64_t ns, double peak)
{
    if (n < 0 || ns <= 0) {
        qn__text_add(out, " %9s %5s", "-", "-");
        return;
    }
    double rate = (double)n / (double)ns;
    qn__text_add(out, " %9.2f", rate);
    if (peak > 0)
        qn__text_add(out, " %4.0f%%", 100 * rate / peak);
    else
        qn__text_add(out, " %5s", "-");
}

static void print_row(qn_text *out, const char *name, const qn_kernel_counters *c,
                      const qn_peaks *peaks)
{
    const qn_peaks unknown = {0};
    if (c->on_gpu) /* the peaks are those of the processor */
        peaks = &unknown;
    double mean_us = c->launches ? (double)c->run_ns / 1e3 / (double)c->launches : 0;
    qn__text_add(out, "%10.3f %9lld %9lld %6lld %10.3f %8lld %6lld %10.3f", (double)c->run_ns / 1e6,
                 (long long)c->launches, (long long)c->hits, (long long)c->interpreted, mean_us,
                 (long long)c->versions, (long long)c->found, (double)c->compile_ns / 1e6);
    print_rate(out, c->bytes, c->timed_ns, peaks->gigabytes);
    print_rate(out, c->flops, c->timed_ns, peaks->gigaflops);
    qn__text_add(out, "  %.100s\n", name);
}

static void print_rows(const qn_profile *p, qn_profile_row **row, const qn_peaks *peaks,
                       qn_text *out)
{
    qn_kernel_counters all = p->rest;
    int32_t n = 0;
    for (int i = 0; i < QN_PROFILE_BUCKETS; i++)
        for (qn_profile_row *r = p->bucket[i]; r; r = r->next) {
            row[n++] = r;
            add_counters(&all, &r->count);
        }
    qsort(row, (size_t)n, sizeof *row, compare_rows);
    qn__text_add(out, "%10s %9s %9s %6s %10s %8s %6s %10s %9s %5s %9s %5s  kernel\n", "run ms",
                 "launches", "hits", "interp", "mean us", "compiled", "found", "compile ms", "GB/s",
                 "peak", "GFLOP/s", "peak");
    for (int32_t i = 0; i < n; i++)
        print_row(out, row[i]->name, &row[i]->count, peaks);
    if (p->rest.launches || p->rest.versions || p->rest.found)
        print_row(out, "(other kernels)", &p->rest, peaks);
    all.flops = -1; /* of different kernels: a rate says nothing */
    all.bytes = -1;
    print_row(out, "(all)", &all, peaks);
}

/** The table. `peaks` may be NULL. */
static void print_profile(const qn_profile *p, const qn_peaks *peaks, qn_text *out)
{
    const qn_peaks none = {0};
    qn_profile_row **row = qn__alloc(((size_t)p->n + 1) * sizeof *row);
    if (row)
        print_rows(p, row, peaks ? peaks : &none, out);
    else
        out->failed = true;
    qn__free(row);
}

/* ---------------------------------------------------------------- public */

static qn_context *writable(const qn_context *c)
{
    return (qn_context *)(uintptr_t)c; /* a const handle may be locked */
}

qn_status qn_context_kernel(const qn_context *c, const qn_kernel *k, qn_kernel_counters *out,
                            size_t out_bytes, qn_error *err)
{
    const char *who = "qn_context_kernel";
    if (!c || !k || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who,
                        !c   ? "context"
                        : !k ? "kernel"
                             : "out");
    if (!c->options.summary)
        return qn__fail(err, QN_ERR_NOT_FOUND,
                        "%s: the context does not count by kernel: its option summary is 0", who);
    qn_kernel_counters count = {0};
    qn__lock(writable(c));
    const qn_profile_row *row = find_row(&c->profile, k);
    if (row)
        count = row->count;
    qn__unlock(writable(c));
    if (!row)
        return qn__fail(err, QN_ERR_NOT_FOUND, "%s: kernel \"%.60s\" was not launched", who,
                        k->name);
    qn__struct_give(&count, sizeof count, out, out_bytes);
    return QN_OK;
}

/** The whole text of a context that counts. */
static void summarize(const qn_context *c, const qn_peaks *peaks, qn_text *text)
{
    uint32_t host = qn__fpu_enter();
    qn__lock(writable(c));
    print_profile(&c->profile, peaks, text);
    qn__unlock(writable(c));
    qn__fpu_leave(host);
}

size_t qn_context_summary(const qn_context *c, const qn_peaks *peaks, char *buffer,
                          size_t buffer_bytes)
{
    if (!c || (!buffer && buffer_bytes))
        return 0;
    qn_text text = {0};
    if (c->options.summary)
        summarize(c, peaks, &text);
    size_t n = qn__text_out(&text, buffer, buffer_bytes);
    qn__text_release(&text);
    return n;
}

void qn__summary_tell(const qn_context *c)
{
    qn_text text = {0};
    if (c->options.summary != QN_SUMMARY_RELEASE || !c->summary_log)
        return;
    summarize(c, &c->peaks, &text);
    for (char *line = text.failed ? NULL : text.data, *end; line && *line; line = end + 1) {
        end = strchr(line, '\n');
        *end = 0;
        c->summary_log(c->options.log_arg, QN_LOG_WARNING, line);
    }
    qn__text_release(&text);
}
