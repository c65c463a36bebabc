// Memory that can't be compressed, behind a small HTTP server: blob PORT MEGABYTES
//   GET /      answers a byte of it        GET /all, /sum   answer a sum over all of it
#include <arpa/inet.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static uint64_t *words;
static size_t count;

static uint64_t all(void) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i++) sum += words[i];
  return sum;
}

static void *serve(void *argument) {
  int line = (int)(intptr_t)argument;
  char request[4096], answer[256];
  for (unsigned long served = 0;; served++) {
    size_t used = 0;
    do {
      ssize_t got = read(line, request + used, sizeof request - 1 - used);
      if (got <= 0) return close(line), NULL;
      request[used += (size_t)got] = 0;
    } while (!strstr(request, "\r\n\r\n") && used < sizeof request - 1);
    int is_all = !strncmp(request, "GET /all", 8) || !strncmp(request, "GET /sum", 8);
    uint64_t value = is_all ? all() : words[served % count];
    char body[32];
    int length = snprintf(body, sizeof body, "%llu\n", (unsigned long long)value);
    int size = snprintf(answer, sizeof answer,
                        "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", length, body);
    if (write(line, answer, (size_t)size) != size) return close(line), NULL;
  }
}

int main(int argc, char **argv) {
  if (argc != 3) return 64;
  count = strtoul(argv[2], NULL, 10) << 17;
  words = malloc(count * 8);
  uint64_t x = 88172645463325252u;
  for (size_t i = 0; i < count; i++) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    words[i] = x;
  }
  int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 9)) return 1;
  for (;;) {
    int line = accept(listener, NULL, NULL);
    if (line < 0) return 1;
    pthread_t thread;
    if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)line)) return 1;
    pthread_detach(thread);
  }
}
