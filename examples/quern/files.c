/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.c: writing a file so that it is replaced only when the new one is complete; what is no
 * plain file, such as a pipe, is written as it is.
 */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool file_write(const char *path, void (*write)(const void *arg, FILE *f), const void *arg)
{
    struct stat info;
    bool is_device = stat(path, &info) == 0 && !S_ISREG(info.st_mode);
    size_t n = strlen(path);
    char *part = malloc(n + sizeof ".part");
    if (!part)
        return false;
    memcpy(part, path, n);
    memcpy(part + n, is_device ? "" : ".part", is_device ? 1 : sizeof ".part");
    FILE *f = fopen(part, "wb");
    bool is_good = f != NULL;
    if (f) {
        write(arg, f);
        is_good = !ferror(f);
        is_good = fclose(f) == 0 && is_good;
        is_good = is_good && (is_device || rename(part, path) == 0);
    }
    if (!is_good && f && !is_device)
        remove(part);
    free(part);
    return is_good;
}
