// A prefork server's memory: a parent and its children share a filled buffer by fork, each child
// has changed some of it (copied on write) and has memory of its own.
//
//   forktree MEGABYTES CHILDREN SEED     prints `ready PID`
//
// On stdin, a line each:
//   sum    sum HEX64         over the parent's memory and each child's, which it asks by a pipe
//   pids   pids PARENT CHILD…
// It ends with its input, and children end with their parent.
// The same arguments and commands give the same sums.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mix.h"
#include "page.h"

enum { PAGE = PAGE_BYTES, MAX_CHILDREN = 64 };

struct child { pid_t pid; int ask, answer; };
static struct child children[MAX_CHILDREN];
static int child_count;
static unsigned char *shared, *private_bytes;
static size_t shared_size, private_size;

static void fill(unsigned char *at, size_t bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes; i += 8) {
    uint64_t word = mix((seed + i) / (i % (4 * PAGE) < 2 * PAGE ? 1 : 512));
    memcpy(at + i, &word, 8);
  }
}

static uint64_t hash(uint64_t h, const unsigned char *at, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 8) {
    uint64_t word;
    memcpy(&word, at + i, 8);
    h = (h ^ word) * 0x9fb21c651e98df25u;
    h ^= h >> 32;
  }
  return h;
}

static unsigned char *map(size_t bytes) {
  void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    perror("forktree: mmap");
    exit(2);
  }
  return at;
}

static uint64_t sum(void) {
  return hash(hash(1, shared, shared_size), private_bytes, private_size);
}

static void child_main(int ask, int answer, uint64_t seed) {
  private_bytes = map(private_size);
  fill(private_bytes, private_size, seed);
  for (size_t at = 0; at < shared_size; at += 32 * PAGE) fill(shared + at, PAGE, seed + at);
  char request;
  while (read(ask, &request, 1) == 1) {
    uint64_t result = request == 's' ? sum() : 0;
    if (write(answer, &result, 8) != 8) break;
  }
  _exit(0);
}

static void start_child(uint64_t seed) {
  int ask[2], answer[2];
  pid_t pid = pipe2(ask, O_CLOEXEC) || pipe2(answer, O_CLOEXEC) ? -1 : fork();
  if (pid < 0) {
    perror("forktree: child");
    exit(2);
  }
  if (pid == 0) {
    // Its siblings' pipes must end with the parent, not with this child.
    for (int i = 0; i < child_count; i++) close(children[i].ask), close(children[i].answer);
    close(ask[1]), close(answer[0]);
    child_main(ask[0], answer[1], seed);
  }
  close(ask[0]), close(answer[1]);
  children[child_count++] = (struct child){pid, ask[1], answer[0]};
}

// False if the child has ended.
static int ask_child(struct child *child, char request, uint64_t *result) {
  return write(child->ask, &request, 1) == 1 && read(child->answer, result, 8) == 8;
}

static int ask_all(char request, uint64_t *combined) {
  for (int i = 0; i < child_count; i++) {
    uint64_t one;
    if (!ask_child(&children[i], request, &one)) {
      printf("error child %d: %s\n", children[i].pid, strerror(errno));
      return 0;
    }
    *combined = hash(*combined, (unsigned char *)&one, 8);
  }
  return 1;
}

static void command(const char *line) {
  if (!strcmp(line, "sum\n")) {
    uint64_t combined = sum();
    if (ask_all('s', &combined)) printf("sum %016llx\n", (unsigned long long)combined);
  } else if (!strcmp(line, "pids\n")) {
    printf("pids %d", getpid());
    for (int i = 0; i < child_count; i++) printf(" %d", children[i].pid);
    printf("\n");
  } else {
    printf("error unknown command\n");
  }
}

int main(int count, char **arguments) {
  int wanted = count == 4 ? atoi(arguments[2]) : -1;
  shared_size = count == 4 ? strtoul(arguments[1], NULL, 10) << 20 : 0;
  if (wanted < 0 || wanted > MAX_CHILDREN || shared_size == 0) {
    fprintf(stderr, "usage: forktree MEGABYTES CHILDREN(0-%d) SEED\n", MAX_CHILDREN);
    return 64;
  }
  uint64_t seed = strtoull(arguments[3], NULL, 10);
  signal(SIGPIPE, SIG_IGN);  // an ended child is an answer and must not end this process
  private_size = shared_size / 4;
  shared = map(shared_size);
  fill(shared, shared_size, seed);
  while (child_count < wanted) start_child(mix(seed + (uint64_t)child_count));
  private_bytes = map(private_size);
  fill(private_bytes, private_size, seed + 1);

  setvbuf(stdout, NULL, _IOLBF, 0);
  uint64_t ignored = 0;
  if (!ask_all('p', &ignored)) return 2;  // every child has its memory
  printf("ready %d\n", getpid());
  char line[128];
  while (fgets(line, sizeof line, stdin)) command(line);
  for (int i = 0; i < child_count; i++) close(children[i].ask);
  while (wait(NULL) > 0) {}
  return 0;
}
