// A program that makes its pages read-only, and writable again.
//
//   hardening      prints `ready PID`
//
// One command a line on stdin, one line on stdout for each; N is the checksum, and each ends with
// `right` or `wrong`:
//   sum      sum N right
//   harden   sum N right   half of its pages, others each time, can't be written any more
//   soften   sum N right   all can be written
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "page.h"

enum { PAGE = PAGE_BYTES, PAGES = 512 };

static unsigned long long sum(const unsigned char *at) {
  unsigned long long h = 0;
  for (int i = 0; i < PAGES * PAGE; i++) h = h * 31 + at[i];
  return h;
}

int main(void) {
  unsigned char *at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return 2;
  uint64_t state = 88172645463325252u;
  for (int i = 0; i < PAGES * PAGE; i++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    at[i] = (unsigned char)state;
  }
  unsigned long long first = sum(at);
  printf("ready %d\n", getpid());
  fflush(stdout);
  char line[64];
  for (int turn = 0; fgets(line, sizeof line, stdin);) {
    if (!strncmp(line, "harden", 6)) {
      int from = turn++ % 2 ? 0 : PAGES / 2;
      if (mprotect(at, PAGES * PAGE, PROT_READ | PROT_WRITE)) return 2;
      if (mprotect(at + from * PAGE, PAGES / 2 * PAGE, PROT_READ)) return 2;
    } else if (!strncmp(line, "soften", 6)) {
      if (mprotect(at, PAGES * PAGE, PROT_READ | PROT_WRITE)) return 2;
    } else if (strncmp(line, "sum", 3)) {
      break;
    }
    unsigned long long now = sum(at);
    printf("sum %llu %s\n", now, now == first ? "right" : "wrong");
    fflush(stdout);
  }
  return 0;
}
