/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_disk.c: the cache on disk as bytes and files: digests, entries of which a bit is changed or
 * an end is missing, folders and files that are not to be trusted, the bound. What contexts do with
 * it is in test_disk_launch.c.
 */
#define _GNU_SOURCE
#include "runtime/disk.h"
#include "quern/cache.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char root[] = "/tmp/test_disk.XXXXXX";
enum { NOBODY = 65534 };

/* ---------------------------------------------------------------- digests */

static void check_digest(const void *p, size_t n, size_t step, const char *expected)
{
    uint8_t bytes[QN_DIGEST_BYTES];
    char text[2 * QN_DIGEST_BYTES + 1];
    qn_digest d;
    qn__digest_begin(&d);
    for (size_t at = 0; at < n; at += step)
        qn__digest_add(&d, (const char *)p + at, n - at < step ? n - at : step);
    qn__digest_end(&d, bytes);
    for (int i = 0; i < QN_DIGEST_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    if (!tap_ok(strcmp(text, expected) == 0, "BLAKE2b-256 of %zu bytes, %zu at a time", n, step))
        tap_note("found %s", text);
}

/* The values are those of `b2sum -l 256`. */
static void test_digest(void)
{
    static const char zeros[8000];
    static const size_t step[] = {1, 127, 128, 129, 8000};
    check_digest("", 0, 1, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
    check_digest("abc", 3, 3, "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
    for (size_t i = 0; i < sizeof step / sizeof step[0]; i++)
        check_digest(zeros, sizeof zeros, step[i],
                     "1ebbcf4da1d80039b125bea96a2e0622c4952372c09aca96b3d2d74d52908335");
}

/* ---------------------------------------------------------------- entries */

static qn_stored_part text_part(const char *text)
{
    return (qn_stored_part){text, strlen(text)};
}

static qn_stored example(const char *key, const char *code)
{
    qn_stored e = {.kind = QN_ENTRY_X86};
    e.part[QN_STORED_ENVIRONMENT] = text_part("build 1, processor 2");
    e.part[QN_STORED_KERNEL] = text_part("kernel {}");
    e.part[QN_STORED_KEY] = text_part(key);
    e.part[QN_STORED_NAME] = text_part("name");
    e.part[QN_STORED_INFO] = text_part("info");
    e.part[QN_STORED_CODE] = text_part(code);
    return e;
}

static void test_round_trip(void)
{
    const qn_stored e = example("a key", "code");
    qn_stored back;
    qn_text bytes = {0};
    qn__entry_write(&e, &bytes);
    const char *reason = qn__entry_read(bytes.data, bytes.n, &back);
    tap_ok(!reason, "what was written is read %s", reason ? reason : "");
    bool is_same = !reason && back.kind == e.kind;
    for (int i = 0; i < QN_N_STORED && is_same; i++)
        is_same = back.part[i].n == e.part[i].n &&
                  (e.part[i].n == 0 || memcmp(back.part[i].data, e.part[i].data, e.part[i].n) == 0);
    tap_ok(is_same, "... all parts of it");
    qn_stored other = e;
    tap_ok(qn__entry_is_same(&e, &other), "an entry has its identity");
    other.kind = QN_ENTRY_PTX;
    tap_ok(!qn__entry_is_same(&e, &other) &&
               strcmp(qn__entry_name(&e).text, qn__entry_name(&other).text) != 0,
           "another kind is another entry");
    for (int i = 0; i < QN_N_STORED; i++) {
        other = e;
        other.part[i] = text_part("something else");
        bool is_identity = i < QN_N_IDENTITY;
        tap_ok(qn__entry_is_same(&e, &other) == !is_identity &&
                   (strcmp(qn__entry_name(&e).text, qn__entry_name(&other).text) == 0) ==
                       !is_identity,
               "part %d is %s the identity", i, is_identity ? "of" : "not of");
    }
    other = e; /* the same bytes, cut elsewhere */
    other.part[QN_STORED_KERNEL] = text_part("kernel {}a");
    other.part[QN_STORED_KEY] = text_part(" key");
    tap_ok(strcmp(qn__entry_name(&e).text, qn__entry_name(&other).text) != 0,
           "the name counts where parts end");
    qn__text_release(&bytes);
}

static void test_damage(void)
{
    const qn_stored e = example("a key", "some bytes of code, which nobody runs");
    qn_stored back;
    qn_text bytes = {0};
    int64_t n_taken = 0;
    qn__entry_write(&e, &bytes);
    for (size_t i = 0; i < 8 * bytes.n; i++) {
        bytes.data[i / 8] = (char)(bytes.data[i / 8] ^ 1 << i % 8);
        n_taken += !qn__entry_read(bytes.data, bytes.n, &back);
        bytes.data[i / 8] = (char)(bytes.data[i / 8] ^ 1 << i % 8);
    }
    tap_is_int(n_taken, 0, "no entry with a changed bit is taken");
    for (size_t n = 0; n < bytes.n; n++) {
        char *cut = malloc(n + 1); /* of this length, for sanitizers */
        memcpy(cut, bytes.data, n);
        n_taken += !qn__entry_read(cut, n, &back);
        free(cut);
    }
    tap_is_int(n_taken, 0, "nor one whose end is missing");
    qn__text_bytes(&bytes, "", 1);
    tap_ok(qn__entry_read(bytes.data, bytes.n, &back) != NULL, "nor one with something behind it");
    qn__text_release(&bytes);
}

/** Damage with a digest that fits to it: lengths are looked at all the same. */
static void test_lengths(void)
{
    enum { AT_PARTS = 24, AT_DIGEST = AT_PARTS + 8 * QN_N_STORED, N_TRIALS = 20000 };
    const qn_stored e = example("a key", "code");
    qn_text bytes = {0};
    uint64_t random = 88172645463325252u;
    int64_t n_outside = 0, n_taken = 0;
    qn__entry_write(&e, &bytes);
    for (int trial = 0; trial < N_TRIALS; trial++) {
        char *copy = malloc(bytes.n);
        qn_stored back;
        qn_digest d;
        memcpy(copy, bytes.data, bytes.n);
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uint64_t length = trial % 2 ? random : random % (2 * bytes.n);
        memcpy(copy + AT_PARTS + 8 * (random >> 32) % QN_N_STORED, &length, sizeof length);
        qn__digest_begin(&d);
        qn__digest_add(&d, copy, AT_DIGEST);
        qn__digest_add(&d, copy + QN_ENTRY_HEAD_BYTES, bytes.n - QN_ENTRY_HEAD_BYTES);
        qn__digest_end(&d, (uint8_t *)copy + AT_DIGEST);
        if (!qn__entry_read(copy, bytes.n, &back)) {
            n_taken++;
            for (int i = 0; i < QN_N_STORED; i++)
                n_outside +=
                    back.part[i].n > bytes.n - (size_t)((const char *)back.part[i].data - copy);
        }
        free(copy);
    }
    tap_is_int(n_outside, 0, "no part is outside its entry");
    tap_note("%" PRId64 " of %d had lengths that fit", n_taken, N_TRIALS);
    qn__text_release(&bytes);
}

/* ---------------------------------------------------------------- files */

/** A store in a new folder below the scratch folder. */
static qn_disk new_disk(const char *name, int64_t most_bytes)
{
    qn_disk d = {.most_bytes = most_bytes};
    if (asprintf(&d.folder, "%s/%s/deeper", root, name) < 0)
        abort();
    return d;
}

static bool keep(qn_disk *d, const qn_stored *e)
{
    qn_text bytes = {0};
    qn_error why = {0};
    const qn_entry_name name = qn__entry_name(e);
    qn__entry_write(e, &bytes);
    bool is_kept = qn__disk_keep(d, &name, &bytes, &why);
    qn__text_release(&bytes);
    if (!is_kept)
        tap_note("not kept: %s", why.message);
    return is_kept;
}

/** What looking for an entry gives; its code must be the right one. */
static int find(const qn_disk *d, const qn_stored *e, qn_error *why)
{
    qn_text bytes = {0};
    qn_stored found;
    qn_error ignored;
    *(why ? why : &ignored) = (qn_error){0};
    int result = qn__disk_find(d, e, &bytes, &found, why ? why : &ignored);
    if (result == QN_DISK_FOUND) {
        const qn_stored_part *a = &found.part[QN_STORED_CODE], *b = &e->part[QN_STORED_CODE];
        tap_ok(a->n == b->n && memcmp(a->data, b->data, a->n) == 0, "the code is what was kept");
    }
    qn__text_release(&bytes);
    return result;
}

/** The path of the file of an entry, or of the folder it is in. */
static const char *path_of(const qn_disk *d, const qn_stored *e, bool is_folder)
{
    static char path[512];
    const qn_entry_name name = qn__entry_name(e);
    snprintf(path, sizeof path, is_folder ? "%s/%.2s" : "%s/%.2s/%s", d->folder, name.text,
             name.text);
    return path;
}

static int mode_of(const char *path)
{
    struct stat st = {0};
    return stat(path, &st) == 0 ? (int)(st.st_mode & 0777) : -1;
}

static void test_files(void)
{
    qn_disk d = new_disk("files", 1 << 20);
    const qn_stored e = example("a key", "code"), other = example("another key", "code");
    tap_is_int(find(&d, &e, NULL), QN_DISK_ABSENT, "no folder, no entry");
    tap_ok(keep(&d, &e), "the folder and its parents are made");
    tap_is_int(find(&d, &e, NULL), QN_DISK_FOUND, "what was kept is found");
    tap_is_int(find(&d, &other, NULL), QN_DISK_ABSENT, "another is not");
    tap_ok(keep(&d, &e), "it is kept again");
    tap_is_int(find(&d, &e, NULL), QN_DISK_FOUND, "... and found");
    tap_is_int(mode_of(d.folder), 0700, "the folder is the user's alone");
    tap_is_int(mode_of(path_of(&d, &e, true)), 0700, "... and the folder in it");
    tap_is_int(mode_of(path_of(&d, &e, false)), 0600, "... and the file");
    char to[512];
    keep(&d, &other);
    snprintf(to, sizeof to, "%s", path_of(&d, &e, false));
    rename(path_of(&d, &other, false), to);
    qn_error why;
    tap_is_int(find(&d, &e, &why), QN_DISK_REFUSED, "an entry under another's name is refused");
    tap_contains(why.message, "another kernel", "... and why is said");
    free(d.folder);
}

/** Makes the entry what is not to be trusted, by one way, and back. */
static void test_trust(void)
{
    qn_disk d = new_disk("trust", 1 << 20);
    const qn_stored e = example("a key", "code");
    qn_error why;
    char path[512], part[512], aside[512];
    keep(&d, &e);
    snprintf(path, sizeof path, "%s", path_of(&d, &e, false));
    snprintf(part, sizeof part, "%s", path_of(&d, &e, true));
    snprintf(aside, sizeof aside, "%s/aside", root);
    for (int mode = 1; mode < 0100; mode++)
        if (mode & 022) {
            chmod(path, (mode_t)(0600 | mode));
            if (find(&d, &e, &why) != QN_DISK_REFUSED || !strstr(why.message, "others may write"))
                tap_ok(false, "a file of mode %o is refused: %s", 0600 | mode, why.message);
        }
    chmod(path, 0644);
    tap_is_int(find(&d, &e, NULL), QN_DISK_FOUND, "others may read a file");
    chmod(part, 0777);
    tap_is_int(find(&d, &e, &why), QN_DISK_UNUSABLE,
               "a folder in it that all may write is not used");
    chmod(part, 0700);
    chmod(d.folder, 0770);
    tap_is_int(find(&d, &e, &why), QN_DISK_UNUSABLE, "nor a folder that a group may write");
    tap_contains(why.message, "others may write", "... and why is said");
    tap_ok(!keep(&d, &e), "... and nothing is written to it");
    chmod(d.folder, 0700);
    rename(path, aside);
    if (symlink(aside, path) != 0)
        tap_ok(false, "a link");
    tap_is_int(find(&d, &e, NULL), QN_DISK_REFUSED, "no link is followed");
    unlink(path);
    mkfifo(path, 0600);
    tap_is_int(find(&d, &e, NULL), QN_DISK_REFUSED, "a pipe is refused, and not waited for");
    unlink(path);
    mkdir(path, 0700);
    tap_is_int(find(&d, &e, NULL), QN_DISK_REFUSED, "so is a folder");
    rmdir(path);
    rename(aside, path);
    tap_is_int(find(&d, &e, NULL), QN_DISK_FOUND, "the file itself is found again");
    free(d.folder);
}

static void test_owners(void)
{
    qn_disk d = new_disk("owners", 1 << 20);
    const qn_stored e = example("a key", "code");
    qn_error why;
    keep(&d, &e);
    qn_disk bundle = {.folder = d.folder, .is_bundle = true};
    tap_is_int(find(&bundle, &e, NULL), QN_DISK_FOUND, "a bundle has the form of the cache");
    if (geteuid() != 0 || chown(path_of(&d, &e, false), NOBODY, (gid_t)-1) != 0) {
        tap_skip("only root gives files away");
        free(d.folder);
        return;
    }
    tap_is_int(find(&d, &e, &why), QN_DISK_REFUSED, "the file of another user is refused");
    tap_contains(why.message, "another user", "... and why is said");
    tap_is_int(find(&bundle, &e, NULL), QN_DISK_FOUND, "... but in a bundle anybody may own it");
    chmod(path_of(&d, &e, false), 0606);
    tap_is_int(find(&bundle, &e, NULL), QN_DISK_REFUSED, "... but not write it");
    chown(path_of(&d, &e, false), 0, (gid_t)-1);
    chmod(path_of(&d, &e, false), 0600);
    chown(d.folder, NOBODY, (gid_t)-1);
    tap_is_int(find(&d, &e, NULL), QN_DISK_UNUSABLE, "a folder of another user is not used");
    free(d.folder);
}

/** Cuts the file of an entry, and changes it, in place. */
static void test_damaged_files(void)
{
    qn_disk d = new_disk("damage", 1 << 20);
    const qn_stored e = example("a key", "code");
    int n_found = 0;
    struct stat st = {0};
    keep(&d, &e);
    stat(path_of(&d, &e, false), &st);
    for (off_t n = st.st_size - 1; n >= 0; n--)
        n_found += truncate(path_of(&d, &e, false), n) != 0 || find(&d, &e, NULL) == QN_DISK_FOUND;
    tap_is_int(n_found, 0, "a file that was cut is not found, wherever");
    tap_ok(keep(&d, &e) && find(&d, &e, NULL) == QN_DISK_FOUND,
           "writing puts a whole one in its place");
    int fd = open(path_of(&d, &e, false), O_WRONLY);
    if (pwrite(fd, "!", 1, st.st_size - 1) != 1 || find(&d, &e, NULL) != QN_DISK_REFUSED)
        n_found++;
    if (ftruncate(fd, (off_t)QN_ENTRY_MOST_BYTES + 1) == 0)
        n_found += find(&d, &e, NULL) != QN_DISK_REFUSED;
    close(fd);
    tap_is_int(n_found, 0, "a changed one is refused, and one of 256 MiB without reading it");
    free(d.folder);
}

/* ---------------------------------------------------------------- the bound */

static void set_time(const char *path, int64_t seconds)
{
    const struct timespec t[2] = {{.tv_sec = (time_t)seconds}, {.tv_sec = (time_t)seconds}};
    if (utimensat(AT_FDCWD, path, t, 0) != 0)
        tap_ok(false, "the time of %s", path);
}

static int64_t time_of(const char *path)
{
    struct stat st = {0};
    return stat(path, &st) == 0 ? (int64_t)st.st_mtim.tv_sec : -1;
}

typedef struct sums {
    int64_t n, bytes, refused;
} sums;

static void add(void *arg, const qn_cache_entry *e)
{
    sums *s = arg;
    s->n++;
    s->bytes += e->file_bytes;
    s->refused += e->refused != NULL;
}

static sums sum(const qn_disk *d)
{
    sums s = {0};
    qn_error err = {0};
    if (qn_cache_visit(d->folder, add, &s, &err) != QN_OK)
        tap_ok(false, "a visit: %s", err.message);
    return s;
}

static void test_bound(void)
{
    enum { N = 40, ROOM = 16 };
    static char code[1000], key[N][16];
    memset(code, 'x', sizeof code - 1);
    qn_stored e[N];
    for (int i = 0; i < N; i++) {
        snprintf(key[i], sizeof key[i], "key %d", i);
        e[i] = example(key[i], code);
    }
    qn_disk d = new_disk("bound", 0);
    qn_text one = {0};
    qn__entry_write(&e[10], &one);
    d.most_bytes = ROOM * (int64_t)one.n;
    int64_t now = (int64_t)time(NULL), most = 0;
    for (int i = 0; i < N; i++) {
        keep(&d, &e[i]);
        set_time(path_of(&d, &e[i], false), now - 10000 + 100 * i);
        if (i >= 2 &&
            time_of(path_of(&d, &e[2], false)) >= 0) /* the third is in use all the time */
            find(&d, &e[2], NULL);
        most = sum(&d).bytes > most ? sum(&d).bytes : most;
    }
    tap_ok(most <= d.most_bytes, "never more than %" PRId64 " bytes: %" PRId64, d.most_bytes, most);
    tap_ok(sum(&d).n >= ROOM / 2, "but not much less: %" PRId64 " entries", sum(&d).n);
    tap_is_int(find(&d, &e[2], NULL), QN_DISK_FOUND, "what is used stays");
    tap_is_int(find(&d, &e[3], NULL), QN_DISK_ABSENT, "what was used longest ago goes");
    tap_is_int(find(&d, &e[N - 1], NULL), QN_DISK_FOUND, "what came last is there");
    d.most_bytes = (int64_t)one.n - 1;
    tap_ok(!keep(&d, &e[10]), "an entry that is more than the bound is not kept");
    qn__text_release(&one);
    free(d.folder);
}

static void test_times(void)
{
    qn_disk d = new_disk("times", 1 << 20);
    const qn_stored e = example("a key", "code");
    char left[600], fresh[600], foreign[600];
    int64_t now = (int64_t)time(NULL);
    keep(&d, &e);
    set_time(path_of(&d, &e, false), now - 30);
    find(&d, &e, NULL);
    tap_is_int(time_of(path_of(&d, &e, false)), now - 30, "a use within a minute is not noted");
    set_time(path_of(&d, &e, false), now - 3000);
    sum(&d);
    tap_is_int(time_of(path_of(&d, &e, false)), now - 3000, "nor a look at all entries");
    find(&d, &e, NULL);
    tap_ok(time_of(path_of(&d, &e, false)) >= now, "a later one is");
    qn_disk bundle = {.folder = d.folder, .is_bundle = true};
    set_time(path_of(&d, &e, false), now - 3000);
    find(&bundle, &e, NULL);
    tap_is_int(time_of(path_of(&d, &e, false)), now - 3000, "a bundle is not written");
    snprintf(left, sizeof left, "%s/.0123456789abcdef", path_of(&d, &e, true));
    snprintf(fresh, sizeof fresh, "%s/.4567456745674567", path_of(&d, &e, true));
    snprintf(foreign, sizeof foreign, "%s/.htaccess", path_of(&d, &e, true));
    close(open(left, O_CREAT | O_WRONLY, 0600));
    close(open(fresh, O_CREAT | O_WRONLY, 0600));
    close(open(foreign, O_CREAT | O_WRONLY, 0600));
    set_time(left, now - 7200);
    set_time(foreign, now - 7200);
    d.unweighed = d.most_bytes;
    keep(&d, &e);
    tap_ok(access(left, F_OK) != 0 && access(fresh, F_OK) == 0,
           "what an interrupted write left goes after an hour");
    tap_ok(access(foreign, F_OK) == 0, "a file that is none of ours stays");
    unlink(foreign);
    free(d.folder);
}

/* ---------------------------------------------------------------- public functions */

static void test_public(void)
{
    qn_disk d = new_disk("public", 1 << 20);
    const qn_stored e = example("a key", "code"), other = example("another", "code");
    qn_error err = {0};
    char bundle[512], folder[64];
    int64_t n = -1;
    snprintf(bundle, sizeof bundle, "%s/shipped/bundle", root);
    tap_is_int(sum(&d).n, 0, "a folder that is not there is empty");
    tap_ok(qn_cache_clear(d.folder, &n, &err) == QN_OK && n == 0, "... and cleared");
    keep(&d, &e);
    keep(&d, &other);
    truncate(path_of(&d, &other, false), 50);
    sums s = sum(&d);
    tap_ok(s.n == 2 && s.refused == 1, "one entry is whole, one refused");
    tap_ok(qn_cache_export(d.folder, bundle, &n, &err) == QN_OK && n == 0,
           "entries of another build are not exported");
    qn_stored mine = e;
    static char environment[200];
    snprintf(environment, sizeof environment, "%s, processor", QN_BUILD_ID);
    mine.part[QN_STORED_ENVIRONMENT] = text_part(environment);
    keep(&d, &mine);
    tap_ok(qn_cache_export(d.folder, bundle, &n, &err) == QN_OK && n == 1,
           "those of this one are %s", err.message);
    tap_ok(qn_cache_clear(d.folder, &n, &err) == QN_OK && n == 3 && sum(&d).n == 0,
           "clearing removes all, whole or not");
    tap_ok(qn_cache_import(d.folder, bundle, &n, &err) == QN_OK && n == 1,
           "import takes them back");
    tap_is_int(find(&d, &mine, NULL), QN_DISK_FOUND, "... and they are found");
    chmod(d.folder, 0777);
    tap_ok(qn_cache_visit(d.folder, add, &s, &err) == QN_ERR_NOT_AVAILABLE &&
               qn_cache_clear(d.folder, NULL, NULL) == QN_ERR_NOT_AVAILABLE,
           "a folder that all may write is not looked at, nor cleared");
    tap_contains(err.message, "qn_cache_visit: folder", "... and the message says where");
    tap_ok(qn_cache_visit(NULL, add, &s, NULL) == QN_ERR_ARGUMENT &&
               qn_cache_clear("off", NULL, NULL) == QN_ERR_ARGUMENT &&
               qn_cache_export(d.folder, NULL, NULL, NULL) == QN_ERR_ARGUMENT &&
               qn_cache_import(NULL, bundle, NULL, NULL) == QN_ERR_ARGUMENT &&
               qn_cache_visit(d.folder, NULL, NULL, NULL) == QN_ERR_ARGUMENT,
           "no folder, no bundle, no function");
    setenv("QUERN_CACHE", "/some/where", 1);
    tap_ok(qn_cache_folder(NULL, 0) == 11 && qn_cache_folder(folder, sizeof folder) == 11 &&
               strcmp(folder, "/some/where") == 0,
           "QUERN_CACHE names the folder");
    unsetenv("QUERN_CACHE");
    setenv("XDG_CACHE_HOME", "/x", 1);
    qn_cache_folder(folder, sizeof folder);
    tap_is_str(folder, "/x/quern", "else XDG_CACHE_HOME");
    setenv("XDG_CACHE_HOME", "relative", 1);
    setenv("HOME", "/h", 1);
    qn_cache_folder(folder, sizeof folder);
    tap_is_str(folder, "/h/.cache/quern", "... unless it is relative; else HOME");
    char home[512];
    snprintf(home, sizeof home, "%s/home", root);
    bool is_made = mkdir(home, 0755) == 0;
    setenv("HOME", home, 1);
    tap_ok(is_made && qn_cache_folder(folder, sizeof folder) > 0, "a HOME of this user counts");
    setenv("XDG_CACHE_HOME", home, 1);
    if (geteuid() != 0) { /* who cannot give a folder away takes one of root */
        setenv("HOME", "/", 1);
        setenv("XDG_CACHE_HOME", "/", 1);
    }
    bool is_other = geteuid() != 0 || chown(home, NOBODY, (gid_t)-1) == 0;
    tap_ok(is_other && qn_cache_folder(folder, sizeof folder) == 0,
           "... HOME and XDG_CACHE_HOME of another one do not");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    tap_is_int((int64_t)qn_cache_folder(folder, sizeof folder), 0, "else there is none");
    setenv("QUERN_CACHE", "off", 1);
    free(d.folder);
}

int main(void)
{
    umask(022);
    if (!mkdtemp(root)) {
        tap_skip("no scratch folder");
        return tap_done();
    }
    test_digest();
    test_round_trip();
    test_damage();
    test_lengths();
    test_files();
    test_trust();
    test_owners();
    test_damaged_files();
    test_bound();
    test_times();
    test_public();
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command) == 0 ? tap_done() : 1;
}
