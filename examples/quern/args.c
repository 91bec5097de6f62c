/* SPDX-License-Identifier: Apache-2.0 */
/*
 * args.c: the words of the command line. The options are a table, which help, manual page and
 * completion read too.
 */
#define _POSIX_C_SOURCE 200809L
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct choice {
    const char *text;
    int32_t value;
} choice;

static const choice engines[] = {
    {"auto", QN_ENGINE_AUTO}, {"interp", QN_ENGINE_INTERP}, {"native", QN_ENGINE_NATIVE}, {0}};
static const choice executors[] = {{"serial", QN_SERIAL}, {"threads", QN_THREADS}, {0}};
static const choice layouts[] = {{"right", 0}, {"left", 1}, {0}};
static const choice checks[] = {
    {"report", QN_CHECKS_REPORT}, {"clamp", QN_CHECKS_CLAMP}, {"none", QN_CHECKS_NONE}, {0}};
static const choice specializes[] = {{"auto", QN_SPECIALIZE_AUTO},
                                     {"exact", QN_SPECIALIZE_EXACT},
                                     {"dynamic", QN_SPECIALIZE_DYNAMIC},
                                     {"generic", QN_SPECIALIZE_GENERIC},
                                     {0}};
static const choice isas[] = {
    {"auto", QN_ISA_AUTO},         {"v3", QN_ISA_V3},      {"v4", QN_ISA_V4},
    {"v4-bytes", QN_ISA_V4_BYTES}, {"neon", QN_ISA_NEON},  {"sm_70", QN_ISA_SM70},
    {"sm_75", QN_ISA_SM75},        {"sm_80", QN_ISA_SM80}, {"sm_86", QN_ISA_SM86},
    {"sm_89", QN_ISA_SM89},        {"sm_90", QN_ISA_SM90}, {0}};
static const choice targets[] = {{"host", 0}, {"cuda", 1}, {0}};
static const choice loaders[] = {
    {"auto", QN_LOADER_AUTO}, {"arena", QN_LOADER_ARENA}, {"orc", QN_LOADER_ORC}, {0}};
#define QN_X(name, bit, text) {text, QN_DUMP_##name},
static const choice atomics[] = {{"launch", QN_ATOMICS_LAUNCH}, {"shared", QN_ATOMICS_SHARED}, {0}};
static const choice stages[] = {QN_DUMP_LIST(QN_X){0}};
#undef QN_X

/* An option: a choice, a number in [low, high], or a switch (low == high, the value it sets). */
typedef struct option {
    const char *name, *value, *help;
    size_t field; /* of tool_line, an int32_t */
    const choice *choices;
    int32_t low, high;
} option;

#define FIELD(member) offsetof(tool_line, member)
static const option options[] = {
    {"--engine", "E", "auto, interp or native", FIELD(launch.engine), engines, 0, 0},
    {"--executor", "E", "serial or threads", FIELD(launch.executor), executors, 0, 0},
    {"--threads", "N", "size of the pool of threads", FIELD(context.n_threads), NULL, 1, 256},
    {"--layout", "L", "right or left: order of created arrays", FIELD(is_left), layouts, 0, 0},
    {"--repeat", "N", "run N times", FIELD(repeat), NULL, 1, 1000000000},
    {"--checks", "C", "report, clamp or none: accesses out of bounds", FIELD(launch.checks), checks,
     0, 0},
    {"--specialize", "S", "auto, exact or dynamic: what becomes constant", FIELD(launch.specialize),
     specializes, 0, 0},
    {"--isa", "I", "auto, v3, v4, or of a GPU sm_70 to sm_90: instructions that may be used",
     FIELD(launch.isa), isas, 0, 0},
    {"--target", "T", "host or cuda (an NVIDIA GPU; asm needs none)", FIELD(is_cuda), targets, 0,
     0},
    {"--loader", "L", "auto, arena or orc: how code is loaded", FIELD(launch.loader), loaders, 0,
     0},
    {"--atomics", "A", "launch or shared: with other launches and threads", FIELD(launch.atomics),
     atomics, 0, 0},
    {"--stage", "S", "asm: the stage to print, one of those of --dump", FIELD(stage), stages, 0, 0},
    {"--show", "N", "values printed of each output (default 8)", FIELD(show), NULL, 0, 1000000},
    {"--strict", NULL, "overlapping arrays are an error", FIELD(launch.strict), NULL, 1, 1},
    {"--constant-scalars", NULL, "scalars become constants of the code",
     FIELD(launch.constant_scalars), NULL, 1, 1},
    {"--races", NULL, "run: the interpreter looks for iterations that race for an element",
     FIELD(races), NULL, 1, 1},
    {"--trap-nan", NULL, "run: the interpreter looks for the first op that makes a NaN of numbers",
     FIELD(trap_nan), NULL, 1, 1},
    {"--lines", NULL, "run: what the kernel prints goes to standard error", FIELD(lines), NULL, 1,
     1},
    {"--seconds", "N", "tune: for all of it (default 10)", FIELD(seconds), NULL, 1, 1000000},
    {"--untuned", NULL, "what tune chose and kept is not used", FIELD(context.untuned), NULL, 1, 1},
    {"--stats", NULL, "print counters and history at the end", FIELD(stats), NULL, 1, 1},
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };

/* Options whose value is neither a choice nor a number. */
static const tool_option text_options[] = {
    {"--dump", "S,S",
     "write stages to files: kernel, key, plan, llvm, asm, ptx, schedule, estimate"},
    {"--dump-dir", "DIR", "where (default: the working directory)"},
    {"--bundle", "DIR", "code that a program ships is looked for there first"},
    {"--plan", "P", "fields of the plan: \"width=8 unroll=2 lane_dim=0\""},
    {"--schedule", "FILE", "the schedule of the code, as asm --stage schedule prints it"},
    {"--plot", "FILE", "bench, roofline: a picture, whose file ends in .svg or .png"},
    {"--save", "FILE", "tune: the choice, as words for --plan"},
    {"--over", "N=A,B",
     "bench: once for each text in place of {N}: --over n=100,1000 y=zeros:f64[{n}]"},
    {"--pins", "P",
     "constants, and what divides numbers: \"constant=a multiple_of=x.extent.0:64\""},
    {"--out", "N=F", "write array N to the .npy file F after the run"},
    {"--json", NULL, "all commands: results as one JSON object"},
    {"--quiet", NULL, "all commands: no progress on the terminal"},
};
enum { N_TEXT_OPTIONS = sizeof text_options / sizeof text_options[0] };

bool option_at(int i, tool_option *out)
{
    if (i < N_OPTIONS)
        *out = (tool_option){options[i].name, options[i].value, options[i].help};
    else if (i < N_OPTIONS + N_TEXT_OPTIONS)
        *out = text_options[i - N_OPTIONS];
    return i < N_OPTIONS + N_TEXT_OPTIONS;
}

const char *option_choice(int i, int n)
{
    const choice *c = i < N_OPTIONS ? options[i].choices : NULL;
    while (c && c->text && n > 0)
        c++, n--;
    return c ? c->text : NULL;
}

bool text_to_int(const char *text, size_t n, int64_t *out)
{
    char buffer[32];
    if (n == 0 || n >= sizeof buffer)
        return false;
    memcpy(buffer, text, n);
    buffer[n] = 0;
    if (!(buffer[0] == '-' || (buffer[0] >= '0' && buffer[0] <= '9')))
        return false;
    char *end;
    errno = 0;
    long long value = strtoll(buffer, &end, 10);
    if (errno || *end || end == buffer)
        return false;
    *out = value;
    return true;
}

static bool find_choice(const choice *c, const char *text, size_t n, int32_t *out)
{
    for (; c->text; c++) {
        if (strlen(c->text) == n && memcmp(c->text, text, n) == 0) {
            *out = c->value;
            return true;
        }
    }
    return false;
}

bool isa_parse(const char *text, size_t n, int32_t *out)
{
    return find_choice(isas, text, n, out);
}

const char *isa_name(int32_t isa)
{
    const choice *c = isas;
    while (c->text && c->value != isa)
        c++;
    return c->text ? c->text : "?";
}

static bool is_text_option(const char *word)
{
    for (int i = 0; i < N_TEXT_OPTIONS; i++)
        if (text_options[i].value && strcmp(word, text_options[i].name) == 0)
            return true;
    return false;
}

bool option_has_value(const char *word)
{
    for (int i = 0; i < N_OPTIONS; i++)
        if (strcmp(word, options[i].name) == 0)
            return options[i].value != NULL;
    return is_text_option(word);
}

static int set_option(const option *o, const char *value, tool_line *line)
{
    int32_t *field = (int32_t *)(void *)((char *)line + o->field);
    int64_t number;
    if (!o->value) {
        *field = o->low;
        return EXIT_OK;
    }
    if (o->choices && find_choice(o->choices, value, strlen(value), field))
        return EXIT_OK;
    if (o->choices)
        return tool_fail(EXIT_USAGE, "%s %s: expected %s", o->name, value, o->help);
    if (!text_to_int(value, strlen(value), &number) || number < o->low || number > o->high)
        return tool_fail(EXIT_USAGE, "%s %s: expected a number from %d to %d", o->name, value,
                         o->low, o->high);
    *field = (int32_t)number;
    return EXIT_OK;
}

static int set_dump(const char *value, tool_line *line)
{
    while (*value) {
        int32_t bit;
        size_t n = strcspn(value, ",");
        if (!find_choice(stages, value, n, &bit))
            return tool_fail(EXIT_USAGE, "--dump %.*s: no such stage", (int)n, value);
        line->context.dump |= (uint32_t)bit;
        value += n + (value[n] == ',');
    }
    return EXIT_OK;
}

/* A dump that cannot be written is only a line of the history; a wrong folder is found here. */
static int set_dump_dir(const char *value, tool_line *line)
{
    struct stat info;
    if (stat(value, &info) != 0)
        return tool_fail(EXIT_ERROR, "--dump-dir %s: %s", value, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return tool_fail(EXIT_ERROR, "--dump-dir %s: not a folder", value);
    line->context.dump_dir = value;
    return EXIT_OK;
}

/* Cuts "name=text" at the first '='. */
static int add_pair(char *word, tool_pair *pairs, int *n, const char *what)
{
    char *equals = strchr(word, '=');
    if (!equals || equals == word || !equals[1])
        return tool_fail(EXIT_USAGE, "%s: expected %s", word, what);
    if (*n == QN_MAX_PARAMS)
        return tool_fail(EXIT_USAGE, "%s: more than %d of them", word, QN_MAX_PARAMS);
    *equals = 0;
    for (int i = 0; i < *n; i++)
        if (strcmp(pairs[i].name, word) == 0)
            return tool_fail(EXIT_USAGE, "%s is given twice", word);
    pairs[(*n)++] = (tool_pair){word, equals + 1};
    return EXIT_OK;
}

/* `word` is an option without its value; returns the value or NULL with a message. */
static char *value_of(const char *word, char *inline_value, int *i, int argc, char **argv)
{
    if (inline_value)
        return inline_value;
    if (*i + 1 < argc)
        return argv[++*i];
    tool_fail(EXIT_USAGE, "%s: a value is missing", word);
    return NULL;
}

static int parse_option(int argc, char **argv, int *i, tool_line *line)
{
    char *word = argv[*i], *value = strchr(word, '=');
    if (value)
        *value++ = 0;
    for (int k = 0; k < N_OPTIONS; k++) {
        if (strcmp(word, options[k].name) != 0)
            continue;
        if (!options[k].value && value)
            return tool_fail(EXIT_USAGE, "%s takes no value", word);
        if (options[k].value && !(value = value_of(word, value, i, argc, argv)))
            return EXIT_USAGE;
        return set_option(&options[k], value, line);
    }
    if (!is_text_option(word))
        return tool_fail(EXIT_USAGE, "%s: no such option; `quern --help` lists them", word);
    if (!(value = value_of(word, value, i, argc, argv)))
        return EXIT_USAGE;
    if (strcmp(word, "--dump") == 0)
        return set_dump(value, line);
    if (strcmp(word, "--dump-dir") == 0)
        return set_dump_dir(value, line);
    if (strcmp(word, "--bundle") == 0) {
        line->context.bundle = value;
        return EXIT_OK;
    }
    const struct {
        const char *name, **at;
    } texts[] = {{"--pins", &line->pins},
                 {"--plan", &line->plan},
                 {"--schedule", &line->schedule},
                 {"--plot", &line->plot},
                 {"--save", &line->save},
                 {"--over", &line->over}};
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
        if (strcmp(word, texts[k].name) == 0) {
            *texts[k].at = value;
            return EXIT_OK;
        }
    return add_pair(value, line->out, &line->n_outs, "--out NAME=FILE.npy");
}

/* Words in the order given. The first that is no option is the kernel; where one was given before,
 * only a word without a sign of equality is another one. */
static int parse_words(int argc, char **argv, bool has_kernel, tool_line *line)
{
    for (int i = 0; i < argc; i++) {
        int status = EXIT_OK;
        if (argv[i][0] == '-' && argv[i][1] == '-')
            status = parse_option(argc, argv, &i, line);
        else if (!line->kernel_path && !(has_kernel && strchr(argv[i], '=')))
            line->kernel_path = argv[i];
        else
            status = add_pair(argv[i], line->arg, &line->n_args,
                              "NAME=VALUE, for a parameter of the kernel");
        if (status != EXIT_OK)
            return status;
    }
    return EXIT_OK;
}

/* What words demand together. */
static int check_line(tool_line *line)
{
    if (!line->kernel_path)
        return tool_fail(EXIT_USAGE, "the file of the kernel is missing");
    line->launch.debug = (line->races ? QN_DEBUG_RACES : 0) | (line->trap_nan ? QN_DEBUG_NAN : 0);
    if (line->launch.debug && (line->launch.engine == QN_ENGINE_NATIVE || line->is_cuda))
        return tool_fail(EXIT_USAGE, "--races and --trap-nan are for the interpreter");
    if (line->launch.debug)
        line->launch.engine = QN_ENGINE_INTERP;
    if (line->is_cuda && (line->launch.executor || line->context.n_threads))
        return tool_fail(EXIT_USAGE, "--target cuda: --executor and --threads are for the host");
    if (line->context.n_threads > 1 && !line->launch.executor)
        line->launch.executor = QN_THREADS;
    return EXIT_OK;
}

int line_parse(const tool_manner *how, int argc, char **argv, tool_line *line)
{
    *line = (tool_line){.how = *how, .show = 8, .stage = QN_DUMP_ASM};
    line->launch.bytes = sizeof line->launch;
    line->context.bytes = sizeof line->context;
    int status = parse_words(argc, argv, false, line);
    return status == EXIT_OK ? check_line(line) : status;
}

/* Adds what was given before and not anew. */
static void keep_pairs(const tool_pair *before, int n_before, tool_pair *pairs, int *n)
{
    int n_own = *n;
    for (int i = 0; i < n_before && *n < QN_MAX_PARAMS; i++) {
        bool is_new = true;
        for (int k = 0; k < n_own; k++)
            is_new = is_new && strcmp(pairs[k].name, before[i].name) != 0;
        if (is_new)
            pairs[(*n)++] = before[i];
    }
}

int line_parse_on(int argc, char **argv, const tool_line *before, tool_line *line)
{
    *line = *before;
    line->kernel_path = NULL;
    line->n_args = line->n_outs = 0;
    int status = parse_words(argc, argv, true, line);
    if (status != EXIT_OK)
        return status;
    if (!line->kernel_path)
        line->kernel_path = before->kernel_path;
    keep_pairs(before->arg, before->n_args, line->arg, &line->n_args);
    keep_pairs(before->out, before->n_outs, line->out, &line->n_outs);
    return check_line(line);
}
