# Starts the program that its arguments name, with a socket to the service manager open as file descriptor NOTIFY_FD. Node has no datagram
# sockets of files, and writes to one that it is given. The program takes this process over, so that its notifications come from the
# main process of the unit (NotifyAccess=main). perl-base is on every Debian and Ubuntu; no module beyond it is used.
use strict;
use warnings;
use Fcntl;
use Socket;

delete $ENV{NOTIFY_FD};
my $target = $ENV{NOTIFY_SOCKET} // '';
my $name = $target =~ s/^@/\0/r;
my $manager;
if ($target =~ m{^[/@]} && length($name) < 108
  && socket($manager, AF_UNIX, SOCK_DGRAM, 0) && connect($manager, pack_sockaddr_un($name))
  # A notification that cannot be taken at once is dropped; the program's own children do not inherit the socket, Node sees to that.
  && fcntl($manager, F_SETFL, O_RDWR | O_NONBLOCK) && fcntl($manager, F_SETFD, 0)) {
  $ENV{NOTIFY_FD} = fileno $manager;
} else {
  # The program runs on without, and logs that.
  warn "collector: NOTIFY_SOCKET=$target cannot be connected: $!\n";
}
exec { $ARGV[0] } @ARGV or die "collector: $ARGV[0] cannot be started: $!\n";
