/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_elf.c: object file -> blob. A small object is written here section by section, converted,
 * and its code run. Then everything that a blob may not hold is put into it, one thing at a time,
 * and it is cut and mutated at every byte: the answer must be a status. At last an object of the
 * system's compiler, where there is one.
 */
#define _GNU_SOURCE
#include "jit/jit.h"
#include "tests/tap.h"

#include <elf.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { S_NULL, S_TEXT, S_CONSTANTS, S_RELA, S_SYMBOLS, S_STRINGS, S_NAMES, S_EXTRA, N_SECTIONS };
enum { SYM_NONE, SYM_KERNEL, SYM_CONSTANTS, SYM_EXTRA, N_SYMBOLS };

/* What varies between the objects. */
typedef struct recipe {
    uint32_t relocation; /* type, at byte 2 of the text */
    uint64_t place;
    int64_t addend;
    uint16_t extra_symbol; /* section of the third symbol */
    const char *extra_name;
    uint32_t extra_type;
    uint64_t extra_flags, extra_bytes;
} recipe;

static const recipe good = {R_X86_64_PC32, 2, -4, S_TEXT, ".note", SHT_NOTE, SHF_ALLOC, 8};

/* mov eax, [rip + constants]; ret */
static const uint8_t text_bytes[] = {0x8b, 0x05, 0, 0, 0, 0, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90};

typedef struct section_data {
    const char *name;
    uint32_t type;
    uint64_t flags, align, entry_bytes;
    uint32_t link, info;
    const void *data;
    uint64_t bytes;
} section_data;

static uint32_t add_name(qn_text *names, const char *name)
{
    uint32_t at = (uint32_t)names->n;
    qn__text_bytes(names, name, strlen(name) + 1);
    return at;
}

/* Writes header, data of the sections, section table. */
static void write_object(const section_data *section, qn_text *out)
{
    qn_text names = {0};
    Elf64_Shdr table[N_SECTIONS] = {0};
    Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                       .e_type = ET_REL, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
                       .e_ehsize = sizeof head, .e_shentsize = sizeof table[0],
                       .e_shnum = N_SECTIONS, .e_shstrndx = S_NAMES};
    add_name(&names, "");
    qn__text_bytes(out, &head, sizeof head);
    for (int i = 0; i < N_SECTIONS; i++)
        table[i] = (Elf64_Shdr){.sh_name = add_name(&names, section[i].name),
                                .sh_type = section[i].type,
                                .sh_flags = section[i].flags,
                                .sh_addralign = section[i].align,
                                .sh_entsize = section[i].entry_bytes,
                                .sh_link = section[i].link,
                                .sh_info = section[i].info,
                                .sh_size = section[i].bytes};
    table[S_NAMES].sh_size = names.n;
    for (int i = 0; i < N_SECTIONS; i++) {
        table[i].sh_offset = out->n;
        if (table[i].sh_type != SHT_NOBITS)
            qn__text_bytes(out, i == S_NAMES ? names.data : section[i].data, table[i].sh_size);
    }
    head.e_shoff = out->n;
    memcpy(out->data, &head, sizeof head);
    qn__text_bytes(out, table, sizeof table);
    qn__text_release(&names);
}

static qn_text make_object(const recipe *r)
{
    static const char strings[] = "\0kernel\0other";
    uint8_t extra[64] = {0};
    uint32_t constants[32] = {0};
    constants[16] = 42; /* byte 64 */
    Elf64_Rela rela = {r->place, ELF64_R_INFO((uint64_t)SYM_CONSTANTS, r->relocation), r->addend};
    Elf64_Sym symbol[N_SYMBOLS] = {0};
    symbol[SYM_KERNEL] = (Elf64_Sym){.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                     .st_shndx = S_TEXT};
    symbol[SYM_CONSTANTS] = (Elf64_Sym){.st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT),
                                        .st_shndx = S_CONSTANTS, .st_value = 64};
    symbol[SYM_EXTRA] = (Elf64_Sym){.st_name = 8, .st_shndx = r->extra_symbol};
    section_data section[N_SECTIONS] = {
        [S_NULL] = {.name = ""},
        [S_TEXT] = {".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 16, 0, 0, 0, text_bytes,
                    sizeof text_bytes},
        [S_CONSTANTS] = {".rodata.cst64", SHT_PROGBITS, SHF_ALLOC | SHF_MERGE, 64, 64, 0, 0,
                         constants, sizeof constants},
        [S_RELA] = {".rela.text", SHT_RELA, 0, 8, sizeof rela, S_SYMBOLS, S_TEXT, &rela,
                    sizeof rela},
        [S_SYMBOLS] = {".symtab", SHT_SYMTAB, 0, 8, sizeof symbol[0], S_STRINGS, 1, symbol,
                       sizeof symbol},
        [S_STRINGS] = {".strtab", SHT_STRTAB, 0, 1, 0, 0, 0, strings, sizeof strings},
        [S_NAMES] = {.name = ".shstrtab", .type = SHT_STRTAB, .align = 1},
        [S_EXTRA] = {r->extra_name, r->extra_type, r->extra_flags, 8, 0, 0, 0, extra,
                     r->extra_bytes},
    };
    qn_text out = {0};
    write_object(section, &out);
    return out;
}

/* Calls the code as int (*)(void). */
static int run_blob(const qn_text *code, uint32_t entry)
{
    void *p = mmap(NULL, code->n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return -1;
    memcpy(p, code->data, code->n);
    int result = -1;
    if (mprotect(p, code->n, PROT_READ | PROT_EXEC) == 0) {
        char *at = (char *)p + entry;
        int (*function)(void);
        memcpy(&function, &at, sizeof at);
        result = function();
    }
    munmap(p, code->n);
    return result;
}

static void test_good(void)
{
    qn_text object = make_object(&good), code = {0};
    uint32_t entry = 99, align = 0;
    qn_error err = {0};
    qn_status status =
        qn__elf_to_blob(object.data, object.n, EM_X86_64, "kernel", &code, &entry, &align, &err);
    if (!tap_ok(status == QN_OK, "a good object is converted"))
        tap_note("%s", err.message);
    tap_is_int(entry, 0, "entry");
    tap_is_int(align, 64, "alignment is that of the constants");
    tap_is_int((int64_t)code.n, 64 + 128, "text, gap and constants");
    int32_t distance;
    memcpy(&distance, code.data + 2, 4);
    tap_is_int(distance, 64 + 64 - 6, "the relocation is applied");
    tap_is_int((uint8_t)code.data[12], 0xcc, "gaps trap");
    tap_is_int(run_blob(&code, entry), 42, "the code runs");

    size_t n = code.n;
    status =
        qn__elf_to_blob(object.data, object.n, EM_X86_64, "kernel", &code, &entry, &align, &err);
    tap_ok(status == QN_OK && code.n == 2 * n && memcmp(code.data, code.data + n, n) == 0,
           "a second conversion is appended");
    status =
        qn__elf_to_blob(object.data, object.n, EM_X86_64, "other", &code, &entry, &align, &err);
    tap_ok(status == QN_ERR_INTERNAL && code.n == 2 * n, "a name that is no function");
    tap_contains(err.message, "other", "... is in the message");
    qn__text_release(&code);
    qn__text_release(&object);
}

/* One object that must be refused with `part` in the message. */
static void expect_refused(const recipe *r, qn_status expected, const char *part, const char *what)
{
    qn_text object = make_object(r), code = {0};
    uint32_t entry = 99, align = 98;
    qn_error err = {0};
    qn_status status =
        qn__elf_to_blob(object.data, object.n, EM_X86_64, "kernel", &code, &entry, &align, &err);
    tap_is_int(status, expected, what);
    tap_contains(err.message, part, "... and the message");
    tap_ok(code.n == 0 && entry == 99 && align == 98, "... and no output");
    qn__text_release(&code);
    qn__text_release(&object);
}

static void test_refused(void)
{
    static const struct {
        const char *name;
        uint32_t type;
        uint64_t flags;
    } bad_section[] = {
        {".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE},
        {".bss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE},
        {".got", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE},
        {".eh_frame", SHT_PROGBITS, SHF_ALLOC},
        {".eh_frame", SHT_X86_64_UNWIND, SHF_ALLOC},
        {".rodata.rel", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE},
        {".init_array", SHT_INIT_ARRAY, SHF_ALLOC | SHF_WRITE},
        {".tdata", SHT_PROGBITS, SHF_ALLOC | SHF_TLS},
    };
    for (size_t i = 0; i < sizeof bad_section / sizeof bad_section[0]; i++) {
        recipe r = good;
        r.extra_name = bad_section[i].name;
        r.extra_type = bad_section[i].type;
        r.extra_flags = bad_section[i].flags;
        expect_refused(&r, QN_ERR_INTERNAL, r.extra_name, r.extra_name);
    }
    recipe r = good;
    r.extra_symbol = SHN_UNDEF;
    expect_refused(&r, QN_ERR_INTERNAL, "symbol other", "an undefined symbol");
    r.extra_symbol = SHN_COMMON;
    expect_refused(&r, QN_ERR_INTERNAL, "symbol other", "a common symbol");
    static const uint32_t bad_type[] = {R_X86_64_NONE,   R_X86_64_64,       R_X86_64_32,
                                        R_X86_64_32S,    R_X86_64_GOTPCREL, R_X86_64_REX_GOTPCRELX,
                                        R_X86_64_TPOFF32};
    for (size_t i = 0; i < sizeof bad_type / sizeof bad_type[0]; i++) {
        r = good;
        r.relocation = bad_type[i];
        char part[40];
        snprintf(part, sizeof part, "of type %u ", bad_type[i]);
        expect_refused(&r, QN_ERR_INTERNAL, part, "a relocation");
    }
    r = good;
    r.place = sizeof text_bytes - 3;
    expect_refused(&r, QN_ERR_INTERNAL, "at offset 9 of 12", "a relocation across the end");
    r = good;
    r.addend = INT64_C(1) << 40;
    expect_refused(&r, QN_ERR_LIMIT, "does not fit", "a relocation too far away");
}

static void test_accepted(void)
{
    recipe r = good;
    r.relocation = R_X86_64_PLT32;
    r.extra_name = ".data";
    r.extra_type = SHT_PROGBITS;
    r.extra_flags = SHF_ALLOC | SHF_WRITE;
    r.extra_bytes = 0;
    qn_text object = make_object(&r), code = {0};
    uint32_t entry, align;
    tap_ok(qn__elf_to_blob(object.data, object.n, EM_X86_64, "kernel", &code, &entry, &align,
                           NULL) == QN_OK &&
               run_blob(&code, entry) == 42,
           "PLT32, and an empty .data");
    qn__text_release(&object);
    qn__text_release(&code);

    r = good;
    r.relocation = R_X86_64_PC64;
    r.place = 3; /* over the end of the instruction: only the value is looked at */
    r.addend = -((INT64_C(1) << 40) + 5);
    object = make_object(&r);
    int64_t value = 0;
    if (qn__elf_to_blob(object.data, object.n, EM_X86_64, "kernel", &code, &entry, &align, NULL) ==
        QN_OK)
        memcpy(&value, code.data + 3, sizeof value);
    tap_is_int(value, 128 - 3 + r.addend, "PC64");
    qn__text_release(&object);
    qn__text_release(&code);
}

/* Converts a copy of exactly n bytes, so that a sanitizer sees reads past its end. */
static bool survives(const char *bytes, size_t n)
{
    char *copy = malloc(n ? n : 1);
    if (!copy)
        return false;
    memcpy(copy, bytes, n);
    qn_text code = {0};
    uint32_t entry = 0, align = 0;
    qn_error err = {0};
    qn_status status = qn__elf_to_blob(copy, n, EM_X86_64, "kernel", &code, &entry, &align, &err);
    bool is_sound = status == QN_OK ? entry < code.n && align >= 16 && align <= 4096
                                    : code.n == 0 && err.status == (int)status && err.message[0];
    qn__text_release(&code);
    free(copy);
    return is_sound;
}

static void test_corrupted(void)
{
    static const uint8_t value[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    qn_text object = make_object(&good);
    int n_bad = 0;
    for (size_t n = 0; n < object.n; n++)
        n_bad += !survives(object.data, n);
    tap_is_int(n_bad, 0, "cut at every byte");
    n_bad = 0;
    for (size_t i = 0; i < object.n; i++) {
        char old = object.data[i];
        for (size_t v = 0; v < sizeof value; v++) {
            memcpy(object.data + i, &value[v], 1);
            n_bad += !survives(object.data, object.n);
        }
        for (int bit = 0; bit < 8; bit++) {
            object.data[i] = (char)(old ^ 1 << bit);
            n_bad += !survives(object.data, object.n);
        }
        object.data[i] = old;
    }
    tap_is_int(n_bad, 0, "each byte set to 5 values and each bit flipped");
    uint64_t random = 1;
    n_bad = 0;
    for (int round = 0; round < 20000; round++) {
        qn_text mutant = {0};
        qn__text_bytes(&mutant, object.data, object.n);
        for (int i = 0; i < 4; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            mutant.data[(random >> 20) % mutant.n] = (char)(random >> 56);
        }
        n_bad += !survives(mutant.data, mutant.n);
        qn__text_release(&mutant);
    }
    tap_is_int(n_bad, 0, "20,000 objects with four random bytes");
    qn__text_release(&object);
}

static const char program[] =
    "static int help(int x) __attribute__((noinline, section(\".text.help\")));"
    "static const int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};"
    "int kernel(void) { int s = 0; for (int i = 0; i < 8; i++) { int x = table[i];"
    " __asm__ volatile(\"\" : \"+r\"(x)); s += help(x); } return s; }"
    "static int help(int x) { return 2 * x + table[x & 7]; }";

static bool read_file(const char *path, qn_text *out)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, f)) > 0;)
        qn__text_bytes(out, buffer, n);
    fclose(f);
    return out->n > 0;
}

/* Compiles `program` with the system's compiler. */
static bool compile_program(qn_text *object)
{
    char folder[] = "/tmp/quern-elf-XXXXXX", command[400], path[100], source[100];
    if (system("cc --version > /dev/null 2>&1") != 0 || !mkdtemp(folder))
        return false;
    snprintf(path, sizeof path, "%s/a.o", folder);
    snprintf(source, sizeof source, "%s/a.c", folder);
    FILE *f = fopen(source, "w");
    if (f) {
        fputs(program, f);
        fclose(f);
    }
    snprintf(command, sizeof command,
             "cc -O1 -fPIC -fvisibility=hidden -fno-asynchronous-unwind-tables -fno-jump-tables "
             "-c %s -o %s 2> /dev/null", source, path);
    bool is_done = f && system(command) == 0 && read_file(path, object);
    unlink(path);
    unlink(source);
    rmdir(folder);
    return is_done;
}

static void test_compiled(void)
{
    qn_text object = {0}, code = {0};
    if (compile_program(&object)) {
        uint32_t entry = 0, align = 0;
        qn_error err = {0};
        qn_status status = qn__elf_to_blob(object.data, object.n, EM_X86_64, "kernel", &code,
                                           &entry, &align, &err);
        if (!tap_ok(status == QN_OK, "an object of the system's compiler"))
            tap_note("%s", err.message);
        const int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
        int expected = 0;
        for (int i = 0; i < 8; i++)
            expected += 2 * table[i] + table[table[i] & 7];
        tap_is_int(status == QN_OK ? run_blob(&code, entry) : -1, expected, "... runs");
    } else {
        tap_skip("no C compiler");
    }
    qn__text_release(&object);
    qn__text_release(&code);
}

/* The object of another machine, whose text begins with the same bytes. */
static qn_text make_other(uint32_t relocation, int64_t addend)
{
    recipe r = good;
    const uint16_t machine = EM_AARCH64;
    r.relocation = relocation;
    r.place = 4;
    r.addend = addend;
    qn_text object = make_object(&r);
    memcpy(object.data + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof machine);
    return object;
}

static void test_machines(void)
{
    /* 124 + addend to go; the instruction has been 0x90c30000 */
    static const struct {
        const char *what;
        uint32_t type;
        int64_t addend;
        qn_status status;
        uint32_t word;
    } rows[] = {{"a load of a constant", R_AARCH64_LD_PREL_LO19, 0, QN_OK, 0x900003e0},
                {"... backwards", R_AARCH64_LD_PREL_LO19, -128, QN_OK, 0x90ffffe0},
                {"... from no whole word", R_AARCH64_LD_PREL_LO19, 1, QN_ERR_LIMIT, 0},
                {"... from 1 MiB away", R_AARCH64_LD_PREL_LO19, 1 << 20, QN_ERR_LIMIT, 0},
                {"an address", R_AARCH64_ADR_PREL_LO21, 1, QN_OK, 0xb00003e0},
                {"... 1 MiB away", R_AARCH64_ADR_PREL_LO21, 1 << 20, QN_ERR_LIMIT, 0},
                {"a call", R_AARCH64_CALL26, 0, QN_OK, 0x9000001f},
                {"a jump", R_AARCH64_JUMP26, -128, QN_OK, 0x93ffffff},
                {"a distance", R_AARCH64_PREL32, 0, QN_OK, 124},
                {"an address of pages", R_AARCH64_ADR_PREL_PG_HI21, 0, QN_ERR_INTERNAL, 0}};
    uint32_t entry, align;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        qn_text object = make_other(rows[i].type, rows[i].addend), code = {0};
        uint32_t word = 0;
        qn_status status = qn__elf_to_blob(object.data, object.n, EM_AARCH64, "kernel", &code,
                                           &entry, &align, NULL);
        if (status == QN_OK)
            memcpy(&word, code.data + 4, sizeof word);
        tap_ok(status == rows[i].status && word == rows[i].word, "AArch64, %s: %#x", rows[i].what,
               (unsigned)word);
        qn__text_release(&object);
        qn__text_release(&code);
    }
    qn_error err = {0};
    qn_text ours = make_object(&good), other = make_other(R_AARCH64_CALL26, 0), code = {0};
    tap_is_int(
        qn__elf_to_blob(other.data, other.n, EM_X86_64, "kernel", &code, &entry, &align, &err),
        QN_ERR_TARGET, "x86 refuses an object for AArch64");
    tap_contains(err.message, "ELF machine 183, not of 62", "... and says so");
    tap_is_int(
        qn__elf_to_blob(ours.data, ours.n, EM_AARCH64, "kernel", &code, &entry, &align, &err),
        QN_ERR_TARGET, "and the reverse");
    qn__text_release(&ours);
    qn__text_release(&other);
}

/* With the n-th allocation failing, the answer is an error or, past the last one, the code. */
static void test_memory(void)
{
    qn_text object = make_object(&good);
    int n_wrong = 0, n = 1;
    for (qn_status status = QN_ERR_MEMORY; status != QN_OK && n < 100; n++) {
        qn_text code = {0};
        uint32_t entry, align;
        qn__fail_allocation(n, false);
        status = qn__elf_to_blob(object.data, object.n, EM_X86_64, "kernel", &code, &entry, &align,
                                 NULL);
        n_wrong += status != QN_OK && status != QN_ERR_MEMORY;
        qn__text_release(&code);
    }
    qn__fail_allocation(0, false);
    tap_ok(n_wrong == 0 && n < 100, "every allocation can fail");
    qn__text_release(&object);
}

int main(void)
{
    test_good();
    test_refused();
    test_accepted();
    test_corrupted();
    test_compiled();
    test_machines();
    test_memory();
    return tap_done();
}
