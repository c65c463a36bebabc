#ifndef CLINUX_PASSING_H
#define CLINUX_PASSING_H
#include <stdint.h>
#include <sys/types.h>

// The kernel's own limit for one message, SCM_MAX_FD.
#define CLINUX_MAX_PASSED 253

// The sender of a message if the socket requests it (SO_PASSCRED; otherwise pid is 0), and all
// descriptors that came with it (SCM_RIGHTS). The caller must close them, on a thread that may
// wait.
struct clinux_passed {
  pid_t pid;
  uid_t uid;
  int count;
  int descriptors[CLINUX_MAX_PASSED];
};

// Calls recvmsg(2) without waiting.
int64_t clinux_receive(int fd, void *buffer, int64_t capacity, struct clinux_passed *passed);

// Makes later attempts to send a descriptor to this socket fail with EPERM (SO_PASSRIGHTS 0, Linux
// 6.16). Returns -ENOPROTOOPT if the kernel doesn't support that.
int clinux_refuse_descriptors(int fd);

// Returns 1 if two of this process's descriptors are the same open file (dup(2), SCM_RIGHTS), and 0
// if they aren't or the kernel can't compare them. It never waits.
int clinux_same_file(int one, int other);

// Returns 1 if a descriptor is a file in memory (memfd_create(2), tmpfs). It never waits.
int clinux_is_memory_file(int fd);

// Calls sendmsg(2) with one descriptor, for tests and for workers that offer memory.
int64_t clinux_send_with_descriptor(int fd, const void *bytes, int64_t count, int passed);
#endif
