#ifndef CLINUX_USERFAULT_H
#define CLINUX_USERFAULT_H
#include <stdint.h>

// userfaultfd(2): pages that are filled when they are accessed. UFFD_USER_MODE_ONLY isn't used:
// with it, a read() into a missing page would fail in the program.

enum { CLINUX_UFFD_PAGEFAULT = 0x12, CLINUX_UFFD_FORK = 0x13, CLINUX_UFFD_REMAP = 0x14,
       CLINUX_UFFD_REMOVE = 0x15, CLINUX_UFFD_UNMAP = 0x16,
       // Dormouse's own number in a journal: a fork that has been handled.
       CLINUX_UFFD_FORK_DONE = 0xf3 };

// One message, as the kernel writes it (32 bytes). The meaning of a, b and c depends on the event:
// PAGEFAULT: b address. FORK: a descriptor. REMAP: a from, b to, c length. REMOVE, UNMAP: a start,
// b end.
struct clinux_uffd_message {
  uint8_t event;
  uint8_t reserved[7];
  uint64_t a, b, c;
};

// Enables the needed features (fork, remap, remove and unmap events). Call it once for each
// descriptor. With `tracks`, writes can be tracked as well (clinux_tracking.h): Linux 6.7.
int clinux_uffd_negotiate(int fd, int tracks);
// The state of a userfaultfd of this process, or -errno: its features haven't been negotiated, have
// been, or have been with `tracks`.
enum { CLINUX_UFFD_NEW, CLINUX_UFFD_IN_USE, CLINUX_UFFD_TRACKING };
int clinux_uffd_state(int fd);
// Registers a range: accesses to its missing pages fault from now on. Returns -EINVAL if the range
// can't be registered (pages of files). With `tracks`, writes to pages that are filled with
// `protects` are recorded.
int clinux_uffd_register(int fd, uint64_t start, uint64_t length, int tracks);
// Makes the range ordinary memory again. Threads that wait for a page continue.
int clinux_uffd_unregister(int fd, uint64_t start, uint64_t length);
// Fills missing pages and, if `wakes`, wakes the threads that wait for them. Returns the number of
// bytes filled, which is less if a page can't be filled, or -EEXIST, -ENOENT (not registered),
// -EAGAIN (an event is in flight), -ESRCH…
int64_t clinux_uffd_copy(int fd, uint64_t target, const void *source, uint64_t length,
                         int protects, int wakes);
// Fills a page with zeros, in the same way.
int64_t clinux_uffd_zero(int fd, uint64_t target, uint64_t length);
int clinux_uffd_wake(int fd, uint64_t start, uint64_t length);
// Returns 1 while a fork, mremap, munmap or madvise of the process waits for its event to be read
// (or is about to); otherwise 0.
int clinux_uffd_event_in_flight(int fd);
// Sets O_NONBLOCK if it isn't set. Returns 1 if it wasn't, 0 if it was, or -errno. Without it,
// poll(2) only reports an error.
int clinux_uffd_make_nonblocking(int fd);
// Reads one message into *message, and doesn't wait for one. Returns 1, 0 if there is none, or
// -errno. The kernel stores it before a SIGKILL can take effect.
int clinux_uffd_read(int fd, volatile struct clinux_uffd_message *message);

enum { CLINUX_SYS_userfaultfd = 100, CLINUX_SYS_fcntl, CLINUX_SYS_close, CLINUX_SYS_openat,
       CLINUX_SYS_ioctl, CLINUX_SYS_socketpair, CLINUX_SYS_recvmsg };
// Opens a userfaultfd of this process: by userfaultfd(2) if `device` is negative, otherwise by an
// open descriptor of /dev/userfaultfd.
int clinux_open_userfault(int device);
// Tries to open a userfaultfd of this process, and closes it again. Returns 0 if userfaultfd(2)
// permits it, 1 if /dev/userfaultfd does, otherwise the error of userfaultfd(2).
int clinux_try_userfaultfd(void);
// Whether this process may follow forks by a userfaultfd, which needs CAP_SYS_PTRACE. Returns 0, or
// -errno (-EPERM).
int clinux_may_follow_forks(void);
int64_t clinux_userfault_syscall_number(int which);
// Returns 1 if a descriptor (O_PATH is enough) is of a regular file on the kernel's own file system
// that has the memfds, and on which no user can mount or make files. No file server is asked.
int clinux_is_memfd(int fd);

// Returns 1 if it is a file in memory that belongs to this process's user, that no other user may
// open, that has that size, and that can't be made smaller.
int clinux_is_private_memfd(int fd, uint64_t size);
// Returns the file's inode number (st_ino), or 0.
uint64_t clinux_inode(int fd);
uint64_t clinux_inode_at(const char *path);
#endif
