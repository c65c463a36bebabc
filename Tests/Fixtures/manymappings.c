// manymappings N K: N mappings, K children that share them, and memory that is mapped and unmapped,
// so that the footprint has to be measured again and again.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

#include "page.h"

int main(int count, char **words) {
  long mappings = count > 1 ? atol(words[1]) : 1000, children = count > 2 ? atol(words[2]) : 1;
  for (long i = 0; i < mappings; i++) {
    char *page =
        mmap(0, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return 1;
    page[0] = (char)i;
    mprotect(page + PAGE_BYTES, PAGE_BYTES, PROT_NONE);
  }
  for (long i = 0; i < children; i++)
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) pause();
    }
  puts("ready");
  fflush(stdout);
  char *moving = mmap(0, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (long i = 0;; i++) {
    if (i % 2) memset(moving, (int)i, 2 << 20);
    else madvise(moving, 2 << 20, MADV_DONTNEED);
    usleep(300000);
  }
}
