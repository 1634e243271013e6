/*
 * The same reads as the S7 bench in plain C: REALs that lie apart, as many items in a job as a PDU of 240 bytes takes, all jobs of a scan
 * sent at once. Arguments: port, scans, blocks, values in each, bytes from one to the next. Prints JSON; ends with 1 over any surprise.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ITEMS = 19, MAX_JOBS = 8, HEADER = 7 };

static double cpu_us(void) {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 + r.ru_utime.tv_usec + r.ru_stime.tv_usec;
}

static void put16(uint8_t *at, unsigned n) {
  at[0] = n >> 8;
  at[1] = n;
}

static unsigned get16(const uint8_t *at) { return at[0] << 8 | at[1]; }

static uint8_t input[16384];
static size_t held;

/* The next whole packet; `take` drops it. */
static const uint8_t *packet(int s) {
  while (held < 4 || held < get16(input + 2)) {
    ssize_t n = recv(s, input + held, sizeof input - held, 0);
    if (n <= 0) exit(1);
    held += n;
  }
  return input;
}

static void take(void) {
  size_t length = get16(input + 2);
  memmove(input, input + length, held -= length);
}

int main(int argc, char **argv) {
  if (argc != 6) return 2;
  int scans = atoi(argv[2]), blocks = atoi(argv[3]), values = atoi(argv[4]), step = atoi(argv[5]);
  int total = blocks * values, jobs = (total + ITEMS - 1) / ITEMS, one = 1;
  if (jobs > MAX_JOBS) return 2;
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  int s = socket(AF_INET, SOCK_STREAM, 0);
  if (s < 0 || connect(s, (struct sockaddr *)&to, sizeof to)) return 1;
  setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  static const uint8_t cr[] = {3, 0, 0, 22, 17, 0xe0, 0, 0, 0, 1, 0, 0xc0, 1, 10, 0xc1, 2, 1, 0, 0xc2, 2, 2, 1};
  static const uint8_t setup[] = {3, 0, 0, 25, 2, 0xf0, 0x80, 0x32, 1, 0, 0, 0, 1, 0, 8, 0, 0, 0xf0, 0, 0, 8, 0, 8, 0, 240};
  if (send(s, cr, sizeof cr, 0) < 0 || packet(s)[5] != 0xd0) return 1;
  take();
  if (send(s, setup, sizeof setup, 0) < 0 || get16(packet(s) + 25) != 240) return 1;
  take();

  static uint8_t request[MAX_JOBS][HEADER + 12 + ITEMS * 12];
  size_t length[MAX_JOBS];
  for (int j = 0; j < jobs; j++) {
    int n = total - j * ITEMS < ITEMS ? total - j * ITEMS : ITEMS;
    uint8_t *at = request[j];
    static const uint8_t head[] = {3, 0, 0, 0, 2, 0xf0, 0x80, 0x32, 1};
    memcpy(at, head, sizeof head);
    put16(at + 2, length[j] = HEADER + 12 + n * 12);
    put16(at + 13, 2 + n * 12);
    at[17] = 4;
    at[18] = n;
    at += 19;
    for (int i = j * ITEMS; i < j * ITEMS + n; i++, at += 12) {
      uint32_t bits = i % values * step * 8;
      uint8_t item[] = {0x12, 10, 16, 2, 0, 4, 0, 0, 0x84, bits >> 16, bits >> 8, bits};
      put16(item + 6, i / values + 1);
      memcpy(at, item, 12);
    }
  }

  double sum = 0;
  unsigned reference = 1;
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  double cpu = cpu_us();
  for (int scan = 0; scan < scans; scan++) {
    unsigned first = reference;
    for (int j = 0; j < jobs; j++) {
      put16(request[j] + 11, reference++ & 0xffff);
      if (send(s, request[j], length[j], 0) != (ssize_t)length[j]) return 1;
    }
    for (int j = 0; j < jobs; j++) {
      const uint8_t *answer = packet(s);
      unsigned at = (get16(answer + 11) - first) & 0xffff, n = answer[20];
      if (at >= (unsigned)jobs || get16(answer + 17)) return 1;
      const uint8_t *item = answer + 21;
      for (unsigned i = 0; i < n; i++, item += 8) {
        if (item[0] != 0xff || get16(item + 2) != 32) return 1;
        uint32_t bits = (uint32_t)item[4] << 24 | item[5] << 16 | item[6] << 8 | item[7];
        float value;
        memcpy(&value, &bits, 4);
        sum += value;
      }
      take();
    }
  }
  cpu = cpu_us() - cpu;
  clock_gettime(CLOCK_MONOTONIC, &b);
  printf("{\"cpuUs\":%f,\"perSecond\":%f,\"sum\":%f}\n", cpu / scans, scans / (b.tv_sec - a.tv_sec + (b.tv_nsec - a.tv_nsec) / 1e9), sum / scans);
  close(s);
  return 0;
}
