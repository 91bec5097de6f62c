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

#include "json.h"

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

/** How a command tells what it has to tell: options of every command. */
typedef struct tool_manner {
    bool json;  /* results are one JSON object */
    bool quiet; /* no progress on the terminal */
} tool_manner;

/** A command: its name, the words after it, one line of help. */
typedef struct tool_command {
    const char *name, *words, *help;
    int (*run)(const tool_manner *how, int argc, char **argv);
} tool_command;

/** The command line of the commands that take a kernel with its arguments. */
typedef struct tool_line {
    tool_manner how;
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
    const char *pins, *plan; /* words of qn_options_parse, or NULL */
    const char *schedule;    /* file of a schedule, or NULL */
    const char *plot;        /* file of a picture, or NULL */
    const char *over;        /* NAME=TEXT,TEXT,... of bench, or NULL */
    int32_t seconds;         /* of tune; 0: not given */
    const char *save;        /* file of what tune chose, or NULL */
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
    qn_options *pinned, *planned; /* what its pins and its plan are of, or NULL */
    char *schedule;               /* the text of its schedule, or NULL */
    qn_stream *stream;            /* NULL: on the host */
} tool_job;

/* main.c */
/** Prints "quern: ..." to stderr and returns `status`. */
int tool_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** The table of commands; it ends with a row without a name. */
extern const tool_command tool_commands[];

/* pages.c */
int command_help(const tool_manner *how, int argc, char **argv);
/** The manual page, in the language of man(7). */
int command_man(const tool_manner *how, int argc, char **argv);

/* completion.c */
/** A script for bash or zsh that completes the words of this tool. */
int command_completion(const tool_manner *how, int argc, char **argv);

/* progress.c */
/** Shows a line on the terminal instead of the one before; nothing if there is none, or with
 * --quiet. */
void progress_show(const tool_manner *how, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** Takes the line away, if there is one. */
void progress_clear(void);
/** The time, in nanoseconds since some moment. */
double now_ns(void);

/* args.c */
/** Reads the words after the command. */
int line_parse(const tool_manner *how, int argc, char **argv, tool_line *line);
/** Reads words that change a line which was read before: an argument or an option given there may
 * be given anew. */
int line_parse_on(int argc, char **argv, const tool_line *before, tool_line *line);
/** Option i of those of the line, with its dashes; value is NULL for a switch. False: there are no
 * more. */
bool option_at(int i, tool_option *out);
/** Value n that option i takes; NULL if there is none, or where values are not a list. */
const char *option_choice(int i, int n);
/** The instruction set written in the first n bytes of `text`, such as v3 or sm_80. */
bool isa_parse(const char *text, size_t n, int32_t *out);
/** As it is written. */
const char *isa_name(int32_t isa);
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
/** The same as a member of an array of JSON. */
void array_show_json(json *j, const char *name, const qn_view *v, int n_values);

/* files.c */
/** Calls write(arg, f) for a new file, which takes the place of that of the path when it is
 * complete. False: errno says why not. */
bool file_write(const char *path, void (*write)(const void *arg, FILE *f), const void *arg);

/* elements.c */
/** Calls fn(arg, address, n) for element n = 0, 1, ... in index order, last dimension fastest, up
 * to `limit`. */
void elements_walk(const qn_view *v, int64_t limit, void (*fn)(void *arg, void *element, int64_t n),
                   void *arg);
/** Stores a number in an element: integers wrap, bool is "is not zero". */
/** Whether a dtype is floating-point. */
/** The class in quern/dtypes.def: 'B', 'S', 'U', 'F' or 'C'; 0 for what is no dtype. */
char dtype_class(int dtype);
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
/** Launches --repeat times and waits until the arrays of the host have the results. */
int job_launch(const tool_line *line, const tool_job *job);
int command_run(const tool_line *line);
int command_print(const tool_manner *how, const char *path);

/* code.c */
/** The text of a stage of the code for the arguments of a line, which the caller frees. */
int code_text(const tool_line *line, char **text);
int command_asm(const tool_line *line);
int command_explain(const tool_line *line);

/* diff.c */
int command_diff(const tool_manner *how, int argc, char **argv);

/* machine.c */
/** Rates of the processor, measured with one thread. */
typedef struct machine {
    int n_levels; /* caches from the smallest on, then memory */
    struct {
        const char *name;
        int64_t bytes; /* size of the cache; INT64_MAX of memory */
        double gigabytes;
    } level[5];
    double gigaflops; /* of the dtype asked for */
} machine;
int machine_measure(const tool_manner *how, int dtype, machine *out);
/** The level whose cache holds so many bytes. */
int machine_level(const machine *m, int64_t bytes);
int command_peaks(const tool_manner *how, int argc, char **argv);

/* roofline.c */
int command_roofline(const tool_line *line);

/* tune.c */
int command_tune(const tool_line *line);

/* cache.c */
int command_cache(const tool_manner *how, int argc, char **argv);

/* ahead.c */
int command_bundle(const tool_manner *how, int argc, char **argv);
int command_object(const tool_manner *how, int argc, char **argv);

/* starter.c */
int command_new(const tool_manner *how, int argc, char **argv);

/* bench.c */
/** What is measured of a kernel; times that were not measured are -1. */
typedef struct figures {
    double load_ms, compile_ms, launch_ns, prepared_ns, device_ns;
    qn_work work;
    double hit_ns; /* -1 where it is lost in the run */
} figures;
/** Measures; `what` begins the line of progress. */
int bench_measure(const tool_line *line, const tool_job *job, const char *what, figures *out);
/** Nanoseconds of one run, from which rates are computed. */
double figures_run_ns(const figures *f);
/** Its members of JSON. */
void figures_json(json *j, const figures *f);
int command_bench(const tool_line *line);

/* sweep.c */
/** bench of each value of --over, or of both layouts. */
int command_sweep(const tool_line *line);

#endif
