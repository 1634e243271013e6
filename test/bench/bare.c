/*
 * The whole way in C: reads holding registers of each device with libmodbus, one thread a device, and publishes the readouts once a second
 * with libmosquitto, QoS 1, with the collector's content. Without a buffer. Arguments: broker port, registers, interval in ms, device ports.
 */
#include <modbus/modbus.h>
#include <mosquitto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MAX_READ = 125, BYTES_OF_VALUE = 16, BYTES_OF_READOUT = 128 };

static int registers, interval_ms;
static struct mosquitto *broker;

static void *device(void *arg) {
  int port = *(int *)arg, readouts = 0;
  int most = 1000 / interval_ms + 2;
  size_t size = (size_t)most * (BYTES_OF_READOUT + (size_t)registers * BYTES_OF_VALUE) + BYTES_OF_READOUT, length = 0;
  char *message = malloc(size), topic[64];
  uint16_t *values = calloc(registers, sizeof *values);
  modbus_t *modbus = modbus_new_tcp("127.0.0.1", port);
  if (!message || !values || !modbus || modbus_set_slave(modbus, 1) || modbus_set_response_timeout(modbus, 3, 0) || modbus_connect(modbus)) exit(1);
  snprintf(topic, sizeof topic, "c/machine-%d", port);
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  time_t sent = next.tv_sec;
  for (;;) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int start = 0; start < registers; start += MAX_READ) {
      int count = registers - start < MAX_READ ? registers - start : MAX_READ;
      if (modbus_read_registers(modbus, start, count, values + start) != count) exit(1);
    }
    char ts[32];
    struct tm utc;
    strftime(ts, sizeof ts, "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &utc));
    if (readouts++ == 0) length = sprintf(message, "{\"v\":1,\"source\":\"machine-%d\",\"readouts\":[", port);
    else message[length++] = ',';
    length += sprintf(message + length, "{\"ts\":\"%s.%03ldZ\",\"values\":{", ts, now.tv_nsec / 1000000);
    for (int i = 0; i < registers; i++) length += sprintf(message + length, "%s\"r%d\":%u", i ? "," : "", i, values[i]);
    length += sprintf(message + length, "}}");
    if (next.tv_sec != sent || readouts == most) {
      sent = next.tv_sec;
      length += sprintf(message + length, "]}");
      mosquitto_publish(broker, NULL, topic, (int)length, message, 1, false);
      readouts = 0;
    }
    next.tv_nsec += interval_ms * 1000000L;
    for (; next.tv_nsec >= 1000000000L; next.tv_nsec -= 1000000000L) next.tv_sec++;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
  }
}

int main(int argc, char **argv) {
  if (argc < 5) return 2;
  registers = atoi(argv[2]);
  interval_ms = atoi(argv[3]);
  mosquitto_lib_init();
  broker = mosquitto_new("c", true, NULL);
  if (!broker || mosquitto_connect(broker, "127.0.0.1", atoi(argv[1]), 60) || mosquitto_loop_start(broker)) return 1;
  for (int i = 4; i < argc; i++) {
    int *port = malloc(sizeof *port);
    pthread_t thread;
    *port = atoi(argv[i]);
    if (pthread_create(&thread, NULL, device, port)) return 1;
  }
  puts("\"ready\"");
  fflush(stdout);
  for (;;) pause(); /* /proc shows the memory of a process whose first thread lives */
}
