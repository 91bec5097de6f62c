/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_symbols.c: the files that tell perf of code: names, addresses and bytes are those of the
 * code that runs.
 */
#define _GNU_SOURCE
#include "runtime/cache.h"
#include "tests/unit/launch.h"

#include <elf.h>
#include <unistd.h>

static char folder[100] = "/tmp/quern_symbols_XXXXXX";
static char map_path[100], dump_path[200];

static qn_context *telling(uint32_t symbols)
{
    const qn_context_options o = {
        .bytes = sizeof o, .disk_cache = "off", .symbols = symbols, .dump_dir = folder};
    return context_with(&o);
}

/** Code for a kernel of one f32 vector of n elements, or of two. */
static qn_code *code_of(qn_context *c, const char *text, int64_t n)
{
    qn_kernel *k = kernel_of(text);
    qn_view x = vector_of(c, "x", QN_F32, n), y = vector_of(c, "y", QN_F32, n);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE};
    qn_code *f = NULL;
    qn_error err = {0};
    tap_ok(qn_specialize(c, k, 2, args, &o, &f, &err) == QN_OK, "code is made: %s", err.message);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    return f;
}

static size_t read_file(const char *path, char *out, size_t bytes)
{
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(out, 1, bytes - 1, f) : 0;
    if (f)
        fclose(f);
    out[n] = 0;
    return n;
}

static uintptr_t address_of(const qn_code *f)
{
    uintptr_t address;
    memcpy(&address, &f->entry, sizeof address);
    return address;
}

static void test_map(void)
{
    char text[4000], wanted[100];
    qn_context *c = telling(QN_SYMBOLS_PERF_MAP);
    qn_code *f = code_of(c, COPY_TEXT, 10), *g = code_of(c, SHIFT_TEXT, 10);
    read_file(map_path, text, sizeof text);
    unsigned long long address = 0, bytes = 0;
    char name[100] = {0};
    tap_ok(sscanf(text, "%llx %llx %99s", &address, &bytes, name) == 3, "the map has a line: %.60s",
           strtok(text, "\n"));
    tap_ok(address == address_of(f) && bytes > 0 &&
               address + bytes <= (uintptr_t)f->blob.code + f->blob.bytes,
           "with the place of the code");
    tap_ok(strncmp(name, "quern:copy@", 11) == 0, "and the name of its kernel");
    read_file(map_path, text, sizeof text);
    snprintf(wanted, sizeof wanted, "%llx ", (unsigned long long)address_of(g));
    tap_contains(text, wanted, "other code has another line");
    tap_contains(text, " quern:shift@", "and name");
    qn_code_release(f);
    qn_code_release(g);
    qn_context_release(c);
    unlink(map_path);
}

/** Reads a number of `bytes` bytes. */
static uint64_t number(const char *at, size_t bytes)
{
    uint64_t n = 0;
    memcpy(&n, at, bytes);
    return n;
}

static void test_dump(void)
{
    char text[40000];
    qn_context *c = telling(QN_SYMBOLS_JITDUMP), *d = telling(QN_SYMBOLS_JITDUMP);
    qn_code *f[2] = {code_of(c, COPY_TEXT, 10), code_of(d, SHIFT_TEXT, 10)};
    static const char *const name[] = {"quern:copy@", "quern:shift@"};
    size_t n = read_file(dump_path, text, sizeof text), at = 40;
    tap_ok(n > 40 && number(text, 4) == 0x4A695444 && number(text + 4, 4) == 1 &&
               number(text + 8, 4) == 40 && number(text + 12, 4) == EM_X86_64 &&
               number(text + 20, 4) == (uint64_t)getpid(),
           "the jitdump has one head");
    for (int i = 0; i < 2; i++) {
        uint64_t total = number(text + at + 4, 4), bytes = number(text + at + 40, 8);
        const char *label = text + at + 56;
        bool is_fine = at + 56 < n && number(text + at, 4) == 0 && at + total <= n;
        tap_ok(is_fine && number(text + at + 32, 8) == address_of(f[i]) &&
                   number(text + at + 48, 8) == (uint64_t)i,
               "record %d has address and number of its code", i);
        tap_ok(is_fine && strncmp(label, name[i], strlen(name[i])) == 0, "... its name");
        const void *code = (const void *)address_of(f[i]);
        tap_ok(is_fine && total == 56 + strlen(label) + 1 + bytes &&
                   memcmp(label + strlen(label) + 1, code, bytes) == 0,
               "... and its %d bytes", (int)bytes);
        at += total;
        qn_code_release(f[i]);
    }
    tap_ok(at == n, "that is all");
    qn_context_release(c);
    qn_context_release(d);
    c = telling(QN_SYMBOLS_JITDUMP);
    tap_is_int((int64_t)read_file(dump_path, text, sizeof text), 40, "a later context begins anew");
    qn_context_release(c);
    unlink(dump_path);
}

static void test_none(void)
{
    qn_context *c = telling(0);
    qn_code_release(code_of(c, COPY_TEXT, 10));
    qn_context_release(c);
    tap_ok(access(map_path, F_OK) != 0 && access(dump_path, F_OK) != 0,
           "by default there are no files");
    const qn_context_options o = {.bytes = sizeof o,
                                  .disk_cache = "off",
                                  .symbols = QN_SYMBOLS_JITDUMP,
                                  .dump_dir = "/nonexistent"};
    c = context_with(&o);
    tap_ok(history_has(c, "symbols: the jitdump in dump_dir: No such file or directory"),
           "a folder that is not there is in the history");
    qn_code_release(code_of(c, COPY_TEXT, 10));
    qn_context_release(c);
}

int main(void)
{
    char reason[600];
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    tap_ok(mkdtemp(folder) != NULL, "a folder");
    snprintf(map_path, sizeof map_path, "/tmp/perf-%d.map", (int)getpid());
    snprintf(dump_path, sizeof dump_path, "%s/jit-%d.dump", folder, (int)getpid());
    test_none();
    test_map();
    test_dump();
    tap_ok(rmdir(folder) == 0, "the folder is empty");
    return tap_done();
}
