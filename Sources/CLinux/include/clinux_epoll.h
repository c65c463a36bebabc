#ifndef CLINUX_EPOLL_H
#define CLINUX_EPOLL_H
#include <stdint.h>

// struct epoll_event is packed on x86-64 and holds a union; this one imports cleanly.
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
// At most 64 events a call; time-out in milliseconds, -1 for ever.
int clinux_epoll_wait(int epoll, struct clinux_event *events, int capacity, int timeout);

int clinux_eventfd(void);
// CLOCK_BOOTTIME, absolute; nanoseconds 0 disarms.
int clinux_timerfd_create(void);
int clinux_timerfd_set(int fd, int64_t nanoseconds);
int clinux_signalfd(const int *signals, int count);
int64_t clinux_boottime(void);
int64_t clinux_monotonic(void);
// Page faults of the calling thread that had to read from a disk, since its start.
int64_t clinux_major_faults(void);
#endif
