// LD_PRELOAD: another wall clock. CLOCK_CONTROL: a file of two int64 (little endian) that the program under test, or another one, changes
// at any time: [0] ms that the wall clock is ahead, [1] for the program under test. The monotonic clocks are not touched.
// Build: gcc -O1 -shared -fPIC -o shim.so shim.c -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *control;
static int (*real_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void init(void) {
  real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  const char *path = getenv("CLOCK_CONTROL");
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void *map = mmap(NULL, 16, PROT_READ, MAP_SHARED, fd, 0);
  if (map != MAP_FAILED) control = map;
  close(fd);
}

int clock_gettime(clockid_t id, struct timespec *at) {
  if (!real_gettime) init();
  int result = real_gettime(id, at);
  if (result || !control || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return result;
  int64_t ms = control[0];
  int64_t ns = at->tv_nsec + (ms % 1000) * 1000000;
  at->tv_sec += ms / 1000;
  if (ns < 0) { ns += 1000000000; at->tv_sec--; }
  if (ns >= 1000000000) { ns -= 1000000000; at->tv_sec++; }
  at->tv_nsec = ns;
  return 0;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) { at->tv_sec = now.tv_sec; at->tv_usec = now.tv_nsec / 1000; }
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
