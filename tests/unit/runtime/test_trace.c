/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_trace.c: the file of a trace: it is JSON, it has launches, compiles and copies with times
 * that fit one another, and each context has one of its own.
 */
#define _GNU_SOURCE
#include "tests/unit/gpu.h"

#include <ctype.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---------------------------------------------------------------- a strict reader of JSON */

static const char *skip(const char *p)
{
    while (*p == ' ' || *p == '\n')
        p++;
    return p;
}

static const char *value(const char *p);

static const char *string(const char *p)
{
    if (!p || *p++ != '"')
        return NULL;
    for (; *p && *p != '"'; p++) {
        if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
            return NULL;
        if (*p == '\\' && (p[1] != 'u' || strspn(p + 2, "0123456789abcdef") < 4))
            return NULL;
    }
    return *p == '"' ? p + 1 : NULL;
}

/** Members of an object or elements of an array, up to the bracket. */
static const char *list(const char *p, bool is_object)
{
    const char end = is_object ? '}' : ']';
    p = skip(p + 1);
    if (*p == end)
        return p + 1;
    for (;; p = skip(p + 1)) {
        if (is_object) {
            p = string(skip(p));
            p = p ? skip(p) : NULL;
            if (!p || *p++ != ':')
                return NULL;
        }
        p = value(skip(p));
        p = p ? skip(p) : NULL;
        if (!p || (*p != ',' && *p != end))
            return NULL;
        if (*p == end)
            return p + 1;
    }
}

static const char *value(const char *p)
{
    if (*p == '{' || *p == '[')
        return list(p, *p == '{');
    if (*p == '"')
        return string(p);
    if (strncmp(p, "true", 4) == 0)
        return p + 4;
    if (strncmp(p, "false", 5) == 0)
        return p + 5;
    char *end;
    bool is_number = isdigit((unsigned char)*p) || *p == '-';
    strtod(p, &end);
    return is_number && end > p ? end : NULL;
}

static bool is_json(const char *text)
{
    const char *p = value(skip(text));
    return p && *skip(p) == 0;
}

/* ---------------------------------------------------------------- files */

static char folder[100] = "/tmp/quern_trace_XXXXXX";

static const char *path_of(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 1 << 20);
    size_t n = f && text ? fread(text, 1, (1 << 20) - 1, f) : 0;
    if (f)
        fclose(f);
    if (text)
        text[n] = 0;
    return text;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *p = strstr(text, what); p; p = strstr(p + 1, what))
        n++;
    return n;
}

static qn_context *traced(const char *path)
{
    const qn_context_options o = {.bytes = sizeof o, .disk_cache = "off", .trace = path};
    return context_with(&o);
}

/** Launches a kernel n times, runs it n times prepared, and copies a view. */
static bool work(qn_context *c, const char *text, int engine, int n)
{
    qn_kernel *k = kernel_of(text);
    qn_view x = vector_of(c, "x", QN_F32, 1000),
            y = vector_of(c, "a \"name\" \\ \n \xff", QN_F32, 1000);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_options o = {.bytes = sizeof o, .engine = engine};
    qn_call *call = NULL;
    bool is_fine = qn_prepare(c, k, 2, args, &o, &call, NULL) == QN_OK;
    for (int i = 0; i < n && is_fine; i++)
        is_fine = qn_launch(c, k, 2, args, &o, NULL) == QN_OK && qn_run(call, NULL) == QN_OK;
    is_fine = is_fine && qn_deep_copy(c, &y, &x, NULL) == QN_OK;
    qn_call_release(call);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    return is_fine;
}

/* ---------------------------------------------------------------- tests */

static void test_reader(void)
{
    tap_ok(is_json("[{\"a\": 1.5, \"b\": [true, {}]}]\n") && is_json("[]"),
           "the reader takes JSON");
    tap_ok(!is_json("[{\"a\": 1.5,}]") && !is_json("[1") && !is_json("[\"\n\"]") &&
               !is_json("[\"\\\"]") && !is_json("[1]]"),
           "and nothing else");
}

static void test_events(int engine)
{
    char path[200];
    snprintf(path, sizeof path, "%s", path_of("trace.json"));
    qn_context *c = traced(path);
    tap_ok(work(c, COPY_TEXT, engine, 3), "3 launches, 3 prepared runs and a copy");
    qn_context_release(c);
    char *text = read_file(path);
    tap_ok(is_json(text), "the file is JSON");
    tap_is_int(count(text, "\"cat\": \"launch\", \"name\": \"copy\""), 6, "it has the launches");
    tap_is_int(count(text, engine == QN_ENGINE_NATIVE ? "\"engine\": \"code\""
                                                      : "\"engine\": \"interpreter\""),
               6, "by their engine");
    tap_is_int(count(text, "\"cat\": \"compile\", \"name\": \"copy\""), engine == QN_ENGINE_NATIVE,
               "a compile of code");
    tap_is_int(count(text, "\"cat\": \"version\", \"name\": \"copy\""), engine == QN_ENGINE_NATIVE,
               "and who waited for it");
    tap_is_int(count(text, "\"name\": \"compile thread\""), engine == QN_ENGINE_NATIVE,
               "on a thread with a name");
    tap_contains(text,
                 "\"cat\": \"copy\", \"name\": \"a \\u0022name\\u0022 \\u005c \\u000a \\u00ff\"",
                 "a copy, whatever the label is");
    tap_contains(text, "\"bytes\": 4000, \"from\": \"host\", \"to\": \"host\"", "with its bytes");
    free(text);
}

/** A compile lies inside of the time in which a launch waited for it. */
static void test_times(void)
{
    double at[2], duration[2];
    const char *const what[] = {"\"cat\": \"version\"", "\"cat\": \"compile\", \"name\": \"copy\""};
    char *text = read_file(path_of("trace.json"));
    bool is_fine = true;
    for (int i = 0; i < 2; i++) {
        const char *event = strstr(text, what[i]), *ts = event ? strstr(event, "\"ts\": ") : NULL;
        is_fine =
            is_fine && ts && sscanf(ts, "\"ts\": %lf, \"dur\": %lf", &at[i], &duration[i]) == 2;
    }
    tap_ok(is_fine && at[0] <= at[1] && at[1] + duration[1] <= at[0] + duration[0] &&
               duration[1] > 0,
           "a compile is inside the time in which it was waited for");
    free(text);
}

static void test_files(void)
{
    char path[200], other[300];
    snprintf(path, sizeof path, "%s", path_of("two.json"));
    qn_context *c = traced(path), *d = traced(path);
    tap_ok(work(c, COPY_TEXT, QN_ENGINE_INTERP, 1) && work(d, COPY_TEXT, QN_ENGINE_INTERP, 2),
           "two contexts, one name");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(work(c, COPY_TEXT, QN_ENGINE_INTERP, 1) ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    tap_ok(status == 0, "a child of fork runs");
    qn_context_release(d);
    qn_context_release(c);
    snprintf(other, sizeof other, "%s.%d.1", path, (int)getpid());
    char *first = read_file(path), *second = read_file(other);
    tap_ok(is_json(first) && count(first, "\"cat\": \"launch\"") == 2,
           "the first has the file, and the child wrote nothing to it");
    tap_ok(is_json(second) && count(second, "\"cat\": \"launch\"") == 4, "the second another one");
    free(first);
    free(second);
    qn_context *e = traced("/nonexistent/trace.json");
    tap_ok(history_has(e, "trace to /nonexistent/trace.json failed: No such file or directory"),
           "a file that cannot be is in the history");
    tap_ok(work(e, COPY_TEXT, QN_ENGINE_INTERP, 1), "and the context works");
    qn_context_release(e);
}

static void test_many(void)
{
    char path[200];
    snprintf(path, sizeof path, "%s", path_of("many.json"));
    qn_context *c = traced(path);
    tap_ok(work(c, COPY_TEXT, QN_ENGINE_INTERP, 1000), "more events than a buffer holds");
    qn_context_release(c);
    char *text = read_file(path);
    tap_ok(is_json(text) && count(text, "\"cat\": \"launch\"") == 2000, "all are written");
    free(text);
}

/** Launches on the stub of a driver, by which any two events are 1.5 ms apart. */
static void test_gpu(void)
{
    char path[200], reason[600];
    const stub_control *stub = stub_open(STUB_PATH);
    if (!stub || !has_x86(reason, sizeof reason)) {
        tap_skip(stub ? reason : "no stub of a driver");
        return;
    }
    snprintf(path, sizeof path, "%s", path_of("gpu.json"));
    const qn_context_options options = {.bytes = sizeof options,
                                        .disk_cache = "off",
                                        .trace = path,
                                        .cuda_driver = STUB_PATH,
                                        .summary = QN_SUMMARY_COUNT};
    qn_context *c = context_with(&options);
    qn_stream *s = NULL;
    qn_error err = {0};
    tap_ok(qn_stream_new(c, -1, &s, &err) == QN_OK, "a stream: %s", err.message);
    const qn_options o = {.bytes = sizeof o, .executor = QN_CUDA, .stream = s};
    qn_kernel *k = kernel_of(COPY_TEXT);
    qn_view x = vector_in(c, QN_SPACE_CUDA, s, "x", QN_F32, 1000),
            y = vector_in(c, QN_SPACE_CUDA, s, "y", QN_F32, 1000);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    qn_kernel_counters n = {0};
    bool is_fine = true;
    for (int i = 0; i < 3; i++)
        is_fine = is_fine && qn_launch(c, k, 2, args, &o, &err) == QN_OK;
    tap_ok(is_fine && qn_stream_fence(s, &err) == QN_OK, "3 launches on a GPU: %s", err.message);
    tap_ok(qn_context_kernel(c, k, &n, sizeof n, &err) == QN_OK && n.on_gpu == 3 &&
               n.timed_ns == 4500000 && n.bytes == 24000,
           "their time there and their bytes are counted: %s", err.message);
    char *table = calloc(1, 1 << 14);
    const qn_peaks peaks = {.gigabytes = 1, .gigaflops = 1};
    if (table)
        qn_context_summary(c, &peaks, table, 1 << 14);
    tap_ok(table && strstr(table, " 0.01     - ") && !strchr(table, '%'),
           "rates, without a share of the processor's peaks");
    free(table);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    qn_stream_release(s);
    qn_context_release(c);
    char *text = read_file(path);
    tap_ok(is_json(text) && count(text, "\"cat\": \"gpu\", \"name\": \"copy\"") == 3,
           "the trace has them as they ran there");
    tap_is_int(count(text, "\"dur\": 1500.000"), 3, "with their times");
    tap_ok(count(text, "{\"name\": \"GPU 0\"}") == 1 && strstr(text, "{\"name\": \"stream 0\"}"),
           "GPU and stream have names");
    tap_ok(is_clean(stub), "all events are given back");
    free(text);
}

int main(void)
{
    char reason[600], command[200];
    test_reader();
    tap_ok(mkdtemp(folder) != NULL, "a folder for traces");
    test_events(QN_ENGINE_INTERP);
    test_files();
    test_many();
    test_gpu();
    if (has_x86(reason, sizeof reason)) {
        test_events(QN_ENGINE_NATIVE);
        test_times();
    } else {
        tap_skip(reason);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    tap_ok(system(command) == 0, "the folder is removed");
    return tap_done();
}
