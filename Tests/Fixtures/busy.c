// Never idle: one thread that spins in user mode and makes no system call. Prints `ready PID`.
// Ends by itself after 10 minutes, or the seconds given, so that a failed test leaves no spinner.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments) {
  printf("ready %d\n", (int)getpid());
  fflush(stdout);
  alarm(count > 1 ? (unsigned)atoi(arguments[1]) : 600);
  for (volatile unsigned long spins = 0;; spins++) {}
}
