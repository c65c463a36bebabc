// Is inside vfork all the time: each child stays MS milliseconds between vfork and _exit.
//
//   longvfork MS
//
// Prints `ready` when the first child is there. On stdin, a line each: `count` answers `count N`,
// how many children have ended. End of input ends it.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_long count;

static void *answerer(void *unused) {
  puts("ready");
  fflush(stdout);
  for (char line[64]; fgets(line, sizeof line, stdin); fflush(stdout)) printf("count %ld\n", count);
  _exit(0);
  return unused;
}

int main(int argc, char **arguments) {
  long ms = atol(arguments[argc - 1]);
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  pthread_t thread;
  pthread_create(&thread, 0, answerer, 0);
  for (;;) {
    pid_t child = vfork();
    if (child == 0) {
      syscall(SYS_nanosleep, &time, 0);
      _exit(0);
    }
    while (child > 0 && waitpid(child, 0, 0) < 0)
      ;
    count++;
  }
}
