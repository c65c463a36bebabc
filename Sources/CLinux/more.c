#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "clinux_more.h"

// The handler does nothing: the signal's delivery interrupts a system call.
static void interrupt(int number) { (void)number; }

int clinux_accept(int listener) {
  int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  return fd < 0 ? -errno : fd;
}

int clinux_accept_shared(int listener) {
  // O_NONBLOCK is a flag of the listener, which its other owners share, so it can't be set here.
  // Another owner may accept a connection between its announcement and this accept. So a timer that
  // fires every 10 ms ends the wait.
  int number = SIGRTMAX - 3;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = interrupt;
  sigaction(number, &action, NULL);
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = number;
  event._sigev_un._tid = gettid();
  timer_t timer;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0) return -errno;
  sigset_t one, mask;
  sigemptyset(&one);
  sigaddset(&one, number);
  pthread_sigmask(SIG_UNBLOCK, &one, &mask);
  struct itimerspec often = {{0, 10000000}, {0, 10000000}};
  timer_settime(timer, 0, &often, NULL);
  int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  int error = errno;
  timer_delete(timer);
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
  if (fd >= 0) return fd;
  return error == EINTR ? -EAGAIN : -error;
}

int clinux_page_out(int pidfd, const struct clinux_range *range) {
  struct iovec area = {(void *)(uintptr_t)range->address, (size_t)range->length};
  long result = syscall(440 /* process_madvise */, pidfd, &area, 1, 21 /* MADV_PAGEOUT */, 0);
  return result < 0 ? -errno : 0;
}

int64_t clinux_file_system_type(const char *path) {
  struct statfs status;
  return statfs(path, &status) < 0 ? -errno : (int64_t)status.f_type;
}

int clinux_cut_beginning(int fd, int64_t length) {
  return fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, length) < 0 ? -errno : 0;
}

int clinux_memory_file(const char *name) {
  int fd = memfd_create(name, MFD_CLOEXEC);
  return fd < 0 ? -errno : fd;
}

int clinux_exchange(const char *one, const char *other) {
  long result = syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, 2u /* RENAME_EXCHANGE */);
  return result < 0 ? -errno : 0;
}
