/* A file system without locks, such as NFS without lockd: fcntl refuses each with ENOLCK (fcntl(2)). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

static int refused(int cmd) { return cmd == F_SETLK || cmd == F_SETLKW || cmd == F_OFD_SETLK || cmd == F_OFD_SETLKW; }

#define WRAP(NAME)                                                                \
  int NAME(int fd, int cmd, ...) {                                                \
    static int (*real)(int, int, ...);                                            \
    if (!real) real = (int (*)(int, int, ...))dlsym(RTLD_NEXT, #NAME);            \
    va_list rest;                                                                 \
    va_start(rest, cmd);                                                          \
    void *argument = va_arg(rest, void *);                                        \
    va_end(rest);                                                                 \
    if (refused(cmd)) {                                                           \
      errno = ENOLCK;                                                             \
      return -1;                                                                  \
    }                                                                             \
    return real(fd, cmd, argument);                                               \
  }

WRAP(fcntl)
WRAP(fcntl64)
