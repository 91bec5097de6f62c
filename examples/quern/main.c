/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c: the tool `quern` runs, times, prints and disassembles kernel text, looks after what is kept on
 * disk, and compiles ahead of time.
 * Commands are a table.
 */
#include "tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int tool_fail(int status, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fputs("quern: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    return status;
}

static int on_line(int argc, char **argv, int (*command)(const tool_line *))
{
    tool_line line;
    int status = line_parse(argc, argv, &line);
    return status == EXIT_OK ? command(&line) : status;
}

static int on_run(int argc, char **argv)
{
    return on_line(argc, argv, command_run);
}

static int on_bench(int argc, char **argv)
{
    return on_line(argc, argv, command_bench);
}

static int on_asm(int argc, char **argv)
{
    return on_line(argc, argv, command_asm);
}

static int on_explain(int argc, char **argv)
{
    return on_line(argc, argv, command_explain);
}

static int on_print(int argc, char **argv)
{
    if (argc != 1)
        return tool_fail(EXIT_USAGE, "print takes one file, or - for the standard input");
    return command_print(argv[0]);
}

static int on_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    uint32_t v = qn_version();
    printf("quern %u.%u.%u\n", (unsigned)(v >> 16), (unsigned)(v >> 8 & 255), (unsigned)(v & 255));
    return EXIT_OK;
}

const tool_command tool_commands[] = {
    {"run", "KERNEL.qn NAME=VALUE... [options]", "run a kernel on arrays and show what it wrote",
     on_run},
    {"bench", "KERNEL.qn NAME=VALUE... [options]", "time compiling, calling and running it",
     on_bench},
    {"asm", "KERNEL.qn NAME=VALUE... [--stage S]", "print the code made for these arguments",
     on_asm},
    {"explain", "KERNEL.qn NAME=VALUE... [options]",
     "which version runs, why, and what would be faster", on_explain},
    {"print", "KERNEL.qn", "check a kernel and print it in its canonical form", on_print},
    {"cache", "ACTION [DIR]", "list, verify, clear, export or import code that is kept on disk",
     command_cache},
    {"bundle", "DIR FILE.qn [NAME=VALUE...]...",
     "compile kernels into a bundle that a program ships", command_bundle},
    {"peaks", "[--threads N]", "measure what the processor can do at most", command_peaks},
    {"object", "FILE.o FILE.h FILE.qn [NAME=VALUE...]...",
     "compile kernels into an object file and a C header", command_object},
    {"--help", "", "this text", command_help},
    {"--man", "", "this text as a manual page: quern --man | man -l -", command_man},
    {"--completion", "", "a script for bash: eval \"$(quern --completion)\"", command_completion},
    {"--version", "", "version of the library", on_version},
    {0},
};

int main(int argc, char **argv)
{
    if (argc < 2)
        return tool_fail(EXIT_USAGE, "a command is missing: run, bench, asm, explain, print, "
                                     "cache, bundle, object, peaks; `quern --help` says more");
    const char *name =
        strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0 ? "--help" : argv[1];
    for (const tool_command *c = tool_commands; c->name; c++) {
        if (strcmp(name, c->name) != 0)
            continue;
        int status = c->run(argc - 2, argv + 2);
        if (fflush(stdout) != 0 && status == EXIT_OK)
            return tool_fail(EXIT_ERROR, "the standard output cannot be written");
        return status;
    }
    return tool_fail(EXIT_USAGE, "%s: no such command; `quern --help` lists them", argv[1]);
}
