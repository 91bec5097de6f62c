/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peaks.c: `quern peaks` measures what the processor can do at most, and prints it as the variable that summaries read.
 */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int command_peaks(int argc, char **argv)
{
    qn_context *c = NULL;
    qn_error err = {0};
    qn_peaks peaks;
    int64_t n_threads = 1;
    if (argc == 2 && strcmp(argv[0], "--threads") == 0 && text_to_int(argv[1], strlen(argv[1]), &n_threads) &&
        n_threads >= 1 && n_threads <= 256)
        argc = 0;
    if (argc != 0)
        return tool_fail(EXIT_USAGE, "peaks takes --threads N, from 1 to 256, or nothing");
    const qn_context_options o = {.bytes = sizeof o, .n_threads = (int32_t)n_threads, .disk_cache = "off"};
    qn_status status = qn_context_new(&o, &c, &err);
    if (status == QN_OK)
        status = qn_measure_peaks(c, n_threads > 1 ? QN_THREADS : QN_SERIAL, 0, &peaks, sizeof peaks, &err);
    qn_context_release(c);
    if (status != QN_OK)
        return tool_fail(EXIT_ERROR, "%s: %s", qn_status_name(err.status), err.message);
    printf("# %d thread%s: GB/s of memory, GFLOP/s of f64\n", (int)n_threads, n_threads > 1 ? "s" : "");
    printf("QUERN_PEAKS=%.2f,%.2f\n", peaks.gigabytes, peaks.gigaflops);
    return EXIT_OK;
}
