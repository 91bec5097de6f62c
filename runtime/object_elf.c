/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object_elf.c: a relocatable ELF file of code that needs no relocations: one section of code, with
 * the constants in it, and a symbol for each function. Sections: none, .text, .note.GNU-stack,
 * .symtab, .strtab, .shstrtab.
 */
#include "runtime/object.h"

#include <elf.h>
#include <string.h>

enum { S_TEXT = 1, S_STACK, S_SYMBOLS, S_STRINGS, S_NAMES, N_SECTIONS };
static const char names[] = "\0.text\0.note.GNU-stack\0.symtab\0.strtab\0.shstrtab";
enum { AT_TEXT = 1, AT_STACK = 7, AT_SYMBOLS = 23, AT_STRINGS = 31, AT_NAMES = 39 };

/** Appends zeros up to a multiple of `align`. */
static void pad(qn_text *out, size_t align)
{
    while (out->n % align && !out->failed)
        qn__text_bytes(out, "", 1);
}

static void add_strings(const qn_object_symbol *symbol, int n, qn_text *out)
{
    qn__text_bytes(out, "", 1);
    for (int i = 0; i < n; i++)
        qn__text_bytes(out, symbol[i].name, strlen(symbol[i].name) + 1);
}

static void add_symbols(const qn_object_symbol *symbol, int n, qn_text *out)
{
    Elf64_Sym s = {0};
    Elf64_Word name = 1;
    qn__text_bytes(out, &s, sizeof s);
    for (int i = 0; i < n; i++) {
        s = (Elf64_Sym){.st_name = name,
                        .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                        .st_shndx = S_TEXT,
                        .st_value = symbol[i].offset,
                        .st_size = symbol[i].bytes};
        qn__text_bytes(out, &s, sizeof s);
        name += (Elf64_Word)strlen(symbol[i].name) + 1;
    }
}

void qn__object_elf(const qn_text *code, uint32_t align, const qn_object_symbol *symbol,
                    int n_symbols, qn_text *out)
{
    Elf64_Ehdr head = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_REL,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_ehsize = sizeof head,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = N_SECTIONS,
        .e_shstrndx = S_NAMES};
    Elf64_Shdr s[N_SECTIONS] = {
        [S_TEXT] = {AT_TEXT, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, 0, code->n, 0, 0, align,
                    0},
        [S_STACK] = {AT_STACK, SHT_PROGBITS, 0, 0, 0, 0, 0, 0, 1, 0},
        [S_SYMBOLS] = {AT_SYMBOLS, SHT_SYMTAB, 0, 0, 0, 0, S_STRINGS, 1, 8, sizeof(Elf64_Sym)},
        [S_STRINGS] = {AT_STRINGS, SHT_STRTAB, 0, 0, 0, 0, 0, 0, 1, 0},
        [S_NAMES] = {AT_NAMES, SHT_STRTAB, 0, 0, 0, sizeof names, 0, 0, 1, 0},
    };
    qn__text_bytes(out, &head, sizeof head);
    pad(out, align);
    s[S_TEXT].sh_offset = s[S_STACK].sh_offset = out->n;
    qn__text_bytes(out, code->data, code->n);
    pad(out, 8);
    s[S_SYMBOLS].sh_offset = out->n;
    add_symbols(symbol, n_symbols, out);
    s[S_STRINGS].sh_offset = out->n;
    s[S_SYMBOLS].sh_size = s[S_STRINGS].sh_offset - s[S_SYMBOLS].sh_offset;
    add_strings(symbol, n_symbols, out);
    s[S_STRINGS].sh_size = out->n - s[S_STRINGS].sh_offset;
    s[S_NAMES].sh_offset = out->n;
    qn__text_bytes(out, names, sizeof names);
    pad(out, 8);
    head.e_shoff = out->n;
    qn__text_bytes(out, s, sizeof s);
    if (!out->failed)
        memcpy(out->data, &head, sizeof head);
}
