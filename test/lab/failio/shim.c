// LD_PRELOAD: makes writes under FAIL_PREFIX fail. FAIL_CONTROL: a file of four int64 (little endian) that the program under test,
// or another one, changes at any time: [0] calls until the first failure (0: none), [1] how many calls fail, [2] errno, [3] calls seen.
// FAIL_SPARED: ends of names, with commas, of files that never fail: such as are written in place, for which a full disk has room.
// Build: gcc -O1 -shared -fPIC -o shim.so shim.c -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_FD 4096
#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name)

static char watched[MAX_FD];
static const char *prefix;
static volatile int64_t *control;

static void init(void) {
  if (prefix) return;
  const char *path = getenv("FAIL_CONTROL");
  static int (*real)(const char *, int, ...);
  real = dlsym(RTLD_NEXT, "open64");
  int fd = path ? real(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd >= 0) {
    void *map = mmap(NULL, 32, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) control = map;
  }
  prefix = getenv("FAIL_PREFIX");
  if (!prefix) prefix = "\1";
}

static int is_spared(const char *path) {
  const char *spared = getenv("FAIL_SPARED");
  size_t length = strlen(path);
  while (spared && *spared) {
    size_t end = strcspn(spared, ",");
    if (end > 0 && end <= length && !strncmp(path + length - end, spared, end)) return 1;
    spared += end + (spared[end] == ',');
  }
  return 0;
}

static int opened(int fd, const char *path) {
  init();
  if (fd >= 0 && fd < MAX_FD) watched[fd] = !strncmp(path, prefix, strlen(prefix)) && !strstr(path, "-shm") && !is_spared(path);
  return fd;
}

static int fails(int is_watched) {
  if (!is_watched || !control) return 0;
  control[3]++;
  if (control[0] == 0) return 0;
  if (control[0] > 1) { control[0]--; return 0; }
  if (control[1] <= 0) { control[0] = 0; return 0; }
  control[1]--;
  errno = (int)control[2];
  return 1;
}
static int is_watched(int fd) { return fd >= 0 && fd < MAX_FD && watched[fd]; }

int open64(const char *path, int flags, ...) {
  REAL(open64);
  va_list args; va_start(args, flags); int mode = va_arg(args, int); va_end(args);
  return opened(real(path, flags, mode), path);
}
int open(const char *path, int flags, ...) {
  REAL(open);
  va_list args; va_start(args, flags); int mode = va_arg(args, int); va_end(args);
  return opened(real(path, flags, mode), path);
}
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t o) { REAL(pwrite64); return fails(is_watched(fd)) ? -1 : real(fd, b, n, o); }
ssize_t pwrite(int fd, const void *b, size_t n, off_t o) { REAL(pwrite); return fails(is_watched(fd)) ? -1 : real(fd, b, n, o); }
ssize_t write(int fd, const void *b, size_t n) { REAL(write); return fails(is_watched(fd)) ? -1 : real(fd, b, n); }
int fdatasync(int fd) { REAL(fdatasync); return fails(is_watched(fd)) ? -1 : real(fd); }
int fsync(int fd) { REAL(fsync); return fails(is_watched(fd)) ? -1 : real(fd); }
int ftruncate64(int fd, off64_t size) { REAL(ftruncate64); return fails(is_watched(fd)) ? -1 : real(fd, size); }
int ftruncate(int fd, off_t size) { REAL(ftruncate); return fails(is_watched(fd)) ? -1 : real(fd, size); }
int rename(const char *from, const char *to) {
  REAL(rename);
  init();
  return fails(!strncmp(from, prefix, strlen(prefix))) ? -1 : real(from, to);
}
int close(int fd) {
  REAL(close);
  if (fd >= 0 && fd < MAX_FD) watched[fd] = 0;
  return real(fd);
}
