// counter PORT KILOBYTES: a small HTTP server that checks itself, for hundreds of workers on one
// machine. Every request is answered with the number of requests, and `ok`, or `DAMAGED` if its
// memory isn't what it has written. Serves many connections; prints `ready` when it listens.
#include <arpa/inet.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS = 64 };

static uint64_t *memory;
static size_t words;
static uint64_t expected;
static unsigned long count;

// xorshift64*: nothing that compresses away, and the same for the same port.
static uint64_t next(uint64_t *state) {
  *state ^= *state >> 12, *state ^= *state << 25, *state ^= *state >> 27;
  return *state * UINT64_C(2685821657736338717);
}

static const char *verdict(void) {
  uint64_t sum = 0;
  for (size_t i = 0; i < words; i++) sum += memory[i] * (i + 1);
  return sum == expected ? "ok" : "DAMAGED";
}

// Another page changes with each request, so that the next image differs from the last.
static void change(void) {
  size_t at = count * 509 % words;
  uint64_t new = memory[at] * 3 + count;
  expected += (new - memory[at]) * (at + 1);
  memory[at] = new;
}

static int answer(int client) {
  char request[2048];
  ssize_t size = read(client, request, sizeof request);
  if (size <= 0) return 0;
  count++;
  const char *word = verdict();
  change();
  char body[64], text[256];
  int length = snprintf(body, sizeof body, "%lu %s\n", count, word);
  int total = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s",
                       length, body);
  return write(client, text, total) == total;
}

int main(int argc, char **argv) {
  if (argc != 3) return 64;
  uint64_t state = strtoul(argv[1], NULL, 10) + 1;
  words = strtoul(argv[2], NULL, 10) * 128;
  memory = malloc(words * 8);
  if (!memory || !words) return 1;
  for (size_t i = 0; i < words; i++) expected += (memory[i] = next(&state)) * (i + 1);

  int one = 1, server = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons(atoi(argv[1])),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(server, (struct sockaddr *)&address, sizeof address) < 0 || listen(server, 128) < 0) {
    perror("counter");
    return 1;
  }
  puts("ready");
  fflush(stdout);

  struct pollfd polled[CLIENTS + 1] = {{.fd = server, .events = POLLIN}};
  for (int i = 1; i <= CLIENTS; i++) polled[i].fd = -1;
  for (;;) {
    if (poll(polled, CLIENTS + 1, -1) < 0) continue;
    for (int i = 1; i <= CLIENTS; i++) {
      if (polled[i].fd < 0 || !polled[i].revents || answer(polled[i].fd)) continue;
      close(polled[i].fd);
      polled[i].fd = -1;
    }
    if (!polled[0].revents) continue;
    int client = accept(server, NULL, NULL), place = 1;
    while (place <= CLIENTS && polled[place].fd >= 0) place++;
    if (client < 0) continue;
    if (place > CLIENTS) {
      close(client);
      continue;
    }
    polled[place] = (struct pollfd){.fd = client, .events = POLLIN};
  }
}
