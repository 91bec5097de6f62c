/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completion.c: scripts for bash and zsh that complete the words of this tool, made of the tables
 * of commands and options.
 */
#include "tool.h"

#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- bash */

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
    } else if (strcmp(o->value, "FILE") == 0) {
        fputs("kinds=-f", stdout);
    } else {
        fputs("kinds=none", stdout);
    }
    puts(" ;;");
}

static void print_bash(void)
{
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
    fputs("    cache) words=\"list verify clear export import\" ;;\n    --completion) words=zsh "
          ";;\n    esac\n"
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
         "    elif [ \"$kinds\" != none ]; then\n"
         "        mapfile -t COMPREPLY < <(compgen $kinds -- \"$word\")\n"
         "    fi\n"
         "}\n"
         "shopt -s extglob\n"
         "complete -o filenames -F _quern quern");
}

/* ---------------------------------------------------------------- zsh */

/* Text between single quotes, where a colon separates a word from its meaning. */
static void print_quoted(const char *word, const char *meaning)
{
    printf("        '%s:", word);
    for (; *meaning; meaning++)
        if (*meaning == '\'')
            fputs("'\\''", stdout);
        else
            printf(*meaning == ':' ? "\\%c" : "%c", *meaning);
    puts("'");
}

static void print_zsh(void)
{
    puts("#compdef quern\n# Completion of quern for zsh. Made by `quern --completion zsh`.\n"
         "_quern() {\n    local -a commands options\n    commands=(");
    for (const tool_command *c = tool_commands; c->name; c++)
        print_quoted(c->name, c->help);
    puts("    )\n    options=(");
    tool_option o;
    for (int i = 0; option_at(i, &o); i++)
        print_quoted(o.name, o.help);
    puts("    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n        "
         "return\n    fi\n"
         "    case $words[CURRENT-1] in");
    for (int i = 0; option_at(i, &o); i++) {
        if (!o.value)
            continue;
        printf("    %s) ", o.name);
        if (option_choice(i, 0))
            fputs("compadd --", stdout);
        for (int n = 0; option_choice(i, n); n++)
            printf(" %s", option_choice(i, n));
        puts(option_choice(i, 0)            ? "; return ;;"
             : strcmp(o.value, "DIR") == 0  ? "_files -/; return ;;"
             : strcmp(o.value, "FILE") == 0 ? "_files; return ;;"
                                            : "return ;;");
    }
    puts("    cache) compadd -- list verify clear export import; return ;;\n"
         "    --completion) compadd -- zsh; return ;;\n    esac\n"
         "    if [[ $words[CURRENT] == -* ]]; then\n        _describe option options\n"
         "    elif [[ $words[CURRENT] == *=* ]] && compset -P '*='; then\n        _files -g "
         "'*.npy'\n"
         "    else\n        _files -g '*.(qn|npy)'\n    fi\n}\n"
         "if [ \"$funcstack[1]\" = _quern ]; then\n    _quern \"$@\"\nelse\n    compdef _quern "
         "quern\nfi");
}

int command_completion(const tool_manner *how, int argc, char **argv)
{
    (void)how;
    if (argc > 1 || (argc == 1 && strcmp(argv[0], "bash") != 0 && strcmp(argv[0], "zsh") != 0))
        return tool_fail(EXIT_USAGE, "--completion takes bash or zsh, or nothing for bash");
    if (argc == 1 && strcmp(argv[0], "zsh") == 0)
        print_zsh();
    else
        print_bash();
    return EXIT_OK;
}
