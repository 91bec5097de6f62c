#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# TAP: the code of the pages. Every block between ``` has a rule here, in the order of its page: it is run, compiled or
# parsed, or it is tested by another script, or it is no code. A page with more blocks than rules fails, but where all of
# its blocks are tested by one other script.
use strict;
use warnings;
use Cwd 'abs_path';
use File::Temp;

my $root = abs_path($ENV{QN_SOURCE_DIR} // do { (my $d = $0) =~ s{[^/]*$}{../..}; $d });
my $build = $ENV{QN_BUILD_DIR} // "$root/build/release";
my $folder = File::Temp->newdir;
my ($n, $failed) = (0, 0);
my $has_code = (`grep -c avx2 /proc/cpuinfo` || 0) > 0; # generated code is for x86-64-v3 and later
my $is_sanitized = system("grep -qE '^QUERN_SANITIZE:[A-Z]*=.' '$build/CMakeCache.txt' 2>/dev/null") == 0;
$ENV{PATH} = "$build:$ENV{PATH}";
$ENV{QUERN_CACHE} = 'off';
delete $ENV{$_} for qw(QUERN_VERBOSE QUERN_SUMMARY QUERN_PEAKS);
symlink "$root/examples", "$folder/examples" or die;
system "cp $root/examples/kernels/*.qn '$folder'";

sub slurp {
    my ($path) = @_;
    open my $f, '<', $path or return '';
    local $/;
    return <$f>;
}

sub report {
    my ($is_good, $what, $log) = @_;
    $n++;
    $failed ||= !$is_good;
    print $is_good ? '' : 'not ', "ok $n - $what\n";
    print map { "# $_\n" } grep { length } (split /\n/, $log // '')[0 .. 20] if !$is_good;
}

sub skip {
    my ($what, $why) = @_;
    $n++;
    print "ok $n - $what # SKIP $why\n";
}

# A file in the folder; its name.
sub file {
    my ($name, $text) = @_;
    open my $f, '>', "$folder/$name" or die "$name: $!";
    print $f $text;
    close $f;
    return "$folder/$name";
}

# Numbers and blanks differ from run to run.
sub plain {
    my ($line) = @_;
    $line =~ s/x86-64-v[34](-bytes)?/PROCESSOR/g;
    $line =~ s/\d+(\.\d+)?/N/g;
    $line =~ s/\s+/ /g;
    $line =~ s/^ | $//g;
    return $line;
}

# Runs the lines of a block: all of them, or those behind "$ ", whose output follows. Variables live as long as the block.
sub run_shell {
    my ($what, $text, $only) = @_;
    return skip($what, 'the processor is below x86-64-v3') if !$has_code;
    $text =~ s/\\\n\s*/ /g;
    my $has_output = $text =~ /^\$ /m;
    my (@commands, @expected);
    for my $line (split /\n/, $text) {
        my $is_command = !$has_output || $line =~ /^\$ /;
        $line =~ s/^\$ //;
        if ($is_command) {
            push @commands, $line if !defined $only || $line =~ $only;
        } else {
            push @expected, $line;
        }
    }
    my $script = file('run.sh', "set -e\n" . join("\n", @commands) . "\n");
    my $output = `cd '$folder' && bash '$script' 2>&1`;
    my $is_good = $? == 0 && @commands > 0;
    my %found = map { plain($_) => 1, plain(s/^quern: //r) => 1 } split /\n/, $output;
    my @missing = grep { !$found{plain($_)} } @expected;
    report($is_good && !@missing, $what, join("\n", (map { "the page has: $_" } @missing), $output));
}

# Compiles C or C++: a file if the block has functions or `is_file`, else the body of a function, behind declarations.
sub compile {
    my ($what, $text, $is_cpp, $before, $inside) = @_;
    my $compiler = $is_cpp ? $ENV{CXX} // 'c++' : $ENV{CC} // 'cc';
    return skip($what, "no $compiler") if system("command -v $compiler > /dev/null") != 0;
    my $includes = join '', $text =~ /^(#include.*\n)/mg;
    $text =~ s/^#include.*\n//mg;
    my $header = $is_cpp ? "#include \"quern.hpp\"\n#include <array>\n" : "#include \"quern/embed.h\"\n#include <stdio.h>\n";
    my $code = "$header$includes$before\n";
    my ($functions, $body) = ('', $text);
    ($functions, $body) = ($1, $2) if $text =~ /\A(static .*^\}\n)(.*)\z/ms;
    $body =~ s/^\.\.\.$//mg;
    $code .= $functions . "void snippet(void);\nvoid snippet(void)\n{\n$inside\n$body\n}\n";
    my $path = file($is_cpp ? 'page.cpp' : 'page.c', $code);
    my $standard = $is_cpp ? 'c++17' : 'c11';
    my $log = `$compiler -std=$standard -fsyntax-only -Wall -Wextra -Werror -Wno-unused -I'$root/include' -I'$folder' '$path' 2>&1`;
    report($? == 0, $what, $log);
}

# A kernel text is what it is after it was parsed and printed; a part stands in a kernel.
sub parse {
    my ($what, $text, $before, $after) = @_;
    my $path = file('page.qn', $before . $text . $after);
    my $log = `quern print '$path' 2>&1`;
    report($? == 0, $what, $log);
}

# Runs Python behind other lines.
sub python {
    my ($what, $text, $before, $after) = @_;
    return skip($what, 'the package is not built here') if !-f "$build/python/quern/_quern.abi3.so" || $is_sanitized;
    my $path = file('page.py', "$before\n$text\n$after\n");
    my $python = $ENV{PYTHON3} // 'python3';
    my $log = `PYTHONPATH='$build/python' $python '$path' 2>&1`;
    return skip($what, 'no numpy') if $log =~ /No module named 'numpy'/;
    report($? == 0, $what, $log);
}

# Commands of ./bootstrap are those of its usage; programs of the build have a source.
my $bootstrap = slurp("$root/bootstrap");
sub names {
    my ($what, $text) = @_;
    my @unknown;
    while ($text =~ m{(?:^|[\s\$(])\./bootstrap (\w[\w-]*)}g) {
        push @unknown, "./bootstrap $1" if $bootstrap !~ /^\Q$1\E\)/m;
    }
    while ($text =~ m{build/(?:release|portable)/(tests/)?(\w+)}g) {
        push @unknown, $2 if $2 !~ /^(quern|bench_main|bench_cuda|python|examples)$/ && !(glob "$root/tests/*/$2*.c $root/tests/unit/*/$2.c");
    }
    report(!@unknown, $what, join "\n", @unknown);
}

# What blocks of C assume to be there, as their pages say.
my $host = 'qn_error err; qn_context *context = 0, *c = 0; qn_kernel *kernel = 0; int n = 1; qn_arg args[8] = {{0}}; ' .
    'qn_builder *b = 0; qn_val speed = {0}, i = {0}, v = {0}, result; qn_param x = {0}; (void)0;';
my $gpu = 'qn_error err; qn_context *context = 0; qn_kernel *kernel = 0; int64_t n = 1; qn_arg args[3] = {{0}}; ' .
    'qn_view_type type = {0}; qn_view on_host, result;';
my $record = 'qn_error err; qn_context *c = 0; qn_layout layout = {0}; qn_view p; qn_builder *b = 0; qn_val i = {0};';
my $function = 'qn_error err; qn_builder *kernel_builder = 0; qn_val v = {0}, result;';

# page => rules of its blocks: [kind, ...].
my @nothing = ('no code', 'output');
my @grammar = ('no code', 'grammar');
my %rules = (
    'README.md' => [['names'], (map { ['elsewhere', 'readme.sh'] } 1 .. 2), ['parse', '', ''], ['elsewhere', 'readme.sh'], ['no code', 'folders']],
    'docs/adding-a-dtype.md' => [['no code', 'a row of a table']],
    'docs/adding-a-reducer.md' => [['no code', 'a row of a table']],
    'docs/adding-a-transformation.md' => [['no code', 'the head of a function']],
    'docs/adding-an-op.md' => [['no code', 'a row with a blank to fill in']],
    'docs/ahead-of-time.md' => [['shell'], ['c', '', $host], ['shell'],
        ['c', 'static int64_t rows, columns; static double *old_data, *new_data;', '']],
    'docs/estimate.md' => [[@nothing], [@nothing]],
    'docs/benchmarks.md' => [['names'], [@nothing], ['no code', 'needs Kokkos'], ['names'], ['no code', 'needs nvcc and a GPU'], ['names']],
    'docs/coming-from.md' => [['all elsewhere', 'views_doc.pl']],
    'docs/cuda.md' => [['c', '', $gpu]],
    'docs/debugging.md' => [[@nothing], ['c', '', ''], [@nothing], [@nothing], [@nothing]],
    'docs/differential.md' => [['names']],
    'docs/dtypes.md' => [['c', '', $record]],
    'docs/embedding.md' => [['c', '', $host], ['c', '', $host], [@nothing], ['c', '', '']],
    'docs/fortran.md' => [['all elsewhere', 'fortran.sh']],
    'docs/functions.md' => [['parse', '', ''], ['c', '', $function], ['lookup']],
    'docs/interop.md' => [['cpp', '', ''], ['cpp', '', 'quern::builder builder("k"); quern::value p, q;'], ['no code', 'needs packages: tests/packages'],
        ['elsewhere', 'install.sh'], ['elsewhere', 'install.sh'], ['no code', 'needs Conan']],
    'docs/kernel-text.md' => [(map { ['elsewhere', 'tests/unit/ir/test_expressions.c'] } 1 .. 8), [@grammar], ['parse', "kernel \"k\" {\n", "%zero: i64 = const 0; %v: f32 = load x[%zero, %zero]; store x[%zero, %zero], %v;\n}\n"], [@nothing]],
    'docs/language.md' => [['all elsewhere', 'language.sh']],
    'docs/lowering.md' => [['no code', 'a drawing']],
    'docs/lua.md' => [['all elsewhere', 'lua.sh']],
    'docs/math.md' => [['names']],
    'docs/observing.md' => [['shell'], ['shell'], ['no code', 'needs perf'], ['no code', 'needs gdb']],
    'docs/overview.md' => [['no code', 'a drawing']],
    'docs/python.md' => [['names'], ['python', '', ''],
        ['python', "import numpy as np, quern\nx = np.ones(9); y = np.zeros(9)", 'a = np.eye(3); c = np.zeros((3, 3)); matmul(c, a, a); assert (c == a).all() and y[4] == 1'],
        ['python', "import numpy as np, quern\nx = np.ones((4, 5), np.float32); y = np.zeros((4, 5), np.float32)\ntext = '''kernel \"k\" {\n" .
            "view x: f32[2]; view y: f32[2]; scalar a: f32; %0: i64 = const 0; %n: i64 = extent y, 0; %m: i64 = extent y, 1;\n" .
            "%i: i64 = parallel %0, %n; %j: i64 = parallel %0, %m; %a: f32 = param a; %v: f32 = load x[%i, %j]; %r: f32 = mul %a, %v; store y[%i, %j], %r; }'''", ''],
        [@nothing]],
    'docs/random.md' => [['parse', "kernel \"k\" { view y: f32[1]; view z: u32[1]; scalar seed: u64; scalar n: u32; %zero: i64 = const 0;\n" .
            "%end: i64 = extent y, 0; %i: i64 = parallel %zero, %end; %n: u32 = param n;\n", "store y[%i], %u; store z[%i], %word; }\n"]],
    'docs/running.md' => [['c', '', ''], ['c', '', ''], ['shell']],
    'docs/schedule-text.md' => [['elsewhere', 'tests/unit'], ['shell'], [@grammar]],
    'docs/testing.md' => [['names'], ['no code', 'a case file with dots in it'], ['no code', 'needs a GPU']],
    'docs/tool.md' => [['elsewhere', 'pages.sh'], ['shell']],
    'docs/tuning.md' => [['elsewhere', 'examples.sh']],
    'docs/tutorial.md' => [['all elsewhere', 'examples.sh']],
    'docs/views.md' => [['c', '', 'qn_error err; qn_context *c = 0; qn_kernel *k = 0; qn_builder *b = 0; qn_val i = {0}, j = {0}; ' .
        'qn_param x = {0}, y = {0}; qn_view whole = {0}, part = {0};']],
    'docs/which-tool.md' => [['names']],
);

my %kinds = (
    shell => sub { my ($what, $text, $only) = @_; run_shell($what, $text, $only) },
    c => sub { my ($what, $text, @more) = @_; compile($what, $text, 0, @more) },
    cpp => sub { my ($what, $text, @more) = @_; compile($what, $text, 1, @more) },
    parse => \&parse,
    lookup => sub {
        my ($what, $text) = @_;
        my ($array, $op) = $text =~ /\A(.*)\n\.\.\.\n(.*)\n\z/ or return report(0, $what, $text);
        parse($what, "kernel \"k\" { view y: f64[1];\n$array\n%zero: i64 = const 0; %end: i64 = extent y, 0;\n" .
            "%i: i64 = parallel %zero, %end;\n$op\nstore y[%i], %c; }\n", '', '');
    },
    python => \&python,
    names => \&names,
);

print "TAP version 13\n";
for my $path ('README.md', map { s{^\Q$root\E/}{}r } sort glob "$root/docs/*.md") {
    my @blocks = slurp("$root/$path") =~ /^ *```\w*\n(.*?)^ *```$/gms;
    my @of_page = @{ $rules{$path} // [] };
    if (@of_page && $of_page[0][0] eq 'all elsewhere') {
        report(slurp("$root/tests/check/$of_page[0][1]") =~ m{\Q$path\E}, "$path is tested by tests/check/$of_page[0][1]");
        next;
    }
    report(@blocks == @of_page, "$path: " . scalar(@blocks) . ' blocks have a rule each', 'rules: ' . @of_page);
    for my $i (0 .. $#of_page) {
        my ($kind, @more) = @{ $of_page[$i] };
        next if $i > $#blocks || !$kinds{$kind};
        $kinds{$kind}->("$path: block " . ($i + 1) . ", $kind", $blocks[$i], @more);
    }
}
report(!(grep { !-f "$root/$_" } keys %rules), 'every page with rules is there');
print "1..$n\n";
exit $failed;
