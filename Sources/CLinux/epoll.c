#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>

#include "clinux_epoll.h"

#define RESULT(call) ({ int r_ = (int)(call); r_ < 0 ? -errno : r_; })

int clinux_epoll_create(void) { return RESULT(epoll_create1(EPOLL_CLOEXEC)); }

static int control(int epoll, int operation, int fd, uint32_t events, uint64_t data) {
  struct epoll_event event = {.events = events, .data.u64 = data};
  return RESULT(epoll_ctl(epoll, operation, fd, &event));
}

int clinux_epoll_add(int epoll, int fd, uint32_t events, uint64_t data) {
  return control(epoll, EPOLL_CTL_ADD, fd, events, data);
}

int clinux_epoll_modify(int epoll, int fd, uint32_t events, uint64_t data) {
  return control(epoll, EPOLL_CTL_MOD, fd, events, data);
}

int clinux_epoll_remove(int epoll, int fd) { return control(epoll, EPOLL_CTL_DEL, fd, 0, 0); }

int clinux_epoll_wait(int epoll, struct clinux_event *events, int capacity, int timeout) {
  struct epoll_event raw[64];
  int count = epoll_wait(epoll, raw, capacity < 64 ? capacity : 64, timeout);
  if (count < 0) return -errno;
  for (int i = 0; i < count; i++) {
    events[i].events = raw[i].events;
    events[i].data = raw[i].data.u64;
  }
  return count;
}

int clinux_eventfd(void) { return RESULT(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

int clinux_timerfd_create(void) {
  return RESULT(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
}

int clinux_timerfd_set(int fd, int64_t nanoseconds) {
  struct itimerspec when = {0};
  when.it_value.tv_sec = nanoseconds / 1000000000;
  when.it_value.tv_nsec = nanoseconds % 1000000000;
  return RESULT(timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL));
}

int clinux_signalfd(const int *signals, int count) {
  sigset_t set;
  sigemptyset(&set);
  for (int i = 0; i < count; i++) sigaddset(&set, signals[i]);
  if (sigprocmask(SIG_BLOCK, &set, NULL) < 0) return -errno;
  return RESULT(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

static int64_t read_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t clinux_boottime(void) { return read_clock(CLOCK_BOOTTIME); }
int64_t clinux_monotonic(void) { return read_clock(CLOCK_MONOTONIC); }

int64_t clinux_major_faults(void) {
  struct rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_majflt : 0;
}
