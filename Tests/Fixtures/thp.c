// Has memory that the kernel was asked to give in huge pages.
//
//   thp MEGABYTES [sparse]     prints `ready KB`: how much of it is in huge pages (AnonHugePages).
//   sparse: all but the first
//                              words of each huge page are zeros.
//
// On stdin, a line each: `sum` answers with a checksum of it, `huge` with `huge KB`; `holes` frees
// every second page. End of input ends it.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "page.h"

enum { HUGE = PAGE_BYTES / 8 * PAGE_BYTES };

static long huge_kilobytes(void) {
  char line[256];
  long value = -1;
  FILE *file = fopen("/proc/self/smaps_rollup", "r");
  while (file && fgets(line, sizeof line, file)) sscanf(line, "AnonHugePages: %ld", &value);
  if (file) fclose(file);
  return value;
}

int main(int count, char **arguments) {
  size_t length = (size_t)(count > 1 ? atoi(arguments[1]) : 8) << 20;
  char *at = mmap(NULL, length + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return 2;
  uint64_t *words = (uint64_t *)(((uintptr_t)at + HUGE - 1) / HUGE * HUGE);
  madvise(words, length, MADV_HUGEPAGE);
  uint64_t state = 88172645463325252u;
  for (size_t i = 0; i < length / 8; i++) {
    if (count > 2 && i % (HUGE / 8) == 64) i += HUGE / 8 - 64;
    if (i == length / 8) break;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    words[i] = i % 512 < 256 ? state : i;
  }
  printf("ready %ld\n", huge_kilobytes());
  fflush(stdout);
  char line[64];
  while (fgets(line, sizeof line, stdin)) {
    uint64_t sum = 0;
    if (!strcmp(line, "huge\n")) {
      printf("huge %ld\n", huge_kilobytes());
    } else if (!strcmp(line, "holes\n")) {
      for (size_t at = 0; at < length; at += 2 * PAGE_BYTES)
        madvise((char *)words + at, PAGE_BYTES, MADV_DONTNEED);
      printf("holes\n");
    } else {
      for (size_t i = 0; i < length / 8; i++) sum = (sum ^ words[i]) * 0x9fb21c651e98df25u;
      printf("sum %016llx\n", (unsigned long long)sum);
    }
    fflush(stdout);
  }
  return 0;
}
