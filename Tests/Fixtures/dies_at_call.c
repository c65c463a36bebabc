// A library for LD_PRELOAD: its process ends itself, as by `kill -9`, before its DIES_AT_CALL-th
// call of ptrace(2). So a test reaches each moment between two changes of a traced thread.
#define _GNU_SOURCE
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { PEEKTEXT = 1, PEEKUSER = 3 };

static void count(void) {
  static atomic_long calls;
  const char *fatal = getenv("DIES_AT_CALL");
  if (fatal && ++calls == atol(fatal)) kill(getpid(), SIGKILL);
}

long ptrace(int request, ...) {
  va_list list;
  va_start(list, request);
  pid_t thread = va_arg(list, pid_t);
  void *address = va_arg(list, void *), *data = va_arg(list, void *);
  va_end(list);
  count();
  // The system call stores a word where the function returns it.
  long word = 0;
  int peeks = request >= PEEKTEXT && request <= PEEKUSER;
  long result = syscall(SYS_ptrace, request, thread, address, peeks ? &word : data);
  return peeks && result == 0 ? word : result;
}
