#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "clinux_system.h"

#ifndef SYS_process_mrelease
#define SYS_process_mrelease 448
#endif
#ifndef P_PIDFD
#define P_PIDFD 3
#endif

#define RESULT(call) ({ long r_ = (long)(call); r_ < 0 ? -errno : (int)r_; })

int clinux_pidfd_open(pid_t pid) { return RESULT(syscall(SYS_pidfd_open, pid, 0)); }
// O_EXCL is PIDFD_THREAD.
int clinux_pidfd_open_thread(pid_t id) { return RESULT(syscall(SYS_pidfd_open, id, O_EXCL)); }
int clinux_pidfd_getfd(int pidfd, int fd) {
  return RESULT(syscall(SYS_pidfd_getfd, pidfd, fd, 0));
}
int clinux_pidfd_send_signal(int pidfd, int signal) {
  return RESULT(syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0));
}
int clinux_process_mrelease(int pidfd) { return RESULT(syscall(SYS_process_mrelease, pidfd, 0)); }

int clinux_reap(int pidfd, int *kind, int *status) {
  siginfo_t info;
  memset(&info, 0, sizeof info);
  if (waitid((idtype_t)P_PIDFD, (id_t)pidfd, &info, WEXITED | WNOHANG) < 0) return -errno;
  if (info.si_pid == 0) return 0;
  *kind = info.si_code != CLD_EXITED;
  *status = info.si_status;
  return 1;
}

static int became_subreaper;
int clinux_become_subreaper(void) {
  int was_subreaper = 0;
  if (prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper, 0, 0, 0) == 0 && was_subreaper) return 0;
  int result = RESULT(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
  became_subreaper = result >= 0;
  return result;
}
void clinux_stop_being_subreaper(void) {
  if (became_subreaper) prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}
int clinux_report_stops_of_children(int reported) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = SIG_DFL;
  action.sa_flags = reported ? 0 : SA_NOCLDSTOP;
  return RESULT(sigaction(SIGCHLD, &action, NULL));
}

static unsigned stops;

unsigned clinux_stop_count(void) { return __atomic_load_n(&stops, __ATOMIC_SEQ_CST); }

static void *stop(void *argument) {
  int number = (int)(intptr_t)argument;
  struct sigaction standard;
  sigset_t only;
  memset(&standard, 0, sizeof standard);
  standard.sa_handler = SIG_DFL;
  sigemptyset(&only);
  sigaddset(&only, number);
  sigaction(number, &standard, NULL);
  struct timespec began, ended;
  clock_gettime(CLOCK_MONOTONIC, &began);
  __atomic_add_fetch(&stops, 1, __ATOMIC_SEQ_CST);
  raise(number);
  pthread_sigmask(SIG_UNBLOCK, &only, NULL);
  // The event loop handles the next Ctrl-Z. It must not stop the process while no stop is counted.
  pthread_sigmask(SIG_BLOCK, &only, NULL);
  clock_gettime(CLOCK_MONOTONIC, &ended);
  // A shell needs longer to notice a stop and to end it.
  int64_t took = (ended.tv_sec - began.tv_sec) * 1000000000LL + ended.tv_nsec - began.tv_nsec;
  __atomic_add_fetch(&stops, took < 300000 ? 3 : 1, __ATOMIC_SEQ_CST);
  return NULL;
}

int clinux_stop_by_signal(int number) {
  pthread_attr_t small;
  pthread_t thread;
  pthread_attr_init(&small);
  pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&small, 65536);
  return -pthread_create(&thread, &small, stop, (void *)(intptr_t)number);
}

int clinux_stop_of_child(pid_t pid) {
  siginfo_t info;
  info.si_pid = 0;
  if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT) < 0) return -errno;
  return info.si_pid == pid && info.si_code == CLD_STOPPED ? info.si_status : 0;
}
int clinux_lock_memory(void) { return RESULT(mlockall(MCL_CURRENT | 4 /* MCL_ONFAULT */)); }
int clinux_unlock_memory(void) { return RESULT(munlockall()); }

void clinux_keep_heap_small(int arenas) {
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, arenas);
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);
#else
  (void)arenas;
#endif
}

int clinux_peer_credentials(int fd, pid_t *pid, uid_t *uid, gid_t *gid) {
  struct ucred credentials;
  socklen_t length = sizeof credentials;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0) return -errno;
  *pid = credentials.pid;
  *uid = credentials.uid;
  *gid = credentials.gid;
  return 0;
}

int clinux_peer_pidfd(int fd) {
  enum { PEERPIDFD = 77 };  // SO_PEERPIDFD: Linux 6.5
  int pidfd;
  socklen_t length = sizeof pidfd;
  return getsockopt(fd, SOL_SOCKET, PEERPIDFD, &pidfd, &length) < 0 ? -errno : pidfd;
}

int clinux_pass_credentials(int fd) {
  int on = 1;
  return RESULT(setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
}

int clinux_start_writeback(int fd, int64_t offset, int64_t length) {
  return RESULT(sync_file_range(fd, offset, length, SYNC_FILE_RANGE_WRITE));
}
int clinux_drop_page_cache(int fd) { return -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); }
void clinux_set_thread_name(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }
int clinux_open(const char *path, int flags, mode_t mode) {
  return RESULT(open(path, flags, mode));
}

int clinux_pipe(int ends[2]) { return RESULT(pipe2(ends, O_CLOEXEC)); }

int clinux_open_at(int directory, const char *path, int flags, mode_t mode) {
  return RESULT(openat(directory, path, flags, mode));
}

int clinux_read_attribute(int fd, const char *name, void *value, size_t length) {
  return RESULT(fgetxattr(fd, name, value, length));
}

int clinux_write_attribute(int fd, const char *name, const void *value, size_t length) {
  if (length == 0) return RESULT(fremovexattr(fd, name));
  return RESULT(fsetxattr(fd, name, value, length, 0));
}
