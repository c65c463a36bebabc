#ifndef CLINUX_EPOLL_H
#define CLINUX_EPOLL_H
#include <stdint.h>

// struct epoll_event is packed on x86-64 and contains a union. Swift imports this one.
struct clinux_event {
  uint32_t events;
  uint64_t data;
};

enum {
  CLINUX_EPOLLIN = 0x001,
  CLINUX_EPOLLPRI = 0x002,
  CLINUX_EPOLLOUT = 0x004,
  CLINUX_EPOLLERR = 0x008,
  CLINUX_EPOLLHUP = 0x010,
  CLINUX_EPOLLRDHUP = 0x2000,
};

int clinux_epoll_create(void);
int clinux_epoll_add(int epoll, int fd, uint32_t events, uint64_t data);
int clinux_epoll_modify(int epoll, int fd, uint32_t events, uint64_t data);
int clinux_epoll_remove(int epoll, int fd);
// Returns at most 64 events in a call. The timeout is in milliseconds; -1: without limit.
int clinux_epoll_wait(int epoll, struct clinux_event *events, int capacity, int timeout);

int clinux_eventfd(void);
// A timer of CLOCK_BOOTTIME. `nanoseconds` is an absolute time; 0 disarms the timer.
int clinux_timerfd_create(void);
int clinux_timerfd_set(int fd, int64_t nanoseconds);
int clinux_signalfd(const int *signals, int count);
int64_t clinux_boottime(void);
int64_t clinux_monotonic(void);
// The number of page faults of the calling thread, since its start, that had to read from a disk.
int64_t clinux_major_faults(void);
#endif
