/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages.c: what the tool says about itself: help and a manual page. Both are made of the tables of
 * commands and options.
 */
#include "tool.h"

#include <stdio.h>
#include <string.h>

static const char summary[] = "runs array kernels written as text";
static const char of_options[] = "Options of commands that take a kernel with its arguments";
static const char values[] =
    "VALUE of an array: a .npy file, or one that is made:\n"
    "  zeros:f64[512,512]  ones:i32[10]  iota:u8[4,4]:left  random:7:f32[1000]\n"
    "  with :right, :left, :stride[64,1] or :tile[8,8] behind it for its layout\n"
    "  (random: floats in [0,1), integers 0 to 99; the number is the seed)\n"
    "VALUE of a scalar: 2.5, -3, true, inf, 0x1p-3\n";
static const char exit_status[] = "0 ok, 1 error, 2 wrong use";

int command_help(const tool_manner *how, int argc, char **argv)
{
    (void)how;
    (void)argc;
    (void)argv;
    printf("quern: %s (docs/kernel-text.md)\n\n", summary);
    for (const tool_command *c = tool_commands; c->name; c++)
        printf("  quern %-12s %-36s %s\n", c->name, c->words, c->help);
    printf("\n%s\n%s:\n", values, of_options);
    tool_option o;
    for (int i = 0; option_at(i, &o); i++)
        printf("  %-18s %-3s %s\n", o.name, o.value ? o.value : "", o.help);
    printf("\nExit status: %s.\n", exit_status);
    return EXIT_OK;
}

/* ---------------------------------------------------------------- manual page */

/* Text as it stands: what troff would take for its own is escaped. */
static void print_plain(const char *text)
{
    bool begins_line = true;
    for (; *text; text++) {
        if (begins_line && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '-' || *text == '\\')
            fputs(*text == '-' ? "\\-" : "\\e", stdout);
        else
            putchar(*text);
        begins_line = *text == '\n';
    }
}

/* A term in bold with words in italics, and what it means. */
static void print_entry(const char *before, const char *term, const char *words,
                        const char *meaning)
{
    fputs(".TP\n\\fB", stdout);
    print_plain(before);
    print_plain(term);
    fputs("\\fR", stdout);
    if (words[0]) {
        fputs(" \\fI", stdout);
        print_plain(words);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    print_plain(meaning);
    putchar('\n');
}

int command_man(const tool_manner *how, int argc, char **argv)
{
    (void)how;
    (void)argc;
    (void)argv;
    uint32_t v = qn_version();
    printf(".TH QUERN 1 \"\" \"quern %u.%u.%u\"\n.SH NAME\nquern \\- %s\n", (unsigned)(v >> 16),
           (unsigned)(v >> 8 & 255), (unsigned)(v & 255), summary);
    puts(".SH SYNOPSIS\n\\fBquern\\fR \\fICOMMAND\\fR [\\fIwords\\fR] [\\fIoptions\\fR]\n.SH "
         "COMMANDS");
    for (const tool_command *c = tool_commands; c->name; c++)
        print_entry("quern ", c->name, c->words, c->help);
    puts(".SH VALUES\n.nf");
    print_plain(values);
    printf(".fi\n.SH OPTIONS\n%s.\n", of_options);
    tool_option o;
    for (int i = 0; option_at(i, &o); i++)
        print_entry("", o.name, o.value ? o.value : "", o.help);
    printf(".SH EXIT STATUS\n%s.\n", exit_status);
    puts(".SH EXAMPLES\n.nf");
    print_plain("quern run saxpy.qn x=iota:f32[8] y=ones:f32[8] a=2.5 --out y=y.npy\n"
                "quern asm saxpy.qn x=zeros:f32[1000] y=zeros:f32[1000] a=1 --stage plan\n"
                "quern diff saxpy.qn x=zeros:f32[1000] y=zeros:f32[1000] a=1 -- --isa v3\n"
                "quern bench saxpy.qn --over n=1000,10000,100000 x=ones:f32[{n}] y=ones:f32[{n}] "
                "a=1 --plot saxpy.svg\n");
    puts(".fi");
    return EXIT_OK;
}
