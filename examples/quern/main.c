/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c: the tool `quern` runs, times, prints and disassembles kernel text, looks after what is
 * kept on disk, and compiles ahead of time. Commands are a table.
 */
#include "tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int tool_fail(int status, const char *format, ...)
{
    va_list ap;
    progress_clear();
    va_start(ap, format);
    fputs("quern: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    return status;
}

static int on_line(const tool_manner *how, int argc, char **argv, int (*command)(const tool_line *))
{
    tool_line line;
    int status = line_parse(how, argc, argv, &line);
    return status == EXIT_OK ? command(&line) : status;
}

static int on_run(const tool_manner *how, int argc, char **argv)
{
    return on_line(how, argc, argv, command_run);
}

static int on_bench(const tool_manner *how, int argc, char **argv)
{
    return on_line(how, argc, argv, command_bench);
}

static int on_asm(const tool_manner *how, int argc, char **argv)
{
    return on_line(how, argc, argv, command_asm);
}

static int on_explain(const tool_manner *how, int argc, char **argv)
{
    return on_line(how, argc, argv, command_explain);
}

static int on_roofline(const tool_manner *how, int argc, char **argv)
{
    return on_line(how, argc, argv, command_roofline);
}

static int on_tune(const tool_manner *how, int argc, char **argv)
{
    return on_line(how, argc, argv, command_tune);
}

static int on_print(const tool_manner *how, int argc, char **argv)
{
    if (argc != 1)
        return tool_fail(EXIT_USAGE, "print takes one file, or - for the standard input");
    return command_print(how, argv[0]);
}

static int on_version(const tool_manner *how, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    uint32_t v = qn_version();
    char text[32];
    json j;
    snprintf(text, sizeof text, "%u.%u.%u", (unsigned)(v >> 16), (unsigned)(v >> 8 & 255),
             (unsigned)(v & 255));
    if (!how->json) {
        printf("quern %s\n", text);
        return EXIT_OK;
    }
    if (!json_begin(&j, "version"))
        return tool_fail(EXIT_ERROR, "out of memory");
    json_text(&j, "version", text);
    return json_end(&j, EXIT_OK);
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
    {"roofline", "KERNEL.qn NAME=VALUE... [--plot FILE]",
     "its rate beside what memory, caches and arithmetic allow", on_roofline},
    {"tune", "KERNEL.qn NAME=VALUE... [--seconds N]",
     "measure other plans on these arguments, and keep the fastest", on_tune},
    {"diff", "KERNEL.qn NAME=VALUE... -- [words that differ]",
     "compare the code of two kernels, plans, layouts or sets of options", command_diff},
    {"print", "KERNEL.qn", "check a kernel and print it in its canonical form", on_print},
    {"cache", "ACTION [DIR]", "list, verify, clear, export or import code that is kept on disk",
     command_cache},
    {"bundle", "DIR FILE.qn [NAME=VALUE...]...",
     "compile kernels into a bundle that a program ships", command_bundle},
    {"peaks", "[--threads N]", "measure what the processor can do at most", command_peaks},
    {"object", "FILE.o FILE.h FILE.qn [NAME=VALUE...]...",
     "compile kernels into an object file and a C header", command_object},
    {"new", "NAME", "write a starter project into the folder NAME", command_new},
    {"--help", "", "this text", command_help},
    {"--man", "", "this text as a manual page: quern --man | man -l -", command_man},
    {"--completion", "[zsh]",
     "a script for bash, or with zsh for zsh: eval \"$(quern --completion)\"", command_completion},
    {"--version", "", "version of the library", on_version},
    {0},
};

/* Takes the options of every command out of the words; the number of those left. */
static int take_manner(int argc, char **argv, tool_manner *how)
{
    int kept = 0;
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--json") == 0)
            how->json = true;
        else if (strcmp(argv[i], "--quiet") == 0)
            how->quiet = true;
        else
            argv[kept++] = argv[i];
    return kept;
}

/* The command that the words ask for: help, if one of them is --help, whichever command it follows. */
static const char *command_of(int argc, char **argv)
{
    if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)
        return "--help";
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0)
            return "--help";
    return argv[1];
}

int main(int argc, char **argv)
{
    tool_manner how = {0};
    argc = take_manner(argc, argv, &how);
    if (argc < 2)
        return tool_fail(
            EXIT_USAGE,
            "a command is missing: run, bench, asm, explain, print, "
            "roofline, tune, diff, cache, bundle, object, peaks, new; `quern --help` says more");
    const char *name = command_of(argc, argv);
    for (const tool_command *c = tool_commands; c->name; c++) {
        if (strcmp(name, c->name) != 0)
            continue;
        int status = c->run(&how, argc - 2, argv + 2);
        progress_clear();
        if (fflush(stdout) != 0 && status == EXIT_OK)
            return tool_fail(EXIT_ERROR, "the standard output cannot be written");
        return status;
    }
    return tool_fail(EXIT_USAGE, "%s: no such command; `quern --help` lists them", argv[1]);
}
