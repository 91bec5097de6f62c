/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starter.c: `quern new NAME` writes the files of examples/starter, which are inside the tool, into
 * a new folder, with NAME in place of @NAME@ and without the line of the licence.
 */
#include "tool.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Made by CMake from the files. */
extern const char starter_CMakeLists_txt[], starter_main_c[], starter_kernel_qn[],
    starter_README_md[];

static const struct {
    const char *name, *text;
} files[] = {{"CMakeLists.txt", starter_CMakeLists_txt},
             {"main.c", starter_main_c},
             {"kernel.qn", starter_kernel_qn},
             {"README.md", starter_README_md}};
enum { N_FILES = sizeof files / sizeof files[0], NAME_BYTES = 64 };

typedef struct filled {
    const char *text, *name;
} filled;

static void write_filled(const void *arg, FILE *f)
{
    static const char mark[] = "@NAME@";
    const filled *x = arg;
    const char *at = x->text, *found;
    if (strncmp(at + strcspn(at, "S"), "SPDX", 4) == 0 && strcspn(at, "S") < strcspn(at, "\n"))
        at += strcspn(at, "\n") + 1;
    for (; (found = strstr(at, mark)) != NULL; at = found + sizeof mark - 1) {
        fwrite(at, 1, (size_t)(found - at), f);
        fputs(x->name, f);
    }
    fputs(at, f);
}

/* A name for a folder, a project of CMake and a program. */
static bool is_name(const char *text)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_' && text[i] != '-')
            return false;
    return n > 0 && n < NAME_BYTES && isalpha((unsigned char)text[0]) && strcmp(text, "test") != 0;
}

static int tell(const tool_manner *how, const char *name)
{
    json j;
    if (!how->json) {
        printf("%s: ", name);
        for (int i = 0; i < N_FILES; i++)
            printf("%s%s", files[i].name, i + 1 < N_FILES ? ", " : "\n");
        printf("cd %s && cmake -B build && cmake --build build && build/%s\n", name, name);
        return EXIT_OK;
    }
    if (!json_begin(&j, "new"))
        return tool_fail(EXIT_ERROR, "out of memory");
    json_text(&j, "folder", name);
    json_open(&j, "files", '[');
    for (int i = 0; i < N_FILES; i++)
        json_text(&j, NULL, files[i].name);
    json_close(&j);
    return json_end(&j, EXIT_OK);
}

int command_new(const tool_manner *how, int argc, char **argv)
{
    if (argc != 1 || !is_name(argv[0]))
        return tool_fail(
            EXIT_USAGE,
            "new takes a name that begins with a letter and has letters, digits, _ and - only, "
            "and is not test");
    if (mkdir(argv[0], 0777) != 0)
        return tool_fail(EXIT_ERROR, "%s: cannot be made: %s", argv[0], strerror(errno));
    for (int i = 0; i < N_FILES; i++) {
        char path[NAME_BYTES + 32];
        filled x = {files[i].text, argv[0]};
        snprintf(path, sizeof path, "%s/%s", argv[0], files[i].name);
        if (!file_write(path, write_filled, &x))
            return tool_fail(EXIT_ERROR, "%s: cannot be written: %s", path, strerror(errno));
    }
    return tell(how, argv[0]);
}
