// A worker of two processes, of which the second one executes itself. Before and after that it maps
// memory at the same address.
//
//   PROGRAM            prints `ready` when both processes have filled their memory
//
// One command a line on stdin, one line on stdout for each:
//   exec     ready: the second process executes itself, and maps memory that it doesn't touch
//   check    zeros, or the first byte of that memory that isn't 0
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LENGTH = 8 << 20 };

static unsigned char *map(void *address) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | (address ? MAP_FIXED_NOREPLACE : 0);
  unsigned char *memory = mmap(address, LENGTH, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (memory == MAP_FAILED) _exit(3);
  madvise(memory, LENGTH, MADV_NOHUGEPAGE);
  return memory;
}

static void fill(unsigned char *memory) {
  for (unsigned i = 0, x = 1; i < LENGTH; i++, x = x * 1664525 + 1013904223) {
    memory[i] = (unsigned char)(x >> 24 | 1);
  }
}

static void check(const unsigned char *memory) {
  for (unsigned i = 0; i < LENGTH; i++) {
    if (!memory[i]) continue;
    printf("byte %u is %d\n", i, memory[i]);
    return;
  }
  printf("zeros\n");
}

int main(int count, char **arguments) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  int is_first = count < 2;
  if (is_first) {
    unsigned char *memory = map(NULL);
    fill(memory);
    if (fork()) for (;;) pause();
    // Otherwise both processes would share these pages.
    munmap(memory, LENGTH);
  }
  // On every machine this address is free.
  unsigned char *memory = map((void *)0x3000000000);
  if (is_first) fill(memory);
  printf("ready\n");
  char line[64];
  while (fgets(line, sizeof line, stdin)) {
    if (!strncmp(line, "exec", 4)) {
      execv("/proc/self/exe", (char *[]){arguments[0], "again", NULL});
      return 4;
    }
    check(memory);
  }
  return 0;
}
