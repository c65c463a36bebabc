#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clinux_spawn.h"
#include "spawn_descriptors.h"

static int oom_score_adjustment = CLINUX_OOM_SCORE_KEPT;
void clinux_set_spawn_oom_score(int adjustment) { oom_score_adjustment = adjustment; }

static struct rlimit descriptor_limit;
static int descriptor_limit_raised;

void clinux_raise_descriptor_limit(void) {
  enum { ENOUGH = 65536 };
  if (getrlimit(RLIMIT_NOFILE, &descriptor_limit) < 0) return;
  struct rlimit wanted = descriptor_limit;
  wanted.rlim_cur = wanted.rlim_max < ENOUGH ? wanted.rlim_max : ENOUGH;
  if (wanted.rlim_cur <= descriptor_limit.rlim_cur) return;
  descriptor_limit_raised = setrlimit(RLIMIT_NOFILE, &wanted) == 0;
}

static struct rlimit core_limit;
static int core_limited;
static char core_filter[16];  // the earlier value, with a leading 0x; empty: unchanged

static void write_core_filter(const char *text) {
  int file = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  ssize_t ignored = write(file, text, strlen(text));
  (void)ignored;
  close(file);
}

void clinux_stay_out_of_core_files(void) {
  if (!core_limited && getrlimit(RLIMIT_CORE, &core_limit) == 0) {
    struct rlimit none = core_limit;
    none.rlim_cur = 0;
    core_limited = setrlimit(RLIMIT_CORE, &none) == 0;
  }
  if (core_filter[0]) return;
  int file = open("/proc/self/coredump_filter", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  char text[16] = "0x";
  ssize_t count = read(file, text + 2, sizeof text - 3);
  close(file);
  if (count <= 0) return;
  text[2 + count] = 0;
  write_core_filter("0x0");
  memcpy(core_filter, text, sizeof text);
}

void clinux_restore_limits(void) {
  if (descriptor_limit_raised) setrlimit(RLIMIT_NOFILE, &descriptor_limit);
  if (core_limited) setrlimit(RLIMIT_CORE, &core_limit);
  if (core_filter[0]) write_core_filter(core_filter);
}

// Sets oom_score_adj. It formats the number itself, because printf isn't async-signal-safe. Returns
// -1 and sets errno if it fails.
static int set_oom_score(int value) {
  char text[8];
  int position = sizeof text, left = value < 0 ? -value : value;
  do text[--position] = (char)('0' + left % 10); while (left /= 10);
  if (value < 0) text[--position] = '-';
  int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return -1;
  ssize_t count = write(file, text + position, sizeof text - (size_t)position);
  int error = errno;
  close(file);
  errno = error;
  return count < 0 ? -1 : 0;
}

struct failure {
  int step, error;
};

static void fail(int report, int step) {
  struct failure failure = {step, errno};
  ssize_t ignored = write(report, &failure, sizeof failure);
  (void)ignored;
  _exit(127);
}

// Stores the last step that the child has begun, in memory that it shares with its parent.
static void begin(const struct clinux_birth *birth, int step) {
  if (birth->step) __atomic_store_n(birth->step, step, __ATOMIC_RELAXED);
}

// Makes the child end with its parent, until its execve. A change of identity clears this.
static void end_with_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != parent) _exit(127);
}

// Joins a new session keyring: a worker must not reach the daemon's (the key of images, a login's
// secrets). A kernel without keyrings, or with a filter that refuses them (containers), has none to
// inherit.
static void leave_session_keyring(int report) {
  enum { JOIN_SESSION_KEYRING = 1 };
  if (syscall(SYS_keyctl, JOIN_SESSION_KEYRING, NULL) >= 0) return;
  if (errno != ENOSYS && errno != EPERM) fail(report, CLINUX_SPAWN_KEYRING);
}

// These are direct system calls: glibc's wrappers signal all threads, and the child has only one.
static int set_identity(const struct clinux_terms *terms) {
  if (syscall(SYS_setgroups, (long)terms->group_count, terms->groups) < 0) return -1;
  if (syscall(SYS_setresgid, terms->group, terms->group, terms->group) < 0) return -1;
  return (int)syscall(SYS_setresuid, terms->user, terms->user, terms->user);
}

// Applies the terms. Limits come before the identity, because only root can raise them. The pid
// comes last, when it can't change any more.
static void apply(const struct clinux_terms *terms, const struct clinux_birth *birth, int report) {
  begin(birth, CLINUX_SPAWN_LIMIT);
  for (int index = 0; index < terms->limit_count; index++) {
    struct rlimit limit = {terms->limits[index].soft, terms->limits[index].hard};
    if (setrlimit(terms->limits[index].resource, &limit) < 0)
      fail(report, CLINUX_SPAWN_LIMIT | index << 8);
  }
  if (terms->new_keyring) leave_session_keyring(report);
  if (terms->changes_identity) {
    begin(birth, CLINUX_SPAWN_IDENTITY);
    if (set_identity(terms) < 0) fail(report, CLINUX_SPAWN_IDENTITY);
    end_with_parent(birth->parent);
  }
  if (terms->umask >= 0) umask((mode_t)terms->umask);
  if (!terms->pid_digits_count) return;
  // After fork the child has its own copy of the environment.
  char digits[12];
  int position = sizeof digits;
  digits[--position] = 0;
  for (int left = (int)getpid(); left > 0; left /= 10) digits[--position] = (char)('0' + left % 10);
  for (int index = 0; index < terms->pid_digits_count; index++)
    memcpy(terms->pid_digits[index], digits + position, sizeof digits - (size_t)position);
}

// Waits until the parent releases the child, or ends. Without shared memory the child doesn't wait.
static void wait_for_release(const struct clinux_birth *birth) {
  struct timespec interval = {.tv_sec = 1};
  while (birth->step && !__atomic_load_n(birth->step + 1, __ATOMIC_ACQUIRE)) {
    syscall(SYS_futex, birth->step + 1, FUTEX_WAIT, 0, &interval, NULL, 0);
    if (getppid() != birth->parent) _exit(127);
  }
}

// Runs in the child. Only async-signal-safe calls are permitted: other threads of the parent may
// have held any lock at the fork.
static void child(const struct clinux_spawn *what, const struct clinux_birth *birth, int report) {
  begin(birth, CLINUX_SPAWN_SESSION);
  end_with_parent(birth->parent);
  // The child gets a new session. Otherwise a daemon's death would orphan a stopped process group,
  // and the kernel would send it SIGHUP and SIGCONT.
  if (!what->keeps_session && setsid() < 0) fail(report, CLINUX_SPAWN_SESSION);

  struct sigaction standard;
  memset(&standard, 0, sizeof standard);
  for (int number = 1; number < 65; number++) {
    standard.sa_handler = what->ignored >> (number - 1) & 1 ? SIG_IGN : SIG_DFL;
    sigaction(number, &standard, NULL);
  }

  if (what->oom_score == CLINUX_OOM_SCORE_USUAL) {
    if (oom_score_adjustment != CLINUX_OOM_SCORE_KEPT) set_oom_score(oom_score_adjustment);
  } else if (what->oom_score != CLINUX_OOM_SCORE_KEPT && set_oom_score(what->oom_score) < 0) {
    fail(report, CLINUX_SPAWN_OOM_SCORE);
  }

  // Announces the child's pid before anything else can happen to the child.
  if (what->announcement >= 0) {
    int32_t own = (int32_t)getpid();
    ssize_t ignored = write(what->announcement, &own, sizeof own);
    (void)ignored;
  }

  begin(birth, CLINUX_SPAWN_DESCRIPTORS);
  report = clinux_above_standard(report);
  int input = clinux_above_standard(what->input);
  int output = clinux_above_standard(what->output);
  int error = clinux_above_standard(what->error);
  if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(error, 2) < 0)
    fail(report, CLINUX_SPAWN_DESCRIPTORS);
  // Every other descriptor is closed at exec, whatever flags it was opened with.
  if (syscall(SYS_close_range, 3, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */) < 0)
    for (int fd = 3; fd < 1024; fd++) fcntl(fd, F_SETFD, FD_CLOEXEC);
  for (int index = 0; index < what->kept_count; index++) fcntl(what->kept[index], F_SETFD, 0);

  if (what->terms && clinux_renumber(what->terms, &report) < 0)
    fail(report, CLINUX_SPAWN_DESCRIPTORS);
  clinux_restore_limits();
  if (what->terms) apply(what->terms, birth, report);
  if (what->permits_tracing) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // needs Yama

  // A file system that doesn't answer may keep the child from here on. The parent's locks and
  // connections must not stay open for that long: the next daemon waits for them.
  clinux_close_others(what, report);
  // This comes after the change of user: the program's user must be able to enter the directory.
  begin(birth, CLINUX_SPAWN_DIRECTORY);
  if (chdir(what->directory) < 0) fail(report, CLINUX_SPAWN_DIRECTORY);

  begin(birth, CLINUX_SPAWN_EXEC);
  if (what->waits) wait_for_release(birth);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  // The parent-death signal would stay set over execve, and a worker must outlive its daemon.
  prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
  execve(what->path, what->arguments, what->environment ? what->environment : environ);
  fail(report, CLINUX_SPAWN_EXEC);
}

static pid_t fork_with_pidfd(int cgroup, int *pidfd) {
  struct clone_args arguments;
  memset(&arguments, 0, sizeof arguments);
  arguments.flags = CLONE_PIDFD;
  arguments.pidfd = (uint64_t)(uintptr_t)pidfd;
  arguments.exit_signal = SIGCHLD;
  if (cgroup >= 0) {
    arguments.flags |= CLONE_INTO_CGROUP;
    arguments.cgroup = (uint64_t)cgroup;
  }
  pid_t pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid >= 0 || cgroup >= 0 || (errno != ENOSYS && errno != EPERM)) return pid;

  // Container runtimes' seccomp filters often refuse clone3.
  pid = fork();
  if (pid > 0) *pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  return pid;
}

// Between the making of a report pipe and the close of its writing end no other thread may fork:
// its child would keep that end open until its execve, and the report would seem incomplete.
static pthread_mutex_t births = PTHREAD_MUTEX_INITIALIZER;

pid_t clinux_spawn_begin(const struct clinux_spawn *what, struct clinux_birth *birth) {
  int report[2];
  birth->pidfd = -1;
  birth->report = -1;
  birth->parent = getpid();
  // Without it, the step at which a child hangs isn't known, and the child doesn't wait.
  void *shared = mmap(NULL, 2 * sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                      -1, 0);
  birth->step = shared == MAP_FAILED ? NULL : shared;

  pthread_mutex_lock(&births);
  if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0) {
    int error = errno;
    pthread_mutex_unlock(&births);
    clinux_spawn_forget(birth);
    return -error;
  }
  // The parent's signal handlers must not run in the child.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t pid = fork_with_pidfd(what->cgroup, &birth->pidfd);
  int error = errno;
  if (pid == 0) child(what, birth, report[1]);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  close(report[1]);
  pthread_mutex_unlock(&births);

  if (pid < 0) {
    close(report[0]);
    clinux_spawn_forget(birth);
    return -error;
  }
  birth->report = report[0];
  return pid;
}

int clinux_spawn_step(const struct clinux_birth *birth) {
  return birth->step ? __atomic_load_n(birth->step, __ATOMIC_RELAXED) : CLINUX_SPAWN_SESSION;
}

void clinux_spawn_release(const struct clinux_birth *birth) {
  if (!birth->step) return;
  __atomic_store_n(birth->step + 1, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, birth->step + 1, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void clinux_spawn_forget(struct clinux_birth *birth) {
  if (birth->step) munmap(birth->step, 2 * sizeof(int));
  birth->step = NULL;
}
