#ifndef CLINUX_WAITING_H
#define CLINUX_WAITING_H

#include <stdint.h>

// How a system call says when it will return by itself. The numbers of calls are macros that differ by
// architecture.
enum clinux_wait {
  CLINUX_WAIT_NONE = 0,
  CLINUX_WAIT_MILLISECONDS,       // an int; negative: for ever
  CLINUX_WAIT_TIMESPEC,           // a pointer to a relative one; NULL: for ever
  CLINUX_WAIT_TIMEVAL,            // the same with microseconds
  CLINUX_WAIT_TIMESPEC_ABSOLUTE,  // by CLOCK_MONOTONIC
  CLINUX_WAIT_TIMESPEC_REALTIME,  // absolute, by CLOCK_REALTIME
};

// Of a call with its six arguments; `argument`: which one of them holds the time.
enum clinux_wait clinux_wait_of(int64_t number, const uint64_t *arguments, int *argument);

// Calls that another process can end, without any descriptor of the caller's becoming readable.
enum clinux_outside {
  CLINUX_OUTSIDE_NONE = 0,
  CLINUX_OUTSIDE_OPEN,       // arguments 0 path, 1 flags
  CLINUX_OUTSIDE_OPENAT,     // arguments 0 directory, 1 path, 2 flags
  CLINUX_OUTSIDE_OPENAT2,    // arguments 0 directory, 1 path, 2 struct open_how
  CLINUX_OUTSIDE_LOCK,       // of a file
  CLINUX_OUTSIDE_FUTEX,      // argument 0 address; not marked as private to the process
  CLINUX_OUTSIDE_SEMAPHORE,  // of System V
  CLINUX_OUTSIDE_MESSAGE,    // of a System V queue
  CLINUX_OUTSIDE_QUEUE,      // argument 0 descriptor of a POSIX message queue
};
enum clinux_outside clinux_outside_of(int64_t number, const uint64_t *arguments);

#endif
