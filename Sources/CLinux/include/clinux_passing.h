#ifndef CLINUX_PASSING_H
#define CLINUX_PASSING_H
#include <stdint.h>
#include <sys/types.h>

// SCM_MAX_FD: the kernel's own limit for one message.
#define CLINUX_MOST_PASSED 253

// What came with a message: its sender where the socket asks for that (SO_PASSCRED; else pid is 0), and
// all descriptors (SCM_RIGHTS). The caller must close them, on a thread that may wait.
struct clinux_passed {
  pid_t pid;
  uid_t uid;
  int count;
  int descriptors[CLINUX_MOST_PASSED];
};

// recvmsg(2) without waiting.
int64_t clinux_receive(int fd, void *buffer, int64_t capacity, struct clinux_passed *passed);

// From then on sending a descriptor to this socket fails with EPERM (SO_PASSRIGHTS 0, Linux 6.16).
// -ENOPROTOOPT where the kernel doesn't know that.
int clinux_refuse_descriptors(int fd);

// Whether two of this process's descriptors are the same open file (dup(2), SCM_RIGHTS). 0 if the kernel can't
// compare them. Never waits.
int clinux_same_file(int one, int other);

// Whether a descriptor is a file in memory (memfd_create(2), tmpfs). Never waits.
int clinux_is_memory_file(int fd);

// sendmsg(2) with one descriptor, for tests and for workers that offer memory.
int64_t clinux_send_with_descriptor(int fd, const void *bytes, int64_t count, int passed);
#endif
