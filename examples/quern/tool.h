/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool.h: what the files of the command-line tool `quern` share. The tool uses the public interface
 * only. Every function that can fail has printed its message and returns an exit status: 0 ok, 1
 * error, 2 usage.
 */
#ifndef QUERN_TOOL_H
#define QUERN_TOOL_H

#include "quern/cuda.h"
#include "quern/embed.h"

#include <stdio.h>

enum { EXIT_OK = 0, EXIT_ERROR = 1, EXIT_USAGE = 2 };

/** NAME=TEXT of the command line. Both borrow from argv, which main cuts in place. */
typedef struct tool_pair {
    const char *name, *text;
} tool_pair;

/** What help, manual page and completion say about an option. */
typedef struct tool_option {
    const char *name, *value, *help;
} tool_option;

/** A command: its name, the words after it, one line of help. */
typedef struct tool_command {
    const char *name, *words, *help;
    int (*run)(int argc, char **argv);
} tool_command;

/** The command line of run, bench, asm and explain. */
typedef struct tool_line {
    const char *kernel_path;
    tool_pair arg[QN_MAX_PARAMS], out[QN_MAX_PARAMS];
    int n_args, n_outs;
    qn_options launch;
    qn_context_options context;
    int32_t is_left; /* layout of created arrays */
    int32_t is_cuda; /* the target is a GPU */
    int32_t repeat;  /* 0: not given */
    int32_t show;    /* values printed of each written view */
    int32_t stage;   /* QN_DUMP_... for asm */
    int32_t stats;
    int32_t races, trap_nan; /* bits of launch.debug */
    int32_t lines;           /* what the kernel prints is shown */
    const char *pins;        /* words of qn_options_parse, or NULL */
} tool_line;

/** A context with a kernel and its arguments. All-zero is empty. */
typedef struct tool_job {
    qn_context *context;
    qn_kernel *kernel;
    int n;
    qn_view view[QN_MAX_PARAMS];  /* in host memory */
    qn_view there[QN_MAX_PARAMS]; /* on a GPU: their copies, which are the arguments */
    qn_arg arg[QN_MAX_PARAMS];
    qn_options options;           /* of the launch */
    qn_options *pinned;           /* what its pins are of, or NULL */
    qn_stream *stream;            /* NULL: on the host */
} tool_job;

/* main.c */
/** Prints "quern: ..." to stderr and returns `status`. */
int tool_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** The table of commands; it ends with a row without a name. */
extern const tool_command tool_commands[];

/* pages.c */
int command_help(int argc, char **argv);
/** The manual page, in the language of man(7). */
int command_man(int argc, char **argv);
/** A script for bash that completes the words of this tool. */
int command_completion(int argc, char **argv);

/* args.c */
/** Reads the words after the command. */
int line_parse(int argc, char **argv, tool_line *line);
/** Option i of those of the line, with its dashes; value is NULL for a switch. False: there are no
 * more. */
bool option_at(int i, tool_option *out);
/** Value n that option i takes; NULL if there is none, or where values are not a list. */
const char *option_choice(int i, int n);
/** The instruction set written in the first n bytes of `text`, such as v3 or sm_80. */
bool isa_parse(const char *text, size_t n, int32_t *out);
/** Whether an option, with its dashes, takes a value; false for words that are no option. */
bool option_has_value(const char *word);
/** An integer that fills the whole text (`n` bytes). */
bool text_to_int(const char *text, size_t n, int64_t *out);

/* arrays.c */
/** Makes the array of "zeros:f32[4,5]:left" or reads the file of that name. */
int array_make(qn_context *c, const char *name, const char *text, bool is_left, qn_view *out);
/** The scalar of dtype `dtype` written in `text`. */
int scalar_make(const char *name, const char *text, int dtype, qn_arg *out);
/** One line: name, dtype, layout and the first `n_values` values in index order. */
void array_show(const char *name, const qn_view *v, int n_values);

/* files.c */
/** Calls write(arg, f) for a new file, which takes the place of that of the path when it is complete.
 *  False: errno says why not. */
bool file_write(const char *path, void (*write)(const void *arg, FILE *f), const void *arg);

/* elements.c */
/** Calls fn(arg, address, n) for element n = 0, 1, ... in index order, last dimension fastest, up
 * to `limit`. */
void elements_walk(const qn_view *v, int64_t limit, void (*fn)(void *arg, void *element, int64_t n),
                   void *arg);
/** Stores a number in an element: integers wrap, bool is "is not zero". */
/** Whether a dtype is floating-point. */
bool dtype_is_real(int dtype);
void element_set_int(int dtype, void *element, int64_t value);
void element_set_real(int dtype, void *element, double value);
/** Prints an element so that it reads back as the same value; a copy of at most n bytes. */
void element_print(int dtype, const void *element, char *buffer, size_t n);

/* run.c */
/** Reads and parses a kernel; "-" is the standard input. */
int kernel_read(const char *path, qn_kernel **out);
int job_open(const tool_line *line, tool_job *job);
/** The same on the host, whatever the target: arguments to compile for. */
int job_open_here(const tool_line *line, tool_job *job);
void job_close(tool_job *job);
int command_run(const tool_line *line);
int command_print(const char *path);
int command_asm(const tool_line *line);
int command_explain(const tool_line *line);

/* peaks.c */
int command_peaks(int argc, char **argv);

/* cache.c */
int command_cache(int argc, char **argv);

/* ahead.c */
int command_bundle(int argc, char **argv);
int command_object(int argc, char **argv);

/* bench.c */
int command_bench(const tool_line *line);

#endif
