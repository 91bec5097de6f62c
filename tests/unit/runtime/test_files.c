/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_files.c: the files that the library opens by itself: the code generator, whatever the
 * working directory is and however short the file is, and dumps beside what others have put there.
 * What changes the process is done in children.
 */
#define _GNU_SOURCE
#include "tests/unit/launch.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROVIDER "libquern-llvm.so"

static char folder[] = "/tmp/quern-files-XXXXXX";

/** What a child does: 0 if all is well. */
typedef int (*deed)(void);

static int in_child(deed run)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(run());
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static bool write_file(const char *name, const void *bytes, size_t n)
{
    FILE *file = fopen(name, "w");
    bool is_written = file && fwrite(bytes, 1, n, file) == n;
    return file && fclose(file) == 0 && is_written;
}

/** A launch of generated code; `launch` is qn_launch of some copy of the library. */
typedef qn_status (*launch_function)(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                                     const qn_options *o, qn_error *err);
static qn_status compile_with(launch_function launch, qn_context *c, const qn_kernel *k,
                              qn_error *err)
{
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {0};
    const int64_t extent = 8;
    qn_layout layout;
    qn_view v[2] = {0};
    qn_layout_right(1, &extent, &layout, NULL);
    qn_view_wrap("x", x, QN_F32, &layout, 0, &v[0], NULL);
    qn_view_wrap("y", y, QN_F32, &layout, 0, &v[1], NULL);
    const qn_arg args[] = {qn_arg_view(&v[0]), qn_arg_view(&v[1])};
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE};
    qn_status status = launch(c, k, 2, args, &o, err);
    if (status == QN_OK && memcmp(x, y, sizeof x) != 0)
        return QN_ERR_INTERNAL;
    return status;
}

/* ---------------------------------------------------------------- the code generator */

/** Cut anywhere, the file of the code generator is refused; touching what is missing is a signal.
 */
static int refuse_truncated(void)
{
    enum { MOST = 60 };
    char path[600];
    snprintf(path, sizeof path, "%s/short.so", folder);
    FILE *file = fopen(QN_BUILD_DIR "/" PROVIDER, "r");
    struct stat info;
    if (!file || fstat(fileno(file), &info) != 0)
        return 1;
    size_t n = (size_t)info.st_size, step = n / MOST;
    char *bytes = malloc(n);
    if (!bytes || fread(bytes, 1, n, file) != n)
        return 2;
    fclose(file);
    qn_kernel *k = kernel_of(COPY_TEXT);
    const size_t other[] = {1, 63, 64, 100, 1000, 4096, n - 1};
    for (size_t i = 0; i < MOST + sizeof other / sizeof other[0]; i++) {
        size_t length = i < MOST ? i * step : other[i - MOST];
        if (!write_file(path, bytes, length))
            return 3;
        qn_context *c = context_with(&(qn_context_options){.bytes = sizeof(qn_context_options),
                                                           .provider_path = path});
        qn_error err = {0};
        if (compile_with(qn_launch, c, k, &err) != QN_ERR_PROVIDER || !strstr(err.message, path))
            return 4;
        if (!strstr(err.message, "file truncated") && !strstr(err.message, "file too short"))
            return 5;
        qn_context_release(c);
    }
    qn_kernel_release(k);
    free(bytes);
    return 0;
}

/** Goes to a folder that has another file of the code generator's name. */
static bool go_astray(void)
{
    return chdir(folder) == 0 && write_file(PROVIDER, "not this one", 12);
}

/** A relative path means the file that it named when the context was made. */
static int keep_relative_path(void)
{
    qn_kernel *k = kernel_of(COPY_TEXT);
    qn_error err = {0};
    if (chdir(QN_BUILD_DIR) != 0)
        return 1;
    qn_context *by_option = context_with(
        &(qn_context_options){.bytes = sizeof(qn_context_options), .provider_path = PROVIDER});
    setenv("QUERN_PROVIDER", "./" PROVIDER, 1);
    qn_context *by_variable = context_with(NULL);
    if (!go_astray())
        return 2;
    if (compile_with(qn_launch, by_option, k, &err) != QN_OK)
        return 3;
    if (compile_with(qn_launch, by_variable, k, &err) != QN_OK)
        return 4;
    qn_context_release(by_option);
    qn_context_release(by_variable);
    qn_kernel_release(k);
    return 0;
}

static void *function_of(void *library, const char *name)
{
    return dlsym(library, name);
}

/** A library that was loaded by a relative path finds the file beside itself. */
static int find_beside_relative(void)
{
    unsetenv("QUERN_PROVIDER");
    if (chdir(QN_BUILD_DIR) != 0)
        return 1;
    void *library = dlopen("./libquern.so", RTLD_NOW | RTLD_LOCAL);
    if (!library || !go_astray())
        return 2;
    qn_status (*new_context)(const qn_context_options *, qn_context **, qn_error *);
    qn_status (*parse)(const char *, size_t, qn_kernel **, qn_error *);
    launch_function launch;
    void *symbol[] = {function_of(library, "qn_context_new"),
                      function_of(library, "qn_kernel_parse"), function_of(library, "qn_launch")};
    memcpy(&new_context, &symbol[0], sizeof symbol[0]);
    memcpy(&parse, &symbol[1], sizeof symbol[0]);
    memcpy(&launch, &symbol[2], sizeof symbol[0]);
    qn_context *c = NULL;
    qn_kernel *k = NULL;
    qn_error err = {0};
    if (new_context(NULL, &c, &err) != QN_OK ||
        parse(COPY_TEXT, strlen(COPY_TEXT), &k, &err) != QN_OK)
        return 3;
    return compile_with(launch, c, k, &err) == QN_OK ? 0 : 4;
}

/* ---------------------------------------------------------------- dumps */

static qn_status dump(void)
{
    const qn_context_options o = {
        .bytes = sizeof o, .dump_dir = folder, .dump = QN_DUMP_KERNEL | QN_DUMP_ASM};
    qn_context *c = context_with(&o);
    qn_kernel *k = kernel_of(COPY_TEXT);
    qn_status status = compile_with(qn_launch, c, k, NULL);
    qn_kernel_release(k);
    qn_context_release(c);
    return status;
}

/** Number of dumps, and how many of them are numbered; with `victim`, each of them is replaced by a
 * link to it. */
static int count_dumps(int *n_numbered, const char *victim)
{
    DIR *dir = opendir(folder);
    int n = 0;
    *n_numbered = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        char path[600];
        if (strncmp(entry->d_name, "copy-", 5) != 0)
            continue;
        n++;
        *n_numbered += strstr(entry->d_name, "-2.") != NULL;
        snprintf(path, sizeof path, "%s/%.300s", folder, entry->d_name);
        if (victim && (unlink(path) != 0 || symlink(victim, path) != 0))
            n = -1000;
    }
    if (dir)
        closedir(dir);
    return n;
}

/** Links that wait under the names of dumps lead nowhere. */
static void test_dump_links(void)
{
    char victim[600], held[16] = {0};
    int n_numbered = 0;
    snprintf(victim, sizeof victim, "%s/victim", folder);
    tap_ok(write_file(victim, "precious", 8), "a file");
    tap_ok(dump() == QN_OK && count_dumps(&n_numbered, victim) == 2 && n_numbered == 0,
           "two dumps, which links to the file replace");
    tap_ok(dump() == QN_OK, "a second compile with dumps");
    FILE *file = fopen(victim, "r");
    tap_ok(file && fread(held, 1, 15, file) == 8 && strcmp(held, "precious") == 0,
           "the file is as it was");
    if (file)
        fclose(file);
    tap_ok(count_dumps(&n_numbered, NULL) == 4 && n_numbered == 2,
           "the new dumps have a number, all of them");
}

static void remove_folder(void)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        char path[600];
        snprintf(path, sizeof path, "%s/%.300s", folder, entry->d_name);
        unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

int main(void)
{
    if (!mkdtemp(folder)) {
        tap_skip("no temporary folder");
        return tap_done();
    }
    tap_is_int(in_child(refuse_truncated), 0, "a truncated code generator is refused");
    /* These two before the code generator is loaded here, as then its plain name would find it. */
    int relative = in_child(keep_relative_path), beside = in_child(find_beside_relative);
    char reason[600];
    if (has_x86(reason, sizeof reason)) {
        tap_is_int(relative, 0, "a relative path does not follow the process");
        tap_is_int(beside, 0, "a library loaded by a relative path finds its code generator");
        test_dump_links();
    } else {
        tap_skip(reason);
    }
    remove_folder();
    return tap_done();
}
