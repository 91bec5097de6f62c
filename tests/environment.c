/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.c: linked into every test and benchmark. Their contexts keep nothing on disk, and
 * find nothing there: not in the folder of whoever runs them, which would also change what they
 * count and time. QUERN_TEST_CACHE names a folder for tests that are to use one.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

__attribute__((constructor)) static void set_environment(void)
{
    const char *folder = getenv("QUERN_TEST_CACHE");
    setenv("QUERN_CACHE", folder && folder[0] ? folder : "off", 1);
}
