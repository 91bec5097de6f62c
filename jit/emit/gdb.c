/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gdb.c: GDB's JIT interface. Its names and structures are fixed by GDB ("JIT Compilation
 * Interface" in its manual): GDB looks for them in the symbol table of every library and stops at
 * the function.
 */
#include "jit/emit/gdb.h"

#include <elf.h>
#include <string.h>

enum { NO_ACTION = 0, REGISTER = 1, UNREGISTER = 2 };

typedef struct code_entry {
    struct code_entry *next, *previous;
    const char *object;
    uint64_t object_bytes;
} code_entry;

typedef struct descriptor {
    uint32_t version, action;
    code_entry *relevant, *first;
} descriptor;

__attribute__((used)) static descriptor __jit_debug_descriptor = {1, NO_ACTION, NULL, NULL};

__attribute__((used, noinline)) static void __jit_debug_register_code(void)
{
    __asm__ volatile("" ::: "memory");
}

static void tell_gdb(code_entry *entry, uint32_t action)
{
    __jit_debug_descriptor.relevant = entry;
    __jit_debug_descriptor.action = action;
    __jit_debug_register_code();
    __jit_debug_descriptor.action = NO_ACTION;
}

/* Writes the address of the section that holds `symbol` into its header. The object was checked by
 * qn__elf_to_blob. */
static void set_address(char *object, const Elf64_Shdr *section, int n_sections, const char *symbol,
                        uint64_t address)
{
    Elf64_Ehdr head;
    memcpy(&head, object, sizeof head);
    for (int i = 0; i < n_sections; i++) {
        if (section[i].sh_type != SHT_SYMTAB)
            continue;
        const char *names = object + section[section[i].sh_link].sh_offset;
        for (uint64_t j = 1; j < section[i].sh_size / sizeof(Elf64_Sym); j++) {
            Elf64_Sym s;
            memcpy(&s, object + section[i].sh_offset + j * sizeof s, sizeof s);
            if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || strcmp(names + s.st_name, symbol) != 0)
                continue;
            Elf64_Shdr changed = section[s.st_shndx];
            changed.sh_addr = address - s.st_value;
            memcpy(object + head.e_shoff + s.st_shndx * sizeof changed, &changed, sizeof changed);
        }
    }
}

void *qn__gdb_announce(const void *object, size_t n, const char *symbol, uint64_t address)
{
    Elf64_Ehdr head;
    memcpy(&head, object, sizeof head);
    char *copy = qn__alloc(n);
    Elf64_Shdr *section = qn__zalloc(head.e_shnum, sizeof *section);
    code_entry *entry = qn__zalloc(1, sizeof *entry);
    if (!copy || !section || !entry) {
        qn__free(copy);
        qn__free(section);
        qn__free(entry);
        return NULL;
    }
    memcpy(copy, object, n);
    memcpy(section, copy + head.e_shoff, head.e_shnum * sizeof *section);
    set_address(copy, section, head.e_shnum, symbol, address);
    qn__free(section);
    *entry = (code_entry){__jit_debug_descriptor.first, NULL, copy, n};
    if (entry->next)
        entry->next->previous = entry;
    __jit_debug_descriptor.first = entry;
    tell_gdb(entry, REGISTER);
    return entry;
}

void qn__gdb_forget(void *announced)
{
    code_entry *entry = announced;
    if (!entry)
        return;
    if (entry->next)
        entry->next->previous = entry->previous;
    if (entry->previous)
        entry->previous->next = entry->next;
    else
        __jit_debug_descriptor.first = entry->next;
    tell_gdb(entry, UNREGISTER);
    qn__free((void *)(uintptr_t)entry->object);
    qn__free(entry);
}
