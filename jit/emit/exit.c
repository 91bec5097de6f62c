/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exit.c: exit() while code is generated. LLVM has some 3,000 objects whose destructors exit()
 * runs, and a thread that uses one of them afterwards, or still makes them, crashes the process.
 *
 * With LLVM linked statically none of these destructors is registered: the references of the
 * archives bind to the function below. What the destructors would free, the end of the process
 * frees.
 *
 * A shared LLVM may have other users, whose destructors have to run. There each destructor first
 * waits until the code generator is loaded and all requests have ended, for a bounded time in all,
 * and none begins any more. Exit handlers run latest first and LLVM registers some while it
 * compiles, so no handler of our own comes before all destructors: the registrations of LLVM are
 * led through this file, by the entry of its procedure linkage table. This is done in the
 * constructor of this library, which -z initfirst puts before those of LLVM. Where the entry cannot
 * be found, a handler of our own waits, which covers what LLVM registered before it.
 *
 * What remains: a request that does not end within the bound may meet a destroyed object.
 */
#define _GNU_SOURCE
#include "jit/lower/parts.h"

#ifdef QN_STATIC_LLVM

/* Hidden, as all that the provider does not export. */
int __cxa_atexit(void (*function)(void *), void *object, void *library);
int __cxa_atexit(void (*function)(void *), void *object, void *library)
{
    (void)function;
    (void)object;
    (void)library;
    return 0;
}

bool qn__exit_enter(void)
{
    return true;
}

void qn__exit_leave(void)
{
}

void qn__exit_begin(void)
{
}

#else

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST_WAIT_MS = 5000 };

/* Of the C++ ABI; in the C library, without a header. */
typedef int (*register_function)(void (*function)(void *), void *object, void *library);
extern int __cxa_atexit(void (*function)(void *), void *object, void *library);

static atomic_int n_inside;     /* requests in progress, on any thread, and the load */
static atomic_bool is_loading;  /* until the first request */
static atomic_bool is_ending;   /* exit() was called */
static bool is_led;             /* destructors of LLVM wait */
static _Thread_local int
    n_own; /* requests of this thread: one inside which exit() is called does not end */

/* ---------------------------------------------------------------- waiting */

/* Runs inside exit(). */
static void wait_for_requests(void)
{
    if (atomic_exchange(&is_ending, true))
        return;
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < LONGEST_WAIT_MS && atomic_load(&n_inside) > n_own; i++)
        nanosleep(&pause, NULL);
}

bool qn__exit_enter(void)
{
    if (atomic_exchange(&is_loading, false))
        atomic_fetch_sub(&n_inside, 1);
    atomic_fetch_add(&n_inside, 1);
    n_own++;
    if (!atomic_load(&is_ending))
        return true;
    qn__exit_leave();
    return false;
}

void qn__exit_leave(void)
{
    n_own--;
    atomic_fetch_sub(&n_inside, 1);
}

/* After fork, in the child: the requests are those of threads that are not here. */
static void forget_requests(void)
{
    atomic_store(&is_loading, false);
    atomic_store(&n_inside, n_own);
}

/* ---------------------------------------------------------------- destructors of LLVM */

typedef struct destructor {
    void (*function)(void *);
    void *object;
} destructor;

static void destroy(void *arg)
{
    const destructor d = *(destructor *)arg;
    wait_for_requests();
    free(arg);
    d.function(d.object);
}

/* What LLVM calls instead of __cxa_atexit. */
static int register_destructor(void (*function)(void *), void *object, void *library)
{
    destructor *d = malloc(sizeof *d);
    if (!d)
        return __cxa_atexit(function, object, library);
    *d = (destructor){function, object};
    return __cxa_atexit(destroy, d, library);
}

/* An entry of the dynamic section, 0 if there is none. */
static uintptr_t entry_of(const struct link_map *map, ElfW(Sxword) tag)
{
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
        if (d->d_tag == tag)
            return d->d_un.d_ptr;
    return 0;
}

/* Where a library keeps the address of a function that it calls through its linkage table, or NULL.
 */
static void *slot_of(const struct link_map *map, const char *name)
{
    const ElfW(Rela) *r = (const ElfW(Rela) *)entry_of(map, DT_JMPREL);
    const ElfW(Sym) *symbols = (const ElfW(Sym) *)entry_of(map, DT_SYMTAB);
    const char *names = (const char *)entry_of(map, DT_STRTAB);
    size_t n = r && symbols && names ? entry_of(map, DT_PLTRELSZ) / sizeof *r : 0;
    for (size_t i = 0; i < n; i++)
        if (ELF64_R_TYPE(r[i].r_info) == R_X86_64_JUMP_SLOT &&
            strcmp(names + symbols[ELF64_R_SYM(r[i].r_info)].st_name, name) == 0)
            return (void *)(map->l_addr + r[i].r_offset);
    return NULL;
}

/* Whether the slot is in the part of its library that is read-only after relocation. */
typedef struct sought {
    uintptr_t slot, base;
    bool is_read_only;
} sought;

static int look_at_library(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    sought *s = arg;
    (void)bytes;
    if (info->dlpi_addr != s->base)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t low = info->dlpi_addr + part->p_vaddr;
        s->is_read_only |=
            part->p_type == PT_GNU_RELRO && s->slot >= low && s->slot < low + part->p_memsz;
    }
    return 1;
}

/* Leads the registrations of LLVM through this file. */
static void lead_registrations(void)
{
    Dl_info info;
    struct link_map *map = NULL;
    LLVMContextRef (*of_llvm)(void) = LLVMContextCreate;
    register_function ours = register_destructor;
    void *address, *slot;
    memcpy(&address, &of_llvm, sizeof address); /* ISO C has no cast between the two */
    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map ||
        !(slot = slot_of(map, "__cxa_atexit")))
        return;
    sought s = {(uintptr_t)slot, map->l_addr, false};
    dl_iterate_phdr(look_at_library, &s);
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *page = (void *)(s.slot & ~(page_bytes - 1));
    if (s.is_read_only && mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0)
        return;
    memcpy(&address, &ours, sizeof address);
    __atomic_store_n((void **)slot, address, __ATOMIC_RELEASE);
    is_led = true;
    if (s.is_read_only)
        mprotect(page, page_bytes, PROT_READ);
}

/* Runs before the constructors of LLVM, which are relocated already. */
__attribute__((constructor)) static void begin_load(void)
{
    atomic_store(&is_loading, true);
    atomic_store(&n_inside, 1);
    lead_registrations();
    pthread_atfork(NULL, NULL, forget_requests);
}

void qn__exit_begin(void)
{
    static atomic_bool has_begun;
    if (!is_led && !atomic_exchange(&has_begun, true))
        atexit(wait_for_requests);
}

#endif
