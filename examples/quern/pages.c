/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages.c: what the tool says about itself: help, a manual page, and completion for bash. All three
 * are made of the tables of commands and options.
 */
#include "tool.h"

#include <stdio.h>
#include <string.h>

static const char summary[] = "runs array kernels written as text";
static const char of_options[] = "Options of run, bench, asm, explain, bundle and object";
static const char values[] =
    "VALUE of an array: a .npy file, or one that is made:\n"
    "  zeros:f64[512,512]  ones:i32[10]  iota:u8[4,4]:left  random:7:f32[1000]\n"
    "  with :right, :left, :stride[64,1] or :tile[8,8] behind it for its layout\n"
    "  (random: floats in [0,1), integers 0 to 99; the number is the seed)\n"
    "VALUE of a scalar: 2.5, -3, true, inf, 0x1p-3\n";
static const char exit_status[] = "0 ok, 1 error, 2 wrong use";

int command_help(int argc, char **argv)
{
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

int command_man(int argc, char **argv)
{
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
                "quern asm saxpy.qn x=zeros:f32[1000] y=zeros:f32[1000] a=1 --stage plan\n");
    puts(".fi");
    return EXIT_OK;
}

/* ---------------------------------------------------------------- completion */

/* "--name) words="a b" ;;" for an option with a list of values; folders or nothing for the others
 * with a value. */
static void print_values(int i, const tool_option *o)
{
    if (!o->value)
        return;
    printf("    %s) ", o->name);
    if (option_choice(i, 0)) {
        fputs("words=\"", stdout);
        for (int n = 0; option_choice(i, n); n++)
            printf("%s%s", n ? " " : "", option_choice(i, n));
        fputs("\"", stdout);
    } else if (strcmp(o->value, "DIR") == 0) {
        fputs("kinds=-d", stdout);
    } else {
        fputs("kinds=none", stdout);
    }
    puts(" ;;");
}

int command_completion(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("# Completion of quern for bash. Made by `quern --completion`.\n"
         "_quern() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words= "
         "kinds=\n"
         "    if [ \"$word\" = = ]; then\n"
         "        word=\n"
         "    elif [ \"$before\" = = ]; then\n"
         "        before=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "    fi\n"
         "    case $before in");
    tool_option o;
    for (int i = 0; option_at(i, &o); i++)
        print_values(i, &o);
    fputs("    cache) words=\"list verify clear export import\" ;;\n    esac\n"
          "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
          "        words=\"",
          stdout);
    for (const tool_command *c = tool_commands; c->name; c++)
        printf("%s%s", c == tool_commands ? "" : " ", c->name);
    fputs("\"\n    elif [ -z \"$words$kinds\" ] && [[ $word == -* ]]; then\n        words=\"",
          stdout);
    for (int i = 0; option_at(i, &o); i++)
        printf("%s%s", i ? " " : "", o.name);
    puts("\"\n    fi\n"
         "    COMPREPLY=()\n"
         "    if [ -n \"$words\" ]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
         "    elif [ -z \"$kinds\" ]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -d -- \"$word\"; compgen -f -X '!*.@(qn|npy)' "
         "-- \"$word\")\n"
         "    elif [ \"$kinds\" = -d ]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -d -- \"$word\")\n"
         "    fi\n"
         "}\n"
         "shopt -s extglob\n"
         "complete -o filenames -F _quern quern");
    return EXIT_OK;
}
