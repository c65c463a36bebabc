// A process with a page at a known address, and with a chosen pid (clone3(2) with set_tid, for
// root).
//
//   stranger 0      the page is in this process
//   stranger PID    the page is in a child with that pid, which must be free
//
// Prints `ready PID`. For each line of stdin, prints the first bytes of the page.
#define _GNU_SOURCE
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "page.h"

#define PLACE ((char *)0x100000000000UL)

int main(int count, char **words) {
  pid_t wanted = count > 1 ? atoi(words[1]) : 0;
  if (wanted != 0) {
    struct clone_args arguments = {.exit_signal = SIGCHLD,
                                   .set_tid = (uint64_t)(uintptr_t)&wanted,
                                   .set_tid_size = 1};
    long child = syscall(SYS_clone3, &arguments, sizeof arguments);
    if (child < 0) return perror("clone3"), 1;
    if (child > 0) return waitpid((pid_t)child, NULL, 0) < 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  char *page = mmap(PLACE, PAGE_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (page != PLACE) return perror("mmap"), 1;
  memset(page, '.', PAGE_BYTES);
  printf("ready %d\n", getpid());
  fflush(stdout);
  char line[64];
  while (fgets(line, sizeof line, stdin)) {
    printf("%.8s\n", page);
    fflush(stdout);
  }
  return 0;
}
