/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf.c: ELF object file -> relocation-free code.
 *
 * The sections that code runs from, .text* first and .rodata* after them, are laid out with their
 * alignment; the PC-relative relocations between them are applied; anything else that the code
 * would need at run time (data, unwind tables, undefined symbols, other relocations) is an error
 * that names it. A processor has its relocations in one table. The result may be copied to any
 * address that has its alignment. The object is our own, but every offset in it is checked all the
 * same.
 */
#include "jit/jit.h"

#include <elf.h>
#include <string.h>

#define MAX_SECTIONS 1024
#define MAX_ALIGN 4096
#define MIN_ALIGN 16

/** A relocation: symbol + addend - place, as a signed number of so many bits, is written to the
 * place. */
typedef struct relocation {
    uint32_t machine, type;
    uint8_t bytes;            /* at the place: the number, or the instruction that has it in it */
    uint8_t bits,
        zeros; /* of the number; of these, the last ones, which must be 0 and are not written */
    uint8_t low_bits, low_at; /* how many of the next ones stand apart, and from which bit on */
    uint8_t at;               /* the others, from which bit on */
} relocation;

static const relocation relocations[] = {
    {EM_X86_64, R_X86_64_PC32, .bytes = 4, .bits = 32},
    {EM_X86_64, R_X86_64_PLT32, .bytes = 4, .bits = 32},
    {EM_X86_64, R_X86_64_PC64, .bytes = 8, .bits = 64},
    /* ELF for the Arm 64-bit Architecture, static relocations */
    {EM_AARCH64, R_AARCH64_PREL32, .bytes = 4, .bits = 32},
    {EM_AARCH64, R_AARCH64_PREL64, .bytes = 8, .bits = 64},
    {EM_AARCH64, R_AARCH64_LD_PREL_LO19, .bytes = 4, .bits = 21, .zeros = 2, .at = 5},
    {EM_AARCH64, R_AARCH64_ADR_PREL_LO21, .bytes = 4, .bits = 21, .low_bits = 2, .low_at = 29,
     .at = 5},
    {EM_AARCH64, R_AARCH64_CALL26, .bytes = 4, .bits = 28, .zeros = 2},
    {EM_AARCH64, R_AARCH64_JUMP26, .bytes = 4, .bits = 28, .zeros = 2},
};
enum { N_RELOCATIONS = sizeof relocations / sizeof relocations[0] };

/** A section that becomes part of the blob. */
typedef struct placement {
    bool is_placed;
    uint64_t offset, size; /* in the blob */
} placement;

typedef struct object {
    const uint8_t *bytes;
    size_t n;
    Elf64_Ehdr head;
    Elf64_Shdr section[MAX_SECTIONS];
    placement place[MAX_SECTIONS];
    const uint8_t *symbols; /* Elf64_Sym[n_symbols], maybe misaligned */
    uint64_t n_symbols;
    uint32_t symbol_names; /* section of their names */
    uint64_t blob_bytes, align;
} object;

static bool is_inside(const object *o, uint64_t offset, uint64_t size)
{
    return offset <= o->n && size <= o->n - offset;
}

/* A string of a string section, or "?" if it is not inside. */
static const char *string_at(const object *o, uint64_t section, uint64_t offset)
{
    if (section >= o->head.e_shnum || o->section[section].sh_type != SHT_STRTAB)
        return "?";
    const Elf64_Shdr *s = &o->section[section];
    if (offset >= s->sh_size || !is_inside(o, s->sh_offset, s->sh_size))
        return "?";
    const char *text = (const char *)o->bytes + s->sh_offset + offset;
    return memchr(text, 0, s->sh_size - offset) ? text : "?";
}

static const char *section_name(const object *o, const Elf64_Shdr *s)
{
    return string_at(o, o->head.e_shstrndx, s->sh_name);
}

static qn_status read_headers(object *o, int machine, qn_error *err)
{
    if (o->n < sizeof o->head)
        return qn__fail(err, QN_ERR_INTERNAL, "qn__elf_to_blob: object of %zu bytes is too short",
                        o->n);
    memcpy(&o->head, o->bytes, sizeof o->head);
    const Elf64_Ehdr *h = &o->head;
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
        h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_type != ET_REL)
        return qn__fail(err, QN_ERR_INTERNAL,
                        "qn__elf_to_blob: not a relocatable 64-bit ELF object");
    if (h->e_machine != machine)
        return qn__fail(err, QN_ERR_TARGET,
                        "qn__elf_to_blob: an object of ELF machine %d, not of %d", h->e_machine,
                        machine);
    uint64_t table_bytes = (uint64_t)h->e_shnum * sizeof(Elf64_Shdr);
    if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shnum == 0 || h->e_shnum > MAX_SECTIONS ||
        !is_inside(o, h->e_shoff, table_bytes))
        return qn__fail(err, QN_ERR_INTERNAL,
                        "qn__elf_to_blob: bad section table: %d entries at %llu", h->e_shnum,
                        (unsigned long long)h->e_shoff);
    memcpy(o->section, o->bytes + h->e_shoff, table_bytes);
    return QN_OK;
}

static bool starts_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_text(const object *o, const Elf64_Shdr *s)
{
    return s->sh_type == SHT_PROGBITS && (s->sh_flags & SHF_EXECINSTR) &&
           !(s->sh_flags & SHF_WRITE) && starts_with(section_name(o, s), ".text");
}

static bool is_constants(const object *o, const Elf64_Shdr *s)
{
    return s->sh_type == SHT_PROGBITS && !(s->sh_flags & (SHF_EXECINSTR | SHF_WRITE | SHF_TLS)) &&
           starts_with(section_name(o, s), ".rodata");
}

/* Whether a section is loaded at all; notes are, but nobody reads them from a blob. */
static bool is_needed(const Elf64_Shdr *s)
{
    return (s->sh_flags & SHF_ALLOC) && s->sh_type != SHT_NOTE && s->sh_size > 0;
}

static qn_status check_needed(const object *o, const Elf64_Shdr *s, qn_error *err)
{
    if (!is_text(o, s) && !is_constants(o, s))
        return qn__fail(err, QN_ERR_INTERNAL,
                        "qn__elf_to_blob: section %s of %llu bytes cannot be in a blob",
                        section_name(o, s), (unsigned long long)s->sh_size);
    uint64_t align = s->sh_addralign;
    if (!is_inside(o, s->sh_offset, s->sh_size) || (s->sh_flags & SHF_COMPRESSED) ||
        (align & (align - 1)) != 0 || align > MAX_ALIGN)
        return qn__fail(
            err, QN_ERR_INTERNAL,
            "qn__elf_to_blob: section %s has bad offset %llu, size %llu or alignment %llu",
            section_name(o, s), (unsigned long long)s->sh_offset, (unsigned long long)s->sh_size,
            (unsigned long long)align);
    return QN_OK;
}

/* Places the sections of one kind behind what is placed. */
static void place_sections(object *o, bool (*is_kind)(const object *, const Elf64_Shdr *))
{
    for (int i = 0; i < o->head.e_shnum; i++) {
        const Elf64_Shdr *s = &o->section[i];
        if (!is_needed(s) || !is_kind(o, s))
            continue;
        uint64_t align = s->sh_addralign > 1 ? s->sh_addralign : 1;
        o->blob_bytes = (o->blob_bytes + align - 1) & ~(align - 1);
        o->place[i] = (placement){true, o->blob_bytes, s->sh_size};
        o->blob_bytes += s->sh_size;
        if (align > o->align)
            o->align = align;
    }
}

static qn_status place_all(object *o, qn_error *err)
{
    uint64_t total = 0;
    for (int i = 0; i < o->head.e_shnum; i++) {
        if (!is_needed(&o->section[i]))
            continue;
        qn_status status = check_needed(o, &o->section[i], err);
        if (status != QN_OK)
            return status;
        total += o->section[i].sh_size; /* each at most o->n, at most MAX_SECTIONS of them */
    }
    if (total > (uint64_t)1 << 30)
        return qn__fail(err, QN_ERR_INTERNAL, "qn__elf_to_blob: %llu bytes of code",
                        (unsigned long long)total);
    o->align = MIN_ALIGN;
    place_sections(o, is_text);
    place_sections(o, is_constants);
    return QN_OK;
}

static Elf64_Sym symbol_at(const object *o, uint64_t i)
{
    Elf64_Sym symbol;
    memcpy(&symbol, o->symbols + i * sizeof symbol, sizeof symbol);
    return symbol;
}

static qn_status find_symbols(object *o, qn_error *err)
{
    for (int i = 0; i < o->head.e_shnum; i++) {
        const Elf64_Shdr *s = &o->section[i];
        if (s->sh_type != SHT_SYMTAB)
            continue;
        if (o->symbols || s->sh_entsize != sizeof(Elf64_Sym) ||
            !is_inside(o, s->sh_offset, s->sh_size))
            return qn__fail(err, QN_ERR_INTERNAL, "qn__elf_to_blob: bad symbol table");
        o->symbols = o->bytes + s->sh_offset;
        o->n_symbols = s->sh_size / sizeof(Elf64_Sym);
        o->symbol_names = s->sh_link;
    }
    for (uint64_t i = 1; i < o->n_symbols; i++) {
        Elf64_Sym symbol = symbol_at(o, i);
        if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_COMMON)
            return qn__fail(err, QN_ERR_INTERNAL, "qn__elf_to_blob: symbol %s is not in the object",
                            string_at(o, o->symbol_names, symbol.st_name));
    }
    return QN_OK;
}

/* Where a symbol lies in the blob; false if it does not. */
static bool symbol_offset(const object *o, const Elf64_Sym *symbol, uint64_t *out)
{
    if (symbol->st_shndx >= o->head.e_shnum)
        return false;
    const placement *p = &o->place[symbol->st_shndx];
    if (!p->is_placed || symbol->st_value > p->size)
        return false;
    *out = p->offset + symbol->st_value;
    return true;
}

static qn_status find_entry(const object *o, const char *name, uint32_t *entry, qn_error *err)
{
    for (uint64_t i = 1; i < o->n_symbols; i++) {
        Elf64_Sym symbol = symbol_at(o, i);
        uint64_t offset;
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !symbol_offset(o, &symbol, &offset) ||
            !is_text(o, &o->section[symbol.st_shndx]) ||
            strcmp(string_at(o, o->symbol_names, symbol.st_name), name) != 0)
            continue;
        if (symbol.st_value == o->place[symbol.st_shndx].size)
            break;
        *entry = (uint32_t)offset;
        return QN_OK;
    }
    return qn__fail(err, QN_ERR_INTERNAL, "qn__elf_to_blob: function %s is not in the object",
                    name);
}

/* Copies the placed sections behind code->n; running into a gap between them traps. */
static qn_status copy_sections(const object *o, qn_text *code, qn_error *err)
{
    uint8_t trap[256];
    memset(trap, 0xcc, sizeof trap);
    size_t start = code->n;
    for (uint64_t done = 0; done < o->blob_bytes && !code->failed;) {
        uint64_t part = o->blob_bytes - done < sizeof trap ? o->blob_bytes - done : sizeof trap;
        qn__text_bytes(code, trap, part);
        done += part;
    }
    if (code->failed)
        return qn__fail(err, QN_ERR_MEMORY, "qn__elf_to_blob: no memory for %llu bytes of code",
                        (unsigned long long)o->blob_bytes);
    for (int i = 0; i < o->head.e_shnum; i++)
        if (o->place[i].is_placed)
            memcpy(code->data + start + o->place[i].offset, o->bytes + o->section[i].sh_offset,
                   o->place[i].size);
    return QN_OK;
}

static const relocation *find_relocation(int machine, uint64_t type)
{
    for (int i = 0; i < N_RELOCATIONS; i++)
        if (relocations[i].machine == (uint32_t)machine && relocations[i].type == type)
            return &relocations[i];
    return NULL;
}

static uint64_t low_ones(int bits)
{
    return bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
}

/* Writes a number as a relocation says; false if it does not fit. */
static bool write_number(const relocation *how, uint8_t *at, int64_t value)
{
    int64_t limit = (int64_t)(low_ones(how->bits) >> 1);
    uint64_t word = 0, number = (uint64_t)value >> how->zeros, low = low_ones(how->low_bits),
             high = low_ones(how->bits - how->zeros - how->low_bits);
    if (value > limit || value < -limit - 1 || ((uint64_t)value & low_ones(how->zeros)))
        return false;
    memcpy(&word, at, how->bytes); /* little endian, as the targets and this machine */
    word &= ~(low << how->low_at | high << how->at);
    word |= (number & low) << how->low_at | (number >> how->low_bits & high) << how->at;
    memcpy(at, &word, how->bytes);
    return true;
}

/* Applies one relocation of placed section `target`. */
static qn_status relocate(const object *o, const placement *target, const Elf64_Rela *r,
                          uint8_t *blob, qn_error *err)
{
    uint64_t type = ELF64_R_TYPE(r->r_info), index = ELF64_R_SYM(r->r_info);
    const relocation *how = find_relocation(o->head.e_machine, type);
    if (!how)
        return qn__fail(err, QN_ERR_INTERNAL,
                        "qn__elf_to_blob: relocation of type %llu at offset %llu",
                        (unsigned long long)type, (unsigned long long)r->r_offset);
    if (r->r_offset > target->size || how->bytes > target->size - r->r_offset)
        return qn__fail(err, QN_ERR_INTERNAL,
                        "qn__elf_to_blob: relocation at offset %llu of %llu bytes",
                        (unsigned long long)r->r_offset, (unsigned long long)target->size);
    if (index == 0 || index >= o->n_symbols)
        return qn__fail(err, QN_ERR_INTERNAL, "qn__elf_to_blob: relocation of symbol %llu of %llu",
                        (unsigned long long)index, (unsigned long long)o->n_symbols);
    Elf64_Sym symbol = symbol_at(o, index);
    uint64_t address;
    if (!symbol_offset(o, &symbol, &address))
        return qn__fail(err, QN_ERR_INTERNAL,
                        "qn__elf_to_blob: relocation to symbol %s outside the code",
                        string_at(o, o->symbol_names, symbol.st_name));
    uint64_t place = target->offset + r->r_offset;
    int64_t value = (int64_t)(address + (uint64_t)r->r_addend - place);
    if (!write_number(how, blob + place,
                      value)) /* 1 MiB of code are too much for some instructions */
        return qn__fail(err, QN_ERR_LIMIT, "qn__elf_to_blob: relocation by %lld does not fit",
                        (long long)value);
    return QN_OK;
}

static qn_status relocate_section(const object *o, const Elf64_Shdr *s, uint8_t *blob,
                                  qn_error *err)
{
    const placement *target = s->sh_info < o->head.e_shnum ? &o->place[s->sh_info] : NULL;
    if (!target || !target->is_placed)
        return QN_OK;
    if (s->sh_type == SHT_REL || s->sh_entsize != sizeof(Elf64_Rela) ||
        !is_inside(o, s->sh_offset, s->sh_size))
        return qn__fail(err, QN_ERR_INTERNAL, "qn__elf_to_blob: bad relocation section %s",
                        section_name(o, s));
    for (uint64_t i = 0; i < s->sh_size / sizeof(Elf64_Rela); i++) {
        Elf64_Rela r;
        memcpy(&r, o->bytes + s->sh_offset + i * sizeof r, sizeof r);
        qn_status status = relocate(o, target, &r, blob, err);
        if (status != QN_OK)
            return status;
    }
    return QN_OK;
}

static qn_status relocate_all(const object *o, uint8_t *blob, qn_error *err)
{
    qn_status status = QN_OK;
    for (int i = 0; i < o->head.e_shnum && status == QN_OK; i++) {
        uint32_t type = o->section[i].sh_type;
        if (type == SHT_RELA || type == SHT_REL)
            status = relocate_section(o, &o->section[i], blob, err);
    }
    return status;
}

/* The steps; `start` bytes of `code` belong to the caller. */
static qn_status convert(object *o, int machine, const char *symbol, qn_text *code, uint32_t *entry,
                         qn_error *err)
{
    size_t start = code->n;
    qn_status status = read_headers(o, machine, err);
    if (status == QN_OK)
        status = place_all(o, err);
    if (status == QN_OK)
        status = find_symbols(o, err);
    if (status == QN_OK)
        status = find_entry(o, symbol, entry, err);
    if (status == QN_OK)
        status = copy_sections(o, code, err);
    if (status == QN_OK)
        status = relocate_all(o, (uint8_t *)code->data + start, err);
    return status;
}

qn_status qn__elf_to_blob(const void *bytes, size_t n, int machine, const char *symbol,
                          qn_text *code, uint32_t *entry, uint32_t *align, qn_error *err)
{
    object *o = qn__zalloc(1, sizeof *o);
    if (!o)
        return qn__fail(err, QN_ERR_MEMORY, "qn__elf_to_blob: no memory for %zu bytes", sizeof *o);
    o->bytes = bytes;
    o->n = n;
    size_t start = code->n;
    uint32_t offset = 0;
    qn_status status = convert(o, machine, symbol, code, &offset, err);
    if (status == QN_OK) {
        *entry = offset;
        *align = (uint32_t)o->align;
    } else if (code->data && code->n > start) {
        code->n = start;
        code->data[start] = 0;
    }
    qn__free(o);
    return status;
}
