/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.c: the one place where the library formats text. A host may have set another rounding,
 * flush-to-zero, traps, or a locale with a decimal comma; none of them changes a byte of a text. No
 * other file calls a function that formats numbers with a point, or that reads them
 * (tests/check/layers.sh).
 */
#define _POSIX_C_SOURCE 200809L /* uselocale */
#include "ir/ir.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

/** Whether a format has a conversion of floats. All others depend on neither locale nor
 * environment. */
static bool has_floats(const char *format)
{
    for (const char *at = format; (at = strchr(at, '%')) != NULL;) {
        at += 1 + strspn(at + 1, "-+ #0123456789.*");
        at += strspn(at, "hlLqjzt");
        if (*at && strchr("aAeEfFgG", *at))
            return true;
        at += *at != '\0';
    }
    return false;
}

int qn__vformat(char *out, size_t bytes, const char *format, va_list ap)
{
    if (!has_floats(format))
        return vsnprintf(out, bytes, format, ap);
    uint32_t host = qn__fpu_enter();
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* takes no memory in glibc */
    locale_t of_host = plain ? uselocale(plain) : (locale_t)0;
    int n = vsnprintf(out, bytes, format, ap);
    if (plain) {
        uselocale(of_host);
        freelocale(plain);
    }
    qn__fpu_leave(host);
    return n;
}

int qn__format(char *out, size_t bytes, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = qn__vformat(out, bytes, format, ap);
    va_end(ap);
    return n;
}
