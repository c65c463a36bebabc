// Has locked memory (1 MB), which can't be hibernated. Prints `ready PID`, then answers each line
// on stdin with `sum HEX`; ends with its input.
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 1 << 20 };

int main(void) {
  unsigned char *at =
      mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED || mlock(at, BYTES)) {
    perror("mlocked: mlock of 1 MB");
    return 2;
  }
  for (int i = 0; i < BYTES; i++) at[i] = (unsigned char)(i * 31 + i / 4096 * 7);
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready %d\n", (int)getpid());
  char line[128];
  while (fgets(line, sizeof line, stdin)) {
    unsigned sum = 2166136261u;
    for (int i = 0; i < BYTES; i++) sum = (sum ^ at[i]) * 16777619u;
    printf("sum %08x\n", sum);
  }
  return 0;
}
