// Forks, executes and starts threads as fast as it can, with memory that must stay unchanged.
//
//   forkstorm WIDTH MEGABYTES      WIDTH processes do it at the same time; prints `ready`
//
// On stdin, a line each: `sum` answers `sum HEX64 BIRTHS`, over its memory, and the number of
// started processes; `error …` if one of them has failed. End of input ends it, and all of them.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
  atomic_long births, failures;
  atomic_int error;
} *shared;

static void *thread(void *unused) {
  atomic_fetch_add(&shared->births, 1);
  return unused;
}

static void failed(void) {
  atomic_store(&shared->error, errno);
  atomic_fetch_add(&shared->failures, 1);
}

static void storm(char *self) {
  for (unsigned turn = 0;; turn++) {
    if (turn % 3 == 0) {
      pthread_t id;
      if (pthread_create(&id, NULL, thread, NULL)) failed();
      else pthread_join(id, NULL);
      continue;
    }
    int number = (int)turn;  // on the child's copy of this page
    pid_t child = turn % 9 == 1 ? vfork() : fork();
    if (child == 0) {
      if (turn % 3 == 2 && number != (int)turn) _exit(9);
      if (turn % 3 == 1) execl(self, self, "leaf", NULL);
      _exit(turn % 3 == 1 ? 8 : 7);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) failed();
    else if (status != 7 << 8) errno = status, failed();
    else atomic_fetch_add(&shared->births, 1);
  }
}

int main(int count, char **arguments) {
  if (count == 2) return 7;
  if (count != 3) return 2;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  size_t words = (size_t)atoi(arguments[2]) << 17;
  uint64_t *memory = malloc(words * 8);
  if (shared == MAP_FAILED || !memory) return 2;
  uint64_t state = 88172645463325252u;
  for (size_t i = 0; i < words; i++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    memory[i] = state;
  }
  char self[4096];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) return 2;
  self[length] = 0;
  for (int i = 0; i < atoi(arguments[1]); i++) {
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      storm(self);
    }
  }
  puts("ready");
  fflush(stdout);
  char line[64];
  while (fgets(line, sizeof line, stdin)) {
    uint64_t sum = 0;
    for (size_t i = 0; i < words; i++) sum = (sum ^ memory[i]) * 0x9fb21c651e98df25u;
    if (atomic_load(&shared->failures)) {
      printf("error %ld failed, the last with %d\n", atomic_load(&shared->failures),
             atomic_load(&shared->error));
    } else {
      printf("sum %016llx %ld\n", (unsigned long long)sum, atomic_load(&shared->births));
    }
    fflush(stdout);
  }
  return 0;
}
