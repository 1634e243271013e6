// LD_PRELOAD recorder of what a program asks of a disk. PL_PREFIX: the folder to watch; PL_LOG: the log to append to.
// Records every write, truncation, rename, unlink and fsync under PL_PREFIX in program order, except SQLite's -shm files,
// which hold nothing that has to last. Record: op (1), name length (2), offset (8), data length (4), name, data; little endian.
// Ops: w write at an offset, a append, t truncate, s fsync, u unlink, r rename (data: the new name).
// Build: gcc -O1 -shared -fPIC -o shim.so shim.c -ldl -lpthread
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_FD 4096
#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name)

static int log_fd = -1;
static char names[MAX_FD][256];
static const char *prefix;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static ssize_t raw_write(int fd, const void *bytes, size_t count) {
  static ssize_t (*real)(int, const void *, size_t);
  if (!real) real = dlsym(RTLD_NEXT, "write");
  return real(fd, bytes, count);
}

static void record(char op, const char *name, int64_t offset, const void *data, uint32_t count) {
  if (log_fd < 0) return;
  uint16_t length = strlen(name);
  char head[15];
  head[0] = op;
  memcpy(head + 1, &length, 2);
  memcpy(head + 3, &offset, 8);
  memcpy(head + 11, &count, 4);
  pthread_mutex_lock(&mutex);
  raw_write(log_fd, head, sizeof head);
  raw_write(log_fd, name, length);
  if (count && data) raw_write(log_fd, data, count);
  pthread_mutex_unlock(&mutex);
}

static void init(void) {
  if (prefix) return;
  const char *log = getenv("PL_LOG");
  static int (*real)(const char *, int, ...);
  real = dlsym(RTLD_NEXT, "open64");
  if (log) log_fd = real(log, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
  prefix = getenv("PL_PREFIX");
  if (!prefix) prefix = "\1";
}

static int is_watched(const char *path) {
  init();
  return !strncmp(path, prefix, strlen(prefix)) && !strstr(path, "-shm");
}

static const char *name_of(int fd) { return fd >= 0 && fd < MAX_FD && names[fd][0] ? names[fd] : NULL; }

static int opened(int fd, const char *path, int flags) {
  if (fd < 0 || fd >= MAX_FD) return fd;
  names[fd][0] = 0;
  if (!is_watched(path)) return fd;
  snprintf(names[fd], sizeof names[fd], "%s", path);
  if (flags & O_TRUNC) record('t', path, 0, NULL, 0);
  return fd;
}

int open64(const char *path, int flags, ...) {
  REAL(open64);
  va_list args; va_start(args, flags); int mode = va_arg(args, int); va_end(args);
  return opened(real(path, flags, mode), path, flags);
}
int open(const char *path, int flags, ...) {
  REAL(open);
  va_list args; va_start(args, flags); int mode = va_arg(args, int); va_end(args);
  return opened(real(path, flags, mode), path, flags);
}
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
  REAL(pwrite64);
  ssize_t done = real(fd, bytes, count, offset);
  if (done > 0 && name_of(fd)) record('w', names[fd], offset, bytes, done);
  return done;
}
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
  REAL(pwrite);
  ssize_t done = real(fd, bytes, count, offset);
  if (done > 0 && name_of(fd)) record('w', names[fd], offset, bytes, done);
  return done;
}
ssize_t write(int fd, const void *bytes, size_t count) {
  ssize_t done = raw_write(fd, bytes, count);
  if (done > 0 && name_of(fd)) record('a', names[fd], -1, bytes, done);
  return done;
}
int fdatasync(int fd) {
  REAL(fdatasync);
  int result = real(fd);
  if (name_of(fd)) record('s', names[fd], 0, NULL, 0);
  return result;
}
int fsync(int fd) {
  REAL(fsync);
  int result = real(fd);
  if (name_of(fd)) record('s', names[fd], 0, NULL, 0);
  return result;
}
int ftruncate64(int fd, off64_t size) {
  REAL(ftruncate64);
  int result = real(fd, size);
  if (!result && name_of(fd)) record('t', names[fd], size, NULL, 0);
  return result;
}
int ftruncate(int fd, off_t size) {
  REAL(ftruncate);
  int result = real(fd, size);
  if (!result && name_of(fd)) record('t', names[fd], size, NULL, 0);
  return result;
}
int unlink(const char *path) {
  REAL(unlink);
  if (is_watched(path)) record('u', path, 0, NULL, 0);
  return real(path);
}
int rename(const char *from, const char *to) {
  REAL(rename);
  int result = real(from, to);
  if (!result && is_watched(from)) record('r', from, 0, to, strlen(to));
  return result;
}
int close(int fd) {
  REAL(close);
  if (fd >= 0 && fd < MAX_FD) names[fd][0] = 0;
  return real(fd);
}
