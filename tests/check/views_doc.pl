#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# TAP: what docs/views.md and docs/coming-from.md name is there: test functions, case files, qn_ functions, types and
# constants; the table of docs/views.md has every row of the specification of views; the C snippets of
# docs/coming-from.md compile, each as the body of a function with the names that the page says; and docs/adding-an-op.md
# lists the files that the op table reaches.
use strict;
use warnings;
use File::Temp;

my $root = $ENV{QN_SOURCE_DIR} // do { (my $d = $0) =~ s{[^/]*$}{../..}; $d };
my ($n, $failed) = (0, 0);

sub slurp {
    my ($path) = glob "$root/$_[0]";
    open my $f, '<', $path // return '' or return '';
    local $/;
    return <$f>;
}

sub ok {
    my ($is_good, $what) = @_;
    $n++;
    $failed ||= !$is_good;
    print $is_good ? '' : 'not ', "ok $n - $what\n";
}

print "TAP version 13\n";

# The rows of the specification: prefix and last number.
my %last = (VC => 22, ET => 7, RK => 11, LY => 27, IM => 6, MV => 4, MS => 7, MT => 9, RC => 7, EA => 5, BC => 11,
            AC => 6, AS => 3, EQ => 1, SV => 11, OV => 3, RS => 3, DC => 7, MI => 3, MD => 5, DR => 7,
            PP => 15, AT => 7, EX => 2, CO => 6, IO => 4,
            'X0.' => 23, 'X1.' => 22, 'X2.' => 6, 'X3.' => 8, 'X4.' => 30);

my $views = slurp('docs/views.md');
my (%seen, @missing, @silent);
my $n_tests = 0;
for my $line (grep { /^\|/ } split /\n/, $views) {
    my @cell = map { s/^\s+|\s+$//gr } split /\|/, $line, -1;
    next if @cell != 6 || $cell[1] =~ /^(rows|---|\*\*.*)$/;
    my ($ids, $tests) = @cell[1, 4];
    for my $id (split /, */, $ids) {
        if ($id =~ /^(\D+|X\d\.)(\d+)-(?:\D+|X\d\.)(\d+)$/) { $seen{"$1$_"} = 1 for $2 .. $3 }
        else { $seen{$id} = 1 }
    }
    push @silent, $ids if $tests eq '' && $cell[3] !~ m{\bn/a\b|\bnot yet\b};
    for my $group (split /; */, $tests) {
        my ($file, $names) = $group =~ /^(\w+): (.*)$/;
        if ($group =~ /^case /) {
            for my $case ($group =~ /`(\w+)`/g) {
                $n_tests++;
                push @missing, "case $case" unless () = glob("$root/tests/cases/*/$case.case");
            }
            next;
        }
        if (!defined $file) { push @missing, "a test in '$group'"; next }
        my $text = slurp("tests/unit/*/test_$file.c") || slurp("tests/interop/test_$file.c") ||
                   slurp("tests/interop/test_$file.cpp");
        for my $test ($names =~ /`(\w+)`/g) {
            $n_tests++;
            push @missing, "$file: $test" unless $text =~ /^(?:static )?(?:void|bool) $test\(/m;
        }
    }
}
ok(!@missing && $n_tests > 100, "$n_tests tests named in docs/views.md exist");
print "# not there: $_\n" for @missing;

ok(!@silent, 'a line without a test says "n/a" or "not yet"');
print "# neither a test nor a reason: $_\n" for @silent;

my @rows;
for my $prefix (sort keys %last) {
    push @rows, grep { !$seen{$_} } map { "$prefix$_" } 1 .. $last{$prefix};
}
ok(!@rows, 'the table has all rows of the specification');
print "# without a row: @rows\n" if @rows;

my $api = join '', map { slurp($_) } map { s{^\Q$root\E/}{}r } glob("$root/include/*.h $root/include/quern/*.h");
$api .= join ' ', map { "qn_$_" } slurp('include/quern/ops.def') =~ /^QN_OP\(\w+, *(\w+)/mg;
$api .= join ' ', '', map { "QN_$_" } slurp('include/quern/dtypes.def') =~ /^QN_DTYPE\((\w+)/mg;
$api .= join ' ', '', map { "QN_COMBINE_$_" } slurp('include/quern/reducers.def') =~ /^QN_REDUCER\((\w+)/mg;
for my $page ('docs/views.md', 'docs/coming-from.md') {
    my $text = slurp($page);
    # Statuses, spaces and dumps come from lists without their prefix.
    my %names = map { $_ => 1 } $text =~ /\b((?:qn|QN)_[A-Za-z0-9_]*[A-Za-z0-9])\b/g;
    my @unknown;
    for my $name (sort keys %names) {
        (my $short = $name) =~ s/^QN_(?:SPACE_|COMBINE_|DUMP_)?//;
        push @unknown, $name unless $api =~ /\b$name\b/ || $api =~ /X\($short,/;
    }
    ok($text && !@unknown, "$page: " . keys(%names) . ' names of the API exist');
    print "# unknown: @unknown\n" if @unknown;
}
my ($consumers) = slurp('docs/adding-an-op.md') =~ /^\| from \|.*?\n((?:\|.*\n)+)/m;
my @listed = sort map { /^\| `([^`]+)`/ ? $1 : () } split /\n/, $consumers // '';
my @found = sort grep { slurp($_) =~ m{^#include "quern/ops\.def"}m } map { s{^\Q$root\E/}{}r }
    map { glob "$root/$_" } qw(include/*.h include/quern/*.h ir/*.[ch] ir/*/*.[ch] jit/*.h jit/*/*.[ch] runtime/*.[ch] runtime/cuda/*.[ch]);
ok(@found && "@listed" eq "@found", 'docs/adding-an-op.md lists the files that the rows of the op table reach');
print "# listed: @listed\n# found: @found\n" if "@listed" ne "@found";

my @snippets = slurp('docs/coming-from.md') =~ /^```c\n(.*?)^```$/gms;
my $code = "#include \"quern.h\"\n";
$code .= "void snippet_$_(void);\nvoid snippet_$_(void)\n{\nqn_error err;\nqn_context *c = 0;\nqn_view a = {0}, b = {0}, " .
         "v = {0}, w = {0};\nqn_layout l, m;\nqn_builder *B = 0;\nqn_param x = {0}, y = {0}, z = {0};\n" .
         "qn_val i = {0}, j = {0}, k = {0};\nint64_t n = 7;\ndouble *data = 0;\n$snippets[$_]\n}\n"
    for 0 .. $#snippets;
my $file = File::Temp->new(SUFFIX => '.c');
print $file $code;
close $file;
my $compiler = $ENV{CC} // 'cc';
my $log = `$compiler -std=c11 -fsyntax-only -Wall -Wextra -Werror -Wno-unused -I'$root/include' $file 2>&1`;
ok(@snippets > 6 && $? == 0, @snippets . ' snippets of docs/coming-from.md compile');
print map { "# $_\n" } grep { length } (split /\n/, $log)[0 .. 20] if $log;
print "1..$n\n";
exit $failed;
