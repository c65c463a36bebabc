// Never idle: one thread that spins in user mode and makes no system call. Prints `ready PID`.
// Ends by itself after 10 minutes, so that a failed test leaves no spinner.
#include <stdio.h>
#include <unistd.h>

int main(void) {
  printf("ready %d\n", (int)getpid());
  fflush(stdout);
  alarm(600);
  for (volatile unsigned long spins = 0;; spins++) {}
}
