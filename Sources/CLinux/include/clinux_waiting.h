#ifndef CLINUX_WAITING_H
#define CLINUX_WAITING_H

#include <stdint.h>

// The ways in which system calls specify their time-out. The numbers of calls are macros that differ by
// architecture.
enum clinux_wait {
  CLINUX_WAIT_NONE = 0,
  CLINUX_WAIT_MILLISECONDS,       // an int; negative: for ever
  CLINUX_WAIT_TIMESPEC,           // a pointer to a relative one; NULL: for ever
  CLINUX_WAIT_TIMEVAL,            // the same with microseconds
  CLINUX_WAIT_TIMESPEC_ABSOLUTE,  // by CLOCK_MONOTONIC
  CLINUX_WAIT_TIMESPEC_REALTIME,  // absolute, by CLOCK_REALTIME
  CLINUX_WAIT_RECEIVING,          // for ever, or as long as the socket says (SO_RCVTIMEO)
  CLINUX_WAIT_SENDING,            // the same (SO_SNDTIMEO)
};

// Of a call with its six arguments; `argument`: which one of them holds the time.
enum clinux_wait clinux_wait_of(int64_t number, const uint64_t *arguments, int *argument);

// The kernel's treatment of the time-out when it makes an interrupted call again.
enum clinux_again {
  // Nothing is to be done: the call has an absolute end, or the kernel keeps it (restart_syscall(2)).
  CLINUX_AGAIN_AS_IT_IS = 0,
  CLINUX_AGAIN_FROM_REGISTER,   // the whole time, which is in a register
  CLINUX_AGAIN_AS_EPOLL_PWAIT,  // the whole time; the same with milliseconds is another call
  CLINUX_AGAIN_FROM_MEMORY,     // the whole time, which the kernel reads from the program's memory
  CLINUX_AGAIN_FROM_REMAINDER,  // what was left, which the kernel has written to the program's memory
  CLINUX_AGAIN_FROM_SOCKET,     // the whole time, which is the socket's
};
enum clinux_again clinux_again_of(int64_t number);
// Calls that return what they have done so far when a stop interrupts them, which can't be changed afterwards.
enum clinux_division {
  CLINUX_DIVISION_NONE = 0,
  CLINUX_DIVISION_ANY,
  // arguments 0 descriptor, 2 bytes: to a pipe, up to PIPE_BUF bytes are written at once or not at all.
  CLINUX_DIVISION_OF_WRITE,
};
enum clinux_division clinux_division_of(int64_t number, const uint64_t *arguments);
int64_t clinux_number_of_epoll_pwait(void);
// restart_syscall(2).
int clinux_is_restart(int64_t number);
// Calls that have had no effect when they return EINTR.
int clinux_may_be_made_again(int64_t number);
// fork(2), clone(2), clone3(2).
int clinux_is_fork(int64_t number);
// A call that moves memory, or copies it for a child, or may do so. (The flags of clone3(2) are in the program's memory.)
int clinux_may_fork_or_move(int64_t number, uint64_t first_argument);

// SO_RCVTIMEO or SO_SNDTIMEO in nanoseconds, 0: none.
int64_t clinux_socket_timeout(int fd, int sending);
// poll(2) says that receiving or sending wouldn't wait.
int clinux_is_ready(int fd, int sending);

// Runs the calling thread on one processor only, and stores where it may run now: a bit each in `length`
// bytes. `clinux_run_on_processors` takes that back.
int clinux_run_on_processor(int processor, void *before, int64_t length);
int clinux_run_on_processors(const void *set, int64_t length);

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

// How a call names the descriptors at which it waits for a connection.
enum clinux_awaited {
  CLINUX_AWAITED_NONE = 0,  // it waits for something else
  CLINUX_AWAITED_ONE,       // argument 0
  CLINUX_AWAITED_EPOLL,     // those in the epoll set of argument 0
  CLINUX_AWAITED_POLL,      // arguments 0 struct pollfd, 1 their number
  CLINUX_AWAITED_SELECT,    // arguments 0 the highest one and one more, 1 fd_set
  CLINUX_AWAITED_UNKNOWN,   // restart_syscall(2), io_uring_enter(2)
};
enum clinux_awaited clinux_awaited_of(int64_t number);

#endif
