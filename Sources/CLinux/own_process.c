// What this process changes in itself before and after it spawns others.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clinux_spawn.h"

int clinux_act_as(uid_t user, gid_t group, const gid_t *groups, int group_count) {
  // The system call is for this thread only, as the other two are.
  if (syscall(SYS_setgroups, (long)group_count, groups) < 0) return -errno;
  setfsgid(group);
  setfsuid(user);
  // The two functions return the earlier value, so the check calls them with an invalid one.
  return (uid_t)setfsuid((uid_t)-1) == user && (gid_t)setfsgid((gid_t)-1) == group ? 0 : -EPERM;
}

pid_t clinux_fork(void) {
  pid_t pid = fork();
  return pid < 0 ? -errno : pid;
}

uint64_t clinux_ignored_signals(void) {
  uint64_t ignored = 0;
  for (int number = 1; number < 65; number++) {
    struct sigaction current;
    if (sigaction(number, NULL, &current) == 0 && current.sa_handler == SIG_IGN)
      ignored |= 1ULL << (number - 1);
  }
  return ignored;
}

void clinux_end_by_signal(int number) {
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  kill(getpid(), number);
}
