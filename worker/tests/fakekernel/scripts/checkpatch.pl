#!/usr/bin/perl
# Finds one thing, in the real one's long format: C++ comments.
use strict;
@ARGV = grep { !/^--/ } @ARGV;
my ($file, $line, $count) = ("", 0, 0);
while (<>) {
    $count++;
    $file = $1 if m{^\+\+\+ b/(.*)};
    $line = $1 - 1 if /^@@ -\d+(?:,\d+)? \+(\d+)/;
    $line++ if /^[ +]/ && !/^\+\+\+/;
    print "WARNING:C99_COMMENTS: no C99 comments\n#$count: FILE: $file:$line:\n$_\n\n" if m{^\+.*//};
}
