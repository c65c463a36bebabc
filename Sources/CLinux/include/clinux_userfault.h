#ifndef CLINUX_USERFAULT_H
#define CLINUX_USERFAULT_H
#include <stdint.h>

// userfaultfd(2): pages that are filled when they are touched. Not UFFD_USER_MODE_ONLY: with it, a read()
// into a missing page would fail in the program.

enum { CLINUX_UFFD_PAGEFAULT = 0x12, CLINUX_UFFD_FORK = 0x13, CLINUX_UFFD_REMAP = 0x14,
       CLINUX_UFFD_REMOVE = 0x15, CLINUX_UFFD_UNMAP = 0x16,
       // Ours, in a journal: a fork that has been dealt with.
       CLINUX_UFFD_FORK_DONE = 0xf3 };

// One message, as the kernel writes it (32 bytes). What a, b and c mean depends on the event:
//   PAGEFAULT: b address. FORK: a descriptor. REMAP: a from, b to, c length.
//   REMOVE, UNMAP: a start, b end.
struct clinux_uffd_message {
  uint8_t event;
  uint8_t reserved[7];
  uint64_t a, b, c;
};

// Enables the needed features (fork, remap, remove and unmap events). Once for each descriptor. With `tracks`, writes can
// be tracked as well (clinux_tracking.h): Linux 6.7.
int clinux_uffd_negotiate(int fd, int tracks);
// Whether a descriptor of this process was negotiated so; 0 also if that can't be read.
int clinux_uffd_tracks(int fd);
// Missing pages of the range fault from now on; -EINVAL where that can't be (files' pages). With `tracks`, writes to pages
// that are filled with `protects` are recorded.
int clinux_uffd_register(int fd, uint64_t start, uint64_t length, int tracks);
// The range is ordinary memory again; threads that wait for a page continue.
int clinux_uffd_unregister(int fd, uint64_t start, uint64_t length);
// Fills missing pages and wakes. Returns the bytes filled, fewer if a page can't be filled, or
// -EEXIST, -ENOENT (not registered), -EAGAIN (an event is in flight), -ESRCH…
int64_t clinux_uffd_copy(int fd, uint64_t target, const void *source, uint64_t length, int protects);
// Fills a page with zeros, in the same way.
int64_t clinux_uffd_zero(int fd, uint64_t target, uint64_t length);
int clinux_uffd_wake(int fd, uint64_t start, uint64_t length);
// 1 while a fork, mremap, munmap or madvise of the process waits for its event to be read (or is
// about to); 0 otherwise.
int clinux_uffd_event_in_flight(int fd);
// Reads one message into *message: 1, 0 where there is none, or -errno. The kernel fills it in
// before a SIGKILL can take effect.
int clinux_uffd_read(int fd, volatile struct clinux_uffd_message *message);

enum { CLINUX_SYS_userfaultfd = 100, CLINUX_SYS_fcntl, CLINUX_SYS_close, CLINUX_SYS_openat,
       CLINUX_SYS_ioctl, CLINUX_SYS_socketpair, CLINUX_SYS_recvmsg };
// A userfaultfd of this process, closed again: 0 where userfaultfd(2) gives one, 1 where
// /dev/userfaultfd does, or what userfaultfd(2) refuses it with.
int clinux_try_userfaultfd(void);
// Whether this process may learn of forks by a userfaultfd, which takes CAP_SYS_PTRACE: 0, or -errno (-EPERM).
int clinux_may_follow_forks(void);
int64_t clinux_userfault_syscall_number(int which);
// Whether a descriptor (O_PATH will do) is of a regular file on the kernel's own file system, where memfds
// are and no user can mount or make files. Asks no file system server.
int clinux_is_memfd(int fd);

// 1 if it is a file in memory of this process's user that no other user may open, with that size, and
// can't be made smaller.
int clinux_is_private_memfd(int fd, uint64_t size);
// st_ino, or 0.
uint64_t clinux_inode(int fd);
uint64_t clinux_inode_at(const char *path);
#endif
