# Restricts its own process and then runs another program in it: a decoder, an engine. The restrictions outlive the
# program change, so they hold for every thread that the program ever makes, and nothing of the program has run before.
# What the kernel does not know is left out. Started by Launch.ts, which also says what the arguments mean; Perl, because
# it can make system calls, needs 2 ms to start, and is in every Debian and Ubuntu.
use strict;

my ($prctl, $capset, $prlimit) = $ENV{EDGEWISE_ARCH} eq 'arm64' ? (167, 91, 261) : (157, 126, 302);
my ($landlock_create, $landlock_add, $landlock_restrict, $close_range) = (444, 445, 446, 436);
delete @ENV{'EDGEWISE_ARCH', 'PERL_BADLANG'};

my (@limits, @paths, @kept, $seccomp, $report, %done);
while (defined(my $given = shift)) {
  last if $given eq '--';
  my ($name, $value) = split /=/, $given, 2;
  if ($name eq 'limit') { push @limits, [split /:/, $value] }
  elsif ($name eq 'path') { push @paths, [split /:/, $value, 2] }
  elsif ($name eq 'seccomp') { $seccomp = pack 'H*', $value }
  elsif ($name eq 'report') { $report = 1 }
}

umask 077;
# Files and sockets of the parent: standard streams and the message channel are all that it is meant to have.
my $channel = ($ENV{NODE_CHANNEL_FD} || 2) + 0;
syscall($close_range, ($channel > 2 ? $channel : 2) + 1, 0xffffffff, 0);

my $limited = 1;
for my $limit (@limits) {
  my $both = pack 'QQ', $limit->[1], $limit->[1];
  $limited = 0 if syscall($prlimit, 0, $limit->[0] + 0, $both, 0) != 0;
}
$done{rlimits} = 1 if $limited && @limits;

# PR_SET_NO_NEW_PRIVS
$done{'no-new-privs'} = 1 if syscall($prctl, 38, 1, 0, 0, 0) == 0;

# The rules are made while the paths can still be opened with all the node's rights.
my $abi = @paths ? syscall($landlock_create, 0, 0, 1) : -1;
my $rules = -1;
if ($abi > 0) {
  my $known = $abi >= 5 ? 0xffff : $abi >= 3 ? 0x7fff : $abi >= 2 ? 0x3fff : 0x1fff;
  # TCP from version 4 on: none. Signals and abstract sockets outside, from version 6 on: none.
  my $attributes = pack 'QQQ', $known, 3, 3;
  $rules = syscall($landlock_create, $attributes, $abi >= 6 ? 24 : $abi >= 4 ? 16 : 8, 0);
  for my $rule ($rules < 0 ? () : @paths) {
    my ($access, $path) = @$rule;
    # A rule holds for what the path names now: below /proc/self, for this process, which keeps its id when it becomes the
    # program, and not for its children. The system may forget a file of /proc, and the rule with it, unless it stays open.
    my $own = $path =~ m{^/proc/self/};
    local $^F = $own ? 1 << 20 : $^F;
    # O_PATH, and O_CLOEXEC unless it stays open.
    sysopen(my $file, $path, 010000000 | ($own ? 0 : 02000000)) or next;
    push @kept, $file if $own;
    # A file has none of the rights over what is in a folder.
    my $allowed = $access & $known & (-d $path ? 0xffff : 0xc007);
    my $beneath = pack 'Ql', $allowed, fileno $file;
    syscall($landlock_add, $rules, 1, $beneath, 0);
  }
}

# PR_CAPBSET_DROP for each, then none in the three sets; PR_CAP_AMBIENT_CLEAR_ALL.
syscall($prctl, 24, $_, 0, 0, 0) for 0 .. 63;
syscall($prctl, 47, 4, 0, 0, 0);
my ($version, $none) = (pack('LL', 0x20080522, 0), pack 'L6', (0) x 6);
$done{'no-capabilities'} = 1 if syscall($capset, $version, $none) == 0;

if ($rules >= 0 && syscall($landlock_restrict, $rules, 0) == 0) {
  $done{"landlock-$abi"} = 1;
}

if ($seccomp) {
  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER; 8 bytes an instruction
  my $program = pack 'Sx![Q]P', length($seccomp) / 8, $seccomp;
  $done{seccomp} = 1 if syscall($prctl, 22, 2, $program, 0, 0) == 0;
}

syswrite STDOUT, join(' ', sort keys %done) . "\n" if $report;
exec { $ARGV[0] } @ARGV or exit 127;
