/* Reads holding registers with libmodbus, one request after the other. Arguments: port, reads, registers. Prints JSON. */
#include <modbus/modbus.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static double cpu_us(void) {
  struct rusage r;
  getrusage(RUSAGE_SELF, &r);
  return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 + r.ru_utime.tv_usec + r.ru_stime.tv_usec;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  int reads = atoi(argv[2]), registers = atoi(argv[3]);
  uint16_t values[125];
  modbus_t *device = modbus_new_tcp("127.0.0.1", atoi(argv[1]));
  if (!device || registers > 125 || modbus_set_slave(device, 1) || modbus_connect(device)) return 1;
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  double cpu = cpu_us();
  for (int i = 0; i < reads; i++)
    if (modbus_read_registers(device, i % 4 * registers, registers, values) != registers) return 1;
  cpu = cpu_us() - cpu;
  clock_gettime(CLOCK_MONOTONIC, &b);
  printf("{\"cpuUs\":%f,\"perSecond\":%f}\n", cpu / reads, reads / (b.tv_sec - a.tv_sec + (b.tv_nsec - a.tv_nsec) / 1e9));
  modbus_close(device);
  modbus_free(device);
  return 0;
}
