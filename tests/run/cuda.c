/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda.c: cases on a GPU: their storage is copied there, guard bytes included, and back. Without a
 * GPU the first case of each file runs on the stub driver, so that the path from the launch to the
 * fence is tested everywhere.
 */
#include "tests/device.h"
#include "tests/run/run_cases.h"
#include "tests/tap.h"

#include <stdlib.h>

struct cuda_cases {
    device device;
    int64_t n_launches, n_limits;
};

cuda_cases *cuda_cases_new(bool may_be_stub, char *reason, size_t reason_bytes)
{
    cuda_cases *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    bool is_open = device_open(&p->device, may_be_stub);
    snprintf(reason, reason_bytes, "%s", p->device.no_gpu);
    if (!is_open) {
        free(p);
        return NULL;
    }
    const qn_cuda_device *i = &p->device.info;
    tap_note("cuda: %s, compute capability %d.%d, driver %d.%d, code for sm_%d", i->name,
             i->capability / 10, i->capability % 10, i->driver / 1000, i->driver % 1000 / 10,
             i->isa);
    return p;
}

bool cuda_cases_takes(const cuda_cases *p, bool is_first)
{
    return is_first || !p->device.no_gpu[0];
}

static qn_options options_of(const case_instance *c, int way)
{
    return (qn_options){.bytes = sizeof(qn_options),
                        .checks = way == 2 ? QN_CHECKS_NONE : c->checks,
                        .strict = c->strict,
                        .specialize = way == 1 ? QN_SPECIALIZE_DYNAMIC : QN_SPECIALIZE_EXACT};
}

qn_status cuda_cases_run(cuda_cases *p, const qn_kernel *k, int n, const qn_arg *args,
                         const case_instance *c, int way, case_lines *lines, bool *is_limit,
                         qn_error *err)
{
    device_memory memory[MAX_BINDINGS];
    for (int i = 0; i < c->n_storages; i++) {
        memcpy(c->storage[i].bytes, c->storage[i].initial, c->storage[i].n_bytes);
        memory[i] = (device_memory){c->storage[i].bytes, c->storage[i].n_bytes};
    }
    qn_options o = options_of(c, way);
    if (lines)
        case_lines_want(c, lines, &o);
    qn_status status = device_launch(&p->device, k, n, args, c->n_storages, memory, &o, err);
    *is_limit = device_is_limit(status, err);
    p->n_launches++;
    p->n_limits += *is_limit;
    return status;
}

void cuda_cases_note(cuda_cases *p, const qn_kernel *k, int n, const qn_arg *args,
                     const case_instance *c, int way)
{
    qn_options o = options_of(c, way);
    qn_code *f = NULL;
    qn_error err = {0};
    char text[8192];
    o.isa = p->device.info.isa;
    if (qn_specialize(p->device.context, k, n, args, &o, &f, &err) != QN_OK) {
        tap_note("no plan: %s", err.message);
        return;
    }
    static const int stages[] = {QN_DUMP_KEY, QN_DUMP_PLAN};
    for (int i = 0; i < 2; i++) {
        text[0] = 0;
        qn_code_text(f, stages[i], text, sizeof text);
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
            tap_note("  %.500s", line);
    }
    qn_code_release(f);
}

void cuda_cases_end(cuda_cases *p)
{
    if (p->device.stub && p->device.stub->misuse())
        tap_ok(false, "cuda: the stub driver was misused: %s", p->device.stub->misuse());
    qn_counters n;
    qn_context_counters(p->device.context, &n, sizeof n);
    tap_note("cuda: %" PRId64 " launches on %s, of which a GPU does not do %" PRId64 "; %" PRId64
             " compiles in %.1f s; %" PRId64 " versions",
             p->n_launches, p->device.info.name, p->n_limits, n.compiles,
             (double)n.compile_us * 1e-6, n.live_functions);
    device_close(&p->device);
    free(p);
}
