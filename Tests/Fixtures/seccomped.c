// Has a seccomp filter that allows the calls that it needs and kills it with SIGSYS for all others,
// such as mmap, munmap, madvise, process_madvise. Prints `ready PID`, then echoes its input, byte
// by byte as it comes, and ends with it.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(number)                                        \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

// The numbers are this architecture's own; programs of another one don't run in this process.
static struct sock_filter filter[] = {
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
  ALLOW(SYS_read),
  ALLOW(SYS_write),
  ALLOW(SYS_exit),
  ALLOW(SYS_exit_group),
  ALLOW(SYS_nanosleep),
  ALLOW(SYS_clock_nanosleep),
  ALLOW(SYS_restart_syscall),
  ALLOW(SYS_rt_sigreturn),
  ALLOW(SYS_rt_sigaction),
  ALLOW(SYS_rt_sigprocmask),
  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

int main(void) {
  char bytes[4096];
  int length = snprintf(bytes, sizeof bytes, "ready %d\n", (int)getpid());
  struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
    perror("seccomped: prctl");
    return 2;
  }
  ssize_t n = length;
  do {
    if (write(1, bytes, (size_t)n) != n) return 3;
    n = read(0, bytes, sizeof bytes);
  } while (n > 0);
  return n == 0 ? 0 : 4;
}
