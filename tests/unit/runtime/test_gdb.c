/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gdb.c: GDB stops at a line of a kernel's text. The test starts itself under GDB, as
 * `test_gdb run FOLDER [none]`; without GDB, or where it may not trace, only the texts in FOLDER
 * are tested.
 */
#define _GNU_SOURCE
#include "ir/ir.h"
#include "tests/unit/launch.h"

#include <dirent.h>
#include <unistd.h>

enum { N = 100 };

static char folder[100] = "/tmp/quern_gdb_XXXXXX";

/** Launches saxpy with code that GDB is told of, or not; whether the result is right. */
static bool run(const char *dump_dir, uint32_t symbols)
{
    const qn_context_options o = {.bytes = sizeof o, .symbols = symbols, .dump_dir = dump_dir};
    const qn_options x86 = {.bytes = sizeof x86, .engine = QN_ENGINE_NATIVE};
    qn_context *c = context_with(&o);
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, N), y = vector_of(c, "y", QN_F32, N);
    float *in = x.data, *out = y.data, two = 2;
    uint32_t bits;
    memcpy(&bits, &two, sizeof bits);
    for (int i = 0; i < N; i++) {
        in[i] = (float)i;
        out[i] = 1;
    }
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), {.dtype = QN_F32, .bits = bits}};
    bool is_fine = qn_launch(c, k, 3, args, &x86, NULL) == QN_OK;
    for (int i = 0; i < N; i++)
        is_fine = is_fine && out[i] == 2 * (float)i + 1;
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    qn_context_release(c);
    return is_fine;
}

/** Number of files in the folder; the name of one goes to `name`. */
static int list_files(char name[300])
{
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.') {
            snprintf(name, 300, "%s", e->d_name);
            n++;
        }
    if (d)
        closedir(d);
    return n;
}

/** Line of the text that has `what`, from 1, or 0; the file is like the printed kernel. */
static int find_line(const char *name, const char *what)
{
    char path[500], text[2000], printed[2000], line[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    qn_kernel_print(k, printed, sizeof printed);
    qn_kernel_release(k);
    tap_ok(strcmp(text, printed) == 0, "the file is the printed kernel");
    if (f)
        rewind(f);
    int number = 0, found = 0;
    while (f && fgets(line, sizeof line, f)) {
        number++;
        found = strstr(line, what) ? number : found;
    }
    if (f)
        fclose(f);
    return found;
}

/** What GDB says when it runs this test with a breakpoint. */
static void debug(const char *place, const char *mode, char *out, size_t out_bytes)
{
    char command[1500];
    snprintf(command, sizeof command,
             "ASAN_OPTIONS=detect_leaks=0 timeout 100 gdb -batch -nx -ex 'set breakpoint pending "
             "on' -ex 'set debuginfod enabled off' "
             "-ex 'break %s' -ex run -ex backtrace -ex stepi -ex delete -ex continue "
             "--args /proc/%d/exe run "
             "%s %s 2>&1",
             place, (int)getpid(), folder, mode);
    FILE *f = popen(command, "r");
    size_t n = f ? fread(out, 1, out_bytes - 1, f) : 0;
    out[n] = 0;
    if (f)
        pclose(f);
}

static bool has_gdb(void)
{
    char text[2000];
    FILE *f = popen("timeout 60 gdb -batch -nx -ex run /bin/true 2>&1", "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = 0;
    if (f)
        pclose(f);
    return strstr(text, "exited normally") != NULL;
}

static void test_breakpoint(const char *name, int line)
{
    char place[400], wanted[400], text[8000];
    snprintf(place, sizeof place, "%s:%d", name, line);
    debug(place, "gdb", text, sizeof text);
    snprintf(wanted, sizeof wanted, "saxpy () at %s:%d\n", name, line);
    tap_contains(text, wanted, "a breakpoint at a line of the text is hit");
    snprintf(wanted, sizeof wanted, "\n%d\t  %%", line);
    tap_contains(text, wanted, "GDB shows the line");
    tap_contains(text, "#1  ", "and who called it");
    tap_contains(text, "exited normally", "the program goes on and ends well");
    debug("saxpy", "gdb", text, sizeof text);
    tap_contains(text, "saxpy () at ", "a breakpoint at the name of the kernel is hit");
    debug("saxpy", "none", text, sizeof text);
    tap_ok(!strstr(text, "saxpy () at ") && strstr(text, "exited normally"),
           "by default GDB is not told");
}

static void test_lines(void)
{
    uint32_t line[40] = {0};
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    tap_ok(k->n_insts < 40 && qn__print_lines(k, line), "lines of saxpy");
    bool rises = true;
    for (uint32_t i = 1; i < k->n_insts; i++)
        rises = rises && line[i] == line[1] + i - 1;
    tap_ok(rises && line[1] == 5,
           "each instruction has the next line, after the head and three parameters");
    qn_kernel_release(k);
}

int main(int argc, char **argv)
{
    char reason[600], name[300] = {0}, path[500];
    if (argc == 4 && strcmp(argv[1], "run") == 0)
        return run(argv[2], strcmp(argv[3], "gdb") == 0 ? QN_SYMBOLS_GDB : 0) ? 0 : 1;
    test_lines();
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    tap_ok(mkdtemp(folder) != NULL, "a folder");
    tap_ok(run(folder, 0) && list_files(name) == 0, "by default there are no texts");
    tap_ok(run(folder, QN_SYMBOLS_GDB), "code with lines gives what it should");
    tap_ok(list_files(name) == 1 && strncmp(name, "saxpy-", 6) == 0, "there is a text: %s", name);
    tap_ok(run(folder, QN_SYMBOLS_GDB) && list_files(name) == 1,
           "which serves another context, too");
    int line = find_line(name, "= fma ");
    tap_ok(line > 5, "the fma has line %d", line);
    if (has_gdb())
        test_breakpoint(name, line);
    else
        tap_skip("gdb is not there, or may not trace");
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "a");
    tap_ok(f && fputs("# other text\n", f) >= 0 && fclose(f) == 0, "the file is changed");
    tap_ok(run(folder, QN_SYMBOLS_GDB) && list_files(name) == 2,
           "a file with another text is left alone");
    snprintf(path, sizeof path, "rm -r %s", folder);
    tap_ok(system(path) == 0, "the folder is removed");
    return tap_done();
}
