// Has 48 MB of memory with fixed contents, and 16 MB that it frees lazily (MADV_FREE): the kernel
// may replace each page of these by zeros at any time. Prints `ready PID ADDRESS`, the address of
// the 16 MB, and answers each line on stdin:
//   free     freed: it has written the 16 MB again, and freed them lazily
//   check    whole, or wrong and the number of a page
#define _DEFAULT_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "page.h"

enum { FREED = 16 << 20, STEADY = 48 << 20, WORDS = PAGE_BYTES / 8 };

static uint64_t *memory;

static uint64_t word(uint64_t i) {
  uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  return x ^ (x >> 29);
}

static void fill(size_t bytes) {
  for (size_t i = 0; i < bytes / 8; i++) memory[i] = word(i);
}

static int is_right(size_t page) {
  uint64_t *at = memory + page * WORDS;
  int may_be_empty = page < FREED / PAGE_BYTES && at[0] == 0;
  for (size_t i = 0; i < WORDS; i++) {
    if (at[i] != (may_be_empty ? 0 : word(page * WORDS + i))) return 0;
  }
  return 1;
}

static void check(void) {
  for (size_t page = 0; page < (FREED + STEADY) / PAGE_BYTES; page++) {
    if (is_right(page)) continue;
    printf("wrong: page %zu\n", page);
    return;
  }
  printf("whole\n");
}

int main(void) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  memory = mmap(NULL, FREED + STEADY, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (memory == MAP_FAILED) return 2;
  madvise(memory, FREED + STEADY, MADV_NOHUGEPAGE);
  fill(FREED + STEADY);
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready %d %p\n", (int)getpid(), (void *)memory);
  char line[128];
  while (fgets(line, sizeof line, stdin)) {
    if (!strncmp(line, "check", 5)) {
      check();
      continue;
    }
    fill(FREED);
    if (madvise(memory, FREED, MADV_FREE)) return 3;
    printf("freed\n");
  }
  return 0;
}
