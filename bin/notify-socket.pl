# Starts the program that its arguments name, with a socket to the service manager open as file descriptor NOTIFY_FD, and, where its output
# goes to the journal, one to that as JOURNAL_FD. Node has no datagram sockets of files, and writes to one that it is given. The program takes
# this process over, so that its notifications come from the main process of the unit (NotifyAccess=main). perl-base is on every Debian and
# Ubuntu; no module beyond it is used.
use strict;
use warnings;
use Fcntl;
use Socket;

delete @ENV{qw(NOTIFY_FD JOURNAL_FD)};
# Kept until the program has them.
my @open;

# The number of a socket that is connected with a path or an abstract name; undefined: there is nobody.
sub connected {
  my ($target) = @_;
  my $name = $target =~ s/^@/\0/r;
  return undef if $target !~ m{^[/@]} || length($name) >= 108;
  my $socket;
  # What cannot be taken at once is not waited for; the program's own children do not inherit the socket, Node sees to that.
  return undef unless socket($socket, AF_UNIX, SOCK_DGRAM, 0) && connect($socket, pack_sockaddr_un($name))
    && fcntl($socket, F_SETFL, O_RDWR | O_NONBLOCK) && fcntl($socket, F_SETFD, 0);
  push @open, $socket;
  return fileno $socket;
}

my $target = $ENV{NOTIFY_SOCKET} // '';
$ENV{NOTIFY_FD} = connected($target) // do {
  # The program runs on without, and logs that.
  warn "collector: NOTIFY_SOCKET=$target cannot be connected: $!\n";
  '';
};
delete $ENV{NOTIFY_FD} if $ENV{NOTIFY_FD} eq '';
if (($ENV{JOURNAL_STREAM} // '') ne '') {
  # Without it the lines go to the output, where the journal takes them without their fields.
  my $journal = connected($ENV{COLLECTOR_JOURNAL_SOCKET} // '/run/systemd/journal/socket');
  $ENV{JOURNAL_FD} = $journal if defined $journal;
}
exec { $ARGV[0] } @ARGV or die "collector: $ARGV[0] cannot be started: $!\n";
