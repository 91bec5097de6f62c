/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.c: `quern tune` measures other ways to walk a kernel than the planner's, on the arguments of
 * the line, and keeps the fastest one in the cache on disk. It prints a line for each candidate
 * that was measured or is wrong, then the outcome.
 */
#include "tool.h"

#include "quern/tune.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CHOICE_BYTES = 4096 };

/* What candidates are told with. */
typedef struct teller {
    const tool_line *line;
    json *j;     /* member "candidates" is open; NULL: text */
    double best; /* the largest gain so far */
} teller;

static double gain_of(const qn_tune_candidate *c)
{
    return c->ns > 0 ? c->planned_ns / c->ns : 0;
}

static void tell_json(json *j, const qn_tune_candidate *c)
{
    json_open(j, NULL, '{');
    json_int(j, "number", c->number);
    json_text(j, "state", qn_tune_state_name(c->state));
    json_text(j, "choice", c->choice);
    if (c->why)
        json_text(j, "why", c->why);
    if (c->ns > 0)
        json_real(j, "ns", c->ns, 6);
    if (c->ns > 0)
        json_real(j, "planned_ns", c->planned_ns, 6);
    json_close(j);
}

static void tell_text(const qn_tune_candidate *c)
{
    const char *choice = c->choice[0] ? c->choice : "the planner's choice";
    progress_clear();
    if (c->state == QN_TUNE_MEASURED)
        printf("%5d %12.1f %8.3f  %s\n", c->number, c->ns, gain_of(c), choice);
    else if (c->state == QN_TUNE_WRONG || c->state == QN_TUNE_SLOW)
        printf("%5d %12s %8s  %s%s%s\n", c->number, "-", qn_tune_state_name(c->state), choice,
               c->why ? ": " : "", c->why ? c->why : "");
}

static int32_t tell(void *arg, const qn_tune_candidate *c)
{
    teller *t = arg;
    t->best = gain_of(c) > t->best ? gain_of(c) : t->best;
    if (t->j)
        tell_json(t->j, c);
    else
        tell_text(c);
    progress_show(&t->line->how, "tune: %d candidates, %.1f s, the best so far %.2f times as fast",
                  c->number + 1, c->seconds, t->best);
    return 0;
}

static void write_words(const void *arg, FILE *f)
{
    const char *words = arg;
    fprintf(f, "%s%s", words, words[0] ? "\n" : "");
}

static int save(const tool_line *line, const char *words)
{
    if (!line->save || file_write(line->save, write_words, words))
        return EXIT_OK;
    return tool_fail(EXIT_ERROR, "--save %s: cannot be written: %s", line->save, strerror(errno));
}

static const char *compared_with(const qn_tune_result *r)
{
    return r->compared == QN_TUNE_WITH_INTERPRETER ? "interpreter" : "planned";
}

static void print_result(const qn_tune_result *r, const char *words)
{
    printf("planned  %12.1f ns   the planner's choice\n", r->planned_ns);
    printf("best     %12.1f ns   %.3f times as fast: %s\n", r->best_ns, r->gain,
           words[0] ? words : "the planner's choice stays");
    printf("tried    %12d      %d measured, %d refused, %d wrong, in %.1f s; compared with the "
           "%s\n",
           r->n_candidates, r->n_measured, r->n_refused, r->n_wrong, r->seconds,
           r->compared == QN_TUNE_WITH_INTERPRETER ? "interpreter" : "planner's choice");
    puts(r->is_kept ? "kept in the cache on disk" : "not kept: there is no cache on disk");
}

static void result_json(json *j, const qn_tune_result *r, const char *words)
{
    json_text(j, "choice", words);
    json_real(j, "planned_ns", r->planned_ns, 6);
    json_real(j, "best_ns", r->best_ns, 6);
    json_real(j, "gain", r->gain, 6);
    json_real(j, "seconds", r->seconds, 6);
    json_int(j, "tried", r->n_candidates);
    json_int(j, "measured", r->n_measured);
    json_int(j, "refused", r->n_refused);
    json_int(j, "wrong", r->n_wrong);
    json_text(j, "compared", compared_with(r));
    json_word(j, "kept", r->is_kept ? "true" : "false");
}

static int tune(const tool_line *line, const tool_job *job, json *j)
{
    char words[CHOICE_BYTES] = "";
    qn_tune_result r;
    qn_error err = {0};
    teller t = {.line = line, .j = j};
    const qn_tune_options o = {.bytes = sizeof o,
                               .seconds = line->seconds,
                               .progress = tell,
                               .progress_arg = &t,
                               .choice = words,
                               .choice_bytes = sizeof words};
    if (!j)
        printf("%5s %12s %8s  %s\n", "", "ns", "gain", "choice");
    qn_status status =
        qn_tune(job->context, job->kernel, job->n, job->arg, &job->options, &o, &r, sizeof r, &err);
    progress_clear();
    if (status != QN_OK)
        return tool_fail(EXIT_ERROR, "%s: %s: %s", line->kernel_path, qn_status_name(err.status),
                         err.message);
    if (j) {
        json_close(j);
        result_json(j, &r, words);
    } else {
        print_result(&r, words);
    }
    return save(line, words);
}

int command_tune(const tool_line *line)
{
    tool_job job = {0};
    json j = {0};
    if (line->over || line->plan || line->schedule)
        return tool_fail(EXIT_USAGE, "tune: goes without --over, --plan, --schedule");
    int status = job_open(line, &job);
    if (status == EXIT_OK && line->how.json) {
        if (!json_begin(&j, "tune")) {
            status = tool_fail(EXIT_ERROR, "out of memory");
        } else {
            json_text(&j, "kernel", qn_kernel_name(job.kernel));
            json_open(&j, "candidates", '[');
        }
    }
    if (status == EXIT_OK)
        status = tune(line, &job, line->how.json ? &j : NULL);
    job_close(&job);
    return json_end(&j, status);
}
